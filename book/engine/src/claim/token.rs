//! The words of a claim.

use crate::reference::{Reference, parse_number};

/// A word of a claim.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Token {
    /// As it was written, and its value.
    Number(String, f64),
    Reference(Reference),
    /// `min` or `max`.
    Function(&'static str),
    /// An operation, a comparison, a bracket or a comma.
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

/// The words of a claim.
pub(super) fn tokens(text: &str) -> Result<Vec<Token>, String> {
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
