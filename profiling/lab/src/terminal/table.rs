//! Tables: numbers to the right, words to the left, headings over as many lines as keep the columns narrow.

use record::format::{self, is_scaled, number, quantity};
use record::{Entry, Kind, Table};

use super::{left, right};

/// The table as lines. Times that the emulated GPU has not "need a GPU"; all else that is missing was not measured here.
pub(super) fn lines(table: &Table, emulated: bool) -> String {
    let column = |place| Column::of(table, place, emulated);
    let columns: Vec<Column> = (0..table.columns.len()).map(column).collect();
    let head = columns.iter().map(|column| column.head.len()).max().unwrap_or(0);
    let mut text = String::new();
    for line in 0..head {
        // Short headings stand at the bottom, next to their column.
        push_line(&mut text, &columns, |column| {
            let above = head - column.head.len();
            line.checked_sub(above).map_or("", |line| column.head[line].as_str())
        });
    }
    push_line(&mut text, &columns, |column| &column.rule);
    for row in 0..table.rows.len() {
        push_line(&mut text, &columns, |column| &column.entries[row]);
    }
    text
}

struct Column {
    head: Vec<String>,
    entries: Vec<String>,
    rule: String,
    width: usize,
    is_text: bool,
}

impl Column {
    fn of(table: &Table, place: usize, emulated: bool) -> Self {
        let column = &table.columns[place];
        // A unit whose prefix depends on the number stands beside each number.
        let beside = is_scaled(&column.unit);
        let entry = |row: &Vec<Entry>| match row.get(place) {
            Some(Entry::Number(value)) if beside => quantity(*value, &column.unit),
            Some(Entry::Number(value)) => number(*value),
            Some(Entry::Text(text)) => text.clone(),
            Some(Entry::NeedsGpu(())) if emulated && column.kind == Kind::Measured => {
                format::NEEDS_GPU.to_owned()
            }
            Some(Entry::NeedsGpu(())) => "–".to_owned(),
            None => String::new(),
        };
        let entries: Vec<String> = table.rows.iter().map(entry).collect();
        let is_text = table.rows.iter().all(|row| matches!(row.get(place), Some(Entry::Text(_))));
        let widest = entries.iter().map(|entry| entry.chars().count()).max().unwrap_or(0);
        let mut head = wrap(&column.name, widest);
        if !beside && !column.unit.is_empty() {
            head.push(column.unit.clone());
        }
        let width = head.iter().map(|line| line.chars().count()).max().unwrap_or(0).max(widest);
        Self { head, entries, rule: "─".repeat(width), width, is_text }
    }
}

fn push_line<'a>(text: &mut String, columns: &'a [Column], entry: impl Fn(&'a Column) -> &'a str) {
    let entries = columns.iter().map(|column| {
        let fill = if column.is_text { left } else { right };
        fill(entry(column), column.width)
    });
    text.push_str(entries.collect::<Vec<_>>().join("  ").trim_end());
    text.push('\n');
}

/// Breaks a heading between words so that it is no wider than its longest word, than `width` or than a few letters.
fn wrap(heading: &str, width: usize) -> Vec<String> {
    let width = width.max(9);
    let width = heading.split(' ').map(|word| word.chars().count()).max().unwrap_or(0).max(width);
    let mut lines: Vec<String> = Vec::new();
    for word in heading.split(' ') {
        match lines.last_mut() {
            Some(line) if line.chars().count() + 1 + word.chars().count() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
