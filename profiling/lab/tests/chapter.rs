//! A chapter's program as a reader meets it: what it prints, what it leaves behind, how it ends.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

use record::{InputKind, Record, Status};

/// A bundle with the sample chapter, and a folder for its records.
struct Bundle {
    folder: tempfile::TempDir,
}

impl Bundle {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bin = folder.path().join("bin");
        fs::create_dir(&bin).unwrap();
        let deps = std::env::current_exe().unwrap().parent().unwrap().to_owned();
        fs::copy(env!("CARGO_BIN_EXE_ch99-sample"), bin.join("sample")).unwrap();
        fs::copy(deps.join("libemulator.so"), bin.join("libemulator.so")).unwrap();
        let manifest = serde_json::json!({
            "commit": "0123abc",
            "dirty": false,
            "chapters": {"ch99-sample": {"inputs": [
                {"kind": "source", "name": "chapters/ch99-sample/src/lib.rs", "hash": "1"},
            ]}},
        });
        fs::write(folder.path().join("manifest.json"), manifest.to_string()).unwrap();
        Self { folder }
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(self.folder.path().join("bin/sample"));
        command.args(arguments).args(["--device", "emulated"]).env_remove("RUST_BACKTRACE");
        // Links go where the test's own folder ends with it.
        command.env("XDG_CACHE_HOME", self.folder.path());
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        self.command(arguments).output().unwrap()
    }

    /// Runs cells and stores their record.
    fn record(&self, cells: &[&str]) -> Output {
        let records = self.records();
        self.run(&[&["--record", records.to_str().unwrap()], cells].concat())
    }

    fn records(&self) -> PathBuf {
        self.folder.path().join("records")
    }

    fn path(&self) -> PathBuf {
        record::path(&self.records(), "ch99-sample")
    }

    fn read(&self) -> Record {
        Record::load(&self.path()).unwrap().expect("the run has left a record")
    }
}

