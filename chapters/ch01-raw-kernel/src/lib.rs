//! Chapter 1, a raw kernel: the four steps of every CUDA program, spoken to the driver itself.
//!
//! You need nothing before it. You get: memory on the device, a copy in, a launch, a copy out; what
//! each costs; and how the driver says that something is wrong.

pub mod cpu;
pub mod driver;

use std::ffi::{CStr, c_void};
use std::{ptr, thread};

use anyhow::{Result, ensure};
use cudarc::driver::sys::{CUdevice_attribute, CUdeviceptr, CUresult, CUstream};
use lab::{Axis, Cell, CellSpec, Figure, Point, Series, Table, row, timing};

use driver::{DeviceMemory, DriverError, Kernel, PinnedMemory, PrimaryContext, Shape, Stream};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("four-steps", "Add two vectors in four steps", four_steps),
    lab::cell("odd-sizes", "Hold every kernel against the CPU at awkward sizes", odd_sizes),
    lab::cell("requests", "Count what each kernel asks of memory", requests),
    lab::cell("bandwidth", "One float a thread, or four", bandwidth),
    lab::cell("steps", "Where the time goes", steps),
    lab::cell("crossover", "When the trip to the GPU pays", crossover),
    lab::cell("launches", "What a launch costs the CPU", launches),
    lab::cell("peers", "The same in CUDA C++ and Python", peers),
    lab::cell("refusals", "How the driver says no", refusals),
    lab::cell("out-of-bounds", "What a missing guard does", out_of_bounds),
];

/// Threads in a block, in this whole chapter. Chapter 2 asks whether that was a good choice.
pub const BLOCK: u32 = 256;

// -------------------------------------------------------------------------------------------------
// The four steps

// ANCHOR: four_steps
fn four_steps(cell: &mut Cell) -> Result<()> {
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 2.0 * i as f32).collect();
    let mut c = vec![0.0; n];

    let _context = PrimaryContext::open()?;
    let kernel = Adder::load(Step::Scalar)?;

    // 1. Memory on the device.
    let device_a = DeviceMemory::allocate(n)?;
    let device_b = DeviceMemory::allocate(n)?;
    let device_c = DeviceMemory::allocate(n)?;
    // 2. The inputs to the device.
    device_a.copy_from(&a)?;
    device_b.copy_from(&b)?;
    // 3. The kernel.
    kernel.launch(device_a.at(0), device_b.at(0), device_c.at(0), n, &Stream::null())?;
    // 4. The result back.
    device_c.copy_to(&mut c)?;

    cell.text(format!(
        "{} + {} = {}\n{} + {} = {}",
        a[1],
        b[1],
        c[1],
        a[n - 1],
        b[n - 1],
        c[n - 1]
    ));
    let Shape { blocks, threads } = Step::Scalar.shape(n)?;
    cell.value("elements", n as f64, "");
    cell.value("blocks", f64::from(blocks), "");
    cell.value("threads", f64::from(blocks * threads), "");
    ensure!(c == cpu::reference(&a, &b), "the GPU's sum differs from the CPU's");
    Ok(())
}
// ANCHOR_END: four_steps

/// The steps that vector add goes through in this chapter, each one idea away from the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// One thread, one element.
    Scalar,
    /// A grid of fixed size strides through the elements.
    GridStride,
    /// One thread, four elements, 16 bytes at a time.
    Float4,
}

impl Step {
    /// In the order of the story.
    pub const ALL: [Step; 3] = [Step::Scalar, Step::GridStride, Step::Float4];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Step::Scalar => "scalar",
            Step::GridStride => "grid_stride",
            Step::Float4 => "float4",
        }
    }

    // ANCHOR: shape
    /// How many blocks it takes for `n` elements.
    pub fn shape(self, n: usize) -> Result<Shape> {
        let threads_wanted = match self {
            Step::Scalar => n,
            Step::GridStride => n.min(GRID_STRIDE_THREADS),
            Step::Float4 => n.div_ceil(4),
        };
        let blocks = u32::try_from(threads_wanted.div_ceil(BLOCK as usize))?;
        Ok(Shape { blocks, threads: BLOCK })
    }
    // ANCHOR_END: shape

    fn image(self) -> &'static kernels::Image {
        match self {
            Step::Scalar => &kernels::VECTOR_ADD_01_SCALAR,
            Step::GridStride => &kernels::VECTOR_ADD_02_GRID_STRIDE,
            Step::Float4 => &kernels::VECTOR_ADD_03_FLOAT4,
        }
    }
}

