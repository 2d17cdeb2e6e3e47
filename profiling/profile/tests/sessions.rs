//! The whole program against stand-ins for nsys, ncu and nvidia-smi: shell scripts that check how they are called and leave
//! what the real tools left on an H200.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::process::{Command, Output};

use profile::Request;
use profile::target::Home;
use profile::tools::Places;
use record::{Cell, Input, InputKind, Kind, Profile, Provenance, Record, SCHEMA, Status, Text, Value};
use tempfile::TempDir;

const CHAPTER: &str = "ch01-raw-kernel";
const NSYS: &str = include_str!("fixtures/nsys-2025.3.sql");
const KERNELS: &str = include_str!("fixtures/ncu-2025.3-kernels.csv");
const OPERATIONS: &str = include_str!("fixtures/ncu-2025.3-operations.csv");

/// Collects: checks its arguments, runs the program, and leaves a report that is the export's text.
const NSYS_THAT_WORKS: &str = r#"
case "$1" in
--version) echo "NVIDIA Nsight Systems version 2025.3.1.0"; exit 0;;
profile)
    [ "$LC_ALL" = C ] || { echo "locale $LC_ALL"; exit 9; }
    [ "$2 $3 $4 $5" = "--trace=cuda,nvtx --sample=none --cpuctxsw=none --force-overwrite=true" ] || { echo "arguments: $*"; exit 9; }
    report="${6#--output=}"; shift 6
    "$@" || exit $?
    cp "$FIXTURES/trace.sqlite" "$report.nsys-rep";;
export)
    [ "$2 $3" = "--type=sqlite --force-overwrite=true" ] || { echo "arguments: $*"; exit 9; }
    cp "$5" "${4#--output=}";;
*) echo "arguments: $*"; exit 9;;
esac
"#;

/// Collects, as the one inside Nsight Compute does: `--output` is ignored, and only a stream is left, somewhere else.
const NSYS_THAT_LEAVES_A_STREAM: &str = r#"
case "$1" in
--version) echo "NVIDIA Nsight Systems version 2025.3.1.0"; exit 0;;
profile)
    shift 6; "$@" || exit $?
    cp "$FIXTURES/trace.sqlite" "$FIXTURES/nsys-report-3c8c.qdstrm"
    echo "Importer error status: An unknown error occurred." >&2
    echo "Generating '$FIXTURES/nsys-report-3c8c.qdstrm'"
    printf 'Generated:\n\t%s\n' "$FIXTURES/nsys-report-3c8c.qdstrm";;
export) cp "$5" "${4#--output=}";;
esac
"#;

/// Turns a stream into a report, if it was given what it needs.
const IMPORTER: &str = r#"
[ -n "$LD_TRACE_LOADED_OBJECTS" ] && exit 0
[ "$1 $3 $5" = "-i -o -f" ] || { echo "arguments: $*"; exit 9; }
cp "$2" "$4"
"#;

/// Profiles: checks its arguments, runs the program, and leaves a report, which it prints as it was printed on an H200.
const NCU_THAT_WORKS: &str = r#"
[ "$1" = --version ] && { echo "Version 2025.3.1.0 (build 36398880) (public-release)"; exit 0; }
[ "$LC_ALL" = C ] || { echo "locale $LC_ALL"; exit 9; }
if [ "$1" = --import ]; then
    [ "$3 $4 $5 $6 $7" = "--page raw --csv --print-units base" ] || { echo "arguments: $*"; exit 9; }
    cat "$2"; exit 0
fi
[ "$1 $2 $3" = "--nvtx --nvtx-include ch01@measure/" ] || { echo "arguments: $*"; exit 9; }
case " $* " in *" --clock-control none "*) ;; *) echo "would change clocks"; exit 9;; esac
while [ "$1" != --export ]; do shift; done
report="$2"; shift 2
"$@" || exit $?
cat "$FIXTURES/ncu.txt"
cp "$FIXTURES/$(basename "$report").csv" "$report.ncu-rep"
"#;

/// The chapter, with the name in it by which a program with ranges is known.
const PROGRAM_WITH_RANGES: &str = r#"
# NVTX_INJECTION64_PATH
[ "$*" = "--device gpu --once" ] || [ "$*" = "--device gpu --once four-steps" ] || { echo "arguments: $*"; exit 9; }
echo ran
"#;

