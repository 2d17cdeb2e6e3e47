//! cudarc's own tests of its driver and NVRTC layers, from the source that Cargo has of it.

use std::fs;
use std::path::Path;

use super::super::cudarc_examples::examples;
use super::{alone, emulated, folder, other_cargo, output, passed, python, test_programs, text};

/// What cannot pass, with the reason.
const CANNOT: [(&str, &str); 3] = [
    (
        "test_default_pinned_host_reads_are_faster_than_write_combined",
        "memory here is the host's own, which has no write-combined kind",
    ),
    (
        "test_pinned_copy_is_faster",
        "no bus lies between the host and the device, so pinned memory saves nothing",
    ),
    (
        "test_par_launch",
        "it compares times: two kernels at once take half as long only where two cores are free all the time",
    ),
];

/// Those of the ignored ones that say "must be executed with multiple gpus".
const TWO_DEVICES: [&str; 2] = ["peer_transfer_contexts", "re_associate_context_for_memory_op"];

#[test]
fn cudarcs_own_tests_pass() {
    let _alone = alone();
    let (source, copy, target) = (examples::source(), folder("cudarc"), folder("cudarc-target"));
    copy_folder(&source, &copy);
    let mut cargo = other_cargo(&copy, &target);
    // The bindings and the features that the book uses, and halves.
    cargo.args(["test", "--locked", "--lib", "--no-run", "--message-format=json", "--no-default-features"]);
    cargo.args(["--features", "std,driver,nvrtc,f16,cuda-12020,fallback-dynamic-loading"]);
    cargo.env("CARGO_PROFILE_TEST_DEBUG", "false");
    let programs = test_programs(&text(cargo));
    let [(_, program)] = &programs[..] else { panic!("one library, one test program: {programs:?}") };

    let nvrtc = compiler::find_or_fetch_nvrtc(compiler::BASELINE).expect("pip can bring NVRTC");
    // One test includes cuda_fp16.h. NVRTC looks for it in the current folder too.
    let headers = python::Environment::get().cuda().join("include");
    let run = |arguments: &[&str], devices: &str| {
        let mut command = emulated("env");
        command.arg("-C").arg(&headers).arg(program).arg("--test-threads=1").args(arguments);
        command.env("LD_LIBRARY_PATH", &nvrtc).env("EMULATED_GPU_DEVICES", devices);
        passed(&String::from_utf8_lossy(&output(&mut command).stdout))
    };
    let skipped: Vec<&str> = CANNOT.iter().flat_map(|(name, _)| ["--skip", *name]).collect();
    assert_eq!(run(&skipped, "1"), 50);
    let both = [&["--ignored"][..], &TWO_DEVICES].concat();
    assert_eq!(run(&both, "2"), 2);
}

/// Copies what has changed, so that Cargo builds only that again.
fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("target can be written");
    for entry in fs::read_dir(from).expect("Cargo has the source").flatten() {
        let (from, to) = (entry.path(), to.join(entry.file_name()));
        if from.is_dir() {
            copy_folder(&from, &to);
        } else if fs::read(&from).ok() != fs::read(&to).ok() {
            fs::copy(&from, &to).expect("target can be written");
        }
    }
}
