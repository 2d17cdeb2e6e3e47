//! Do two records of a chapter agree where every device must give the same?

use std::collections::BTreeMap;

use crate::{Abscissa, Entry, Kind, Output, Record, Table};

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
/// by the first entry of their row and by column.
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
                found.extend(value.point.value.map(|number| (value.name.clone(), said(number, &value.unit))));
            }
            Output::Series(series) if series.kind == Kind::Exact => {
                for (x, point) in series.x.iter().zip(&series.points) {
                    let place = match x {
                        Abscissa::Number(number) => number.to_string(),
                        Abscissa::Label(label) => label.clone(),
                    };
                    let number = point.value.map(|number| said(number, &series.unit));
                    found.extend(number.map(|number| (format!("{}[{place}]", series.name), number)));
                }
            }
            Output::Table(table) => found.extend(exact_entries(table)),
            Output::HeatMap(map) => found.extend(exact_entries(&map.table())),
            _ => {}
        }
    }
    found
}

/// The exact entries of a table by `table[row, column]`.
fn exact_entries(table: &Table) -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entries in &table.rows {
        let row = entries.first().and_then(word).unwrap_or_default();
        for (column, entry) in table.columns.iter().zip(entries) {
            if column.kind == Kind::Exact {
                let name = format!("{}[{row}, {}]", table.name, column.name);
                found.extend(word(entry).map(|word| (name, word)));
            }
        }
    }
    found
}

fn said(number: f64, unit: &str) -> String {
    format!("{} {unit}", digits(number)).trim_end().to_owned()
}

/// Fifteen significant digits: reading a record and writing it again may change the last bit of a number (serde_json reads
/// fast, and not always to the nearest), and no count has more.
fn digits(number: f64) -> f64 {
    format!("{number:.14e}").parse().unwrap_or(number)
}

/// What an entry says; nothing where it needs a GPU.
fn word(entry: &Entry) -> Option<String> {
    match entry {
        Entry::NeedsGpu(()) => None,
        Entry::Number(number) => Some(digits(*number).to_string()),
        Entry::Text(text) => Some(text.clone()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Cell, HeatMap, Series, Status};

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
        let table = Table::new("t").exact("step", "").exact("sectors", "").measured("time", "s").row([
            "scalar".into(),
            count.into(),
            time.into(),
        ]);
        let outputs = vec![Output::Series(counts), Output::Series(times), Output::Table(table)];
        Cell { id: "c".into(), title: String::new(), seconds: 0.0, order_dependent: false, outputs }
    }

    #[test]
    fn counts_must_agree_and_times_need_not() {
        assert!(record(cell(4.0, 1.0)).exact_differences(&record(cell(4.0, 2.0))).is_empty());
        let differences = record(cell(4.0, 1.0)).exact_differences(&record(cell(5.0, 1.0)));
        assert_eq!(
            differences,
            ["c.sectors[scalar]: 4 here, 5 there", "c.t[scalar, sectors]: 4 here, 5 there"]
        );
    }

    #[test]
    fn the_last_bit_of_a_number_does_not_count() {
        let next = f64::from_bits(0.1_f64.to_bits() + 1);
        assert!(record(cell(0.1, 1.0)).exact_differences(&record(cell(next, 1.0))).is_empty());
        assert!(!record(cell(0.1, 1.0)).exact_differences(&record(cell(0.1 + 1e-13, 1.0))).is_empty());
    }

    #[test]
    fn heat_maps_are_compared_square_by_square() {
        let map = |number: f64| {
            let mut map = HeatMap::exact("banks", "", "").rows("access").columns("bank", 0..2);
            map.push("row", [Some(number), None]);
            let outputs = vec![Output::HeatMap(map)];
            record(Cell {
                id: "c".into(),
                title: String::new(),
                seconds: 0.0,
                order_dependent: false,
                outputs,
            })
        };
        assert!(map(1.0).exact_differences(&map(1.0)).is_empty());
        assert_eq!(map(1.0).exact_differences(&map(2.0)), ["c.banks[row, 0]: 1 here, 2 there"]);
    }

    #[test]
    fn what_one_of_the_two_has_not_is_left_out() {
        let mut needs_gpu = cell(4.0, 1.0);
        if let Output::Series(counts) = &mut needs_gpu.outputs[0] {
            counts.points[0].value = None;
        }
        if let Output::Table(table) = &mut needs_gpu.outputs[2] {
            table.rows[0][1] = Entry::NeedsGpu(());
            table.rows.insert(0, vec!["float4".into(), 1.into(), 1.into()]);
        }
        assert!(record(needs_gpu).exact_differences(&record(cell(5.0, 1.0))).is_empty());
    }

    #[test]
    fn what_depends_on_the_order_of_blocks_is_left_out() {
        let mut ours = cell(4.0, 1.0);
        ours.order_dependent = true;
        assert!(record(ours).exact_differences(&record(cell(5.0, 1.0))).is_empty());
    }
}
