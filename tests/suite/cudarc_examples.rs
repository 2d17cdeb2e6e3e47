//! cudarc's own examples that compile kernels at run time, as they are, on the emulated GPU. Needs NVRTC.

#[path = "../../kernels/emulator/tests/common/examples.rs"]
mod examples;

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
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    let expected: Vec<String> =
        (0..20).map(|line| format!("Hello from the cuda kernel in thread {}", line / 2)).collect();
    assert_eq!(lines, expected, "each of ten threads, twice");
}

#[test]
fn constant_memory() {
    let printed = run("09-constant-memory");
    assert!(printed.contains("'coefficients' has 16 bytes"), "{printed}");
    assert!(printed.contains("f(5.0) = 586.0 (expected 586.0)"), "{printed}");
}
