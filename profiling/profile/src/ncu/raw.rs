//! Reads what `ncu --csv --page raw` writes: a header, a row of units, and a row for each launch, between lines of the
//! tool's own (`==PROF== …`).
//!
//! Strict on numbers. In a European locale ncu writes `27.595.520` and `27,6`, of which some read as other numbers: a
//! file with one such number is refused as a whole.

use std::collections::BTreeMap;

use anyhow::{Context as _, bail};

use crate::reading::Reading;

/// What a session printed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Report {
    /// One for each launch that was profiled, in order.
    pub launches: Vec<Launch>,
    /// The tool's own warnings and errors, without their `==…==`.
    pub messages: Vec<String>,
}

/// A launch and its metrics.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Launch {
    /// The kernel's name without return type and parameters.
    pub kernel: String,
    /// Blocks in each dimension.
    pub grid: [i64; 3],
    /// Threads in each dimension of a block.
    pub block: [i64; 3],
    /// Such as `9.0`.
    pub compute_capability: String,
    /// The push/pop ranges around it, outermost first, as `domain:name`.
    pub ranges: Vec<String>,
    /// The device's name, where the session asked for its attributes.
    pub device: Option<String>,
    /// Every metric that was asked for, by name.
    pub metrics: BTreeMap<String, Metric>,
}

/// A metric of a launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Metric {
    /// The unit as ncu wrote it; empty for a bare number.
    pub unit: String,
    /// The value.
    pub value: Datum,
}

/// What stands in a metric's column.
#[derive(Clone, Debug, PartialEq)]
pub enum Datum {
    /// A number.
    Number(f64),
    /// A word, such as `CachePreferNone`.
    Word(String),
    /// `n/a`: the metric does not exist on this GPU. `no data`: it does, and was not collected for this launch.
    None(String),
}

/// Columns that are no metrics.
const IDENTITY: [&str; 13] = [
    "ID",
    "Process ID",
    "Process Name",
    "Host Name",
    "Kernel Name",
    "Kernel Time",
    "Context",
    "Stream",
    "Block Size",
    "Grid Size",
    "Device",
    "CC",
    "Invocations",
];

/// Reads the text.
///
/// # Errors
/// A number in a form that cannot be trusted, or a table that lacks what identifies a launch.
pub fn parse(text: &str) -> anyhow::Result<Report> {
    let mut report = Report { messages: messages(text), ..Report::default() };
    let mut table = String::new();
    // Anything else is the tool's own, or what the profiled program said.
    for line in text.lines().filter(|line| line.starts_with('"')) {
        table.push_str(line);
        table.push('\n');
    }
    if table.is_empty() {
        return Ok(report);
    }

    let mut reader = csv::ReaderBuilder::new().from_reader(table.as_bytes());
    let header = reader.headers().context("the header of the raw page")?.clone();
    let column = |name: &str| {
        let found = header.iter().position(|column| column == name);
        found.with_context(|| {
            format!("the raw page has no column `{name}`: was it written by `ncu --page raw --csv`?")
        })
    };
    let (kernel, block, grid, capability) =
        (column("Kernel Name")?, column("Block Size")?, column("Grid Size")?, column("CC")?);
    let ranges = header.iter().position(|name| name.contains("Push/Pop_Range"));
    let mut rows = reader.records();
    let units =
        rows.next().context("the raw page ends before its row of units")?.context("the row of units")?;
    if units.get(kernel).is_some_and(|unit| !unit.is_empty()) {
        bail!(
            "the raw page has no row of units, so its figures cannot be told apart: ncu --page raw --csv writes one"
        );
    }
    for (number, row) in rows.enumerate() {
        let row = row.with_context(|| format!("launch {number} of the raw page"))?;
        let cell = |index: usize| row.get(index).unwrap_or_default();
        let mut metrics = BTreeMap::new();
        for (index, name) in header.iter().enumerate() {
            if IDENTITY.contains(&name) || name.contains("_Range:") {
                continue;
            }
            let value = datum(cell(index)).with_context(|| {
                format!("metric {name} of launch {number} (`{}`)", function(cell(kernel)))
            })?;
            metrics.insert(
                name.to_owned(),
                Metric { unit: units.get(index).unwrap_or_default().to_owned(), value },
            );
        }
        let device = match metrics.get("device__attribute_display_name") {
            Some(Metric { value: Datum::Word(name), .. }) => Some(name.clone()),
            _ => None,
        };
        report.launches.push(Launch {
            kernel: function(cell(kernel)).to_owned(),
            grid: dimensions(cell(grid))?,
            block: dimensions(cell(block))?,
            compute_capability: cell(capability).to_owned(),
            ranges: ranges.map(|index| stack(cell(index))).unwrap_or_default(),
            device,
            metrics,
        });
    }
    Ok(report)
}

