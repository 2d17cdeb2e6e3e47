//! Inline SVG from records: curves over an abscissa, bars, heat maps, and timelines.
//!
//! Every figure is drawn twice, for a wide page and for a phone, because a picture that is scaled down to 360 px has labels
//! that nobody can read; the theme shows one of them. The same data stands below as a table, from which the read-out under
//! a pointer is also taken, so a figure has no second copy of its numbers.

mod axis;
mod bars;
mod chart;
mod heat;
mod labels;
mod span;
mod svg;
mod table;

use std::fmt::Write as _;

use plotters::style::{IntoFont, RGBColor, TextStyle};
use record::{Axis, Figure, HeatMap, Kind, Scale, Series, Timeline, Value, format};

use crate::html::escape;

/// A figure with the curves to draw in it.
pub struct FigureInput<'a> {
    /// The figure's HTML id, unique on the page.
    pub id: String,
    /// Title, axes, alternative text, the order of the series.
    pub figure: &'a Figure,
    /// The curves: recorded ones, then the reader's own. All on one axis.
    pub curves: Vec<Curve<'a>>,
    /// Floors and ceilings.
    pub limits: Vec<Line<'a>>,
}

/// One series of one record.
#[derive(Clone)]
pub struct Curve<'a> {
    /// The data.
    pub series: &'a Series,
    /// Whose it is, such as `H200`, `emulated GPU`, or the reader's device.
    pub device: &'a str,
    /// The reader's own (outlined) or recorded (solid).
    pub own: bool,
    /// Its place in [`Figure::series`], which chooses colour and mark: the same in both records.
    pub place: usize,
}

/// A floor or a ceiling.
#[derive(Clone)]
pub struct Line<'a> {
    /// The number.
    pub value: &'a Value,
    /// What it is and how it was got.
    pub label: &'a str,
    /// Whose it is.
    pub device: &'a str,
    /// The reader's own or recorded.
    pub own: bool,
}

/// A timeline with whose it is.
pub struct TimelineInput<'a> {
    /// The HTML id, unique on the page.
    pub id: String,
    /// The lanes.
    pub timeline: &'a Timeline,
    /// Whose it is.
    pub device: &'a str,
    /// The reader's own or recorded.
    pub own: bool,
}

/// A heat map with whose it is.
pub struct HeatMapInput<'a> {
    /// The HTML id, unique on the page.
    pub id: String,
    /// The numbers.
    pub map: &'a HeatMap,
    /// Whose it is.
    pub device: &'a str,
    /// The reader's own or recorded.
    pub own: bool,
    /// The reader's own is the same as this recorded one.
    pub same: bool,
}

/// `<figure>` with inline SVG, a folded table of the same data, and alternative text. No blank line in it.
pub fn figure(input: &FigureInput<'_>) -> String {
    let (shown, notes) = worth_drawing(input);
    let mut html = opening(&input.id, &input.figure.title);
    let bars = shown.figure.x.scale == Scale::Labels;
    html += &sources(shown.curves.iter().map(|curve| (curve.device, curve.own)), bars);
    for layout in &LAYOUTS {
        html += &if bars { bars::bars(&shown, layout) } else { chart::chart(&shown, layout) };
    }
    for note in notes {
        let _ = write!(html, "<p class=\"lab-note\">{}</p>", escape(&note));
    }
    html += &folded_table(&table::of_figure(input));
    html += "</figure>\n";
    html
}

/// `<figure>` of lanes and spans. No blank line in it.
pub fn timeline(input: &TimelineInput<'_>) -> String {
    let mut html = opening(&input.id, &input.timeline.title);
    html += &sources([(input.device, input.own)], true);
    for layout in &LAYOUTS {
        html += &span::timeline(input, layout);
    }
    html += &folded_table(&table::of_timeline(input.timeline));
    html += "</figure>\n";
    html
}

