//! Timelines: lanes of spans, as a profiler saw them.

use std::convert::Infallible;

use plotters::chart::{ChartBuilder, LabelAreaPosition};
use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor, TRANSPARENT};
use record::{Lane, Scale, Span, format};

use super::axis::AxisRange;
use super::svg::{PER_UNIT, Palette, Svg, text_width};
use super::{COLOURS, Layout, TimelineInput, svg_element, tenths, text_style};
use crate::html::escape;

/// Spans narrower than this many units are drawn together with their neighbours of the same name.
const NARROW: f64 = 0.8;

/// One of the two drawings of a timeline.
pub(super) fn timeline(input: &TimelineInput<'_>, layout: &Layout) -> String {
    let timeline = input.timeline;
    let mut end = 0.0_f64;
    let mut names: Vec<&str> = Vec::new();
    for span in timeline.lanes.iter().flat_map(|lane| &lane.spans) {
        end = end.max(span.end_us);
        if !names.contains(&span.name.as_str()) {
            names.push(&span.name);
        }
    }
    let per_us = (layout.width - 20.0) / end.max(1e-9);
    let rows: Vec<(&Lane, Vec<Vec<Mark>>)> =
        timeline.lanes.iter().map(|lane| (lane, stacked(merged(&lane.spans, per_us)))).collect();
    let plan = Plan { layout, rows, names, end: end.max(1e-9) };

    let mut shapes = String::new();
    if let Err(error) = plan.draw(&mut shapes, input.own) {
        return format!(
            "<p class=\"lab-note\">This timeline cannot be drawn: {}.</p>\n",
            escape(&error.to_string())
        );
    }
    format!(
        "<div class=\"{}\">{}</div>\n",
        layout.class,
        svg_element(layout, plan.height(), &timeline.alt, "", &shapes)
    )
}

/// One span, or many that are too narrow to be seen alone.
#[derive(Clone, Debug, PartialEq)]
struct Mark {
    name: String,
    start: f64,
    end: f64,
    count: usize,
    /// Microseconds of the spans themselves, without the gaps between them.
    busy: f64,
}

impl Mark {
    fn title(&self) -> String {
        match self.count {
            1 => format!("{}: {}, from {}", self.name, duration(self.busy), duration(self.start)),
            count => format!(
                "{count} × {}: {} in all, from {} to {}",
                self.name,
                duration(self.busy),
                duration(self.start),
                duration(self.end)
            ),
        }
    }
}

/// Joins neighbours of the same name that would be drawn over each other.
fn merged(spans: &[Span], per_us: f64) -> Vec<Mark> {
    let mut spans: Vec<&Span> = spans.iter().collect();
    spans.sort_by(|a, b| a.start_us.total_cmp(&b.start_us).then(b.end_us.total_cmp(&a.end_us)));
    let mut marks: Vec<Mark> = Vec::new();
    for span in spans {
        let busy = span.end_us - span.start_us;
        let narrow = busy * per_us < NARROW;
        if let Some(last) = marks.last_mut()
            && last.name == span.name
            && (span.start_us - last.end) * per_us < NARROW
            && (narrow || last.count > 1)
            && span.start_us >= last.end
        {
            last.end = last.end.max(span.end_us);
            last.count += 1;
            last.busy += busy;
            continue;
        }
        marks.push(Mark { name: span.name.clone(), start: span.start_us, end: span.end_us, count: 1, busy });
    }
    marks
}

/// Rows such that no two marks of a row overlap: ranges inside ranges go one row down.
fn stacked(marks: Vec<Mark>) -> Vec<Vec<Mark>> {
    let mut rows: Vec<Vec<Mark>> = Vec::new();
    for mark in marks {
        let free = rows.iter_mut().find(|row| row.last().is_none_or(|last| last.end <= mark.start + 1e-9));
        match free {
            Some(row) => row.push(mark),
            None => rows.push(vec![mark]),
        }
    }
    rows
}

struct Plan<'a> {
    layout: &'a Layout,
    rows: Vec<(&'a Lane, Vec<Vec<Mark>>)>,
    names: Vec<&'a str>,
    end: f64,
}

