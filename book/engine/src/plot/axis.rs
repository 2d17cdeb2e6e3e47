//! Axes: what range they cover, where their ticks stand and what the ticks say.

use std::ops::Range;

use plotters::coord::ranged1d::{KeyPointHint, NoDefaultFormatting, Ranged, ValueFormatter};
use record::{Scale, format};

/// One coordinate for every scale, so that a chart has one type. Values are the record's own; [`Ranged::map`] scales them.
#[derive(Clone)]
pub(super) struct AxisRange {
    scale: Scale,
    low: f64,
    high: f64,
    ticks: Vec<f64>,
    format: Format,
}

/// How an axis writes its ticks: all alike, because a row of `512`, `2¹⁰`, `2048` cannot be compared at a glance.
#[derive(Clone, Debug, PartialEq)]
enum Format {
    /// As they are, digits in groups of three.
    Plain {
        /// Digits after the point.
        decimals: usize,
    },
    /// `2¹⁰`.
    PowerOfTwo,
    /// `10⁶`.
    PowerOfTen,
    /// `64 KiB`, `10 µs`: the unit takes the prefix that fits.
    Quantity(String),
}

impl AxisRange {
    /// An axis over these values with at most about `most` ticks. `unit` decides how sizes are written.
    pub(super) fn over(values: impl IntoIterator<Item = f64>, scale: Scale, unit: &str, most: usize) -> Self {
        let values: Vec<f64> = values.into_iter().filter(|&value| drawable(value, scale)).collect();
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let (low, high) = if values.is_empty() { (1.0, 1.0) } else { (low, high) };
        match scale {
            Scale::Linear | Scale::Labels => Self::linear(low, high, unit, most),
            Scale::Log2 => Self::logarithmic(low, high, 2.0, unit, most),
            Scale::Log10 => Self::logarithmic(low, high, 10.0, unit, most),
        }
    }

    /// An axis that ends exactly at its values: an abscissa is a choice, and a margin beside it would only be empty.
    pub(super) fn tight(
        values: impl IntoIterator<Item = f64> + Clone,
        scale: Scale,
        unit: &str,
        most: usize,
    ) -> Self {
        let mut axis = Self::over(values.clone(), scale, unit, most);
        let inside = || values.clone().into_iter().filter(|&value| drawable(value, scale));
        let (low, high) =
            (inside().fold(f64::INFINITY, f64::min), inside().fold(f64::NEG_INFINITY, f64::max));
        if low < high {
            axis.low = if scale == Scale::Linear { axis.low.min(low) } else { low };
            axis.high = high;
            axis.ticks.retain(|&tick| tick <= high * 1.000_001 && tick >= axis.low * 0.999_999);
        }
        axis
    }

    /// Whether a value can stand on this axis: a logarithm has no zero.
    pub(super) fn holds(&self, value: f64) -> bool {
        drawable(value, self.scale)
    }

    fn linear(low: f64, high: f64, unit: &str, most: usize) -> Self {
        let (low, high) = (low.min(0.0), high.max(0.0));
        let high = if low == high { 1.0 } else { high };
        let step = nice_step((high - low) / most.max(2) as f64);
        let (first, last) = ((low / step + 1e-9).floor(), (high / step - 1e-9).ceil());
        let ticks: Vec<f64> = (first as i64..=last as i64).map(|number| number as f64 * step).collect();
        let decimals = (-step.log10().floor()).max(0.0) as usize;
        let (low, high) = (first * step, last * step);
        let format = if format::is_scaled(unit) {
            Format::Quantity(unit.to_owned())
        } else {
            Format::Plain { decimals }
        };
        Self { scale: Scale::Linear, low, high, ticks, format }
    }

