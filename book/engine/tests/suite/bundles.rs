//! What comes back from a GPU machine: taken when it is whole, refused when it is not.

use std::path::PathBuf;
use std::process::Command;

use book::import::import;
use flate2::Compression;
use flate2::write::GzEncoder;
use record::Record;
use serde_json::{Value, json};

use crate::fixture::{CHAPTER, Fixture};

/// A repository with a commit, and what a bundle of it would bring back.
struct Returned {
    fixture: Fixture,
    manifest: Value,
    record: Record,
}

impl Returned {
    fn new() -> Returned {
        let fixture = Fixture::new("# Sample\n");
        git(&fixture, &["init", "--quiet"]);
        git(&fixture, &["add", "."]);
        git(&fixture, &["-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "all"]);
        let commit = git(&fixture, &["rev-parse", "HEAD"]);
        let mut record = fixture.fresh("h200");
        record.provenance.commit = commit.clone();
        record.provenance.seconds = 99.0;
        let source = &record.inputs[0];
        let manifest = json!({
            "schema": 1, "commit": commit, "dirty": false, "rustc": "rustc 1.95.0", "date": "2026-12-03T10:11:12Z",
            "chapters": {CHAPTER: {"inputs": [source], "profile": null, "nvtx": true}},
            "programs": {}, "crates": {},
        });
        Returned { fixture, manifest, record }
    }

    fn files(&self) -> Vec<(String, Vec<u8>)> {
        let record = serde_json::to_vec_pretty(&self.record).expect("JSON");
        let mut files = vec![(format!("records/{CHAPTER}/record.json"), record)];
        files.push((format!("records/{CHAPTER}/trace.json"), b"[]".to_vec()));
        files.push((format!("bench/{CHAPTER}.vector_add.txt"), b"vector_add 3 us\n".to_vec()));
        files
    }

    fn import(&self) -> Result<Vec<String>, String> {
        self.import_files(&self.files())
    }

    /// As run.sh packs them.
    fn import_files(&self, files: &[(String, Vec<u8>)]) -> Result<Vec<String>, String> {
        let sums = files.iter().map(|(name, bytes)| format!("{}  {name}\n", record::inputs::sha256(bytes)));
        let mut all = vec![
            ("manifest.json".to_owned(), self.manifest.to_string().into_bytes()),
            ("SHA256SUMS".to_owned(), sums.collect::<String>().into_bytes()),
        ];
        all.extend(files.iter().cloned());
        self.import_archive(&all)
    }

    fn import_archive(&self, files: &[(String, Vec<u8>)]) -> Result<Vec<String>, String> {
        let path = self.archive(files);
        let before = self.committed();
        let result = import(&self.fixture.root(), &path).map_err(|error| format!("{error:#}"));
        if result.is_err() {
            assert_eq!(self.committed(), before, "a refused archive changed the records");
        }
        result
    }

    fn archive(&self, files: &[(String, Vec<u8>)]) -> PathBuf {
        let path = self.fixture.path().join("results.tar.gz");
        let file = std::fs::File::create(&path).expect("a file");
        let mut builder = tar::Builder::new(GzEncoder::new(file, Compression::fast()));
        for (name, bytes) in files {
            let mut header = tar::Header::new_gnu();
            header.set_size(bytes.len() as u64);
            header.set_mode(0o644);
            // By hand, because `tar` itself refuses to write the paths that the tests are about.
            header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
            header.set_cksum();
            builder.append(&header, &bytes[..]).expect("an entry");
        }
        builder.into_inner().expect("an archive").finish().expect("an archive");
        path
    }

    fn committed(&self) -> String {
        self.fixture.read("book/records/h200/ch01-sample/record.json")
    }
}

fn git(fixture: &Fixture, arguments: &[&str]) -> String {
    let output = Command::new("git").args(arguments).current_dir(fixture.path()).output().expect("git");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

#[track_caller]
fn refused(result: Result<Vec<String>, String>, why: &str) {
    let error = result.expect_err("it was taken");
    assert!(error.contains(why), "{error}");
}

#[test]
fn a_whole_archive_is_placed_by_the_device_that_its_record_names() {
    let mut returned = Returned::new();
    returned.record.provenance.device = "NVIDIA A100".to_owned();
    let report = returned.import().expect("it is whole");
    assert_eq!(
        report[..2],
        [
            "placed book/records/a100/ch01-sample/record.json",
            "placed book/records/a100/ch01-sample/trace.json"
        ]
    );
    assert!(report[2].contains("vector_add 3 us"), "{report:?}");
    let placed: Value =
        serde_json::from_str(&returned.fixture.read("book/records/a100/ch01-sample/record.json"))
            .expect("JSON");
    assert_eq!(placed["provenance"]["seconds"], 99.0);
}

#[test]
fn a_profile_of_before_is_kept() {
    let mut returned = Returned::new();
    let mut before = returned.fixture.fresh("h200");
    before.profile = Some(record::Profile { date: "kept".into(), ..record::Profile::default() });
    returned.fixture.save("h200", &before);
    returned.record.profile = None;
    returned.import().expect("it is whole");
    assert!(returned.committed().contains("kept"));
}

#[test]
fn paths_that_lead_elsewhere_are_refused() {
    let returned = Returned::new();
    for name in [
        "../records/x",
        "/etc/passwd",
        "records/../../x/record.json",
        "records/ch01-sample/run.sh",
        "bin/ch01",
    ] {
        let mut files = returned.files();
        files.push((name.to_owned(), b"{}".to_vec()));
        let error = returned.import_files(&files).expect_err(name);
        assert!(error.contains("leads elsewhere") || error.contains("does not pack"), "{name}: {error}");
    }
}

#[test]
fn what_was_changed_on_the_way_is_refused() {
    let returned = Returned::new();
    let files = returned.files();
    let changed: Vec<_> =
        files.iter().map(|(name, bytes)| (name.clone(), [bytes.as_slice(), b"\n"].concat())).collect();
    let sums: String =
        files.iter().map(|(name, bytes)| format!("{}  {name}\n", record::inputs::sha256(bytes))).collect();
    let mut all = vec![
        ("manifest.json".to_owned(), returned.manifest.to_string().into_bytes()),
        ("SHA256SUMS".to_owned(), sums.into_bytes()),
    ];
    all.extend(changed);
    refused(returned.import_archive(&all), "is not what was packed");
    refused(returned.import_archive(&files), "no manifest.json");
}

#[test]
fn a_bundle_of_another_repository_is_refused() {
    let mut returned = Returned::new();
    returned.manifest["commit"] = json!("0123456789012345678901234567890123456789");
    refused(returned.import(), "this repository does not have");
    returned.manifest["commit"] = json!("--help");
    refused(returned.import(), "this repository does not have");
    let mut returned = Returned::new();
    returned.manifest["schema"] = json!(2);
    refused(returned.import(), "another layout");
    let mut returned = Returned::new();
    returned.manifest["chapters"]["ch77-x"] = json!({"inputs": [], "profile": null, "nvtx": true});
    refused(returned.import(), "no chapter here");
    let mut returned = Returned::new();
    returned.manifest["chapters"][CHAPTER]["inputs"][0]["hash"] = json!("0");
    refused(returned.import(), "is not that of commit");
}

#[test]
fn a_record_that_is_not_the_bundles_is_refused() {
    let mut returned = Returned::new();
    returned.record.inputs[0].hash = "0".into();
    refused(returned.import(), "is not the bundle's");
    let mut returned = Returned::new();
    returned.record.provenance.commit = "0".into();
    refused(returned.import(), "another commit");
    let mut returned = Returned::new();
    returned.record.provenance.emulated = true;
    refused(returned.import(), "emulated GPU");
    let mut returned = Returned::new();
    returned.record.status = record::Status::Failed { cell: "copies".into(), message: "no memory".into() };
    refused(returned.import(), "failed in cell copies: no memory");
    let mut returned = Returned::new();
    returned.record.chapter = "ch02-x".into();
    refused(returned.import(), "a record of ch02-x");
    let mut returned = Returned::new();
    returned.record.schema = 99;
    refused(returned.import(), "layout 99");
    let mut returned = Returned::new();
    returned.record.provenance.host_cpu = "/home/ada/x".into();
    refused(returned.import(), "absolute path");
}

#[test]
fn something_else_is_refused() {
    let returned = Returned::new();
    let path = returned.fixture.path().join("x.tar.gz");
    std::fs::write(&path, "no archive").expect("a file");
    let error = import(&returned.fixture.root(), &path).expect_err("it is no archive");
    assert!(format!("{error:#}").contains("no .tar.gz"), "{error:#}");
    let whole = std::fs::read(returned.archive(&returned.files())).expect("an archive");
    std::fs::write(&path, &whole[..whole.len() / 2]).expect("a file");
    assert!(import(&returned.fixture.root(), &path).is_err());
}

#[test]
fn the_script_of_a_bundle_packs_what_import_takes() {
    let returned = Returned::new();
    let bundle = returned.fixture.path().join("bundle");
    std::fs::create_dir_all(bundle.join("bin")).expect("a folder");
    std::fs::write(bundle.join("run.sh"), include_str!("../../src/bundle/run.sh")).expect("a file");
    std::fs::write(bundle.join("manifest.json"), returned.manifest.to_string()).expect("a file");
    // A chapter's program that does what `--record` asks.
    let program = bundle.join(format!("bin/{CHAPTER}"));
    let script = "#!/bin/sh\n[ \"$1 $2 $3\" = \"--device gpu --record\" ] || exit 3\nmkdir -p \"$4/ch01-sample\"\ncp \
                  record.json \"$4/ch01-sample/record.json\"\n";
    std::fs::write(&program, script).expect("a file");
    std::fs::write(bundle.join("record.json"), serde_json::to_vec(&returned.record).expect("JSON"))
        .expect("a file");
    for file in [&program, &bundle.join("run.sh")] {
        use std::os::unix::fs::PermissionsExt;
        std::fs::set_permissions(file, std::fs::Permissions::from_mode(0o755)).expect("a mode");
    }
    let sum = record::inputs::sha256(script.as_bytes());
    std::fs::write(bundle.join("SHA256SUMS"), format!("{sum}  bin/{CHAPTER}\n")).expect("a file");
    let run = |arguments: &[&str]| {
        let output = Command::new(bundle.join("run.sh")).args(arguments).output().expect("bash");
        (
            output.status.success(),
            String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned(),
        )
    };

    assert_eq!(run(&["list"]), (true, format!("{CHAPTER}\n")));
    let (ok, said) = run(&["record", "ch01"]);
    assert!(ok, "{said}");
    let archive = std::fs::read_dir(&bundle).expect("a folder").flatten().map(|entry| entry.path());
    let archive = archive
        .into_iter()
        .find(|path: &PathBuf| path.to_string_lossy().ends_with(".tar.gz"))
        .expect("an archive");
    let report = import(&returned.fixture.root(), &archive).expect("it is whole");
    assert_eq!(report, ["placed book/records/h200/ch01-sample/record.json"]);

    let (ok, said) = run(&["record", "ch77"]);
    assert!(!ok && said.contains("there is no chapter ch77"), "{said}");
    let (ok, said) = run(&["dance"]);
    assert!(!ok && said.contains("there is no command dance"), "{said}");
    std::fs::write(&program, "#!/bin/sh\n").expect("a file");
    let (ok, said) = run(&["record"]);
    assert!(!ok && said.contains("damaged"), "{said}");
}