/// Enough threads to fill any GPU of today: 132 multiprocessors hold 2048 each.
const GRID_STRIDE_THREADS: usize = 132 * 2048;

/// One of the vector-add kernels, with the launch shape that suits it.
pub struct Adder {
    kernel: Kernel,
    step: Step,
}

impl Adder {
    /// Loads the kernel into the context that is current.
    pub fn load(step: Step) -> Result<Self> {
        let image = step.image();
        Ok(Self { kernel: Kernel::load(image.ptx(), image.name())?, step })
    }

    // ANCHOR: arguments
    /// Enqueues `c = a + b` for `n` floats at three device addresses.
    pub fn launch(
        &self,
        mut a: CUdeviceptr,
        mut b: CUdeviceptr,
        mut c: CUdeviceptr,
        mut n: usize,
        stream: &Stream,
    ) -> Result<()> {
        if n == 0 {
            return Ok(()); // A grid of no blocks is an error to the driver.
        }
        let shape = self.step.shape(n)?;
        let mut arguments: [*mut c_void; 4] =
            [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast(), (&raw mut n).cast()];
        // SAFETY: three pointers and a `size_t`, as the kernel declares them, and the guard `i < n`
        // keeps it inside.
        unsafe { self.kernel.launch(shape, stream, &mut arguments)? };
        Ok(())
    }
    // ANCHOR_END: arguments
}

/// `a + b`, by all four steps, for any length: what the tests call.
pub fn add(step: Step, a: &[f32], b: &[f32]) -> Result<Vec<f32>> {
    let n = a.len();
    ensure!(b.len() == n, "adding {n} floats to {}: both must have the same length", b.len());
    let _context = PrimaryContext::open()?;
    let kernel = Adder::load(step)?;
    let (device_a, device_b, device_c) =
        (DeviceMemory::allocate(n)?, DeviceMemory::allocate(n)?, DeviceMemory::allocate(n)?);
    device_a.copy_from(a)?;
    device_b.copy_from(b)?;
    kernel.launch(device_a.at(0), device_b.at(0), device_c.at(0), n, &Stream::null())?;
    let mut c = vec![f32::NAN; n];
    device_c.copy_to(&mut c)?;
    Ok(c)
}

// -------------------------------------------------------------------------------------------------
// Is it right, at every size?

fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let mut table = Table::new("wrong")
        .exact("n", "")
        .exact("blocks", "")
        .exact("threads without an element", "")
        .exact("scalar: wrong", "")
        .exact("grid-stride: wrong", "")
        .exact("float4: wrong", "");
    for n in [0, 1, 31, 32, 33, 1000, 1023, 65_537, 1_000_003] {
        let (a, b) = (cpu::numbers(n, 1), cpu::numbers(n, 2));
        let expected = cpu::reference(&a, &b);
        let mut wrong = [0; 3];
        for (step, wrong) in Step::ALL.into_iter().zip(&mut wrong) {
            let c = add(step, &a, &b)?;
            *wrong = c
                .iter()
                .zip(&expected)
                .filter(|(c, expected)| c.to_bits() != expected.to_bits())
                .count();
        }
        let Shape { blocks, threads } = Step::Scalar.shape(n)?;
        let idle = blocks as usize * threads as usize - n;
        table.push(row![n, blocks, idle, wrong[0], wrong[1], wrong[2]]);
        ensure!(wrong == [0; 3], "at n = {n} the kernels give {wrong:?} wrong elements");
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// What the kernels ask of memory: counts, the same on every GPU

fn requests(cell: &mut Cell) -> Result<()> {
    let n = 1 << 16;
    let (a, b) = (cpu::numbers(n, 1), cpu::numbers(n, 2));
    let mut table = Table::new("requests")
        .exact("kernel", "")
        .exact("threads", "")
        .exact("load requests", "")
        .exact("sectors per load request", "")
        .exact("bytes per load request", "")
        .exact("warp instructions", "")
        .exact("warp instructions per float", "");
    for step in Step::ALL {
        let (_, counts) = cell.counts(|| add(step, &a, &b))?;
        for launch in counts {
            let count = |counter| launch.get(counter).unwrap_or(f64::NAN);
            let (requests, load_sectors) =
                (count("global_load_requests"), count("global_load_sectors"));
            let warp_instructions = count("warp_instructions");
            let Shape { blocks, threads } = step.shape(n)?;
            table.push(row![
                step.name(),
                blocks * threads,
                requests,
                load_sectors / requests,
                SECTOR_BYTES * load_sectors / requests,
                warp_instructions,
                warp_instructions / n as f64,
            ]);
        }
    }
    if !table.rows.is_empty() {
        cell.table(table);
    }
    Ok(())
}

/// A *sector* is what the memory system moves at least: 32 bytes that start at a multiple of 32.
const SECTOR_BYTES: f64 = 32.0;

// -------------------------------------------------------------------------------------------------
// How fast are they, with the data already on the device?

// ANCHOR: bandwidth
fn bandwidth(cell: &mut Cell) -> Result<()> {
    let context = PrimaryContext::open()?;
    let largest = cell.largest(cell.parameter("largest_kernel")?);
    let [a, b, c] = [vectors(largest)?, vectors(largest)?, vectors(largest)?];
    let stream = Stream::new()?;
    let sizes: Vec<usize> = powers_of_two(1 << 10, largest);
    cell.progress(3 * sizes.len() as u64 + 1);

    for step in Step::ALL {
        let kernel = Adder::load(step)?;
        let mut rate = Series::measured(step.name(), "GB/s").label(step.name());
        for &n in &sizes {
            cell.tick(&format!("{}, n = {n}", step.name()));
            let bytes = 3 * n * size_of::<f32>(); // a and b are read, c is written
            let places = timing::rotation(bytes).min(largest / n);
            let time = timing::device(stream.raw(), |turn| {
                let i = turn % places * n;
                kernel.launch(a.at(i), b.at(i), c.at(i), n, &stream)
            })?;
            rate.push(n, time.map(|time| time.gigabytes_per_second(bytes)));
        }
        holds_sum(&a, &b, &c, largest)?;
        cell.series(rate);
    }
    // ANCHOR_END: bandwidth

    cell.tick("the copy ceiling");
    let copy = Kernel::load(kernels::COPY_01_FLOAT4.ptx(), kernels::COPY_01_FLOAT4.name())?;
    let shape = Step::Float4.shape(largest)?;
    let (mut from, mut to, mut n) = (a.at(0), c.at(0), largest);
    let time = timing::device(stream.raw(), |_| {
        let mut arguments = [(&raw mut from).cast(), (&raw mut to).cast(), (&raw mut n).cast()];
        // SAFETY: two pointers to `largest` floats and a `size_t`, as the kernel declares them.
        Ok(unsafe { copy.launch(shape, &stream, &mut arguments) }?)
    })?;
    cell.measured(
        "copy",
        time.map(|time| time.gigabytes_per_second(2 * largest * size_of::<f32>())),
        "GB/s",
    );
    cell.measured("theoretical", theoretical_bandwidth(&context)?, "GB/s");
    cell.figure(
        Figure::new(
            "How fast does vector add run on data that is already there?",
            "Rate over size: all three kernels climb together while the launch dominates; from about a million elements the \
             float4 kernel leaves the other two behind and reaches the rate of a copy.",
        )
        .x(Axis::log2("elements", ""))
        .y(Axis::linear("rate, 12 bytes an element", "GB/s"))
        .series(Step::ALL.map(Step::name))
        .limit("copy", "copy kernel, measured")
        .limit("theoretical", "memory clock × bus width"),
    );
    Ok(())
}

/// `len` floats on the device, with numbers in them.
fn vectors(len: usize) -> Result<DeviceMemory> {
    let memory = DeviceMemory::allocate(len)?;
    memory.fill(&cpu::numbers(len.min(1 << 20), len as u64))?;
    Ok(memory)
}

/// Compares `c` with `a + b`, all `n` elements, a stretch at a time.
fn holds_sum(a: &DeviceMemory, b: &DeviceMemory, c: &DeviceMemory, n: usize) -> Result<()> {
    let _check = lab::range("check");
    const STRETCH: usize = 1 << 22;
    let mut host =
        [vec![0.0; STRETCH.min(n)], vec![0.0; STRETCH.min(n)], vec![0.0; STRETCH.min(n)]];
    for start in (0..n).step_by(STRETCH) {
        let len = STRETCH.min(n - start);
        for (memory, host) in [a, b, c].into_iter().zip(&mut host) {
            memory.copy_range_to(start, &mut host[..len])?;
        }
        let [a, b, c] = host.each_ref().map(|host| &host[..len]);
        ensure!(
            c == cpu::reference(a, b),
            "the sum is wrong between elements {start} and {}",
            start + len
        );
    }
    Ok(())
}

/// What the memory's clock and bus width give: two transfers a clock.
fn theoretical_bandwidth(context: &PrimaryContext) -> Result<Option<f64>, DriverError> {
    let kilohertz = context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)?;
    let bits =
        context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)?;
    let gigabytes_per_second = 2.0 * kilohertz as f64 * 1e3 * bits as f64 / 8.0 / 1e9;
    Ok((gigabytes_per_second > 0.0).then_some(gigabytes_per_second))
}