/// The tool's own warnings and errors in what it wrote, without their `==…==`.
pub fn messages(text: &str) -> Vec<String> {
    let message = |line: &str| match line.strip_prefix("==")?.split_once("==")? {
        (kind @ ("WARNING" | "ERROR"), message) => {
            Some(format!("{}: {}", kind.to_lowercase(), message.trim()))
        }
        _ => None,
    };
    text.lines().filter_map(message).collect()
}

impl Launch {
    /// A metric in ncu's base unit, if that is one of `units`.
    pub fn metric(&self, name: &str, units: &[&str]) -> Reading {
        match self.metrics.get(name) {
            None => Reading::missing(format!("the report has no {name}")),
            Some(Metric { value: Datum::None(word), .. }) => Reading::missing(format!("{name}: {word}")),
            Some(Metric { value: Datum::Word(word), .. }) => Reading::missing(format!("{name} is `{word}`")),
            Some(Metric { value: Datum::Number(value), unit }) => {
                if units.contains(&unit.as_str()) {
                    Reading::Measured(*value)
                } else {
                    Reading::missing(format!("{name} came in `{unit}`, expected `{}`", units.join("` or `")))
                }
            }
        }
    }
}

/// A field as a number if it is one in the C locale, as a word if it is none in any locale.
fn datum(field: &str) -> anyhow::Result<Datum> {
    let field = field.trim();
    if matches!(field, "" | "n/a" | "N/A" | "no data" | "nan" | "-nan" | "inf" | "-inf") {
        return Ok(Datum::None(if field.is_empty() { "nothing was written" } else { field }.to_owned()));
    }
    if let Some(number) = number(field) {
        return Ok(Datum::Number(number));
    }
    let digits = field.trim_start_matches('-');
    let in_some_locale = digits.starts_with(|c: char| c.is_ascii_digit())
        && digits
            .chars()
            .all(|c| c.is_ascii_digit() || matches!(c, '.' | ',' | '\'' | '\u{a0}' | '\u{202f}'));
    if in_some_locale {
        bail!(
            "`{field}` is a number of another locale, and others in this file may read as what they are not: \
             run ncu with LC_ALL=C"
        );
    }
    Ok(Datum::Word(field.to_owned()))
}

/// `-1215000.5`, `1,215,000.00` and `1.5e+09`, and no other form.
fn number(field: &str) -> Option<f64> {
    let unsigned = field.strip_prefix('-').unwrap_or(field);
    let whole = unsigned.split(['.', 'e']).next()?;
    let mut groups = whole.split(',');
    let first = groups.next()?;
    let all_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let grouped = whole.contains(',');
    if !all_digits(first)
        || (grouped && first.len() > 3)
        || !groups.all(|group| group.len() == 3 && all_digits(group))
    {
        return None;
    }
    // Beyond the whole part, what Rust reads is what the C locale writes; a comma there makes it fail.
    let rest = &unsigned[whole.len()..];
    let sign = if unsigned.len() < field.len() { "-" } else { "" };
    format!("{sign}{}{rest}", whole.replace(',', "")).parse().ok()
}

