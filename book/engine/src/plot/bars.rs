//! Bars for steps that have names: horizontal, because names are words, and words are read lying down.

use std::convert::Infallible;

use plotters::chart::{ChartBuilder, LabelAreaPosition};
use plotters::drawing::{DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, PathElement, Rectangle, Text};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, TRANSPARENT};
use record::{Abscissa, Scale, format};

use super::axis::AxisRange;
use super::chart::{KeyEntry, Sample, curve_names, key, limit_class, series_class};
use super::svg::{PER_UNIT, Palette, Svg, text_width};
use super::{FigureInput, Layout, axis_title, limit_text, svg_element, tenths, text_style};
use crate::html::{escape, in_column};

/// One of the two drawings of a figure with labels on its abscissa.
pub(super) fn bars(input: &FigureInput<'_>, layout: &Layout) -> String {
    let labels = row_labels(input);
    let bar = layout.font * 1.35;
    // A label that would take over a third of the width stands above its bars instead of beside them.
    let widest = labels.iter().map(|label| text_width(label, layout.font)).fold(0.0, f64::max);
    let above = widest > layout.width * 0.34;
    let group = bar * input.curves.len() as f64 + bar * if above { 1.5 } else { 0.55 };
    let limit_rows = input.limits.iter().filter(|line| line.value.point.value.is_some()).count();
    let (top, bottom) = (layout.font * (0.6 + 1.4 * limit_rows as f64), layout.font * 3.1);
    let height = top + group * labels.len() as f64 + bottom;
    let plan = Plan { input, layout, labels, bar, above, widest, top, bottom, height };

    let mut shapes = String::new();
    if let Err(error) = plan.draw(&mut shapes) {
        return format!(
            "<p class=\"lab-note\">This figure cannot be drawn: {}.</p>\n",
            escape(&error.to_string())
        );
    }
    let mut entries = Vec::new();
    // With one series, the line above says all.
    if input.curves.iter().any(|curve| curve.place != input.curves[0].place) {
        entries.extend(input.curves.iter().zip(curve_names(&input.curves)).map(|(curve, text)| KeyEntry {
            sample: Sample::Bar { place: curve.place, own: curve.own },
            text,
        }));
    }
    format!(
        "<div class=\"{}\">{}{}</div>\n",
        layout.class,
        key(&entries),
        svg_element(layout, height, &input.figure.alt, "", &shapes)
    )
}

/// The labels of all curves, in the order in which they first appear.
pub(super) fn row_labels(input: &FigureInput<'_>) -> Vec<String> {
    let mut labels = Vec::new();
    for x in input.curves.iter().flat_map(|curve| &curve.series.x) {
        let label = row_label(x);
        if !labels.contains(&label) {
            labels.push(label);
        }
    }
    labels
}

pub(super) fn row_label(x: &Abscissa) -> String {
    match x {
        Abscissa::Number(value) => format::number(*value),
        Abscissa::Label(label) => label.clone(),
    }
}

/// Where a text stands beside a line: towards the middle if there is room for it, else on the other side, and at the edge
/// itself where neither has any.
fn beside(line: f64, text: f64, width: f64) -> (HPos, f64) {
    const GAP: f64 = 4.0;
    let (fits_left, fits_right) = (line - GAP - text >= 0.0, line + GAP + text <= width);
    match (line > width / 2.0, fits_left, fits_right) {
        (true, true, _) | (false, true, false) => (HPos::Right, line - GAP),
        (false, _, true) | (true, false, true) => (HPos::Left, line + GAP),
        (_, false, false) => (HPos::Left, (width - text).max(0.0)),
    }
}

struct Plan<'a> {
    input: &'a FigureInput<'a>,
    layout: &'a Layout,
    labels: Vec<String>,
    /// A bar with its gap.
    bar: f64,
    above: bool,
    widest: f64,
    top: f64,
    bottom: f64,
    height: f64,
}

