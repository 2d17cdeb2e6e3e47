//! Statements that the records must bear out: `a.b.c[x] > 2 * a.b.d`.
//!
//! Numbers, references, `+ - * /`, comparisons (also chained), `min`, `max`, parentheses. Units are carried along: `+`, `-`,
//! `min`, `max` and comparisons need equal ones, a bare number adopts its neighbour's, products and quotients combine them.
//! A missing value, a NaN, a word or mixed units fail; they are never false by accident or true by default.
//! A `-` after a reference needs a space before it, because names may hold one.

use std::collections::BTreeMap;

use crate::reference::{Found, Origin, Reference, parse_number};

/// What became of a claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// Whether it holds.
    pub holds: bool,
    /// The statement with its numbers in place of the references.
    pub numbers: String,
    /// Where the numbers came from.
    pub origins: Vec<Origin>,
}

/// Judges a claim; `resolve` looks references up, `show` writes a number with its unit.
///
/// # Errors
/// What stands in the way of a judgement: syntax, an unknown reference, a missing value, mixed units.
pub fn judge(
    text: &str,
    resolve: impl Fn(&Reference) -> Result<Found, String>,
    show: impl Fn(f64, &str) -> String,
) -> Result<Verdict, String> {
    let tokens = tokens(text)?;
    let mut parser = Parser { tokens: &tokens, at: 0, resolve: &resolve, show: &show, origins: Vec::new() };
    let mut left = parser.sum()?;
    let mut numbers = left.shown.clone();
    let mut holds = true;
    let mut compared = false;
    while let Some(comparison) = parser.comparison() {
        let right = parser.sum()?;
        left.unit.agree(&right.unit, comparison)?;
        let (a, b) = (left.number, right.number);
        holds &= match comparison {
            "<" => a < b,
            "<=" => a <= b,
            ">" => a > b,
            ">=" => a >= b,
            "==" => a == b,
            _ => a != b,
        };
        numbers = format!("{numbers} {} {}", sign(comparison), right.shown);
        left = right;
        compared = true;
    }
    if let Some(token) = parser.peek() {
        return Err(format!("the claim goes on where it should end, at `{token}`"));
    }
    if !compared {
        return Err("a claim compares: it needs one of < <= > >= == !=".to_owned());
    }
    Ok(Verdict { holds, numbers, origins: parser.origins })
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Number(String, f64),
    Reference(Reference),
    /// `min` or `max`.
    Function(&'static str),
    Sign(&'static str),
}

impl std::fmt::Display for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Token::Number(text, _) => f.write_str(text),
            Token::Reference(reference) => reference.fmt(f),
            Token::Function(text) | Token::Sign(text) => f.write_str(text),
        }
    }
}

/// Longer signs first.
const SIGNS: [&str; 13] = ["<=", ">=", "==", "!=", "<", ">", "+", "-", "*", "/", "(", ")", ","];

fn tokens(text: &str) -> Result<Vec<Token>, String> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = if first.is_ascii_digit() {
            let length = number_length(rest);
            let digits = &rest[..length];
            let number = parse_number(digits).ok_or_else(|| format!("`{digits}` is no number"))?;
            tokens.push(Token::Number(digits.to_owned(), number));
            length
        } else if first.is_ascii_alphabetic() {
            let length = word_length(rest)?;
            tokens.push(match &rest[..length] {
                "min" => Token::Function("min"),
                "max" => Token::Function("max"),
                word => Token::Reference(Reference::parse(word)?),
            });
            length
        } else if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(sign)) {
            tokens.push(Token::Sign(sign));
            sign.len()
        } else {
            return Err(format!(
                "`{first}` has no meaning in a claim: there are numbers, references, + - * /, comparisons, min, max"
            ));
        };
        rest = rest[length..].trim_start();
    }
    Ok(tokens)
}

/// Digits, a fraction, an exponent; or a power such as `2^20`.
fn number_length(text: &str) -> usize {
    let mut end = 0;
    let mut previous = ' ';
    for c in text.chars() {
        let signed_exponent = (c == '-' || c == '+') && (previous == 'e' || previous == 'E');
        if !(c.is_ascii_alphanumeric() || c == '.' || c == '_' || c == '^' || signed_exponent) {
            break;
        }
        previous = c;
        end += c.len_utf8();
    }
    end
}

