//! Heat maps: a coloured square for each row and column, with its number where there is room.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use record::{Colours, Edge, HeatMap};

use super::svg::{Palette, Svg, text_width};
use super::{COLOURS, HeatMapInput, Layout, svg_element, tenths, text_style};
use crate::html::{escape, in_column};

/// Steps of colour between nothing and the largest amount.
const STEPS: usize = 8;
/// From this step on a number stands in light ink.
const DARK: usize = 5;

/// One of the two drawings of a heat map.
pub(super) fn heat_map(input: &HeatMapInput<'_>, layout: &Layout) -> String {
    let map = input.map;
    let plan = Plan::new(map, layout);
    let mut shapes = String::new();
    if let Err(error) = plan.draw(&mut shapes) {
        return format!(
            "<p class=\"lab-note\">This heat map cannot be drawn: {}.</p>\n",
            escape(&error.to_string())
        );
    }
    format!(
        "<div class=\"{}\">{}{}</div>\n",
        layout.class,
        key(map),
        svg_element(layout, plan.height, &map.alt, "", &shapes)
    )
}

/// What the colours mean, from nothing to the largest amount. Identities are told by the numbers in the squares.
fn key(map: &HeatMap) -> String {
    let unit = if map.unit.is_empty() { String::new() } else { format!(" ({})", escape(&map.unit)) };
    let mut html = format!("<p class=\"lab-heat-key\"><span>{}{unit}</span>", escape(&map.label));
    if map.colours == Colours::Amount {
        let largest = largest(map);
        let _ = write!(html, " <span class=\"scale\">0 ");
        for step in 0..=STEPS {
            let _ = write!(html, "<i class=\"h{step}\"></i>");
        }
        let _ = write!(html, " {}</span>", in_column(largest, &map.unit));
    }
    html + "</p>"
}

fn largest(map: &HeatMap) -> f64 {
    map.numbers.iter().flatten().flatten().copied().fold(0.0, f64::max)
}

/// The class of a square.
fn class(map: &HeatMap, number: f64, largest: f64) -> String {
    match map.colours {
        Colours::Identity => {
            let place = (number.abs() as usize) % COLOURS;
            format!("s{place} cell")
        }
        Colours::Amount => format!("h{} heat", step(number, largest)),
    }
}

/// Which step of the colours an amount has. Only nothing has none.
fn step(amount: f64, largest: f64) -> usize {
    if amount <= 0.0 || largest <= 0.0 {
        return 0;
    }
    ((amount / largest * STEPS as f64).ceil() as usize).clamp(1, STEPS)
}

struct Plan<'a> {
    map: &'a HeatMap,
    layout: &'a Layout,
    /// Width and height of a square.
    square: (f64, f64),
    /// Where the squares begin.
    left: f64,
    top: f64,
    height: f64,
    /// The numbers as they stand in the squares; `None` where there is no room for them.
    written: Option<Vec<Vec<String>>>,
}

impl<'a> Plan<'a> {
    fn new(map: &'a HeatMap, layout: &'a Layout) -> Self {
        let (rows, columns) = (map.rows.names.len().max(1) as f64, map.columns.names.len().max(1) as f64);
        let names =
            map.rows.names.iter().map(|name| text_width(name, layout.font * 0.92)).fold(0.0, f64::max);
        let left = layout.font * 1.7 + names.min(layout.width * 0.3) + 6.0;
        let width = ((layout.width - left - 6.0) / columns).min(layout.font * 3.4);
        let square = (width, width.clamp(layout.font * 0.5, layout.font * 1.9));
        // Three lines stand above: what a column is, what a row is, the names of the columns.
        let top = layout.font * 3.9;
        let height = top + square.1 * rows + 4.0;
        let text = |number: &Option<f64>| number.map_or(String::new(), |number| in_column(number, &map.unit));
        let written: Vec<Vec<String>> =
            map.numbers.iter().map(|row| row.iter().map(text).collect()).collect();
        let widest =
            written.iter().flatten().map(|text| text_width(text, layout.font * 0.86)).fold(0.0, f64::max);
        let fits = widest + 3.0 <= square.0 && layout.font <= square.1;
        Self { map, layout, square, left, top, height, written: fits.then_some(written) }
    }

