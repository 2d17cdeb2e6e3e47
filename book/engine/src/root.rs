//! The repository: where it is and which chapters it has. Read from the manifests, so nothing is compiled.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};

/// The repository on this machine.
#[derive(Clone, Debug)]
pub struct Root {
    /// The folder of the workspace's `Cargo.toml`.
    pub path: PathBuf,
    /// The chapters, in the order of their numbers.
    pub chapters: Vec<Chapter>,
}

/// A rung of the ladder, as its `Cargo.toml` describes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// The crate's name, such as `ch01-raw-kernel`.
    pub name: String,
    /// The question it answers.
    pub title: String,
    /// Whether it runs only when asked for by name.
    pub heavy: bool,
    /// It may still lack the record of a GPU.
    pub draft: bool,
}

impl Chapter {
    /// `ch01` of `ch01-raw-kernel`.
    pub fn short(&self) -> &str {
        self.name.split('-').next().unwrap_or(&self.name)
    }

    /// The page's path below `book/src`.
    pub fn page(&self) -> String {
        format!("{}.md", self.name)
    }
}

impl Root {
    /// The repository that holds the current folder, else the one that this program was built from.
    ///
    /// # Errors
    /// When there is none.
    pub fn find() -> Result<Root> {
        let here = std::env::current_dir().context("asking for the current folder")?;
        let built_from = Path::new(env!("CARGO_MANIFEST_DIR"));
        match Root::above(&here)?.or(Root::above(built_from)?) {
            Some(root) => Ok(root),
            None => {
                bail!("no book/book.toml here or above: run this inside a clone of the repository")
            }
        }
    }

    /// The repository that holds `folder`.
    ///
    /// # Errors
    /// When a chapter's manifest cannot be read.
    pub fn above(folder: &Path) -> Result<Option<Root>> {
        let top = folder.ancestors().find(|folder| folder.join("book/book.toml").is_file());
        top.map(|top| Root::open(top.to_path_buf())).transpose()
    }

    /// The repository in `path`.
    ///
    /// # Errors
    /// When a chapter's manifest cannot be read.
    pub fn open(path: PathBuf) -> Result<Root> {
        let folder = path.join("chapters");
        let mut chapters = Vec::new();
        for entry in std::fs::read_dir(&folder).with_context(|| format!("reading {}", folder.display()))? {
            let manifest = entry?.path().join("Cargo.toml");
            if manifest.is_file() {
                chapters.push(
                    read_chapter(&manifest).with_context(|| format!("reading {}", manifest.display()))?,
                );
            }
        }
        chapters.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(Root { path, chapters })
    }

    /// The book's folder, with `book.toml`.
    pub fn book(&self) -> PathBuf {
        self.path.join("book")
    }

    /// The folder of all records.
    pub fn records(&self) -> PathBuf {
        self.path.join("book/records")
    }

    /// Where the static book goes unless told otherwise.
    pub fn built_book(&self) -> PathBuf {
        self.path.join("target/book")
    }

    /// The chapter of that name: whole (`ch01-raw-kernel`) or short (`ch01`).
    ///
    /// # Errors
    /// When there is none; the message lists those that there are.
    pub fn chapter(&self, name: &str) -> Result<&Chapter> {
        self.chapters.iter().find(|chapter| chapter.name == name || chapter.short() == name).with_context(
            || {
                let known: Vec<&str> = self.chapters.iter().map(|chapter| chapter.name.as_str()).collect();
                format!("there is no chapter `{name}`; there are: {}", known.join(", "))
            },
        )
    }

    /// A path as the reader knows it: relative to the repository, with `/`.
    pub fn relative(&self, path: &Path) -> String {
        path.strip_prefix(&self.path).unwrap_or(path).to_string_lossy().replace('\\', "/")
    }
}

fn read_chapter(manifest: &Path) -> Result<Chapter> {
    let record::chapter::Chapter { name, title, heavy, draft, .. } =
        record::chapter::Chapter::parse(&std::fs::read_to_string(manifest)?)?;
    Ok(Chapter { name, title, heavy, draft })
}
