//! Numbers as people read them, the same in the terminal and on the page: `14.8 ms`, `4 262 GB/s`, `256 MiB`.
//!
//! Three significant digits, but every digit of a whole number below 10¹⁵; groups of three from four digits on; base
//! units (seconds, bytes, hertz, FLOP) take the prefix that fits. Spaces inside a number, and before its unit, are narrow
//! and do not break.

use crate::Point;

/// The space inside a quantity: U+202F, narrow and no-break.
pub const SPACE: char = '\u{202f}';

/// What stands where a time would be that only a GPU can give.
pub const NEEDS_GPU: &str = "needs a GPU";

/// A number with its unit; see the module's description.
pub fn quantity(value: f64, unit: &str) -> String {
    let (value, unit) = scale(value, unit);
    if unit.is_empty() { number(value) } else { format!("{}{SPACE}{unit}", number(value)) }
}

/// A point's median with its unit, or [`NEEDS_GPU`].
pub fn point(point: Point, unit: &str) -> String {
    point.value.map_or_else(|| NEEDS_GPU.to_owned(), |value| quantity(value, unit))
}

/// A point's spread with its unit, 20th to 80th percentile, such as `14.6–15.0 ms`; `None` where it was not sampled.
pub fn spread(point: Point, unit: &str) -> Option<String> {
    let (low, high) = (point.low?, point.high?);
    let (scaled_high, prefixed) = scale(high, unit);
    // Both ends under the same prefix: a range over two units is hard to read.
    let scaled_low = if high == 0.0 { low } else { low * (scaled_high / high) };
    let unit = if prefixed.is_empty() { String::new() } else { format!("{SPACE}{prefixed}") };
    let whole = scaled_low.fract() == 0.0 && scaled_high.fract() == 0.0;
    let end = |value: f64| match value {
        0.1..999.5 if !whole => three_digits(value),
        _ => number(value),
    };
    Some(format!("{}–{}{unit}", end(scaled_low), end(scaled_high)))
}

/// Whether [`quantity`] gives this unit a prefix that depends on the number, so that it must stand beside each number
/// rather than in a column's head.
pub fn is_scaled(unit: &str) -> bool {
    BASE_UNITS.contains(&unit) || unit == "B"
}

/// A number without a unit.
pub fn number(value: f64) -> String {
    if value.is_nan() {
        return "not a number".to_owned();
    }
    let sign = if value < 0.0 { "\u{2212}" } else { "" };
    let size = value.abs();
    let text = if size.is_infinite() {
        "∞".to_owned()
    } else if size == 0.0 {
        "0".to_owned()
    } else if !(1e-4..1e15).contains(&size) {
        scientific(size)
    } else if size.fract() == 0.0 || size >= 999.5 {
        group(&format!("{size:.0}"))
    } else {
        three_digits(size)
    };
    format!("{sign}{text}")
}

const BASE_UNITS: [&str; 6] = ["s", "Hz", "B/s", "FLOP", "FLOP/s", "instructions/s"];

/// The number and unit under the prefix that leaves one to three digits before the point.
fn scale(value: f64, unit: &str) -> (f64, String) {
    if unit == "B" {
        return bytes(value);
    }
    if !BASE_UNITS.contains(&unit) || value == 0.0 || !value.is_finite() {
        return (value, unit.to_owned());
    }
    const PREFIXES: [(f64, &str); 9] = [
        (1e15, "P"),
        (1e12, "T"),
        (1e9, "G"),
        (1e6, "M"),
        (1e3, "k"),
        (1.0, ""),
        (1e-3, "m"),
        (1e-6, "µ"),
        (1e-9, "n"),
    ];
    // Nobody says kiloseconds; and what rounds up to 1000 belongs under the next prefix.
    let largest = if unit == "s" { 1.0 } else { 1e15 };
    let fits = |&&(factor, _): &&(f64, &str)| factor <= largest && value.abs() >= factor * 0.9995;
    let (factor, prefix) = *PREFIXES.iter().find(fits).unwrap_or(&(1e-9, "n"));
    (value / factor, format!("{prefix}{unit}"))
}