fn stdout(output: &Output) -> String {
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

#[test]
fn a_run_prints_its_cells_and_records_them() {
    let bundle = Bundle::new();
    let output = bundle.record(&["outputs", "order"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let shown = stdout(&output);
    for words in ["What can a chapter say? on", "1 + 2 = 3", "needs a GPU", "How do squares grow?", "● n²"]
    {
        assert!(shown.contains(words), "{words}: {shown}");
    }

    let record = bundle.read();
    assert_eq!(record.status, Status::Complete);
    let ids: Vec<&str> = record.cells.iter().map(|cell| cell.id.as_str()).collect();
    assert_eq!(ids, ["outputs", "order"]);
    assert!(record.cells[1].order_dependent && !record.cells[0].order_dependent);
    assert_eq!(record.value("outputs.largest").unwrap().point.value, Some(f64::from(1 << 20)));
    assert_eq!(record.value("outputs.call").unwrap().point.value, None);
    assert!(record.value("outputs.sleep").unwrap().point.samples.unwrap() >= 25);

    let inputs: Vec<(InputKind, &str)> =
        record.inputs.iter().map(|input| (input.kind, input.name.as_str())).collect();
    assert_eq!(
        inputs,
        [
            (InputKind::Source, "chapters/ch99-sample/src/lib.rs"),
            (InputKind::Kernel, "sample"),
            (InputKind::Timing, "profiling/lab/src/timing.rs"),
            (InputKind::Parameter, "largest"),
            (InputKind::Parameter, "quick"),
            (InputKind::Library, "cudarc"),
        ]
    );
}

#[test]
fn provenance_tells_the_machine_and_names_nobody() {
    let bundle = Bundle::new();
    bundle.record(&["outputs"]);
    let provenance = bundle.read().provenance;
    assert!(provenance.emulated && provenance.device.contains("Emulated"), "{}", provenance.device);
    assert_eq!((provenance.commit.as_str(), provenance.dirty), ("0123abc", false));
    assert!(provenance.rustc.starts_with("rustc "), "{}", provenance.rustc);
    assert!(provenance.cudarc.starts_with("0.19."), "{}", provenance.cudarc);
    assert_eq!(provenance.arguments, ["outputs", "--device emulated"]);
    assert_eq!(provenance.compute_capability.split('.').count(), 2);

    let text = fs::read_to_string(bundle.path()).unwrap();
    let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let home = std::env::home_dir().unwrap();
    for private in [host.trim(), home.to_str().unwrap(), bundle.records().to_str().unwrap()] {
        assert!(!text.contains(private), "the record holds {private}");
    }
}

#[test]
fn an_error_is_told_with_its_causes_and_recorded() {
    let bundle = Bundle::new();
    let output = bundle.record(&["outputs", "fails"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(
        told.contains("the cell `fails` failed: looking for a reason\n  because: there is none"),
        "{told}"
    );
    let record = bundle.read();
    let Status::Failed { cell, message } = &record.status else { panic!("{:?}", record.status) };
    assert_eq!(cell, "fails");
    assert!(message.starts_with("looking for a reason\nthere is none in"), "{message}");
    assert_eq!(record.cells.len(), 1, "what had finished stays");
}

#[test]
fn a_panic_is_a_failed_cell_without_a_backtrace() {
    let bundle = Bundle::new();
    let output = bundle.record(&["panics"]);
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("the cell `panics` failed: a fact was none ("), "{told}");
    assert!(told.contains("tests/sample/program.rs:"), "{told}");
    assert!(!told.contains("RUST_BACKTRACE") && !told.contains("stack backtrace"), "{told}");
    assert!(matches!(bundle.read().status, Status::Failed { .. }));
}

#[test]
fn a_number_that_is_none_fails_its_cell() {
    let bundle = Bundle::new();
    let output = bundle.record(&["not-a-number"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(stderr(&output).contains("`ratio` is NaN"), "{}", stderr(&output));
    assert!(bundle.read().cells.is_empty());
}

#[test]
fn a_stopped_run_says_so_in_its_record() {
    for signal in [libc::SIGINT, libc::SIGTERM] {
        let bundle = Bundle::new();
        let records = bundle.records();
        let mut child = bundle
            .command(&["order", "waits", "--record", records.to_str().unwrap()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        wait_for(
            &bundle.path(),
            |record| matches!(&record.status, Status::Running { cell, .. } if cell == "waits"),
        );
        // SAFETY: the child has not been waited for, so the id is still its own.
        unsafe { libc::kill(child.id().cast_signed(), signal) };
        assert_eq!(child.wait().unwrap().code(), Some(130));
        let record = bundle.read();
        assert_eq!(record.status, Status::Interrupted { cell: "waits".into() });
        assert_eq!(record.cells.len(), 1, "what had finished stays");
    }
}

#[test]
fn listing_and_misspelling_run_nothing() {
    let bundle = Bundle::new();
    let listed = stdout(&bundle.run(&["--list"]));
    assert!(listed.starts_with("outputs              Say everything\n"), "{listed}");
    let unknown = bundle.run(&["output"]);
    assert_eq!(unknown.status.code(), Some(1));
    assert!(stderr(&unknown).contains("there is no cell `output`; the cells are outputs, order"));
    assert_eq!(bundle.run(&["--quik"]).status.code(), Some(2));
}

#[test]
fn for_profilers_each_loop_runs_once_and_nothing_is_stored() {
    let bundle = Bundle::new();
    let output = bundle.record(&["outputs", "--once"]);
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("nothing is recorded: --once"), "{}", stderr(&output));
    assert!(!bundle.path().exists());
}

#[test]
fn a_gpu_that_is_not_there_is_one_sentence() {
    let bundle = Bundle::new();
    let mut command = Command::new(bundle.folder.path().join("bin/sample"));
    // A machine with a GPU hides it here.
    let output = command.args(["--device", "gpu", "order"]).env("CUDA_VISIBLE_DEVICES", "").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let told = stderr(&output);
    assert!(told.contains("no GPU to run on") && told.contains("leave out `--device gpu`"), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
}

#[test]
fn a_program_that_was_moved_finds_the_emulated_gpu_of_its_build() {
    let folder = tempfile::tempdir().unwrap();
    let bundle = Bundle::new();
    fs::copy(bundle.folder.path().join("bin/sample"), folder.path().join("sample")).unwrap();
    let output = Command::new(folder.path().join("sample"))
        .args(["order", "--no-record", "--device", "emulated"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
}

#[test]
fn who_stops_reading_ends_the_showing_and_not_the_run() {
    let bundle = Bundle::new();
    let records = bundle.records();
    let mut child = bundle
        .command(&["outputs", "order", "--record", records.to_str().unwrap()])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert_eq!(bundle.read().status, Status::Complete);
}

#[test]
fn a_foreign_libcuda_in_the_way_is_passed_by() {
    let bundle = Bundle::new();
    // Like a driver without a device: it opens, and `cuInit` says so.
    let stubs = bundle.folder.path().join("stubs");
    compile(
        "int cuInit(unsigned flags) { return 100; }
         int cuDriverGetVersion(int *version) { *version = 12020; return 0; }
         int cuDeviceGetCount(int *count) { return 100; }
         int cuDeviceGet(int *device, int ordinal) { return 100; }
         int cuDeviceGetName(char *name, int length, int device) { return 100; }
         int cuGetErrorName(int code, const char **name) { *name = \"CUDA_ERROR_NO_DEVICE\"; return 0; }",
        &stubs.join("libcuda.so"),
    );
    for device in ["auto", "emulated"] {
        let output = Command::new(bundle.folder.path().join("bin/sample"))
            .args(["outputs", "--no-record", "--device", device])
            .env("LD_LIBRARY_PATH", &stubs)
            .output()
            .unwrap();
        assert!(output.status.success(), "{device}: {}", stderr(&output));
        assert!(stdout(&output).contains("Emulated"), "{}", stdout(&output));
    }
}

#[test]
fn a_library_of_a_python_package_is_found_and_children_keep_the_readers_path() {
    let bundle = Bundle::new();
    let site = bundle.folder.path().join("site");
    compile(
        "int ncclGetVersion(int *version) { *version = 22000; return 0; }",
        &site.join("nvidia/nccl/lib/libnccl.so.2"),
    );
    for readers in ["", "/nowhere"] {
        let output = bundle
            .command(&["library", "--no-record"])
            .env("PYTHONPATH", &site)
            .env("LD_LIBRARY_PATH", readers)
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stdout(&output).contains(&format!("a child's path is <{readers}>")), "{}", stdout(&output));
    }
}

/// Compiles C into a shared library.
fn compile(source: &str, library: &Path) {
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    let file = library.with_extension("c");
    fs::write(&file, source).unwrap();
    let compiled = Command::new("cc").args(["-shared", "-fPIC", "-o"]).arg(library).arg(file).status();
    assert!(compiled.expect("a bare machine has a C compiler").success());
}

fn wait_for(path: &Path, condition: impl Fn(&Record) -> bool) {
    let begun = Instant::now();
    loop {
        if let Ok(Some(record)) = Record::load(path)
            && condition(&record)
        {
            return;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "the record did not get there");
        std::thread::sleep(Duration::from_millis(10));
    }
}
