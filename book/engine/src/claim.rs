//! Statements that the records must bear out: `a.b.c[x] > 2 * a.b.d`.
//!
//! Numbers, references, `+ - * /`, comparisons (also chained), `min`, `max`, parentheses. Units are carried along: `+`, `-`,
//! `min`, `max` and comparisons need equal ones, a bare number adopts its neighbour's, products and quotients combine them.
//! A missing value, a NaN, a word or mixed units fail; they are never false by accident or true by default.
//! A `-` after a reference needs a space before it, because names may hold one.

mod token;
mod unit;

use crate::reference::{Found, Origin, Reference};
use token::{Token, tokens};
use unit::Unit;

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

/// A number on its way through a claim.
struct Quantity {
    number: f64,
    unit: Unit,
    /// With numbers in place of references.
    shown: String,
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
