//! Chapter 5, compiled at run time: a kernel that is a string in the program, and what becomes of it.
//!
//! You need chapter 1. You get: NVRTC from Rust, with PTX or machine code, templates and messages that
//! show the line; what compiling costs and how to pay it once; why PTX may be refused and what to do;
//! what the safe layer of cudarc checks, and what that costs a launch.
//!
//! From here on the borrow checker watches kernels as well. A vector cannot be read and written by the
//! same launch:
//!
//! ```compile_fail
//! use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, PushKernelArg};
//! fn twice(stream: &CudaStream, kernel: &CudaFunction, a: &mut CudaSlice<f32>) {
//!     let mut launch = stream.launch_builder(kernel);
//!     launch.arg(&*a).arg(a);
//! }
//! ```
//!
//! nor be freed while it is an argument:
//!
//! ```compile_fail
//! use cudarc::driver::{CudaFunction, CudaSlice, CudaStream, PushKernelArg};
//! fn gone(stream: &CudaStream, kernel: &CudaFunction, a: CudaSlice<f32>) {
//!     let mut launch = stream.launch_builder(kernel);
//!     launch.arg(&a);
//!     drop(a);
//!     launch.arg(&1u32);
//! }
//! ```

pub mod cache;
pub mod cpu;
pub mod diagnostic;
pub mod nvrtc;
pub mod polynomial;

use std::ffi::CStr;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::driver::sys::{CUdeviceptr, CUresult, CUstream};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaModule, CudaSlice, CudaStream, DevicePtr, DriverError,
    LaunchConfig, PushKernelArg, result,
};
use cudarc::nvrtc::{CompileOptions, Ptx, compile_ptx_with_opts};
use lab::timing::{self, Timing};
use lab::{Axis, Cell, CellSpec, Figure, Series, Table, row};

use cache::{Cache, From};
use nvrtc::{Source, Target};
use polynomial::{Knows, Polynomial};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("string", "A kernel from a string", string),
    lab::cell("odd-sizes", "Hold the kernel against the CPU at awkward sizes", odd_sizes),
    lab::cell("mistakes", "What the compiler says, and where", mistakes),
    lab::cell("polynomial", "Tell the compiler what is known", polynomial),
    lab::cell("instructions", "Count what a thread executes", instructions),
    lab::cell("names", "What a template's instances are called", names),
    lab::cell("cost", "What compiling costs, and a cache", cost),
    lab::cell("versions", "PTX that the driver refuses", versions),
    lab::cell("checks", "What the driver checks at a launch", checks),
    lab::cell("launches", "What safety costs a launch", launches),
    lab::cell("peers", "The same in CUDA C++ and Python", peers),
];

/// Threads in a block.
pub const BLOCK: u32 = 256;

// -------------------------------------------------------------------------------------------------
// A kernel from a string

// ANCHOR: vector_add
const VECTOR_ADD: &str = r#"
extern "C" __global__ void vector_add(const float* a, const float* b, float* c, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) {
        c[i] = a[i] + b[i];
    }
}
"#;
// ANCHOR_END: vector_add

// ANCHOR: string
fn string(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let n = 1000;
    let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let b: Vec<f32> = (0..n).map(|i| 2.0 * i as f32).collect();

    // 1. From the string to PTX.
    let options =
        CompileOptions { options: vec![target(&context)?.option()], ..CompileOptions::default() };
    let ptx = compile_ptx_with_opts(VECTOR_ADD, options)?;
    // 2. From PTX to machine code, and onto the device.
    let vector_add = context.load_module(ptx)?.load_function("vector_add")?;
    // 3. As ever: memory, copies, the kernel, a copy back.
    let (a_there, b_there) = (stream.clone_htod(&a)?, stream.clone_htod(&b)?);
    let mut c_there = stream.alloc_zeros::<f32>(n)?;
    let mut launch = stream.launch_builder(&vector_add);
    launch.arg(&a_there).arg(&b_there).arg(&mut c_there).arg(&n);
    // SAFETY: three vectors of `n` floats and a `size_t`, as the string declares them.
    unsafe { launch.launch(LaunchConfig::for_num_elems(n as u32)) }?;
    let c = stream.clone_dtoh(&c_there)?;

    cell.measured_text(format!(
        "{} + {} = {}\n{} + {} = {}",
        a[1], b[1], c[1], a[999], b[999], c[999]
    ));
    ensure!(c == cpu::sum(&a, &b), "the device's sum differs from the CPU's");
    Ok(())
}
// ANCHOR_END: string

