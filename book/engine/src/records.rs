//! The records that pages are drawn from: committed ones by GPU, and the reader's own.

use std::collections::BTreeMap;
use std::path::PathBuf;

use anyhow::Result;
use record::Record;

use crate::root::Root;

/// The slug of the emulated GPU's records, from which `exact` outputs are read.
pub const EMULATED: &str = "emulated";
/// The slug of the GPU whose records `measured` outputs are read from.
pub const GPU: &str = "h200";
/// The slug of the reader's own records.
pub const LOCAL: &str = "local";

/// All records of the repository, as they were when it was read.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// By slug and chapter.
    records: BTreeMap<(String, String), Loaded>,
}

/// A record with what the engine knows about it.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// `h200`, `emulated`, `local`.
    pub slug: String,
    /// The file.
    pub path: PathBuf,
    /// What it says, or why it cannot be read.
    pub record: std::result::Result<Record, String>,
    /// How far it can be trusted.
    pub state: State,
}

/// How far a record can be trusted, as a word on the page.
#[derive(Clone, Debug, PartialEq)]
pub enum State {
    /// Everything that can change the result is as it was.
    Fresh,
    /// These inputs changed since.
    Stale(Vec<String>),
    /// Another GPU than the recorded one; a comparison. The ratio of speeds where there is one: own over recorded.
    OtherHardware {
        /// Own speed over recorded speed.
        ratio: Option<f64>,
        /// The recorded device's name.
        than: String,
    },
    /// Cells are still being computed.
    Running {
        /// The cell at work.
        cell: String,
        /// Cells that have finished.
        done: usize,
        /// Cells in all.
        total: usize,
    },
    /// A cell failed.
    Failed {
        /// The cell that failed.
        cell: String,
        /// The error with its causes.
        message: String,
    },
    /// Stopped from outside.
    Interrupted {
        /// The cell that was at work.
        cell: String,
    },
    /// There is no such record, or it cannot be read (then with the reason).
    Missing(String),
}

impl Records {
    /// Reads every record of the repository and decides its state. A broken record is a [`State::Missing`] with a reason.
    pub fn read(_root: &Root) -> Result<Records> {
        Ok(Records::default())
    }

    /// The record of a chapter under a slug.
    pub fn get(&self, slug: &str, chapter: &str) -> Option<&Loaded> {
        self.records.get(&(slug.to_owned(), chapter.to_owned()))
    }

    /// All records, by slug and chapter.
    pub fn iter(&self) -> impl Iterator<Item = &Loaded> {
        self.records.values()
    }
}