/// Bytes: powers of 1024 where the largest that fits divides evenly (or into quarters), else powers of 1000.
fn bytes(value: f64) -> (f64, String) {
    let binary = [(1u64 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];
    if let Some((factor, unit)) = binary.into_iter().find(|(factor, _)| value.abs() >= *factor as f64) {
        let scaled = value / factor as f64;
        if (scaled * 4.0).fract() == 0.0 {
            return (scaled, unit.to_owned());
        }
    }
    for (factor, unit) in [(1e12, "TB"), (1e9, "GB"), (1e6, "MB")] {
        if value.abs() >= factor * 0.9995 {
            return (value / factor, unit.to_owned());
        }
    }
    (value, "B".to_owned())
}

/// Three significant digits of a number from 0.0001 to 999.5, with trailing zeros kept after a point: 0.50 would say less.
fn three_digits(size: f64) -> String {
    // The exponent after rounding: 9.996 is 10.0 and not 10.00.
    let exponent = exponent_of(&format!("{size:.2e}"));
    let decimals = usize::try_from(2 - exponent).unwrap_or(0);
    format!("{size:.decimals$}")
}

fn scientific(size: f64) -> String {
    let text = format!("{size:.2e}");
    let (mantissa, _) = text.split_once('e').unwrap_or((&text, ""));
    let superscript: String = exponent_of(&text)
        .to_string()
        .chars()
        .map(|c| match c {
            '-' => '⁻',
            '1' => '¹',
            '2' => '²',
            '3' => '³',
            digit => char::from_u32(0x2070 + (digit as u32 - '0' as u32)).unwrap_or(digit),
        })
        .collect();
    format!("{mantissa}·10{superscript}")
}

fn exponent_of(scientific: &str) -> i32 {
    scientific.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0)
}

fn group(digits: &str) -> String {
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            grouped.push(SPACE);
        }
        grouped.push(digit);
    }
    grouped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, unit: &str, expected: &str) {
        assert_eq!(quantity(value, unit).replace(SPACE, " "), expected);
    }

    #[test]
    fn quantities() {
        check(4262.31, "GB/s", "4 262 GB/s");
        check(0.0148, "s", "14.8 ms");
        check(3.39e-6, "s", "3.39 µs");
        check(75.0, "s", "75 s");
        check(1.23456, "s", "1.23 s");
        check(0.9999e-3, "s", "1.00 ms");
        check(4000.0, "s", "4 000 s");
        check(268_435_456.0, "B", "256 MiB");
        check(1536.0, "B", "1.50 KiB");
        check(1_000_000.0, "B", "1 MB");
        check(150_110_011_392.0, "B", "150 GB");
        check(12_292.0, "B", "12 292 B");
        check(1000.0, "B", "1 000 B");
        check(1e6 + 4.0, "B", "1.00 MB");
        check(51.2e12, "FLOP/s", "51.2 TFLOP/s");
        check(1.98e9, "Hz", "1.98 GHz");
        check(0.973, "", "0.973");
        check(-0.5, "", "\u{2212}0.500");
        check(65536.0, "", "65 536");
        check(999.96, "GB/s", "1 000 GB/s");
        check(9.996, "", "10.0");
        check(123.0, "", "123");
        check(0.0, "s", "0 s");
        check(1.2e-7, "", "1.20·10⁻⁷");
        check(3e18, "", "3.00·10¹⁸");
        check(f64::INFINITY, "GB/s", "∞ GB/s");
        check(f64::NAN, "", "not a number");
    }

    #[test]
    fn points() {
        let sampled = Point { value: Some(0.0148), low: Some(0.0146), high: Some(0.015), samples: Some(25) };
        assert_eq!(point(sampled, "s").replace(SPACE, " "), "14.8 ms");
        assert_eq!(spread(sampled, "s").unwrap().replace(SPACE, " "), "14.6–15.0 ms");
        assert_eq!(point(Point::default(), "s"), NEEDS_GPU);
        assert_eq!(spread(1.0.into(), "s"), None);
    }
}