    fn x(&self, column: usize) -> f64 {
        self.left + self.square.0 * column as f64
    }

    fn y(&self, row: usize) -> f64 {
        self.top + self.square.1 * row as f64
    }

    fn draw(&self, shapes: &mut String) -> Result<(), DrawingAreaErrorKind<Infallible>> {
        let (map, layout) = (self.map, self.layout);
        let largest = largest(map);
        let mut palette = Palette::default();
        let (tick, title) = (palette.classes("tick"), palette.classes("axis-title"));
        let (gap, light, dark) =
            (palette.classes("gap"), palette.classes("value-light"), palette.classes("value-dark"));
        let runs = runs(map);
        let inks: Vec<_> = runs.iter().map(|run| palette.classes(class(map, run.number, largest))).collect();

        let root = Svg::new(shapes, &palette, (layout.width, self.height)).into_drawing_area();
        for (run, ink) in runs.iter().zip(inks) {
            let corners = [
                (tenths(self.x(run.from)), tenths(self.y(run.row))),
                (tenths(self.x(run.to)), tenths(self.y(run.row + 1))),
            ];
            root.draw(&Rectangle::new(corners, ink.filled()))?;
        }
        let (right, bottom) = (self.x(map.columns.names.len()), self.y(map.rows.names.len()));
        for column in 0..=map.columns.names.len() {
            let x = tenths(self.x(column));
            root.draw(&PathElement::new(vec![(x, tenths(self.top)), (x, tenths(bottom))], gap))?;
        }
        for row in 0..=map.rows.names.len() {
            let y = tenths(self.y(row));
            root.draw(&PathElement::new(vec![(tenths(self.left), y), (tenths(right), y)], gap))?;
        }

        let centred = Pos::new(HPos::Center, VPos::Center);
        for (row, texts) in self.written.iter().flatten().enumerate() {
            for (column, text) in texts.iter().enumerate().filter(|(_, text)| !text.is_empty()) {
                let number = map.numbers[row][column].unwrap_or_default();
                let is_dark = map.colours == Colours::Amount && step(number, largest) >= DARK;
                let style = text_style(layout, 0.86, if is_dark { &light } else { &dark }).pos(centred);
                let place =
                    (tenths(self.x(column) + self.square.0 / 2.0), tenths(self.y(row) + self.square.1 / 2.0));
                root.draw(&Text::new(text.as_str(), place, style))?;
            }
        }

        // Names of rows stand to the left, names of columns above: a map is read from its top left corner.
        for row in shown_names(&map.rows, |_| layout.font * 1.05, self.square.1) {
            let style = text_style(layout, 0.92, &tick).pos(Pos::new(HPos::Right, VPos::Center));
            let place = (tenths(self.left - 5.0), tenths(self.y(row) + self.square.1 / 2.0));
            root.draw(&Text::new(map.rows.names[row].as_str(), place, style))?;
        }
        for column in
            shown_names(&map.columns, |name| text_width(name, layout.font * 0.92) + 5.0, self.square.0)
        {
            let style = text_style(layout, 0.92, &tick).pos(Pos::new(HPos::Center, VPos::Bottom));
            let place = (tenths(self.x(column) + self.square.0 / 2.0), tenths(self.top - 3.0));
            root.draw(&Text::new(map.columns.names[column].as_str(), place, style))?;
        }
        let style = text_style(layout, 0.92, &title).pos(Pos::new(HPos::Left, VPos::Top));
        root.draw(&Text::new(format!("{} →", map.columns.label), (tenths(self.left), 0), style.clone()))?;
        root.draw(&Text::new(format!("{} ↓", map.rows.label), (0, tenths(layout.font * 1.25)), style))?;
        root.present()
    }
}

