//! `cargo book bundle`: one archive for a GPU machine that has no Rust.
//!
//! It holds the programs of chapters, benches and `profile`, the emulated GPU, the Python and C++ peers, `run.sh`, and a
//! manifest with the hashes that results are checked against when they come back.

mod manifest;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};
use compiler::libclang;
use flate2::Compression;
use flate2::write::GzEncoder;
use record::inputs;
use serde::Deserialize;

use crate::root::Root;
use crate::run;

pub use manifest::{BundledChapter, Manifest, SCHEMA};

/// What an archive may weigh.
const LIMIT: u64 = 40_000_000;

const RUN_SH: &str = include_str!("bundle/run.sh");

/// Builds everything that goes in, packs it below the target folder, and returns the archive's path.
///
/// # Errors
/// When something does not build, or the archive is heavier than 40 MB.
pub fn bundle(root: &Root) -> Result<PathBuf> {
    let commit = run::commit(root).unwrap_or_default();
    let dirty = run::is_dirty(root);
    if dirty {
        eprintln!(
            "warning: tracked files differ from commit {}, and the manifest will say so",
            short(&commit)
        );
    }
    let built = build(root)?;
    let name = format!("cuda-ladder-{}{}", short(&commit), if dirty { "-dirty" } else { "" });
    let target = run::target_folder(root)?;
    let folder = target.join("bundle").join(&name);
    if folder.exists() {
        fs::remove_dir_all(&folder).with_context(|| format!("emptying {}", folder.display()))?;
    }
    fs::create_dir_all(folder.join("bin")).with_context(|| format!("making {}", folder.display()))?;
    for (name, file) in &built.programs {
        copy(file, &folder.join("bin").join(name))?;
        strip(&folder.join("bin").join(name));
    }
    copy_peers(root, &folder)?;
    for name in ["LICENSE-APACHE", "LICENSE-MIT", "NOTICE", "kernels/NOTICE"] {
        let file = root.path.join(name);
        if file.is_file() {
            copy(&file, &folder.join(name.replace('/', "-")))?;
        }
    }
    write(&folder.join("run.sh"), RUN_SH.as_bytes(), 0o755)?;
    let manifest = Manifest {
        schema: SCHEMA,
        commit,
        dirty,
        rustc: rustc_version()?,
        date: record::now(),
        chapters: chapters(root, &built)?,
        programs: hashes(&folder, "bin")?,
        crates: crates(root)?,
    };
    let text = serde_json::to_string_pretty(&manifest).context("writing the manifest")? + "\n";
    write(&folder.join("manifest.json"), text.as_bytes(), 0o644)?;
    write(&folder.join("SHA256SUMS"), sums(&folder)?.as_bytes(), 0o644)?;
    let archive = target.join("bundle").join(format!("{name}.tar.gz"));
    pack(&folder, &name, &archive)?;
    let size = fs::metadata(&archive).with_context(|| format!("reading {}", archive.display()))?.len();
    println!("{}: {}", root.relative(&archive), record::format::quantity(size as f64, "B"));
    if size > LIMIT {
        fs::remove_file(&archive).with_context(|| format!("removing {}", archive.display()))?;
        bail!(
            "the archive weighs {size} bytes and may weigh {LIMIT}: something in {} has grown",
            folder.display()
        );
    }
    println!("On the GPU machine: tar xzf {name}.tar.gz && {name}/run.sh record");
    Ok(archive)
}

/// What was built: files by the names that they have in `bin`.
struct Built {
    programs: BTreeMap<String, PathBuf>,
    /// The chapters' programs where Cargo left them, with their dep-info beside.
    chapters: BTreeMap<String, PathBuf>,
    nvtx: bool,
}

