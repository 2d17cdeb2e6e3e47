//! The sum of many floats, in eight steps.

use anyhow::{Result, ensure};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use kernels::{sum_01_atomic, sum_08_one_pass};
use lab::{Axis, Cell, Figure, Series, Table, row, timing};

use crate::cpu;
use crate::device::Device;

/// The steps, each one idea away from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Every thread adds to one number.
    Atomic,
    /// A tree in shared memory.
    Tree,
    /// The same tree, by whole warps.
    NoDivergence,
    /// The same tree, without bank conflicts.
    NoConflicts,
    /// The first addition on the way in.
    FirstAdd,
    /// Warps exchange registers.
    Shuffle,
    /// 16-byte loads.
    Float4,
    /// One launch; the last block finishes.
    OnePass,
}

impl Step {
    /// In the order of the story.
    pub const ALL: [Step; 8] = [
        Step::Atomic,
        Step::Tree,
        Step::NoDivergence,
        Step::NoConflicts,
        Step::FirstAdd,
        Step::Shuffle,
        Step::Float4,
        Step::OnePass,
    ];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Atomic => "atomic",
            Step::Tree => "tree",
            Step::NoDivergence => "no divergence",
            Step::NoConflicts => "no conflicts",
            Step::FirstAdd => "first add",
            Step::Shuffle => "shuffle",
            Step::Float4 => "float4",
            Step::OnePass => "one pass",
        }
    }

    /// How far a sum of `n` numbers of one sign may be off, as a fraction of it. Rounding loses half
    /// a unit in 2²³ each time; a tree has few additions in a row, and the atomic step up to `n`,
    /// whose errors mostly cancel.
    pub fn tolerance(self, n: usize) -> f64 {
        match self {
            Step::Atomic => 1e-6 + 1e-6 * (n as f64).sqrt(),
            _ => 1e-5,
        }
    }
}

/// Enqueues a kernel that leaves one number a block.
type BlockSums =
    Box<dyn Fn(&CudaStream, &dyn DevicePtr<f32>, &mut dyn DevicePtrMut<f32>, u64) -> Launched>;
type Launched = Result<(), kernels::Error>;

enum Loaded {
    Atomic(sum_01_atomic::Kernel),
    Blocks { elements: usize, launch: BlockSums },
    OnePass(sum_08_one_pass::Kernel),
}

/// One of the steps, loaded.
pub struct Summer {
    /// Which.
    pub step: Step,
    loaded: Loaded,
    blocks: u32,
}

/// What a step needs besides the elements. The sum is in it afterwards.
pub struct Scratch {
    /// The blocks' sums, their blocks' sums, and so on; the last has one.
    levels: Vec<CudaSlice<f32>>,
    finished: CudaSlice<u32>,
}

macro_rules! block_sums {
    ($device:ident, $name:ident, $elements:literal) => {{
        let kernel = kernels::$name::Kernel::load(&$device.context)?;
        let launch = move |stream: &CudaStream,
                           a: &dyn DevicePtr<f32>,
                           partials: &mut dyn DevicePtrMut<f32>,
                           n: u64| {
            kernel.launch(stream, kernels::$name::Arguments { a, partials, n })
        };
        Loaded::Blocks { elements: $elements, launch: Box::new(launch) }
    }};
}

impl Summer {
    /// Loads a step.
    pub fn load(device: &Device, step: Step) -> Result<Self> {
        let loaded = match step {
            Step::Atomic => Loaded::Atomic(sum_01_atomic::Kernel::load(&device.context)?),
            Step::Tree => block_sums!(device, sum_02_tree, 256),
            Step::NoDivergence => block_sums!(device, sum_03_no_divergence, 256),
            Step::NoConflicts => block_sums!(device, sum_04_no_conflicts, 256),
            Step::FirstAdd => block_sums!(device, sum_05_first_add, 512),
            Step::Shuffle => block_sums!(device, sum_06_shuffle, 512),
            Step::Float4 => block_sums!(device, sum_07_float4, 4096),
            Step::OnePass => Loaded::OnePass(sum_08_one_pass::Kernel::load(&device.context)?),
        };
        Ok(Self { step, loaded, blocks: 4 * device.multiprocessors })
    }

