use std::fs;
use std::path::Path;

use super::*;

const CHAPTER: &str = "ch99-sample";
const PTX: &str = ".version 8.0\n.visible .entry add(.param .u64 a) { ret; }\n";

/// A repository with one chapter, and the inputs of a run of it.
fn sample() -> (tempfile::TempDir, Vec<Input>) {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path();
    write(
        root,
        "chapters/ch99-sample/Cargo.toml",
        "[package]\nname = \"ch99-sample\"\n[package.metadata.lab]\nlibraries = [\"cudarc\"]\nparameters = { largest = 64 }\n",
    );
    write(root, "chapters/ch99-sample/src/lib.rs", "/// Adds.\nfn add() {}\n");
    write(root, "chapters/ch99-sample/src/words.txt", "one two\n");
    write(root, "profiling/lab/src/timing.rs", "fn time() {}\n");
    write(root, "kernels/ptx/add.ptx", PTX);
    write(root, "Cargo.lock", "[[package]]\nname = \"cudarc\"\nversion = \"0.19.10\"\n");

    let chapter =
        Chapter::parse(&fs::read_to_string(root.join("chapters/ch99-sample/Cargo.toml")).unwrap()).unwrap();
    let lock = fs::read_to_string(root.join("Cargo.lock")).unwrap();
    let at = |name: &str| root.join(name).display().to_string();
    let dep_info = format!(
        "program: {} {} {} {}\n",
        at("chapters/ch99-sample/Cargo.toml"),
        at("chapters/ch99-sample/src/lib.rs"),
        at("chapters/ch99-sample/src/words.txt"),
        at("profiling/lab/src/lib.rs")
    );
    let mut inputs = sources(root, CHAPTER, &dep_info).unwrap();
    inputs.extend(declared(&chapter, &lock, false).unwrap());
    inputs.push(Input { kind: InputKind::Kernel, name: "add".into(), hash: ptx(PTX) });
    inputs.push(Input {
        kind: InputKind::Timing,
        name: TIMING.into(),
        hash: file(&root.join(TIMING)).unwrap(),
    });
    (folder, inputs)
}

fn write(root: &Path, name: &str, text: &str) {
    let path = root.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

#[track_caller]
fn check(name: &str, text: &str, expected: &[&str]) {
    let (folder, inputs) = sample();
    assert_eq!(changes(folder.path(), CHAPTER, &inputs), []);
    write(folder.path(), name, text);
    let said: Vec<String> = changes(folder.path(), CHAPTER, &inputs).iter().map(Change::to_string).collect();
    assert_eq!(said, expected);
}

#[test]
fn the_chapters_own_files_are_inputs_and_nothing_else_of_the_dep_info() {
    let (_folder, inputs) = sample();
    let names: Vec<(InputKind, &str)> =
        inputs.iter().map(|input| (input.kind, input.name.as_str())).collect();
    assert_eq!(
        names,
        [
            (InputKind::Source, "chapters/ch99-sample/src/lib.rs"),
            (InputKind::Data, "chapters/ch99-sample/src/words.txt"),
            (InputKind::Parameter, "largest"),
            (InputKind::Parameter, "quick"),
            (InputKind::Library, "cudarc"),
            (InputKind::Kernel, "add"),
            (InputKind::Timing, TIMING),
        ]
    );
}

#[test]
fn what_cannot_change_a_result_leaves_a_record_fresh() {
    check("chapters/ch99-sample/src/lib.rs", "/// Adds two.\nfn add() { /* nothing */ }\n", &[]);
    check(TIMING, "//! How.\nfn time() {}\n", &[]);
    check("kernels/ptx/add.ptx", &format!("// NVRTC 12.1\n{PTX}"), &[]);
    check("profiling/lab/src/lib.rs", "mod anything;\n", &[]);
}

#[test]
fn what_can_change_a_result_is_named() {
    check(
        "chapters/ch99-sample/src/lib.rs",
        "fn add() { 1; }\n",
        &["chapters/ch99-sample/src/lib.rs has changed"],
    );
    check(
        "chapters/ch99-sample/src/words.txt",
        "three\n",
        &["chapters/ch99-sample/src/words.txt has changed"],
    );
    check(TIMING, "fn time() { 1; }\n", &["profiling/lab/src/timing.rs has changed"]);
    check("kernels/ptx/add.ptx", ".version 8.1\n", &["kernel add has changed"]);
    check(
        "Cargo.lock",
        "[[package]]\nname = \"cudarc\"\nversion = \"0.19.11\"\n",
        &["library cudarc is 0.19.11, was 0.19.10"],
    );
    check(
        "chapters/ch99-sample/Cargo.toml",
        "[package]\nname = \"ch99-sample\"\n[package.metadata.lab]\nparameters = { smallest = 1 }\n",
        &["parameter largest is gone", "parameter smallest is new"],
    );
}

#[test]
fn a_kernel_is_found_in_the_file_that_has_its_entry_and_missed_when_it_is_gone() {
    let (folder, inputs) = sample();
    fs::rename(folder.path().join("kernels/ptx/add.ptx"), folder.path().join("kernels/ptx/sums.ptx"))
        .unwrap();
    assert_eq!(changes(folder.path(), CHAPTER, &inputs), []);
    fs::remove_file(folder.path().join("kernels/ptx/sums.ptx")).unwrap();
    let said = changes(folder.path(), CHAPTER, &inputs);
    assert_eq!(said[0].to_string(), "kernel add is gone");
}