fn powers_of_two(from: usize, to: usize) -> Vec<usize> {
    std::iter::successors(Some(from), |n| Some(4 * n)).take_while(|&n| n <= to).collect()
}

// -------------------------------------------------------------------------------------------------
// Where does the time go, from vector to vector?

// ANCHOR: steps
fn steps(cell: &mut Cell) -> Result<()> {
    let context = PrimaryContext::open()?;
    let kernel = Adder::load(Step::Float4)?;
    let sizes = powers_of_two(1 << 10, cell.largest(cell.parameter("largest_trip")?));
    let largest = sizes.last().copied().unwrap_or(1 << 10);
    let (a, b, mut c) = (cpu::numbers(largest, 1), cpu::numbers(largest, 2), vec![0.0; largest]);
    let mut series = STEPS.map(|(name, label)| Series::measured(name, "s").label(label));
    cell.progress(sizes.len() as u64);

    for &n in &sizes {
        cell.tick(&format!("n = {n}"));
        let times = timing::laps(STEPS.len(), |clock| {
            let setup = lab::range("setup");
            let memory = [
                DeviceMemory::allocate(n)?,
                DeviceMemory::allocate(n)?,
                DeviceMemory::allocate(n)?,
            ];
            let [device_a, device_b, device_c] = &memory;
            clock.lap();
            drop(setup);

            let h2d = lab::range("h2d");
            device_a.copy_from(&a[..n])?;
            device_b.copy_from(&b[..n])?;
            clock.lap();
            drop(h2d);

            let measure = lab::range("measure");
            kernel.launch(device_a.at(0), device_b.at(0), device_c.at(0), n, &Stream::null())?;
            context.synchronize()?;
            clock.lap();
            drop(measure);

            let _d2h = lab::range("d2h");
            device_c.copy_to(&mut c[..n])?;
            clock.lap();

            drop(memory);
            clock.lap();
            Ok(())
        })?;
        ensure!(c[..n] == cpu::reference(&a[..n], &b[..n]), "the sum of {n} elements is wrong");
        for (i, series) in series.iter_mut().enumerate() {
            series.push(n, times.as_ref().map(|times| times[i].seconds()));
        }
        if n == largest {
            let share = times
                .map(|times| times[2].median / times.iter().map(|time| time.median).sum::<f64>());
            cell.measured("kernel_share", share.map(|share| 100.0 * share), "%");
        }
    }
    // ANCHOR_END: steps
    series.into_iter().for_each(|series| cell.series(series));
    cell.figure(
        Figure::new(
            "Where does the time go?",
            "Time of each step over size: small vectors cost a fixed time for allocation; large ones spend nearly all of it \
             in the two copies, and the kernel is the smallest part.",
        )
        .x(Axis::log2("elements", ""))
        .y(Axis::log10("time", "s"))
        .series(STEPS.map(|(name, _)| name)),
    );
    Ok(())
}

/// The four steps, and the giving back.
const STEPS: [(&str, &str); 5] = [
    ("allocate", "1. allocate"),
    ("copy_in", "2. copy a and b in"),
    ("kernel", "3. kernel"),
    ("copy_out", "4. copy c out"),
    ("free", "free"),
];

// -------------------------------------------------------------------------------------------------
// When does the trip pay?