    /// Memory for the sum of `n` elements.
    pub fn scratch(&self, device: &Device, n: usize) -> Result<Scratch> {
        let mut levels = Vec::new();
        match &self.loaded {
            Loaded::Atomic(_) => {}
            Loaded::Blocks { elements, .. } => {
                let mut left = n;
                while left > *elements {
                    left = left.div_ceil(*elements);
                    levels.push(device.zeros(left)?);
                }
            }
            Loaded::OnePass(_) => levels.push(device.zeros(self.blocks as usize)?),
        }
        levels.push(device.zeros(1)?);
        Ok(Scratch { levels, finished: device.zeros(1)? })
    }

    /// Enqueues what it takes to sum the first `n` elements of `a`.
    pub fn enqueue(
        &self,
        device: &Device,
        a: &CudaSlice<f32>,
        n: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let stream = &device.stream;
        let Scratch { levels, finished } = scratch;
        match &self.loaded {
            Loaded::Atomic(kernel) => {
                stream.memset_zeros(&mut levels[0])?;
                let (a, sum) = (&a.slice(..n), &mut levels[0]);
                kernel.launch(stream, sum_01_atomic::Arguments { a, sum, n: n as u64 })?;
            }
            // ANCHOR: again
            // The same kernel again and again, on what it left, until that is one number.
            Loaded::Blocks { launch, .. } => {
                launch(stream, &a.slice(..n), &mut levels[0], n as u64)?;
                for level in 1..levels.len() {
                    let (done, rest) = levels.split_at_mut(level);
                    let left = &done[level - 1];
                    launch(stream, left, &mut rest[0], left.len() as u64)?;
                }
            }
            // ANCHOR_END: again
            Loaded::OnePass(kernel) => {
                let (partials, sum) = levels.split_at_mut(1);
                kernel.launch(
                    stream,
                    sum_08_one_pass::Arguments {
                        a: &a.slice(..n),
                        sum: &mut sum[0],
                        partials: &mut partials[0],
                        finished,
                        n: n as u64,
                        blocks: self.blocks,
                    },
                )?;
            }
        }
        Ok(())
    }

    /// The sum that was enqueued last.
    pub fn result(&self, device: &Device, scratch: &Scratch) -> Result<f32> {
        let last = &scratch.levels[scratch.levels.len() - 1];
        Ok(device.fetch(last, 1)?[0])
    }
}

/// The sum of a host slice by one of the steps: what the tests call.
pub fn sum(device: &Device, step: Step, a: &[f32]) -> Result<f32> {
    let summer = Summer::load(device, step)?;
    let memory = device.copy(a)?;
    let mut scratch = summer.scratch(device, a.len())?;
    summer.enqueue(device, &memory, a.len(), &mut scratch)?;
    summer.result(device, &scratch)
}

fn ensure_close(step: Step, n: usize, found: f32, expected: f64) -> Result<()> {
    let error = (f64::from(found) - expected).abs();
    ensure!(
        error <= step.tolerance(n) * expected,
        "{}: the sum of {n} elements is {found}, and should be {expected}",
        step.name()
    );
    Ok(())
}

/// Every step at awkward sizes.
pub fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let mut table = Table::new("wrong")
        .exact("n", "")
        .exact("blocks of the tree", "")
        .exact("wrong sums, of eight", "");
    for n in [0, 1, 31, 32, 33, 255, 257, 1000, 4097, 65_537] {
        let a = cpu::numbers(n, 1);
        let expected = cpu::sum(&a);
        for step in Step::ALL {
            ensure_close(step, n, sum(&device, step, &a)?, expected)?;
        }
        table.push(row![n, n.div_ceil(256).max(1), 0]);
    }
    cell.table(table);
    Ok(())
}

