//! Runs Nsight Compute, twice: sections and timing, then operations, whose counting would disturb the timing.

use std::path::Path;

use anyhow::{Context as _, bail};

use super::metrics;
use super::raw::{self, Report};
use crate::invocation::Invocation;
use crate::nsys::session::tail;
use crate::target::Target;

/// The report of the session with sections and times, in the session's folder.
const TIMED: &str = "kernels";
/// The report of the session that counts operations.
const COUNTED: &str = "operations";

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
}

/// The lines: collect and print, for each of the two sessions.
pub fn lines(ncu: &Path, target: &Target, folder: &Path, launches: u32) -> [Invocation; 4] {
    let sections = metrics::SECTIONS.iter().flat_map(|section| ["--section", section]).collect();
    let timed = collect(ncu, target, &folder.join(TIMED), launches, sections, &metrics::timed());
    let counted = collect(ncu, target, &folder.join(COUNTED), launches, Vec::new(), &metrics::counted());
    [timed, print(ncu, &folder.join(TIMED)), counted, print(ncu, &folder.join(COUNTED))]
}

/// Runs both and reads what they printed.
///
/// # Errors
/// When the first gives nothing. A second one that fails is a reason in [`Session::counted`].
pub fn run(ncu: &Path, target: &Target, folder: &Path, launches: u32) -> anyhow::Result<Session> {
    let lines = lines(ncu, target, folder, launches);
    let timed = one(&lines[0], &lines[1], target, folder)?;
    let counted = one(&lines[2], &lines[3], target, folder).map_err(|error| format!("{error:#}"));
    Ok(Session { timed, counted, lines: lines.into() })
}

fn collect(
    ncu: &Path,
    target: &Target,
    report: &Path,
    launches: u32,
    sections: Vec<&str>,
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
        .arguments(["--force-overwrite", "--export"])
        .argument(report)
        .argument(&target.program)
        .arguments(&target.arguments)
        .arguments(&target.cells.kernels)
}

fn print(ncu: &Path, report: &Path) -> Invocation {
    Invocation::new(ncu).argument("--import").argument(report.with_extension("ncu-rep")).arguments([
        "--page",
        "raw",
        "--csv",
        "--print-units",
        "base",
    ])
}

fn one(collect: &Invocation, print: &Invocation, target: &Target, folder: &Path) -> anyhow::Result<Report> {
    let collected = collect.run(folder)?;
    if let Some(reason) = explain(&collected.output, &target.domain) {
        bail!("Nsight Compute collected nothing: {reason}");
    }
    if !collected.success {
        bail!("`{collect}` ended with {}; it said:\n{}", collected.status, tail(&collected.output));
    }
    let printed = print.run(folder)?;
    if !printed.success {
        bail!("`{print}` ended with {}; it said:\n{}", printed.status, tail(&printed.output));
    }
    let mut report =
        raw::parse(&printed.output).with_context(|| format!("reading what `{print}` printed"))?;
    if report.launches.is_empty() {
        bail!("`{print}` printed no launch; it said:\n{}", tail(&printed.output));
    }
    report.messages.extend(raw::messages(&collected.output));
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
    // A record quotes no command and no path: one sentence of ncu's own is enough.
    if let Some(kernel) =
        said.split("==ERROR== Failed to profile \"").nth(1).and_then(|rest| rest.split('"').next())
    {
        return Some(format!(
            "ncu failed to profile a launch of {kernel}, and stopped; `cargo profile` again may succeed"
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
        check(
            "==ERROR== Failed to profile \"sum\" in process 3055\n/a/path",
            "failed to profile a launch of sum, and",
        );
        check("==ERROR== Failed to find metric regex:sm__nonsense", "sm__nonsense");
        assert_eq!(explain("==PROF== Connected to process 1", "ch01"), None);
    }
}
