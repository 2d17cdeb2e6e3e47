//! burn's CUDA backend against its CPU backend, and CubeCL's own tests: tests/foreign/burn-and-cubecl.

use std::path::PathBuf;
use std::process::Command;

use super::{alone, emulated, folder, other_cargo, output, passed, python, root, test_programs, text};

/// Those of CubeCL's tests that cannot pass, with the reason.
const CANNOT: [(&str, &str); 4] = [
    ("write_from_i8x4", "the kernel reads 4 bytes behind its shared memory, which a GPU does not notice"),
    ("test_barrier_async_copy", "its barrier lies in local memory, where the PTX manual allows no atomics"),
    ("test_tensormap", "the emulated GPU has no tensor maps"),
    ("test_cluster_meta", "nor clusters of blocks"),
];

/// The test program of this name.
fn program(name: &str) -> PathBuf {
    let source = root().join("tests/foreign/burn-and-cubecl");
    let mut cargo = other_cargo(&source, &folder("burn-and-cubecl"));
    cargo.args(["test", "--locked", "--no-run", "--message-format=json"]);
    let programs = test_programs(&text(cargo));
    programs.into_iter().find(|(target, _)| target == name).expect("it is one of the crate's tests").1
}

/// A command that runs it on the emulated GPU. CubeCL looks for headers in `CUDA_PATH`, and calls NVRTC.
fn on_the_emulated_gpu(program: PathBuf) -> Command {
    let cuda = python::Environment::get().cuda();
    let mut command = emulated(program);
    command.env("CUDA_PATH", &cuda).env("LD_LIBRARY_PATH", cuda.join("lib"));
    command
}

#[test]
fn burn_agrees_with_its_cpu_backend() {
    let _alone = alone();
    // burn multiplies matrices in full on a card without tensor cores for f32, and in TF32 on one with them.
    for settings in [&[("EMULATED_GPU_MODEL", "t4")][..], &[("EMULATED_GPU_MODEL", "h200"), ("TF32", "1")]] {
        let mut command = on_the_emulated_gpu(program("burn"));
        let output = output(command.envs(settings.iter().copied()));
        assert_eq!(passed(&String::from_utf8_lossy(&output.stdout)), 8, "{settings:?}");
    }
}

#[test]
fn cubecls_own_tests_pass() {
    let _alone = alone();
    let skipped = CANNOT.iter().flat_map(|(name, _)| ["--skip", *name]);
    let mut command = on_the_emulated_gpu(program("cubecl"));
    let output = output(command.args(skipped));
    assert_eq!(passed(&String::from_utf8_lossy(&output.stdout)), 638);
}
