//! What makes a record stale, and what does not.

use book::records::{Records, State};

use crate::fixture::{CHAPTER, Fixture};

/// The states of the two committed records after a change.
#[track_caller]
fn after(change: impl FnOnce(&Fixture)) -> String {
    let fixture = Fixture::new("# Sample\n\n{{#lab out ch01-sample.words}}\n");
    assert_eq!(states(&fixture), "fresh");
    change(&fixture);
    states(&fixture)
}

fn states(fixture: &Fixture) -> String {
    let records = Records::read(&fixture.root()).expect("records");
    let state = |slug| records.get(slug, CHAPTER).expect(slug).state.to_string();
    assert_eq!(state("h200"), state("emulated"));
    state("h200")
}

#[test]
fn what_can_change_a_result_makes_it_stale() {
    let source = "chapters/ch01-sample/src/lib.rs";
    assert_eq!(
        after(|fixture| fixture.replace(source, "a + b", "b + a")),
        "stale: chapters/ch01-sample/src/lib.rs has changed"
    );
    assert_eq!(
        after(|fixture| fixture.replace("kernels/ptx/copy_01_scalar.ptx", "ret;", "bar.sync 0;\n\tret;")),
        "stale: kernel copy_01_scalar has changed"
    );
    assert_eq!(
        after(|fixture| fixture.replace("profiling/lab/src/timing.rs", "{}", "{ loop {} }")),
        "stale: profiling/lab/src/timing.rs has changed"
    );
    assert_eq!(after(|fixture| fixture.lock("0.20.0")), "stale: library cudarc is 0.20.0, was 0.19.10");
    let manifest = "chapters/ch01-sample/Cargo.toml";
    assert_eq!(
        after(|fixture| fixture.replace(manifest, "1024", "2048")),
        "stale: parameter largest is 2048, was 1024"
    );
    assert_eq!(
        after(|fixture| fixture.replace(manifest, "{ largest", "{ more = 1, largest")),
        "stale: parameter more is new"
    );
    assert_eq!(
        after(|fixture| std::fs::remove_file(fixture.path().join(source)).expect("it was there")),
        "stale: chapters/ch01-sample/src/lib.rs is gone"
    );
}

#[test]
fn what_cannot_leaves_it_fresh() {
    let source = "chapters/ch01-sample/src/lib.rs";
    assert_eq!(after(|fixture| fixture.page("# Another page\n")), "fresh");
    assert_eq!(after(|fixture| fixture.replace(source, "// one and one", "// two")), "fresh");
    assert_eq!(after(|fixture| fixture.replace(source, "/// Adds.", "/// Adds two numbers.")), "fresh");
    assert_eq!(after(|fixture| fixture.replace(source, "a + b", "a\n        + b")), "fresh");
    assert_eq!(
        after(|fixture| fixture.replace("kernels/ptx/copy_01_scalar.ptx", "// copy", "// another compiler")),
        "fresh"
    );
    assert_eq!(after(|fixture| fixture.replace("kernels/ptx/copy_02_guard.ptx", "ret;", "exit;")), "fresh");
    assert_eq!(after(|fixture| fixture.write("kernels/emulator/src/lib.rs", "fn x() {}")), "fresh");
    assert_eq!(after(|fixture| fixture.write("chapters/ch02-more/src/lib.rs", "fn x() {}")), "fresh");
}

#[test]
fn a_stale_record_fails_the_check_and_not_the_build() {
    let fixture = Fixture::new("# Sample\n\n{{#lab out ch01-sample.words}}\n");
    assert_eq!(fixture.check(), Vec::<String>::new());
    fixture.replace("chapters/ch01-sample/src/lib.rs", "a + b", "b + a");
    assert!(fixture.build().is_empty());
    assert!(fixture.html().contains("chapters/ch01-sample/src/lib.rs has changed"), "{}", fixture.html());
    insta::assert_snapshot!(fixture.check().join("\n"), @r#"
    book/records/emulated/ch01-sample/record.json: stale, because chapters/ch01-sample/src/lib.rs has changed: `cargo book record ch01-sample --device emulated` makes it again
    book/records/h200/ch01-sample/record.json: stale, because chapters/ch01-sample/src/lib.rs has changed: `cargo book record ch01-sample` makes it again
    "#);
}

#[test]
fn a_half_written_record_is_told_and_the_page_goes_on() {
    let fixture = Fixture::new("# Sample\n\n{{#lab out ch01-sample.copies}}\n\nProse.\n");
    let path = fixture.save("local", &fixture.fresh("h200"));
    let whole = std::fs::read(&path).expect("a record");
    for length in [0, 1, whole.len() / 2, whole.len() - 2] {
        std::fs::write(&path, &whole[..length]).expect("a file");
        assert!(fixture.build().is_empty(), "{length}");
        assert!(fixture.html().contains("<p>Prose.</p>"), "{length}");
        let records = Records::read(&fixture.root()).expect("records");
        let state = &records.get("local", CHAPTER).expect("the file is there").state;
        assert!(matches!(state, State::Missing(why) if why.contains("cut off")), "{length}: {state}");
    }
}

#[test]
fn a_half_written_committed_record_fails_the_check() {
    let fixture = Fixture::new("# Sample\n\nProse.\n");
    let path = fixture.path().join("book/records/h200/ch01-sample/record.json");
    let whole = std::fs::read(&path).expect("a record");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    let problems = fixture.check();
    assert!(
        problems[0].starts_with("book/records/h200/ch01-sample/record.json: missing: the file is cut off"),
        "{problems:?}"
    );
    // Where the temporary folder lies is nobody's business.
    assert!(!problems[0].contains(&*fixture.path().to_string_lossy()), "{problems:?}");
}

#[test]
fn a_run_that_goes_on_failed_or_stopped_says_so() {
    use record::Status;
    let fixture = Fixture::new("{{#lab out ch01-sample.copies}}\n");
    for (status, said) in [
        (Status::Running { cell: "words".into(), done: 1, total: 2 }, "running: 1 of 2 cells, now words"),
        (
            Status::Failed { cell: "words".into(), message: "launching: out of memory".into() },
            "failed in cell words: launching: out of memory",
        ),
        (Status::Interrupted { cell: "words".into() }, "interrupted in cell words"),
    ] {
        let mut own = fixture.fresh("h200");
        own.status = status;
        own.cells.pop();
        fixture.save("local", &own);
        let records = Records::read(&fixture.root()).expect("records");
        assert_eq!(records.get("local", CHAPTER).expect("own").state.to_string(), said);
        assert!(fixture.build().is_empty());
    }
}
