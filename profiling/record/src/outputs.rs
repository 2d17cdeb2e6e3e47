//! Light builders for what a cell says, so that a chapter reads as prose:
//! `Series::measured("kernel", "GB/s").point(n, rate)`.

use crate::{
    Abscissa, Axis, Colours, Column, Edge, Entry, Figure, HeatMap, Kind, Limit, Point, Scale, Series, Table,
};

impl Series {
    /// Numbers that every device gives alike: results, counts.
    pub fn exact(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(name.into(), unit.into(), Kind::Exact)
    }

    /// Numbers that differ from run to run: times, rates.
    pub fn measured(name: impl Into<String>, unit: impl Into<String>) -> Self {
        Self::new(name.into(), unit.into(), Kind::Measured)
    }

    /// What the legend says instead of the name.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.label = label.into();
        self
    }

    /// Adds a point while building.
    pub fn point(mut self, x: impl Into<Abscissa>, y: impl Into<Point>) -> Self {
        self.push(x, y);
        self
    }

    /// Adds a point in a loop.
    pub fn push(&mut self, x: impl Into<Abscissa>, y: impl Into<Point>) {
        self.x.push(x.into());
        self.points.push(y.into());
    }

    fn new(name: String, unit: String, kind: Kind) -> Self {
        Self { name, label: String::new(), kind, unit, x: Vec::new(), points: Vec::new() }
    }
}

impl Table {
    /// A table without columns yet.
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), columns: Vec::new(), rows: Vec::new() }
    }

    /// Adds a column that every device fills alike.
    pub fn exact(self, name: impl Into<String>, unit: impl Into<String>) -> Self {
        self.column(name.into(), unit.into(), Kind::Exact)
    }

    /// Adds a column that differs from run to run.
    pub fn measured(self, name: impl Into<String>, unit: impl Into<String>) -> Self {
        self.column(name.into(), unit.into(), Kind::Measured)
    }

    /// Adds a row while building. `lab::row!` makes one of unlike things.
    pub fn row(mut self, row: impl IntoIterator<Item = Entry>) -> Self {
        self.push(row);
        self
    }

    /// Adds a row in a loop.
    pub fn push(&mut self, row: impl IntoIterator<Item = Entry>) {
        self.rows.push(row.into_iter().collect());
    }

    fn column(mut self, name: String, unit: String, kind: Kind) -> Self {
        self.columns.push(Column { name, unit, kind });
        self
    }
}

impl Figure {
    /// A figure with its title (the question or the finding) and one sentence for who cannot see it.
    pub fn new(title: impl Into<String>, alt: impl Into<String>) -> Self {
        Self {
            name: String::new(),
            title: title.into(),
            alt: alt.into(),
            x: Axis::linear("", ""),
            y: Axis::linear("", ""),
            series: Vec::new(),
            limits: Vec::new(),
        }
    }

    /// The name, where a cell has several figures.
    pub fn name(mut self, name: impl Into<String>) -> Self {
        self.name = name.into();
        self
    }

    /// The horizontal axis.
    pub fn x(mut self, axis: Axis) -> Self {
        self.x = axis;
        self
    }

    /// The vertical axis.
    pub fn y(mut self, axis: Axis) -> Self {
        self.y = axis;
        self
    }

    /// The series of the same cell that it shows, by name, in the order of their colours.
    pub fn series<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.series.extend(names.into_iter().map(Into::into));
        self
    }

    /// A floor or a ceiling: a value of the same cell, drawn as a dashed line.
    pub fn limit(mut self, value: impl Into<String>, label: impl Into<String>) -> Self {
        self.limits.push(Limit { value: value.into(), label: label.into() });
        self
    }
}

impl HeatMap {
    /// Numbers that every device gives alike, with the map's title (the question or the finding) and one sentence for who
    /// cannot see it.
    pub fn exact(name: impl Into<String>, title: impl Into<String>, alt: impl Into<String>) -> Self {
        Self::new(name.into(), title.into(), alt.into(), Kind::Exact)
    }

    /// Numbers that differ from run to run.
    pub fn measured(name: impl Into<String>, title: impl Into<String>, alt: impl Into<String>) -> Self {
        Self::new(name.into(), title.into(), alt.into(), Kind::Measured)
    }

    /// The numbers are amounts of something: the more, the darker.
    pub fn amounts(mut self, label: impl Into<String>, unit: impl Into<String>) -> Self {
        (self.label, self.unit, self.colours) = (label.into(), unit.into(), Colours::Amount);
        self
    }

    /// The numbers are names of something, such as a block's or a warp's number: equal ones have one colour.
    pub fn identities(mut self, label: impl Into<String>) -> Self {
        (self.label, self.colours) = (label.into(), Colours::Identity);
        self
    }

