//! Do two records of a chapter agree where every device must give the same?

use std::collections::BTreeMap;

use crate::{Entry, Kind, Output, Record};

impl Record {
    /// The exact outputs that are in both records and differ, one sentence each, in the order of the story. Cells whose
    /// kernels communicate between blocks are left out, and so is what only one of the two has: a GPU counts nothing, and
    /// a run may have been of single cells.
    pub fn exact_differences(&self, other: &Self) -> Vec<String> {
        let mut differences = Vec::new();
        for cell in self.cells.iter().filter(|cell| !cell.order_dependent) {
            let Some(theirs) = other.cell(&cell.id) else { continue };
            let theirs = exact(&theirs.outputs);
            for (name, ours) in exact(&cell.outputs) {
                match theirs.get(&name) {
                    Some(theirs) if *theirs != ours => {
                        differences.push(format!("{}.{name}: {ours} here, {theirs} there", cell.id));
                    }
                    _ => {}
                }
            }
        }
        differences
    }

    /// The exact outputs of the record by `cell.name`, for a test that must not pass on nothing.
    pub fn exact_outputs(&self) -> Vec<String> {
        let cells = self.cells.iter().filter(|cell| !cell.order_dependent);
        cells
            .flat_map(|cell| exact(&cell.outputs).into_keys().map(|name| format!("{}.{name}", cell.id)))
            .collect()
    }
}

/// Names of exact outputs and what they say. Texts are told apart by their place among the cell's texts, entries of a table
/// by row and column.
fn exact(outputs: &[Output]) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    let mut texts = 0;
    for output in outputs {
        match output {
            Output::Text(text) if text.kind == Kind::Exact => {
                texts += 1;
                found.insert(format!("text {texts}"), format!("{:?}", text.text));
            }
            Output::Value(value) if value.kind == Kind::Exact => {
                found.insert(value.name.clone(), format!("{:?} {}", value.point.value, value.unit));
            }
            Output::Series(series) if series.kind == Kind::Exact => {
                for (x, point) in series.x.iter().zip(&series.points) {
                    found.insert(
                        format!("{}[{x:?}]", series.name),
                        format!("{:?} {}", point.value, series.unit),
                    );
                }
            }
            Output::Table(table) => {
                for (row, entries) in table.rows.iter().enumerate() {
                    for (column, entry) in table.columns.iter().zip(entries) {
                        if column.kind == Kind::Exact {
                            found.insert(format!("{}[{row}, {}]", table.name, column.name), word(entry));
                        }
                    }
                }
            }
            _ => {}
        }
    }
    found
}

fn word(entry: &Entry) -> String {
    match entry {
        Entry::NeedsGpu(()) => "nothing".to_owned(),
        Entry::Number(number) => number.to_string(),
        Entry::Text(text) => format!("{text:?}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, Series, Status, Table};

    fn record(cell: Cell) -> Record {
        Record {
            schema: crate::SCHEMA,
            chapter: "ch01".into(),
            status: Status::Complete,
            provenance: Default::default(),
            inputs: Vec::new(),
            cells: vec![cell],
            profile: None,
        }
    }

    fn cell(count: f64, time: f64) -> Cell {
        let counts = Series::exact("sectors", "").point("scalar", count);
        let times = Series::measured("time", "s").point("scalar", time);
        let table = Table::new("t").exact("n", "").measured("time", "s").row([count.into(), time.into()]);
        let outputs = vec![Output::Series(counts), Output::Series(times), Output::Table(table)];
        Cell { id: "c".into(), title: String::new(), seconds: 0.0, order_dependent: false, outputs }
    }

    #[test]
    fn counts_must_agree_and_times_need_not() {
        assert!(record(cell(4.0, 1.0)).exact_differences(&record(cell(4.0, 2.0))).is_empty());
        let differences = record(cell(4.0, 1.0)).exact_differences(&record(cell(5.0, 1.0)));
        assert_eq!(
            differences,
            ["c.sectors[Label(\"scalar\")]: Some(4.0)  here, Some(5.0)  there", "c.t[0, n]: 4 here, 5 there"]
        );
    }

    #[test]
    fn what_depends_on_the_order_of_blocks_is_left_out() {
        let mut ours = cell(4.0, 1.0);
        ours.order_dependent = true;
        assert!(record(ours).exact_differences(&record(cell(5.0, 1.0))).is_empty());
    }
}
