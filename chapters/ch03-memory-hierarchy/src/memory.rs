//! Numbers on the device whose values the CPU knows, and chains to follow there.

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, LaunchConfig, PushKernelArg,
};
use cudarc::nvrtc::Ptx;
use kernels::Image;
use lab::{Point, timing};

use crate::cpu;

/// Floats on the device: repetitions of a block that the CPU keeps.
pub(crate) struct Numbers {
    /// The floats.
    pub(crate) memory: CudaSlice<f32>,
    block: Vec<f32>,
}

impl Numbers {
    /// `len` floats between 0 and 1.
    pub(crate) fn new(stream: &Arc<CudaStream>, len: usize, seed: u64) -> Result<Self> {
        let block = cpu::numbers(len.min(1 << 20), seed);
        let mut memory = stream.alloc_zeros::<f32>(len)?;
        stream.memcpy_htod(&block, &mut memory.slice_mut(..block.len()))?;
        // Each copy on the device is twice as long as the one before.
        let mut filled = block.len();
        while filled < len {
            let more = filled.min(len - filled);
            let (from, mut to) = memory.split_at_mut(filled);
            stream.memcpy_dtod(&from.slice(..more), &mut to.slice_mut(..more))?;
            filled += more;
        }
        Ok(Self { memory, block })
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.memory.len()
    }

    /// The value of an element.
    pub(crate) fn at(&self, i: usize) -> f32 {
        self.block[i % self.block.len()]
    }

    /// The sum of the first `n`, in f64.
    pub(crate) fn sum(&self, n: usize) -> f64 {
        let sum = |block: &[f32]| block.iter().map(|&value| f64::from(value)).sum::<f64>();
        let len = self.block.len();
        (n / len) as f64 * sum(&self.block) + sum(&self.block[..n % len])
    }

    /// Compares `c` with the elements from `offset` on: at both ends and in the middle, a million
    /// each.
    pub(crate) fn hold_copy(
        &self,
        stream: &Arc<CudaStream>,
        c: &CudaSlice<f32>,
        offset: usize,
    ) -> Result<()> {
        let _check = lab::range("check");
        let stretch = c.len().min(1 << 20);
        for start in [0, (c.len() - stretch) / 2, c.len() - stretch] {
            let copied = stream.clone_dtoh(&c.slice(start..start + stretch))?;
            let is_wrong = |&(i, &value): &(usize, &f32)| value != self.at(start + i + offset);
            let wrong = copied.iter().enumerate().find(is_wrong);
            ensure!(wrong.is_none(), "copying from {offset} on, {wrong:?} is wrong after {start}");
        }
        Ok(())
    }
}

/// One thread that follows a chain.
pub(crate) struct Chase {
    stream: Arc<CudaStream>,
    function: CudaFunction,
    host: Vec<u32>,
    chain: CudaSlice<u32>,
    state: CudaSlice<u32>,
    cycles: CudaSlice<u64>,
    threads: u32,
}

/// What one step along a chain takes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OneStep {
    /// In seconds, by events around the whole launch.
    pub(crate) time: Point,
    /// In cycles of the multiprocessor's clock, read in the kernel.
    pub(crate) cycles: Point,
}

impl Chase {
    /// A chain through `bytes` bytes of global memory, in steps of whole lines of 128 bytes.
    pub(crate) fn global(
        context: &Arc<CudaContext>,
        stream: &Arc<CudaStream>,
        bytes: usize,
    ) -> Result<Self> {
        const LINE: usize = 128;
        let chain = cpu::chain(bytes / LINE, LINE / size_of::<u32>());
        Self::new(context, stream, &kernels::CHASE_01_GLOBAL, chain, 1)
    }

    /// A chain through 16 KB of shared memory.
    pub(crate) fn shared(context: &Arc<CudaContext>, stream: &Arc<CudaStream>) -> Result<Self> {
        Self::new(context, stream, &kernels::CHASE_02_SHARED, cpu::chain(4096, 1), 256)
    }

    fn new(
        context: &Arc<CudaContext>,
        stream: &Arc<CudaStream>,
        image: &'static Image,
        host: Vec<u32>,
        threads: u32,
    ) -> Result<Self> {
        let module = context.load_module(Ptx::from_src(image.ptx().to_str()?))?;
        Ok(Self {
            stream: stream.clone(),
            function: module.load_function(image.name().to_str()?)?,
            chain: stream.clone_htod(&host)?,
            host,
            state: stream.alloc_zeros(1)?,
            cycles: stream.alloc_zeros(1)?,
            threads,
        })
    }

    /// What a step takes, with everything in the caches that fits.
    pub(crate) fn step(&mut self) -> Result<Option<OneStep>> {
        const STEPS: usize = 1 << 14;
        /// A chain that is longer than any cache need not be followed to its end first.
        const LONGEST_CACHED: usize = 1 << 20;
        self.launch(STEPS)?;
        let end = self.stream.clone_dtoh(&self.state)?[0];
        let expected = cpu::follow(&self.host, 0, STEPS);
        ensure!(end == expected, "{STEPS} steps end at {end} and should at {expected}");

        let nodes = self.host.len() / 32;
        if nodes <= LONGEST_CACHED {
            self.launch(nodes)?;
        }
        let stream = self.stream.clone();
        let time = timing::device(stream.cu_stream(), |_| self.launch(STEPS))?;
        let cycles = self.stream.clone_dtoh(&self.cycles)?[0] as f64 / STEPS as f64;
        Ok(time.map(|time| OneStep { time: time.each(STEPS), cycles: Point::from(cycles) }))
    }

    // ANCHOR: chase
    fn launch(&mut self, steps: usize) -> Result<()> {
        let n = u32::try_from(self.host.len())?;
        let steps = u32::try_from(steps)?;
        let config = LaunchConfig {
            grid_dim: (1, 1, 1),
            block_dim: (self.threads, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&self.function);
        launch.arg(&self.chain).arg(&mut self.state).arg(&mut self.cycles).arg(&n).arg(&steps);
        // SAFETY: the arguments are those of both kernels; every element of the chain that is reached
        // names another one, below `n`, because `cpu::chain` made it so.
        unsafe { launch.launch(config) }.context("launching the chase")?;
        Ok(())
    }
    // ANCHOR_END: chase
}
