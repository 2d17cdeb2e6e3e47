//! What the emulated GPU's checks say to this chapter: nothing to the cells that are right, and the
//! mistake by name to the one that is not.

use std::process::{Command, Output};

fn run(cells: &[&str], check: &str) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_ch06-managed-memory"))
        .args(cells)
        .args(["--device", "emulated", "--quick", "--no-record"])
        .env("EMULATED_GPU_CHECK", check)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, said)
}

#[test]
fn right_cells_give_no_report() {
    let right = ["one-address", "odd-sizes", "ways", "pages", "sparse", "shared", "unsynchronised"];
    let (output, said) = run(&right, "all");
    assert!(output.status.success(), "{said}");
    assert!(!said.contains("the program's fault"), "{said}");
}

#[test]
fn two_streams_without_an_event_are_found() {
    let (_, said) = run(&["two-streams"], "stream");
    for words in [
        "two operations on the same bytes are not ordered",
        "first    kernel vector_add_03_float4 writes",
        "bytes    0 to 3999 of an allocation of 4000 bytes, managed memory",
    ] {
        assert!(said.contains(words), "{said:?} lacks {words:?}");
    }
}

#[test]
fn the_chapter_quotes_the_report() {
    let (output, said) = run(&["checked"], "bounds");
    let shown = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{said}");
    assert!(shown.contains("kernel vector_add_03_float4 writes"), "{shown}");
}
