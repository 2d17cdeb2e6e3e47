//! The records that pages are drawn from: committed ones by GPU, and the reader's own.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use record::{Cell, Kind, Output, Point, Record, Status};

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
    /// The chapter whose folder it lies in.
    pub chapter: String,
    /// The file.
    pub path: PathBuf,
    /// What it says, or why it cannot be read.
    pub record: Result<Record, String>,
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

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            State::Fresh => write!(f, "fresh"),
            State::Stale(changes) => write!(f, "stale: {}", changes.join(", ")),
            State::OtherHardware { ratio: Some(ratio), than } => {
                write!(f, "other hardware: ×{} of the {than}", record::format::number(*ratio))
            }
            State::OtherHardware { ratio: None, than } => {
                write!(f, "other hardware than the {than}")
            }
            State::Running { cell, done, total } => {
                write!(f, "running: {done} of {total} cells, now {cell}")
            }
            State::Failed { cell, message } => write!(f, "failed in cell {cell}: {message}"),
            State::Interrupted { cell } => write!(f, "interrupted in cell {cell}"),
            State::Missing(why) if why.is_empty() => write!(f, "missing"),
            State::Missing(why) => write!(f, "missing: {why}"),
        }
    }
}

impl Records {
    /// Reads every record of the repository and decides its state. A record that cannot be read is [`State::Missing`] with the
    /// reason: a run may be writing next to us, and one bad file must not hide the others.
    ///
    /// # Errors
    /// When the folder of records cannot be read.
    pub fn read(root: &Root) -> Result<Records> {
        let mut records = BTreeMap::new();
        for slug in folders(&root.records())? {
            for chapter in folders(&root.records().join(&slug))? {
                let path = record::path(&root.records().join(&slug), &chapter);
                let record = match Record::load(&path) {
                    Ok(None) => continue,
                    Ok(Some(record)) => Ok(record),
                    // The reason without the absolute path, which is nobody's business on a page.
                    Err(error) => Err(error.root_cause().to_string()),
                };
                let state = state(root, &chapter, &record);
                let loaded = Loaded { slug: slug.clone(), chapter: chapter.clone(), path, record, state };
                records.insert((slug.clone(), chapter), loaded);
            }
        }
        let mut records = Records { records };
        records.mark_other_hardware();
        Ok(records)
    }

    /// The record of a chapter under a slug.
    pub fn get(&self, slug: &str, chapter: &str) -> Option<&Loaded> {
        self.records.get(&(slug.to_owned(), chapter.to_owned()))
    }

    /// All records, by slug and chapter.
    pub fn iter(&self) -> impl Iterator<Item = &Loaded> {
        self.records.values()
    }

    /// The slugs that have committed records.
    pub fn committed(&self) -> impl Iterator<Item = &Loaded> {
        self.iter().filter(|loaded| loaded.slug != LOCAL)
    }

    fn mark_other_hardware(&mut self) {
        let recorded: BTreeMap<String, String> = self
            .iter()
            .filter(|loaded| loaded.slug == GPU)
            .filter_map(|loaded| {
                Some((loaded.chapter.clone(), loaded.record.as_ref().ok()?.provenance.device.clone()))
            })
            .collect();
        for own in
            self.records.values_mut().filter(|loaded| loaded.slug == LOCAL && loaded.state == State::Fresh)
        {
            let Ok(record) = &own.record else { continue };
            let Some(than) = recorded.get(&own.chapter) else { continue };
            if !record.provenance.emulated && record.provenance.device != *than {
                own.state = State::OtherHardware { ratio: None, than: than.clone() };
            }
        }
    }
}

/// Own speed over recorded speed: the median over every rate and time that both cells have at the same place.
pub fn speed_ratio(own: &Cell, recorded: &Cell) -> Option<f64> {
    let recorded: BTreeMap<String, (f64, f64)> =
        speeds(recorded).map(|(key, power, value)| (key, (power, value))).collect();
    let mut ratios: Vec<f64> = speeds(own)
        .filter_map(|(key, power, value)| {
            let (_, reference) = recorded.get(&key)?;
            Some((value / reference).powf(power))
        })
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect();
    ratios.sort_by(f64::total_cmp);
    ratios.get(ratios.len() / 2).copied()
}

/// Rates with power 1 and times with power −1, each with a key of name and place.
fn speeds(cell: &Cell) -> impl Iterator<Item = (String, f64, f64)> {
    let power = |kind: Kind, unit: &str| match unit {
        _ if kind == Kind::Exact => None,
        "s" | "ms" | "us" | "µs" | "ns" => Some(-1.0),
        unit if unit.ends_with("/s") => Some(1.0),
        _ => None,
    };
    let found = move |key: String, kind: Kind, unit: &str, point: &Point| {
        Some((key, power(kind, unit)?, point.value?))
    };
    cell.outputs.iter().flat_map(move |output| -> Vec<(String, f64, f64)> {
        match output {
            Output::Value(value) => {
                found(value.name.clone(), value.kind, &value.unit, &value.point).into_iter().collect()
            }
            Output::Series(series) => series
                .x
                .iter()
                .zip(&series.points)
                .filter_map(|(x, point)| {
                    found(format!("{}[{x:?}]", series.name), series.kind, &series.unit, point)
                })
                .collect(),
            _ => Vec::new(),
        }
    })
}

fn state(root: &Root, chapter: &str, record: &Result<Record, String>) -> State {
    let record = match record {
        Ok(record) => record,
        Err(why) => return State::Missing(why.clone()),
    };
    match record.status.clone() {
        Status::Running { cell, done, total } => return State::Running { cell, done, total },
        Status::Failed { cell, message } => return State::Failed { cell, message },
        Status::Interrupted { cell } => return State::Interrupted { cell },
        Status::Complete => {}
    }
    let changes = record::inputs::changes(&root.path, chapter, &record.inputs);
    if changes.is_empty() {
        State::Fresh
    } else {
        State::Stale(changes.iter().map(ToString::to_string).collect())
    }
}

/// The names of the folders in a folder, sorted; none where it does not exist.
fn folders(path: &Path) -> Result<Vec<String>> {
    if !path.is_dir() {
        return Ok(Vec::new());
    }
    let mut names = Vec::new();
    for entry in std::fs::read_dir(path).with_context(|| format!("reading {}", path.display()))? {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            names.push(entry.file_name().to_string_lossy().into_owned());
        }
    }
    names.sort();
    Ok(names)
}
