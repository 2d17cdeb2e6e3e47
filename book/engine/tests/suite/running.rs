//! `cargo book run` and `record` on chapters that cargo really builds.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use record::Record;

use crate::fixture::{CHAPTER, Fixture};

/// A chapter's program: it leaves the record that lies beside its manifest, or does what the file `mode` there says.
const PROGRAM: &str = r#"
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let here = std::path::Path::new(env!("CARGO_MANIFEST_DIR"));
    std::fs::write(here.join("arguments"), arguments[1..].join(" ")).unwrap();
    match std::fs::read_to_string(here.join("mode")).as_deref() {
        Ok("fail") => std::process::exit(3),
        Ok("wait") => {
            std::fs::write(here.join("waiting"), "").unwrap();
            std::thread::sleep(std::time::Duration::from_secs(60));
        }
        _ => {
            let place = arguments.iter().position(|argument| argument == "--record").unwrap();
            let folder = std::path::Path::new(&arguments[place + 1]).join(env!("CARGO_PKG_NAME"));
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::copy(here.join("record.json"), folder.join("record.json")).unwrap();
        }
    }
}
"#;

const OTHER: &str = "ch02-other";

/// Two chapters with programs, the second heavy if asked.
fn fixture(heavy: bool) -> Fixture {
    let fixture = Fixture::new("# Sample\n");
    fixture.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"chapters/*\"]\n");
    // Cargo writes its own.
    std::fs::remove_file(fixture.path().join("Cargo.lock")).expect("it was there");
    for (name, heavy) in [(CHAPTER, false), (OTHER, heavy)] {
        fixture.write(
            &format!("chapters/{name}/Cargo.toml"),
            &format!(
                "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n\n[features]\nnvtx = []\n\n\
                 [package.metadata.lab]\ntitle = \"What is it?\"\nheavy = {heavy}\n"
            ),
        );
        fixture.write(&format!("chapters/{name}/src/main.rs"), PROGRAM);
        let mut record = Record { inputs: Vec::new(), ..fixture_record() };
        record.chapter = name.to_owned();
        fixture
            .write(&format!("chapters/{name}/record.json"), &serde_json::to_string(&record).expect("JSON"));
    }
    std::fs::remove_file(fixture.path().join("chapters/ch01-sample/src/lib.rs")).expect("it was there");
    fixture
}

/// What the programs leave: told apart from what was committed by its seconds.
fn fixture_record() -> Record {
    let mut record = Fixture::new("# Sample\n").fresh("h200");
    record.provenance.seconds = 77.0;
    record
}

fn command(fixture: &Fixture, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_book"));
    command
        .args(arguments)
        .current_dir(fixture.path())
        .env("CARGO_TARGET_DIR", fixture.path().join("target"))
        .env("CARGO_NET_OFFLINE", "true")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

fn book(fixture: &Fixture, arguments: &[&str]) -> (bool, String) {
    let Output { status, stdout, stderr } = command(fixture, arguments).output().expect("the program starts");
    (status.success(), String::from_utf8_lossy(&[stdout, stderr].concat()).into_owned())
}

fn seconds(fixture: &Fixture, slug: &str, chapter: &str) -> Option<f64> {
    let path = record::path(&fixture.path().join("book/records").join(slug), chapter);
    Record::load(&path).expect("a record").map(|record| record.provenance.seconds)
}

#[test]
fn chapters_run_into_the_readers_own_records() {
    let fixture = fixture(false);
    let (ok, said) = book(&fixture, &["run", "ch01", "--device", "emulated", "--quick"]);
    assert!(ok, "{said}");
    assert_eq!(seconds(&fixture, "local", CHAPTER), Some(77.0));
    assert_eq!(seconds(&fixture, "local", OTHER), None);
    let arguments = fixture.read("chapters/ch01-sample/arguments");
    assert!(
        arguments.starts_with("--device emulated --record ") && arguments.ends_with(" --quick"),
        "{arguments}"
    );
    assert_eq!(seconds(&fixture, "h200", CHAPTER), Some(1.5), "a run touched a committed record");
}

#[test]
fn one_that_fails_is_reported_and_the_others_go_on() {
    let fixture = fixture(false);
    fixture.write("chapters/ch01-sample/mode", "fail");
    let (ok, said) = book(&fixture, &["run"]);
    assert!(!ok && said.contains("ch01-sample failed with code 3"), "{said}");
    assert_eq!(seconds(&fixture, "local", OTHER), Some(77.0));
}

#[test]
fn one_that_does_not_compile_is_reported_and_the_others_go_on() {
    let fixture = fixture(false);
    fixture.write("chapters/ch01-sample/src/main.rs", "fn main() { nothing() }\n");
    let (ok, said) = book(&fixture, &["run"]);
    assert!(!ok && said.contains("cannot find function `nothing`"), "{said}");
    assert_eq!(seconds(&fixture, "local", OTHER), Some(77.0));
}

#[test]
fn heavy_ones_run_only_by_name() {
    let fixture = fixture(true);
    assert!(book(&fixture, &["run"]).0);
    assert_eq!(seconds(&fixture, "local", OTHER), None);
    assert!(book(&fixture, &["run", "ch02"]).0);
    assert_eq!(seconds(&fixture, "local", OTHER), Some(77.0));
    let (ok, said) = book(&fixture, &["run", "ch77"]);
    assert!(!ok && said.contains("there is no chapter `ch77`; there are: ch01-sample, ch02-other"), "{said}");
}

#[test]
fn records_go_where_their_device_belongs_and_only_when_they_are_whole() {
    let fixture = fixture(false);
    let (ok, said) = book(&fixture, &["record"]);
    assert!(ok && said.contains("recorded book/records/h200/ch02-other/record.json"), "{said}");
    assert_eq!(seconds(&fixture, "h200", CHAPTER), Some(77.0));
    fixture.save("h200", &Fixture::new("# Sample\n").fresh("h200"));
    fixture.write("chapters/ch01-sample/mode", "fail");
    assert!(!book(&fixture, &["record"]).0);
    assert_eq!(seconds(&fixture, "h200", CHAPTER), Some(1.5), "a failed run replaced a committed record");
    let (ok, said) = book(&fixture, &["record", "--quick"]);
    assert!(!ok && said.contains("full size"), "{said}");
}

#[test]
fn an_interrupt_reaches_the_chapter_and_ends_the_list() {
    let fixture = fixture(false);
    fixture.write("chapters/ch01-sample/mode", "wait");
    let mut child = command(&fixture, &["run"]).spawn().expect("the program starts");
    wait_for(&mut child, fixture.path().join("chapters/ch01-sample/waiting"));
    let interrupted = Instant::now();
    let kill = Command::new("kill").args(["-INT", &child.id().to_string()]).status().expect("kill");
    assert!(kill.success());
    let Output { status, stderr, .. } = child.wait_with_output().expect("it ends");
    let said = String::from_utf8_lossy(&stderr);
    assert!(!status.success() && said.contains("ch01-sample was interrupted"), "{said}");
    assert!(interrupted.elapsed() < Duration::from_secs(30), "the chapter slept on");
    assert_eq!(seconds(&fixture, "local", OTHER), None);
}

fn wait_for(child: &mut Child, file: PathBuf) {
    let begin = Instant::now();
    while !file.exists() {
        assert!(child.try_wait().expect("a child").is_none(), "it ended before its chapter ran");
        assert!(begin.elapsed() < Duration::from_secs(120), "its chapter did not run");
        std::thread::sleep(Duration::from_millis(20));
    }
}
