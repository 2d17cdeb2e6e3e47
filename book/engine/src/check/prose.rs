//! Measured numbers typed in prose. They come out of a record, so that they can be neither wrong nor old.

use anyhow::{Context, Result};
use walkdir::WalkDir;

use crate::directive::{find, left_alone, line_of};
use crate::root::Root;
use crate::static_book::Problem;

/// Units of what is measured. Bytes, hertz and seconds are sizes, clocks and patience as often as measurements.
const UNITS: [&str; 16] = [
    "GB/s",
    "TB/s",
    "MB/s",
    "GiB/s",
    "GFLOP/s",
    "TFLOP/s",
    "GFLOPS",
    "TFLOPS",
    "GFlop/s",
    "TFlop/s",
    "ms",
    "µs",
    "μs",
    "us",
    "ns",
    "microseconds",
];

/// Every number with such a unit on every page, outside of code and directives.
///
/// # Errors
/// When a page cannot be read.
pub(super) fn check(root: &Root) -> Result<Vec<Problem>> {
    let mut problems = Vec::new();
    for entry in WalkDir::new(root.book().join("src")).sort_by_file_name() {
        let entry = entry.context("listing the pages")?;
        if entry.path().extension().is_none_or(|extension| extension != "md") {
            continue;
        }
        let file = root.relative(entry.path());
        let text = std::fs::read_to_string(entry.path()).with_context(|| format!("reading {file}"))?;
        problems.extend(typed_numbers(&text).into_iter().map(|(line, number)| Problem {
            file: file.clone(),
            line,
            what: format!(
                "`{number}` is typed: a measured number comes out of a record, by {{{{#lab val …}}}}"
            ),
        }));
    }
    Ok(problems)
}

/// Line and text of each.
fn typed_numbers(page: &str) -> Vec<(usize, String)> {
    let mut left_alone = left_alone(page);
    left_alone.extend(find(page).into_iter().flatten().map(|directive| directive.range));
    let mut found = Vec::new();
    for unit in UNITS {
        for (at, _) in page.match_indices(unit) {
            let end = at + unit.len();
            let ends_here = !page[end..].starts_with(|c: char| c.is_alphanumeric() || c == '/' || c == '_');
            let before = page[..at].trim_end_matches([' ', '\u{a0}', '\u{202f}']);
            let is_number = before.ends_with(|c: char| c.is_ascii_digit());
            if !is_number || !ends_here || left_alone.iter().any(|range| range.contains(&at)) {
                continue;
            }
            let number =
                before.trim_end_matches(|c: char| c.is_ascii_digit() || ".,\u{a0}\u{202f}".contains(c));
            found.push((line_of(page, at), page[number.len()..end].to_owned()));
        }
    }
    found.sort();
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &[(usize, &str)]) {
        let found = typed_numbers(page);
        let found: Vec<(usize, &str)> = found.iter().map(|(line, number)| (*line, number.as_str())).collect();
        assert_eq!(found, expected, "{page}");
    }

    #[test]
    fn typed_numbers_are_found() {
        check("one\nIt reaches 4396 GB/s here.\n", &[(2, "4396 GB/s")]);
        check("3.4µs, 1\u{202f}050 µs", &[(1, "1\u{202f}050 µs"), (1, "3.4µs")]);
        check("- 51.2 TFLOP/s\n", &[(1, "51.2 TFLOP/s")]);
    }

    #[test]
    fn what_is_no_measurement() {
        check("`10 ms` and\n\n```\n5 GB/s\n```\n", &[]);
        check("{{#lab claim a.b.c < 5 ms}}", &[]);
        check("GB/s, 32 bytes, 256 threads, 10 items, 2 mss, 3 GB/second", &[]);
        check("<!-- 10 ms -->", &[]);
    }
}