fn crossover(cell: &mut Cell) -> Result<()> {
    let _context = PrimaryContext::open()?;
    let kernel = Adder::load(Step::Float4)?;
    let stream = Stream::new()?;
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let sizes = powers_of_two(1 << 10, cell.largest(cell.parameter("largest_trip")?));
    let largest = sizes.last().copied().unwrap_or(1 << 10);
    let (a, b, mut c) = (cpu::numbers(largest, 1), cpu::numbers(largest, 2), vec![0.0; largest]);
    let mut pinned = [
        PinnedMemory::allocate(largest)?,
        PinnedMemory::allocate(largest)?,
        PinnedMemory::allocate(largest)?,
    ];
    pinned[0].as_mut_slice().copy_from_slice(&a);
    pinned[1].as_mut_slice().copy_from_slice(&b);
    let device = [vectors(largest)?, vectors(largest)?, vectors(largest)?];
    let mut series = [
        Series::measured("one_thread", "s").label("CPU, one thread"),
        Series::measured("all_cores", "s").label("CPU, all cores"),
        Series::measured("pageable", "s").label("GPU and back, pageable"),
        Series::measured("pinned", "s").label("GPU and back, pinned"),
        Series::measured("kernel", "s").label("kernel alone"),
    ];
    cell.progress(sizes.len() as u64);

    for &n in &sizes {
        cell.tick(&format!("n = {n}"));
        let one_thread = timing::host(|| cpu::add(&a[..n], &b[..n], &mut c[..n]));
        let all_cores =
            timing::host(|| cpu::add_in_parallel(&a[..n], &b[..n], &mut c[..n], threads));
        let pageable = timing::host_call(|| {
            round_trip_pageable(&kernel, &device, &a[..n], &b[..n], &mut c[..n])
        })?;
        let expected = cpu::reference(&a[..n], &b[..n]);
        ensure!(c[..n] == expected, "the sum of {n} elements is wrong by pageable memory");
        let pinned_time =
            timing::host_call(|| round_trip_pinned(&kernel, &device, &mut pinned, n, &stream))?;
        ensure!(
            pinned[2].as_slice()[..n] == expected,
            "the sum of {n} elements is wrong by pinned memory"
        );
        let kernel_time = timing::device(stream.raw(), |_| {
            kernel.launch(device[0].at(0), device[1].at(0), device[2].at(0), n, &stream)
        })?;
        let times = [Some(one_thread), Some(all_cores), pageable, pinned_time, kernel_time];
        for (series, time) in series.iter_mut().zip(times) {
            series.push(n, time.map(timing::Timing::seconds));
        }
    }

    cell.measured("cpu_threads", threads as f64, "");
    if let Some(n) = pays_from(&series[3], &series[0]) {
        cell.measured("pays_against_one_thread", n, "elements");
    }
    if let Some(n) = pays_from(&series[3], &series[1]) {
        cell.measured("pays_against_all_cores", n, "elements");
    }
    series.into_iter().for_each(|series| cell.series(series));
    cell.figure(
        Figure::new(
            "When does the trip to the GPU pay?",
            "Time over size for the CPU with one thread and with all cores, for the GPU with both copies in pageable and in \
             pinned memory, and for the kernel alone, which lies far below all the others.",
        )
        .x(Axis::log2("elements", ""))
        .y(Axis::log10("time", "s"))
        .series(["one_thread", "all_cores", "pageable", "pinned", "kernel"]),
    );
    Ok(())
}

// ANCHOR: round_trip_pageable
fn round_trip_pageable(
    kernel: &Adder,
    device: &[DeviceMemory; 3],
    a: &[f32],
    b: &[f32],
    c: &mut [f32],
) -> Result<()> {
    device[0].copy_from(a)?;
    device[1].copy_from(b)?;
    kernel.launch(device[0].at(0), device[1].at(0), device[2].at(0), a.len(), &Stream::null())?;
    device[2].copy_to(c)?;
    Ok(())
}
// ANCHOR_END: round_trip_pageable

// ANCHOR: round_trip_pinned
fn round_trip_pinned(
    kernel: &Adder,
    device: &[DeviceMemory; 3],
    [a, b, c]: &mut [PinnedMemory; 3],
    n: usize,
    stream: &Stream,
) -> Result<()> {
    device[0].copy_from_async(a, n, stream)?;
    device[1].copy_from_async(b, n, stream)?;
    kernel.launch(device[0].at(0), device[1].at(0), device[2].at(0), n, stream)?;
    device[2].copy_to_async(c, n, stream)?;
    stream.synchronize()?; // Only now may `c` be read, and `a` and `b` be written.
    Ok(())
}
// ANCHOR_END: round_trip_pinned

/// The smallest size from which on `ours` takes less time than `theirs`; `None` where it never
/// does, or was not measured.
fn pays_from(ours: &Series, theirs: &Series) -> Option<f64> {
    let sizes = ours.x.iter().zip(ours.points.iter().zip(&theirs.points)).rev();
    let faster = sizes.map_while(|(x, (ours, theirs))| match (x, ours.value?, theirs.value?) {
        (lab::Abscissa::Number(n), ours, theirs) if ours < theirs => Some(*n),
        _ => None,
    });
    faster.last()
}

