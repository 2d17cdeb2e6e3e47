//! A cell at work: what it may ask, and what it says.

use std::collections::BTreeMap;
use std::sync::Arc;

use anyhow::{Context, Result};
use record::{Figure, HeatMap, Kind, Output, Point, Series, Table, Text, Timeline, Value};

use crate::counts::{self, Counts};
use crate::progress::Progress;

/// A cell at work. What it says becomes its outputs, in the order in which it was said.
pub struct Cell {
    quick: bool,
    emulated: bool,
    parameters: Arc<BTreeMap<String, String>>,
    progress: Progress,
    outputs: Vec<Output>,
}

impl Cell {
    /// Whether the reader asked for a quick run (`--quick`): fewer and smaller steps, the same outputs.
    pub fn quick(&self) -> bool {
        self.quick
    }

    /// A number that the chapter's `Cargo.toml` names under `parameters`. It is an input of the record: whoever changes it
    /// makes the record stale.
    ///
    /// # Errors
    /// When the manifest has no such parameter, or it is no whole number.
    pub fn parameter(&self, name: &str) -> Result<usize> {
        let value = self.parameters.get(name).with_context(|| {
            format!("the chapter's Cargo.toml has no parameter `{name}` in [package.metadata.lab]")
        })?;
        value.parse().with_context(|| format!("the parameter `{name}` is {value}, and no whole number"))
    }

    /// The largest problem size worth running: `full` on a GPU, 1/256 of it on the emulated GPU, which executes each
    /// thread on the CPU, and a sixteenth of either with `--quick`. Never less than 4096, unless `full` is.
    pub fn largest(&self, full: usize) -> usize {
        let on_device = if self.emulated { full / 256 } else { full };
        let wanted = if self.quick { on_device / 16 } else { on_device };
        wanted.max(full.min(4096))
    }

    /// Says lines that every device gives alike.
    pub fn text(&mut self, lines: impl Into<String>) {
        self.push_text(lines.into(), Kind::Exact);
    }

    /// Says lines that differ from machine to machine or from run to run.
    pub fn measured_text(&mut self, lines: impl Into<String>) {
        self.push_text(lines.into(), Kind::Measured);
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

    /// Numbers in a grid, drawn as coloured squares.
    pub fn heat_map(&mut self, map: HeatMap) {
        self.outputs.push(Output::HeatMap(map));
    }

    /// Who did what when, in lanes of spans.
    pub fn timeline(&mut self, timeline: Timeline) {
        self.outputs.push(Output::Timeline(timeline));
    }

    /// Starts the cell's own progress bar, over `total` steps.
    pub fn progress(&mut self, total: u64) {
        self.progress.steps(total);
    }

    /// One step of the progress bar is about to begin; `what` says which.
    pub fn tick(&mut self, what: &str) {
        self.progress.tick(what);
    }

    /// What the emulated GPU counted during `work`, one [`Counts`] a launch, in order; nothing on a GPU, whose counters
    /// need a profiler.
    ///
    /// # Errors
    /// Passes on `work`'s error.
    pub fn counts<R>(&mut self, work: impl FnOnce() -> Result<R>) -> Result<(R, Vec<Counts>)> {
        counts::during(work)
    }

    pub(crate) fn new(
        quick: bool,
        emulated: bool,
        parameters: Arc<BTreeMap<String, String>>,
        progress: Progress,
    ) -> Self {
        Self { quick, emulated, parameters, progress, outputs: Vec::new() }
    }

    /// What the cell has said. Measured numbers are cut to six digits, which is more than they are worth, so that a record
    /// is readable.
    pub(crate) fn into_outputs(self) -> Vec<Output> {
        let mut outputs = self.outputs;
        for output in &mut outputs {
            match output {
                Output::Value(value) if value.kind == Kind::Measured => round(&mut value.point),
                Output::Series(series) if series.kind == Kind::Measured => {
                    series.points.iter_mut().for_each(round);
                }
                Output::Table(table) => round_table(table),
                Output::HeatMap(map) if map.kind == Kind::Measured => {
                    map.numbers
                        .iter_mut()
                        .flatten()
                        .flatten()
                        .for_each(|number| *number = six_digits(*number));
                }
                _ => {}
            }
        }
        outputs
    }

    fn push_text(&mut self, mut text: String, kind: Kind) {
        if !text.ends_with('\n') {
            text.push('\n');
        }
        self.outputs.push(Output::Text(Text { kind, text }));
    }

    fn push_value(&mut self, name: String, kind: Kind, point: Point, unit: String) {
        self.outputs.push(Output::Value(Value { name, kind, unit, point, note: String::new() }));
    }
}

fn round(point: &mut Point) {
    for number in [&mut point.value, &mut point.low, &mut point.high].into_iter().flatten() {
        *number = six_digits(*number);
    }
}

fn round_table(table: &mut Table) {
    for row in &mut table.rows {
        for (entry, column) in row.iter_mut().zip(&table.columns) {
            if let (record::Entry::Number(number), Kind::Measured) = (entry, column.kind) {
                *number = six_digits(*number);
            }
        }
    }
}

fn six_digits(number: f64) -> f64 {
    // A number that is none stays one; whoever checks the cell will say so.
    format!("{number:.5e}").parse().unwrap_or(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(quick: bool, emulated: bool) -> Cell {
        let parameters = BTreeMap::from([("largest".to_owned(), "4096".to_owned())]);
        Cell::new(quick, emulated, Arc::new(parameters), Progress::hidden())
    }

    #[test]
    fn sizes_shrink_where_nobody_would_wait() {
        let full = 1 << 28;
        assert_eq!(cell(false, false).largest(full), full);
        assert_eq!(cell(true, false).largest(full), 1 << 24);
        assert_eq!(cell(false, true).largest(full), 1 << 20);
        assert_eq!(cell(true, true).largest(full), 1 << 16);
        assert_eq!(cell(true, true).largest(8192), 4096);
        assert_eq!(cell(true, true).largest(1000), 1000);
    }

    #[test]
    fn parameters_come_from_the_manifest() {
        let cell = cell(false, false);
        assert_eq!(cell.parameter("largest").unwrap(), 4096);
        let error = cell.parameter("smallest").unwrap_err().to_string();
        assert_eq!(error, "the chapter's Cargo.toml has no parameter `smallest` in [package.metadata.lab]");
    }

    #[test]
    fn measured_numbers_are_cut_and_exact_ones_are_not() {
        let mut cell = cell(false, false);
        cell.measured("m", 4262.312345, "GB/s");
        cell.value("e", 4262.312345, "");
        cell.table(Table::new("t").exact("e", "").measured("m", "").row(crate::row![1.23456789, 1.23456789]));
        let outputs = cell.into_outputs();
        let Output::Value(measured) = &outputs[0] else { panic!() };
        assert_eq!(measured.point.value, Some(4262.31));
        let Output::Value(exact) = &outputs[1] else { panic!() };
        assert_eq!(exact.point.value, Some(4262.312345));
        let Output::Table(table) = &outputs[2] else { panic!() };
        assert_eq!(table.rows[0], crate::row![1.23456789, 1.23457]);
    }
}
