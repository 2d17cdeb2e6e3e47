//! What a page refers to: `chapter.cell.value[x]@gpu`, resolved in the records.
//!
//! `exact` outputs are read from the emulated GPU's record and `measured` ones from the GPU's, unless `@gpu` names another.
//! Nothing falls back from one to the other. The pseudo-cell `run` holds the provenance of a record.

use record::{Abscissa, Cell, Entry, Kind, Output, Point, Provenance, Record, Table};

use crate::records::{EMULATED, GPU, Records};
use crate::root::Root;

/// The pseudo-cell that holds a record's provenance.
const RUN: &str = "run";

/// What [`provenance`] knows besides the facts that a record lists itself.
const FIELDS: [&str; 12] = [
    "seconds",
    "device",
    "compute_capability",
    "cuda_driver",
    "driver",
    "host_cpu",
    "os",
    "rustc",
    "cudarc",
    "opt_level",
    "commit",
    "date",
];

/// A reference as a page writes it.
#[derive(Clone, Debug, PartialEq)]
pub struct Reference {
    /// The chapter's crate name.
    pub chapter: String,
    /// The cell's id, or `run`.
    pub cell: String,
    /// The value's, series' or figure's name, where one is named.
    pub name: Option<String>,
    /// The abscissa in brackets.
    pub x: Option<String>,
    /// The slug after `@`.
    pub gpu: Option<String>,
}

/// What a reference stands for.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A number with its unit.
    Number {
        /// The number and its spread.
        point: Point,
        /// The unit; may be empty.
        unit: String,
        /// Where it came from.
        origin: Origin,
    },
    /// A word of the provenance.
    Text {
        /// The word.
        text: String,
        /// Where it came from.
        origin: Origin,
    },
}

/// Where a number came from.
#[derive(Clone, Debug, PartialEq)]
pub struct Origin {
    /// The record's slug.
    pub slug: String,
    /// The device.
    pub device: String,
    /// The day.
    pub date: String,
}

impl Reference {
    /// Reads `chapter.cell`, `chapter.cell.name`, `chapter.cell.name[x]`, `chapter.cell.table[row, column]`, each with an optional `@gpu`.
    pub fn parse(text: &str) -> Result<Reference, String> {
        let complaint = |what: &str| {
            format!("`{text}` is no reference: {what}; write chapter.cell.value, chapter.cell.series[x]")
        };
        let (rest, gpu) = match text.rsplit_once('@') {
            Some((rest, gpu)) if !gpu.contains(']') => (rest, Some(gpu.trim().to_owned())),
            _ => (text, None),
        };
        let (path, x) = match rest.split_once('[') {
            Some((path, x)) => match x.trim_end().strip_suffix(']') {
                Some(x) => (path, Some(x.trim().to_owned())),
                None => return Err(complaint("the bracket is not closed")),
            },
            None => (rest, None),
        };
        let parts: Vec<&str> = path.trim().split('.').collect();
        if let Some(part) = parts.iter().find(|part| !is_name(part)) {
            return Err(complaint(&format!("`{part}` is no name")));
        }
        if gpu.as_deref().is_some_and(|gpu| !is_name(gpu)) {
            return Err(complaint("after @ comes the name of a folder of book/records"));
        }
        let (chapter, cell, name) = match parts[..] {
            [chapter, cell] => (chapter, cell, None),
            [chapter, cell, name] => (chapter, cell, Some(name.to_owned())),
            _ => return Err(complaint("it has two or three parts with dots between")),
        };
        Ok(Reference { chapter: chapter.to_owned(), cell: cell.to_owned(), name, x, gpu })
    }
}

impl std::fmt::Display for Reference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}", self.chapter, self.cell)?;
        if let Some(name) = &self.name {
            write!(f, ".{name}")?;
        }
        if let Some(x) = &self.x {
            write!(f, "[{x}]")?;
        }
        if let Some(gpu) = &self.gpu {
            write!(f, "@{gpu}")?;
        }
        Ok(())
    }
}

/// The number or word that a reference stands for.
pub fn resolve(reference: &Reference, root: &Root, records: &Records) -> Result<Found, String> {
    let chapter = known_chapter(reference, root)?;
    let Some(name) = &reference.name else {
        return Err(format!("`{reference}` is a cell: name one of its values, as in {reference}.NAME"));
    };
    if reference.cell == RUN {
        let (slug, record) = record(records, reference.gpu.as_deref().unwrap_or(GPU), chapter)?;
        return provenance(reference, name, slug, record);
    }
    if let Some(gpu) = &reference.gpu {
        let (slug, record) = record(records, gpu, chapter)?;
        let (point, unit, _) = number(reference, name, cell(reference, slug, record)?)?;
        return Ok(Found::Number { point, unit, origin: origin(slug, record) });
    }
    // Which record it is read from depends on its kind, which is the same in every record that has it.
    let mut complaints = Vec::new();
    for (slug, kind) in [(EMULATED, Kind::Exact), (GPU, Kind::Measured)] {
        let found = record(records, slug, chapter).and_then(|(slug, record)| {
            let (point, unit, found_kind) = number(reference, name, cell(reference, slug, record)?)?;
            Ok((point, unit, found_kind, origin(slug, record)))
        });
        match found {
            Ok((point, unit, found_kind, origin)) if found_kind == kind => {
                return Ok(Found::Number { point, unit, origin });
            }
            Ok((_, _, Kind::Exact, _)) => complaints.push(format!(
                "`{reference}` is exact, so it is read from the {EMULATED} record; {reference}@{slug} would name this one"
            )),
            Ok((_, _, Kind::Measured, _)) => {}
            Err(complaint) => complaints.push(complaint),
        }
    }
    complaints.dedup();
    Err(complaints.join("; "))
}