/// PTX for the device, or for the latest that this NVRTC knows.
fn target(context: &CudaContext) -> Result<Target> {
    Ok(Target::Ptx(nvrtc::capability(context.compute_capability()?)?))
}

/// Puts an image onto the device.
///
/// # Errors
/// When the driver refuses it.
pub fn load(
    context: &Arc<CudaContext>,
    image: &nvrtc::Image,
    target: Target,
) -> Result<Arc<CudaModule>> {
    let image = match target {
        Target::Ptx(_) => {
            let text =
                CStr::from_bytes_until_nul(&image.bytes).context("NVRTC's PTX has no end")?;
            Ptx::from_src(text.to_str().context("NVRTC's PTX is no text")?)
        }
        Target::Cubin(_) => Ptx::from_binary(image.bytes.clone()),
    };
    context
        .load_module(image)
        .with_context(|| format!("loading what was compiled for {}", target.option()))
}

/// The kernel of the chapter's first string, compiled and loaded.
pub struct VectorAdd {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    floats_a_thread: usize,
}

impl VectorAdd {
    /// Compiles a source with a kernel `vector_add` that does so many floats a thread.
    ///
    /// # Errors
    /// When it does not compile or load.
    pub fn new(context: &Arc<CudaContext>, text: &str, floats_a_thread: usize) -> Result<Self> {
        let target = target(context)?;
        let source = Source { file: "vector_add.cu", text, ..Source::default() };
        let module = load(context, &nvrtc::compile(&source, target)?, target)?;
        let function = module.load_function("vector_add").context("looking the kernel up")?;
        Ok(Self { function, stream: context.default_stream(), floats_a_thread })
    }

    /// Enqueues `c = a + b`.
    ///
    /// # Errors
    /// When the vectors' lengths differ, or the driver refuses the launch.
    pub fn launch(
        &self,
        a: &CudaSlice<f32>,
        b: &CudaSlice<f32>,
        c: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let n = a.len();
        ensure!(
            b.len() == n && c.len() == n,
            "adding {n} floats to {} in place for {}: all must have the same length",
            b.len(),
            c.len()
        );
        if n == 0 {
            return Ok(()); // A grid of no blocks is an error to the driver.
        }
        let blocks = u32::try_from(n.div_ceil(self.floats_a_thread).div_ceil(BLOCK as usize))?;
        let shape = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (BLOCK, 1, 1),
            shared_mem_bytes: 0,
        };
        let mut launch = self.stream.launch_builder(&self.function);
        launch.arg(a).arg(b).arg(c).arg(&n);
        // SAFETY: three vectors of `n` floats and a `size_t`, as the source declares them; it guards its ends.
        unsafe { launch.launch(shape) }.context("launching vector_add")?;
        Ok(())
    }
}

/// `a + b` on the device, for any length: what the tests call.
///
/// # Errors
/// When NVRTC or the driver fails.
pub fn add(text: &str, floats_a_thread: usize, a: &[f32], b: &[f32]) -> Result<Vec<f32>> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let kernel = VectorAdd::new(&context, text, floats_a_thread)?;
    if a.is_empty() {
        return Ok(Vec::new()); // To the driver, memory of no bytes is an error.
    }
    let (a, b) = (stream.clone_htod(a)?, stream.clone_htod(b)?);
    let mut c = stream.clone_htod(&vec![f32::NAN; a.len()])?;
    kernel.launch(&a, &b, &mut c)?;
    Ok(stream.clone_dtoh(&c)?)
}

fn odd_sizes(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let mut table = Table::new("wrong")
        .measured("n", "")
        .measured("one float a thread: wrong", "")
        .measured("four floats a thread: wrong", "");
    for n in [0, 1, 31, 32, 33, 1000, 1023, 65_537] {
        let (a, b) = (cpu::numbers(n, 1), cpu::numbers(n, 2));
        let expected = cpu::sum(&a, &b);
        let wrong =
            |c: Vec<f32>| c.iter().zip(&expected).filter(|(c, expected)| c != expected).count();
        let wrong = [wrong(add(VECTOR_ADD, 1, &a, &b)?), wrong(add(FLOAT4, 4, &a, &b)?)];
        table.push(row![n, wrong[0], wrong[1]]);
        ensure!(wrong == [0, 0], "at n = {n} the kernels give {wrong:?} wrong elements");
    }
    cell.table(table);
    Ok(())
}

