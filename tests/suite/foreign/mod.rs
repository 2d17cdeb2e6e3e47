//! Programs of others, as their authors published them, on the emulated GPU: cudarc's own tests, burn and CubeCL, PyCUDA,
//! `cuda.core`, and the CI job that the book shows. Needs NVRTC, Python 3 with pip and venv, and a C++ compiler.

mod burn_and_cubecl;
mod cudarc;
mod python;
mod workflow;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, MutexGuard};

/// The repository.
pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the suite is in a folder of it").to_owned()
}

/// The folder below `target` that keeps what is built of others.
pub(crate) fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("foreign").join(name);
    fs::create_dir_all(&folder).expect("target can be written");
    folder
}

/// One at a time: what is built uses all cores, and some of what is run measures times.
pub(crate) fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    ALONE.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}

/// A command that runs a program on the emulated GPU, from the repository's folder.
pub(crate) fn emulated(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.args(["run", "--quiet", "--package", "emulator", "--"]).arg(program).current_dir(root());
    command
}

/// A folder with the emulated driver under the names that linkers and loaders ask for.
pub(crate) fn driver_folder() -> PathBuf {
    let printed = text(emulated("--library"));
    let folder = folder("driver");
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = folder.join(name);
        // It may be there from an earlier run, and lead elsewhere.
        let _ = fs::remove_file(&link);
        symlink(printed.trim(), &link).expect("target can be written");
    }
    folder
}

/// What a command that must succeed prints.
#[track_caller]
pub(crate) fn text(mut command: Command) -> String {
    let output = output(&mut command);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command that must succeed.
#[track_caller]
pub(crate) fn output(command: &mut Command) -> Output {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    let (printed, errors) =
        (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{command:?}: {}\n{printed}\n{errors}", output.status);
    output
}

/// Cargo for another workspace: the settings of the cargo that runs this test are not for it.
pub(crate) fn other_cargo(folder: &Path, target: &Path) -> Command {
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(folder).env("CARGO_TARGET_DIR", target).env_remove("RUSTFLAGS");
    command
}

/// The test programs that cargo has built, by the names of their targets, out of its messages in JSON.
pub(crate) fn test_programs(messages: &str) -> Vec<(String, PathBuf)> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    messages
        .filter_map(|message| {
            let program = message["executable"].as_str()?;
            Some((message["target"]["name"].as_str()?.to_owned(), PathBuf::from(program)))
        })
        .collect()
}

/// How many tests a test program says that have passed; it must have run to its end, and none may have failed.
#[track_caller]
pub(crate) fn passed(printed: &str) -> usize {
    let line = printed.lines().find_map(|line| line.strip_prefix("test result: ok. "));
    let line = line.unwrap_or_else(|| panic!("the tests failed, or did not end: {printed}"));
    line.split_once(" passed").and_then(|(count, _)| count.parse().ok()).expect("cargo's own words")
}
