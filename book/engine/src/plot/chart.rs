//! Curves over a numeric abscissa.

use std::convert::Infallible;
use std::fmt::Write as _;

use plotters::chart::{ChartBuilder, ChartContext, LabelAreaPosition};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{Circle, EmptyElement, PathElement, Polygon, Text};
use plotters::prelude::Cartesian2d;
use plotters::series::LineSeries;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, RGBColor, TRANSPARENT};
use record::{Abscissa, Point};

use super::axis::AxisRange;
use super::svg::{self, PER_UNIT, Palette, Svg, text_width};
use super::{
    COLOURS, Curve, FigureInput, Layout, axis_title, label, labels, limit_text, svg_element, tenths,
    text_style,
};
use crate::html::escape;

type Drawn = Result<(), DrawingAreaErrorKind<Infallible>>;
type Chart<'a, 'b> = ChartContext<'a, Svg<'b>, Cartesian2d<AxisRange, AxisRange>>;

/// One of the two drawings of a figure, with its key where labels at the lines have no room.
pub(super) fn chart(input: &FigureInput<'_>, layout: &Layout) -> String {
    let plan = Plan::new(input, layout);
    let mut shapes = String::new();
    let mut columns = String::new();
    if let Err(error) = plan.draw(&mut shapes, &mut columns) {
        return format!(
            "<p class=\"lab-note\">This figure cannot be drawn: {}.</p>\n",
            escape(&error.to_string())
        );
    }
    let mut html = format!("<div class=\"{}\">", layout.class);
    html += &key(&plan.key);
    html += &svg_element(layout, layout.height, &input.figure.alt, &columns, &shapes);
    html += "</div>\n";
    html
}

/// The abscissas of all curves, ascending, each once: the rows of the table and the stops of the read-out.
pub(super) fn abscissas(curves: &[Curve<'_>]) -> Vec<f64> {
    let mut all: Vec<f64> = curves.iter().flat_map(|curve| numbers(&curve.series.x)).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    all
}

fn numbers(x: &[Abscissa]) -> impl Iterator<Item = f64> + Clone {
    x.iter().filter_map(|x| match x {
        Abscissa::Number(number) => Some(*number),
        Abscissa::Label(_) => None,
    })
}

/// A line of a key: what it looks like and what it is.
pub(super) struct KeyEntry {
    /// The shape of the sample.
    pub(super) sample: Sample,
    pub(super) text: String,
}

pub(super) enum Sample {
    Curve { place: usize, own: bool },
    Bar { place: usize, own: bool },
    Limit { place: usize },
}

/// A key above a drawing: the second choice, where labels at the lines would leave no room for the lines.
pub(super) fn key(entries: &[KeyEntry]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut html = String::from("<ul class=\"lab-key\">");
    for KeyEntry { sample, text } in entries {
        let shapes = match *sample {
            Sample::Curve { place, own } => {
                let (class, mark) = (series_class(place, own), mark_outline(place));
                let mark = match mark {
                    None => format!("<circle class=\"{class} mark\" cx=\"14\" cy=\"6\" r=\"3\"/>"),
                    Some(corners) => {
                        let points: Vec<String> = corners
                            .iter()
                            .map(|(x, y)| {
                                format!("{},{}", svg::rounded(14.0 + 3.0 * x), svg::rounded(6.0 + 3.0 * y))
                            })
                            .collect();
                        format!("<polygon class=\"{class} mark\" points=\"{}\"/>", points.join(" "))
                    }
                };
                format!("<path class=\"{class} line\" d=\"M1 6h26\"/>{mark}")
            }
            Sample::Bar { place, own } => {
                format!(
                    "<rect class=\"{} bar\" x=\"4\" y=\"1.5\" width=\"20\" height=\"9\"/>",
                    series_class(place, own)
                )
            }
            Sample::Limit { place } => {
                format!("<path class=\"{}\" d=\"M1 6h26\"/>", limit_class(place))
            }
        };
        let _ = write!(
            html,
            "<li><svg class=\"lab-svg\" viewBox=\"0 0 28 12\" aria-hidden=\"true\">{shapes}</svg>{}</li>",
            escape(text)
        );
    }
    html += "</ul>";
    html
}

/// The CSS classes of a series, by its place in the figure.
pub(super) fn series_class(place: usize, own: bool) -> String {
    format!("s{}{}", place % COLOURS, if own { " own" } else { "" })
}

/// The CSS classes of a floor or ceiling: each has its own dashes.
pub(super) fn limit_class(place: usize) -> String {
    format!("limit l{}", place % 3)
}

/// What curves are called where both records are shown, or only one.
pub(super) fn curve_names(curves: &[Curve<'_>]) -> Vec<String> {
    let one_series = curves.iter().all(|curve| curve.place == curves[0].place);
    let both = curves.iter().any(|curve| curve.own) && curves.iter().any(|curve| !curve.own);
    let name = |curve: &Curve<'_>| match (curve.own, both && one_series) {
        (false, true) => "recorded".to_owned(),
        (true, true) => "yours".to_owned(),
        (false, false) => label(curve.series).to_owned(),
        (true, false) => format!("{}, yours", label(curve.series)),
    };
    curves.iter().map(name).collect()
}

/// What is drawn where, decided before anything is drawn.
struct Plan<'a> {
    input: &'a FigureInput<'a>,
    layout: &'a Layout,
    x: AxisRange,
    y: AxisRange,
    /// Names at the line ends; empty where there is a key instead.
    names: Vec<String>,
    key: Vec<KeyEntry>,
    /// Units to the left of the plot, for tick labels, and to its right, for names.
    left: f64,
    right: f64,
    palette: Palette,
    inks: Inks,
}

