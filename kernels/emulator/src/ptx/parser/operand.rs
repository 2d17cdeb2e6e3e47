//! Operands of instructions.

use super::Parser;
use crate::ptx::Error;
use crate::ptx::ast::{AddressBase, Operand};
use crate::ptx::lexer::Kind;

/// Special registers that are vectors: with its component, each is one name.
const SPECIAL_VECTORS: [&str; 8] =
    ["%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"];

impl Parser<'_> {
    /// An operand, or the two of `p|q`.
    pub(super) fn operand(&mut self) -> Result<Operand, Error> {
        let first = match self.peek().text {
            "{" => self.vector()?,
            "[" => self.address()?,
            _ => self.scalar()?,
        };
        if !self.eat("|") {
            return Ok(first);
        }
        Ok(Operand::Pair(Box::new(first), Box::new(self.scalar()?)))
    }

    /// `(a, b)` of a call, or `()`.
    pub(super) fn operand_list(&mut self) -> Result<Operand, Error> {
        self.expect("(")?;
        let operands = if self.at(")") { Vec::new() } else { self.comma_separated(Self::scalar)? };
        self.close(")")?;
        Ok(Operand::List(operands))
    }

    /// An operand without parts.
    fn scalar(&mut self) -> Result<Operand, Error> {
        let token = self.peek();
        match (token.kind, token.text) {
            (Kind::Word, "_") => {
                self.advance();
                Ok(Operand::Sink)
            }
            (Kind::Mark, "!") if super::is_name(self.peek_at(1)) => {
                self.advance();
                Ok(Operand::Not(self.name("a predicate register")?))
            }
            (Kind::Mark, "-") if super::is_name(self.peek_at(1)) => {
                self.advance();
                self.negated()
            }
            _ if self.at_constant() => Ok(self.constant()?.into()),
            (Kind::Word, _) => self.named(),
            _ => Err(self.expected("an operand")),
        }
    }

    fn negated(&mut self) -> Result<Operand, Error> {
        let name = self.name("a register")?;
        Ok(Operand::Negated(match self.eat_any_dotted() {
            Some(selector) => format!("{name}.{selector}"),
            None => name,
        }))
    }

    /// A name with what may follow it: `.x`, `[3]`, `+8`.
    fn named(&mut self) -> Result<Operand, Error> {
        let name = self.name("a name")?;
        if let Some(part) = self.eat_any_dotted() {
            let mut letters = part.chars();
            return Ok(match (letters.next(), letters.next()) {
                _ if SPECIAL_VECTORS.contains(&name.as_str()) => Operand::Name(format!("{name}.{part}")),
                (Some(component), None) => Operand::Element(name, component),
                _ => Operand::Selector(name, part.to_owned()),
            });
        }
        if self.eat("[") {
            let index = self.integer("a constant index")?;
            self.expect("]")?;
            return Ok(Operand::Index(name, index as i64));
        }
        Ok(match self.offset()? {
            Some(offset) => Operand::Offset(name, offset),
            None => Operand::Name(name),
        })
    }

    fn vector(&mut self) -> Result<Operand, Error> {
        self.expect("{")?;
        let elements = self.comma_separated(Self::scalar)?;
        self.close("}")?;
        Ok(Operand::Vector(elements))
    }

    /// `[base+offset]`, or an address of several parts, of which all but the first may be vectors.
    fn address(&mut self) -> Result<Operand, Error> {
        self.expect("[")?;
        let start = self.peek();
        let first = self.scalar()?;
        if matches!(first, Operand::Name(_)) && self.eat(",") {
            let mut parts = vec![first];
            parts.extend(
                self.comma_separated(
                    |parser| {
                        if parser.at("{") { parser.vector() } else { parser.scalar() }
                    },
                )?,
            );
            self.close("]")?;
            return Ok(Operand::Parts(parts));
        }
        self.expect("]")?;
        let (base, offset) = match first {
            Operand::Name(name) => (AddressBase::Name(name), 0),
            Operand::Offset(name, offset) => (AddressBase::Name(name), offset),
            Operand::Integer(address) => (AddressBase::Absolute(address as u64), 0),
            _ => {
                let message = "expected a register, a variable or an integer as the address".to_owned();
                return Err(self.error(start, message));
            }
        };
        Ok(Operand::Address { base, offset })
    }
}
