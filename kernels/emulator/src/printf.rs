//! `printf` of device code: the format of C, with arguments in a buffer, each aligned to its size.

/// Formats one thread's call. `read` gives bytes of the argument buffer, `string` a string by its address. Returns the
/// number of arguments, as `printf` on the device does.
pub(crate) fn format(
    format: &[u8],
    read: impl Fn(u64, u64) -> u64,
    string: impl Fn(u64) -> Vec<u8>,
    out: &mut Vec<u8>,
) -> u32 {
    let mut offset = 0u64;
    let mut arguments = 0;
    let mut next = |bytes: u64| {
        offset = offset.next_multiple_of(bytes);
        let value = read(offset, bytes);
        offset += bytes;
        arguments += 1;
        value
    };
    let mut rest = format;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        if let Some(after) = rest.strip_prefix(b"%") {
            out.push(b'%');
            rest = after;
            continue;
        }
        let start = rest;
        let Some((specifier, after)) = Specifier::parse(rest, || next(4) as i32) else {
            // Not a conversion: as C libraries do, show what was written.
            out.push(b'%');
            continue;
        };
        rest = after;
        let text = match specifier.conversion {
            b'd' | b'i' => specifier.integer(sign_extend(next(specifier.bytes()), specifier.bytes())),
            b'u' | b'o' | b'x' | b'X' => specifier.unsigned(next(specifier.bytes())),
            b'c' => vec![next(4) as u8],
            b's' => {
                let mut text = string(next(8));
                if let Some(precision) = specifier.precision {
                    text.truncate(precision);
                }
                text
            }
            b'p' => format!("{:#x}", next(8)).into_bytes(),
            b'f' | b'F' | b'e' | b'E' | b'g' | b'G' | b'a' | b'A' => specifier.float(f64::from_bits(next(8))),
            _ => {
                out.push(b'%');
                rest = start;
                continue;
            }
        };
        specifier.pad(text, out);
    }
    arguments
}

#[derive(Debug, Default)]
struct Specifier {
    left: bool,
    plus: bool,
    space: bool,
    alternate: bool,
    zero: bool,
    width: usize,
    precision: Option<usize>,
    long: bool,
    conversion: u8,
}

impl Specifier {
    fn parse(text: &[u8], mut star: impl FnMut() -> i32) -> Option<(Specifier, &[u8])> {
        let mut specifier = Specifier::default();
        let mut rest = text;
        loop {
            match rest.first()? {
                b'-' => specifier.left = true,
                b'+' => specifier.plus = true,
                b' ' => specifier.space = true,
                b'#' => specifier.alternate = true,
                b'0' => specifier.zero = true,
                _ => break,
            }
            rest = &rest[1..];
        }
        let mut number = |rest: &mut &[u8]| {
            if let Some(after) = rest.strip_prefix(b"*") {
                *rest = after;
                return star();
            }
            let mut value = 0i32;
            while let Some((digit @ b'0'..=b'9', after)) = rest.split_first() {
                value = value.saturating_mul(10).saturating_add(i32::from(digit - b'0'));
                *rest = after;
            }
            value
        };
        let width = number(&mut rest);
        specifier.left |= width < 0;
        // A device line is at most 1 MiB anyway.
        specifier.width = (width.unsigned_abs() as usize).min(1 << 16);
        if let Some(after) = rest.strip_prefix(b".") {
            rest = after;
            specifier.precision =
                usize::try_from(number(&mut rest)).ok().map(|precision| precision.min(1 << 10));
        }
        while let Some((length @ (b'h' | b'l' | b'q' | b'j' | b'z' | b't' | b'L'), after)) =
            rest.split_first()
        {
            specifier.long |= *length != b'h';
            rest = after;
        }
        let (&conversion, after) = rest.split_first()?;
        specifier.conversion = conversion;
        Some((specifier, after))
    }

    /// On the device `long` has 64 bits.
    fn bytes(&self) -> u64 {
        if self.long { 8 } else { 4 }
    }

    fn sign(&self, negative: bool) -> &'static str {
        match (negative, self.plus, self.space) {
            (true, ..) => "-",
            (false, true, _) => "+",
            (false, false, true) => " ",
            _ => "",
        }
    }

    fn integer(&self, value: i64) -> Vec<u8> {
        let digits = self.digits(value.unsigned_abs().to_string());
        format!("{}{digits}", self.sign(value < 0)).into_bytes()
    }

    fn unsigned(&self, value: u64) -> Vec<u8> {
        let (prefix, digits) = match self.conversion {
            b'o' => ("0", format!("{value:o}")),
            b'x' => ("0x", format!("{value:x}")),
            b'X' => ("0X", format!("{value:X}")),
            _ => ("", value.to_string()),
        };
        let prefix = if self.alternate && value != 0 { prefix } else { "" };
        format!("{prefix}{}", self.digits(digits)).into_bytes()
    }

    fn digits(&self, digits: String) -> String {
        let least = self.precision.unwrap_or(1);
        if least == 0 && digits == "0" { String::new() } else { format!("{digits:0>least$}") }
    }

    fn float(&self, value: f64) -> Vec<u8> {
        let upper = self.conversion.is_ascii_uppercase();
        let sign = self.sign(value.is_sign_negative() && !value.is_nan());
        let size = value.abs();
        let text = if !size.is_finite() {
            if size.is_nan() { "nan".into() } else { "inf".into() }
        } else {
            match self.conversion.to_ascii_lowercase() {
                b'f' => fixed(size, self.precision.unwrap_or(6), self.alternate),
                b'e' => scientific(size, self.precision.unwrap_or(6), self.alternate),
                b'g' => general(size, self.precision.unwrap_or(6).max(1), self.alternate),
                _ => hexadecimal(size),
            }
        };
        let text = if upper { text.to_uppercase() } else { text };
        format!("{sign}{text}").into_bytes()
    }

    fn pad(&self, text: Vec<u8>, out: &mut Vec<u8>) {
        let missing = self.width.saturating_sub(text.len());
        let number = !matches!(self.conversion, b's' | b'c' | b'p');
        let integer = matches!(self.conversion, b'd' | b'i' | b'u' | b'o' | b'x' | b'X');
        if self.left {
            out.extend(&text);
            out.extend(std::iter::repeat_n(b' ', missing));
        } else if self.zero && number && !(integer && self.precision.is_some()) && !text.ends_with(b"n") {
            // Zeros go between the sign or prefix and the digits.
            let head = text.iter().take_while(|byte| b"+- ".contains(byte)).count();
            let prefix = text[head..].starts_with(b"0x") || text[head..].starts_with(b"0X");
            let head = if prefix { head + 2 } else { head };
            out.extend(&text[..head]);
            out.extend(std::iter::repeat_n(b'0', missing));
            out.extend(&text[head..]);
        } else {
            out.extend(std::iter::repeat_n(b' ', missing));
            out.extend(&text);
        }
    }
}

