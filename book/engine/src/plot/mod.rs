//! Inline SVG from records: curves over an abscissa, and timelines.

use record::{Figure, Series, Timeline, Value};

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

/// `<figure>` with inline SVG, a folded table of the same data, and alternative text. No blank line in it.
pub fn figure(input: &FigureInput<'_>) -> String {
    let _ = input;
    String::new()
}

/// `<figure>` of lanes and spans. No blank line in it.
pub fn timeline(input: &TimelineInput<'_>) -> String {
    let _ = input;
    String::new()
}