impl Plan<'_> {
    fn row(&self) -> f64 {
        self.layout.font * 1.6
    }

    /// A lane's name stands above its spans: names are long, and a phone is narrow.
    fn lane_top(&self) -> f64 {
        self.layout.font * 1.75
    }

    fn height(&self) -> f64 {
        let rows: usize = self.rows.iter().map(|(_, rows)| rows.len()).sum();
        self.row() * rows as f64 + self.lane_top() * self.rows.len() as f64 + self.layout.font * 3.6
    }

    fn draw(&self, shapes: &mut String, own: bool) -> Result<(), DrawingAreaErrorKind<Infallible>> {
        let layout = self.layout;
        let (scale, unit) = scale_of(self.end);
        let x = AxisRange::tight([0.0, self.end / scale], Scale::Linear, "", layout.ticks.0);

        let mut palette = Palette::default();
        let tick = palette.classes("tick");
        let (grid, axis, title) =
            (palette.classes("grid"), palette.classes("axis"), palette.classes("axis-title"));
        let (row_ink, inside) = (palette.classes("row"), palette.classes("span-name"));
        let mut inks: Vec<Vec<Vec<RGBColor>>> = Vec::new();
        for (_, rows) in &self.rows {
            let ink = |mark: &Mark| {
                let place = self.names.iter().position(|name| *name == mark.name).unwrap_or(0);
                let own = if own { " own" } else { "" };
                palette.titled(format!("s{}{own} span", place % COLOURS), mark.title())
            };
            let mut ink = ink;
            inks.push(rows.iter().map(|row| row.iter().map(&mut ink).collect()).collect());
        }

        let root = Svg::new(shapes, &palette, (layout.width, self.height())).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin_left(tenths(6.0))
            .margin_right(tenths(14.0))
            .margin_top(tenths(2.0))
            .margin_bottom(tenths(layout.font * 1.7))
            .x_label_area_size(tenths(layout.font * 1.6))
            .build_cartesian_2d(x.clone(), AxisRange::over([1.0], Scale::Linear, "", 2))?;
        chart
            .configure_mesh()
            .disable_y_mesh()
            .axis_style(TRANSPARENT)
            // Labels stand at twice this distance.
            .set_tick_mark_size(LabelAreaPosition::Left, tenths(3.0))
            .set_tick_mark_size(LabelAreaPosition::Bottom, tenths(4.4))
            .bold_line_style(grid)
            .light_line_style(TRANSPARENT)
            .label_style(text_style(layout, 1.0, &tick))
            .draw()?;
        let (horizontal, vertical) = chart.plotting_area().get_pixel_range();
        let across = |us: f64| chart.backend_coord(&(us / scale, 0.0)).0;

        let mut top = f64::from(vertical.start) / PER_UNIT;
        for ((lane, rows), inks) in self.rows.iter().zip(&inks) {
            let style = text_style(layout, 0.92, &row_ink).pos(Pos::new(HPos::Left, VPos::Bottom));
            root.draw(&Text::new(
                lane.name.as_str(),
                (horizontal.start, tenths(top + self.lane_top() - 3.0)),
                style,
            ))?;
            top += self.lane_top();
            for (row, inks) in rows.iter().zip(inks) {
                for (mark, ink) in row.iter().zip(inks) {
                    let (from, to) = (across(mark.start), across(mark.end).max(across(mark.start) + 6));
                    let corners = [(from, tenths(top + 1.0)), (to, tenths(top + self.row() - 1.0))];
                    root.draw(&Rectangle::new(corners, ink.filled()))?;
                    let room = f64::from(to - from) / PER_UNIT - 6.0;
                    let text = if mark.count > 1 {
                        format!("{} × {}", mark.count, mark.name)
                    } else {
                        mark.name.clone()
                    };
                    if let Some(text) = fitting(&text, room, layout.font * 0.86) {
                        let style = text_style(layout, 0.86, &inside).pos(Pos::new(HPos::Left, VPos::Center));
                        root.draw(&Text::new(
                            text,
                            (from + tenths(3.0), tenths(top + self.row() / 2.0)),
                            style,
                        ))?;
                    }
                }
                top += self.row();
            }
        }
        root.draw(&PathElement::new(
            vec![(horizontal.start, vertical.end), (horizontal.end, vertical.end)],
            axis,
        ))?;
        let below = ((horizontal.start + horizontal.end) / 2, tenths(self.height() - 2.0));
        let style = text_style(layout, 1.0, &title).pos(Pos::new(HPos::Center, VPos::Bottom));
        root.draw(&Text::new(format!("time ({unit})"), below, style))?;
        root.present()
    }
}

/// The text, or its beginning, if that still says something in the room there is.
fn fitting(text: &str, room: f64, size: f64) -> Option<String> {
    if text_width(text, size) <= room {
        return Some(text.to_owned());
    }
    let mut short = String::new();
    for character in text.chars() {
        short.push(character);
        if text_width(&short, size) + text_width("…", size) > room {
            short.pop();
            break;
        }
    }
    (short.chars().count() >= 4).then(|| short + "…")
}

/// Microseconds in the unit that suits them.
pub(super) fn duration(us: f64) -> String {
    format::quantity(us * 1e-6, "s")
}

/// Microseconds in the unit that an axis of this length is written in.
fn scale_of(end_us: f64) -> (f64, &'static str) {
    match end_us {
        ..2_000.0 => (1.0, "µs"),
        ..2_000_000.0 => (1e3, "ms"),
        _ => (1e6, "s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn span(name: &str, start_us: f64, end_us: f64) -> Span {
        Span { name: name.to_owned(), start_us, end_us }
    }

    #[test]
    fn narrow_neighbours_of_one_name_are_one_mark() {
        let spans: Vec<Span> = (0..100).map(|i| span("add", f64::from(i), f64::from(i) + 0.5)).collect();
        let marks = merged(&spans, 0.5);
        assert_eq!(marks.len(), 1);
        assert_eq!((marks[0].count, marks[0].busy, marks[0].end), (100, 50.0, 99.5));
        // Where each can be seen, each is drawn.
        assert_eq!(merged(&spans, 10.0).len(), 100);
    }

    #[test]
    fn ranges_inside_ranges_go_one_row_down() {
        let marks = merged(&[span("measure", 0.0, 10.0), span("a", 1.0, 3.0), span("b", 4.0, 9.0)], 100.0);
        let rows = stacked(marks);
        assert_eq!(rows.iter().map(Vec::len).collect::<Vec<_>>(), [1, 2]);
    }
}