/// `<figure>` of coloured squares. No blank line in it.
pub fn heat_map(input: &HeatMapInput<'_>) -> String {
    let mut html = opening(&input.id, &input.map.title);
    html += &sources([(input.device, input.own)], true);
    for layout in &LAYOUTS {
        html += &heat::heat_map(input, layout);
    }
    if input.same {
        html += "<p class=\"lab-note\">Yours is the same.</p>\n";
    }
    html += &folded_table(&heat::table(input.map));
    html += "</figure>\n";
    html
}

/// The sizes of one of the two drawings, in units of its view box; a unit is about a pixel where it is shown.
struct Layout {
    /// The class that the theme shows or hides it by.
    class: &'static str,
    width: f64,
    height: f64,
    font: f64,
    /// About how many ticks fit.
    ticks: (usize, usize),
    /// The most that labels at line ends may take from the drawing; longer ones become a key.
    labels: f64,
}

const LAYOUTS: [Layout; 2] = [
    Layout { class: "lab-wide", width: 720.0, height: 380.0, font: 13.0, ticks: (9, 7), labels: 190.0 },
    Layout { class: "lab-narrow", width: 360.0, height: 300.0, font: 12.5, ticks: (5, 6), labels: 84.0 },
];

/// Colours of the theme; a figure with more series repeats them with other marks.
const COLOURS: usize = 7;

/// The figure without what would only repeat or could not be seen, and a sentence for each thing left out.
fn worth_drawing<'a>(input: &FigureInput<'a>) -> (FigureInput<'a>, Vec<String>) {
    let mut notes = Vec::new();
    let recorded = |curve: &Curve<'_>| {
        input.curves.iter().find(|other| !other.own && other.place == curve.place).map(|other| other.series)
    };
    let (mut same, mut timeless) = (Vec::new(), Vec::new());
    let curves = input.curves.iter().filter(|curve| {
        let series = curve.series;
        if series.points.iter().all(|point| point.value.is_none()) {
            timeless.push((curve.own, label(series)));
            return false;
        }
        let repeats = curve.own
            && series.kind == Kind::Exact
            && recorded(curve).is_some_and(|other| other.x == series.x && other.points == series.points);
        if repeats {
            same.push(label(series));
        }
        !repeats
    });
    let curves: Vec<Curve<'a>> = curves.cloned().collect();
    if !same.is_empty() {
        notes.push(format!("Yours is the same: {}.", same.join(", ")));
    }
    for (own, whose) in [(false, "This record has no time, which needs a GPU"), (true, "Yours needs a GPU")] {
        let labels: Vec<&str> =
            timeless.iter().filter(|(of, _)| *of == own).map(|(_, label)| *label).collect();
        if !labels.is_empty() {
            notes.push(format!("{whose}: {}.", labels.join(", ")));
        }
    }
    let seen = |line: &&Line<'a>| {
        let twin = input.limits.iter().find(|other| !other.own && other.label == line.label);
        line.value.point.value.is_some()
            && !(line.own && twin.is_some_and(|twin| twin.value.point.value == line.value.point.value))
    };
    let limits = input.limits.iter().filter(seen).cloned().collect();
    (FigureInput { id: input.id.clone(), figure: input.figure, curves, limits }, notes)
}

fn opening(id: &str, title: &str) -> String {
    format!("<figure class=\"lab-plot\" id=\"{}\">\n<figcaption>{}</figcaption>\n", escape(id), escape(title))
}

/// Whose curves are solid and whose are dashed, or whose bars are full and whose are outlined.
fn sources<'a>(devices: impl IntoIterator<Item = (&'a str, bool)>, bars: bool) -> String {
    let mut seen: Vec<(&str, bool)> = Vec::new();
    for source in devices {
        if !seen.contains(&source) {
            seen.push(source);
        }
    }
    let mut html = format!("<p class=\"lab-sources{}\">", if bars { " bars" } else { "" });
    for (device, own) in seen {
        let (class, whose) = if own { ("own", "yours") } else { ("recorded", "recorded") };
        let _ = write!(html, "<span class=\"{class}\">{whose}: {}</span> ", escape(device));
    }
    html.truncate(html.trim_end().len());
    html += "</p>\n";
    html
}