    /// What a column is, and the columns' names, left to right.
    pub fn columns<N: ToString>(
        mut self,
        label: impl Into<String>,
        names: impl IntoIterator<Item = N>,
    ) -> Self {
        self.columns = Edge::new(label.into(), names);
        self
    }

    /// What a row is. The rows themselves come by [`push`](Self::push).
    pub fn rows(mut self, label: impl Into<String>) -> Self {
        self.rows.label = label.into();
        self
    }

    /// Adds a row below the others: its name and one number for each column.
    pub fn push<N: Into<Option<f64>>>(&mut self, name: impl ToString, numbers: impl IntoIterator<Item = N>) {
        self.rows.names.push(name.to_string());
        self.numbers.push(numbers.into_iter().map(Into::into).collect());
    }

    /// The same as a table: a row's name stands in its first column, and an empty square has no number.
    pub fn table(&self) -> Table {
        let mut table = Table::new(&self.name).column(self.rows.label.clone(), String::new(), self.kind);
        for column in &self.columns.names {
            table = table.column(column.clone(), self.unit.clone(), self.kind);
        }
        for (name, numbers) in self.rows.names.iter().zip(&self.numbers) {
            let entries = numbers.iter().map(|number| number.map_or(Entry::NeedsGpu(()), Entry::Number));
            table.push(std::iter::once(Entry::from(name.as_str())).chain(entries));
        }
        table
    }

    fn new(name: String, title: String, alt: String, kind: Kind) -> Self {
        Self {
            name,
            title,
            alt,
            kind,
            label: String::new(),
            unit: String::new(),
            colours: Colours::default(),
            rows: Edge::default(),
            columns: Edge::default(),
            numbers: Vec::new(),
        }
    }
}

impl Edge {
    fn new<N: ToString>(label: String, names: impl IntoIterator<Item = N>) -> Self {
        Self { label, names: names.into_iter().map(|name| name.to_string()).collect() }
    }
}

impl Axis {
    /// Equal steps, from zero.
    pub fn linear(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Linear }
    }

    /// Powers of two.
    pub fn log2(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Log2 }
    }

    /// Powers of ten.
    pub fn log10(label: impl Into<String>, unit: impl Into<String>) -> Self {
        Self { label: label.into(), unit: unit.into(), scale: Scale::Log10 }
    }

    /// Labels, evenly spread.
    pub fn labels(label: impl Into<String>) -> Self {
        Self { label: label.into(), unit: String::new(), scale: Scale::Labels }
    }
}

impl From<f64> for Point {
    fn from(value: f64) -> Self {
        Self { value: Some(value), ..Self::default() }
    }
}

/// `None` is a time that needs a GPU.
impl From<Option<f64>> for Point {
    fn from(value: Option<f64>) -> Self {
        Self { value, ..Self::default() }
    }
}

/// `None` is a time that needs a GPU.
impl From<Option<Point>> for Point {
    fn from(point: Option<Point>) -> Self {
        point.unwrap_or_default()
    }
}

impl From<f64> for Abscissa {
    fn from(x: f64) -> Self {
        Self::Number(x)
    }
}

impl From<&str> for Abscissa {
    fn from(label: &str) -> Self {
        Self::Label(label.to_owned())
    }
}

impl From<String> for Abscissa {
    fn from(label: String) -> Self {
        Self::Label(label)
    }
}

impl From<f64> for Entry {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl From<&str> for Entry {
    fn from(word: &str) -> Self {
        Self::Text(word.to_owned())
    }
}

impl From<String> for Entry {
    fn from(word: String) -> Self {
        Self::Text(word)
    }
}

/// `None` is a time that needs a GPU.
impl From<Option<f64>> for Entry {
    fn from(number: Option<f64>) -> Self {
        number.map_or(Self::NeedsGpu(()), Self::Number)
    }
}

impl From<Point> for Entry {
    fn from(point: Point) -> Self {
        point.value.into()
    }
}

/// `None` is a time that needs a GPU.
impl From<Option<Point>> for Entry {
    fn from(point: Option<Point>) -> Self {
        Point::from(point).into()
    }
}

// Sizes and counts stay far below 2^53, from where a float no longer holds every integer.
macro_rules! from_integers {
    ($($integer:ty),*) => {$(
        impl From<$integer> for Abscissa {
            fn from(x: $integer) -> Self {
                Self::Number(x as f64)
            }
        }

        impl From<$integer> for Entry {
            fn from(number: $integer) -> Self {
                Self::Number(number as f64)
            }
        }
    )*};
}
from_integers!(i32, i64, u32, u64, usize);