impl Plan<'_> {
    fn draw(&self, shapes: &mut String) -> Result<(), DrawingAreaErrorKind<Infallible>> {
        let (figure, layout, curves) = (self.input.figure, self.layout, &self.input.curves);
        let limits = || self.input.limits.iter().filter_map(|line| Some((line, line.value.point.value?)));
        let values = curves
            .iter()
            .flat_map(|curve| &curve.series.points)
            .flat_map(|point| [point.value, point.low, point.high])
            .flatten()
            .chain(limits().map(|(_, value)| value));
        let x = AxisRange::over(values, figure.y.scale, &figure.y.unit, layout.ticks.0 - 1);
        let rows = self.labels.len() as f64;
        // The numbers at the bars' ends need room.
        let written = curves.iter().flat_map(|curve| &curve.series.points).filter_map(|point| point.value);
        let right = written
            .map(|value| text_width(&in_column(value, &figure.y.unit), layout.font * 0.92))
            .fold(0.0, f64::max);

        let mut palette = Palette::default();
        let tick = palette.classes("tick");
        let (grid, axis, title) =
            (palette.classes("grid"), palette.classes("axis"), palette.classes("axis-title"));
        let limit_ink = palette.classes("limit-text");
        let dashes: Vec<_> =
            (0..self.input.limits.len()).map(|place| palette.classes(limit_class(place))).collect();
        let (row, value_ink, whisker) =
            (palette.classes("row"), palette.classes("value"), palette.classes("whisker"));
        let inks: Vec<_> = curves
            .iter()
            .map(|curve| {
                let class = series_class(curve.place, curve.own);
                (palette.classes(format!("{class} bar")), palette.classes(format!("{class} mark")))
            })
            .collect();

        let left = if self.above { 4.0 } else { self.widest + 10.0 };
        let root = Svg::new(shapes, &palette, (layout.width, self.height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin_top(tenths(self.top))
            .margin_left(tenths(left))
            .margin_right(tenths(right + 10.0))
            .margin_bottom(tenths(self.bottom - layout.font * 1.6))
            .x_label_area_size(tenths(layout.font * 1.6))
            .build_cartesian_2d(x.clone(), AxisRange::over([rows], Scale::Linear, "", 2))?;
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
        let across = |value: f64| chart.backend_coord(&(value, 0.0)).0;

        for (number_of, ((line, value), dash)) in limits().zip(dashes).enumerate() {
            let at = across(value);
            let from = tenths(layout.font * (0.3 + 1.4 * number_of as f64));
            root.draw(&PathElement::new(vec![(at, from), (at, vertical.end)], dash))?;
            let text = limit_text(line);
            let (hpos, x) =
                beside(f64::from(at) / PER_UNIT, text_width(&text, layout.font * 0.92), layout.width);
            let x = tenths(x);
            let style = text_style(layout, 0.92, &limit_ink).pos(Pos::new(hpos, VPos::Top));
            root.draw(&Text::new(text, (x, from), style))?;
        }

        let group = (f64::from(vertical.end - vertical.start) / PER_UNIT) / rows.max(1.0);
        for (index, label) in self.labels.iter().enumerate() {
            let group_top = f64::from(vertical.start) / PER_UNIT + group * index as f64;
            let first_bar = group_top + self.bar * if self.above { 1.2 } else { 0.275 };
            let (place, pos) = if self.above {
                ((horizontal.start, tenths(group_top + self.bar * 0.2)), Pos::new(HPos::Left, VPos::Top))
            } else {
                let middle = first_bar + self.bar * curves.len() as f64 / 2.0;
                ((horizontal.start - tenths(8.0), tenths(middle)), Pos::new(HPos::Right, VPos::Center))
            };
            root.draw(&Text::new(label.as_str(), place, text_style(layout, 1.0, &row).pos(pos)))?;

            for (number_of, (curve, &(bar_ink, mark_ink))) in curves.iter().zip(&inks).enumerate() {
                let top = first_bar + self.bar * number_of as f64;
                let middle = tenths(top + self.bar / 2.0);
                let position = curve.series.x.iter().position(|x| row_label(x) == *label);
                let Some(point) = position.and_then(|position| curve.series.points.get(position)) else {
                    continue;
                };
                let style = |ink| text_style(layout, 0.92, ink).pos(Pos::new(HPos::Left, VPos::Center));
                let Some(value) = point.value.filter(|&value| x.holds(value)) else {
                    let text = if point.value.is_none() { "needs a GPU" } else { "0" };
                    root.draw(&Text::new(text, (horizontal.start + tenths(4.0), middle), style(&tick)))?;
                    continue;
                };
                let end = across(value);
                if x.begins_at_zero() {
                    let (from, to) = (across(0.0).min(end), across(0.0).max(end));
                    let corners = [(from, tenths(top + 1.0)), (to, tenths(top + self.bar - 1.0))];
                    root.draw(&Rectangle::new(corners, bar_ink.filled()))?;
                } else {
                    root.draw(&Circle::new((end, middle), tenths(4.5), mark_ink.filled()))?;
                }
                let mut free = end + tenths(6.0);
                if let (Some(low), Some(high)) = (point.low, point.high)
                    && x.holds(low)
                    && x.holds(high)
                {
                    root.draw(&PathElement::new(
                        vec![(across(low), middle), (across(high), middle)],
                        whisker,
                    ))?;
                    free = free.max(across(high) + tenths(6.0));
                }
                root.draw(&Text::new(in_column(value, &figure.y.unit), (free, middle), style(&value_ink)))?;
            }
        }
        root.draw(&PathElement::new(
            vec![(horizontal.start, vertical.start), (horizontal.start, vertical.end)],
            axis,
        ))?;
        let below = ((horizontal.start + horizontal.end) / 2, tenths(self.height - 2.0));
        let style = text_style(layout, 1.0, &title).pos(Pos::new(HPos::Center, VPos::Bottom));
        root.draw(&Text::new(axis_title(&figure.y), below, style))?;
        root.present()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_beside_a_line_stays_in_the_picture() {
        let at = |line: f64, text: f64| {
            let (side, x) = beside(line, text, 360.0);
            let start = if matches!(side, HPos::Right) { x - text } else { x };
            (start, start + text)
        };
        assert_eq!(at(100.0, 50.0), (104.0, 154.0), "to the right of a line on the left");
        assert_eq!(at(300.0, 50.0), (246.0, 296.0), "to the left of a line on the right");
        assert_eq!(at(150.0, 230.0), (130.0, 360.0), "at the edge, where neither side has room");
        assert_eq!(at(170.0, 350.0), (10.0, 360.0));
        for (line, text) in
            (0..36).flat_map(|line| (1..36).map(move |text| (10.0 * f64::from(line), 10.0 * f64::from(text))))
        {
            let (start, end) = at(line, text);
            assert!(start >= 0.0 && end <= 360.0, "{line} {text}: {start} to {end}");
        }
    }
}