struct Inks {
    tick: RGBColor,
    title: RGBColor,
    grid: RGBColor,
    axis: RGBColor,
    limits: Vec<RGBColor>,
    limit_text: RGBColor,
    curves: Vec<CurveInks>,
}

struct CurveInks {
    line: RGBColor,
    band: RGBColor,
    mark: RGBColor,
    name: RGBColor,
    leader: RGBColor,
}

impl<'a> Plan<'a> {
    fn new(input: &'a FigureInput<'a>, layout: &'a Layout) -> Self {
        let figure = input.figure;
        let points = || input.curves.iter().flat_map(|curve| &curve.series.points);
        let limits = input.limits.iter().filter_map(|line| line.value.point.value);
        let values = points().flat_map(|point| [point.value, point.low, point.high]).flatten().chain(limits);
        let x = AxisRange::tight(abscissas(&input.curves), figure.x.scale, &figure.x.unit, layout.ticks.0);
        let y = AxisRange::over(values, figure.y.scale, &figure.y.unit, layout.ticks.1);

        let mut names = curve_names(&input.curves);
        let mut key = Vec::new();
        // One curve that is what the axis says needs no name.
        if names.len() == 1 && (names[0] == figure.y.label || names[0] == figure.title) {
            names.clear();
        }
        let longest = names.iter().map(|name| text_width(name, layout.font)).fold(0.0, f64::max);
        if longest > layout.labels {
            let entries = names.drain(..).zip(&input.curves);
            key.extend(entries.map(|(text, curve)| KeyEntry {
                sample: Sample::Curve { place: curve.place, own: curve.own },
                text,
            }));
        }
        let widest_tick = y.ticks().map(|(_, text)| text_width(&text, layout.font)).fold(0.0, f64::max);
        let last_tick = x.ticks().last().map_or(0.0, |(_, text)| text_width(&text, layout.font));
        let left = widest_tick + 10.0;
        let right = if names.is_empty() { last_tick / 2.0 + 4.0 } else { longest + 18.0 };

        let plot_width = layout.width - left - right;
        for (place, line) in input.limits.iter().enumerate() {
            let text = limit_text(line);
            // A label over half of the plot would lie on its curves.
            if text_width(&text, layout.font * 0.92) > plot_width / 2.0 {
                key.push(KeyEntry { sample: Sample::Limit { place }, text });
            }
        }

        let mut palette = Palette::default();
        let mut ink = |classes: &str| palette.classes(classes);
        let inks = Inks {
            tick: ink("tick"),
            title: ink("axis-title"),
            grid: ink("grid"),
            axis: ink("axis"),
            limits: (0..input.limits.len()).map(|place| ink(&limit_class(place))).collect(),
            limit_text: ink("limit-text"),
            curves: input
                .curves
                .iter()
                .map(|curve| {
                    let class = series_class(curve.place, curve.own);
                    CurveInks {
                        line: ink(&format!("{class} line")),
                        band: ink(&format!("{class} band")),
                        mark: ink(&format!("{class} mark")),
                        name: ink(&format!("{class} name")),
                        leader: ink(&format!("{class} leader")),
                    }
                })
                .collect(),
        };
        Self { input, layout, x, y, names, key, left, right, palette, inks }
    }