/// What each step asks of the hardware, where blocks do not talk to each other.
pub fn counts(cell: &mut Cell) -> Result<()> {
    count(cell, &Step::ALL[1..7])
}

/// The same for the two steps whose blocks do.
pub fn meeting(cell: &mut Cell) -> Result<()> {
    count(cell, &[Step::Atomic, Step::OnePass])
}

fn count(cell: &mut Cell, steps: &[Step]) -> Result<()> {
    let device = Device::open()?;
    let n = 1 << 16;
    let a = cpu::numbers(n, 1);
    let mut table = Table::new("counts")
        .exact("step", "")
        .exact("launches", "")
        .exact("warp instructions", "")
        .exact("divergent branches", "")
        .exact("barriers", "")
        .exact("shared accesses", "")
        .exact("bank conflicts", "")
        .exact("load requests", "")
        .exact("atomics", "");
    for &step in steps {
        let (sum, launches) = cell.counts(|| sum(&device, step, &a))?;
        ensure_close(step, n, sum, cpu::sum(&a))?;
        if launches.is_empty() {
            return Ok(()); // A GPU's counters need a profiler.
        }
        let total = |counters: &[&str]| -> f64 {
            let counts = launches.iter().flat_map(|launch| counters.iter().map(|c| launch.get(c)));
            counts.map(|count| count.unwrap_or(f64::NAN)).sum()
        };
        table.push(row![
            step.name(),
            launches.len(),
            total(&["warp_instructions"]),
            total(&["branches_divergent"]),
            total(&["barriers"]),
            total(&["shared_load_instructions", "shared_store_instructions"]),
            total(&["shared_load_bank_conflicts", "shared_store_bank_conflicts"]),
            total(&["global_load_requests"]),
            total(&["global_atomic_requests"]),
        ]);
    }
    cell.table(table);
    Ok(())
}

/// How fast each step is, against a kernel that only reads.
pub fn rates(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let largest = cell.largest(cell.parameter("largest")?);
    let block = cpu::numbers(largest.min(1 << 20), 1);
    let a = device.repeat(&block, largest)?;
    cell.progress(Step::ALL.len() as u64 + 1);

    let floor = read_ceiling(cell, &device, &a)?;
    let mut rate = Series::measured("rate", "GB/s").label("4 bytes an element");
    let mut table = Table::new("steps")
        .exact("step", "")
        .measured("elements", "")
        .measured("time", "s")
        .measured("rate", "GB/s")
        .measured("of the read ceiling", "%");
    for step in Step::ALL {
        cell.tick(step.name());
        // The atomic step would take a second for all of them, and is no faster for fewer.
        let n = if step == Step::Atomic { largest / 16 } else { largest };
        let summer = Summer::load(&device, step)?;
        let mut scratch = summer.scratch(&device, n)?;
        let time =
            timing::device(device.raw_stream(), |_| summer.enqueue(&device, &a, n, &mut scratch))?;
        // A part of the block, or whole blocks over and over.
        let expected = cpu::sum(&block[..n.min(block.len())]) * (n / block.len()).max(1) as f64;
        ensure_close(step, n, summer.result(&device, &scratch)?, expected)?;

        let gbps = time.map(|time| time.gigabytes_per_second(size_of::<f32>() * n));
        let share = gbps.and_then(|gbps| Some(100.0 * gbps.value? / floor?));
        table.push(row![step.name(), n, time.map(timing::Timing::seconds), gbps, share]);
        rate.push(step.name(), gbps);
    }
    cell.series(rate);
    cell.table(table);
    cell.figure(
        Figure::new(
            "How fast is each step of the sum?",
            "Rate of the eight steps: the atomic one reaches next to nothing, the trees climb step by step, and with \
             16-byte loads the sum reads as fast as a kernel that only reads.",
        )
        .x(Axis::labels("step"))
        .y(Axis::linear("rate, 4 bytes an element", "GB/s"))
        .series(["rate"])
        .limit("read", "kernel that only reads, measured"),
    );
    Ok(())
}