// -------------------------------------------------------------------------------------------------
// What does a launch cost the CPU?

// ANCHOR: launches
fn launches(cell: &mut Cell) -> Result<()> {
    let _context = PrimaryContext::open()?;
    let stream = Stream::new()?;
    let empty = Kernel::load(kernels::LAUNCH_01_EMPTY.ptx(), kernels::LAUNCH_01_EMPTY.name())?;
    let one_thread = Shape { blocks: 1, threads: 1 };
    let enqueue = |kernel: &Kernel| {
        // SAFETY: this kernel has no parameters.
        unsafe { kernel.launch(one_thread, &stream, &mut []) }
    };
    // A queue of launches holds about a thousand: 200 never wait for the device to take one.
    let queued = timing::laps(2, |clock| {
        for _ in 0..LAUNCHES {
            enqueue(&empty)?;
        }
        clock.lap();
        stream.synchronize()?;
        clock.lap();
        Ok(())
    })?;
    let waited = timing::host_call(|| {
        enqueue(&empty)?;
        Ok(stream.synchronize()?)
    })?;
    // ANCHOR_END: launches
    cell.measured("enqueue", queued.map(|times| times[0].each(LAUNCHES)), "s");
    cell.measured("enqueue_and_wait", waited.map(timing::Timing::seconds), "s");
    Ok(())
}

/// Launches in one sample.
const LAUNCHES: usize = 200;

// -------------------------------------------------------------------------------------------------
// The same elsewhere: CUDA C++ in this process, Python beside it

fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(3 + PYTHON_PEERS.len() as u64);
    let mut table = Table::new("peers")
        .measured("written in", "")
        .measured("version", "")
        .measured("kernel", "GB/s")
        .measured("enqueue a launch", "s")
        .measured("there and back", "s");
    let mut unmeasured = Vec::new();
    match lab::peers::cuda_library("ch01_cuda.cu") {
        Ok(library) => against_cuda(cell, &library, &mut table)?,
        Err(missing) => unmeasured.push(format!("CUDA C++ was not measured: {missing}.")),
    }
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python(script) {
            Ok(peer) => table.push(row![
                peer.word("peer"),
                peer.word("version"),
                peer.number("gbps"),
                peer.number("launch_us").map(|microseconds| microseconds / 1e6),
                peer.number("end_to_end_ms").map(|milliseconds| milliseconds / 1e3),
            ]),
            Err(missing) => unmeasured.push(format!("{script} was not measured: {missing}.")),
        }
    }
    if !table.rows.is_empty() {
        cell.table(table);
    }
    if !unmeasured.is_empty() {
        cell.measured_text(unmeasured.join("\n"));
    }
    Ok(())
}

/// The programs in `tests/peers`.
const PYTHON_PEERS: [&str; 4] =
    ["ch01_pycuda.py", "ch01_numba.py", "ch01_cupy.py", "ch01_torch.py"];