    fn draw(&self, shapes: &mut String, columns: &mut String) -> Drawn {
        let Layout { width, height, font, .. } = *self.layout;
        let (top, bottom) = (font * 1.9, font * 3.1);
        let root = Svg::new(shapes, &self.palette, (width, height)).into_drawing_area();
        let mut chart = ChartBuilder::on(&root)
            .margin_top(tenths(top))
            .margin_right(tenths(self.right))
            .margin_bottom(tenths(bottom - font * 1.6))
            .x_label_area_size(tenths(font * 1.6))
            .y_label_area_size(tenths(self.left))
            .build_cartesian_2d(self.x.clone(), self.y.clone())?;
        chart
            .configure_mesh()
            .disable_x_mesh()
            .axis_style(TRANSPARENT)
            // Labels stand at twice this distance.
            .set_tick_mark_size(LabelAreaPosition::Left, tenths(3.0))
            .set_tick_mark_size(LabelAreaPosition::Bottom, tenths(4.4))
            .bold_line_style(self.inks.grid)
            .light_line_style(TRANSPARENT)
            .label_style(text_style(self.layout, 1.0, &self.inks.tick))
            .draw()?;
        self.draw_axes(&root, &chart)?;
        self.draw_limits(&root, &chart)?;
        for (curve, inks) in self.input.curves.iter().zip(&self.inks.curves) {
            self.draw_curve(&mut chart, curve, inks)?;
        }
        self.draw_names(&root, &chart)?;

        let area = chart.plotting_area().get_pixel_range();
        let stops: Vec<String> = abscissas(&self.input.curves)
            .into_iter()
            .map(|x| match self.x.holds(x) {
                true => svg::rounded(f64::from(chart.backend_coord(&(x, self.y.low())).0) / PER_UNIT),
                false => String::new(),
            })
            .collect();
        let _ = write!(
            columns,
            " tabindex=\"0\" data-stops=\"{}\" data-top=\"{}\" data-bottom=\"{}\"",
            stops.join(" "),
            svg::rounded(f64::from(area.1.start) / PER_UNIT),
            svg::rounded(f64::from(area.1.end) / PER_UNIT)
        );
        root.present()
    }

