//! Statements on a page.

use insta::assert_snapshot;

use crate::fixture::{Fixture, lines};

#[track_caller]
fn problems(claim: &str) -> String {
    let fixture = Fixture::new(&format!("# Sample\n\nIt is so.\n{{{{#lab claim {claim}}}}}\n"));
    lines(&fixture.build())
}

#[test]
fn a_claim_that_holds_is_a_tick_with_its_numbers() {
    let claim = "ch01-sample.copies.rate[16] >= 1.9 * ch01-sample.copies.rate[8]";
    let fixture = Fixture::new(&format!("Twice as fast.\n{{{{#lab claim {claim}}}}}\nAnd so on.\n"));
    assert_eq!(lines(&fixture.build()), "");
    let html = fixture.html();
    assert!(html.contains("4\u{202f}000\u{202f}GB/s ≥ 1.9 × 2\u{202f}000\u{202f}GB/s"), "{html}");
    assert!(html.contains("NVIDIA H200, 2026-12-03"), "{html}");
    assert!(html.contains("<p>And so on.</p>"), "{html}");
}

#[test]
fn counts_and_times_come_from_their_own_records() {
    assert_eq!(problems("ch01-sample.copies.sectors[8] == 8 * ch01-sample.copies.sectors[all]"), "");
    assert_eq!(problems("ch01-sample.copies.trip < 0.02"), "");
    assert_eq!(
        problems("ch01-sample.copies.ceiling > max(ch01-sample.copies.rate[8], ch01-sample.copies.rate[16])"),
        ""
    );
    assert_eq!(problems("ch01-sample.run.seconds > 1"), "");
}

#[test]
fn entries_of_tables_are_named_by_row_and_column() {
    assert_eq!(problems("ch01-sample.copies.strides[8, sectors] == 32"), "");
    assert_eq!(problems("ch01-sample.copies.strides[8, rate] > ch01-sample.copies.rate[8] / 2"), "");
    assert_snapshot!(problems("ch01-sample.copies.strides[9, sectors] == 32"), @"book/src/ch01-sample.md:4: table `strides` of cell `copies` has nothing at [9, sectors]");
    assert_snapshot!(problems("ch01-sample.copies.strides[8] == 32"), @"book/src/ch01-sample.md:4: `strides` of cell `copies` is a table: add [row, column]");
}

#[test]
fn a_broken_claim_fails_with_page_and_line() {
    assert_snapshot!(problems("ch01-sample.copies.rate[16] > 3 * ch01-sample.copies.rate[8]"), @"book/src/ch01-sample.md:4: the records do not bear out `ch01-sample.copies.rate[16] > 3 * ch01-sample.copies.rate[8]`: 4 000 GB/s > 3 × 2 000 GB/s is false");
}

#[test]
fn mixed_units_fail_with_page_and_line() {
    assert_snapshot!(problems("ch01-sample.copies.rate[16] > ch01-sample.copies.trip"), @"book/src/ch01-sample.md:4: mixed units: GB/s > s");
    assert_snapshot!(problems("ch01-sample.copies.rate[16] + ch01-sample.copies.trip > 0"), @"book/src/ch01-sample.md:4: mixed units: GB/s + s");
}

#[test]
fn what_is_missing_fails_with_page_and_line() {
    assert_snapshot!(problems("ch01-sample.copies.trip@emulated > 0"), @"book/src/ch01-sample.md:4: `ch01-sample.copies.trip@emulated` has no value in the emulated record: a time that needs a GPU");
    assert_snapshot!(problems("ch01-sample.copies.nothing > 0"), @"book/src/ch01-sample.md:4: cell `copies` of ch01-sample has no value, series or table `nothing`; there are: elements, ceiling, trip, rate, sectors, strides, banks");
    assert_snapshot!(problems("ch01-sample.run.device == 1"), @"book/src/ch01-sample.md:4: `ch01-sample.run.device` is a word, and a claim compares numbers");
    assert_snapshot!(problems("ch01-sample.copies.trip"), @"book/src/ch01-sample.md:4: a claim compares: it needs one of < <= > >= == !=");
}