/// A name, or a reference with brackets (which may hold anything) and `@gpu`.
fn word_length(text: &str) -> Result<usize, String> {
    let mut end = 0;
    while let Some(c) = text[end..].chars().next() {
        // A minus at the end of a name is a subtraction: `a.b.c- 1` reads as a human would.
        let minus = c == '-' && !text[end + 1..].starts_with(|next: char| next.is_ascii_alphanumeric());
        if c == '[' {
            let Some(length) = text[end..].find(']') else {
                return Err(format!("`{}` has an unclosed bracket", &text[..end + 1]));
            };
            end += length + 1;
        } else if !minus && (c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '@')) {
            end += c.len_utf8();
        } else {
            break;
        }
    }
    Ok(end)
}

/// A number on its way through a claim.
struct Quantity {
    number: f64,
    unit: Unit,
    /// With numbers in place of references.
    shown: String,
}

/// What a number counts.
#[derive(Clone, Debug, PartialEq)]
enum Unit {
    /// A literal, which adopts its neighbour's unit.
    Bare,
    /// Powers of symbols: `GB/s` is GB¹ s⁻¹. Empty for a count or a ratio.
    Of(BTreeMap<String, i32>),
}

impl Unit {
    /// `GB/s`, `instructions`, `1/s`; no scaling, so `ms` and `s` are different.
    fn parse(text: &str) -> Unit {
        let mut powers = BTreeMap::new();
        for (place, part) in text.split('/').enumerate() {
            for symbol in part.split(|c: char| c.is_whitespace() || c == '*' || c == '·') {
                if !symbol.is_empty() && symbol != "1" {
                    *powers.entry(symbol.to_owned()).or_insert(0) += if place == 0 { 1 } else { -1 };
                }
            }
        }
        powers.retain(|_, power| *power != 0);
        Unit::Of(powers)
    }

    fn agree(&self, other: &Unit, operation: &str) -> Result<Unit, String> {
        match (self, other) {
            (Unit::Bare, unit) | (unit, Unit::Bare) => Ok(unit.clone()),
            (a, b) if a == b => Ok(a.clone()),
            (a, b) => Err(format!("mixed units: {a} {operation} {b}")),
        }
    }

    fn combine(&self, other: &Unit, sign: i32) -> Unit {
        let (a, b) = match (self, other) {
            (Unit::Bare, Unit::Bare) => return Unit::Bare,
            (Unit::Bare, Unit::Of(b)) => (BTreeMap::new(), b.clone()),
            (Unit::Of(a), Unit::Bare) => (a.clone(), BTreeMap::new()),
            (Unit::Of(a), Unit::Of(b)) => (a.clone(), b.clone()),
        };
        let mut powers = a;
        for (symbol, power) in b {
            *powers.entry(symbol).or_insert(0) += sign * power;
        }
        powers.retain(|_, power| *power != 0);
        Unit::Of(powers)
    }
}

impl std::fmt::Display for Unit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Unit::Of(powers) = self else { return f.write_str("a bare number") };
        let side = |sign: i32| {
            let symbols = powers.iter().filter(|(_, power)| **power * sign > 0);
            let symbols: Vec<String> = symbols
                .map(|(symbol, power)| match power.abs() {
                    1 => symbol.clone(),
                    power => format!("{symbol}^{power}"),
                })
                .collect();
            symbols.join("·")
        };
        match (side(1), side(-1)) {
            (above, below) if above.is_empty() && below.is_empty() => f.write_str("a count or ratio"),
            (above, below) if below.is_empty() => f.write_str(&above),
            (above, below) if above.is_empty() => write!(f, "1/{below}"),
            (above, below) => write!(f, "{above}/{below}"),
        }
    }
}

