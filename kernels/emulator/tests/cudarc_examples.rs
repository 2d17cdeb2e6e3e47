//! cudarc's own examples run on the emulated GPU as they are. Those that compile kernels at run time need NVRTC and are in
//! the workspace's `tests`.

#[path = "common/examples.rs"]
mod examples;

use std::{fs, path::Path, process::Command};

/// Functions of the driver that cudarc knows of in CUDA 13.0.
fn functions() -> Vec<String> {
    let text = fs::read_to_string(examples::source().join("src/driver/sys/mod.rs"))
        .expect("cudarc binds the driver");
    let mut wanted = true;
    let mut functions = Vec::new();
    for line in text.lines() {
        if line.starts_with("#[cfg(") {
            wanted = line.contains("\"cuda-13000\"");
        } else if !line.starts_with("#[") {
            let name = line.strip_prefix("pub unsafe fn ").and_then(|rest| rest.split('(').next());
            functions.extend(name.filter(|name| wanted && name.starts_with("cu")).map(str::to_owned));
            wanted = true;
        }
    }
    functions
}

#[test]
fn every_function_of_the_driver_is_there() {
    let library = Path::new(env!("CARGO_BIN_EXE_emulator")).with_file_name("deps").join("libemulator.so");
    // SAFETY: The emulated driver may be loaded at any time.
    let library = unsafe { libloading::Library::new(library) }.expect("it was built with this test");
    let functions = functions();
    assert!(functions.len() > 400, "{}", functions.len());
    let missing = functions.iter().filter(|name| {
        // SAFETY: The symbol is only looked for.
        unsafe { library.get::<unsafe extern "C" fn()>(name.as_bytes()) }.is_err()
    });
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&String>::new());
}

/// Runs an example and answers what it prints.
#[track_caller]
fn run(example: &str, settings: &[(&str, &str)]) -> String {
    let program = examples::build(Path::new(env!("CARGO_TARGET_TMPDIR")), example);
    // They look for ./examples/sin.ptx.
    let output = Command::new(env!("CARGO_BIN_EXE_emulator"))
        .arg(program)
        .current_dir(examples::source())
        .envs(settings.iter().copied())
        .output()
        .expect("the emulator runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {}\n{errors}", output.status);
    assert_eq!(errors, "", "{example}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn allocate() {
    run("01-allocate", &[]);
}

#[test]
fn copy() {
    run("02-copy", &[]);
}

/// `Found [0.84, …]` and `Expected [0.84, …]`, to the precision of the GPU's `sinf`.
#[track_caller]
fn check_sines(printed: &str) {
    let numbers = |word: &str| -> Vec<f32> {
        let line = printed.lines().find_map(|line| line.strip_prefix(word)).expect("the line is printed");
        line.trim()
            .trim_matches(['[', ']'])
            .split(", ")
            .map(|number| number.parse().expect("a number"))
            .collect()
    };
    let (found, expected) = (numbers("Found"), numbers("Expected"));
    assert_eq!(found.len(), 3);
    // CUDA promises 2 units in the last place for sinf.
    let close =
        |(found, expected): (&f32, &f32)| (found - expected).abs() <= 2.0 * f32::EPSILON * expected.abs();
    assert!(found.iter().zip(&expected).all(close), "{printed}");
}

#[test]
fn launch_kernel() {
    check_sines(&run("03-launch-kernel", &[]));
}

#[test]
fn streams() {
    check_sines(&run("04-streams", &[]));
}

#[test]
fn function_attributes() {
    let printed = run("10-function-attributes", &[("EMULATED_GPU_MODEL", "a100")]);
    assert!(printed.contains("Device: Emulated NVIDIA A100-SXM4-80GB"), "{printed}");
    assert!(printed.contains("Local memory per thread:  28 bytes"), "{printed}");
    assert!(printed.contains("PTX version:              5.2"), "{printed}");
    assert!(printed.contains("Binary version:           8.0"), "{printed}");
    assert!(printed.contains("Max threads per block:    1024"), "{printed}");
}

#[test]
fn context_config() {
    // Cards from compute capability 9.0 on refuse one of the limits that it asks for.
    let printed = run("12-context-config", &[("EMULATED_GPU_MODEL", "t4")]);
    assert!(printed.contains("Updated stack size: 2048 bytes"), "{printed}");
}

#[test]
fn copy_between_two_devices() {
    run("13-copy-multi-gpu", &[("EMULATED_GPU_DEVICES", "2")]);
}