/// The chapter that a reference names, if there is such a crate.
pub fn known_chapter<'r>(reference: &Reference, root: &'r Root) -> Result<&'r str, String> {
    match root.chapter(&reference.chapter) {
        Ok(chapter) if chapter.name == reference.chapter => Ok(&chapter.name),
        Ok(chapter) => {
            Err(format!("references name the whole crate: write {} for {}", chapter.name, reference.chapter))
        }
        Err(error) => Err(format!("{error}")),
    }
}

/// Where something of this record came from.
pub fn origin(slug: &str, record: &Record) -> Origin {
    let Provenance { device, date, .. } = &record.provenance;
    let day = date.split('T').next().unwrap_or_default();
    Origin { slug: slug.to_owned(), device: device.clone(), date: day.to_owned() }
}

/// A readable record.
pub fn record<'r>(records: &'r Records, slug: &str, chapter: &str) -> Result<(&'r str, &'r Record), String> {
    let Some(loaded) = records.get(slug, chapter) else {
        let how = match slug {
            EMULATED => format!("`cargo book record {chapter} --device emulated`"),
            _ => format!("`cargo book record {chapter}` on such a GPU"),
        };
        return Err(format!("{chapter} has no {slug} record: {how} makes one"));
    };
    match &loaded.record {
        Ok(record) => Ok((&loaded.slug, record)),
        Err(why) => Err(format!("the {slug} record of {chapter} cannot be read: {why}")),
    }
}

fn is_name(part: &str) -> bool {
    !part.is_empty() && part.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
}

fn cell<'r>(reference: &Reference, slug: &str, record: &'r Record) -> Result<&'r Cell, String> {
    record.cell(&reference.cell).ok_or_else(|| {
        let ids: Vec<&str> = record.all_cells().map(|cell| cell.id.as_str()).collect();
        let Reference { chapter, cell, .. } = reference;
        format!("{chapter} has no cell `{cell}` in its {slug} record; there are: {}", list(&ids))
    })
}

fn number(reference: &Reference, name: &str, cell: &Cell) -> Result<(Point, String, Kind), String> {
    let mut names = Vec::new();
    for output in &cell.outputs {
        match output {
            Output::Value(value) if value.name == name => {
                return match &reference.x {
                    None => Ok((value.point, value.unit.clone(), value.kind)),
                    Some(_) => Err(format!("`{name}` of cell `{}` is one value and has no [x]", cell.id)),
                };
            }
            Output::Series(series) if series.name == name => {
                let places: Vec<String> = series.x.iter().map(abscissa_text).collect();
                let places: Vec<&str> = places.iter().map(String::as_str).collect();
                let Some(x) = &reference.x else {
                    return Err(format!(
                        "`{name}` of cell `{}` is a series: add one of [{}]",
                        cell.id,
                        places.join("] [")
                    ));
                };
                let point =
                    series.x.iter().zip(&series.points).find(|(at, _)| is_at(at, x)).map(|(_, point)| *point);
                return match point {
                    Some(point) => Ok((point, series.unit.clone(), series.kind)),
                    None => Err(format!(
                        "series `{name}` of cell `{}` has nothing at [{x}]; it has [{}]",
                        cell.id,
                        places.join("] [")
                    )),
                };
            }
            Output::Table(table) if table.name == name => return table_entry(reference, table, cell),
            Output::HeatMap(map) if map.name == name => return table_entry(reference, &map.table(), cell),
            Output::Table(table) => names.push(table.name.as_str()),
            Output::HeatMap(map) => names.push(map.name.as_str()),
            Output::Value(value) => names.push(value.name.as_str()),
            Output::Series(series) => names.push(series.name.as_str()),
            _ => {}
        }
    }
    Err(format!(
        "cell `{}` of {} has no value, series or table `{name}`; there are: {}",
        cell.id,
        reference.chapter,
        list(&names)
    ))
}