    /// The base line with its ticks, and what the axes show.
    fn draw_axes<'b>(&self, root: &DrawingArea<Svg<'b>, Shift>, chart: &Chart<'_, 'b>) -> Drawn {
        let (horizontal, vertical) = chart.plotting_area().get_pixel_range();
        let base = vertical.end;
        root.draw(&PathElement::new(vec![(horizontal.start, base), (horizontal.end, base)], self.inks.axis))?;
        for (tick, _) in self.x.ticks() {
            let x = chart.backend_coord(&(tick, self.y.low())).0;
            root.draw(&PathElement::new(vec![(x, base), (x, base + tenths(4.0))], self.inks.axis))?;
        }
        let style = text_style(self.layout, 1.0, &self.inks.title);
        let middle = (horizontal.start + horizontal.end) / 2;
        let below = (middle, tenths(self.layout.height - 2.0));
        let figure = self.input.figure;
        root.draw(&Text::new(axis_title(&figure.x), below, style.pos(Pos::new(HPos::Center, VPos::Bottom))))?;
        root.draw(&Text::new(axis_title(&figure.y), (tenths(2.0), tenths(1.0)), style))
    }

    /// The dashed floors and ceilings, each with its label where the curves leave room for it.
    fn draw_limits<'b>(&self, root: &DrawingArea<Svg<'b>, Shift>, chart: &Chart<'_, 'b>) -> Drawn {
        let (horizontal, vertical) = chart.plotting_area().get_pixel_range();
        // The vertical axis' title stands there already.
        let title = text_width(&axis_title(&self.input.figure.y), self.layout.font);
        let mut taken = vec![Area { left: 0, top: 0, right: tenths(title + 8.0), bottom: vertical.start }];
        let lines: Vec<i32> = self
            .input
            .limits
            .iter()
            .filter_map(|line| line.value.point.value.filter(|&value| self.y.holds(value)))
            .map(|value| chart.backend_coord(&(self.x.low(), value)).1)
            .collect();
        let curves = self.samples(chart);
        for (line, dash) in self.input.limits.iter().zip(&self.inks.limits) {
            let Some(value) = line.value.point.value.filter(|&value| self.y.holds(value)) else {
                continue;
            };
            let y = chart.backend_coord(&(self.x.low(), value)).1;
            root.draw(&PathElement::new(vec![(horizontal.start, y), (horizontal.end, y)], *dash))?;
            let text = limit_text(line);
            if self.key.iter().any(|entry| entry.text == text) {
                continue;
            }
            let size = self.layout.font * 0.92;
            let (width, height) = (tenths(text_width(&text, size)), tenths(size * 1.25));
            let gap = tenths(2.0);
            let places = [
                (horizontal.start + gap, y - gap - height),
                (horizontal.end - gap - width, y - gap - height),
                (horizontal.start + gap, y + 2 * gap),
                (horizontal.end - gap - width, y + 2 * gap),
                ((horizontal.start + horizontal.end - width) / 2, y - gap - height),
            ];
            let area = places
                .map(|(left, top)| Area { left, top, right: left + width, bottom: top + height })
                .into_iter()
                .min_by_key(|area| {
                    let outside = area.top < tenths(1.0) || area.bottom > vertical.end;
                    // Between two lines one cannot see whose label it is.
                    let near = area.top - height..area.bottom + height;
                    let between = lines.iter().filter(|&&other| other != y && near.contains(&other)).count();
                    let hit = curves.iter().filter(|&&point| area.contains(point)).count();
                    let covered = taken.iter().filter(|other| area.overlaps(other)).count();
                    hit + 4 * between + 100 * covered + 1000 * usize::from(outside)
                });
            if let Some(area) = area {
                let style = text_style(self.layout, 0.92, &self.inks.limit_text);
                root.draw(&Text::new(text, (area.left, area.top), style))?;
                taken.push(area);
            }
        }
        Ok(())
    }

    /// Points along all curves, close enough together to see whether a label would cover one.
    fn samples(&self, chart: &Chart<'_, '_>) -> Vec<(i32, i32)> {
        let mut samples = Vec::new();
        for curve in &self.input.curves {
            for segment in self.segments(curve) {
                let places: Vec<(i32, i32)> = segment
                    .iter()
                    .map(|(x, point)| chart.backend_coord(&(*x, point.value.unwrap_or(*x))))
                    .collect();
                samples.extend(places.iter().copied());
                for pair in places.windows(2) {
                    samples.extend((1..12).map(|step| {
                        (
                            pair[0].0 + (pair[1].0 - pair[0].0) * step / 12,
                            pair[0].1 + (pair[1].1 - pair[0].1) * step / 12,
                        )
                    }));
                }
            }
        }
        samples
    }

    /// The drawable stretches of a curve: a value that is missing, or that a logarithm cannot show, is a gap.
    fn segments(&self, curve: &Curve<'_>) -> Vec<Vec<(f64, Point)>> {
        let mut points: Vec<(f64, Point)> = curve
            .series
            .x
            .iter()
            .zip(&curve.series.points)
            .filter_map(|(x, point)| match x {
                Abscissa::Number(x) if self.x.holds(*x) => Some((*x, *point)),
                _ => None,
            })
            .collect();
        points.sort_by(|a, b| a.0.total_cmp(&b.0));
        let mut segments = vec![Vec::new()];
        for (x, point) in points {
            match point.value {
                Some(value) if self.y.holds(value) => {
                    if let Some(segment) = segments.last_mut() {
                        segment.push((x, point));
                    }
                }
                _ => segments.push(Vec::new()),
            }
        }
        segments.retain(|segment| !segment.is_empty());
        segments
    }

    fn draw_curve(&self, chart: &mut Chart<'_, '_>, curve: &Curve<'_>, inks: &CurveInks) -> Drawn {
        let segments = self.segments(curve);
        let points: usize = segments.iter().map(Vec::len).sum();
        for segment in &segments {
            let spread: Vec<(f64, f64, f64)> = segment
                .iter()
                .filter_map(|(x, point)| Some((*x, point.low?, point.high?)))
                .filter(|(_, low, high)| self.y.holds(*low) && self.y.holds(*high))
                .collect();
            if spread.len() > 1 && !curve.own {
                let over = spread.iter().map(|&(x, _, high)| (x, high));
                let under = spread.iter().rev().map(|&(x, low, _)| (x, low));
                chart.draw_series([Polygon::new(over.chain(under).collect::<Vec<_>>(), inks.band)])?;
            }
            let line = segment.iter().filter_map(|(x, point)| Some((*x, point.value?)));
            if segment.len() > 1 {
                chart.draw_series(LineSeries::new(line.clone(), inks.line))?;
            }
            // Beyond some forty points marks are only noise; the line's colour and label must do.
            if points <= 40 {
                for place in line {
                    draw_mark(chart, place, curve.place, inks.mark)?;
                }
            }
        }
        Ok(())
    }

    /// The names at the line ends, moved apart, with a thin line back to the curve where they moved or the curve ends early.
    fn draw_names<'b>(&self, root: &DrawingArea<Svg<'b>, Shift>, chart: &Chart<'_, 'b>) -> Drawn {
        if self.names.is_empty() {
            return Ok(());
        }
        let (horizontal, vertical) = chart.plotting_area().get_pixel_range();
        let ends: Vec<Option<(i32, i32)>> = self
            .input
            .curves
            .iter()
            .map(|curve| {
                let segments = self.segments(curve);
                let (x, point) = segments.last()?.last().copied()?;
                Some(chart.backend_coord(&(x, point.value?)))
            })
            .collect();
        let shown: Vec<usize> = (0..ends.len()).filter(|&index| ends[index].is_some()).collect();
        let wanted: Vec<f64> =
            shown.iter().filter_map(|&index| ends[index]).map(|(_, y)| f64::from(y)).collect();
        let height = self.layout.font * 1.25 * PER_UNIT;
        let top = f64::from(vertical.start) - height / 2.0;
        let places = labels::spread(&wanted, height, top, f64::from(vertical.end));
        let left = horizontal.end + tenths(14.0);
        for (&index, &y) in shown.iter().zip(&places) {
            let Some(end) = ends[index] else { continue };
            let inks = &self.inks.curves[index];
            let y = y.round() as i32;
            let moved = (y - end.1).abs() > tenths(3.0) || end.0 < horizontal.end - tenths(2.0);
            if moved {
                let path = vec![(end.0 + tenths(5.0), end.1), (left - tenths(3.0), y)];
                root.draw(&PathElement::new(path, inks.leader))?;
            }
            let style = text_style(self.layout, 1.0, &inks.name).pos(Pos::new(HPos::Left, VPos::Center));
            root.draw(&Text::new(self.names[index].as_str(), (left, y), style))?;
        }
        Ok(())
    }
}