fn folded_table(table: &str) -> String {
    format!(
        "<details class=\"lab-data\"><summary>The same as a table</summary><div class=\"lab-scroll\" tabindex=\"0\">{table}</div></details>\n"
    )
}

/// `<svg>` with its alternative text. `attributes` are ` data-…` for the read-out.
fn svg_element(layout: &Layout, height: f64, alt: &str, attributes: &str, shapes: &str) -> String {
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"lab-svg\" viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{}\"{attributes}>{shapes}</svg>",
        layout.width,
        svg::rounded(height),
        escape(alt),
    )
}

/// What a person reads for a series.
fn label(series: &Series) -> &str {
    if series.label.is_empty() { &series.name } else { &series.label }
}

/// `bandwidth (GB/s)`.
fn axis_title(axis: &Axis) -> String {
    match (axis.label.as_str(), axis.unit.as_str()) {
        (label, "") => label.to_owned(),
        // Such a unit stands at each tick, with its prefix.
        (label, unit) if format::is_scaled(unit) => label.to_owned(),
        ("", unit) => unit.to_owned(),
        (label, unit) => format!("{label} ({unit})"),
    }
}

/// `copy of the same bytes: 4 301 GB/s`.
fn limit_text(line: &Line<'_>) -> String {
    let whose = if line.own { ", yours" } else { "" };
    format!("{}{whose}: {}", line.label, format::point(line.value.point, &line.value.unit))
}

fn text_style(layout: &Layout, scale: f64, ink: &RGBColor) -> TextStyle<'static> {
    ("sans-serif", layout.font * scale * svg::PER_UNIT).into_font().color(ink)
}

fn tenths(units: f64) -> i32 {
    (units * svg::PER_UNIT).round() as i32
}

#[cfg(test)]
mod tests {
    use record::{Lane, Limit, Span};

    use super::*;
    use crate::directive::well_formed;

    fn figure_of(x: Axis, y: Axis) -> Figure {
        let limits = vec![Limit { value: "copy".into(), label: "a kernel that only copies".into() }];
        Figure {
            limits,
            ..Figure::new("How fast?", "Two <curves> & a line.").x(x).y(y).series(["scalar", "float4"])
        }
    }

    fn series(name: &str, points: &[(f64, Option<f64>)]) -> Series {
        let mut series = Series::measured(name, "GB/s");
        for &(x, y) in points {
            series.push(x, record::Point { value: y, low: y.map(|y| y * 0.9), high: y, samples: Some(25) });
        }
        series
    }

    fn drawn(figure: &Figure, curves: &[(&Series, bool, usize)]) -> String {
        let copy = Value {
            name: "copy".into(),
            kind: Kind::Measured,
            unit: "GB/s".into(),
            point: 4512.0.into(),
            note: String::new(),
        };
        let curve =
            |&(series, own, place)| Curve { series, device: if own { "T4" } else { "H200" }, own, place };
        let limits =
            vec![Line { value: &copy, label: "a kernel that only copies", device: "H200", own: false }];
        let curves = curves.iter().map(curve).collect();
        let html = super::figure(&FigureInput { id: "f".into(), figure, curves, limits });
        well_formed(&html).unwrap_or_else(|what| panic!("{what}: {html}"));
        html
    }