/// Neighbours in a row with the same number are one rectangle.
struct Run {
    row: usize,
    from: usize,
    to: usize,
    number: f64,
}

fn runs(map: &HeatMap) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for (row, numbers) in map.numbers.iter().enumerate() {
        for (column, number) in numbers.iter().enumerate() {
            let Some(number) = *number else { continue };
            match runs.last_mut() {
                Some(last) if last.row == row && last.to == column && last.number == number => last.to += 1,
                _ => runs.push(Run { row, from: column, to: column + 1, number }),
            }
        }
    }
    runs
}

/// Which names are written: each, or each second, fourth, eighth …, so that none touches the next.
fn shown_names(edge: &Edge, size: impl Fn(&str) -> f64, room: f64) -> impl Iterator<Item = usize> {
    let widest = edge.names.iter().map(|name| size(name)).fold(1.0, f64::max);
    let mut every = 1;
    while room * (every as f64) < widest && every < edge.names.len() {
        every *= 2;
    }
    (0..edge.names.len()).step_by(every)
}

/// The numbers as a table, with the columns' names as they are.
pub(super) fn table(map: &HeatMap) -> String {
    let unit = crate::html::head_unit(&map.unit);
    let corner = format!("{} ↓ {} →", map.rows.label, map.columns.label);
    let mut html = format!(
        "<table><caption>{}{unit}</caption><thead><tr><th scope=\"col\">{}</th>",
        escape(&map.label),
        escape(&corner)
    );
    for name in &map.columns.names {
        let _ = write!(html, "<th scope=\"col\">{}</th>", escape(name));
    }
    html += "</tr></thead><tbody>";
    for (name, numbers) in map.rows.names.iter().zip(&map.numbers) {
        let _ = write!(html, "<tr><th scope=\"row\">{}</th>", escape(name));
        for number in numbers {
            let text = number.map_or(String::new(), |number| in_column(number, &map.unit));
            let _ = write!(html, "<td>{text}</td>");
        }
        html += "</tr>";
    }
    html + "</tbody></table>"
}

#[cfg(test)]
mod tests {
    use super::super::{LAYOUTS, Layout};
    use super::*;

    fn banks(columns: usize) -> HeatMap {
        let mut map = HeatMap::exact("banks", "T", "A.")
            .amounts("lanes", "")
            .rows("access")
            .columns("bank", 0..columns);
        map.push("row", vec![Some(1.0); columns]);
        map.push("column", (0..columns).map(|bank| Some(if bank == 0 { 32.0 } else { 0.0 })));
        map.push("nothing", vec![None; columns]);
        map
    }

    #[test]
    fn only_nothing_has_no_colour() {
        assert_eq!([0.0, 0.01, 4.0, 4.1, 32.0].map(|amount| step(amount, 32.0)), [0, 1, 1, 2, STEPS]);
        assert_eq!(step(0.0, 0.0), 0);
    }

    #[test]
    fn neighbours_of_one_number_are_one_rectangle() {
        let found: Vec<_> =
            runs(&banks(32)).iter().map(|run| (run.row, run.from, run.to, run.number)).collect();
        assert_eq!(found, [(0, 0, 32, 1.0), (1, 0, 1, 32.0), (1, 1, 32, 0.0)]);
    }

    #[test]
    fn numbers_are_written_where_they_fit_and_names_never_touch() {
        let [wide, narrow]: &[Layout; 2] = &LAYOUTS;
        let (few, many) = (banks(8), banks(64));
        assert!(Plan::new(&few, narrow).written.is_some());
        assert!(Plan::new(&many, wide).written.is_none());
        let names = |map: &HeatMap, room: f64| shown_names(&map.columns, |_| 20.0, room).count();
        assert_eq!((names(&few, 20.0), names(&many, 10.0), names(&many, 3.0)), (8, 32, 8));
    }
}
