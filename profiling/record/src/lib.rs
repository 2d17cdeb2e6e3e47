//! What a chapter's run leaves behind: a [`Record`] of values, series, tables and texts, with where they came from.
//!
//! `lab` writes records, `profile` adds what Nsight saw, and the book is drawn from them. The file is data and no picture,
//! so that a new recording is a small diff. `book/src/contributing/records.md` describes every field for readers.

pub mod chapter;
mod compare;
mod date;
pub mod format;
pub mod inputs;
mod lookup;
mod outputs;
mod store;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

pub use date::now;
pub use store::{path, slug};

/// The version of the record's layout. A reader of another version says so instead of guessing.
pub const SCHEMA: u32 = 1;

/// One chapter's run on one device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The chapter's crate name.
    pub chapter: String,
    /// How far the run came.
    pub status: Status,
    /// The machine, the versions and the command behind the figures.
    pub provenance: Provenance,
    /// What the results depend on, with a hash each; see [`Input`].
    pub inputs: Vec<Input>,
    /// The cells that have finished, in the order of the story.
    pub cells: Vec<Cell>,
    /// What Nsight Systems and Nsight Compute saw, if they were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<Profile>,
}

/// What Nsight Systems and Nsight Compute saw of a chapter, as cells like any other: pages refer to them the same way.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Profile {
    /// The tools and their versions, by name.
    pub tools: BTreeMap<String, String>,
    /// The commands that were run, without paths.
    pub commands: Vec<String>,
    /// When, UTC, such as `2026-12-03T10:11:12Z`.
    pub date: String,
    /// The commit that was built; empty outside a git checkout.
    pub commit: String,
    /// Whether tracked files differed from that commit.
    pub dirty: bool,
    /// What the results depend on, as for the run itself.
    pub inputs: Vec<Input>,
    /// `timeline`, `kernels` and the like. Their ids differ from the chapter's own.
    pub cells: Vec<Cell>,
}

/// How far a run came.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "state", rename_all = "snake_case")]
pub enum Status {
    /// Cells are still being computed.
    Running {
        /// The cell at work.
        cell: String,
        /// Cells that have finished.
        done: usize,
        /// Cells of the chapter, where the chapter has declared them.
        total: usize,
    },
    /// Every cell has finished.
    Complete,
    /// A cell returned an error or panicked. The cells before it stand.
    Failed {
        /// The cell that failed.
        cell: String,
        /// The error with all its causes, one a line.
        message: String,
    },
    /// The run was stopped from outside (Ctrl-C, a termination signal).
    Interrupted {
        /// The cell that was at work.
        cell: String,
    },
}

/// The machine, the versions and the command behind the figures. No host name, user name, absolute path or serial number.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The driver's name for the device, such as `NVIDIA H200`, or one that says "emulated".
    pub device: String,
    /// True on the emulated GPU: its counts are exact, and it has no times.
    pub emulated: bool,
    /// Compute capability, such as `9.0`.
    pub compute_capability: String,
    /// The CUDA version that the driver speaks, such as `13.0`.
    pub cuda_driver: String,
    /// The kernel driver's version, such as `580.159.04`; empty where there is none.
    pub driver: String,
    /// Facts that a reader may want to compare (clocks, power limit, ECC, MIG, libraries), by name.
    #[serde(default)]
    pub facts: BTreeMap<String, String>,
    /// The host processor's model name, and how many threads it runs.
    pub host_cpu: String,
    /// Operating system and architecture, such as `linux x86_64`.
    pub os: String,
    /// `rustc --version` of the build.
    pub rustc: String,
    /// The version of cudarc in the build.
    pub cudarc: String,
    /// The optimisation level of the build.
    pub opt_level: String,
    /// Whether NVTX ranges were compiled in.
    pub nvtx: bool,
    /// When the run began, UTC, such as `2026-12-03T10:11:12Z`.
    pub date: String,
    /// The commit that was built; empty outside a git checkout. Information only: staleness never looks at it.
    pub commit: String,
    /// Whether tracked files differed from that commit.
    pub dirty: bool,
    /// The arguments that the program was given, without paths.
    pub arguments: Vec<String>,
    /// Wall-clock seconds of the whole run.
    pub seconds: f64,
}