/// Chapter 1's kernel for four floats a thread, as a string.
const FLOAT4: &str = r#"
extern "C" __global__ void vector_add(const float* __restrict__ a, const float* __restrict__ b,
                                      float* __restrict__ c, size_t n) {
    size_t first = 4 * ((size_t)blockIdx.x * blockDim.x + threadIdx.x);
    if (first + 4 <= n) {
        float4 x = *reinterpret_cast<const float4*>(a + first);
        float4 y = *reinterpret_cast<const float4*>(b + first);
        float4 sum = make_float4(x.x + y.x, x.y + y.y, x.z + y.z, x.w + y.w);
        *reinterpret_cast<float4*>(c + first) = sum;
        return;
    }
    for (size_t i = first; i < n; ++i) {
        c[i] = a[i] + b[i];
    }
}
"#;

// -------------------------------------------------------------------------------------------------
// Mistakes

// ANCHOR: wrong
const WRONG: [(&str, &str); 3] = [
    (
        "a name that nobody knows",
        "__global__ void scale(float* a, size_t n) {
    size_t i = (size_t)blockIdx.x * blockdim.x + threadIdx.x;
    if (i < n) a[i] *= 2.0f;
}
",
    ),
    (
        "a semicolon less",
        "__global__ void scale(float* a, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x
    if (i < n) a[i] *= 2.0f;
}
",
    ),
    (
        "a write to what is read-only",
        "__global__ void scale(const float* a, size_t n) {
    size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) a[i] *= 2.0f;
}
",
    ),
];
// ANCHOR_END: wrong

// ANCHOR: mistakes
fn mistakes(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    for (what, text) in WRONG {
        let source = Source { file: "scale.cu", text, ..Source::default() };
        let Err(error) = nvrtc::compile(&source, Target::Ptx(75)) else {
            anyhow::bail!("NVRTC accepts {what}");
        };
        let error = error.downcast::<nvrtc::CompileError>().context("NVRTC failed")?;
        let shown = diagnostic::explain(&error.log, source.file, source.text);
        cell.measured_text(format!("{what}:\n{shown}"));
    }
    Ok(())
}
// ANCHOR_END: mistakes

// -------------------------------------------------------------------------------------------------
// What is known when the program runs

fn instructions(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let context = lab::open_device()?;
    let n = 1 << 14;
    let mut table = Table::new("counts")
        .measured("the compiler knows", "")
        .measured("instructions of a thread", "")
        .measured("load requests of a warp", "");
    for knows in Knows::ALL {
        let mut work = Polynomial::new(&context, knows, target(&context)?, n)?;
        let ((), counts) = cell.counts(|| {
            work.launch()?;
            work.check()
        })?;
        for launch in counts {
            let a_warp = |counter| launch.get(counter).map(|all| 32.0 * all / n as f64);
            let (all, loads) = (a_warp("warp_instructions"), a_warp("global_load_requests"));
            table.push(row![knows.name(), all, loads]);
        }
    }
    if table.rows.is_empty() {
        cell.measured_text("Instructions are counted by the emulated GPU, and by a profiler.");
    } else {
        cell.table(table);
    }
    Ok(())
}

fn polynomial(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let target = target(&context)?;
    let n = cell.largest(cell.parameter("largest_polynomial")?);
    let mut table = Table::new("versions")
        .measured("the compiler knows", "")
        .measured("registers", "")
        .measured("time", "s")
        .measured("8 bytes an element", "GB/s");
    let mut rates = Series::measured("rate", "GB/s").label("8 bytes an element");
    cell.progress(1 + Knows::ALL.len() as u64);
    for knows in Knows::ALL {
        cell.tick(knows.name());
        let mut work = Polynomial::new(&context, knows, target, n)?;
        let time = timing::device(stream.cu_stream(), |_| work.launch())?;
        work.check()?;
        let rate = time.map(|time| time.gigabytes_per_second(2 * size_of::<f32>() * n));
        table.push(row![knows.name(), work.registers()?, time.map(Timing::seconds), rate]);
        rates.push(knows.name(), rate);
    }
    cell.tick("the copy ceiling");
    let ceiling = copy_ceiling(&context, n)?;
    let mut identity = Polynomial::identity(&context, target, n)?;
    let by_floats = timing::device(stream.cu_stream(), |_| identity.launch())?;
    let by_floats = by_floats.map(|time| time.gigabytes_per_second(2 * size_of::<f32>() * n));
    identity.check()?;
    cell.table(table);
    cell.series(rates);
    cell.measured("copy", ceiling, "GB/s");
    cell.measured("copy_by_floats", by_floats, "GB/s");
    cell.figure(
        Figure::new(
            "What is it worth to tell the compiler more?",
            "Bars of rate: the kernel that is told nothing is the slowest, the one whose degree is known is faster, and the \
             one that has its coefficients in its instructions comes nearest to the rate of a copy.",
        )
        .x(Axis::labels("the compiler knows"))
        .y(Axis::linear("rate", "GB/s"))
        .series(["rate"])
        .limit("copy", "copy kernel, measured")
        .limit("copy_by_floats", "the same, one float a thread"),
    );
    Ok(())
}

