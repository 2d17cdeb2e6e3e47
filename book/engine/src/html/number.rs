//! Numbers as a person reads them: digits in groups of three, and no more digits than were measured.

/// A narrow space that does not break.
const GAP: char = '\u{202f}';

/// A number with about four significant digits; whole numbers keep all of theirs.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if !value.is_finite() {
        return if value.is_nan() {
            "not a number".to_owned()
        } else {
            format!("{value}").replace("inf", "∞")
        };
    }
    if value == value.trunc() && size < 1e15 {
        return grouped(&format!("{value:.0}"));
    }
    match size {
        1e15.. => scientific(value),
        1e3.. => grouped(&format!("{value:.0}")),
        100.0.. => format!("{value:.1}"),
        10.0.. => format!("{value:.2}"),
        1.0.. => trimmed(format!("{value:.3}")),
        0.001.. => {
            // Four digits from the first that is not zero.
            let decimals = (3.0 - size.log10().floor()) as usize;
            trimmed(format!("{value:.decimals$}"))
        }
        _ => scientific(value),
    }
}

/// Digits in groups of three, from the point to the left. Four digits stay together in most hands, but columns do not then.
pub fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |rest| ("-", rest));
    let (whole, fraction) =
        digits.split_once('.').map_or((digits, String::new()), |(whole, rest)| (whole, format!(".{rest}")));
    let mut out = String::from(sign);
    for (index, digit) in whole.chars().enumerate() {
        if index > 0 && (whole.len() - index).is_multiple_of(3) {
            out.push(GAP);
        }
        out.push(digit);
    }
    out + &fraction
}

/// Microseconds in the unit that suits them.
pub fn duration(us: f64) -> String {
    match us {
        ..1.0 => format!("{} ns", number((us * 1e3).round())),
        ..1e3 => format!("{} µs", number(us)),
        ..1e6 => format!("{} ms", number(us / 1e3)),
        ..120e6 => format!("{} s", number(us / 1e6)),
        _ => format!("{} min", number((us / 60e6 * 10.0).round() / 10.0)),
    }
}

/// `1.234 · 10⁻⁵`.
fn scientific(value: f64) -> String {
    const DIGITS: [char; 10] = ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'];
    let text = format!("{value:.3e}");
    let Some((digits, exponent)) = text.split_once('e') else { return text };
    let exponent: String = exponent
        .bytes()
        .map(|byte| if byte == b'-' { '⁻' } else { DIGITS[usize::from(byte - b'0')] })
        .collect();
    format!("{}{GAP}·{GAP}10{exponent}", trimmed(digits.to_owned()))
}

fn trimmed(number: String) -> String {
    if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.').to_owned() } else { number }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(value: f64, expected: &str) {
        assert_eq!(number(value).replace(GAP, " "), expected);
    }

    #[test]
    fn whole_numbers_keep_their_digits() {
        check(0.0, "0");
        check(512.0, "512");
        check(4262.0, "4 262");
        check(-268_435_456.0, "-268 435 456");
        check(1e18, "1 · 10¹⁸");
    }

    #[test]
    fn other_numbers_have_about_four_digits() {
        check(4262.31, "4 262");
        check(123.456, "123.5");
        check(51.234, "51.23");
        check(1.5, "1.5");
        check(0.31, "0.31");
        check(0.001_234_5, "0.001234");
        check(0.000_012_34, "1.234 · 10⁻⁵");
    }

    #[test]
    fn durations_have_the_unit_that_suits_them() {
        assert_eq!(duration(0.25), "250 ns");
        assert_eq!(duration(3.4), "3.4 µs");
        assert_eq!(duration(14_800.0), "14.8 ms");
        assert_eq!(duration(2.5e6), "2.5 s");
        assert_eq!(duration(150e6), "2.5 min");
    }
}