struct Parser<'a> {
    tokens: &'a [Token],
    at: usize,
    resolve: &'a dyn Fn(&Reference) -> Result<Found, String>,
    show: &'a dyn Fn(f64, &str) -> String,
    origins: Vec<Origin>,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Option<&'a Token> {
        self.tokens.get(self.at)
    }

    fn sign(&mut self, signs: &[&str]) -> Option<&'static str> {
        match self.peek() {
            Some(Token::Sign(sign)) if signs.contains(sign) => {
                self.at += 1;
                Some(sign)
            }
            _ => None,
        }
    }

    fn expect(&mut self, sign: &str) -> Result<(), String> {
        match self.sign(&[sign]) {
            Some(_) => Ok(()),
            None => Err(format!("`{sign}` is missing {}", self.place())),
        }
    }

    fn place(&self) -> String {
        self.peek().map_or("at the end".to_owned(), |token| format!("before `{token}`"))
    }

    fn comparison(&mut self) -> Option<&'static str> {
        self.sign(&["<", "<=", ">", ">=", "==", "!="])
    }

    fn sum(&mut self) -> Result<Quantity, String> {
        let mut left = self.product()?;
        while let Some(operation) = self.sign(&["+", "-"]) {
            let right = self.product()?;
            let unit = left.unit.agree(&right.unit, operation)?;
            let number =
                if operation == "+" { left.number + right.number } else { left.number - right.number };
            left = finite(number, unit, format!("{} {} {}", left.shown, sign(operation), right.shown))?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<Quantity, String> {
        let mut left = self.factor()?;
        while let Some(operation) = self.sign(&["*", "/"]) {
            let right = self.factor()?;
            let (number, power) = if operation == "*" {
                (left.number * right.number, 1)
            } else {
                (left.number / right.number, -1)
            };
            let unit = left.unit.combine(&right.unit, power);
            left = finite(number, unit, format!("{} {} {}", left.shown, sign(operation), right.shown))?;
        }
        Ok(left)
    }

    fn factor(&mut self) -> Result<Quantity, String> {
        if self.sign(&["-"]).is_some() {
            let Quantity { number, unit, shown } = self.factor()?;
            return Ok(Quantity { number: -number, unit, shown: format!("−{shown}") });
        }
        if self.sign(&["("]).is_some() {
            let Quantity { number, unit, shown } = self.sum()?;
            self.expect(")")?;
            return Ok(Quantity { number, unit, shown: format!("({shown})") });
        }
        let place = self.place();
        let token = self.peek();
        self.at += 1;
        match token {
            Some(Token::Number(text, number)) => {
                Ok(Quantity { number: *number, unit: Unit::Bare, shown: text.clone() })
            }
            Some(Token::Reference(reference)) => self.look_up(reference),
            Some(Token::Function(name)) => self.extreme(name),
            Some(Token::Sign(_)) | None => Err(format!("a number or a reference is missing {place}")),
        }
    }

    fn extreme(&mut self, name: &str) -> Result<Quantity, String> {
        self.expect("(")?;
        let Quantity { mut number, mut unit, shown } = self.sum()?;
        let mut shown = format!("{name}({shown}");
        while self.sign(&[","]).is_some() {
            let next = self.sum()?;
            unit = unit.agree(&next.unit, name)?;
            number = if name == "min" { number.min(next.number) } else { number.max(next.number) };
            shown = format!("{shown}, {}", next.shown);
        }
        self.expect(")")?;
        Ok(Quantity { number, unit, shown: shown + ")" })
    }

    fn look_up(&mut self, reference: &Reference) -> Result<Quantity, String> {
        match (self.resolve)(reference)? {
            Found::Text { .. } => Err(format!("`{reference}` is a word, and a claim compares numbers")),
            Found::Number { point, unit, origin } => {
                let Some(number) = point.value else {
                    return Err(format!(
                        "`{reference}` has no value in the {} record: a time that needs a GPU",
                        origin.slug
                    ));
                };
                if !self.origins.contains(&origin) {
                    self.origins.push(origin);
                }
                let shown = (self.show)(number, &unit);
                finite(number, Unit::parse(&unit), shown)
            }
        }
    }
}

fn finite(number: f64, unit: Unit, shown: String) -> Result<Quantity, String> {
    if number.is_finite() {
        Ok(Quantity { number, unit, shown })
    } else {
        Err(format!("{shown} is {number}"))
    }
}

/// As it is printed.
fn sign(sign: &str) -> &str {
    match sign {
        "<=" => "≤",
        ">=" => "≥",
        "==" => "=",
        "!=" => "≠",
        "*" => "×",
        "-" => "−",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use record::Point;

    use super::*;

    fn resolve(reference: &Reference) -> Result<Found, String> {
        let origin = Origin { slug: "h200".into(), device: "NVIDIA H200".into(), date: "2026-12-03".into() };
        let name = reference.name.clone().unwrap_or_default();
        let (value, unit) = match (name.as_str(), reference.x.as_deref()) {
            ("gbps", Some("a > b")) => (Some(7.0), "GB/s"),
            ("gbps", _) => (Some(4000.0), "GB/s"),
            ("bytes", _) => (Some(8000.0), "GB"),
            ("time", _) => (Some(2.0), "s"),
            ("count", _) => (Some(32.0), ""),
            ("missing", _) => (None, "s"),
            ("nan", _) => (Some(f64::NAN), "s"),
            ("word", _) => return Ok(Found::Text { text: "x".into(), origin }),
            _ => return Err(format!("no {reference}")),
        };
        Ok(Found::Number { point: Point { value, ..Point::default() }, unit: unit.to_owned(), origin })
    }

    fn verdict(text: &str) -> Result<Verdict, String> {
        judge(text, resolve, |number, unit| format!("{number} {unit}").trim_end().to_owned())
    }

    #[track_caller]
    fn check(text: &str, expected: bool) {
        assert_eq!(verdict(text).map(|verdict| verdict.holds), Ok(expected), "{text}");
    }

    #[track_caller]
    fn fails(text: &str, why: &str) {
        let error = verdict(text).expect_err(text);
        assert!(error.contains(why), "{text}: {error}");
    }

    #[test]
    fn comparisons() {
        check("a.b.gbps > 3999", true);
        check("a.b.gbps > 4000", false);
        check("a.b.gbps >= 4000", true);
        check("a.b.count == 32", true);
        check("a.b.count != 32", false);
        check("31 < a.b.count <= 32", true);
        check("31 < a.b.count < 32", false);
        check("a.b.gbps[a > b] == 7", true);
    }

    #[test]
    fn arithmetic() {
        check("2 + 3 * 4 == 14", true);
        check("(2 + 3) * 4 == 20", true);
        check("2 - 3 - 4 == -5", true);
        check("8 / 4 / 2 == 1", true);
        check("min(3, 1, 2) + max(4, 5) == 6", true);
        check("2^20 == 1_048_576", true);
        check("1e-3 < 0.01", true);
        check("a.b.count - 1 == 31", true);
        check("a.b.count- 1 == 31", true);
    }

    #[test]
    fn units() {
        check("a.b.bytes / a.b.time == a.b.gbps", true);
        check("a.b.gbps * a.b.time >= a.b.bytes", true);
        check("a.b.gbps / a.b.gbps == 1", true);
        check("a.b.gbps + 1 > a.b.gbps", true);
        check("2 * a.b.gbps > a.b.gbps", true);
        fails("a.b.gbps > a.b.time", "mixed units: GB/s > s");
        fails("a.b.gbps + a.b.time > 1", "mixed units: GB/s + s");
        fails("a.b.gbps > a.b.count", "mixed units: GB/s > a count or ratio");
        fails("min(a.b.gbps, a.b.time) > 1", "mixed units: GB/s min s");
        fails("1 / a.b.time > a.b.time", "mixed units: 1/s > s");
    }

    #[test]
    fn what_is_missing_fails() {
        fails("a.b.missing > 0", "needs a GPU");
        fails("a.b.missing < 0", "needs a GPU");
        fails("a.b.nan != 0", "is NaN");
        fails("1 / 0 > 1", "is inf");
        fails("a.b.word == 1", "is a word");
        fails("a.b.nothing > 1", "no a.b.nothing");
    }

    #[test]
    fn syntax() {
        fails("", "is missing at the end");
        fails("a.b.gbps", "a claim compares");
        fails("a.b.gbps > ", "is missing at the end");
        fails("a.b.gbps > 1 2", "goes on");
        fails("(1 > 2", "`)` is missing before `>`");
        fails("1 = 1", "`=` has no meaning");
        fails("a.b.gbps[1 > 2", "unclosed bracket");
        fails("a.b > 2", "no a.b");
        fails("12x > 2", "is no number");
    }

    #[test]
    fn the_numbers_are_shown() {
        let verdict = verdict("a.b.gbps >= 0.9 * max(a.b.gbps[8], 3)").expect("a claim");
        assert_eq!(verdict.numbers, "4000 GB/s ≥ 0.9 × max(4000 GB/s, 3)");
        assert_eq!(verdict.origins.len(), 1);
    }
}
