//! Constant expressions: C's operators over 64-bit integers and doubles, evaluated as they are read.

use super::Parser;
use crate::ptx::Error;
use crate::ptx::ast::{Float, InitValue, Operand};
use crate::ptx::lexer::{Kind, Token};

/// The value of a constant expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Constant {
    /// `.s64`, the type of integers unless they need more or say `U`.
    Signed(i64),
    /// `.u64`
    Unsigned(u64),
    /// `0f…`, which takes part in no arithmetic.
    Single(u32),
    /// `.f64`
    Double(f64),
}

impl Constant {
    /// The value as an integer's 64 bits.
    fn bits(self) -> Option<u64> {
        match self {
            Constant::Signed(value) => Some(value as u64),
            Constant::Unsigned(value) => Some(value),
            Constant::Single(_) | Constant::Double(_) => None,
        }
    }
}

impl From<Constant> for Operand {
    fn from(constant: Constant) -> Self {
        match constant {
            Constant::Signed(value) => Operand::Integer(value.into()),
            Constant::Unsigned(value) => Operand::Integer(value.into()),
            Constant::Single(bits) => Operand::Float(Float::F32(bits)),
            Constant::Double(value) => Operand::Float(Float::F64(value.to_bits())),
        }
    }
}

impl From<Constant> for InitValue {
    fn from(constant: Constant) -> Self {
        match constant {
            Constant::Signed(value) => InitValue::Integer(value.into()),
            Constant::Unsigned(value) => InitValue::Integer(value.into()),
            Constant::Single(bits) => InitValue::Float(Float::F32(bits)),
            Constant::Double(value) => InitValue::Float(Float::F64(value.to_bits())),
        }
    }
}

/// The value of `WARP_SZ`, the one named constant of PTX.
const WARP_SZ: u64 = 32;

/// How tightly `||` holds its operands, the loosest of all; see [`binding`].
const LOOSEST: u32 = 1;

impl<'a> Parser<'a> {
    /// Whether a constant expression starts here. A parenthesis may also start a list.
    pub(super) fn at_constant(&self) -> bool {
        let token = self.peek();
        match token.kind {
            Kind::Integer | Kind::Float => true,
            Kind::Word => token.text == "WARP_SZ",
            Kind::Mark => matches!(token.text, "-" | "+" | "!" | "~" | "("),
            _ => false,
        }
    }

    /// A constant expression.
    pub(super) fn constant(&mut self) -> Result<Constant, Error> {
        let condition = self.binary(LOOSEST)?;
        let question = self.peek();
        if !self.eat("?") {
            return Ok(condition);
        }
        let Some(condition) = condition.bits() else {
            return Err(self.error(question, "expected an integer in front of `?`, found a float".to_owned()));
        };
        let then = self.nested(Self::constant)?;
        let colon = self.peek();
        self.expect(":")?;
        let otherwise = self.nested(Self::constant)?;
        self.converted(colon, then, otherwise)?;
        // The manual has the chosen value converted to the type of both; ptxas leaves it as it is.
        Ok(if condition != 0 { then } else { otherwise })
    }

    /// A constant expression with an integer's value, as its 64 bits.
    pub(super) fn integer(&mut self, what: &str) -> Result<u64, Error> {
        let token = self.peek();
        if !self.at_constant() {
            return Err(self.expected(what));
        }
        let constant = self.constant()?;
        constant.bits().ok_or_else(|| self.error(token, format!("expected {what}, found a float")))
    }

    /// A single number of at most 32 bits, as directives take them.
    pub(super) fn number(&mut self, what: &str) -> Result<u32, Error> {
        let token = self.peek();
        let value = self.literal(what)?;
        u32::try_from(value)
            .map_err(|_| self.error(token, format!("expected {what} below 2^32, found `{}`", token.text)))
    }

    /// A single number, or `WARP_SZ`.
    pub(super) fn literal(&mut self, what: &str) -> Result<u64, Error> {
        let token = self.peek();
        let value = match token.kind {
            Kind::Integer => integer_value(token.text),
            Kind::Word if token.text == "WARP_SZ" => Some(WARP_SZ),
            _ => return Err(self.expected(what)),
        };
        self.advance();
        value.ok_or_else(|| self.wrong_number(token, "an integer of at most 64 bits"))
    }

    /// `+4` behind a name, or nothing. A negative offset has its sign behind the plus: `+-8`.
    pub(super) fn offset(&mut self) -> Result<Option<i64>, Error> {
        if !self.eat("+") {
            return Ok(None);
        }
        Ok(Some(self.integer("a constant offset")? as i64))
    }

