//! What a result depends on, and whether it has changed since.
//!
//! A record is stale when something that can change its results has changed: not when a comment, a page or the emulated
//! GPU has. So Rust is hashed as [tokens](rust) without comments and documentation, and a kernel as its
//! [PTX](ptx) without comments and line numbers. Nothing is compiled to find out.

mod dep_info;
mod lock;
mod ptx;
mod rust;

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use sha2::{Digest, Sha256};

use crate::chapter::Chapter;
use crate::{Input, InputKind};

pub use dep_info::dep_info;
pub use lock::locked_version;
pub use ptx::ptx;
pub use rust::rust;

/// Where `lab`'s timing module lies: a change of method changes every time.
pub const TIMING: &str = "profiling/lab/src/timing.rs";

/// An input that is no longer what it was.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// What sort of thing it is.
    pub kind: InputKind,
    /// Its name, as in [`Input`].
    pub name: String,
    /// What happened to it.
    pub reason: Reason,
}

/// What happened to an input.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// Its hash is another one.
    Changed,
    /// A parameter or a library has another value.
    Value {
        /// In the record.
        was: String,
        /// Now.
        is: String,
    },
    /// It is no longer there.
    Gone,
    /// It was not there when the record was made.
    New,
    /// It is there and cannot be read.
    Unreadable(String),
}

impl fmt::Display for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = &self.name;
        match self.kind {
            InputKind::Source | InputKind::Timing | InputKind::Data => write!(f, "{name}")?,
            InputKind::Kernel => write!(f, "kernel {name}")?,
            InputKind::Parameter => write!(f, "parameter {name}")?,
            InputKind::Library => write!(f, "library {name}")?,
        }
        match &self.reason {
            Reason::Changed => write!(f, " has changed"),
            Reason::Value { was, is } => write!(f, " is {is}, was {was}"),
            Reason::Gone => write!(f, " is gone"),
            Reason::New => write!(f, " is new"),
            Reason::Unreadable(why) => write!(f, " cannot be read: {why}"),
        }
    }
}

/// What has changed of `recorded`, the inputs of a record of `chapter`, in the repository at `root`. Empty means fresh.
///
/// `quick` is no change: it says how the run was made, see [`Record::quick`](crate::Record::quick).
pub fn changes(root: &Path, chapter: &str, recorded: &[Input]) -> Vec<Change> {
    let declared = Declared::read(root, chapter);
    let mut changes: Vec<Change> = recorded
        .iter()
        .filter_map(|input| {
            let reason = reason(root, &declared, input)?;
            Some(Change { kind: input.kind, name: input.name.clone(), reason })
        })
        .collect();
    // Sources, kernels and data that are new are reached from a source that has changed. Of what the manifest declares
    // that is not so.
    if let Ok(declared) = &declared {
        let parameters = declared.chapter.parameters.keys().map(|name| (InputKind::Parameter, name));
        let libraries = declared.chapter.libraries.iter().map(|name| (InputKind::Library, name));
        for (kind, name) in parameters.chain(libraries) {
            if !recorded.iter().any(|input| input.kind == kind && input.name == *name) {
                changes.push(Change { kind, name: name.clone(), reason: Reason::New });
            }
        }
    }
    changes
}