/// The rate of this book's copy kernel, for `n` floats.
fn copy_ceiling(context: &Arc<CudaContext>, n: usize) -> Result<Option<lab::Point>> {
    use kernels::copy_01_float4::{Arguments, Kernel};
    let stream = context.default_stream();
    let kernel = Kernel::load(context)?;
    let (a, mut c) = (stream.alloc_zeros::<f32>(n)?, stream.alloc_zeros::<f32>(n)?);
    let time = timing::device(stream.cu_stream(), |_| {
        Ok(kernel.launch(&stream, Arguments { a: &a, c: &mut c, n: n as u64 })?)
    })?;
    Ok(time.map(|time| time.gigabytes_per_second(2 * size_of::<f32>() * n)))
}

// ANCHOR: names
fn names(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let context = lab::open_device()?;
    let target = target(&context)?;
    let instances =
        vec!["polynomial<float, 24>", "polynomial<float, 2 + 2>", "polynomial<double, 24>"];
    let source = Source {
        file: "polynomial.cu",
        text: polynomial::TEMPLATE,
        instances,
        ..Source::default()
    };
    let image = nvrtc::compile(&source, target)?;
    let module = load(&context, &image, target)?;
    let mut table =
        Table::new("names").measured("asked for", "").measured("its name in the module", "");
    for (instance, lowered) in source.instances.iter().zip(&image.lowered) {
        module.load_function(lowered).with_context(|| format!("looking {lowered} up"))?;
        table.push(row![*instance, lowered.as_str()]);
    }
    cell.table(table);
    Ok(())
}
// ANCHOR_END: names

// -------------------------------------------------------------------------------------------------
// What compiling costs

fn cost(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let context = lab::open_device()?;
    let capability = nvrtc::capability(context.compute_capability()?)?;
    let folder = tempfile::tempdir().context("making a folder for the cache")?;
    let cache = Cache::new(folder.path());

    // ANCHOR: cache
    let source = Source { file: "vector_add.cu", text: VECTOR_ADD, ..Source::default() };
    let (_, first) = cache.get(&source, Target::Ptx(capability))?;
    let (_, second) = cache.get(&source, Target::Ptx(capability))?;
    let changed = Source { options: vec!["-DANYTHING".into()], ..source.clone() };
    let (_, third) = cache.get(&changed, Target::Ptx(capability))?;
    // ANCHOR_END: cache
    let mut table = Table::new("asked").measured("asked for", "").measured("came from", "");
    for (what, from) in
        [("the source", first), ("the same again", second), ("with another option", third)]
    {
        table.push(row![what, if from == From::Disk { "the folder" } else { "the compiler" }]);
    }
    cell.table(table);
    ensure!(
        [first, second, third] == [From::Compiler, From::Disk, From::Compiler],
        "the cache mixes sources up"
    );

    let (of_device, there) =
        (Target::Cubin(capability), nvrtc::compile(&source, Target::Cubin(capability))?);
    let (refused, _) =
        lab::driver_messages(|| Ok(is_refused(&load(&context, &there, of_device).map(drop))))?;
    // Each time another kernel, so that no cache, the driver's own neither, knows it.
    let mut salt = std::process::id();
    let mut table = Table::new("costs")
        .measured("way", "")
        .measured("string to image", "s")
        .measured("image to device", "s")
        .measured("image", "B");
    for (way, target, kept) in [
        ("PTX", Target::Ptx(capability), false),
        ("machine code", Target::Cubin(capability), false),
        ("PTX from disk", Target::Ptx(capability), true),
        ("machine code from disk", Target::Cubin(capability), true),
    ] {
        if matches!(target, Target::Cubin(_)) && refused {
            continue;
        }
        let mut bytes = 0;
        let times = timing::laps(3, |clock| {
            salt = salt.wrapping_add(1);
            let text = format!("__device__ unsigned salt = {salt}u;\n{VECTOR_ADD}");
            let source = Source { file: "vector_add.cu", text: &text, ..Source::default() };
            if kept {
                cache.get(&source, target)?;
            }
            clock.lap();
            let image =
                if kept { cache.get(&source, target)?.0 } else { nvrtc::compile(&source, target)? };
            clock.lap();
            bytes = image.bytes.len();
            load(&context, &image, target)?;
            clock.lap();
            Ok(())
        })?;
        let lap = |i: usize| times.as_ref().map(|times: &Vec<Timing>| times[i].seconds());
        if times.is_some() {
            table.push(row![way, lap(1), lap(2), bytes]);
        }
    }
    if table.rows.is_empty() {
        cell.measured_text("The times need a GPU.");
    } else {
        cell.table(table);
    }
    Ok(())
}

