//! Finding an output by its name, and refusing outputs that a page could not show.

use anyhow::{Result, bail};

use crate::{Abscissa, Cell, Entry, Figure, HeatMap, Output, Point, Record, Series, Table, Timeline, Value};

impl Record {
    /// The chapter's cells, then those that a profiler added.
    pub fn all_cells(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(self.profile.iter().flat_map(|profile| &profile.cells))
    }

    /// A cell by its id, the profiler's included.
    pub fn cell(&self, id: &str) -> Option<&Cell> {
        self.all_cells().find(|cell| cell.id == id)
    }

    /// A value by `cell.name`.
    pub fn value(&self, name: &str) -> Option<&Value> {
        let (cell, name) = name.split_once('.')?;
        self.cell(cell)?.value(name)
    }

    /// A series by `cell.name`.
    pub fn series(&self, name: &str) -> Option<&Series> {
        let (cell, name) = name.split_once('.')?;
        self.cell(cell)?.series(name)
    }

    /// A table by `cell.name`.
    pub fn table(&self, name: &str) -> Option<&Table> {
        let (cell, name) = name.split_once('.')?;
        self.cell(cell)?.table(name)
    }

    /// Whether the run was made with `--quick`.
    pub fn quick(&self) -> bool {
        self.inputs.iter().any(|input| input.name == "quick" && input.hash == "true")
    }
}

impl Cell {
    /// A value of this cell.
    pub fn value(&self, name: &str) -> Option<&Value> {
        self.outputs.iter().find_map(|output| match output {
            Output::Value(value) if value.name == name => Some(value),
            _ => None,
        })
    }

    /// A series of this cell.
    pub fn series(&self, name: &str) -> Option<&Series> {
        self.outputs.iter().find_map(|output| match output {
            Output::Series(series) if series.name == name => Some(series),
            _ => None,
        })
    }

    /// A table of this cell.
    pub fn table(&self, name: &str) -> Option<&Table> {
        self.outputs.iter().find_map(|output| match output {
            Output::Table(table) if table.name == name => Some(table),
            _ => None,
        })
    }

    /// A figure of this cell; `""` is its only one.
    pub fn figure(&self, name: &str) -> Option<&Figure> {
        self.outputs.iter().find_map(|output| match output {
            Output::Figure(figure) if figure.name == name => Some(figure),
            _ => None,
        })
    }

    /// A heat map of this cell.
    pub fn heat_map(&self, name: &str) -> Option<&HeatMap> {
        self.outputs.iter().find_map(|output| match output {
            Output::HeatMap(map) if map.name == name => Some(map),
            _ => None,
        })
    }

    /// The timeline of this cell.
    pub fn timeline(&self) -> Option<&Timeline> {
        self.outputs.iter().find_map(|output| match output {
            Output::Timeline(timeline) => Some(timeline),
            _ => None,
        })
    }

    /// Refuses outputs that a page could not refer to or show: a name twice, rows and series of uneven length, a figure
    /// of what is not there, a number that is none (JSON would turn NaN into "needs a GPU").
    ///
    /// # Errors
    /// Names the first such output.
    pub fn check(&self) -> Result<()> {
        let mut names = Vec::new();
        for output in &self.outputs {
            let name = match output {
                Output::Text(_) | Output::Timeline(_) => continue,
                Output::Value(value) => {
                    finite(&value.name, value.point)?;
                    ("value", &value.name)
                }
                Output::Series(series) => {
                    check_series(series)?;
                    // Both are referred to as `chapter.cell.name`.
                    ("value", &series.name)
                }
                Output::Table(table) => {
                    check_table(table)?;
                    ("table", &table.name)
                }
                Output::Figure(figure) => {
                    self.check_figure(figure)?;
                    ("figure", &figure.name)
                }
                Output::HeatMap(map) => {
                    check_heat_map(map)?;
                    // A page draws it by the name, as it does a figure, and refers to its numbers as to a table's.
                    ("figure", &map.name)
                }
            };
            if names.contains(&name) {
                bail!("the {} `{}` is said twice", name.0, name.1);
            }
            if name.1.contains(['.', '[', ']', '@', '/', ' ']) {
                bail!(
                    "the name `{}` holds a character that a reference on a page has another use for",
                    name.1
                );
            }
            names.push(name);
        }
        Ok(())
    }

    fn check_figure(&self, figure: &Figure) -> Result<()> {
        for name in &figure.series {
            if self.series(name).is_none() {
                bail!("the figure `{}` shows the series `{name}`, which the cell has not", figure.title);
            }
        }
        for limit in &figure.limits {
            if self.value(&limit.value).is_none() {
                bail!(
                    "the figure `{}` shows the value `{}`, which the cell has not",
                    figure.title,
                    limit.value
                );
            }
        }
        Ok(())
    }
}

impl Series {
    /// The number at an abscissa, by its value.
    pub fn at(&self, x: &Abscissa) -> Option<Point> {
        let place = self.x.iter().position(|here| here == x)?;
        self.points.get(place).copied()
    }
}