/// The rate of a kernel that reads `a` and does nothing with it, in GB/s: value `read` of the cell.
pub fn read_ceiling(cell: &mut Cell, device: &Device, a: &CudaSlice<f32>) -> Result<Option<f64>> {
    use kernels::read_01_float4::{Arguments, Kernel};
    cell.tick("the read ceiling");
    let kernel = Kernel::load(&device.context)?;
    let mut kept = device.zeros(1)?;
    let blocks = 4 * device.multiprocessors;
    let time = timing::device(device.raw_stream(), |_| {
        let n = a.len() as u64;
        Ok(kernel.launch(&device.stream, Arguments { a, kept: &mut kept, n, blocks })?)
    })?;
    let rate = time.map(|time| time.gigabytes_per_second(size_of::<f32>() * a.len()));
    let value = rate.as_ref().and_then(|rate| rate.value);
    cell.measured("read", rate, "GB/s");
    Ok(value)
}

/// Does the same program on the same data give the same sum?
pub fn same_twice(cell: &mut Cell) -> Result<()> {
    const RUNS: usize = 20;
    let device = Device::open()?;
    let n = cell.largest(1 << 24);
    let a = device.copy(&cpu::numbers(n, 7))?;
    let mut table = Table::new("sums").exact("step", "").measured("different sums in 20 runs", "");
    for step in [Step::Atomic, Step::Float4, Step::OnePass] {
        let summer = Summer::load(&device, step)?;
        let mut scratch = summer.scratch(&device, n)?;
        let mut sums = Vec::with_capacity(RUNS);
        for _ in 0..RUNS {
            summer.enqueue(&device, &a, n, &mut scratch)?;
            sums.push(summer.result(&device, &scratch)?.to_bits());
        }
        sums.sort_unstable();
        sums.dedup();
        if step != Step::Atomic {
            ensure!(sums.len() == 1, "{} gave {} different sums", step.name(), sums.len());
        }
        table.push(row![step.name(), sums.len()]);
    }
    cell.table(table);
    Ok(())
}

/// How far each order of additions is off.
pub fn float_order(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    type Order = (&'static str, &'static str, fn(&[f32]) -> f32);
    let orders: [Order; 4] = [
        ("serial", "one after the other", cpu::serial),
        ("blocked", "blocks of 256", cpu::blocked),
        ("tree", "tree", cpu::tree),
        ("compensated", "compensated (Kahan)", cpu::compensated),
    ];
    let a = cpu::numbers(1 << 24, 5);
    let sizes = (4..=12).map(|power| 1usize << (2 * power));
    let off = |found: f32, n: usize| {
        let expected = cpu::sum(&a[..n]);
        // A sum that f64 does not tell from the right one is drawn at the bottom of the plot.
        ((f64::from(found) - expected).abs() / expected).max(1e-10)
    };
    let mut series: Vec<Series> =
        orders.iter().map(|(name, label, _)| Series::exact(*name, "").label(*label)).collect();
    let mut gpu = Series::exact("gpu", "").label("this chapter's shuffle kernel");
    for n in sizes {
        for (series, (.., sum)) in series.iter_mut().zip(orders) {
            series.push(n, off(sum(&a[..n]), n));
        }
        if n <= 1 << 20 {
            gpu.push(n, off(sum(&device, Step::Shuffle, &a[..n])?, n));
        }
    }
    series.into_iter().chain([gpu]).for_each(|series| cell.series(series));
    cell.figure(
        Figure::new(
            "How far is each order of additions off?",
            "Relative error over the number of elements: the serial sum gets worse and worse, blocks are better, the tree \
             and the GPU's order stay near the last bit, and the compensated sum is at the last bit throughout.",
        )
        .x(Axis::log2("elements", ""))
        .y(Axis::log10("relative error", ""))
        .series(["serial", "blocked", "tree", "compensated", "gpu"]),
    );
    Ok(())
}