/// One thing that can change a result, with the hash that it had.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Input {
    /// What sort of thing it is.
    pub kind: InputKind,
    /// A repository-relative path, a kernel's name, a parameter's name or a library's name.
    pub name: String,
    /// A SHA-256 in hexadecimal; for a parameter or a library its value or version as it stands.
    pub hash: String,
}

/// The sorts of things that can change a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum InputKind {
    /// A Rust file of the chapter, hashed as tokens: comments and documentation do not count.
    Source,
    /// A kernel that the run loaded: its PTX without comments, `.file` and `.loc`.
    Kernel,
    /// The timing module of `lab`, hashed as tokens.
    Timing,
    /// A data file that the chapter declared.
    Data,
    /// A parameter of the run, such as a largest size.
    Parameter,
    /// A library of the chapter's rung, by version in `Cargo.lock`.
    Library,
}

/// One step of a chapter and what came out of it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cell {
    /// The name that a page refers to; never a position.
    pub id: String,
    /// What the cell finds out, in a few words.
    pub title: String,
    /// Wall-clock seconds that it took.
    pub seconds: f64,
    /// Whether kernels of this cell communicate between blocks, so that counts may differ from run to run.
    #[serde(default)]
    pub order_dependent: bool,
    /// What came out, in the order in which it was said.
    pub outputs: Vec<Output>,
}

/// One thing that came out of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Output {
    /// Lines as a terminal shows them.
    Text(Text),
    /// A number with a name.
    Value(Value),
    /// Numbers over an abscissa.
    Series(Series),
    /// Rows and columns.
    Table(Table),
    /// How series of this cell are drawn.
    Figure(Figure),
    /// Who did what when: lanes of spans.
    Timeline(Timeline),
    /// Numbers in a grid, drawn as coloured squares.
    HeatMap(HeatMap),
}

/// Whether another run must give the same, or may differ.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The same on every device: results, counts. Pages read it from the emulated GPU's record; CI recomputes it.
    #[default]
    Exact,
    /// Differs from run to run: times, rates, a machine's facts. Pages read it from a real GPU's record.
    Measured,
}

/// Lines of text.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Text {
    /// Exact or measured.
    pub kind: Kind,
    /// The lines, each ended by a newline.
    pub text: String,
}

/// A number with a name.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Value {
    /// The name, such as `gbps`.
    pub name: String,
    /// Exact or measured.
    pub kind: Kind,
    /// The unit, such as `GB/s`; empty for a bare count or ratio.
    pub unit: String,
    /// The number and its spread.
    #[serde(flatten)]
    pub point: Point,
    /// How it was got where that needs saying: `derived (formula)`, `not collected (reason)`.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
}

/// A number, possibly with the spread of its samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Point {
    /// The median, or the one value. `None` is a time that needs a GPU.
    pub value: Option<f64>,
    /// The 20th percentile of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub low: Option<f64>,
    /// The 80th percentile of the samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub high: Option<f64>,
    /// How many samples there were, if it was sampled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub samples: Option<usize>,
}

/// Numbers over an abscissa. A page refers to `chapter.cell.name[x]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name, such as `kernel`.
    pub name: String,
    /// What a legend says; the name where it is empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub label: String,
    /// Exact or measured.
    pub kind: Kind,
    /// The unit of the numbers.
    pub unit: String,
    /// The abscissas, numbers or labels.
    pub x: Vec<Abscissa>,
    /// One number for each abscissa.
    pub points: Vec<Point>,
}

