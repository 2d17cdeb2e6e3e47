//! cudarc's own examples that compile kernels at run time, as they are, on the emulated GPU. Needs NVRTC.

#[path = "../../kernels/emulator/tests/common/examples.rs"]
pub(crate) mod examples;

use std::{env, path::Path, process::Command};

/// Runs an example as a reader would, and answers what it prints.
#[track_caller]
fn run(example: &str) -> String {
    let program = examples::build(Path::new(env!("CARGO_TARGET_TMPDIR")), example);
    let nvrtc =
        compiler::find_or_fetch_nvrtc(compiler::BASELINE).expect("NVRTC is installed or pip can bring it");
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet", "--package", "emulator", "--"])
        .arg(program)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .env("LD_LIBRARY_PATH", nvrtc)
        .output()
        .expect("cargo runs");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{example}: {}\n{errors}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn device_repr() {
    run("05-device-repr");
}

#[test]
fn threading() {
    let printed = run("06-threading");
    // Ten threads launch it twice, with blocks of 1024 threads each of which prints.
    for thread in 0..10 {
        let line = format!("Hello from the cuda kernel in thread {thread}");
        assert_eq!(printed.lines().filter(|printed| *printed == line).count(), 2048, "{line}");
    }
    assert_eq!(printed.lines().count(), 20480);
}

#[test]
fn constant_memory() {
    let printed = run("09-constant-memory");
    assert!(printed.contains("'coefficients' has 16 bytes"), "{printed}");
    assert!(printed.contains("f(5.0) = 586.0 (expected 586.0)"), "{printed}");
}
