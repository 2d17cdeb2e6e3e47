//! The blocks of a page that are drawn from records: what came out, from where, and the reader's own beside it.

mod block;
mod provenance;
mod state;
mod table;

use record::{Output, Point, Record, format};

use crate::records::State;

pub use block::output_block;
pub use state::state_block;

/// Everything that an output block shows.
pub struct OutputInput<'a> {
    /// The block's HTML id, unique on the page.
    pub id: String,
    /// `chapter.cell`, as the page wrote it.
    pub reference: String,
    /// The chapter's crate name.
    pub chapter: &'a str,
    /// The cell's title.
    pub title: &'a str,
    /// The recorded side: one source, or two when exact outputs come from the emulated GPU's record and measured ones from a
    /// GPU's. Each output stands in one of them.
    pub recorded: Vec<Shown<'a>>,
    /// The reader's own run of this cell, if there is one.
    pub own: Option<Shown<'a>>,
}

/// Outputs of one record.
pub struct Shown<'a> {
    /// `h200`, `emulated`, `local`.
    pub slug: &'a str,
    /// Where they came from; `None` when the record is missing or cannot be read.
    pub record: Option<&'a Record>,
    /// The outputs, in their order. Empty while the cell has not run.
    pub outputs: Vec<&'a Output>,
    /// How far they can be trusted.
    pub state: State,
}

/// What the head of a chapter's page shows.
pub struct StateInput<'a> {
    /// The chapter's crate name.
    pub chapter: &'a str,
    /// `ch01`.
    pub short: &'a str,
    /// Whether it runs only when asked for by name.
    pub heavy: bool,
    /// The committed records of this chapter (without outputs), GPU first.
    pub recorded: Vec<Shown<'a>>,
    /// The reader's own (without outputs).
    pub own: Option<Shown<'a>>,
}

/// Text for an element's content or a quoted attribute.
pub fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
        .replace('"', "&quot;")
        .replace('\'', "&#39;")
}

/// A number of a column: with its unit where the unit's prefix depends on the number, else without, because it stands in the
/// column's head.
pub(crate) fn in_column(value: f64, unit: &str) -> String {
    if format::is_scaled(unit) { format::quantity(value, unit) } else { format::number(value) }
}

/// The unit in a column's head, after the column's name.
pub(crate) fn head_unit(unit: &str) -> String {
    if unit.is_empty() || format::is_scaled(unit) {
        String::new()
    } else {
        format!(" <span class=\"unit\">{}</span>", escape(unit))
    }
}

/// A point of a column, with the spread of its samples.
pub(crate) fn point_in_column(point: &Point, unit: &str) -> String {
    let Some(value) = point.value else {
        return format!("<span class=\"needs-gpu\">{}</span>", format::NEEDS_GPU);
    };
    let column_unit = if format::is_scaled(unit) { unit } else { "" };
    let spread = format::spread(*point, column_unit)
        .map_or_else(String::new, |spread| format!(" <span class=\"spread\">{}</span>", escape(&spread)));
    in_column(value, unit) + &spread
}

/// Text of several lines for a `<pre>`: Markdown ends an HTML block at a blank line, so that newlines are written out.
fn lines(text: &str) -> String {
    escape(text).replace('\n', "&#10;")
}