    fn logarithmic(low: f64, high: f64, base: f64, unit: &str, most: usize) -> Self {
        let exponent = |value: f64| value.ln() / base.ln();
        let (mut first, mut last) =
            ((exponent(low) + 1e-9).floor() as i32, (exponent(high) - 1e-9).ceil() as i32);
        if first == last {
            (first, last) = (first - 1, last + 1);
        }
        let span = (last - first) as usize;
        let step = [1, 2, 4, 5, 8, 10, 16, 20]
            .into_iter()
            .find(|&step| span / step <= most.max(2))
            .unwrap_or(span.div_ceil(most.max(2)));
        // Multiples of the step, so that a wide and a narrow drawing agree on their ticks as far as they can.
        let mut ticks: Vec<f64> = (first..=last)
            .filter(|exponent| exponent.rem_euclid(step as i32) == 0)
            .map(|exponent| base.powi(exponent))
            .collect();
        if base == 10.0 && span <= 2 {
            // Few decades: the twos and fives between them are needed to read a value.
            ticks = (first..=last)
                .flat_map(|exponent| [1.0, 2.0, 5.0].map(|digit| digit * 10f64.powi(exponent)))
                .filter(|&tick| tick <= base.powi(last) * 1.000_001)
                .collect();
        }
        // A power of ten is a long way from its neighbour: such an axis may also end at a two or a five.
        let ends = |power: i32| [1.0, 2.0, 5.0].map(|digit| digit * base.powi(power));
        let (bottom, top) = match base == 10.0 && high > low {
            true => (
                ends(first).into_iter().rfind(|&end| end <= low * 1.000_001).unwrap_or(base.powi(first)),
                ends(last - 1).into_iter().find(|&end| end >= high * 0.999_999).unwrap_or(base.powi(last)),
            ),
            false => (base.powi(first), base.powi(last)),
        };
        ticks.retain(|&tick| tick >= bottom * 0.999_999 && tick <= top * 1.000_001);
        let largest = ticks.iter().copied().fold(top, f64::max);
        let format = match () {
            () if format::is_scaled(unit) => Format::Quantity(unit.to_owned()),
            () if base == 2.0 && (largest > 8192.0 || bottom < 1.0) => Format::PowerOfTwo,
            () if base == 10.0 && (largest > 1e5 || bottom < 1e-3) => Format::PowerOfTen,
            () => Format::Plain { decimals: (-bottom.log10().floor()).max(0.0) as usize },
        };
        let scale = if base == 2.0 { Scale::Log2 } else { Scale::Log10 };
        Self { scale, low: bottom, high: top, ticks, format }
    }

    /// The ticks and what they say.
    pub(super) fn ticks(&self) -> impl Iterator<Item = (f64, String)> {
        self.ticks.iter().map(|&tick| (tick, self.format_ext(&tick)))
    }

    /// Whether bars may stand on it: only where it begins at zero is a length a quantity.
    pub(super) fn begins_at_zero(&self) -> bool {
        self.scale == Scale::Linear
    }

    /// Where the axis begins.
    pub(super) fn low(&self) -> f64 {
        self.low
    }
}

impl Ranged for AxisRange {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (from, to): (i32, i32)) -> i32 {
        let place = match self.scale {
            Scale::Linear | Scale::Labels => (value - self.low) / (self.high - self.low),
            Scale::Log2 | Scale::Log10 => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        from + (place * f64::from(to - from)).round() as i32
    }

    fn key_points<Hint: KeyPointHint>(&self, _hint: Hint) -> Vec<f64> {
        self.ticks.clone()
    }

    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for AxisRange {
    fn format_ext(&self, &value: &f64) -> String {
        match &self.format {
            // A logarithmic axis has ticks of very different size, each with the digits that it needs.
            Format::Plain { decimals } if self.scale == Scale::Linear => {
                if *decimals == 0 {
                    format::number(value)
                } else {
                    format!("{value:.decimals$}").replace('-', "\u{2212}")
                }
            }
            Format::Plain { .. } => plain(&format::number(rounded(value))),
            Format::PowerOfTwo => format!("2{}", superscript(value.log2().round() as i32)),
            Format::PowerOfTen => {
                let exponent = (value.log10() + 1e-9).floor() as i32;
                match (value / 10f64.powi(exponent)).round() as i32 {
                    1 => format!("10{}", superscript(exponent)),
                    digit => format!("{digit}·10{}", superscript(exponent)),
                }
            }
            Format::Quantity(unit) => plain(&format::quantity(rounded(value), unit)),
        }
    }
}

/// Whether a value can stand on a scale.
fn drawable(value: f64, scale: Scale) -> bool {
    value.is_finite() && (value > 0.0 || matches!(scale, Scale::Linear | Scale::Labels))
}

/// The next of 1, 2, 2.5 and 5 times a power of ten.
fn nice_step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.log10().floor());
    let digit = rough / power;
    let nice = [1.0, 2.0, 2.5, 5.0].into_iter().find(|&nice| digit <= nice + 1e-9).unwrap_or(10.0);
    // 2.5 needs a digit more than its power says; only where whole numbers allow it is it nice.
    let nice = if nice == 2.5 && power < 10.0 { 5.0 } else { nice };
    nice * power
}

