//! The inclusive scan: every element's sum with all before it.

use anyhow::{Result, ensure};
use cudarc::driver::CudaSlice;
use kernels::{
    scan_01_one_block, scan_02_tile_sums, scan_03_downsweep, scan_04_look_back,
    scan_05_publish_first,
};
use lab::{Axis, Cell, Figure, Series, Table, row, timing};

use crate::cpu;
use crate::device::Device;

/// The ways to scan.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One block walks through it all.
    OneBlock,
    /// Sums of tiles, their scan, and every tile again.
    ThreeKernels,
    /// One pass; every block looks back.
    LookBack,
    /// The same, and the sum of the tile is published first.
    PublishFirst,
}

impl Step {
    /// In the order of the story.
    pub const ALL: [Step; 4] =
        [Step::OneBlock, Step::ThreeKernels, Step::LookBack, Step::PublishFirst];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Step::OneBlock => "one block",
            Step::ThreeKernels => "three kernels",
            Step::LookBack => "look-back",
            Step::PublishFirst => "publish first",
        }
    }
}

/// Elements in a tile of steps 2 and 3.
const TILE: usize = 4096;
/// Elements in a tile of steps 4 and 5.
const LOOK_BACK_TILE: usize = 8192;

enum Loaded {
    OneBlock(scan_01_one_block::Kernel),
    ThreeKernels {
        tile_sums: scan_02_tile_sums::Kernel,
        scan_sums: scan_01_one_block::Kernel,
        downsweep: scan_03_downsweep::Kernel,
    },
    LookBack(scan_04_look_back::Kernel),
    PublishFirst(scan_05_publish_first::Kernel),
}

/// One of the ways, loaded.
pub struct Scanner {
    loaded: Loaded,
}

/// What a scan needs besides input and output.
pub struct Scratch {
    sums: CudaSlice<f32>,
    scanned: CudaSlice<f32>,
    state: CudaSlice<u64>,
}

impl Scanner {
    /// Loads a step.
    pub fn load(device: &Device, step: Step) -> Result<Self> {
        let context = &device.context;
        let loaded = match step {
            Step::OneBlock => Loaded::OneBlock(scan_01_one_block::Kernel::load(context)?),
            Step::ThreeKernels => Loaded::ThreeKernels {
                tile_sums: scan_02_tile_sums::Kernel::load(context)?,
                scan_sums: scan_01_one_block::Kernel::load(context)?,
                downsweep: scan_03_downsweep::Kernel::load(context)?,
            },
            Step::LookBack => Loaded::LookBack(scan_04_look_back::Kernel::load(context)?),
            Step::PublishFirst => {
                Loaded::PublishFirst(scan_05_publish_first::Kernel::load(context)?)
            }
        };
        Ok(Self { loaded })
    }

    /// Memory for the scan of `n` elements.
    pub fn scratch(&self, device: &Device, n: usize) -> Result<Scratch> {
        let (mut tiles, mut words) = (0, 0);
        match self.loaded {
            Loaded::OneBlock(_) => {}
            Loaded::ThreeKernels { .. } => tiles = n.div_ceil(TILE),
            Loaded::LookBack(_) | Loaded::PublishFirst(_) => words = n.div_ceil(LOOK_BACK_TILE) + 1,
        }
        Ok(Scratch {
            sums: device.zeros(tiles)?,
            scanned: device.zeros(tiles)?,
            state: device.zeros(words)?,
        })
    }

    /// Enqueues the scan of the first `n` elements of `a` into `c`.
    pub fn enqueue(
        &self,
        device: &Device,
        a: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
        n: usize,
        scratch: &mut Scratch,
    ) -> Result<()> {
        let stream = &device.stream;
        let (a, mut c) = (a.slice(..n), c.slice_mut(..n));
        let Scratch { sums, scanned, state } = scratch;
        match &self.loaded {
            Loaded::OneBlock(kernel) => {
                let n = n as u64;
                kernel.launch(stream, scan_01_one_block::Arguments { a: &a, c: &mut c, n })?;
            }
            Loaded::ThreeKernels { tile_sums, scan_sums, downsweep } => {
                let tiles = n.div_ceil(TILE);
                let (mut sums, mut scanned) = (sums.slice_mut(..tiles), scanned.slice_mut(..tiles));
                let n = n as u64;
                let arguments = scan_02_tile_sums::Arguments { a: &a, sums: &mut sums, n };
                tile_sums.launch(stream, arguments)?;
                let (sums, n_sums) = (&sums.as_view(), tiles as u64);
                let arguments =
                    scan_01_one_block::Arguments { a: sums, c: &mut scanned, n: n_sums };
                scan_sums.launch(stream, arguments)?;
                let sums = &scanned.as_view();
                let arguments = scan_03_downsweep::Arguments { a: &a, sums, c: &mut c, n };
                downsweep.launch(stream, arguments)?;
            }
            Loaded::LookBack(kernel) => {
                // No tile has been dealt out, and none has said anything.
                stream.memset_zeros(state)?;
                let n = n as u64;
                let arguments = scan_04_look_back::Arguments { a: &a, c: &mut c, state, n };
                kernel.launch(stream, arguments)?;
            }
            Loaded::PublishFirst(kernel) => {
                stream.memset_zeros(state)?;
                let n = n as u64;
                let arguments = scan_05_publish_first::Arguments { a: &a, c: &mut c, state, n };
                kernel.launch(stream, arguments)?;
            }
        }
        Ok(())
    }
}

/// The scan of a host slice by one of the steps: what the tests call.
pub fn scan(device: &Device, step: Step, a: &[f32]) -> Result<Vec<f32>> {
    let scanner = Scanner::load(device, step)?;
    let (memory, mut c) = (device.copy(a)?, device.zeros(a.len())?);
    let mut scratch = scanner.scratch(device, a.len())?;
    scanner.enqueue(device, &memory, &mut c, a.len(), &mut scratch)?;
    Ok(device.fetch(&c, a.len())?)
}