/// Whether the driver has said that an image holds nothing for this device.
fn is_refused(answer: &Result<()>) -> bool {
    let error = answer.as_ref().err().and_then(|error| error.downcast_ref::<DriverError>());
    error.is_some_and(|error| error.0 == CUresult::CUDA_ERROR_NO_BINARY_FOR_GPU)
}

// -------------------------------------------------------------------------------------------------
// What the driver refuses

fn versions(cell: &mut Cell) -> Result<()> {
    if let Some(missing) = nvrtc::missing() {
        cell.measured_text(missing);
        return Ok(());
    }
    let context = lab::open_device()?;
    let capability = nvrtc::capability(context.compute_capability()?)?;
    let source = Source { file: "vector_add.cu", text: VECTOR_ADD, ..Source::default() };
    let compiled = |target| Ok::<_, anyhow::Error>((nvrtc::compile(&source, target)?, target));

    // ANCHOR: versions
    let (ptx, target) = compiled(Target::Ptx(capability))?;
    let (older, older_target) = compiled(Target::Ptx(75))?;
    let (machine_code, cubin) = compiled(Target::Cubin(capability))?;
    let (foreign, foreign_cubin) = compiled(Target::Cubin(if capability < 80 { 80 } else { 75 }))?;
    let text = String::from_utf8_lossy(&ptx.bytes).into_owned();
    let version = text.lines().find_map(|line| line.strip_prefix(".version ")).unwrap_or("none");
    let tomorrow = text.replace(&format!(".version {version}"), ".version 99.0");
    let tomorrow = nvrtc::Image { bytes: tomorrow.into_bytes(), lowered: Vec::new() };
    // ANCHOR_END: versions
    let mut table = Table::new("answers")
        .measured("image", "")
        .measured("made for", "")
        .measured("the driver's answer", "");
    let ((), messages) = lab::driver_messages(|| {
        for (what, image, target) in [
            ("PTX of this NVRTC", &ptx, target),
            ("the same, said to be of a later version", &tomorrow, target),
            ("PTX of this NVRTC for an older device", &older, older_target),
            ("machine code for this device", &machine_code, cubin),
            ("machine code for another device", &foreign, foreign_cubin),
        ] {
            let answer = match load(&context, image, target) {
                Ok(_) => "loads".to_owned(),
                Err(error) => match error.downcast_ref::<DriverError>() {
                    Some(error) => format!("{:?}", error.0),
                    None => return Err(error),
                },
            };
            table.push(row![
                what,
                target.option().trim_start_matches("--gpu-architecture="),
                answer
            ]);
        }
        Ok(())
    })?;
    cell.table(table);
    let (major, minor) = nvrtc::version()?;
    cell.measured_text(format!("NVRTC {major}.{minor} writes PTX of version {version}."));
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// What is checked, and what that costs

fn checks(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let image = &kernels::VECTOR_ADD_01_SCALAR;
    let module = context.load_module(Ptx::from_src(image.ptx().to_str()?))?;
    let function = module.load_function(image.name().to_str()?)?;
    let n = 1000_usize;
    let (a, b) = (stream.alloc_zeros::<f32>(n)?, stream.alloc_zeros::<f32>(n)?);
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let mut launch = |grid: u32, block: u32, shared_mem_bytes: u32| {
        let shape =
            LaunchConfig { grid_dim: (grid, 1, 1), block_dim: (block, 1, 1), shared_mem_bytes };
        let mut launch = stream.launch_builder(&function);
        launch.arg(&a).arg(&b).arg(&mut c).arg(&n);
        // SAFETY: the arguments are right, and the kernel guards its ends. The shape may be wrong; the driver says so.
        unsafe { launch.launch(shape) }.map(drop)
    };
    let (answers, messages) = lab::driver_messages(|| {
        Ok([
            ("4 blocks of 256 threads", launch(4, 256, 0)),
            ("a block of 1025 threads", launch(1, 1025, 0)),
            ("a grid of no blocks", launch(0, 256, 0)),
            ("1 MiB of shared memory", launch(4, 256, 1 << 20)),
            ("a kernel that the module has not", module.load_function("vector_ad").map(drop)),
        ])
    })?;
    stream.synchronize()?;
    let mut table = Table::new("answers").exact("asked for", "").exact("answer", "");
    for (what, answer) in answers {
        let code = answer.map_or_else(|error| error.0, |()| CUresult::CUDA_SUCCESS);
        table.push(row![what, format!("{code:?}")]);
    }
    cell.table(table);
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}

/// How a launch is made.
struct Way<'a> {
    name: &'a str,
    range: &'a str,
    launch: &'a mut dyn FnMut() -> Result<()>,
    wait: &'a dyn Fn() -> Result<()>,
}

