//! Runs Nsight Compute, twice: sections and timing, then operations, whose counting would disturb the timing.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::metrics;
use super::raw::{self, Report};
use crate::invocation::Invocation;
use crate::nsys::session::tail;
use crate::target::Target;

/// What the tools tell of who may read counters.
pub const PERMISSION_FIX: &str = "this user may not read the GPU's performance counters (ERR_NVGPUCTRPERM). On your own \
    machine: run as root, or write `options nvidia NVreg_RestrictProfilingToAdminUsers=0` to \
    /etc/modprobe.d/nvidia-profiling.conf and reboot. In a container: start it with --cap-add=SYS_ADMIN. On a rented \
    machine only its owner can allow it; the timeline works all the same";

/// A session's outcome.
#[derive(Debug)]
pub struct Session {
    /// The launches with times and sections.
    pub timed: Report,
    /// The launches with counted operations, or why there are none.
    pub counted: Result<Report, String>,
    /// The lines that were run.
    pub lines: Vec<Invocation>,
    /// The reports, for Nsight Compute's own window.
    pub reports: Vec<PathBuf>,
}

/// The two sessions' lines.
pub fn lines(ncu: &Path, target: &Target, folder: &Path, launches: u32) -> [Invocation; 2] {
    let sections = metrics::SECTIONS.iter().flat_map(|section| ["--section".into(), OsString::from(section)]);
    let timed = session(ncu, target, folder, "kernels", launches, sections.collect(), &metrics::timed());
    let counted = session(ncu, target, folder, "operations", launches, Vec::new(), &metrics::counted());
    [timed, counted]
}

/// Runs both and reads what they printed.
///
/// # Errors
/// When the first gives nothing. A second one that fails is a reason in [`Session::counted`].
pub fn run(ncu: &Path, target: &Target, folder: &Path, launches: u32) -> anyhow::Result<Session> {
    let lines = lines(ncu, target, folder, launches);
    let timed = one(&lines[0], target, &folder.join("kernels.csv"))?;
    let counted =
        one(&lines[1], target, &folder.join("operations.csv")).map_err(|error| format!("{error:#}"));
    let mut reports = vec![folder.join("kernels.ncu-rep")];
    if counted.is_ok() {
        reports.push(folder.join("operations.ncu-rep"));
    }
    Ok(Session { timed, counted, lines: lines.into(), reports })
}

fn session(
    ncu: &Path,
    target: &Target,
    folder: &Path,
    name: &str,
    launches: u32,
    sections: Vec<OsString>,
    metrics: &[String],
) -> Invocation {
    Invocation::new(ncu)
        // The trailing slash asks for push/pop ranges; without it only start/end ranges match.
        .arguments(["--nvtx", "--nvtx-include"])
        .argument(format!("{}@measure/", target.domain))
        .arguments(["--replay-mode", "kernel", "--cache-control", "all", "--clock-control", "none"])
        .arguments(["--launch-count".to_owned(), launches.to_string()])
        .arguments(sections)
        .argument("--metrics")
        .argument(metrics.join(","))
        .arguments(["--csv", "--page", "raw", "--print-units", "base", "--log-file"])
        .argument(folder.join(name).with_extension("csv"))
        .arguments(["--force-overwrite", "--export"])
        .argument(folder.join(name))
        .argument(&target.program)
        .arguments(&target.arguments)
        .arguments(&target.cells.kernels)
}

fn one(line: &Invocation, target: &Target, log: &Path) -> anyhow::Result<Report> {
    let finished = line.run(log.parent().unwrap_or(Path::new(".")))?;
    let printed = if log.is_file() {
        std::fs::read_to_string(log).with_context(|| format!("reading {}", log.display()))?
    } else {
        String::new()
    };
    let said = format!("{printed}{}", finished.output);
    if let Some(reason) = explain(&said, &target.domain) {
        bail!("Nsight Compute collected nothing: {reason}");
    }
    if !finished.success {
        bail!("`{line}` ended with {}; it said:\n{}", finished.status, tail(&said));
    }
    let report = raw::parse(&printed).with_context(|| format!("reading {}", log.display()))?;
    if report.launches.is_empty() {
        bail!("Nsight Compute printed no launch; it said:\n{}", tail(&said));
    }
    Ok(report)
}

/// What a tool's message means and what to do.
fn explain(said: &str, domain: &str) -> Option<String> {
    let has = |words: &str| said.contains(words);
    if has("ERR_NVGPUCTRPERM") {
        return Some(PERMISSION_FIX.into());
    }
    if has("No kernels were profiled") {
        return Some(format!(
            "no kernel was launched inside a push/pop range `measure` of domain `{domain}`. Ranges of other threads do \
             not count: the range has to be opened on the thread that launches"
        ));
    }
    if has("Driver resource was unavailable") || has("profiling resource") {
        return Some(
            "another tool holds the counters. DCGM lets go of them with `dcgmi profile --pause`; another profiler has to \
             end first"
                .into(),
        );
    }
    if has("failed to connect to the CUDA driver") || has("No CUDA-capable device") {
        return Some("it found no CUDA driver: `cargo profile doctor` says what this machine has".into());
    }
    let unknown = said.lines().find(|line| line.contains("Failed to find metric"))?;
    Some(format!(
        "this version does not know a metric that is asked for ({})",
        unknown.trim_start_matches('=').trim()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(said: &str, means: &str) {
        let reason = explain(said, "ch01").unwrap();
        assert!(reason.contains(means), "{reason}");
    }

    #[test]
    fn messages_are_explained() {
        check(
            "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters on \
             the target device 0.",
            "NVreg_RestrictProfilingToAdminUsers=0",
        );
        check("==WARNING== No kernels were profiled.\n", "domain `ch01`");
        check("==ERROR== Failed to find metric regex:sm__nonsense", "sm__nonsense");
        assert_eq!(explain("==PROF== Connected to process 1", "ch01"), None);
    }
}