/// Rust and C++ in turn, so that both meet the same clocks and the same neighbours.
fn against_cuda(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    type VectorAdd =
        unsafe extern "C" fn(CUdeviceptr, CUdeviceptr, CUdeviceptr, usize, CUstream) -> i32;
    type Launch = unsafe extern "C" fn(i32, CUstream) -> i32;
    type EndToEnd = unsafe extern "C" fn(
        *const f32,
        *const f32,
        *mut f32,
        CUdeviceptr,
        CUdeviceptr,
        CUdeviceptr,
        usize,
        CUstream,
    ) -> i32;
    // SAFETY: tests/peers/ch01_cuda.cu defines these functions with these parameters.
    let (vector_add, launch, end_to_end) = unsafe {
        (
            library.function::<VectorAdd>("peer_vector_add")?,
            library.function::<Launch>("peer_launch")?,
            library.function::<EndToEnd>("peer_end_to_end")?,
        )
    };
    let succeeded = |call: &str, code: i32| {
        ensure!(code == 0, "the C++ peer's {call} returned the CUDA runtime's error {code}");
        Ok(())
    };
    let _context = PrimaryContext::open()?;
    let stream = Stream::new()?;
    let kernel = Adder::load(Step::Float4)?;

    cell.tick("kernel");
    let kernel_elements = cell.largest(cell.parameter("largest_kernel")?);
    let n = kernel_elements;
    let [a, b, c] = [vectors(n)?, vectors(n)?, vectors(n)?];
    let kernels = timing::device_pairs(
        stream.raw(),
        |_| kernel.launch(a.at(0), b.at(0), c.at(0), n, &stream),
        // SAFETY: three device vectors of `n` floats, and a stream of this context.
        |_| succeeded("kernel", unsafe { vector_add(a.at(0), b.at(0), c.at(0), n, stream.raw()) }),
    )?;
    holds_sum(&a, &b, &c, n)?;

    cell.tick("launches");
    let empty = Kernel::load(kernels::LAUNCH_01_EMPTY.ptx(), kernels::LAUNCH_01_EMPTY.name())?;
    let launches = timing::host_pairs(
        || {
            for _ in 0..LAUNCHES {
                // SAFETY: this kernel has no parameters.
                unsafe { empty.launch(Shape { blocks: 1, threads: 1 }, &stream, &mut [])? };
            }
            Ok(())
        },
        // SAFETY: the function takes a number and a stream of this context.
        || succeeded("launch", unsafe { launch(LAUNCHES as i32, stream.raw()) }),
        || Ok(stream.synchronize()?),
    )?;

    cell.tick("there and back");
    let n = cell.largest(cell.parameter("largest_trip")?);
    let device = [vectors(n)?, vectors(n)?, vectors(n)?];
    let mut pinned =
        [PinnedMemory::allocate(n)?, PinnedMemory::allocate(n)?, PinnedMemory::allocate(n)?];
    pinned[0].as_mut_slice().copy_from_slice(&cpu::numbers(n, 1));
    pinned[1].as_mut_slice().copy_from_slice(&cpu::numbers(n, 2));
    let [host_a, host_b] = [pinned[0].as_slice().as_ptr(), pinned[1].as_slice().as_ptr()];
    let host_c = pinned[2].as_mut_slice().as_mut_ptr();
    let [device_a, device_b, device_c] = device.each_ref().map(|memory| memory.at(0));
    let trips = timing::host_pairs(
        || round_trip_pinned(&kernel, &device, &mut pinned, n, &stream),
        || {
            // SAFETY: pinned and device vectors of `n` floats each, which nothing else uses until
            // the call returns.
            let code = unsafe {
                end_to_end(host_a, host_b, host_c, device_a, device_b, device_c, n, stream.raw())
            };
            succeeded("round trip", code)
        },
        || Ok(()),
    )?;
    let expected = cpu::reference(pinned[0].as_slice(), pinned[1].as_slice());
    ensure!(
        pinned[2].as_slice() == expected,
        "the sum of {n} elements is wrong after the round trips"
    );

    cell.measured("kernel_ratio", kernels.map(|pairs| pairs.speed), "");
    cell.measured("launch_difference", launches.map(|pairs| per_launch(pairs.difference)), "s");
    cell.measured("trip_ratio", trips.map(|pairs| pairs.speed), "");
    if let (Some(kernels), Some(launches), Some(trips)) = (kernels, launches, trips) {
        for (language, version, kernel, launch, trip) in [
            ("Rust, this chapter", "", kernels.ours, launches.ours, trips.ours),
            ("CUDA C++", library.version(), kernels.theirs, launches.theirs, trips.theirs),
        ] {
            let rate = kernel.gigabytes_per_second(3 * size_of::<f32>() * kernel_elements);
            table.push(row![language, version, rate, launch.each(LAUNCHES), trip.seconds()]);
        }
    }
    Ok(())
}

fn per_launch(Point { value, low, high, samples }: Point) -> Point {
    let [value, low, high] =
        [value, low, high].map(|seconds| seconds.map(|seconds| seconds / LAUNCHES as f64));
    Point { value, low, high, samples }
}

// -------------------------------------------------------------------------------------------------
// How an error looks

