//! A cell at work: what it may ask, and what it says.

use record::{Figure, Kind, Output, Point, Series, Table, Text, Value};

use crate::Counts;

/// A cell at work. What it says becomes its outputs, in the order in which it was said.
pub struct Cell {
    quick: bool,
    outputs: Vec<Output>,
}

impl Cell {
    /// Whether the reader asked for a quick run (`--quick`): fewer and smaller steps, the same outputs.
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// The largest problem size worth running: `full` on a GPU, less on the emulated GPU or with `--quick`.
    pub fn largest(&self, full: usize) -> usize {
        full
    }

    /// Says lines that every device gives alike.
    pub fn text(&mut self, lines: impl Into<String>) {
        self.outputs.push(Output::Text(Text { kind: Kind::Exact, text: lines.into() }));
    }

    /// Says lines that differ from machine to machine or from run to run.
    pub fn measured_text(&mut self, lines: impl Into<String>) {
        self.outputs.push(Output::Text(Text { kind: Kind::Measured, text: lines.into() }));
    }

    /// A number that every device gives alike: a result, a count.
    pub fn value(&mut self, name: impl Into<String>, value: f64, unit: impl Into<String>) {
        self.push_value(name.into(), Kind::Exact, value.into(), unit.into());
    }

    /// A number that differs from run to run. `None` is a time that needs a GPU:
    /// `cell.measured("copy", timing.map(|t| t.gigabytes_per_second(bytes)), "GB/s")`.
    pub fn measured(&mut self, name: impl Into<String>, point: impl Into<Point>, unit: impl Into<String>) {
        self.push_value(name.into(), Kind::Measured, point.into(), unit.into());
    }

    /// Numbers over an abscissa.
    pub fn series(&mut self, series: Series) {
        self.outputs.push(Output::Series(series));
    }

    /// Rows and columns.
    pub fn table(&mut self, table: Table) {
        self.outputs.push(Output::Table(table));
    }

    /// How series of this cell are drawn.
    pub fn figure(&mut self, figure: Figure) {
        self.outputs.push(Output::Figure(figure));
    }

    /// Starts the cell's own progress bar, over `total` steps.
    pub fn progress(&mut self, total: u64) {
        let _ = total;
    }

    /// One step of the progress bar is about to begin; `what` says which.
    pub fn tick(&mut self, what: &str) {
        let _ = what;
    }

    /// What the emulated GPU counted during `work`, one [`Counts`] a launch, in order; nothing on a GPU, whose counters
    /// need a profiler.
    ///
    /// # Errors
    /// Passes on `work`'s error.
    pub fn counts<R>(
        &mut self,
        work: impl FnOnce() -> anyhow::Result<R>,
    ) -> anyhow::Result<(R, Vec<Counts>)> {
        Ok((work()?, Vec::new()))
    }

    pub(crate) fn new(quick: bool) -> Self {
        Self { quick, outputs: Vec::new() }
    }

    fn push_value(&mut self, name: String, kind: Kind, point: Point, unit: String) {
        self.outputs.push(Output::Value(Value { name, kind, unit, point, note: String::new() }));
    }
}
