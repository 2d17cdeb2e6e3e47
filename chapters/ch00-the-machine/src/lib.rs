//! Chapter 0, the machine: what is in it, what stands between a Rust call and the GPU, and what
//! would load on it.
//!
//! You need nothing before it. You get: the facts of your device, the versions of everything in
//! between, a look at each of NVIDIA's tools at work, and a list of what to mend.

mod images;
mod tools;

use anyhow::{Context, Result};
use cudarc::driver::sys::CUdevice_attribute::{self, *};
use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg, result, sys};
use cudarc::nvrtc::Ptx;
use lab::{Cell, CellSpec, Table, libraries, row};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("device", "What the device is", device),
    lab::cell("who-am-i", "Ask a kernel where it runs", who_am_i),
    lab::cell("stack", "What stands between a Rust call and the device", stack),
    lab::cell("libraries", "Which of CUDA's libraries are here", libraries),
    lab::cell("images", "What would load, and what would not", images::load_each),
    lab::cell("nvidia-smi", "nvidia-smi: is the machine all right?", tools::nvidia_smi),
    lab::cell(
        "sanitizer",
        "compute-sanitizer: is the program all right?",
        tools::compute_sanitizer,
    ),
    lab::cell("debugger", "cuda-gdb: what is this thread doing?", tools::cuda_gdb),
    lab::cell("nsys", "nsys: what happens when?", tools::nsys),
    lab::cell("ncu", "ncu: what does this kernel do to the hardware?", tools::ncu),
    lab::cell("doctor", "What to mend", doctor),
    lab::cell("fault", "A mistake, for the tools to find", fault),
];

// -------------------------------------------------------------------------------------------------
// The device

