//! What the emulated GPU's checks say to a cell.

use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// How each report begins.
const REPORT: &str = "emulated GPU: the program's fault";

/// Runs one of this program's cells again, in a process of its own on the emulated GPU, with one of its checks turned on
/// (`EMULATED_GPU_CHECK`), and returns the reports. Nothing is recorded. It works on a machine with a GPU too.
///
/// # Errors
/// When the program cannot be started again, or the check reports nothing.
pub fn reports(cell: &str, check: &str) -> Result<String> {
    let program = std::env::current_exe().context("asking for this program's path")?;
    let run = Command::new(&program)
        .args([cell, "--device", "emulated", "--no-record"])
        .env("EMULATED_GPU_CHECK", check)
        .stdin(Stdio::null())
        .output()
        .with_context(|| format!("starting {} again", program.display()))?;
    let said = String::from_utf8_lossy(&run.stderr);
    let reports = only_reports(&said);
    ensure!(!reports.is_empty(), "the check `{check}` reports nothing in the cell `{cell}`");
    Ok(reports)
}

/// The reports among what was said: a line that begins one, and the indented lines under it.
fn only_reports(said: &str) -> String {
    let mut reports = String::new();
    let mut in_report = false;
    for line in said.lines() {
        in_report = line.starts_with(REPORT) || in_report && line.starts_with("  ");
        if in_report {
            reports.push_str(line);
            reports.push('\n');
        }
    }
    reports
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_are_found_among_other_words() {
        let said =
            format!("running\n{REPORT}: two operations\n  first    kernel\n  then     copy\nError: x\n  y\n");
        assert_eq!(
            only_reports(&said),
            format!("{REPORT}: two operations\n  first    kernel\n  then     copy\n")
        );
        assert_eq!(only_reports("all is well\n"), "");
    }
}