fn draw_mark(chart: &mut Chart<'_, '_>, at: (f64, f64), place: usize, ink: RGBColor) -> Drawn {
    match mark_outline(place) {
        None => chart.draw_series([Circle::new(at, tenths(3.0), ink.filled())])?,
        Some(corners) => {
            let corners: Vec<(i32, i32)> =
                corners.iter().map(|(x, y)| (tenths(3.3 * x), tenths(3.3 * y))).collect();
            chart.draw_series([EmptyElement::at(at) + Polygon::new(corners, ink)])?
        }
    };
    Ok(())
}

/// The corners of a series' mark around its centre; `None` is a circle. Shapes and colours have cycles of different length,
/// so that the eighth series looks like none before it.
fn mark_outline(place: usize) -> Option<&'static [(f64, f64)]> {
    const SQUARE: &[(f64, f64)] = &[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)];
    const TRIANGLE: &[(f64, f64)] = &[(0.0, -1.2), (1.1, 0.8), (-1.1, 0.8)];
    const DIAMOND: &[(f64, f64)] = &[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)];
    const POINTING_DOWN: &[(f64, f64)] = &[(-1.1, -0.8), (1.1, -0.8), (0.0, 1.2)];
    [None, Some(SQUARE), Some(TRIANGLE), Some(DIAMOND), Some(POINTING_DOWN)][place % 5]
}

/// A rectangle in plotters' pixels.
#[derive(Clone, Copy)]
struct Area {
    left: i32,
    top: i32,
    right: i32,
    bottom: i32,
}

impl Area {
    fn contains(&self, (x, y): (i32, i32)) -> bool {
        let near = tenths(4.0);
        (self.left - near..self.right + near).contains(&x)
            && (self.top - near..self.bottom + near).contains(&y)
    }

    fn overlaps(&self, other: &Area) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }
}