// ANCHOR: device
fn device(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let ask = |attribute| context.attribute(attribute).map(f64::from);
    let (major, minor) = context.compute_capability()?;

    let mut table =
        Table::new("facts").measured("fact", "").measured("value", "").measured("unit", "");
    table.push(row!["name", context.name()?, ""]);
    table.push(row!["compute capability", format!("{major}.{minor}"), ""]);
    for (fact, attribute, scale, unit) in FACTS {
        table.push(row![fact, ask(attribute)? * scale, unit]);
    }
    table.push(row!["memory", context.total_mem()? as f64 / GIB, "GiB"]);
    // ANCHOR_END: device
    cell.table(table);
    cell.measured("multiprocessors", ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?, "");
    let resident = ask(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
    cell.measured(
        "resident_threads",
        ask(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)? * resident,
        "",
    );
    Ok(())
}

const KIB: f64 = 1024.0;
const MIB: f64 = KIB * KIB;
const GIB: f64 = KIB * MIB;

/// The facts that this book comes back to: what to call it, the driver's name for it, a factor, a
/// unit.
const FACTS: [(&str, CUdevice_attribute, f64, &str); 16] = [
    ("multiprocessors", CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 1.0, ""),
    (
        "threads a multiprocessor can hold",
        CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
        1.0,
        "",
    ),
    (
        "blocks a multiprocessor can hold",
        CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
        1.0,
        "",
    ),
    ("threads in a block, at most", CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1.0, ""),
    ("threads in a warp", CU_DEVICE_ATTRIBUTE_WARP_SIZE, 1.0, ""),
    (
        "registers of a multiprocessor",
        CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR,
        1.0,
        "× 32 bit",
    ),
    (
        "shared memory of a multiprocessor",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
        1.0 / KIB,
        "KiB",
    ),
    (
        "shared memory of a block, without asking",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK,
        1.0 / KIB,
        "KiB",
    ),
    (
        "shared memory of a block, when asked for",
        CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
        1.0 / KIB,
        "KiB",
    ),
    ("L2 cache", CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 1.0 / MIB, "MiB"),
    ("memory bus", CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 1.0, "bit"),
    ("memory clock", CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1e-3, "MHz"),
    ("highest clock of the multiprocessors", CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1e-3, "MHz"),
    ("copy engines", CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 1.0, ""),
    (
        "CPU and GPU may use managed memory at once",
        CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        1.0,
        "(1 = yes)",
    ),
    ("error-correcting memory", CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1.0, "(1 = on)"),
];

// ANCHOR: who_am_i
fn who_am_i(cell: &mut Cell) -> Result<()> {
    use kernels::machine_01_who_am_i::{Arguments, Kernel};
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let blocks = 4;
    let mut answers = stream.alloc_zeros::<u32>(4 * blocks)?;
    Kernel::load(&context)?
        .launch(&stream, Arguments { answers: &mut answers, blocks: blocks as u32 })?;
    let answers = stream.clone_dtoh(&answers)?;

    cell.value("compiled_for", f64::from(answers[0]), "");
    cell.value("warp_size", f64::from(answers[1]), "");
    let places = answers.chunks(4).enumerate();
    let places = places.map(|(block, words)| {
        format!("block {block} ran on multiprocessor {} of {}", words[2], words[3])
    });
    cell.measured_text(places.collect::<Vec<_>>().join("\n"));
    Ok(())
}
// ANCHOR_END: who_am_i

// -------------------------------------------------------------------------------------------------
// What stands in between

fn stack(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let driver = driver_version()?;
    let kernel_module = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
    let kernel_module =
        kernel_module.as_deref().and_then(kernel_module_version).unwrap_or("none").to_owned();
    let bindings = version(sys::CUDA_VERSION as i32);
    let mut table = Table::new("stack")
        .measured("layer", "")
        .measured("version", "")
        .measured("what it does", "");
    table.push(row!["this program", "", "calls functions of the crate cudarc"]);
    table.push(row![
        "cudarc",
        format!("bindings of CUDA {bindings}"),
        "looks the driver's functions up by name"
    ]);
    table.push(row![
        "libcuda.so.1, the driver",
        format!("CUDA {}", version(driver)),
        "compiles PTX, queues work"
    ]);
    table.push(row!["the kernel module", kernel_module, "owns the device; checks who may do what"]);
    table.push(row!["the device", context.name()?, "runs kernels"]);
    cell.table(table);
    Ok(())
}

fn driver_version() -> Result<i32> {
    let mut version = 0;
    // SAFETY: `version` outlives the call, which writes to it.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .context("asking the driver for its CUDA version")?;
    Ok(version)
}

/// `13.0` from 13000.
fn version(number: i32) -> String {
    format!("{}.{}", number / 1000, number % 1000 / 10)
}

/// `580.159.04` from `NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release
/// Build`.
fn kernel_module_version(text: &str) -> Option<&str> {
    text.lines().next()?.split_whitespace().find(|word| {
        let mut parts = word.split('.');
        parts.clone().count() >= 2
            && parts.all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
    })
}

fn libraries(cell: &mut Cell) -> Result<()> {
    lab::open_device()?;
    let found = libraries::find(u32::try_from(driver_version()? / 1000)?);
    let mut table = Table::new("libraries")
        .measured("library", "")
        .measured("version", "")
        .measured("found by", "");
    for name in libraries::names() {
        match found.iter().find(|library| library.name == name) {
            Some(library) => {
                table.push(row![name, library.version.as_str(), library.found_by.to_string()])
            }
            None => table.push(row![name, "", "nobody: not installed"]),
        }
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// What to mend

fn doctor(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let driver = driver_version()?;
    let found = libraries::find(u32::try_from(driver / 1000)?);
    let mut table =
        Table::new("doctor").measured("part", "").measured("here", "").measured("what to do", "");
    let mut say = |part: &str, here: String, fix: &str| table.push(row![part, here, fix]);

    say("GPU", context.name()?, lab::what_is_missing(&context));
    let old_driver = "CUDA 12.0 is the least for this book's PTX: install driver 525 or newer";
    say(
        "driver",
        format!("CUDA {}", version(driver)),
        if driver >= 12000 { "" } else { old_driver },
    );
    let (major, minor) = context.compute_capability()?;
    let old_device = "this book's kernels are compiled for 7.5 and newer";
    say(
        "compute capability",
        format!("{major}.{minor}"),
        if (major, minor) >= (7, 5) { "" } else { old_device },
    );
    for (library, chapters) in [
        (
            "NVRTC",
            "chapter 5 and the exercises compile with it: `python3 -m pip install nvidia-cuda-nvrtc-cu12`",
        ),
        ("cuBLAS", "chapters 9 and 10 call it: `python3 -m pip install nvidia-cublas-cu12`"),
    ] {
        match found.iter().find(|found| found.name == library) {
            Some(found) => say(library, found.version.clone(), ""),
            None => say(library, "not found".into(), chapters),
        }
    }
    for (tool, use_of_it) in tools::ALL {
        let here = if tools::find(tool).is_some() { "installed" } else { "not found" };
        let fix = if here == "installed" {
            String::new()
        } else {
            format!("{use_of_it}; the CUDA Toolkit brings it")
        };
        say(tool, here.into(), &fix);
    }
    if let Some(restricted) = counters_are_restricted() {
        let (here, fix) = match restricted {
            false => ("allowed for everybody", ""),
            true => (
                "for root alone",
                "load the kernel module with NVreg_RestrictProfilingToAdminUsers=0, or profile as root",
            ),
        };
        say("hardware counters", here.into(), fix);
    }
    cell.table(table);
    Ok(())
}

/// `RmProfilingAdminOnly` of the kernel module; `None` where there is none.
fn counters_are_restricted() -> Option<bool> {
    let parameters = std::fs::read_to_string("/proc/driver/nvidia/params").ok()?;
    let line = parameters.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly: "))?;
    Some(line.trim() != "0")
}

// -------------------------------------------------------------------------------------------------
// A mistake, for the tools to find

// ANCHOR: fault
/// Stands last: where somebody notices, nothing more can be done in this process on this device.
fn fault(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    // Not a multiple of 256: the last block has 24 threads too many, and this kernel lets them in.
    let n = 1000;
    let a = stream.clone_htod(&vec![1.0f32; n])?;
    let b = stream.clone_htod(&vec![2.0f32; n])?;
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let image = &kernels::VECTOR_ADD_04_NO_GUARD;
    let module = context.load_module(Ptx::from_src(image.ptx().to_str()?))?;
    let kernel = module.load_function(image.name().to_str()?)?;
    let shape = LaunchConfig { grid_dim: (4, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
    let (answer, messages) = lab::driver_messages(|| {
        let mut launch = stream.launch_builder(&kernel);
        launch.arg(&a).arg(&b).arg(&mut c).arg(&n);
        // SAFETY: it is not. The kernel touches 96 bytes past the end of each vector.
        unsafe { launch.launch(shape)? };
        Ok(stream.synchronize())
    })?;
    // ANCHOR_END: fault
    cell.measured_text(match answer {
        Ok(()) => "The driver noticed nothing.".to_owned(),
        Err(error) => format!("The driver says {:?}.", error.0),
    });
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}

/// What a PTX image needs; see `images`.
fn load(context: &CudaContext, image: &std::ffi::CStr) -> std::result::Result<(), sys::CUresult> {
    context.bind_to_thread().map_err(|error| error.0)?;
    // SAFETY: `image` ends in a zero byte, by which the driver knows its length.
    let module =
        unsafe { result::module::load_data(image.as_ptr().cast()) }.map_err(|error| error.0)?;
    // SAFETY: the module was loaded in the line above, and nothing of it is in use.
    unsafe { result::module::unload(module) }.map_err(|error| error.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_read_as_people_write_them() {
        assert_eq!(version(13000), "13.0");
        assert_eq!(version(12020), "12.2");
    }

    #[test]
    fn the_kernel_module_tells_its_version() {
        let text = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build  (user@)\n";
        assert_eq!(kernel_module_version(text), Some("580.159.04"));
        assert_eq!(kernel_module_version(""), None);
    }
}
