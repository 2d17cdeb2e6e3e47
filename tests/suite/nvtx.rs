//! The ranges that a profiler sees, caught by an NVTX tool of our own. Needs libclang, with which the crate `nvtx` is built.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The repository, where cargo runs.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

#[test]
fn every_range_arrives_registered_in_the_chapters_domain_and_in_order() {
    let seen = ranges(&["--package", "lab", "--bin", "ch99-sample", "--features", "nvtx"], &["ranges"]);
    assert_eq!(
        seen,
        [
            "push ch99 setup",
            "pop ch99",
            "push ch99 measure",
            "push ch99 kernel.sample",
            "pop ch99",
            "pop ch99",
            // `timing::host` warms up.
            "push ch99 warmup",
            "pop ch99",
            "push ch99 check",
            "pop ch99",
        ]
    );
}

#[test]
fn a_chapter_shows_where_its_time_goes() {
    let seen = ranges(&["--package", "ch01-raw-kernel", "--features", "nvtx"], &["steps", "--quick"]);
    let pushed: Vec<&str> = seen.iter().filter_map(|line| line.strip_prefix("push ch01 ")).collect();
    assert_eq!(pushed[..4], ["setup", "h2d", "measure", "d2h"], "{seen:?}");
    assert_eq!(pushed.len() * 2, seen.len(), "every range is in the chapter's domain and ends: {seen:?}");
}

/// What the tool sees of a program that cargo builds with these arguments, run with those on the emulated GPU.
#[track_caller]
fn ranges(build: &[&str], arguments: &[&str]) -> Vec<String> {
    let libclang = compiler::libclang::find_or_fetch().expect("libclang is installed or pip can bring it");
    let folder = tempfile::tempdir().unwrap();
    let (tool, log) = (tool(folder.path()), folder.path().join("log"));
    let output = Command::new(env!("CARGO"))
        .args(["run", "--quiet"])
        .args(build)
        .arg("--")
        .args(arguments)
        .args(["--device", "emulated", "--no-record"])
        .current_dir(ROOT)
        // Without a debugger's words, and in a folder of its own: features of other tests must not be built over.
        .env("CARGO_TARGET_DIR", Path::new(env!("CARGO_TARGET_TMPDIR")).join("nvtx"))
        .envs(libclang.environment())
        .env("NVTX_INJECTION64_PATH", tool)
        .env("NVTX_LOG", &log)
        .output()
        .unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{build:?}: {}\n{errors}", output.status);
    let seen = fs::read_to_string(log).expect("the tool has seen a range");
    seen.lines().map(|line| line.trim_end().to_owned()).collect()
}

/// The tool, compiled.
fn tool(folder: &Path) -> PathBuf {
    let tool = folder.join("libinjection.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("suite/nvtx/injection.c");
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(&tool).arg(source).status();
    assert!(compiled.expect("a bare machine has a C compiler").success());
    tool
}