fn launches(cell: &mut Cell) -> Result<()> {
    let mut table =
        Table::new("ways").measured("a launch with four arguments", "").measured("CPU time", "s");
    let n = 1024;
    // Tracking belongs to a context's object, and each of these has its own.
    // ANCHOR: tracking
    let plain = Launcher::new(CudaContext::new(0)?, n)?;
    let two_streams = CudaContext::new(0)?;
    let _second = two_streams.new_stream()?; // from here on, every argument is watched
    let tracked = Launcher::new(two_streams, n)?;
    let untracked = CudaContext::new(0)?;
    let _second = untracked.new_stream()?;
    // SAFETY: all work of this context is put into one stream.
    unsafe { untracked.disable_event_tracking() };
    let untracked = Launcher::new(untracked, n)?;
    // ANCHOR_END: tracking
    let (mut plain, mut tracked, mut untracked) = (plain, tracked, untracked);
    let raw = plain.raw();
    let wait = |stream: Arc<CudaStream>| move || Ok(stream.synchronize()?);
    let waits =
        [wait(plain.stream.clone()), wait(tracked.stream.clone()), wait(untracked.stream.clone())];
    cell.progress(4);
    for way in [
        Way { name: "cuLaunchKernel", range: "raw", launch: &mut || raw.launch(), wait: &waits[0] },
        Way {
            name: "cudarc with one stream",
            range: "one_stream",
            launch: &mut || plain.launch(),
            wait: &waits[0],
        },
        Way {
            name: "cudarc with several streams",
            range: "several_streams",
            launch: &mut || tracked.launch(),
            wait: &waits[1],
        },
        Way {
            name: "cudarc without tracking",
            range: "untracked",
            launch: &mut || untracked.launch(),
            wait: &waits[2],
        },
    ] {
        cell.tick(way.name);
        let _kernel = lab::range(&format!("kernel.{}", way.range));
        let times = timing::laps(2, |clock| {
            let _measure = lab::range("measure");
            for _ in 0..LAUNCHES {
                (way.launch)()?;
            }
            clock.lap();
            (way.wait)()?;
            clock.lap();
            Ok(())
        })?;
        table.push(row![way.name, times.map(|times| times[0].each(LAUNCHES))]);
    }
    for launcher in [&plain, &tracked, &untracked] {
        launcher.check()?;
    }
    cell.table(table);
    Ok(())
}

/// Launches in one sample: fewer than a stream's queue holds, so that none waits for the device.
const LAUNCHES: usize = 200;

/// Chapter 1's first kernel by cudarc's safe layer, on vectors of its own.
struct Launcher {
    function: CudaFunction,
    stream: Arc<CudaStream>,
    a: CudaSlice<f32>,
    b: CudaSlice<f32>,
    c: CudaSlice<f32>,
    n: usize,
}