/// `table[row, column]`: the row by its first entry, the column by its heading.
fn table_entry(reference: &Reference, table: &Table, cell: &Cell) -> Result<(Point, String, Kind), String> {
    let place = reference.x.as_deref().and_then(|place| place.split_once(','));
    let Some((row, column)) = place.map(|(row, column)| (row.trim(), column.trim())) else {
        return Err(format!("`{}` of cell `{}` is a table: add [row, column]", table.name, cell.id));
    };
    let heading = table.columns.iter().find(|heading| heading.name == column);
    match (heading, table.entry(row, column)) {
        (Some(heading), Some(Entry::Number(number))) => {
            let point = Point { value: Some(*number), ..Point::default() };
            Ok((point, heading.unit.clone(), heading.kind))
        }
        (Some(heading), Some(Entry::NeedsGpu(()))) => {
            Ok((Point::default(), heading.unit.clone(), heading.kind))
        }
        (_, Some(Entry::Text(_))) => {
            Err(format!("table `{}` of cell `{}` has a word at [{row}, {column}]", table.name, cell.id))
        }
        _ => Err(format!("table `{}` of cell `{}` has nothing at [{row}, {column}]", table.name, cell.id)),
    }
}

fn provenance(reference: &Reference, name: &str, slug: &str, record: &Record) -> Result<Found, String> {
    if reference.x.is_some() {
        return Err(format!("`{reference}`: the provenance of a run has no [x]"));
    }
    let origin = origin(slug, record);
    let provenance = &record.provenance;
    if name == "seconds" {
        let point = Point { value: Some(provenance.seconds), ..Point::default() };
        return Ok(Found::Number { point, unit: "s".to_owned(), origin });
    }
    let text = match name {
        "device" => &provenance.device,
        "compute_capability" => &provenance.compute_capability,
        "cuda_driver" => &provenance.cuda_driver,
        "driver" => &provenance.driver,
        "host_cpu" => &provenance.host_cpu,
        "os" => &provenance.os,
        "rustc" => &provenance.rustc,
        "cudarc" => &provenance.cudarc,
        "opt_level" => &provenance.opt_level,
        "commit" => &provenance.commit,
        "date" => &origin.date,
        fact => provenance.facts.get(fact).ok_or_else(|| {
            let facts: Vec<&str> =
                FIELDS.into_iter().chain(provenance.facts.keys().map(String::as_str)).collect();
            format!(
                "the provenance of {} ({slug}) has no `{fact}`; there are: {}",
                reference.chapter,
                list(&facts)
            )
        })?,
    };
    if text.is_empty() {
        return Err(format!("`{reference}` is empty in the {slug} record"));
    }
    Ok(Found::Text { text: text.clone(), origin })
}

/// Whether an abscissa is the one that a page wrote. Numbers compare by value: `[1048576]`, `[1e6]`, `[2^20]`.
fn is_at(abscissa: &Abscissa, written: &str) -> bool {
    match abscissa {
        Abscissa::Number(number) => parse_number(written).is_some_and(|wanted| wanted == *number),
        Abscissa::Label(label) => label == written,
    }
}

/// A number as pages write it: `8`, `1.5`, `1e6`, `2^20`, with spaces or `_` between groups of digits.
pub fn parse_number(text: &str) -> Option<f64> {
    let digits: String = text.chars().filter(|c| !c.is_whitespace() && *c != '_').collect();
    match digits.split_once('^') {
        Some((base, exponent)) => Some(base.parse::<f64>().ok()?.powi(exponent.parse().ok()?)),
        None => digits.parse().ok().filter(|number: &f64| number.is_finite()),
    }
}

fn abscissa_text(abscissa: &Abscissa) -> String {
    match abscissa {
        Abscissa::Number(number) => number.to_string(),
        Abscissa::Label(label) => label.clone(),
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, chapter: &str, cell: &str, name: Option<&str>, x: Option<&str>, gpu: Option<&str>) {
        let reference = Reference::parse(text).expect(text);
        let parts = (
            reference.chapter.as_str(),
            reference.cell.as_str(),
            reference.name.as_deref(),
            reference.x.as_deref(),
            reference.gpu.as_deref(),
        );
        assert_eq!(parts, (chapter, cell, name, x, gpu));
        assert_eq!(reference.to_string(), text);
    }

    #[test]
    fn references() {
        check("ch01-a.steps", "ch01-a", "steps", None, None, None);
        check("ch01-a.steps.h2d", "ch01-a", "steps", Some("h2d"), None, None);
        check("ch01-a.steps.h2d[1048576]", "ch01-a", "steps", Some("h2d"), Some("1048576"), None);
        check(
            "ch01-a.steps.h2d[two words]@local",
            "ch01-a",
            "steps",
            Some("h2d"),
            Some("two words"),
            Some("local"),
        );
        check("ch01-a.run.seconds@a100", "ch01-a", "run", Some("seconds"), None, Some("a100"));
    }

    #[test]
    fn what_is_no_reference() {
        for text in
            ["", "a", "a.", "a..b", "a.b.c.d", "a.b[", "a.b.c[1", "a.b@", "a b.c", "../x.b", "a.b@../c"]
        {
            assert!(Reference::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn numbers_as_pages_write_them() {
        assert_eq!(parse_number("1 048_576"), Some(1_048_576.0));
        assert_eq!(parse_number("2^20"), Some(1_048_576.0));
        assert_eq!(parse_number("1e6"), Some(1e6));
        assert_eq!(parse_number("inf"), None);
        assert_eq!(parse_number("scalar"), None);
    }
}
