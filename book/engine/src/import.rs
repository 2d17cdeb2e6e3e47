//! `cargo book import`: brings a bundle's results back, after checking them against its manifest.
//!
//! An archive is somebody's file from another machine. Only the files that `run.sh` packs are taken, nothing is unpacked where
//! a path in the archive says, and nothing is placed before everything is checked.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::Read;
use std::path::{Component, Path};

use anyhow::{Context, Result, bail, ensure};
use flate2::read::GzDecoder;
use record::{Input, InputKind, Record, Status, inputs};

use crate::bundle::{BundledChapter, Manifest, SCHEMA};
use crate::check::{Machine, private};
use crate::root::Root;
use crate::run;

/// More than any results; a compressed archive may claim to hold anything.
const LIMIT: u64 = 200_000_000;

/// Checks the archive and places its records among the committed ones. Returns what was done, a line each.
///
/// # Errors
/// Anything that is not as a bundle of this repository would have made it; nothing has been placed then.
pub fn import(root: &Root, archive: &Path) -> Result<Vec<String>> {
    let files = read(archive).with_context(|| format!("reading {}", archive.display()))?;
    let manifest = manifest(&files)?;
    check_manifest(root, &manifest)?;
    check_sums(&files)?;
    let records = records(root, &files, &manifest)?;
    ensure!(!records.is_empty(), "the archive holds no records: was anything recorded?");
    let mut report = Vec::new();
    for (chapter, record) in records {
        let stale = inputs::changes(&root.path, &chapter, &record.inputs);
        let path = run::place(root, record)?;
        report.push(format!("placed {}", root.relative(&path)));
        if let Some(trace) = files.get(&format!("records/{chapter}/trace.json")) {
            let beside = path.with_file_name("trace.json");
            fs::write(&beside, trace).with_context(|| format!("writing {}", beside.display()))?;
            report.push(format!("placed {}", root.relative(&beside)));
        }
        if let Some(change) = stale.first() {
            report.push(format!("warning: {chapter} is stale already, because {change}"));
        }
    }
    for (name, text) in files.iter().filter(|(name, _)| name.starts_with("bench/")) {
        report.push(format!("{name}:\n{}", String::from_utf8_lossy(text).trim_end()));
    }
    Ok(report)
}

type Files = BTreeMap<String, Vec<u8>>;

fn read(archive: &Path) -> Result<Files> {
    let unpacked = GzDecoder::new(File::open(archive)?).take(LIMIT);
    let mut archive = tar::Archive::new(unpacked);
    let mut files = Files::new();
    for entry in archive.entries().context("it is no .tar.gz")? {
        let mut entry = entry.context("it is no .tar.gz, or it is cut off")?;
        let path = entry.path()?.into_owned();
        let name = plain_name(&path)
            .with_context(|| format!("it holds {}, which leads elsewhere", path.display()))?;
        let kind = entry.header().entry_type();
        if kind.is_dir() {
            continue;
        }
        ensure!(kind.is_file(), "it holds {name}, which is no plain file");
        ensure!(is_expected(&name), "it holds {name}, which run.sh does not pack");
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).with_context(|| format!("{name} is cut off"))?;
        ensure!(bytes.len() as u64 == entry.header().size()?, "{name} is cut off");
        ensure!(files.insert(name.clone(), bytes).is_none(), "it holds {name} twice");
    }
    Ok(files)
}