    #[test]
    fn every_scale_and_any_data_make_well_formed_svg() {
        let rising = series("scalar", &[(1.0, Some(2.0)), (2.0, Some(40.0)), (1e6, Some(3000.0))]);
        let odd =
            series("float4", &[(0.0, Some(0.0)), (2.0, None), (3.0, Some(f64::NAN)), (4.0, Some(-1.0))]);
        let axes = [Axis::linear("n", ""), Axis::log2("n", "B"), Axis::log10("n", "s"), Axis::labels("n")];
        for x in &axes {
            for y in &axes[..3] {
                let figure = figure_of(x.clone(), y.clone());
                for curves in [
                    &[][..],
                    &[(&rising, false, 0)],
                    &[(&odd, false, 1)],
                    &[(&rising, false, 0), (&odd, false, 1), (&rising, true, 0), (&odd, true, 1)],
                ] {
                    let html = drawn(&figure, curves);
                    assert!(!html.contains("NaN") && !html.contains("inf"), "{html}");
                    assert_eq!(html.matches("role=\"img\"").count(), 2, "{html}");
                }
            }
        }
    }

    #[test]
    fn recorded_and_own_share_a_colour_and_differ_in_line() {
        let recorded = series("scalar", &[(1.0, Some(10.0)), (2.0, Some(20.0))]);
        let own = series("scalar", &[(1.0, Some(1.0)), (2.0, Some(2.0))]);
        let html = drawn(
            &figure_of(Axis::log2("n", ""), Axis::linear("rate", "GB/s")),
            &[(&recorded, false, 0), (&own, true, 0)],
        );
        for class in ["\"s0 line\"", "\"s0 own line\"", "\"s0 band\"", "\"limit l0\""] {
            assert!(html.contains(class), "{class} in {html}");
        }
        assert!(html.contains("recorded: H200") && html.contains("yours: T4"), "{html}");
        assert!(html.contains("aria-label=\"Two &lt;curves&gt; &amp; a line.\""), "{html}");
        assert!(html.contains("a kernel that only copies: 4\u{202f}512\u{202f}GB/s"), "{html}");
    }

    #[test]
    fn what_is_the_same_or_needs_a_gpu_is_said_and_not_drawn() {
        let mut exact = series("scalar", &[(1.0, Some(10.0)), (2.0, Some(20.0))]);
        exact.kind = Kind::Exact;
        let timeless = series("float4", &[(1.0, None), (2.0, None)]);
        let html = drawn(
            &figure_of(Axis::log2("n", ""), Axis::linear("rate", "GB/s")),
            &[(&exact, false, 0), (&exact, true, 0), (&timeless, true, 1)],
        );
        assert!(
            html.contains("Yours is the same: scalar.") && html.contains("Yours needs a GPU: float4."),
            "{html}"
        );
        assert!(!html.contains("s0 own line") && !html.contains("s1 own line"), "{html}");
        assert!(html.contains("needs a GPU</span>"), "the table has it all the same: {html}");
    }

    #[test]
    fn a_timeline_says_what_each_span_is() {
        let span = |name: &str, start_us: f64, end_us: f64| Span { name: name.into(), start_us, end_us };
        let timeline = Timeline {
            title: "T".into(),
            alt: "A.".into(),
            lanes: vec![
                Lane {
                    name: "stream 7".into(),
                    spans: vec![span("add<float>", 0.0, 3.5), span("add<float>", 5.0, 9.0)],
                },
                Lane { name: "empty".into(), spans: Vec::new() },
            ],
        };
        let html = super::timeline(&TimelineInput {
            id: "t".into(),
            timeline: &timeline,
            device: "H200",
            own: false,
        });
        well_formed(&html).unwrap_or_else(|what| panic!("{what}: {html}"));
        assert!(html.contains("<title>add&lt;float&gt;: 3.50\u{202f}µs, from 0\u{202f}s</title>"), "{html}");
        let nothing = Timeline { lanes: Vec::new(), ..timeline };
        let html =
            super::timeline(&TimelineInput { id: "t".into(), timeline: &nothing, device: "H200", own: true });
        well_formed(&html).unwrap_or_else(|what| panic!("{what}: {html}"));
    }
}