impl Table {
    /// The entry in the row whose first entry shows as `row`, under the column `column`.
    pub fn entry(&self, row: &str, column: &str) -> Option<&Entry> {
        let column = self.columns.iter().position(|here| here.name == column)?;
        let shows = |entry: &Entry| match entry {
            Entry::Text(text) => text == row,
            Entry::Number(number) => row.parse() == Ok(*number),
            Entry::NeedsGpu(()) => false,
        };
        self.rows.iter().find(|entries| entries.first().is_some_and(shows))?.get(column)
    }
}

fn finite(name: &str, point: Point) -> Result<()> {
    for number in [point.value, point.low, point.high].into_iter().flatten() {
        if !number.is_finite() {
            bail!("`{name}` is {number}: a division by zero or a measurement that failed");
        }
    }
    Ok(())
}

fn check_series(series: &Series) -> Result<()> {
    if series.x.len() != series.points.len() {
        bail!(
            "the series `{}` has {} abscissas and {} numbers",
            series.name,
            series.x.len(),
            series.points.len()
        );
    }
    for x in &series.x {
        if let Abscissa::Number(x) = x {
            finite(&series.name, (*x).into())?;
        }
    }
    series.points.iter().try_for_each(|point| finite(&series.name, *point))
}

fn check_heat_map(map: &HeatMap) -> Result<()> {
    let HeatMap { name, rows, columns, numbers, .. } = map;
    if rows.names.len() != numbers.len() {
        bail!("the heat map `{name}` has {} names for {} rows", rows.names.len(), numbers.len());
    }
    if name.is_empty() {
        bail!("the heat map `{}` has no name", map.title);
    }
    for row in numbers {
        if row.len() != columns.names.len() {
            bail!(
                "a row of the heat map `{name}` has {} numbers for {} columns",
                row.len(),
                columns.names.len()
            );
        }
        row.iter().try_for_each(|number| finite(name, (*number).into()))?;
    }
    Ok(())
}

fn check_table(table: &Table) -> Result<()> {
    for row in &table.rows {
        if row.len() != table.columns.len() {
            bail!(
                "a row of the table `{}` has {} entries for {} columns",
                table.name,
                row.len(),
                table.columns.len()
            );
        }
        for entry in row {
            if let Entry::Number(number) = entry {
                finite(&table.name, (*number).into())?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Kind;

    fn cell(outputs: Vec<Output>) -> Cell {
        Cell { id: "c".into(), title: String::new(), seconds: 0.0, order_dependent: false, outputs }
    }

    fn value(name: &str, number: f64) -> Output {
        Output::Value(Value {
            name: name.into(),
            kind: Kind::Exact,
            unit: String::new(),
            point: number.into(),
            note: String::new(),
        })
    }

    #[track_caller]
    fn refused(outputs: Vec<Output>, because: &str) {
        let message = cell(outputs).check().unwrap_err().to_string();
        assert!(message.contains(because), "{message}");
    }

    #[test]
    fn outputs_that_no_page_could_show_are_refused() {
        refused(vec![value("a", f64::NAN)], "`a` is NaN");
        refused(vec![value("a", 1.0), value("a", 2.0)], "twice");
        refused(vec![value("a.b", 1.0)], "a.b");
        let mut series = Series::exact("s", "").point(1, 1.0);
        series.x.push(2.into());
        refused(vec![Output::Series(series)], "2 abscissas and 1 numbers");
        refused(vec![Output::Table(Table::new("t").exact("a", "").row([]))], "0 entries for 1 columns");
        let mut map = HeatMap::exact("m", "", "").columns("x", 0..2);
        refused(vec![Output::HeatMap(map.clone()), Output::HeatMap(map.clone())], "twice");
        refused(vec![Output::HeatMap(HeatMap::exact("", "Which?", ""))], "`Which?` has no name");
        map.push(0, [1.0]);
        refused(vec![Output::HeatMap(map)], "1 numbers for 2 columns");
        refused(vec![Output::Figure(Figure::new("f", "").series(["s"]))], "series `s`");
        refused(vec![Output::Figure(Figure::new("f", "").limit("v", ""))], "value `v`");
        cell(vec![value("a", 1.0), Output::Series(Series::exact("s", "").point(1, None::<f64>))])
            .check()
            .unwrap();
    }

    #[test]
    fn lookups_go_by_name_and_abscissa() {
        let series = Series::exact("s", "").point(8, 3.0).point("tree", 4.0);
        let table = Table::new("t").exact("step", "").exact("count", "").row(["tree".into(), 7.into()]);
        let cell = cell(vec![value("v", 5.0), Output::Series(series), Output::Table(table)]);
        assert_eq!(cell.value("v").unwrap().point.value, Some(5.0));
        assert_eq!(cell.series("s").unwrap().at(&8.into()).unwrap().value, Some(3.0));
        assert_eq!(cell.series("s").unwrap().at(&"tree".into()).unwrap().value, Some(4.0));
        assert_eq!(cell.series("s").unwrap().at(&9.into()), None);
        assert_eq!(cell.table("t").unwrap().entry("tree", "count"), Some(&Entry::Number(7.0)));
        assert!(cell.value("s").is_none());
    }
}
