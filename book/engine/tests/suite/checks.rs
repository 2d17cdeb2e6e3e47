//! What `cargo book check` finds besides directives.

use insta::assert_snapshot;

use crate::fixture::{Fixture, lines};

#[track_caller]
fn check(change: impl FnOnce(&Fixture)) -> String {
    let fixture = Fixture::new("# Sample\n\n{{#lab out ch01-sample.words}}\n");
    assert_eq!(fixture.check(), Vec::<String>::new());
    change(&fixture);
    fixture.check().join("\n")
}

#[test]
fn links_and_anchors_must_exist() {
    assert_snapshot!(
        check(|fixture| fixture.page(
            "# Sample\n\n[a](nothing.md) [b](#nothing) [c](#sample) [d](https://example.org)\n\n![e](nothing.png)\n"
        )),
        @r#"
        book/src/ch01-sample.md:3: the link #nothing: that page has no such heading
        book/src/ch01-sample.md:3: the link nothing.html leads to no page or file
        book/src/ch01-sample.md:5: the link nothing.png leads to no page or file
        "#
    );
}

#[test]
fn nothing_comes_from_another_host() {
    assert_snapshot!(
        check(|fixture| fixture.page("# Sample\n\n![a](https://example.org/a.png)\n\n<script src=\"//example.org/a.js\"></script>\n")),
        @r#"
        book/src/ch01-sample.md:3: the page loads https://example.org/a.png from another host
        book/src/ch01-sample.md:5: the page loads //example.org/a.js from another host
        "#
    );
}

#[test]
fn includes_that_find_nothing_are_told() {
    assert_snapshot!(check(|fixture| fixture.page("# Sample\n\n{{#include nothing.txt}}\n")), @"book/src/ch01-sample.md:3: `{{#include nothing.txt}}` was left as it is: it names what is not there");
}

#[test]
fn measured_numbers_are_not_typed() {
    assert_snapshot!(check(|fixture| fixture.page("# Sample\n\nIt reaches 4396 GB/s, in `3 ms`.\n")), @"book/src/ch01-sample.md:3: `4396 GB/s` is typed: a measured number comes out of a record, by {{#lab val …}}");
}

#[test]
fn every_chapter_has_a_page_and_records() {
    assert_snapshot!(
        check(|fixture| fixture.write(
            "chapters/ch02-more/Cargo.toml",
            "[package]\nname = \"ch02-more\"\ndescription = \"More?\"\n"
        )),
        @r#"
        book/records/emulated/ch02-more/record.json: missing: ch02-more has no emulated record
        book/records/h200/ch02-more/record.json: missing: ch02-more has no h200 record
        book/src/ch02-more.md: ch02-more has no page
        "#
    );
    assert_snapshot!(
        check(|fixture| {
            fixture.write("book/src/other.md", "# Other\n");
            fixture.write("book/src/SUMMARY.md", "- [Other](other.md)\n");
        }),
        @"book/src/SUMMARY.md: ch01-sample.md is not in it"
    );
}

#[test]
fn a_draft_waits_for_the_record_of_a_gpu_and_for_nothing_else() {
    let page = "It takes {{#lab val ch01-sample.copies.trip}} for {{#lab val ch01-sample.copies.elements}}.\n\n\
                {{#lab plot ch01-sample.copies}}\n\n{{#lab claim ch01-sample.copies.trip < 1}}\n";
    let fixture = Fixture::new(page);
    std::fs::remove_dir_all(fixture.path().join("book/records/h200")).expect("the record was there");
    assert!(fixture.check().iter().any(|line| line.contains("has no h200 record")), "it is no draft yet");
    let manifest = fixture.read("chapters/ch01-sample/Cargo.toml") + "draft = true\n";
    fixture.write("chapters/ch01-sample/Cargo.toml", &manifest);
    assert_eq!(fixture.check(), [""; 0]);
    assert_eq!(lines(&fixture.build()), "");
    let html = fixture.html();
    assert!(
        html.contains("not measured yet, ch01")
            && html.matches("Not measured yet").count() == 1
            && html.contains("65\u{202f}536"),
        "{html}"
    );

    // With the record, mistakes are mistakes again.
    fixture.save("h200", &fixture.fresh("h200"));
    fixture.page("{{#lab val ch01-sample.copies.nothing}}\n");
    assert!(fixture.check().iter().any(|line| line.contains("has no value, series or table")));
}

#[test]
fn a_record_says_nothing_of_whose_machine_it_was() {
    assert_snapshot!(
        check(|fixture| {
            let mut record = fixture.fresh("h200");
            record.provenance.facts.insert("libraries".into(), "/home/ada/cuda/lib".into());
            record.provenance.arguments.push("GPU-1a2b3c4d-1111-2222".into());
            fixture.save("h200", &record);
        }),
        @r#"
        book/records/h200/ch01-sample/record.json: provenance.arguments holds a GPU's UUID
        book/records/h200/ch01-sample/record.json: provenance.facts.libraries holds the absolute path /home/ada/cuda/lib
        "#
    );
}

#[test]
fn a_committed_record_is_whole_and_in_its_place() {
    assert_snapshot!(
        check(|fixture| {
            let mut record = fixture.fresh("h200");
            record.provenance.device = "NVIDIA A100".into();
            for input in &mut record.inputs {
                if input.name == "quick" {
                    input.hash = "true".into();
                }
            }
            fixture.save("h200", &record);
        }),
        @r#"
        book/records/h200/ch01-sample/record.json: it was made with --quick: record it at full size
        book/records/h200/ch01-sample/record.json: it was recorded on `NVIDIA A100`, so it belongs into a100
        "#
    );
}

#[test]
fn a_profile_has_inputs_of_its_own() {
    assert_snapshot!(
        check(|fixture| {
            let mut record = fixture.fresh("h200");
            let mut inputs = record.inputs.clone();
            inputs[0].hash = "another".into();
            record.profile = Some(record::Profile { inputs, ..record::Profile::default() });
            fixture.save("h200", &record);
        }),
        @"book/records/h200/ch01-sample/record.json: its profile is stale, because chapters/ch01-sample/src/lib.rs has changed"
    );
}

#[test]
fn what_is_exact_is_the_same_in_every_record() {
    assert_snapshot!(
        check(|fixture| {
            let mut record = fixture.fresh("h200");
            if let record::Output::Value(elements) = &mut record.cells[0].outputs[1] {
                elements.point.value = Some(1.0);
            }
            fixture.save("h200", &record);
        }),
        @"book/records/h200/ch01-sample/record.json: it calls exact what differs from the emulated record: copies.elements: 1 here, 65536 there"
    );
}
