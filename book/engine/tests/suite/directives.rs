//! What each directive gives, and how each fails.

use insta::assert_snapshot;

use crate::fixture::{Fixture, lines};

#[track_caller]
fn html(page: &str) -> String {
    let fixture = Fixture::new(page);
    assert_eq!(lines(&fixture.build()), "", "{page}");
    fixture.html()
}

/// The problems of a page; each fails the build, and nothing is rendered.
#[track_caller]
fn problems(page: &str) -> String {
    let fixture = Fixture::new(page);
    let problems = fixture.build();
    assert!(!problems.is_empty(), "{page}");
    assert!(!fixture.path().join("out/ch01-sample.html").exists(), "the page was rendered all the same");
    lines(&problems)
}

#[test]
fn code_is_an_anchor_with_its_place() {
    let html = html("# Sample\n\n{{#lab code ch01-sample:add}}\n");
    assert!(
        html.contains("pub fn add(a: u32, b: u32) -&gt; u32 {\n    // one and one\n    a + b\n}"),
        "{html}"
    );
    assert!(html.contains("chapters/ch01-sample/src/lib.rs:4–8"), "{html}");
    assert!(!html.contains("ANCHOR"), "{html}");
}

#[test]
fn code_may_be_any_file_with_an_anchor() {
    let html = html(
        "{{#lab code kernels/copy_01_scalar.cu:copy}}\n\n{{#lab code tests/peers/ch01_numba.py:add}}\n\n{{#lab code \
         ch01-sample/lib.rs:add}}\n",
    );
    assert!(html.contains("language-cpp"), "{html}");
    assert!(html.contains("kernels/cuda/copy_01_scalar.cu:3"), "{html}");
    assert!(html.contains("language-python"), "{html}");
}

#[test]
fn a_diff_and_tabs() {
    let html = html(
        "{{#lab diff kernels/copy_01_scalar.cu kernels/copy_02_guard.cu}}\n\n{{#lab tabs ch01-sample:add \
         tests/peers/ch01_numba.py:add My-own=kernels/copy_01_scalar.cu:copy}}\n",
    );
    assert!(html.contains("-    b[threadIdx.x]"), "{html}");
    assert!(html.contains("+    if (threadIdx.x &lt; 9) b[threadIdx.x]"), "{html}");
    for label in ["Rust", "Numba", "My own"] {
        assert!(html.contains(&format!("aria-label=\"{label}\"")), "{label}: {html}");
    }
    let choices: Vec<&str> =
        html.split("<input").skip(1).filter(|input| input.contains("lab-tab-choice")).collect();
    let chosen =
        choices.iter().filter(|input| input.split('>').next().is_some_and(|tag| tag.contains("checked")));
    assert_eq!((choices.len(), chosen.count()), (3, 1), "{html}");
}

#[test]
fn val_reads_exact_values_from_the_emulated_record_and_measured_ones_from_the_gpus() {
    let html = html(
        "It has {{#lab val ch01-sample.copies.elements}}, {{#lab val ch01-sample.copies.rate[16]}}, {{#lab val \
         ch01-sample.copies.sectors[all]}}, {{#lab val ch01-sample.copies.trip}}, {{#lab val \
         ch01-sample.run.driver}}, {{#lab val ch01-sample.run.seconds@emulated}}.\n",
    );
    for shown in
        ["65\u{202f}536", "4\u{202f}000\u{202f}GB/s", ">4<", "14.8\u{202f}ms", "580.159.04", "1.50\u{202f}s"]
    {
        assert!(html.contains(shown), "{shown}: {html}");
    }
    assert!(html.contains("ch01-sample.copies.elements · NVIDIA H200 (emulated), 2026-12-03"), "{html}");
    assert!(html.contains("NVIDIA H200, 2026-12-03"), "{html}");
}

#[test]
fn val_stands_in_a_table() {
    let html = html("| a | b |\n|---|---|\n| {{#lab val ch01-sample.copies.elements}} | x |\n");
    assert!(html.contains("<td>x</td>"), "{html}");
}

#[test]
fn out_and_plot_and_state() {
    let html = html(
        "{{#lab state ch01-sample}}\n\nProse.\n{{#lab out ch01-sample.copies}}\n{{#lab plot \
         ch01-sample.copies}}\nMore prose.\n",
    );
    assert!(html.contains("every element &lt;b&gt;copied&lt;/b&gt;"), "{html}");
    assert!(html.contains("<svg"), "{html}");
    assert!(html.contains("A line that falls."), "{html}");
    assert!(html.contains("<p>More prose.</p>"), "{html}");
    assert!(html.contains("ch01-sample"), "{html}");
}

#[test]
fn a_gpus_table_has_its_counts_from_the_emulated_record() {
    let html = html("{{#lab out ch01-sample.copies}}\n");
    let row = html.split("<tr").find(|row| row.contains("2\u{202f}000")).expect("the row of the table");
    assert!(row.contains("32"), "{row}");
}

