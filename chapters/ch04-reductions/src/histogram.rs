//! How often each byte occurs, in five steps.

use anyhow::{Result, ensure};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use lab::{Axis, Cell, Figure, Series, Table, row, timing};

use crate::cpu;
use crate::device::Device;

/// The steps, each one idea away from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Counters in global memory.
    Global,
    /// Counters of the block's own, in shared memory.
    Shared,
    /// 16 bytes a load.
    Uint4,
    /// A copy of the counters for every lane.
    Copies,
    /// Sixteen equal bytes at once.
    Runs,
}

impl Step {
    /// In the order of the story.
    pub const ALL: [Step; 5] = [Step::Global, Step::Shared, Step::Uint4, Step::Copies, Step::Runs];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Global => "global",
            Step::Shared => "shared",
            Step::Uint4 => "uint4",
            Step::Copies => "copies",
            Step::Runs => "runs",
        }
    }
}

type Launch = Box<
    dyn Fn(
        &CudaStream,
        &dyn DevicePtr<u8>,
        &mut dyn DevicePtrMut<u32>,
        u64,
        u32,
    ) -> Result<(), kernels::Error>,
>;

/// One of the steps, loaded.
pub struct Counter {
    launch: Launch,
    blocks: u32,
}

macro_rules! launcher {
    ($device:ident, $name:ident $(, $blocks:ident)?) => {{
        let kernel = kernels::$name::Kernel::load(&$device.context)?;
        Box::new(
            move |stream: &CudaStream,
                  a: &dyn DevicePtr<u8>,
                  bins: &mut dyn DevicePtrMut<u32>,
                  n: u64,
                  _blocks: u32| {
                $(let $blocks = _blocks;)?
                kernel.launch(stream, kernels::$name::Arguments { a, bins, n $(, $blocks)? })
            },
        )
    }};
}

impl Counter {
    /// Loads a step.
    pub fn load(device: &Device, step: Step) -> Result<Self> {
        let launch: Launch = match step {
            Step::Global => launcher!(device, histogram_01_global),
            Step::Shared => launcher!(device, histogram_02_shared, blocks),
            Step::Uint4 => launcher!(device, histogram_03_uint4, blocks),
            Step::Copies => launcher!(device, histogram_04_copies, blocks),
            Step::Runs => launcher!(device, histogram_05_runs, blocks),
        };
        Ok(Self { launch, blocks: 2 * device.multiprocessors })
    }

    /// Enqueues the count of the first `n` bytes of `a`.
    pub fn enqueue(
        &self,
        device: &Device,
        a: &CudaSlice<u8>,
        n: usize,
        bins: &mut CudaSlice<u32>,
    ) -> Result<()> {
        device.stream.memset_zeros(bins)?;
        Ok((self.launch)(&device.stream, &a.slice(..n), bins, n as u64, self.blocks)?)
    }
}

/// The histogram of a host slice by one of the steps: what the tests call.
pub fn histogram(device: &Device, step: Step, a: &[u8]) -> Result<Vec<u32>> {
    let memory = device.copy(a)?;
    let mut bins = device.zeros(256)?;
    Counter::load(device, step)?.enqueue(device, &memory, a.len(), &mut bins)?;
    Ok(device.fetch(&bins, 256)?)
}

/// What each step asks of shared and global memory, for bytes in no order and for bytes all alike.
pub fn counts(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let n = 1 << 18;
    for (name, a) in [("random", cpu::bytes(n, 3)), ("constant", vec![77; n])] {
        let mut table = Table::new(name)
            .exact("step", "")
            .exact("load requests", "")
            .exact("global atomics", "")
            .exact("shared atomics", "")
            .exact("wavefronts per shared atomic", "");
        for step in Step::ALL {
            let (bins, launches) = cell.counts(|| histogram(&device, step, &a))?;
            ensure!(bins == cpu::histogram(&a), "{}: wrong counts of {name} bytes", step.name());
            for launch in launches {
                let count = |counter| launch.get(counter).unwrap_or(f64::NAN);
                let atomics = count("shared_atomic_instructions");
                let wavefronts =
                    if atomics > 0.0 { count("shared_atomic_wavefronts") / atomics } else { 0.0 };
                table.push(row![
                    step.name(),
                    count("global_load_requests"),
                    count("global_atomic_requests"),
                    atomics,
                    wavefronts,
                ]);
            }
        }
        if !table.rows.is_empty() {
            cell.table(table);
        }
    }
    Ok(())
}

/// How fast each step counts, against a kernel that only reads.
pub fn rates(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let largest = cell.largest(cell.parameter("largest")?);
    cell.progress(2 * Step::ALL.len() as u64 + 1);
    let floats = device.repeat(&cpu::numbers(largest.min(1 << 20), 1), largest / 4)?;
    let floor = crate::sum::read_ceiling(cell, &device, &floats)?;
    drop(floats);

    let mut table = Table::new("steps")
        .exact("step", "")
        .exact("bytes are", "")
        .measured("time", "s")
        .measured("rate", "GB/s")
        .measured("of the read ceiling", "%");
    let block = cpu::bytes(largest.min(1 << 22), 3);
    for (name, block) in [("random", block.clone()), ("constant", vec![77; block.len()])] {
        let a = device.repeat(&block, largest)?;
        let mut bins = device.zeros(256)?;
        let mut rate = Series::measured(name, "GB/s").label(format!("{name} bytes"));
        for step in Step::ALL {
            cell.tick(&format!("{}, {name}", step.name()));
            // As with the sum: the first step is no faster for fewer.
            let n = if step == Step::Global { largest / 16 } else { largest };
            let counter = Counter::load(&device, step)?;
            let time = timing::device(device.raw_stream(), |_| {
                counter.enqueue(&device, &a, n, &mut bins)
            })?;
            // A part of a block, or whole blocks over and over.
            let expected = cpu::histogram(&block[..n.min(block.len())]);
            let times = (n / block.len()).max(1) as u32;
            let expected = expected.map(|count| times * count);
            ensure!(
                device.fetch(&bins, 256)? == expected,
                "{}: wrong counts of {n} {name} bytes",
                step.name()
            );
            let gbps = time.map(|time| time.gigabytes_per_second(n));
            let share = gbps.and_then(|gbps| Some(100.0 * gbps.value? / floor?));
            let seconds = time.map(timing::Timing::seconds);
            table.push(row![step.name(), name, seconds, gbps, share]);
            rate.push(step.name(), gbps);
        }
        cell.series(rate);
    }
    cell.table(table);
    cell.figure(
        Figure::new(
            "How fast is each step of the histogram?",
            "Rate of the five steps for random and for constant bytes: counters in shared memory help, wide loads help \
             most, copies for every lane help random bytes, and counting runs helps constant bytes.",
        )
        .x(Axis::labels("step"))
        .y(Axis::linear("rate, a byte a byte", "GB/s"))
        .series(["random", "constant"])
        .limit("read", "kernel that only reads, measured"),
    );
    Ok(())
}