fn build(root: &Root) -> Result<Built> {
    let mut command = run::cargo(root);
    command.args([
        "build",
        "--message-format=json-render-diagnostics",
        "--package",
        "profile",
        "--bin",
        "profile",
    ]);
    command.args(["--package", "emulator", "--lib"]);
    for chapter in &root.chapters {
        command.args(["--package", &chapter.name, "--bin", &chapter.name]);
    }
    let benches = benches(root)?;
    for (_, bench) in &benches {
        command.args(["--bench", bench]);
    }
    // A profile is half of what a bundle is for, and it needs ranges: here libclang is worth a download.
    let libclang = libclang::find_or_fetch();
    match &libclang {
        Ok(libclang) => {
            let chapters = root.chapters.iter().map(|chapter| chapter.name.as_str());
            run::with_ranges(&mut command, chapters, libclang);
        }
        Err(error) => {
            eprintln!(
                "warning: the programs have no NVTX ranges, so `run.sh profile` will refuse them: {error:#}"
            )
        }
    }
    let nvtx = libclang.is_ok();
    let output =
        command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().context("starting cargo build")?;
    if !output.status.success() {
        bail!("cargo build failed; its words are above");
    }
    let messages = String::from_utf8_lossy(&output.stdout);
    let mut built = Built { programs: BTreeMap::new(), chapters: BTreeMap::new(), nvtx };
    for artifact in artifacts(&messages) {
        match &artifact {
            Artifact { kind, package, target, executable: Some(program), .. } => {
                let is_bench = kind == "bench";
                let name = if is_bench { format!("bench.{package}.{target}") } else { target.clone() };
                if root.chapters.iter().any(|chapter| chapter.name == *target) && !is_bench {
                    built.chapters.insert(target.clone(), program.clone());
                }
                built.programs.insert(name, program.clone());
            }
            Artifact { target, files, .. } if target == "emulator" => {
                let library = files.iter().find(|file| file.ends_with("libemulator.so"));
                let library = library.context("cargo built no libemulator.so")?;
                built.programs.insert("libemulator.so".to_owned(), library.clone());
            }
            Artifact { .. } => {}
        }
    }
    for name in root.chapters.iter().map(|chapter| chapter.name.as_str()).chain(["profile", "libemulator.so"])
    {
        if !built.programs.contains_key(name) {
            bail!("cargo built no {name}");
        }
    }
    Ok(built)
}

/// Something that cargo built.
struct Artifact {
    package: String,
    target: String,
    kind: String,
    executable: Option<PathBuf>,
    files: Vec<PathBuf>,
}

fn artifacts(messages: &str) -> Vec<Artifact> {
    let messages = messages.lines().filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok());
    let artifact = |message: serde_json::Value| {
        // `path+file:///…/ch01-raw-kernel#0.0.0`, or `…#name@0.0.0` where the folder has another name.
        let id = message["package_id"].as_str()?;
        let (path, rest) = id.rsplit_once('#')?;
        let package = rest.split_once('@').map_or_else(|| path.rsplit('/').next(), |(name, _)| Some(name))?;
        let files =
            message["filenames"].as_array()?.iter().filter_map(|file| file.as_str().map(PathBuf::from));
        Some(Artifact {
            package: package.to_owned(),
            target: message["target"]["name"].as_str()?.to_owned(),
            kind: message["target"]["kind"][0].as_str()?.to_owned(),
            executable: message["executable"].as_str().map(PathBuf::from),
            files: files.collect(),
        })
    };
    messages.filter_map(artifact).collect()
}