#[test]
fn code_spans_blocks_comments_and_escapes_are_left_alone() {
    let html = html(
        "`{{#lab val x}}`\n\n```text\n{{#lab code nothing}}\n```\n\n    {{#lab out nothing}}\n\n<!-- {{#lab plot \
         nothing}} -->\n\nWrite \\{{#lab val nothing}} there.\n",
    );
    assert!(html.contains("<code>{{#lab val x}}</code>"), "{html}");
    assert!(html.contains("{{#lab code nothing}}"), "{html}");
    assert!(html.contains("{{#lab out nothing}}"), "{html}");
    assert!(html.contains("Write {{#lab val nothing}} there."), "{html}");
}

#[test]
fn blocks_stand_in_quotes_and_lists() {
    let html = html(
        "> A quote:\n> {{#lab code ch01-sample:add}}\n\n- A point:\n\n  {{#lab out ch01-sample.words}}\n",
    );
    let quote = html
        .split("<blockquote")
        .nth(1)
        .and_then(|rest| rest.split("</blockquote>").next())
        .expect("a quote");
    assert!(quote.contains("a + b"), "{html}");
    let point = html.split("<li>").find(|point| point.contains("A point:")).expect("a point");
    assert!(point.split("</li>").next().is_some_and(|point| point.contains("said")), "{html}");
}

#[test]
fn what_stands_in_a_listing_is_no_include() {
    let fixture = Fixture::new("{{#lab code kernels/note.cu}}\n");
    fixture.write("kernels/cuda/note.cu", "// x\nint a; // {{#include secret.txt}}\n");
    fixture.write("book/src/secret.txt", "SECRET");
    assert_eq!(lines(&fixture.build()), "");
    assert!(fixture.html().contains("{{#include secret.txt}}"), "{}", fixture.html());
}

#[test]
fn what_names_nothing_fails_with_page_and_line() {
    assert_snapshot!(problems("# Sample\n\n{{#lab code ch01-sample:nothing}}\n"), @"book/src/ch01-sample.md:3: ch01-sample has no anchor `nothing`; it has add");
    assert_snapshot!(problems("{{#lab code kernels/nothing.cu:x}}\n"), @"book/src/ch01-sample.md:1: there is no file `kernels/nothing.cu` in the repository");
    assert_snapshot!(problems("{{#lab code ../../etc/passwd}}\n"), @"book/src/ch01-sample.md:1: `../../etc/passwd` leaves the repository: paths start at its top");
    assert_snapshot!(problems("one\n{{#lab out ch01-sample.nothing}}\n"), @"book/src/ch01-sample.md:2: ch01-sample has no cell `nothing`; there are: copies, words");
    assert_snapshot!(problems("{{#lab out ch99-nothing.copies}}\n"), @"book/src/ch01-sample.md:1: there is no chapter `ch99-nothing`; there are: ch01-sample");
    assert_snapshot!(problems("{{#lab val ch01.copies.elements}}\n"), @"book/src/ch01-sample.md:1: references name the whole crate: write ch01-sample for ch01");
    assert_snapshot!(problems("a {{#lab val ch01-sample.copies.nothing}} b\n"), @"book/src/ch01-sample.md:1: cell `copies` of ch01-sample has no value, series or table `nothing`; there are: elements, ceiling, trip, rate, sectors, strides, banks");
    assert_snapshot!(problems("{{#lab val ch01-sample.copies.rate}}\n"), @"book/src/ch01-sample.md:1: `rate` of cell `copies` is a series: add one of [8] [16]");
    assert_snapshot!(problems("{{#lab val ch01-sample.copies.rate[9]}}\n"), @"book/src/ch01-sample.md:1: series `rate` of cell `copies` has nothing at [9]; it has [8] [16]");
    assert_snapshot!(problems("{{#lab val ch01-sample.run.nothing}}\n"), @"book/src/ch01-sample.md:1: the provenance of ch01-sample (h200) has no `nothing`; there are: seconds, device, compute_capability, cuda_driver, driver, host_cpu, os, rustc, cudarc, opt_level, commit, date");
    assert_snapshot!(problems("{{#lab plot ch01-sample.words}}\n"), @"book/src/ch01-sample.md:1: `ch01-sample.words` has nothing to draw: its cell has no figure and no timeline");
    assert_snapshot!(problems("{{#lab dance ch01-sample.words}}\n"), @"book/src/ch01-sample.md:1: there is no directive `dance`: there are code, diff, tabs, out, plot, val, claim, state, exercise");
    assert_snapshot!(problems("{{#lab}}\n"), @"book/src/ch01-sample.md:1: the directive has no name: there are code, diff, tabs, out, plot, val, claim, state, exercise");
    assert_snapshot!(problems("{{#lab exercise ch01 nothing}}\n"), @"book/src/ch01-sample.md:1: listing kernels/exercises: No such file or directory (os error 2)");
    assert_snapshot!(problems("text {{#lab out ch01-sample.words}}\n"), @"book/src/ch01-sample.md:1: `out` stands alone on its line");
}

#[test]
fn an_unclosed_directive_fails_with_page_and_line() {
    assert_snapshot!(problems("# Sample\n\nIt is {{#lab val ch01-sample.copies.elements\nlong.\n"), @"book/src/ch01-sample.md:3: a directive is opened with {{#lab and not closed on its line");
}