// ANCHOR: refusals
fn refusals(cell: &mut Cell) -> Result<()> {
    let _context = PrimaryContext::open()?;
    let scalar = &kernels::VECTOR_ADD_01_SCALAR;
    let kernel = Kernel::load(scalar.ptx(), scalar.name())?;
    let too_many_threads = Shape { blocks: 1, threads: 2048 };
    let mut nothing: [*mut c_void; 4] = [ptr::null_mut(); 4];

    let (mistakes, messages) = lab::driver_messages(|| {
        Ok([
            // SAFETY: the driver refuses the shape before it looks at the arguments.
            ("a block of 2048 threads", unsafe {
                kernel.launch(too_many_threads, &Stream::null(), &mut nothing)
            }),
            (
                "a kernel that the module does not have",
                Kernel::load(scalar.ptx(), c"vector_ad").map(drop),
            ),
            ("an instruction that PTX does not have", Kernel::load(MISSPELT, c"kernel").map(drop)),
            ("PTX newer than the driver", Kernel::load(FROM_THE_FUTURE, c"kernel").map(drop)),
            ("2^60 bytes of memory", DeviceMemory::allocate(1 << 58).map(drop)),
        ])
    })?;
    // ANCHOR_END: refusals
    let mut table = Table::new("refusals")
        .exact("asked for", "")
        .exact("call", "")
        .exact("answer", "")
        .exact("number", "");
    for (mistake, answer) in mistakes {
        let Err(DriverError { call, code }) = answer else {
            anyhow::bail!("the driver accepted {mistake}");
        };
        table.push(row![mistake, call, format!("{code:?}"), code as u32]);
    }
    cell.table(table);
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}

const MISSPELT: &CStr = c".version 8.0
.target sm_75
.address_size 64
.visible .entry kernel() { retrun; }
";

const FROM_THE_FUTURE: &CStr = c".version 99.0
.target sm_75
.address_size 64
.visible .entry kernel() { ret; }
";

/// Stands last: after a fault nothing more can be done in this process on this device.
fn out_of_bounds(cell: &mut Cell) -> Result<()> {
    let n = 1000; // not a multiple of the block size: 24 threads of the last block have no element
    let (a, b) = (cpu::numbers(n, 1), cpu::numbers(n, 2));
    let context = PrimaryContext::open()?;
    let no_guard = Kernel::load(
        kernels::VECTOR_ADD_04_NO_GUARD.ptx(),
        kernels::VECTOR_ADD_04_NO_GUARD.name(),
    )?;
    let memory =
        [DeviceMemory::allocate(n)?, DeviceMemory::allocate(n)?, DeviceMemory::allocate(n)?];
    memory[0].copy_from(&a)?;
    memory[1].copy_from(&b)?;
    let mut table = Table::new("calls").measured("call", "").measured("answer", "");
    let mut say = |what: &str, answer: Result<(), DriverError>| {
        let code = answer.as_ref().map_or_else(|error| error.code, |()| CUresult::CUDA_SUCCESS);
        table.push(row![what, format!("{code:?} ({})", code as u32)]);
        answer.is_ok()
    };

    let ((), messages) = lab::driver_messages(|| {
        // ANCHOR: no_guard
        let [mut device_a, mut device_b, mut device_c] =
            memory.each_ref().map(|memory| memory.at(0));
        let mut len = n;
        let mut arguments = [
            (&raw mut device_a).cast(),
            (&raw mut device_b).cast(),
            (&raw mut device_c).cast(),
            (&raw mut len).cast(),
        ];
        // SAFETY: it is not. This kernel touches up to 24 floats past the end of each vector; that
        // is the lesson.
        let launched =
            unsafe { no_guard.launch(Step::Scalar.shape(n)?, &Stream::null(), &mut arguments) };
        // ANCHOR_END: no_guard
        say("launch the kernel without a guard, n = 1000", launched);
        let mut c = vec![f32::NAN; n];
        say("wait for it", context.synchronize());
        if say("copy the result back", memory[2].copy_to(&mut c)) {
            let right = c
                .iter()
                .zip(cpu::reference(&a, &b))
                .filter(|(c, expected)| **c == *expected)
                .count();
            say(&format!("… {right} of {n} sums are right"), Ok(()));
        }

        // A terabyte away nothing is mapped.
        device_c += 1 << 40;
        let mut arguments = [
            (&raw mut device_a).cast(),
            (&raw mut device_b).cast(),
            (&raw mut device_c).cast(),
            (&raw mut len).cast(),
        ];
        // SAFETY: as above, and worse: the device stops this kernel.
        let launched =
            unsafe { no_guard.launch(Step::Scalar.shape(n)?, &Stream::null(), &mut arguments) };
        say("launch it with a pointer that leads nowhere", launched);
        say("wait for it", context.synchronize());
        say("allocate one float", DeviceMemory::allocate(1).map(drop));
        Ok(())
    })?;
    cell.table(table);
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}