/// `(65536, 1, 1)`.
fn dimensions(field: &str) -> anyhow::Result<[i64; 3]> {
    let numbers: Option<Vec<i64>> = field
        .strip_prefix('(')
        .and_then(|field| field.strip_suffix(')'))
        .map(|field| field.split(',').map_while(|number| number.trim().parse().ok()).collect());
    match numbers.as_deref() {
        Some(&[x, y, z]) => Ok([x, y, z]),
        _ => bail!("`{field}` is no grid or block size such as (65536, 1, 1)"),
    }
}

/// `void reduce<float, 256>(const float *)` without return type and parameters.
fn function(name: &str) -> &str {
    // The parameters are the last parenthesis, the return type ends with the last space outside of all brackets.
    let mut depth = 0;
    let mut end = name.len();
    if name.ends_with(')') {
        for (index, c) in name.char_indices().rev() {
            depth += i32::from(c == ')') - i32::from(c == '(');
            if depth == 0 {
                end = index;
                break;
            }
        }
    }
    let mut begin = 0;
    depth = 0;
    for (index, c) in name[..end].char_indices() {
        match c {
            '<' | '(' => depth += 1,
            '>' | ')' => depth -= 1,
            ' ' if depth == 0 => begin = index + 1,
            _ => {}
        }
    }
    &name[begin..end]
}

/// `858  "ch01:measure:none:…"  "ch01:kernel.vector_add:none:…" ` as the ranges' domains and names.
fn stack(field: &str) -> Vec<String> {
    field
        .split('"')
        .skip(1)
        .step_by(2)
        .filter_map(|range| {
            let mut parts = range.splitn(3, ':');
            Some(format!("{}:{}", parts.next()?, parts.next()?))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_c_locale_are_read() {
        for (field, value) in [
            ("0", 0.0),
            ("134235648", 134_235_648.0),
            ("-1.5", -1.5),
            ("1,215,000,000.00", 1_215_000_000.0),
            ("1.5e+09", 1.5e9),
            ("999", 999.0),
        ] {
            assert_eq!(number(field), Some(value), "{field}");
        }
    }

    #[test]
    fn numbers_of_other_locales_are_refused() {
        for field in
            ["27.595.520", "3,14", "1.215,5", "12,34,567", "1'000", "1,2345", "1\u{202f}000", "1234,567"]
        {
            let error = datum(field).unwrap_err().to_string();
            assert!(error.contains("LC_ALL=C"), "{field}: {error}");
        }
    }

    #[test]
    fn what_is_no_number_is_a_word_or_nothing() {
        assert_eq!(datum("CachePreferNone").unwrap(), Datum::Word("CachePreferNone".into()));
        assert_eq!(datum("NVIDIA H200").unwrap(), Datum::Word("NVIDIA H200".into()));
        assert_eq!(datum("n/a").unwrap(), Datum::None("n/a".into()));
        assert_eq!(datum("no data").unwrap(), Datum::None("no data".into()));
        assert_eq!(datum("").unwrap(), Datum::None("nothing was written".into()));
    }

    #[test]
    fn names_lose_what_is_not_the_name() {
        assert_eq!(function("vector_add(const float *, const float *, float *, int)"), "vector_add");
        assert_eq!(function("void reduce<float, (int)256>(const float *)"), "reduce<float, (int)256>");
        assert_eq!(function("vector_add"), "vector_add");
        assert_eq!(function("void (anonymous namespace)::f(int)"), "(anonymous namespace)::f");
    }

    #[test]
    fn ranges_come_outermost_first() {
        let field =
            r#"858  "ch01:measure:none:none:none:none:REGISTERED:measure"  "ch01:kernel.vector_add:none:x" "#;
        assert_eq!(stack(field), ["ch01:measure", "ch01:kernel.vector_add"]);
        assert_eq!(stack(""), Vec::<String>::new());
    }
}
