//! The static book: mdBook's own pipeline with our preprocessor inside the process.

use std::path::PathBuf;

use anyhow::{Context, Result};
use mdbook_driver::MDBook;

use crate::preprocess::Lab;
use crate::root::Root;

/// How the book is built.
#[derive(Clone, Debug)]
pub struct Options {
    /// The folder that the pages go into.
    pub destination: PathBuf,
    /// Show a problem as a red box on its page and go on, as the server does; otherwise any problem fails the build.
    pub problems_on_page: bool,
}

/// Something wrong, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file, relative to the repository.
    pub file: String,
    /// The line, from 1; 0 where it is the whole file.
    pub line: usize,
    /// What is wrong and what to do.
    pub what: String,
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.file, self.what),
            line => write!(f, "{}:{line}: {}", self.file, self.what),
        }
    }
}

/// Builds the book and returns what is wrong on its pages; unless problems go on the page, nothing is rendered then. Records are
/// read afresh each time, nothing is written but the destination, and it may be called from any thread.
///
/// # Errors
/// When mdBook itself cannot: a broken `book.toml` or `SUMMARY.md`, a page that is missing, a full disk.
pub fn build(root: &Root, options: &Options) -> Result<Vec<Problem>> {
    let mut book = MDBook::load(root.book()).context("reading the book")?;
    book.config.build.build_dir = options.destination.clone();
    let lab = Lab::new(options.problems_on_page);
    book.with_preprocessor(lab.clone());
    let built = book.build();
    let problems = lab.take_problems();
    match built {
        // The error is the list of problems, which the caller prints.
        Err(_) if !problems.is_empty() && !options.problems_on_page => Ok(problems),
        built => built.context("building the book").map(|()| problems),
    }
}
