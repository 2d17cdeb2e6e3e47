//! A cell's outputs in a terminal of 80 columns: the same that the page shows, with sketches for figures.

mod bars;
mod heat;
mod plot;
mod table;

use record::format::{self, point, quantity, spread};
use record::{Abscissa, Cell, Figure, Kind, Output, Scale, Series, Table, Value};

/// Columns that everything fits into, wherever its words allow.
const WIDTH: usize = 80;

/// A cell with its title, as lines. `emulated` says whether the emulated GPU ran it, and so why a number may be missing.
pub(crate) fn cell(cell: &Cell, emulated: bool) -> String {
    let mut text = format!("\n{} · {}\n", cell.id, cell.title);
    text.extend(std::iter::repeat_n('─', text.trim().chars().count().min(WIDTH)));
    text.push('\n');
    let mut outputs = cell.outputs.iter().peekable();
    while let Some(output) = outputs.next() {
        let block = match output {
            Output::Text(said) => said.text.clone(),
            // Values that follow each other are one list, aligned.
            Output::Value(first) => {
                let mut list = vec![first];
                while let Some(Output::Value(next)) = outputs.peek() {
                    list.push(next);
                    outputs.next();
                }
                values(&list)
            }
            Output::Table(table) => table::lines(table, emulated),
            Output::Series(series) if is_drawn(cell, series) => continue,
            Output::Series(series) => table::lines(&series_table(series), emulated),
            Output::Figure(figure) => self::figure(cell, figure),
            Output::HeatMap(map) => heat::lines(map),
            Output::Timeline(timeline) => format!("{} (a timeline: see the page)", timeline.title),
        };
        for line in block.trim_end().lines() {
            text.push_str(format!("  {line}").trim_end());
            text.push('\n');
        }
        text.push('\n');
    }
    text
}

fn values(list: &[&Value]) -> String {
    let width = list.iter().map(|value| value.name.chars().count()).max().unwrap_or(0);
    list.iter()
        .map(|value| {
            let number = point(value.point, &value.unit);
            let spread = spread(value.point, &value.unit).map(|spread| format!("  ({spread})"));
            let note = if value.note.is_empty() { String::new() } else { format!("  {}", value.note) };
            format!("{:width$}  {number}{}{note}\n", value.name, spread.unwrap_or_default())
        })
        .collect()
}

fn figure(cell: &Cell, figure: &Figure) -> String {
    let series: Vec<&Series> = figure.series.iter().filter_map(|name| cell.series(name)).collect();
    let has_numbers = series.iter().any(|series| series.points.iter().any(|point| point.value.is_some()));
    let sketch = if !has_numbers {
        format!("{}: there are no times on the emulated GPU\n", format::NEEDS_GPU)
    } else if figure.x.scale == Scale::Labels {
        bars::lines(&series, &figure.y)
    } else {
        let limits: Vec<(&str, f64)> = figure
            .limits
            .iter()
            .filter_map(|limit| Some((limit.label.as_str(), cell.value(&limit.value)?.point.value?)))
            .collect();
        plot::lines(figure, &series, &limits)
    };
    format!("{}\n\n{sketch}", figure.title)
}

/// Whether a figure of the cell shows the series.
fn is_drawn(cell: &Cell, series: &Series) -> bool {
    cell.outputs
        .iter()
        .any(|output| matches!(output, Output::Figure(figure) if figure.series.contains(&series.name)))
}

/// A series that no figure shows, as a table.
fn series_table(series: &Series) -> Table {
    let mut table = Table::new(&series.name).exact("", "");
    let unit = series.unit.as_str();
    table = match series.kind {
        Kind::Exact => table.exact(label(series), unit),
        Kind::Measured => table.measured(label(series), unit),
    };
    for (x, point) in series.x.iter().zip(&series.points) {
        table.push([abscissa(x).into(), (*point).into()]);
    }
    table
}

/// What the legend calls a series.
fn label(series: &Series) -> &str {
    if series.label.is_empty() { &series.name } else { &series.label }
}

fn abscissa(x: &Abscissa) -> String {
    match x {
        Abscissa::Number(number) => quantity(*number, ""),
        Abscissa::Label(label) => label.clone(),
    }
}

/// Fills up with spaces on the left, by characters.
fn right(text: &str, width: usize) -> String {
    format!("{}{text}", " ".repeat(width.saturating_sub(text.chars().count())))
}

/// Fills up with spaces on the right, by characters.
fn left(text: &str, width: usize) -> String {
    format!("{text}{}", " ".repeat(width.saturating_sub(text.chars().count())))
}

#[cfg(test)]
mod tests;