/// A relative path without `..`, with `/`.
fn plain_name(path: &Path) -> Option<String> {
    let mut parts = Vec::new();
    for part in path.components() {
        match part {
            Component::Normal(part) => parts.push(part.to_str()?),
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(parts.join("/"))
}

fn is_expected(name: &str) -> bool {
    match name.split('/').collect::<Vec<_>>()[..] {
        ["manifest.json" | "SHA256SUMS"] => true,
        ["records", _, "record.json" | "trace.json"] => true,
        ["bench", file] => file.ends_with(".txt"),
        _ => false,
    }
}

fn manifest(files: &Files) -> Result<Manifest> {
    let bytes = files.get("manifest.json").context("the archive has no manifest.json")?;
    let json: serde_json::Value = serde_json::from_slice(bytes).context("reading manifest.json")?;
    let schema = json["schema"].as_u64();
    ensure!(
        schema == Some(u64::from(SCHEMA)),
        "manifest.json has another layout than this program reads ({SCHEMA}): import it with the commit that made the bundle"
    );
    serde_json::from_value(json).context("reading manifest.json")
}

/// The bundle was made from a commit that is here, and its sources are those of that commit (of a dirty one, those of now).
fn check_manifest(root: &Root, manifest: &Manifest) -> Result<()> {
    let commit = &manifest.commit;
    let is_hash = commit.len() >= 40 && commit.bytes().all(|byte| byte.is_ascii_hexdigit());
    let known = is_hash && run::git(root, &["cat-file", "-e", &format!("{commit}^{{commit}}")]).is_some();
    ensure!(known, "the bundle was made from commit `{commit}`, which this repository does not have");
    for (chapter, BundledChapter { inputs: listed, .. }) in &manifest.chapters {
        ensure!(
            root.chapters.iter().any(|known| known.name == *chapter),
            "the bundle holds {chapter}, which is no chapter here"
        );
        for input in listed {
            ensure!(
                source_hash(root, manifest, input).as_deref() == Some(&input.hash),
                "the bundle's {} is not that of commit {commit}",
                input.name
            );
        }
    }
    Ok(())
}

fn source_hash(root: &Root, manifest: &Manifest, input: &Input) -> Option<String> {
    let path = Path::new(&input.name);
    plain_name(path)?;
    if manifest.dirty {
        return inputs::file(&root.path.join(path)).ok();
    }
    let bytes = run::git_bytes(root, &["show", &format!("{}:{}", manifest.commit, input.name)])?;
    match input.kind {
        InputKind::Source => inputs::rust(std::str::from_utf8(&bytes).ok()?).ok(),
        _ => Some(inputs::sha256(&bytes)),
    }
}

/// What was packed is what arrived.
fn check_sums(files: &Files) -> Result<()> {
    let sums = files.get("SHA256SUMS").context("the archive has no SHA256SUMS")?;
    let sums = std::str::from_utf8(sums).context("reading SHA256SUMS")?;
    let sums: BTreeMap<&str, &str> =
        sums.lines().filter_map(|line| line.split_once("  ")).map(|(hash, name)| (name, hash)).collect();
    for (name, bytes) in
        files.iter().filter(|(name, _)| !matches!(name.as_str(), "SHA256SUMS" | "manifest.json"))
    {
        let hash = inputs::sha256(bytes);
        ensure!(
            sums.get(name.as_str()) == Some(&hash.as_str()),
            "{name} is not what was packed: its hash differs"
        );
    }
    Ok(())
}

fn records(root: &Root, files: &Files, manifest: &Manifest) -> Result<Vec<(String, Record)>> {
    let scratch = tempfile::tempdir().context("making a temporary folder")?;
    let mut records = Vec::new();
    for (name, bytes) in files {
        let ["records", chapter, file] = name.split('/').collect::<Vec<_>>()[..] else { continue };
        let json = serde_json::from_slice(bytes).with_context(|| format!("reading {name}"))?;
        if let Some(what) = private(&json, &Machine::this()).first() {
            bail!("{name}: {what}");
        }
        if file != "record.json" {
            continue;
        }
        // Through a file, because that is where half-written and foreign records are told apart.
        let path = scratch.path().join("record.json");
        fs::write(&path, bytes).with_context(|| format!("writing {}", path.display()))?;
        let record =
            Record::load(&path).map_err(|error| anyhow::anyhow!("{name}: {}", error.root_cause()))?;
        let record = record.with_context(|| format!("{name} has gone"))?;
        check_record(root, chapter, &record, manifest).with_context(|| name.clone())?;
        records.push((chapter.to_owned(), record));
    }
    Ok(records)
}

fn check_record(root: &Root, chapter: &str, record: &Record, manifest: &Manifest) -> Result<()> {
    ensure!(root.chapters.iter().any(|known| known.name == chapter), "there is no chapter {chapter}");
    ensure!(record.chapter == chapter, "it is a record of {}", record.chapter);
    let Some(bundled) = manifest.chapters.get(chapter) else { bail!("the bundle holds no {chapter}") };
    match &record.status {
        Status::Complete => {}
        Status::Failed { cell, message } => bail!("the run failed in cell {cell}: {message}"),
        Status::Running { cell, .. } | Status::Interrupted { cell } => {
            bail!("the run stopped in cell {cell}")
        }
    }
    ensure!(
        !record.provenance.emulated,
        "it was made on the emulated GPU, whose records are made in the repository"
    );
    ensure!(!record.quick(), "it was made with --quick: record it at full size");
    ensure!(
        record.provenance.commit == manifest.commit && record.provenance.dirty == manifest.dirty,
        "it says that it was built from another commit than the bundle"
    );
    let profiled = record.profile.iter().map(|profile| &profile.inputs);
    for inputs in std::iter::once(&record.inputs).chain(profiled) {
        let own = inputs.iter().filter(|input| matches!(input.kind, InputKind::Source | InputKind::Data));
        let own: Vec<&Input> = own.collect();
        for input in &bundled.inputs {
            ensure!(own.contains(&input), "its {} is not the bundle's", input.name);
        }
    }
    for cell in record.all_cells() {
        cell.check().with_context(|| format!("cell {}", cell.id))?;
    }
    Ok(())
}