fn superscript(number: i32) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    number
        .to_string()
        .bytes()
        .map(|byte| if byte == b'-' { '⁻' } else { DIGITS[usize::from(byte - b'0')] })
        .collect()
}

/// A tick without the noise that powers and steps leave in its last bits.
fn rounded(value: f64) -> f64 {
    format!("{value:.12e}").parse().unwrap_or(value)
}

/// A tick is a round number, not a measurement: zeros after its point say nothing.
fn plain(text: &str) -> String {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.' && c != '\u{2212}').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    match number.contains('.') {
        true => format!("{}{unit}", number.trim_end_matches('0').trim_end_matches('.')),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(values: &[f64], scale: Scale, unit: &str, expected: &[&str]) {
        let axis = AxisRange::over(values.iter().copied(), scale, unit, 6);
        let ticks: Vec<String> = axis.ticks().map(|(_, label)| label.replace('\u{202f}', " ")).collect();
        assert_eq!(ticks, expected);
    }

    #[test]
    fn linear_axes_start_at_zero_and_step_by_round_numbers() {
        check(&[3.0, 97.0], Scale::Linear, "", &["0", "20", "40", "60", "80", "100"]);
        check(&[4396.0], Scale::Linear, "GB/s", &["0", "1 000", "2 000", "3 000", "4 000", "5 000"]);
        check(&[0.31], Scale::Linear, "", &["0.0", "0.1", "0.2", "0.3", "0.4"]);
        check(&[-5.0, 5.0], Scale::Linear, "", &["−6", "−4", "−2", "0", "2", "4", "6"]);
    }

    #[test]
    fn powers_of_two_are_written_alike() {
        check(&[1.0, 32.0], Scale::Log2, "", &["1", "2", "4", "8", "16", "32"]);
        check(&[1024.0, 268_435_456.0], Scale::Log2, "", &["2¹²", "2¹⁶", "2²⁰", "2²⁴", "2²⁸"]);
        check(
            &[4096.0, 16_777_216.0],
            Scale::Log2,
            "B",
            &["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB", "16 MiB"],
        );
        check(&[2e-6, 0.03], Scale::Log10, "s", &["10 µs", "100 µs", "1 ms", "10 ms"]);
        check(&[0.0148], Scale::Linear, "s", &["0 s", "5 ms", "10 ms", "15 ms"]);
    }

    #[test]
    fn powers_of_ten_have_twos_and_fives_where_there_is_room() {
        check(&[1.0, 60.0], Scale::Log10, "", &["1", "2", "5", "10", "20", "50", "100"]);
        check(&[0.02, 900.0], Scale::Log10, "µs", &["0.1", "1", "10", "100", "1 000"]);
        check(&[1.0, 1e9], Scale::Log10, "", &["10⁰", "10²", "10⁴", "10⁶", "10⁸"]);
    }

    #[test]
    fn one_value_or_none_still_makes_an_axis() {
        for scale in [Scale::Linear, Scale::Log2, Scale::Log10] {
            for values in [&[][..], &[8.0], &[0.0], &[f64::NAN]] {
                let axis = AxisRange::over(values.iter().copied(), scale, "", 6);
                assert!(axis.low < axis.high, "{scale:?} over {values:?}");
            }
        }
    }
}
