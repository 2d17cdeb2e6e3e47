//! Where the program comes from: a checkout that Cargo built, or a bundle. From that follow the hashes of its sources, its
//! commit, and where the reader's records lie.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail, ensure};
use record::chapter::Chapter;
use record::inputs;
use record::{Input, InputKind};

/// Where the program comes from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Origin {
    /// A checkout of the repository.
    Checkout {
        /// The folder of the workspace's `Cargo.toml`.
        root: PathBuf,
    },
    /// A bundle, whose `manifest.json` tells what it was built from.
    Bundle {
        /// The manifest.
        manifest: serde_json::Value,
    },
    /// Neither: the program was copied somewhere.
    Unknown,
}

/// `Cargo.lock` as it was when this program was built.
const LOCK_FILE: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../Cargo.lock"));

/// The timing module as it was when this program was built.
const TIMING: &str = include_str!("timing.rs");

impl Origin {
    /// Looks around: a bundle's manifest one folder above the program's, else a checkout above the current folder, else
    /// one above the program.
    ///
    /// # Errors
    /// When the bundle's manifest cannot be read.
    pub(crate) fn find() -> Result<Self> {
        let program = std::env::current_exe().context("asking for this program's path")?;
        let manifest = program.ancestors().nth(2).map(|folder| folder.join("manifest.json"));
        if let Some(path) = manifest.filter(|path| path.is_file()) {
            let text = fs::read_to_string(&path).context("reading the bundle's manifest.json")?;
            let manifest = serde_json::from_str(&text).context("reading the bundle's manifest.json")?;
            return Ok(Self::Bundle { manifest });
        }
        let here = std::env::current_dir().unwrap_or_default();
        let root = here.ancestors().chain(program.ancestors()).find(|folder| is_checkout(folder));
        Ok(root.map_or(Self::Unknown, |root| Self::Checkout { root: root.to_owned() }))
    }

    /// The folder of the reader's own records.
    pub(crate) fn local_records(&self) -> Option<PathBuf> {
        match self {
            Self::Checkout { root } => Some(root.join("book/records/local")),
            Self::Bundle { .. } | Self::Unknown => None,
        }
    }

    /// What the chapter's results depend on, except for the kernels, which show when they are loaded.
    ///
    /// # Errors
    /// When it cannot be told what the program was built from; then nothing may be stored.
    pub(crate) fn inputs(&self, chapter: &Chapter, quick: bool) -> Result<Vec<Input>> {
        let mut inputs = match self {
            Self::Checkout { root } => sources(root, &chapter.name)?,
            Self::Bundle { manifest } => {
                let listed = &manifest["chapters"][chapter.name.as_str()]["inputs"];
                serde_json::from_value(listed.clone()).with_context(|| {
                    format!("the bundle's manifest.json lists no inputs of {}", chapter.name)
                })?
            }
            Self::Unknown => bail!("this program lies neither in a checkout nor in a bundle"),
        };
        inputs.push(Input {
            kind: InputKind::Timing,
            name: inputs::TIMING.to_owned(),
            hash: inputs::rust(TIMING)?,
        });
        inputs.extend(inputs::declared(chapter, LOCK_FILE, quick)?);
        Ok(inputs)
    }

    /// The commit that was built, and whether tracked files differed from it; empty where that is unknown.
    pub(crate) fn commit(&self) -> (String, bool) {
        match self {
            Self::Checkout { root } => {
                let commit = git(root, &["rev-parse", "HEAD"]).unwrap_or_default();
                let changed = git(root, &["status", "--porcelain", "--untracked-files=no"]);
                (commit, changed.is_some_and(|changed| !changed.is_empty()))
            }
            Self::Bundle { manifest } => (
                manifest["commit"].as_str().unwrap_or_default().to_owned(),
                manifest["dirty"].as_bool().unwrap_or(false),
            ),
            Self::Unknown => Default::default(),
        }
    }
}

/// The version of cudarc that this program was built with.
pub(crate) fn cudarc_version() -> String {
    inputs::locked_version(LOCK_FILE, "cudarc").unwrap_or_default()
}

fn is_checkout(folder: &Path) -> bool {
    folder.join("book/records").is_dir() && folder.join("Cargo.toml").is_file()
}

/// The chapter's own sources, hashed, from what Cargo left beside the program. Cargo leaves it there when the program is
/// built or run, not when it is built for a test: then all files of the chapter count.
fn sources(root: &Path, chapter: &str) -> Result<Vec<Input>> {
    let program = std::env::current_exe().context("asking for this program's path")?;
    let sources = match fs::read_to_string(program.with_extension("d")) {
        Ok(text) => inputs::sources(root, chapter, &text)?,
        Err(_) => inputs::sources_without_dep_info(root, chapter)?,
    };
    ensure!(!sources.is_empty(), "this program was not built from the checkout in {}", root.display());
    let built = fs::metadata(&program).and_then(|program| program.modified());
    for source in &sources {
        let changed = fs::metadata(root.join(&source.name)).and_then(|source| source.modified());
        if let (Ok(changed), Ok(built)) = (changed, &built)
            && changed > *built
        {
            bail!("{} has changed since this program was built; start it by cargo run", source.name);
        }
    }
    Ok(sources)
}

/// What a git command says, without the last newline; `None` without git or outside a repository.
fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bundle_tells_its_inputs_and_commit() {
        let chapter = Chapter::parse("[package]\nname = \"ch99-sample\"\n").unwrap();
        let origin = Origin::Bundle {
            manifest: serde_json::json!({
                "commit": "abc",
                "dirty": true,
                "chapters": {"ch99-sample": {"inputs": [{"kind": "source", "name": "a.rs", "hash": "1"}]}}
            }),
        };
        let inputs = origin.inputs(&chapter, true).unwrap();
        let told: Vec<(&str, &str)> =
            inputs.iter().map(|input| (input.name.as_str(), input.hash.as_str())).collect();
        assert_eq!(told[0], ("a.rs", "1"));
        assert_eq!(told[1].0, "profiling/lab/src/timing.rs");
        assert_eq!(told[2], ("quick", "true"));
        assert_eq!(origin.commit(), ("abc".to_owned(), true));

        let other = Chapter::parse("[package]\nname = \"ch98-other\"\n").unwrap();
        assert!(origin.inputs(&other, true).unwrap_err().to_string().contains("ch98-other"));
    }

    #[test]
    fn an_unknown_program_stores_nothing() {
        let chapter = Chapter::parse("[package]\nname = \"ch99-sample\"\n").unwrap();
        assert!(Origin::Unknown.inputs(&chapter, false).is_err());
        assert_eq!(Origin::Unknown.local_records(), None);
    }
}
