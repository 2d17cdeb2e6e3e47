//! A figure and how it was got. What could not be read stays without a number: never a zero.
//!
//! To the book all of them are measured: they are a GPU's, and no other device gives the same.

use record::{Entry, Point};

/// A figure out of a profiler's report.
#[derive(Clone, Debug, PartialEq)]
pub enum Reading {
    /// As the profiler gave it, in the unit that the caller asked for.
    Measured(f64),
    /// Computed from measured figures by the formula that stands beside it.
    Derived(f64, &'static str),
    /// There is no figure, for this reason.
    NotCollected(String),
}

impl Reading {
    /// A reading that is missing for `reason`.
    pub fn missing(reason: impl Into<String>) -> Self {
        Self::NotCollected(reason.into())
    }

    /// The number, if there is one.
    pub fn value(&self) -> Option<f64> {
        match self {
            Self::Measured(value) | Self::Derived(value, _) => Some(*value),
            Self::NotCollected(_) => None,
        }
    }

    /// The same figure in another unit.
    pub fn scaled(self, factor: f64) -> Self {
        match self {
            Self::Measured(value) => Self::Measured(value * factor),
            Self::Derived(value, formula) => Self::Derived(value * factor, formula),
            missing => missing,
        }
    }

    /// `self` and `other` combined by `formula`, which says in words what `combine` computes. A result that is no finite
    /// number (a division by zero) is not a figure either.
    pub fn with(&self, other: &Self, formula: &'static str, combine: impl FnOnce(f64, f64) -> f64) -> Self {
        match (self, other) {
            (Self::NotCollected(reason), _) | (_, Self::NotCollected(reason)) => {
                Self::NotCollected(reason.clone())
            }
            (
                Self::Measured(left) | Self::Derived(left, _),
                Self::Measured(right) | Self::Derived(right, _),
            ) => match combine(*left, *right) {
                value if value.is_finite() => Self::Derived(value, formula),
                _ => Self::NotCollected(format!("{formula} is undefined here")),
            },
        }
    }

    /// What a table shows: the number, rounded to what it can bear, or the reason for its absence.
    pub fn entry(&self) -> Entry {
        match self {
            Self::Measured(value) | Self::Derived(value, _) => Entry::Number(significant(*value)),
            Self::NotCollected(reason) => Entry::Text(format!("not collected ({reason})")),
        }
    }

    /// What a series or a value holds.
    pub fn point(&self) -> Point {
        Point { value: self.value().map(significant), ..Point::default() }
    }

    /// What a value's note says; nothing for a figure that is as measured.
    pub fn note(&self) -> String {
        match self {
            Self::Measured(_) => String::new(),
            Self::Derived(_, formula) => format!("derived ({formula})"),
            Self::NotCollected(reason) => format!("not collected ({reason})"),
        }
    }
}

/// `value` to six significant digits: more would make every new recording a diff without a meaning. Whole numbers, such
/// as counts, stay as they are.
pub(crate) fn significant(value: f64) -> f64 {
    if value.fract() == 0.0 || !value.is_finite() {
        return value;
    }
    // Through text, so that the number is the one that its decimal form says.
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_never_becomes_a_number() {
        let bytes = Reading::Measured(100.0);
        let none = Reading::missing("metric `x` is n/a on this GPU");
        let rate = bytes.with(&none, "bytes / time", |bytes, time| bytes / time);
        assert_eq!(rate.value(), None);
        assert_eq!(rate.entry(), Entry::Text("not collected (metric `x` is n/a on this GPU)".into()));
        let rate = bytes.with(&Reading::Measured(0.0), "bytes / time", |bytes, time| bytes / time);
        assert_eq!(rate, Reading::missing("bytes / time is undefined here"));
    }

    #[test]
    fn a_derived_figure_says_its_formula() {
        let rate = Reading::Measured(6.0)
            .with(&Reading::Measured(2.0), "bytes / time", |bytes, time| bytes / time)
            .scaled(10.0);
        assert_eq!(rate, Reading::Derived(30.0, "bytes / time"));
        assert_eq!(rate.note(), "derived (bytes / time)");
    }

    #[test]
    fn six_digits_are_kept() {
        assert_eq!(significant(123_456_789.25), 123_457_000.0);
        assert_eq!(significant(123_456_789.0), 123_456_789.0);
        assert_eq!(significant(0.123_456_789), 0.123_457);
        assert_eq!(significant(4.0), 4.0);
        assert_eq!(significant(0.0), 0.0);
    }
}
