//! `cargo book exercise`: lists exercises, and hands one to the program that compiles and checks it (crate `exercises`).
//!
//! An exercise is three files in `kernels/exercises`: `chNN_<name>.cu` with one hole, its `.solution.cu`, and a `.toml` that says
//! what the task is.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::root::Root;
use crate::run::cargo;

const FOLDER: &str = "kernels/exercises";

/// An exercise, as a page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Exercise {
    /// `ch01`.
    pub chapter: String,
    /// Such as `guard`.
    pub name: String,
    /// What its `.toml` says to readers.
    pub about: About,
}

/// What an exercise's `.toml` says to readers; what it says to the checker is the checker's.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct About {
    /// Its place in the chapter.
    pub number: u32,
    /// The question.
    pub title: String,
    /// The task, in one sentence.
    pub task: String,
    /// What the check looks at.
    pub check: String,
    /// From a nudge to nearly the answer.
    pub hints: Vec<String>,
}

impl Exercise {
    /// The repository-relative path of one of its files.
    pub fn path(&self, ending: &str) -> String {
        format!("{FOLDER}/{}_{}.{ending}", self.chapter, self.name)
    }

    /// The text of one of its files.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn source(&self, root: &Root, ending: &str) -> Result<String, String> {
        let path = self.path(ending);
        std::fs::read_to_string(root.path.join(&path)).map_err(|error| format!("reading {path}: {error}"))
    }
}

/// The exercises of a chapter, in the order of their numbers.
///
/// # Errors
/// When one of them cannot be read.
pub fn exercises(root: &Root, chapter: &str) -> Result<Vec<Exercise>> {
    let folder = root.path.join(FOLDER);
    let mut found = Vec::new();
    for entry in folder.read_dir().with_context(|| format!("listing {FOLDER}"))? {
        let path = entry?.path();
        if let Some(name) = name_of(&path, chapter) {
            let text = std::fs::read_to_string(&path)
                .with_context(|| format!("reading {}", root.relative(&path)))?;
            let about = toml::from_str(&text).with_context(|| format!("reading {}", root.relative(&path)))?;
            found.push(Exercise { chapter: chapter.to_owned(), name, about });
        }
    }
    found.sort_by(|a, b| (a.about.number, &a.name).cmp(&(b.about.number, &b.name)));
    Ok(found)
}

/// Lists exercises, or has one checked: `CHAPTER [NAME] [--hint N] [--solution]`, as the checker takes it.
///
/// # Errors
/// When there is no such exercise, or the checker cannot be started.
pub fn exercise(root: &Root, arguments: &[String]) -> Result<ExitCode> {
    let Some((asked, rest)) = arguments.split_first() else {
        return list(root);
    };
    let name = rest.iter().find(|argument| !argument.starts_with('-'));
    if !asked.starts_with('-') {
        let chapter = root.chapter(asked)?;
        let known = exercises(root, chapter.short())?;
        let names: Vec<&str> = known.iter().map(|exercise| exercise.name.as_str()).collect();
        match name {
            _ if known.is_empty() => bail!("{} has no exercises yet", chapter.name),
            Some(name) if !names.contains(&name.as_str()) => {
                bail!("{} has no exercise `{name}`; it has: {}", chapter.name, names.join(", "))
            }
            _ => {}
        }
    }
    let mut command = cargo(root);
    command.args(["run", "--quiet", "--package", "exercises"]);
    let status = command.arg("--").args(arguments).status().context("starting cargo run -p exercises")?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn list(root: &Root) -> Result<ExitCode> {
    for chapter in &root.chapters {
        let exercises = exercises(root, chapter.short())?;
        if !exercises.is_empty() {
            println!("{}", chapter.name);
        }
        for Exercise { chapter, name, about } in exercises {
            println!("  cargo book exercise {chapter} {name}\n      {}", about.task);
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// `guard` of `…/ch01_guard.toml`.
fn name_of(path: &Path, chapter: &str) -> Option<String> {
    let file = path.file_name()?.to_str()?;
    Some(file.strip_suffix(".toml")?.strip_prefix(chapter)?.strip_prefix('_')?.to_owned())
}