impl Launcher {
    fn new(context: Arc<CudaContext>, n: usize) -> Result<Self> {
        let stream = context.default_stream();
        let image = &kernels::VECTOR_ADD_01_SCALAR;
        let module = context.load_module(Ptx::from_src(image.ptx().to_str()?))?;
        let function = module.load_function(image.name().to_str()?)?;
        let (a, b) =
            (stream.clone_htod(&cpu::numbers(n, 1))?, stream.clone_htod(&cpu::numbers(n, 2))?);
        let c = stream.alloc_zeros(n)?;
        Ok(Self { function, stream, a, b, c, n })
    }

    fn shape(&self) -> LaunchConfig {
        let blocks = self.n.div_ceil(BLOCK as usize) as u32;
        LaunchConfig { grid_dim: (blocks, 1, 1), block_dim: (BLOCK, 1, 1), shared_mem_bytes: 0 }
    }

    fn launch(&mut self) -> Result<()> {
        let shape = self.shape();
        let mut launch = self.stream.launch_builder(&self.function);
        launch.arg(&self.a).arg(&self.b).arg(&mut self.c).arg(&self.n);
        // SAFETY: three vectors of `n` floats and a `size_t`, as the kernel declares them.
        unsafe { launch.launch(shape) }?;
        Ok(())
    }

    /// The same launch by the driver's own function.
    fn raw(&self) -> RawLaunch {
        let address = |vector: &CudaSlice<f32>| vector.device_ptr(&self.stream).0;
        RawLaunch {
            vectors: [address(&self.a), address(&self.b), address(&self.c)],
            n: self.n,
            function: self.function.clone(),
            stream: self.stream.clone(),
            shape: self.shape(),
        }
    }

    fn check(&self) -> Result<()> {
        let expected = cpu::sum(&cpu::numbers(self.n, 1), &cpu::numbers(self.n, 2));
        ensure!(self.stream.clone_dtoh(&self.c)? == expected, "the sum is wrong");
        Ok(())
    }
}

/// A launch with everything at hand that the driver wants.
struct RawLaunch {
    vectors: [CUdeviceptr; 3],
    n: usize,
    function: CudaFunction,
    stream: Arc<CudaStream>,
    shape: LaunchConfig,
}

impl RawLaunch {
    fn launch(&self) -> Result<()> {
        let [mut a, mut b, mut c] = self.vectors;
        let mut n = self.n;
        let mut arguments =
            [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast(), (&raw mut n).cast()];
        let (shape, function) = (self.shape, self.function.cu_function());
        // SAFETY: three addresses of `n` floats and a `size_t`, as the kernel declares them; the vectors live.
        unsafe {
            result::launch_kernel(
                function,
                shape.grid_dim,
                shape.block_dim,
                0,
                self.stream.cu_stream(),
                &mut arguments,
            )
        }?;
        Ok(())
    }
}

// -------------------------------------------------------------------------------------------------
// The same elsewhere: CUDA C++ in this process, Python beside it

fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(3 + PYTHON_PEERS.len() as u64);
    let mut table = Table::new("peers")
        .measured("written in", "")
        .measured("version", "")
        .measured("string to kernel", "s")
        .measured("kernel", "GB/s")
        .measured("enqueue a launch", "s");
    let mut unmeasured = Vec::new();
    match (nvrtc::missing(), lab::peers::cuda_library("ch05_cuda.cu")) {
        (None, Ok(library)) => against_cuda(cell, &library, &mut table)?,
        (Some(missing), _) => unmeasured.push(missing.to_owned()),
        (None, Err(missing)) => unmeasured.push(format!("CUDA C++ was not measured: {missing}.")),
    }
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python(script) {
            Ok(peer) => table.push(row![
                peer.word("peer"),
                peer.word("version"),
                peer.number("compile_ms").map(|milliseconds| milliseconds / 1e3),
                peer.number("gbps"),
                peer.number("launch_us").map(|microseconds| microseconds / 1e6),
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
    ["ch05_pycuda.py", "ch05_cupy.py", "ch05_cuda_core.py", "ch05_numba.py"];

/// Rust and C++ in turn, so that both meet the same clocks and the same neighbours.
fn against_cuda(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    type Add = unsafe extern "C" fn(CUdeviceptr, CUdeviceptr, CUdeviceptr, usize, CUstream) -> i32;
    type Launch =
        unsafe extern "C" fn(i32, CUdeviceptr, CUdeviceptr, CUdeviceptr, usize, CUstream) -> i32;
    // SAFETY: tests/peers/ch05_cuda.cu defines these functions with these parameters.
    let (scalar, float4, launch) = unsafe {
        (
            library.function::<Add>("peer_add_scalar")?,
            library.function::<Add>("peer_add_float4")?,
            library.function::<Launch>("peer_launch")?,
        )
    };
    let succeeded = |code: i32| {
        ensure!(code == 0, "the C++ peer returned the CUDA runtime's error {code}");
        Ok(())
    };
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let raw = stream.cu_stream();
    let n = cell.largest(cell.parameter("largest_kernel")?);
    let part = cpu::numbers(n.min(1 << 20), 5);
    let vector = || {
        let mut vector = stream.alloc_zeros::<f32>(n)?;
        for start in (0..n).step_by(part.len()) {
            stream.memcpy_htod(&part, &mut vector.slice_mut(start..start + part.len()))?;
        }
        Ok::<_, anyhow::Error>(vector)
    };
    let (a, b, mut c) = (vector()?, vector()?, vector()?);
    let [a_there, b_there, c_there] = [&a, &b, &c].map(|vector| vector.device_ptr(&stream).0);
    let bytes = 3 * n * size_of::<f32>();
    let mut rates = None;
    for (name, text, floats, theirs) in
        [("scalar_ratio", VECTOR_ADD, 1, scalar), ("float4_ratio", FLOAT4, 4, float4)]
    {
        cell.tick(name);
        let ours = VectorAdd::new(&context, text, floats)?;
        let pairs = timing::device_pairs(
            raw,
            |_| ours.launch(&a, &b, &mut c),
            // SAFETY: three vectors of `n` floats, n a multiple of 4, and a stream of this context.
            |_| succeeded(unsafe { theirs(a_there, b_there, c_there, n, raw) }),
        )?;
        let found = stream.clone_dtoh(&c.slice(n - part.len()..))?;
        ensure!(found == cpu::sum(&part, &part), "the sum is wrong");
        cell.measured(name, pairs.map(|pairs| pairs.speed), "");
        if floats == 1 {
            // The table compares one source, that of the Python programs too.
            let rate = |time: Timing| time.gigabytes_per_second(bytes);
            rates = pairs.map(|pairs| [pairs.ours, pairs.theirs].map(rate));
        }
    }

    let target = target(&context)?;
    let mut salt = std::process::id();
    let compiled = timing::host_call(|| {
        // Each time another kernel, which no cache knows.
        salt = salt.wrapping_add(1);
        let text = format!("__device__ unsigned salt = {salt}u;\n{VECTOR_ADD}");
        let source = Source { file: "vector_add.cu", text: &text, ..Source::default() };
        load(&context, &nvrtc::compile(&source, target)?, target).map(drop)
    })?;
    cell.tick("launches");
    let untracked = CudaContext::new(0)?;
    // SAFETY: all work of this context is put into one stream.
    unsafe { untracked.disable_event_tracking() };
    let mut ours = Launcher::new(untracked, 1024)?;
    let [small_a, small_b, small_c] = ours.raw().vectors;
    let own_stream = ours.stream.clone();
    let pairs = timing::host_pairs(
        || (0..LAUNCHES).try_for_each(|_| ours.launch()),
        || {
            // SAFETY: three vectors of 1024 floats, and the stream that they belong to.
            let code = unsafe {
                launch(LAUNCHES as i32, small_a, small_b, small_c, 1024, own_stream.cu_stream())
            };
            succeeded(code)
        },
        || Ok(own_stream.synchronize()?),
    )?;
    ours.check()?;
    let per_launch = pairs.map(|pairs| [pairs.ours, pairs.theirs].map(|time| time.each(LAUNCHES)));
    if let Some([ours, theirs]) = per_launch {
        let difference = ours.value.zip(theirs.value).map(|(ours, theirs)| ours - theirs);
        cell.measured("launch", ours, "s");
        cell.measured("launch_difference", difference, "s");
    }
    if let (Some([ours, theirs]), Some([our_launch, their_launch])) = (rates, per_launch) {
        let compiled = compiled.map(Timing::seconds);
        table.push(row!["Rust, this chapter", "", compiled, ours, our_launch]);
        table.push(row!["CUDA C++", library.version(), "–", theirs, their_launch]);
    }
    Ok(())
}