fn sign_extend(value: u64, bytes: u64) -> i64 {
    if bytes == 4 { i64::from(value as i32) } else { value as i64 }
}

fn fixed(size: f64, precision: usize, alternate: bool) -> String {
    let point = if precision == 0 && alternate { "." } else { "" };
    format!("{size:.precision$}{point}")
}

fn scientific(size: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{size:.precision$e}");
    let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let exponent: i32 = exponent.parse().unwrap_or(0);
    let point = if precision == 0 && alternate { "." } else { "" };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{digits}{point}e{sign}{:02}", exponent.abs())
}

fn general(size: f64, precision: usize, alternate: bool) -> String {
    let text = format!("{size:.*e}", precision - 1);
    let exponent: i32 = text.split_once('e').and_then(|(_, exponent)| exponent.parse().ok()).unwrap_or(0);
    let text = if exponent < -4 || exponent >= precision as i32 {
        scientific(size, precision - 1, alternate)
    } else {
        fixed(size, (precision as i32 - 1 - exponent).max(0) as usize, alternate)
    };
    if alternate || !text.contains('.') {
        return text;
    }
    let (digits, exponent) = match text.split_once('e') {
        Some((digits, exponent)) => (digits.to_owned(), format!("e{exponent}")),
        None => (text, String::new()),
    };
    format!("{}{exponent}", digits.trim_end_matches('0').trim_end_matches('.'))
}

fn hexadecimal(size: f64) -> String {
    let bits = size.to_bits();
    let exponent = (bits >> 52) as i32;
    let fraction = bits & ((1 << 52) - 1);
    let (lead, exponent) = match (exponent, fraction) {
        (0, 0) => (0, 0),
        (0, _) => (0, -1022),
        _ => (1, exponent - 1023),
    };
    let digits = format!("{fraction:013x}");
    let digits = digits.trim_end_matches('0');
    let point = if digits.is_empty() { "" } else { "." };
    format!("0x{lead}{point}{digits}p{exponent:+}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, arguments: &[u8], expected: &str) {
        let mut out = Vec::new();
        let read = |offset: u64, bytes: u64| {
            let mut value = [0; 8];
            let bytes = bytes as usize;
            value[..bytes].copy_from_slice(&arguments[offset as usize..][..bytes]);
            u64::from_le_bytes(value)
        };
        format(text.as_bytes(), read, |address| format!("string {address}").into_bytes(), &mut out);
        assert_eq!(String::from_utf8_lossy(&out), expected);
    }

    #[test]
    fn integers() {
        check(
            "%d|%5d|%-5d|%05d|%+d",
            &[7i32, -7, 7, -7, 7].map(i32::to_le_bytes).concat(),
            "7|   -7|7    |-0007|+7",
        );
        check("%u %x %#X %o", &[!0u32, 255, 255, 8].map(u32::to_le_bytes).concat(), "4294967295 ff 0XFF 10");
        check("%d %lld", &[1u64, 1 << 40].map(u64::to_le_bytes).concat(), "1 1099511627776");
        check("%.3d %*d", &[5i32, 4, 6].map(i32::to_le_bytes).concat(), "005    6");
    }

    #[test]
    fn floats() {
        let values = [1.5f64, 1e-7, 123_456_789.0, -0.0].map(f64::to_le_bytes).concat();
        check("%f %g %g %g", &values, "1.500000 1e-07 1.23457e+08 -0");
        check(
            "%e %.2f %10.1f %a",
            &[12345.678f64, 2.345, 9.96, 1.0].map(f64::to_le_bytes).concat(),
            "1.234568e+04 2.35       10.0 0x1p+0",
        );
        check("%f %F", &[f64::INFINITY, f64::NAN].map(f64::to_le_bytes).concat(), "inf NAN");
    }

    #[test]
    fn text_and_what_is_no_conversion() {
        check("%s%c 100%% %", &[&9u64.to_le_bytes()[..], &[b'!', 0, 0, 0]].concat(), "string 9! 100% %");
        check("%y", &[], "%y");
    }
}