    /// Operators that hold their operands at least as tightly as `loosest`, by precedence climbing.
    fn binary(&mut self, loosest: u32) -> Result<Constant, Error> {
        let mut left = self.unary()?;
        loop {
            let operator = self.peek();
            let Some(strength) = binding(operator).filter(|strength| *strength >= loosest) else {
                return Ok(left);
            };
            self.advance();
            let right = self.binary(strength + 1)?;
            left = self.evaluate(operator, left, right)?;
        }
    }

    fn unary(&mut self) -> Result<Constant, Error> {
        let operator = self.peek();
        if operator.kind != Kind::Mark || !matches!(operator.text, "-" | "+" | "!" | "~") {
            return self.primary();
        }
        self.advance();
        let value = self.nested(Self::unary)?;
        Ok(match (operator.text, value) {
            ("+", value) => value,
            ("-", Constant::Signed(value)) => Constant::Signed(value.wrapping_neg()),
            ("-", Constant::Unsigned(value)) => Constant::Unsigned(value.wrapping_neg()),
            ("-", Constant::Double(value)) => Constant::Double(-value),
            (text, value) => match (text, value.bits()) {
                ("!", Some(bits)) => Constant::Signed((bits == 0) as i64),
                ("~", Some(bits)) => Constant::Unsigned(!bits),
                _ => {
                    return Err(
                        self.error(operator, format!("expected an integer behind `{text}`, found a float"))
                    );
                }
            },
        })
    }

    fn primary(&mut self) -> Result<Constant, Error> {
        let token = self.peek();
        match token.kind {
            Kind::Integer | Kind::Word => {
                let value = self.literal("a constant")?;
                // An integer is signed unless it needs the 64th bit or says otherwise.
                let signed = if token.text.ends_with('U') { None } else { i64::try_from(value).ok() };
                Ok(signed.map_or(Constant::Unsigned(value), Constant::Signed))
            }
            Kind::Float => {
                self.advance();
                float_literal(token.text)
                    .ok_or_else(|| self.wrong_number(token, "a float such as `1.5` or `0f3FC00000`"))
            }
            Kind::Mark if token.text == "(" => {
                self.advance();
                if self.peek().kind == Kind::Dotted { self.cast() } else { self.parenthesized() }
            }
            _ => Err(self.expected("a constant")),
        }
    }

    /// What follows the opening parenthesis of `(1 + 2)`.
    fn parenthesized(&mut self) -> Result<Constant, Error> {
        let value = self.nested(Self::constant)?;
        self.expect(")")?;
        Ok(value)
    }

    /// What follows the opening parenthesis of `(.s64) 1`.
    fn cast(&mut self) -> Result<Constant, Error> {
        let signed = self.at_dotted(".s64");
        if !signed && !self.at_dotted(".u64") {
            return Err(self.expected("`.s64` or `.u64`"));
        }
        self.advance();
        self.expect(")")?;
        let operand = self.peek();
        match self.nested(Self::unary)?.bits() {
            Some(bits) if signed => Ok(Constant::Signed(bits as i64)),
            Some(bits) => Ok(Constant::Unsigned(bits)),
            None => Err(self.error(operand, "expected an integer behind the cast, found a float".to_owned())),
        }
    }

    fn evaluate(&self, operator: Token<'a>, left: Constant, right: Constant) -> Result<Constant, Error> {
        let text = operator.text;
        // These take each operand as it comes.
        if let Some((l, r)) = left.bits().zip(right.bits()) {
            match text {
                "&&" => return Ok(Constant::Signed((l != 0 && r != 0) as i64)),
                "||" => return Ok(Constant::Signed((l != 0 || r != 0) as i64)),
                "<<" | ">>" => return Ok(shift(text, left, r)),
                "/" | "%" if r == 0 => {
                    return Err(self.error(operator, "division by zero in a constant expression".to_owned()));
                }
                "%" => return Ok(Constant::Signed((l % r) as i64)),
                _ => {}
            }
        }
        match self.converted(operator, left, right)? {
            (Constant::Signed(l), Constant::Signed(r)) => Ok(signed(text, l, r)),
            (Constant::Unsigned(l), Constant::Unsigned(r)) => Ok(unsigned(text, l, r)),
            (Constant::Double(l), Constant::Double(r)) => double(text, l, r).ok_or_else(|| {
                self.error(operator, format!("expected integers on both sides of `{text}`, found floats"))
            }),
            _ => Err(self.error(operator, format!("`{text}` takes no `0f` constants"))),
        }
    }

