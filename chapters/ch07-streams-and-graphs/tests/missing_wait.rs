//! The report that the page shows is what the emulated GPU says of the missing wait, to the letter; and it says nothing of
//! all other cells.

use std::path::Path;
use std::process::{Command, Output};

const PROGRAM: &str = env!("CARGO_BIN_EXE_ch07-streams-and-graphs");

fn run(check: &str, cells: &[&str]) -> Output {
    let mut program = Command::new(PROGRAM);
    program.args(["--device", "emulated", "--quick", "--no-record"]).args(cells);
    program.env("EMULATED_GPU_CHECK", check).output().unwrap()
}

#[test]
fn the_report_names_both_sides_and_says_what_to_do() {
    let output = run("stream", &["missing-wait"]);
    let said = String::from_utf8(output.stdout).unwrap();
    let (_, report) =
        said.split_once("emulated GPU: ").unwrap_or_else(|| panic!("no report in\n{said}"));
    // The rest of the block, without its indentation, and without an address that differs from run to run.
    let lines = report.lines().take_while(|line| !line.trim().is_empty());
    let report: String = std::iter::once("emulated GPU: ")
        .chain(lines.flat_map(|line| [line.strip_prefix("  ").unwrap_or(line), "\n"]))
        .collect();
    let (before, rest) = report.split_once("at 0x").unwrap();
    let report =
        format!("{before}at 0x…{}", rest.trim_start_matches(|c: char| c.is_ascii_hexdigit()));
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/missing_wait.txt");
    let committed = std::fs::read_to_string(&file).unwrap_or_default();
    assert_eq!(report, committed, "left: what was said; right: {}", file.display());
}

#[test]
fn nothing_is_said_where_nothing_is_missing() {
    let list = Command::new(PROGRAM).arg("--list").output().unwrap();
    let list = String::from_utf8(list.stdout).unwrap();
    let cells: Vec<&str> = ch07_streams_and_graphs::CELLS
        .iter()
        .map(|cell| cell.id)
        .filter(|id| *id != "missing-wait")
        .collect();
    assert!(cells.iter().all(|cell| list.contains(cell)), "{list}");
    let output = run("all", &cells);
    let said = [output.stderr, output.stdout]
        .map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
        .concat();
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("the program's fault"), "{said}");
}
