//! Builds the examples of cudarc, unmodified, from where Cargo keeps its source.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::Mutex,
};

/// The features that this workspace uses cudarc with.
const FEATURES: &str = r#"["std", "driver", "nvrtc", "cuda-12020", "fallback-dynamic-loading"]"#;

/// The folder of cudarc's source.
pub(crate) fn source() -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    // Without a platform, cargo would fetch what other systems need.
    let version = run(Command::new("rustc").arg("-vV").current_dir(folder));
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).expect("rustc names its host");
    let metadata = cargo(&["metadata", "--format-version=1", "--locked", "--filter-platform", host], folder);
    let metadata: serde_json::Value = serde_json::from_str(&metadata).expect("cargo metadata is JSON");
    let packages = metadata["packages"].as_array().expect("there are packages");
    let cudarc =
        packages.iter().find(|package| package["name"] == "cudarc").expect("the workspace uses cudarc");
    let manifest = Path::new(cudarc["manifest_path"].as_str().expect("a path is a string"));
    manifest.parent().expect("a manifest is in a folder").to_owned()
}

/// The program of an example, built in a workspace of its own below `folder`.
pub(crate) fn build(folder: &Path, example: &str) -> PathBuf {
    // Tests of one process would wait for each other's cargo anyway.
    static BUILDING: Mutex<()> = Mutex::new(());
    let _building = BUILDING.lock().unwrap_or_else(|poisoned| poisoned.into_inner());

    let source = source();
    let workspace =
        Path::new(env!("CARGO_MANIFEST_DIR")).ancestors().find(|above| above.join("Cargo.lock").is_file());
    let lock = workspace.expect("the workspace has a lock file").join("Cargo.lock");
    let folder = folder.join("cudarc-examples");
    fs::create_dir_all(folder.join("src")).expect("the folder for temporary files can be written");
    // The versions of the workspace, which are there already.
    fs::copy(lock, folder.join("Cargo.lock")).expect("the lock file can be copied");
    fs::write(folder.join("src/lib.rs"), "").expect("the folder can be written");
    let mut manifest = format!(
        "[package]\nname = \"cudarc-examples\"\nversion = \"0.0.0\"\nedition = \"2021\"\n\n[workspace]\n\n\
         [profile.dev]\ndebug = false\n\n\
         [dependencies]\ncudarc = {{ version = \"=0.19.10\", default-features = false, features = {FEATURES} }}\n"
    );
    let examples = fs::read_dir(source.join("examples")).expect("cudarc has examples");
    let mut names: Vec<String> = examples
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|extension| extension == "rs"))
        .filter_map(|path| Some(path.file_stem()?.to_str()?.to_owned()))
        .collect();
    names.sort();
    for name in names {
        let path = source.join("examples").join(&name).with_extension("rs");
        manifest.push_str(&format!("\n[[example]]\nname = {name:?}\npath = {path:?}\n"));
    }
    fs::write(folder.join("Cargo.toml"), manifest).expect("the folder can be written");
    cargo(&["build", "--example", example, "--target-dir", "target"], &folder);
    folder.join("target/debug/examples").join(example)
}

fn cargo(arguments: &[&str], folder: &Path) -> String {
    let mut command = Command::new(env!("CARGO"));
    // Settings of the cargo that runs this test are not for the other workspace.
    run(command.args(arguments).current_dir(folder).env_remove("CARGO_TARGET_DIR").env_remove("RUSTFLAGS"))
}

fn run(command: &mut Command) -> String {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}