    /// Both values unsigned if one of them is. Integers and floats do not mix.
    fn converted(
        &self,
        at: Token<'a>,
        left: Constant,
        right: Constant,
    ) -> Result<(Constant, Constant), Error> {
        match (left, right) {
            (Constant::Signed(l), Constant::Unsigned(_)) => Ok((Constant::Unsigned(l as u64), right)),
            (Constant::Unsigned(_), Constant::Signed(r)) => Ok((left, Constant::Unsigned(r as u64))),
            _ if left.bits().is_some() == right.bits().is_some() => Ok((left, right)),
            _ => {
                let message = format!("`{}` takes two integers or two floats, found one of each", at.text);
                Err(self.error(at, message))
            }
        }
    }

    fn wrong_number(&self, token: Token<'a>, what: &str) -> Error {
        self.error(token, format!("expected {what}, found `{}`", super::shortened(token.text)))
    }
}

/// How tightly a binary operator holds its operands, as in C.
fn binding(token: Token<'_>) -> Option<u32> {
    if token.kind != Kind::Mark {
        return None;
    }
    Some(match token.text {
        "||" => LOOSEST,
        "&&" => 2,
        "|" => 3,
        "^" => 4,
        "&" => 5,
        "==" | "!=" => 6,
        "<" | "<=" | ">" | ">=" => 7,
        "<<" | ">>" => 8,
        "+" | "-" => 9,
        "*" | "/" | "%" => 10,
        _ => return None,
    })
}

/// A shift keeps the type of what is shifted. Only the low six bits of the distance count: the manual leaves distances of
/// 64 and more open, and this is what ptxas does.
fn shift(operator: &str, left: Constant, distance: u64) -> Constant {
    let distance = distance as u32;
    match (operator, left) {
        ("<<", Constant::Signed(value)) => Constant::Signed(value.wrapping_shl(distance)),
        (_, Constant::Signed(value)) => Constant::Signed(value.wrapping_shr(distance)),
        ("<<", Constant::Unsigned(value)) => Constant::Unsigned(value.wrapping_shl(distance)),
        (_, Constant::Unsigned(value)) => Constant::Unsigned(value.wrapping_shr(distance)),
        (_, float) => float,
    }
}

fn signed(operator: &str, left: i64, right: i64) -> Constant {
    Constant::Signed(match operator {
        "*" => left.wrapping_mul(right),
        "/" => left.wrapping_div(right),
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "&" => left & right,
        "^" => left ^ right,
        "|" => left | right,
        _ => return compared(operator, &left, &right),
    })
}

fn unsigned(operator: &str, left: u64, right: u64) -> Constant {
    Constant::Unsigned(match operator {
        "*" => left.wrapping_mul(right),
        "/" => left / right,
        "+" => left.wrapping_add(right),
        "-" => left.wrapping_sub(right),
        "&" => left & right,
        "^" => left ^ right,
        "|" => left | right,
        _ => return compared(operator, &left, &right),
    })
}

/// Doubles have no bit operations.
fn double(operator: &str, left: f64, right: f64) -> Option<Constant> {
    Some(Constant::Double(match operator {
        "*" => left * right,
        "/" => left / right,
        "+" => left + right,
        "-" => left - right,
        "<" | "<=" | ">" | ">=" | "==" | "!=" => return Some(compared(operator, &left, &right)),
        _ => return None,
    }))
}

fn compared<T: PartialOrd>(operator: &str, left: &T, right: &T) -> Constant {
    Constant::Signed(match operator {
        "<" => left < right,
        "<=" => left <= right,
        ">" => left > right,
        ">=" => left >= right,
        "==" => left == right,
        _ => left != right,
    } as i64)
}

fn integer_value(text: &str) -> Option<u64> {
    let digits = text.strip_suffix('U').unwrap_or(text);
    let (digits, radix) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (&digits[2..], 16),
        [b'0', b'b' | b'B', ..] => (&digits[2..], 2),
        [b'0', _, ..] => (&digits[1..], 8),
        _ => (digits, 10),
    };
    u64::from_str_radix(digits, radix).ok()
}

fn float_literal(text: &str) -> Option<Constant> {
    match text.as_bytes() {
        [b'0', b'f' | b'F', digits @ ..] if digits.len() == 8 => {
            u32::from_str_radix(&text[2..], 16).ok().map(Constant::Single)
        }
        [b'0', b'd' | b'D', digits @ ..] if digits.len() == 16 => {
            u64::from_str_radix(&text[2..], 16).ok().map(|bits| Constant::Double(f64::from_bits(bits)))
        }
        // Rust reads more than numbers as floats: `inf`, `nan`.
        _ if text.bytes().all(|byte| byte.is_ascii_digit() || b".eE+-".contains(&byte)) => {
            text.parse().ok().map(Constant::Double)
        }
        _ => None,
    }
}