/// How far a running sum of numbers of one sign may be off, as a fraction of it: it is a tree of
/// additions within a tile, and the tiles' sums one after the other.
pub const TOLERANCE: f64 = 2e-5;

/// The first element that is too far from the scan in f64.
pub fn first_wrong(a: &[f32], c: &[f32]) -> Option<usize> {
    let mut expected = 0.0;
    a.iter().zip(c).position(|(&x, &found)| {
        expected += f64::from(x);
        // Never true of NaN.
        let close = (f64::from(found) - expected).abs() <= TOLERANCE * expected;
        !close
    })
}

/// Every step at awkward sizes.
pub fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let mut table = Table::new("wrong")
        .exact("n", "")
        .exact("tiles of the look-back", "")
        .exact("wrong elements, all steps", "");
    for n in [0, 1, 31, 33, 1000, 4095, 8191, 8193, 65_537, 300_001] {
        let a = cpu::numbers(n, 2);
        for step in Step::ALL {
            let c = scan(&device, step, &a)?;
            ensure!(c.len() == n, "{}: {} elements of {n}", step.name(), c.len());
            if let Some(i) = first_wrong(&a, &c) {
                anyhow::bail!("{}: element {i} of {n} is {}", step.name(), c[i]);
            }
        }
        table.push(row![n, n.div_ceil(LOOK_BACK_TILE), 0]);
    }
    cell.table(table);
    Ok(())
}

/// The bytes that each step moves.
pub fn counts(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let n = 1 << 18;
    let a = cpu::numbers(n, 2);
    let mut table = Table::new("traffic")
        .exact("step", "")
        .exact("launches", "")
        .exact("bytes read per element", "")
        .exact("bytes written per element", "")
        .exact("barriers", "");
    for step in Step::ALL {
        let (_, launches) = cell.counts(|| scan(&device, step, &a))?;
        if launches.is_empty() {
            return Ok(()); // A GPU's counters need a profiler.
        }
        let total = |counter: &str| -> f64 {
            launches.iter().map(|launch| launch.get(counter).unwrap_or(f64::NAN)).sum()
        };
        const SECTOR_BYTES: f64 = 32.0;
        table.push(row![
            step.name(),
            launches.len(),
            SECTOR_BYTES * total("global_load_sectors") / n as f64,
            SECTOR_BYTES * total("global_store_sectors") / n as f64,
            total("barriers"),
        ]);
    }
    cell.table(table);
    Ok(())
}

/// How fast each step is, against a copy.
pub fn rates(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let largest = cell.largest(cell.parameter("largest")?);
    let a = device.repeat(&cpu::numbers(largest.min(1 << 20), 2), largest)?;
    let mut c = device.zeros::<f32>(largest)?;
    cell.progress(Step::ALL.len() as u64 + 1);

    let floor = copy_ceiling(cell, &device, &a, &mut c)?;
    let mut rate = Series::measured("rate", "GB/s").label("8 bytes an element");
    let mut table = Table::new("steps")
        .exact("step", "")
        .measured("elements", "")
        .measured("time", "s")
        .measured("rate", "GB/s")
        .measured("of the copy", "%");
    for step in Step::ALL {
        cell.tick(step.name());
        let n = if step == Step::OneBlock { largest / 64 } else { largest };
        let scanner = Scanner::load(&device, step)?;
        let mut scratch = scanner.scratch(&device, n)?;
        device.stream.memset_zeros(&mut c)?;
        let time = timing::device(device.raw_stream(), |_| {
            scanner.enqueue(&device, &a, &mut c, n, &mut scratch)
        })?;
        let _check = lab::range("check");
        if let Some(i) = first_wrong(&device.fetch(&a, n)?, &device.fetch(&c, n)?) {
            anyhow::bail!("{}: element {i} of {n} is wrong", step.name());
        }
        let gbps = time.map(|time| time.gigabytes_per_second(2 * size_of::<f32>() * n));
        let share = gbps.and_then(|gbps| Some(100.0 * gbps.value? / floor?));
        table.push(row![step.name(), n, time.map(timing::Timing::seconds), gbps, share]);
        rate.push(step.name(), gbps);
    }
    cell.series(rate);
    cell.table(table);
    cell.figure(
        Figure::new(
            "How fast is each step of the scan?",
            "Rate of the four steps: one block is far below the others, three kernels read everything twice, and the \
             look-back does it in one pass, closer to a copy, the more so when the sums are published first.",
        )
        .x(Axis::labels("step"))
        .y(Axis::linear("rate, 8 bytes an element", "GB/s"))
        .series(["rate"])
        .limit("copy", "copy kernel, measured"),
    );
    Ok(())
}

/// The rate of the copy kernel from `a` to `c`, in GB/s: value `copy` of the cell.
pub fn copy_ceiling(
    cell: &mut Cell,
    device: &Device,
    a: &CudaSlice<f32>,
    c: &mut CudaSlice<f32>,
) -> Result<Option<f64>> {
    use kernels::copy_01_float4::{Arguments, Kernel};
    cell.tick("the copy ceiling");
    let kernel = Kernel::load(&device.context)?;
    let n = a.len();
    let time = timing::device(device.raw_stream(), |_| {
        Ok(kernel.launch(&device.stream, Arguments { a, c, n: n as u64 })?)
    })?;
    let rate = time.map(|time| time.gigabytes_per_second(2 * size_of::<f32>() * n));
    let value = rate.as_ref().and_then(|rate| rate.value);
    cell.measured("copy", rate, "GB/s");
    Ok(value)
}
