//! A small diamond of work over two streams: one kernel, then two beside each other, then one that needs both.

use std::sync::Arc;

use anyhow::Result;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream};
use kernels::{vector_add_01_scalar, work_01_rounds};

use crate::overlap::{expected, number_at};

/// Who sees to it that a kernel waits for what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waits {
    /// cudarc, by the events that it keeps with every slice.
    Tracked,
    /// We, by events.
    Events,
    /// We, by forking a stream and joining it.
    ForkAndJoin,
    /// Nobody, at the last step: the mistake.
    Forgotten,
}

/// The data of the diamond.
pub struct Diamond {
    work: work_01_rounds::Kernel,
    add: vector_add_01_scalar::Kernel,
    source: CudaSlice<f32>,
    prepared: CudaSlice<f32>,
    halves: [CudaSlice<f32>; 2],
    sum: CudaSlice<f32>,
    left: Arc<CudaStream>,
    right: Arc<CudaStream>,
    n: usize,
}

impl Diamond {
    /// For `n` numbers. Turns off the tracking of events in `context`, unless it is wanted.
    pub fn new(context: &Arc<CudaContext>, waits: Waits, n: usize) -> Result<Self> {
        if waits != Waits::Tracked {
            // SAFETY: `run` orders the work itself, except where it is the lesson that it does not; then the memory stays
            // allocated all the same, because `drop` waits.
            unsafe { context.disable_event_tracking() };
        }
        let (left, right) = (context.new_stream()?, context.new_stream()?);
        let source: Vec<f32> = (0..n.max(1)).map(number_at).collect();
        let zeros = || left.alloc_zeros::<f32>(n.max(1));
        let diamond = Self {
            work: work_01_rounds::Kernel::load(context)?,
            add: vector_add_01_scalar::Kernel::load(context)?,
            source: left.clone_htod(&source)?,
            prepared: zeros()?,
            halves: [zeros()?, zeros()?],
            sum: zeros()?,
            left,
            right,
            n,
        };
        context.synchronize()?;
        Ok(diamond)
    }

    /// Runs it once: three rounds, then 5 on one side and `rounds` on the other, then their sum.
    pub fn run(&mut self, waits: Waits, rounds: u32) -> Result<()> {
        let Self { work, add, source, prepared, halves: [y, z], sum, left, right, n } = self;
        let n = *n as u64;
        let view = ..n as usize;
        let mut sides = (left.clone(), right.clone());
        // ANCHOR: diamond
        let (left, right) = (&mut sides.0, &mut sides.1);
        let work =
            |stream: &CudaStream, input: &CudaSlice<f32>, output: &mut CudaSlice<f32>, rounds| {
                let (input, output) = (&input.slice(view), &mut output.slice_mut(view));
                work.launch(stream, work_01_rounds::Arguments { input, output, n, rounds })
            };

        work(left, source, prepared, 3)?;
        match waits {
            Waits::Tracked => {}
            Waits::ForkAndJoin => *right = left.fork()?,
            Waits::Events | Waits::Forgotten => {
                let is_prepared = left.record_event(None)?;
                right.wait(&is_prepared)?;
            }
        }
        work(left, prepared, y, 5)?;
        work(right, prepared, z, rounds)?;
        match waits {
            Waits::Tracked | Waits::Forgotten => {}
            Waits::ForkAndJoin => left.join(right)?,
            Waits::Events => {
                let is_done = right.record_event(None)?;
                left.wait(&is_done)?;
            }
        }
        let (a, b, c) = (&y.slice(view), &z.slice(view), &mut sum.slice_mut(view));
        add.launch(left, vector_add_01_scalar::Arguments { a, b, c, n })?;
        // ANCHOR_END: diamond
        Ok(())
    }

    /// How many sums are wrong. Clears what was computed.
    pub fn wrong(&mut self, rounds: u32) -> Result<usize> {
        self.left.context().synchronize()?;
        let found = self.left.clone_dtoh(&self.sum)?;
        self.left.synchronize()?;
        let wrong = |(i, found): &(usize, &f32)| {
            let prepared = expected(number_at(*i), 3);
            **found != expected(prepared, 5) + expected(prepared, rounds)
        };
        let count = found[..self.n].iter().enumerate().filter(wrong).count();
        for slice in self.halves.iter_mut().chain([&mut self.prepared, &mut self.sum]) {
            self.left.memset_zeros(slice)?;
        }
        self.left.context().synchronize()?;
        Ok(count)
    }
}

impl Drop for Diamond {
    /// Kernels may be at work in both streams, and their memory is about to be freed.
    fn drop(&mut self) {
        let context = self.left.context();
        context.record_err(context.synchronize());
    }
}