#[test]
fn nothing_falls_back_from_one_record_to_the_other() {
    assert_snapshot!(problems("{{#lab val ch01-sample.copies.trip@emulated}}\n"), @"book/src/ch01-sample.md:1: `ch01-sample.copies.trip@emulated` has no value in the emulated record: a time that needs a GPU");
    let fixture =
        Fixture::new("{{#lab val ch01-sample.copies.trip}} {{#lab val ch01-sample.copies.elements}}\n");
    std::fs::remove_dir_all(fixture.path().join("book/records/h200")).expect("the record was there");
    assert_snapshot!(lines(&fixture.build()), @"book/src/ch01-sample.md:1: ch01-sample has no h200 record: `cargo book record ch01-sample` on such a GPU makes one");
    fixture.record("h200");
    std::fs::remove_dir_all(fixture.path().join("book/records/emulated")).expect("the record was there");
    assert_snapshot!(lines(&fixture.build()), @"book/src/ch01-sample.md:1: ch01-sample has no emulated record: `cargo book record ch01-sample --device emulated` makes one; `ch01-sample.copies.elements` is exact, so it is read from the emulated record; ch01-sample.copies.elements@h200 would name this one");
}

#[test]
fn every_problem_of_a_page_is_told_with_its_own_line() {
    assert_snapshot!(problems("{{#lab val a.b.c}}\n\n```\n\n```\n{{#lab code x}}\ntext\n{{#lab nothing\n"), @r#"
    book/src/ch01-sample.md:1: there is no chapter `a`; there are: ch01-sample
    book/src/ch01-sample.md:6: there is no file `x` in the repository
    book/src/ch01-sample.md:8: a directive is opened with {{#lab and not closed on its line
    "#);
}

#[test]
fn served_pages_show_problems_in_their_place_and_go_on() {
    let fixture =
        Fixture::new("# Sample\n\n{{#lab code ch01-sample:nothing}}\n\nIt is {{#lab val a.b.c}}. Prose.\n");
    assert_eq!(fixture.build_with(true).len(), 2);
    let html = fixture.html();
    assert_eq!(html.matches("class=\"lab-problem\"").count(), 2, "{html}");
    assert!(html.contains("book/src/ch01-sample.md:3: ch01-sample has no anchor `nothing`"), "{html}");
    assert!(html.contains(". Prose.</p>"), "{html}");
}

#[test]
fn the_readers_own_run_stands_beside_the_recorded_one() {
    let fixture = Fixture::new("{{#lab out ch01-sample.copies}}\n\n{{#lab plot ch01-sample.copies}}\n");
    assert_eq!(lines(&fixture.build()), "");
    let before = fixture.html();
    let mut own = fixture.fresh("h200");
    own.provenance.device = "NVIDIA A100".to_owned();
    fixture.save("local", &own);
    assert_eq!(lines(&fixture.build()), "");
    let after = fixture.html();
    assert!(!before.contains("A100") && after.contains("A100"), "{after}");
    assert!(after.contains("other hardware"), "{after}");
}

#[test]
fn a_heat_map_is_drawn_and_its_numbers_are_referred_to() {
    let page = "{{#lab plot ch01-sample.copies.banks}}\n\nIt takes {{#lab val ch01-sample.copies.banks[column, 0]}} \
                steps.\n\n{{#lab claim ch01-sample.copies.banks[column, 0] == 4 * ch01-sample.copies.banks[row, 3]}}\n";
    let fixture = Fixture::new(page);
    assert_eq!(lines(&fixture.build()), "");
    let html = fixture.html();
    assert!(html.contains("Which bank does each lane want?") && html.contains("h8 heat"), "{html}");
    assert!(html.contains("(emulated)") && html.contains(">4</span> steps"), "{html}");

    // The reader's own is drawn where it is another, and else said to be the same.
    let mut own = fixture.fresh("emulated");
    fixture.save("local", &own);
    assert_eq!(lines(&fixture.build()), "");
    let html = fixture.html();
    assert!(html.contains("Yours is the same.") && html.matches("<figure").count() == 1, "{html}");
    for output in own.cells.iter_mut().flat_map(|cell| &mut cell.outputs) {
        if let record::Output::HeatMap(map) = output {
            map.numbers[1][0] = Some(2.0);
        }
    }
    fixture.save("local", &own);
    assert_eq!(lines(&fixture.build()), "");
    assert_eq!(fixture.html().matches("<figure").count(), 2);
}

#[test]
fn a_chapter_that_only_the_reader_has_run_is_shown_so() {
    let fixture = Fixture::new("{{#lab out ch01-sample.copies}}\n\n{{#lab plot ch01-sample.copies}}\n");
    for slug in ["h200", "emulated"] {
        std::fs::remove_dir_all(fixture.path().join("book/records").join(slug))
            .expect("the record was there");
    }
    assert_eq!(fixture.build().len(), 2);
    let mut own = fixture.fresh("h200");
    own.provenance.device = "NVIDIA A100".to_owned();
    fixture.save("local", &own);
    assert_eq!(lines(&fixture.build()), "");
    assert!(fixture.html().contains("A100"));
}