/// The benches of chapters: package and target.
fn benches(root: &Root) -> Result<Vec<(String, String)>> {
    let output = run::cargo(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo metadata")?;
    let metadata: Metadata = serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let chapters = metadata.packages.into_iter();
    let chapters =
        chapters.filter(|package| root.chapters.iter().any(|chapter| chapter.name == package.name));
    let benches = chapters.flat_map(|package| {
        let benches =
            package.targets.into_iter().filter(|target| target.kind.iter().any(|kind| kind == "bench"));
        benches.map(move |target| (package.name.clone(), target.name))
    });
    Ok(benches.collect())
}

#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    targets: Vec<Target>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

fn chapters(root: &Root, built: &Built) -> Result<BTreeMap<String, BundledChapter>> {
    let mut chapters = BTreeMap::new();
    for (name, program) in &built.chapters {
        let dep_info = program.with_extension("d");
        let dep_info =
            fs::read_to_string(&dep_info).with_context(|| format!("reading {}", dep_info.display()))?;
        let manifest = root.path.join("chapters").join(name).join("Cargo.toml");
        let manifest =
            fs::read_to_string(&manifest).with_context(|| format!("reading {}", manifest.display()))?;
        let chapter = BundledChapter {
            inputs: inputs::sources(&root.path, name, &dep_info)?,
            profile: profile(&manifest).with_context(|| format!("reading the manifest of {name}"))?,
            nvtx: built.nvtx,
        };
        chapters.insert(name.clone(), chapter);
    }
    Ok(chapters)
}

/// `[package.metadata.lab] profile`, as `cargo profile` reads it on the other machine.
fn profile(manifest: &str) -> Result<serde_json::Value> {
    let manifest: toml::Value = toml::from_str(manifest)?;
    let metadata = manifest.get("package").and_then(|package| package.get("metadata"));
    let profile = metadata.and_then(|metadata| metadata.get("lab")).and_then(|lab| lab.get("profile"));
    Ok(serde_json::to_value(profile)?)
}

fn copy_peers(root: &Root, folder: &Path) -> Result<()> {
    let peers = root.path.join("tests/peers");
    if !peers.is_dir() {
        return Ok(());
    }
    fs::create_dir_all(folder.join("peers")).context("making the bundle's folder of peers")?;
    for entry in fs::read_dir(&peers).context("listing tests/peers")? {
        let entry = entry?;
        if entry.file_type()?.is_file() {
            copy(&entry.path(), &folder.join("peers").join(entry.file_name()))?;
        }
    }
    Ok(())
}

/// Names and versions of the registry's crates in `Cargo.lock`.
fn crates(root: &Root) -> Result<BTreeMap<String, Vec<String>>> {
    #[derive(Deserialize)]
    struct Lock {
        package: Vec<Locked>,
    }
    #[derive(Deserialize)]
    struct Locked {
        name: String,
        version: String,
        source: Option<String>,
    }
    let text = fs::read_to_string(root.path.join("Cargo.lock")).context("reading Cargo.lock")?;
    let lock: Lock = toml::from_str(&text).context("reading Cargo.lock")?;
    let mut crates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for Locked { name, version, .. } in lock.package.into_iter().filter(|package| package.source.is_some()) {
        crates.entry(name).or_default().push(version);
    }
    Ok(crates)
}

fn rustc_version() -> Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output().context("starting rustc --version")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Without symbols the archive is half as heavy. Where `strip` is missing it may still be light enough.
fn strip(file: &Path) {
    // A library keeps the symbols that programs look up in it.
    let stripped = Command::new("strip").arg("--strip-unneeded").arg(file).status();
    if !stripped.is_ok_and(|status| status.success()) {
        eprintln!("warning: `strip` did not work on {}, which stays as heavy as it is", file.display());
    }
}

/// SHA-256 of the files in a folder of the bundle, by their paths in it.
fn hashes(folder: &Path, part: &str) -> Result<BTreeMap<String, String>> {
    let mut hashes = BTreeMap::new();
    for file in files(&folder.join(part))? {
        let name = file.strip_prefix(folder).unwrap_or(&file).to_string_lossy().into_owned();
        let bytes = fs::read(&file).with_context(|| format!("reading {}", file.display()))?;
        hashes.insert(name, inputs::sha256(&bytes));
    }
    Ok(hashes)
}

/// What `sha256sum --check` reads: every file.
fn sums(folder: &Path) -> Result<String> {
    Ok(hashes(folder, "")?.into_iter().map(|(name, hash)| format!("{hash}  {name}\n")).collect())
}

fn files(folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in walkdir::WalkDir::new(folder).sort_by_file_name() {
        let entry = entry.with_context(|| format!("listing {}", folder.display()))?;
        if entry.file_type().is_file() {
            files.push(entry.into_path());
        }
    }
    Ok(files)
}

/// The same bytes for the same files: no times, no owners.
fn pack(folder: &Path, name: &str, archive: &Path) -> Result<()> {
    let doing = || format!("writing {}", archive.display());
    let file = File::create(archive).with_context(doing)?;
    let mut builder = tar::Builder::new(GzEncoder::new(file, Compression::best()));
    for path in files(folder)? {
        let bytes = fs::read(&path).with_context(|| format!("reading {}", path.display()))?;
        let inside = Path::new(name).join(path.strip_prefix(folder).unwrap_or(&path));
        let mut header = tar::Header::new_gnu();
        header.set_size(bytes.len() as u64);
        header.set_mode(if is_executable(&path) { 0o755 } else { 0o644 });
        header.set_mtime(0);
        builder.append_data(&mut header, inside, &bytes[..]).with_context(doing)?;
    }
    let mut gzip = builder.into_inner().with_context(doing)?;
    gzip.flush().with_context(doing)?;
    gzip.finish().with_context(doing)?;
    Ok(())
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|metadata| metadata.permissions().mode() & 0o100 != 0)
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    fs::copy(from, to).map(|_| ()).with_context(|| format!("copying {} to {}", from.display(), to.display()))
}

fn write(path: &Path, bytes: &[u8], mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let doing = || format!("writing {}", path.display());
    fs::write(path, bytes).with_context(doing)?;
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).with_context(doing)
}

/// The first digits of a commit, as git shows it.
fn short(commit: &str) -> &str {
    if commit.is_empty() { "unknown" } else { commit.get(..10).unwrap_or(commit) }
}
