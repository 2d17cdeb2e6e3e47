//! Programs of others run on the emulated GPU: here, one in C that loads the driver at run time.

mod common;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

use serde_json::Value;

const SOURCE: &str = include_str!("common/program.c");

/// The C program, compiled.
fn program(folder: &Path) -> PathBuf {
    let (source, program) = (folder.join("program.c"), folder.join("program"));
    fs::write(&source, SOURCE).expect("the folder can be written");
    let compiler = env::var_os("CC").unwrap_or_else(|| "cc".into());
    let output = Command::new(compiler)
        .args(["-std=c99", "-Wall", "-Werror", "-o"])
        .args([&program, &source])
        .arg("-ldl")
        .output()
        .expect("there is a C compiler");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    program
}

fn run(arguments: &[&str], settings: &[(&str, &str)]) -> (Output, tempfile::TempDir) {
    let folder = tempfile::tempdir().expect("there is room for temporary files");
    let ptx = folder.path().join("kernels.ptx");
    fs::write(&ptx, common::KERNELS).expect("the folder can be written");
    let mut command = Command::new(env!("CARGO_BIN_EXE_emulator"));
    command.arg(program(folder.path())).arg(ptx).args(arguments).current_dir(folder.path());
    let output = command.envs(settings.iter().copied()).output().expect("the emulator runs");
    (output, folder)
}

#[track_caller]
fn check(output: &Output, status: i32, printed: &str) {
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(String::from_utf8_lossy(&output.stdout), printed, "{errors}");
    assert_eq!(output.status.code(), Some(status), "{errors}");
}

#[test]
fn a_program_in_c_runs() {
    let (output, _folder) = run(&["fill"], &[("EMULATED_GPU_MODEL", "l4")]);
    check(&output, 0, "Emulated NVIDIA L4, compute capability 8.9\nfill: 42 42 42 42 0\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn launches_of_cuda_3_run() {
    let (output, _folder) = run(&["cuda3"], &[("EMULATED_GPU_MODEL", "t4")]);
    check(&output, 0, "Emulated Tesla T4, compute capability 7.5\nfill: 42 42 42 42 0\n");
}

#[test]
fn a_fault_is_reported_and_is_the_programs_error() {
    let (output, _folder) = run(&["overrun"], &[]);
    check(
        &output,
        3,
        "Emulated NVIDIA H200, compute capability 9.0\ncuCtxSynchronize: CUDA_ERROR_ILLEGAL_ADDRESS\n",
    );
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("fill"), "{report}");
    assert!(report.contains("st.global.u32"), "{report}");
}

#[test]
fn an_endless_loop_is_stopped() {
    let (output, _folder) = run(&["spin"], &[("EMULATED_GPU_BUDGET", "100000")]);
    check(
        &output,
        3,
        "Emulated NVIDIA H200, compute capability 9.0\ncuCtxSynchronize: CUDA_ERROR_LAUNCH_TIMEOUT\n",
    );
    let report = String::from_utf8_lossy(&output.stderr);
    assert!(report.contains("EMULATED_GPU_BUDGET"), "{report}");
}

#[test]
fn counters_are_appended() {
    let (output, folder) = run(&["fill"], &[("EMULATED_GPU_COUNTERS", "counters.jsonl")]);
    assert!(output.status.success());
    let text = fs::read_to_string(folder.path().join("counters.jsonl")).expect("the file was written");
    let launches: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    assert_eq!(launches.len(), 1);
    assert_eq!(launches[0]["kernel"], "fill");
    assert_eq!(launches[0]["grid"], serde_json::json!([1, 1, 1]));
    assert_eq!(launches[0]["block"], serde_json::json!([32, 1, 1]));
    assert_eq!(launches[0]["global_store_requests"], 1);
    assert_eq!(launches[0]["global_store_sectors"], 1);
    assert!(launches[0]["host_seconds"].as_f64().is_some_and(|seconds| seconds > 0.0));
}

#[test]
fn wrong_settings_are_named() {
    let (output, _folder) = run(&["fill"], &[("EMULATED_GPU_MODEL", "h300")]);
    assert_eq!(output.status.code(), Some(1));
    let message = String::from_utf8_lossy(&output.stderr);
    assert!(
        message.starts_with("emulator: EMULATED_GPU_MODEL=h300 is not understood; use one of h200"),
        "{message}"
    );
}

#[test]
fn without_devices_there_is_none() {
    let (output, _folder) = run(&["fill"], &[("EMULATED_GPU_DEVICES", "0")]);
    check(&output, 3, "cuInit: CUDA_ERROR_NO_DEVICE\n");
}

#[test]
fn help_names_every_setting() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_emulator")).arg("--help").output().expect("the emulator runs");
    let text = String::from_utf8_lossy(&output.stdout);
    for setting in emulator::settings::SETTINGS {
        assert!(text.contains(&format!("{}={}", setting.name, setting.values)), "{text}");
    }
    assert!(text.lines().all(|line| line.chars().count() <= 100), "{text}");
}

#[test]
fn the_library_is_found() {
    let output =
        Command::new(env!("CARGO_BIN_EXE_emulator")).arg("--library").output().expect("the emulator runs");
    let path = PathBuf::from(String::from_utf8_lossy(&output.stdout).trim());
    assert!(path.is_file(), "{}", path.display());
}