/// The SHA-256 of bytes, in hexadecimal.
pub fn sha256(bytes: &[u8]) -> String {
    use fmt::Write;
    Sha256::digest(bytes).iter().fold(String::with_capacity(64), |mut hex, byte| {
        // Writing to a string cannot fail.
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The hash of a file: `.rs` as tokens, anything else as its bytes.
///
/// # Errors
/// When it cannot be read, or is no Rust.
pub fn file(path: &Path) -> Result<String> {
    let name = || format!("hashing {}", path.display());
    if path.extension().is_some_and(|extension| extension == "rs") {
        rust(&fs::read_to_string(path).with_context(name)?).with_context(name)
    } else {
        Ok(sha256(&fs::read(path).with_context(name)?))
    }
}

/// The inputs that a chapter declares: its parameters, `quick`, and the locked versions of its rung's libraries.
///
/// # Errors
/// When the lock file names no version of a library.
pub fn declared(chapter: &Chapter, lock_file: &str, quick: bool) -> Result<Vec<Input>> {
    let input = |kind, name: &str, hash: String| Input { kind, name: name.to_owned(), hash };
    let mut inputs: Vec<Input> = chapter
        .parameters
        .iter()
        .map(|(name, value)| input(InputKind::Parameter, name, value.clone()))
        .collect();
    inputs.push(input(InputKind::Parameter, "quick", quick.to_string()));
    for name in &chapter.libraries {
        let version = locked_version(lock_file, name)
            .with_context(|| format!("{} declares the library {name}, Cargo.lock has none", chapter.name))?;
        inputs.push(input(InputKind::Library, name, version));
    }
    Ok(inputs)
}

/// A chapter's own files, hashed, from the dep-info that Cargo left beside its program: those below
/// `root/chapters/<chapter>`, by repository-relative name. Rust is [`InputKind::Source`], anything else
/// [`InputKind::Data`]; the manifest is neither, its parameters and libraries are inputs of their own.
///
/// # Errors
/// When a file cannot be read.
pub fn sources(root: &Path, chapter: &str, dep_info_text: &str) -> Result<Vec<Input>> {
    hashed(root, chapter, dep_info(dep_info_text))
}

/// As [`sources`], for a program without dep-info: every Rust file below the chapter's `src`.
///
/// # Errors
/// When a file or folder cannot be read.
pub fn sources_without_dep_info(root: &Path, chapter: &str) -> Result<Vec<Input>> {
    let mut folders = vec![root.join("chapters").join(chapter).join("src")];
    let mut files = Vec::new();
    while let Some(folder) = folders.pop() {
        let entries =
            fs::read_dir(&folder).with_context(|| format!("reading the folder {}", folder.display()))?;
        for entry in entries {
            let path = entry.with_context(|| format!("reading the folder {}", folder.display()))?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                files.push(path);
            }
        }
    }
    hashed(root, chapter, files)
}

fn hashed(root: &Path, chapter: &str, files: Vec<PathBuf>) -> Result<Vec<Input>> {
    let folder = Path::new("chapters").join(chapter);
    let mut inputs = Vec::new();
    for path in files {
        let relative = path.strip_prefix(root).unwrap_or(&path);
        if !relative.starts_with(&folder) || relative.ends_with("Cargo.toml") {
            continue;
        }
        let is_rust = relative.extension().is_some_and(|extension| extension == "rs");
        inputs.push(Input {
            kind: if is_rust { InputKind::Source } else { InputKind::Data },
            name: relative.display().to_string(),
            hash: file(&root.join(relative))?,
        });
    }
    inputs.sort();
    inputs.dedup();
    Ok(inputs)
}

/// What the repository declares now about a chapter.
struct Declared {
    chapter: Chapter,
    lock_file: String,
}

impl Declared {
    fn read(root: &Path, chapter: &str) -> Result<Self> {
        let manifest = root.join("chapters").join(chapter).join("Cargo.toml");
        Ok(Self {
            chapter: Chapter::parse(&fs::read_to_string(manifest)?)?,
            lock_file: fs::read_to_string(root.join("Cargo.lock"))?,
        })
    }
}

fn reason(root: &Path, declared: &Result<Declared>, input: &Input) -> Option<Reason> {
    let now = match input.kind {
        InputKind::Source | InputKind::Timing | InputKind::Data => hash_at(&root.join(&input.name)),
        InputKind::Kernel => kernel(root, &input.name),
        InputKind::Parameter if input.name == "quick" => return None,
        InputKind::Parameter | InputKind::Library => {
            let value = match declared {
                Err(error) => return Some(Reason::Unreadable(format!("{error:#}"))),
                Ok(declared) if input.kind == InputKind::Parameter => {
                    declared.chapter.parameters.get(&input.name).cloned()
                }
                Ok(declared) => locked_version(&declared.lock_file, &input.name),
            };
            return match value {
                Some(is) if is == input.hash => None,
                Some(is) => Some(Reason::Value { was: input.hash.clone(), is }),
                None => Some(Reason::Gone),
            };
        }
    };
    match now {
        Ok(Some(hash)) if hash == input.hash => None,
        Ok(Some(_)) => Some(Reason::Changed),
        Ok(None) => Some(Reason::Gone),
        Err(error) => Some(Reason::Unreadable(format!("{error:#}"))),
    }
}

fn hash_at(path: &Path) -> Result<Option<String>> {
    if path.try_exists()? { file(path).map(Some) } else { Ok(None) }
}

/// The hash of a kernel's committed PTX: the file of its name, else the one that has an entry of its name.
fn kernel(root: &Path, name: &str) -> Result<Option<String>> {
    let folder = root.join("kernels/ptx");
    let own = folder.join(format!("{name}.ptx"));
    if own.is_file() {
        return Ok(Some(ptx(&fs::read_to_string(own)?)));
    }
    for entry in fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "ptx") {
            let text = fs::read_to_string(&path)?;
            if ptx::has_entry(&text, name) {
                return Ok(Some(ptx(&text)));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests;
