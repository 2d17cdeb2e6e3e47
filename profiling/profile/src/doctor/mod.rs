//! What this machine has for profiling, and the fix for what it lacks.
//!
//! Every check works on a bare machine, finds things without changing anything, and never fails: what it could not find out
//! is its finding.

mod cuda;
mod nsight;

use crate::target::Home;
use crate::tools::Places;

/// One thing that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Check {
    /// What it is, in a word or two.
    pub name: &'static str,
    /// How it stands.
    pub state: State,
    /// What was found, in a line.
    pub found: String,
    /// What to do, in a line; empty where there is nothing to do.
    pub fix: String,
}

/// How a thing stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// There, and it will do.
    Ok,
    /// Not there or not right, and profiling works without it.
    Optional,
    /// Not there or not right, and a part of profiling does not work.
    Missing,
}

impl State {
    /// The word for the table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Optional => "optional",
            Self::Missing => "missing",
        }
    }
}

impl Check {
    fn ok(name: &'static str, found: impl Into<String>) -> Self {
        Self { name, state: State::Ok, found: found.into(), fix: String::new() }
    }

    fn optional(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, state: State::Optional, found: found.into(), fix: fix.into() }
    }

    fn missing(name: &'static str, found: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { name, state: State::Missing, found: found.into(), fix: fix.into() }
    }
}

/// Every check, in the order in which things depend on each other. `home` is where this program runs, if that is known: a
/// bundle needs no libclang.
pub fn checks(places: &Places, home: Option<&Home>) -> Vec<Check> {
    let cuda = cuda::Facts::gather();
    let mut checks = cuda.checks(places);
    checks.push(nsight::counters());
    checks.extend(nsight::systems(places));
    checks.push(nsight::compute(places));
    if !matches!(home, Some(Home::Bundle(_))) {
        checks.push(nsight::libclang());
    }
    checks.extend(nsight::debuggers(places));
    checks
}

/// The checks as a terminal shows them: a line each, and the fix below it.
pub fn table(checks: &[Check]) -> String {
    let width = |text: fn(&Check) -> usize| checks.iter().map(text).max().unwrap_or(0);
    let names = width(|check| check.name.chars().count());
    let mut text = String::new();
    for check in checks {
        text.push_str(&format!("{:<8}  {:<names$}  {}\n", check.state.word(), check.name, check.found));
        if !check.fix.is_empty() {
            text.push_str(&format!("{:<8}  {:<names$}  → {}\n", "", "", check.fix));
        }
    }
    text
}

/// What can be recorded here, in a sentence.
pub fn verdict(checks: &[Check]) -> String {
    let bad = |names: &[&str]| {
        let bad: Vec<&str> = checks
            .iter()
            .filter(|check| check.state == State::Missing && names.contains(&check.name))
            .map(|check| check.name)
            .collect();
        bad
    };
    let common = [cuda::DRIVER, cuda::GPU, nsight::LIBCLANG];
    let timeline = bad(&[&common[..], &[nsight::NSYS, nsight::IMPORTER]].concat());
    let kernels = bad(&[&common[..], &[nsight::NCU, nsight::COUNTERS]].concat());
    let part = |what: &str, lacks: &[&str]| match lacks {
        [] => format!("{what} can be recorded here"),
        lacks => format!("{what} cannot: {}", lacks.join(", ")),
    };
    format!("{}; {}.", part("timelines", &timeline), part("kernels' counters", &kernels))
}

/// Whether nothing is missing.
pub fn complete(checks: &[Check]) -> bool {
    checks.iter().all(|check| check.state != State::Missing)
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    #[test]
    fn a_bare_machine_gets_a_line_and_a_fix_for_each_part() {
        let nothing = Places {
            path: vec![PathBuf::from("/nonexistent")],
            roots: Vec::new(),
            libraries: Vec::new(),
            devices: Vec::new(),
        };
        let checks = checks(&nothing, None);
        for name in [nsight::NSYS, nsight::NCU] {
            let check = checks.iter().find(|check| check.name == name).unwrap();
            assert_eq!(check.state, State::Missing, "{name}");
            assert!(!check.fix.is_empty(), "{name}");
        }
        assert!(!complete(&checks));
        let verdict = verdict(&checks);
        assert!(verdict.starts_with("timelines cannot: "), "{verdict}");
        assert!(verdict.contains("nsys"), "{verdict}");
        for check in &checks {
            assert_eq!(check.state == State::Ok, check.fix.is_empty(), "{check:?}");
            assert!(!check.found.contains('\n') && !check.fix.contains('\n'), "{check:?}");
        }
    }

    #[test]
    fn the_table_has_the_fix_below_what_it_fixes() {
        let checks = [Check::ok("GPU", "NVIDIA H200"), Check::missing("nsys", "not found", "install it")];
        assert_eq!(
            table(&checks),
            "ok        GPU   NVIDIA H200\nmissing   nsys  not found\n                → install it\n"
        );
        assert_eq!(verdict(&checks), "timelines cannot: nsys; kernels' counters can be recorded here.");
    }
}