/// Where on the abscissa a number stands.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Abscissa {
    /// A size, a stride, a block size.
    Number(f64),
    /// A step's name.
    Label(String),
}

/// Rows and columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// The name, so that a cell may have several.
    pub name: String,
    /// The columns, left to right.
    pub columns: Vec<Column>,
    /// The rows; each has one entry for each column.
    pub rows: Vec<Vec<Entry>>,
}

/// A column of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Column {
    /// The heading.
    pub name: String,
    /// The unit, shown under the heading; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// Exact or measured.
    #[serde(default)]
    pub kind: Kind,
}

/// An entry of a table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Entry {
    /// A time that needs a GPU.
    NeedsGpu(()),
    /// A number.
    Number(f64),
    /// A word.
    Text(String),
}

/// How series of a cell are drawn: one figure that answers one question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The name, so that a cell may have several; empty for the cell's only one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub name: String,
    /// The question or the finding, as a title.
    pub title: String,
    /// One sentence for who cannot see it.
    pub alt: String,
    /// The horizontal axis.
    pub x: Axis,
    /// The vertical axis.
    pub y: Axis,
    /// The series of this cell that it shows, by name, in the order of their colours.
    pub series: Vec<String>,
    /// Floors and ceilings: a value of this cell, drawn as a dashed line with a label that says how it was got.
    #[serde(default)]
    pub limits: Vec<Limit>,
}

/// An axis of a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Axis {
    /// What is on it.
    pub label: String,
    /// Its unit; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// How it is divided.
    pub scale: Scale,
}

/// How an axis is divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scale {
    /// Equal steps, from zero.
    Linear,
    /// Powers of two.
    Log2,
    /// Powers of ten.
    Log10,
    /// Labels, evenly spread.
    Labels,
}

/// A floor or a ceiling in a figure.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Limit {
    /// The name of a value of this cell.
    pub value: String,
    /// What the line is and how it was got.
    pub label: String,
}

/// Numbers in a grid of rows and columns, drawn as coloured squares: which thread wrote which element, how many lanes want
/// which bank. A page refers to `chapter.cell.name[row, column]`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// The name, so that a cell may have several.
    pub name: String,
    /// The question or the finding, as a title.
    pub title: String,
    /// One sentence for who cannot see it.
    pub alt: String,
    /// Exact or measured.
    pub kind: Kind,
    /// What the numbers are, such as `lanes` or `block`.
    pub label: String,
    /// Their unit; may be empty.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unit: String,
    /// What a colour means.
    pub colours: Colours,
    /// What a row is, and the rows' names, top to bottom.
    pub rows: Edge,
    /// What a column is, and the columns' names, left to right.
    pub columns: Edge,
    /// One number for each row and column; `None` leaves the square empty.
    pub numbers: Vec<Vec<Option<f64>>>,
}

/// One edge of a heat map.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// What stands along it, such as `bank`.
    pub label: String,
    /// A name for each row or column.
    pub names: Vec<String>,
}

/// What the colours of a heat map mean.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Colours {
    /// How much: the darker, the more. Nothing at all has no colour.
    #[default]
    Amount,
    /// Which one: numbers are names, and equal ones have one colour.
    Identity,
}

/// Who did what when, from a profiler: one lane a stream, an NVTX depth or the host's API calls.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// The question or the finding, as a title.
    pub title: String,
    /// One sentence for who cannot see it.
    pub alt: String,
    /// The lanes, top to bottom.
    pub lanes: Vec<Lane>,
}

/// A lane of a timeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Lane {
    /// Such as `NVTX ch01`, `CUDA API`, `stream 7`.
    pub name: String,
    /// What happened, by start.
    pub spans: Vec<Span>,
}

/// Something that took a while.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Span {
    /// The range's, kernel's, copy's or call's name.
    pub name: String,
    /// Microseconds from the timeline's start.
    pub start_us: f64,
    /// Microseconds from the timeline's start.
    pub end_us: f64,
}