/// An unpacked bundle with a chapter, its record, and tools on a path of their own.
struct Machine {
    root: TempDir,
}

impl Machine {
    /// With a GPU and a record of it, and no tools yet.
    fn new() -> Self {
        let machine = Self { root: tempfile::tempdir().unwrap() };
        machine.write("bundle/manifest.json", r#"{"commit": "0123abc", "dirty": false}"#);
        fs::create_dir_all(machine.path("bundle/bin")).unwrap();
        fs::copy(env!("CARGO_BIN_EXE_profile"), machine.path("bundle/bin/profile")).unwrap();
        machine.script(&format!("bundle/bin/{CHAPTER}"), PROGRAM_WITH_RANGES);
        machine.script("tools/nvidia-smi", "echo 'GPU 0: NVIDIA H200 (UUID: GPU-0)'");
        let sqlite = rusqlite::Connection::open(machine.path("trace.sqlite")).unwrap();
        sqlite.execute_batch(NSYS).unwrap();
        machine.write("ncu.txt", "==PROF== Connected to process 858\n");
        machine.write("kernels.csv", KERNELS);
        machine.write("operations.csv", OPERATIONS);
        machine.record(record_of("NVIDIA H200", false));
        machine
    }

    fn with_both_tools() -> Self {
        let machine = Self::new();
        machine.script("tools/nsys", NSYS_THAT_WORKS);
        machine.script("tools/ncu", NCU_THAT_WORKS);
        machine
    }

    fn path(&self, path: &str) -> PathBuf {
        self.root.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let file = self.path(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(file, text).unwrap();
    }

    fn script(&self, path: &str, text: &str) {
        self.write(path, &format!("#!/bin/sh\n{text}"));
        fs::set_permissions(self.path(path), fs::Permissions::from_mode(0o755)).unwrap();
    }

    fn record_file(&self) -> PathBuf {
        self.path(&format!("bundle/results/records/{CHAPTER}/record.json"))
    }

    fn record(&self, record: Record) {
        record.save(&self.record_file()).unwrap();
    }

    fn profile(&self) -> Profile {
        Record::load(&self.record_file()).unwrap().unwrap().profile.unwrap()
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let path = format!("{}:/usr/bin:/bin", self.path("tools").display());
        let mut command = Command::new(self.path("bundle/bin/profile"));
        command
            .args(arguments)
            .current_dir(self.root.path())
            .env("PATH", path)
            .env("FIXTURES", self.root.path())
            .env("LC_ALL", "de_DE.UTF-8")
            .env_remove("LADDER_LIBRARY_PATH")
            .env_remove("CONDA_PREFIX")
            .env_remove("CUDA_HOME")
            .env_remove("CUDA_PATH");
        command
    }

    #[track_caller]
    fn succeeds(&self, arguments: &[&str]) -> String {
        let output = self.run(arguments);
        let (out, err) = said(&output);
        assert!(output.status.success(), "{out}\n{err}");
        out
    }

    #[track_caller]
    fn fails(&self, arguments: &[&str], because: &str) {
        let output = self.run(arguments);
        let (out, err) = said(&output);
        assert_eq!(output.status.code(), Some(1), "{out}\n{err}");
        assert!(err.contains(because), "{out}\n{err}");
    }
}

fn said(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

fn record_of(device: &str, emulated: bool) -> Record {
    let ceiling = Value {
        name: "dram_ceiling".into(),
        kind: Kind::Measured,
        unit: "GB/s".into(),
        point: 4300.0.into(),
        note: String::new(),
    };
    Record {
        schema: SCHEMA,
        chapter: CHAPTER.into(),
        status: Status::Complete,
        provenance: Provenance { device: device.into(), emulated, ..Provenance::default() },
        inputs: Vec::new(),
        cells: vec![Cell {
            id: "copy".into(),
            title: "Copy".into(),
            seconds: 0.0,
            order_dependent: false,
            outputs: vec![record::Output::Value(ceiling)],
        }],
        profile: None,
    }
}

fn ids(profile: &Profile) -> Vec<&str> {
    profile.cells.iter().map(|cell| cell.id.as_str()).collect()
}

/// Nothing that is published may name this machine's folders.
fn names_no_folder(machine: &Machine) {
    let root = machine.root.path().display().to_string();
    for file in [machine.record_file(), machine.record_file().with_file_name("trace.json")] {
        let text = fs::read_to_string(&file).unwrap();
        assert!(!text.contains(&root), "{} names {root}", file.display());
    }
}

#[test]
fn both_tools_make_a_whole_profile() {
    let machine = Machine::with_both_tools();
    let out = machine.succeeds(&["ch01"]);
    assert!(out.contains("measure / kernel.vector_add"), "{out}");
    let profile = machine.profile();
    assert_eq!(ids(&profile), ["timeline", "kernels", "speed-of-light", "stalls", "roofline"]);
    assert_eq!(profile.tools["Nsight Systems"], "2025.3.1.0");
    assert_eq!(profile.tools["Nsight Compute"], "2025.3.1.0");
    assert_eq!((profile.commit.as_str(), profile.dirty), ("0123abc", false));
    assert!(
        profile.commands[0].starts_with("LC_ALL=C nsys profile --trace=cuda,nvtx"),
        "{:?}",
        profile.commands
    );
    // The chapter's own ceiling is in its roofline.
    assert!(profile.cells[4].series("measured_roof").is_some());
    names_no_folder(&machine);
    // The large export is gone, the report is kept.
    let reports = machine.path(&format!("bundle/profiles/{CHAPTER}"));
    let session = fs::read_dir(reports).unwrap().next().unwrap().unwrap().path();
    assert!(session.join("timeline.nsys-rep").is_file());
    assert!(!session.join("timeline.sqlite").exists());
}

#[test]
fn one_half_leaves_the_other_in_place() {
    let machine = Machine::with_both_tools();
    machine.succeeds(&["ch01", "--kernels"]);
    assert_eq!(ids(&machine.profile()), ["kernels", "speed-of-light", "stalls", "roofline"]);
    machine.succeeds(&["ch01", "four-steps", "--timeline"]);
    let profile = machine.profile();
    assert_eq!(profile.cells.len(), 5);
    assert_eq!(profile.tools.len(), 2);
    assert!(
        profile.commands.iter().any(|line| line.ends_with("--once four-steps")),
        "{:?}",
        profile.commands
    );
    machine.succeeds(&["ch01", "--timeline"]);
    assert_eq!(machine.profile().cells.len(), 5);
}

#[test]
fn a_stream_is_turned_into_a_report() {
    let machine = Machine::new();
    machine.script("tools/opt/target-linux-x64/nsys", NSYS_THAT_LEAVES_A_STREAM);
    std::os::unix::fs::symlink(machine.path("tools/opt/target-linux-x64/nsys"), machine.path("tools/nsys"))
        .unwrap();
    machine.fails(&["ch01", "--timeline"], "no QdstrmImporter");
    machine.script("tools/opt/host-linux-x64/QdstrmImporter", IMPORTER);
    machine.succeeds(&["ch01", "--timeline"]);
    let profile = machine.profile();
    assert!(
        profile.commands[1].contains("QdstrmImporter -i nsys-report-3c8c.qdstrm"),
        "{:?}",
        profile.commands
    );
    assert!(!machine.path("nsys-report-3c8c.qdstrm").exists());
    names_no_folder(&machine);
}

/// A real program that copies its second argument to its fourth, and needs a library that the loader does not find: what
/// the loader lists can only be had from one.
const IMPORTER_IN_C: &str = r#"
#include <stdio.h>
int dw(void);
int main(int count, char **arguments) {
    FILE *from = fopen(arguments[2], "rb"), *to = fopen(arguments[4], "wb");
    for (int c; (c = fgetc(from)) != EOF;) fputc(c, to);
    fclose(to);
    return dw();
}
"#;

#[test]
fn an_importer_without_its_libraries_is_told_apart() {
    let machine = Machine::new();
    machine.script("tools/opt/target-linux-x64/nsys", NSYS_THAT_LEAVES_A_STREAM);
    std::os::unix::fs::symlink(machine.path("tools/opt/target-linux-x64/nsys"), machine.path("tools/nsys"))
        .unwrap();
    machine.write("importer.c", IMPORTER_IN_C);
    machine.write("dw.c", "int dw(void) { return 0; }");
    fs::create_dir_all(machine.path("libraries")).unwrap();
    fs::create_dir_all(machine.path("tools/opt/host-linux-x64")).unwrap();
    for command in [
        "cc -shared -Wl,-soname,libdw-of-this-test.so.1 -o libraries/libdw-of-this-test.so.1 dw.c",
        "cc -o tools/opt/host-linux-x64/QdstrmImporter importer.c libraries/libdw-of-this-test.so.1",
    ] {
        let built =
            Command::new("sh").args(["-c", command]).current_dir(machine.root.path()).output().unwrap();
        assert!(built.status.success(), "{}", said(&built).1);
    }
    machine.fails(&["ch01", "--timeline"], "libdw-of-this-test.so.1 not found");
    machine.fails(&["ch01", "--timeline"], "LADDER_LIBRARY_PATH=FOLDER/usr/lib/");

    let libraries = machine.path("libraries");
    let output =
        machine.command(&["ch01", "--timeline"]).env("LADDER_LIBRARY_PATH", libraries).output().unwrap();
    assert!(output.status.success(), "{:?}", said(&output));
    assert_eq!(ids(&machine.profile()), ["timeline"]);
    names_no_folder(&machine);
}

#[test]
fn counters_that_may_not_be_read_leave_the_timeline() {
    let machine = Machine::with_both_tools();
    let refusal = "==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters";
    machine.script(
        "tools/ncu",
        &format!(
            "[ \"$1\" = --version ] && {{ echo Version 2025.3.1.0; exit 0; }}\necho '{refusal}'; exit 1"
        ),
    );
    machine.succeeds(&["ch01"]);
    let profile = machine.profile();
    assert_eq!(ids(&profile), ["timeline", "kernels"]);
    let record::Output::Text(Text { text, .. }) = &profile.cells[1].outputs[0] else { panic!() };
    assert!(
        text.starts_with("not collected (") && text.contains("NVreg_RestrictProfilingToAdminUsers=0"),
        "{text}"
    );
    // Asked for alone, it is an error.
    machine.fails(&["ch01", "--kernels"], "ERR_NVGPUCTRPERM");
}

#[test]
fn no_kernel_in_the_range_says_so() {
    let machine = Machine::with_both_tools();
    machine.write("ncu.txt", "==PROF== Connected to process 1\n==WARNING== No kernels were profiled.\n");
    machine.fails(&["ch01", "--kernels"], "no kernel was launched inside a push/pop range `measure`");
}

#[test]
fn numbers_of_another_locale_store_nothing() {
    let machine = Machine::with_both_tools();
    machine.write("kernels.csv", &KERNELS.replace("\"134235648\"", "\"134.235.648\""));
    let before = fs::read(machine.record_file()).unwrap();
    machine.fails(&["ch01", "--kernels"], "LC_ALL=C");
    assert_eq!(fs::read(machine.record_file()).unwrap(), before);
}

#[test]
fn a_program_that_fails_is_no_profile() {
    let machine = Machine::with_both_tools();
    machine.script(
        &format!("bundle/bin/{CHAPTER}"),
        "# NVTX_INJECTION64_PATH\necho 'out of memory: 3 GB asked for'; exit 3",
    );
    machine.fails(&["ch01", "--timeline"], "out of memory: 3 GB asked for");
    machine.fails(&["ch01", "--kernels"], "out of memory: 3 GB asked for");
}

#[test]
fn an_export_of_nothing_is_no_profile() {
    let machine = Machine::with_both_tools();
    machine.write("trace.sqlite", "");
    machine.fails(&["ch01", "--timeline"], "holds no table");
}

#[test]
fn a_program_without_ranges_is_refused_before_it_is_run() {
    let machine = Machine::with_both_tools();
    machine.script(&format!("bundle/bin/{CHAPTER}"), "touch \"$FIXTURES/was-run\"");
    machine.fails(&["ch01"], "was built without NVTX ranges");
    assert!(!machine.path("was-run").exists());
}

#[test]
fn a_profile_needs_a_run_of_the_same_gpu() {
    let machine = Machine::with_both_tools();
    machine.record(record_of("NVIDIA A100-SXM4-80GB", false));
    machine.fails(&["ch01"], "is of NVIDIA A100-SXM4-80GB, the profile of NVIDIA H200");
    machine.record(record_of("NVIDIA H200 (emulated)", true));
    machine.fails(&["ch01"], "one of the emulated GPU");
    fs::remove_file(machine.record_file()).unwrap();
    machine.fails(&["ch01"], "run the chapter first");
}

#[test]
fn a_record_of_other_sources_is_refused() {
    let machine = Machine::with_both_tools();
    let input = |hash: &str| Input {
        kind: InputKind::Source,
        name: "chapters/ch01/src/lib.rs".into(),
        hash: hash.into(),
    };
    let manifest = serde_json::json!({"chapters": {CHAPTER: {"inputs": [input("1")], "profile": {"timeline": ["four-steps"]}}}});
    machine.write("bundle/manifest.json", &manifest.to_string());
    let record = |hash| Record { inputs: vec![input(hash)], ..record_of("NVIDIA H200", false) };
    machine.record(record("2"));
    machine.fails(&["ch01"], "is stale, because chapters/ch01/src/lib.rs is another one in this bundle");
    machine.record(record("1"));
    machine.succeeds(&["ch01"]);
    let profile = machine.profile();
    assert_eq!(profile.inputs, [input("1")]);
    // The cells that the manifest names are what a profiler looks at.
    assert!(profile.commands[0].ends_with("--device gpu --once four-steps"), "{:?}", profile.commands);
}

#[test]
fn what_is_missing_is_said_with_what_there_is_instead() {
    let machine = Machine::new();
    // Not through the program, which would find what this machine has installed elsewhere.
    let places = Places {
        path: vec![machine.path("tools")],
        roots: Vec::new(),
        libraries: Vec::new(),
        devices: Vec::new(),
    };
    let says = |timeline, kernels| {
        let request = Request {
            chapter: "ch01".into(),
            cells: Vec::new(),
            timeline,
            kernels,
            dry_run: false,
            record: None,
            launches: 100,
        };
        let home = Home::Bundle(machine.path("bundle"));
        format!("{:#}", profile::run(&request, &home, &places).unwrap_err())
    };
    assert!(says(true, true).contains("the best there is here are the CUDA-event times"));
    assert!(says(true, false).starts_with("Nsight Systems (nsys) is not on this machine"));
    assert!(says(false, true).starts_with("Nsight Compute (ncu) is not on this machine"));
    machine.script("tools/nvidia-smi", "echo 'No devices were found'; exit 6");
    assert!(says(true, true).starts_with("this machine has no NVIDIA GPU"));
}

#[test]
fn one_tool_is_better_than_none() {
    let machine = Machine::new();
    machine.script("tools/nsys", NSYS_THAT_WORKS);
    machine.succeeds(&["ch01", "--timeline"]);
    assert_eq!(ids(&machine.profile()), ["timeline"]);
}

#[test]
fn a_dry_run_prints_what_it_would_do_and_does_nothing() {
    let machine = Machine::with_both_tools();
    let out = machine.succeeds(&["ch01", "--dry-run"]);
    let lines: Vec<_> = out.lines().collect();
    assert_eq!(lines.len(), 6, "{out}");
    assert!(lines[0].contains("/nsys profile --trace=cuda,nvtx"), "{out}");
    assert!(lines[2].contains("/ncu --nvtx --nvtx-include ch01@measure/"), "{out}");
    assert!(lines[2].ends_with(&format!("{CHAPTER} --device gpu --once")), "{out}");
    assert!(lines[5].ends_with("/operations.ncu-rep --page raw --csv --print-units base"), "{out}");
    assert!(!machine.path("bundle/profiles").exists());
}

#[test]
fn the_doctor_answers_on_any_machine() {
    let machine = Machine::with_both_tools();
    let output = machine.run(&["doctor"]);
    let (out, err) = said(&output);
    assert!(matches!(output.status.code(), Some(0 | 1)), "{out}\n{err}");
    assert!(out.contains("nsys") && out.contains("2025.3.1.0 at "), "{out}");
    assert!(out.contains("timelines"), "{out}");
    assert_eq!(err, "");
}
