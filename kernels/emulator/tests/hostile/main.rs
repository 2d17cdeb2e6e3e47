//! What a broken or malicious program gives the driver: a code for each call, never a crash or a hang of the process.
//!
//! Each test starts this program again as a child, which makes up cases from a seed, one after the other. A child that dies
//! or hangs fails the test, with the seed; the case is in a file that is named then. It belongs into `tests/hostile/kept`,
//! whose files are loaded each time, when what it found is mended.
//!
//! `HOSTILE_SECONDS` is how long each kind is tried, and `HOSTILE_SEED` where to begin: at 1, unless it is set, so that a test
//! that passed passes again. By hand, `HOSTILE_SEED=$RANDOM HOSTILE_SECONDS=3600 cargo test -p emulator --test hostile` looks
//! for more.

#[path = "../common/mod.rs"]
mod common;

mod calls;
mod images;

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::atomic::{AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

/// Cases that have begun.
static CASES: AtomicU64 = AtomicU64::new(0);

/// How long a kind of case is tried.
fn time() -> Duration {
    let seconds = env::var("HOSTILE_SECONDS").ok().and_then(|seconds| seconds.parse().ok());
    Duration::from_secs(seconds.unwrap_or(4))
}

/// Where children leave the case that they are at.
fn case_file(kind: &str, seed: u64) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("hostile-{kind}-{seed:x}"))
}

/// Tries a kind of case in children, or is one of them: `run` tries cases from a seed until a time.
fn try_cases(test: &str, settings: &[(&str, &str)], run: fn(u64, Instant, &Path)) {
    let kind = test.rsplit("::").next().unwrap_or(test);
    if env::var_os("HOSTILE_CHILD").is_some_and(|child| *child == *kind) {
        let seed =
            env::var("HOSTILE_SEED").ok().and_then(|seed| seed.parse().ok()).expect("a child has a seed");
        thread::spawn(watch);
        run(seed, Instant::now() + time(), &case_file(kind, seed));
        return;
    }
    let seed = env::var("HOSTILE_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1);
    let folder = tempfile::tempdir().expect("a folder for files that cases write");
    let child = Command::new(env::current_exe().expect("a running program has a path"))
        .args(["--exact", test, "--nocapture", "--test-threads=1"])
        .current_dir(&folder)
        .envs(settings.iter().copied())
        .env("HOSTILE_CHILD", kind)
        .env("HOSTILE_SEED", seed.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .output()
        .expect("the child starts");
    let (output, errors) = (String::from_utf8_lossy(&child.stdout), String::from_utf8_lossy(&child.stderr));
    let inside = errors.lines().find(|line| line.contains("failed inside the emulated GPU"));
    if !child.status.success() || inside.is_some() {
        let end: Vec<&str> = errors.lines().rev().take(20).collect();
        panic!(
            "{kind}: {} with HOSTILE_SEED={seed}; the case is in {}\n{}\n{output}\n{}",
            child.status,
            case_file(kind, seed).display(),
            inside.unwrap_or_default(),
            end.into_iter().rev().collect::<Vec<_>>().join("\n"),
        );
    }
    let _never_written = fs::remove_file(case_file(kind, seed));
}

/// Ends the process when a case takes too long.
fn watch() {
    const LONGEST: Duration = Duration::from_secs(30);
    loop {
        let before = CASES.load(Ordering::Relaxed);
        thread::sleep(LONGEST);
        if CASES.load(Ordering::Relaxed) == before {
            eprintln!("hang: a case took more than {LONGEST:?}");
            std::process::abort();
        }
    }
}

/// Every file of a folder and those in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() { found.extend(files(&path)) } else { found.push(path) }
    }
    found.sort();
    found
}
