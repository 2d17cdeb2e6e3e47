//! Operands of instructions.

use super::super::Error;
use super::super::ast::{AddressBase, Operand};
use super::super::lexer::Kind;
use super::Parser;

/// Special registers that are vectors: with its component, each is one name.
const SPECIAL_VECTORS: [&str; 8] =
    ["%tid", "%ntid", "%ctaid", "%nctaid", "%clusterid", "%nclusterid", "%cluster_ctaid", "%cluster_nctaid"];

impl Parser<'_> {
    /// An operand, or the two of `p|q`.
    pub(super) fn operand(&mut self) -> Result<Operand, Error> {
        let first = self.single_operand()?;
        if !self.eat("|") {
            return Ok(first);
        }
        let second = self.single_operand()?;
        Ok(Operand::Pair(Box::new(first), Box::new(second)))
    }

    /// `(a, b)` of a call, or `()`.
    pub(super) fn operand_list(&mut self) -> Result<Operand, Error> {
        self.expect("(")?;
        let operands = if self.at(")") { Vec::new() } else { self.comma_separated(Self::operand)? };
        self.expect(")")?;
        Ok(Operand::List(operands))
    }

    fn single_operand(&mut self) -> Result<Operand, Error> {
        let token = self.peek();
        match (token.kind, token.text) {
            (Kind::Mark, "{") => self.nested(Self::vector),
            (Kind::Mark, "[") => self.nested(Self::address),
            (Kind::Mark, "!" | "-") if self.name_follows() => {
                self.advance();
                let name = self.name("a register")?;
                if token.text == "!" { Ok(Operand::Not(name)) } else { self.negated(name) }
            }
            (Kind::Word, "_") => {
                self.advance();
                Ok(Operand::Sink)
            }
            _ if self.at_constant() => {
                let constant = self.constant()?;
                Ok(constant.integer_or_float().map_or_else(Operand::Float, Operand::Integer))
            }
            (Kind::Word, _) => self.named(),
            _ => Err(self.expected("an operand")),
        }
    }

    /// Whether a register's name follows the sign here, rather than a constant.
    fn name_follows(&self) -> bool {
        let next = self.peek_at(1);
        next.kind == Kind::Word && next.text != "WARP_SZ"
    }

    fn negated(&mut self, name: String) -> Result<Operand, Error> {
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
        if self.at("+") || self.at("-") {
            return Ok(Operand::Offset(name, self.offset()?));
        }
        Ok(Operand::Name(name))
    }

    fn vector(&mut self) -> Result<Operand, Error> {
        self.expect("{")?;
        let elements = self.comma_separated(Self::operand)?;
        self.expect("}")?;
        Ok(Operand::Vector(elements))
    }

    fn address(&mut self) -> Result<Operand, Error> {
        self.expect("[")?;
        let start = self.peek();
        let mut parts = self.comma_separated(Self::operand)?;
        self.expect("]")?;
        if parts.len() > 1 {
            return Ok(Operand::Parts(parts));
        }
        let (base, offset) = match parts.pop() {
            Some(Operand::Name(name)) => (AddressBase::Name(name), 0),
            Some(Operand::Offset(name, offset)) => (AddressBase::Name(name), offset),
            Some(Operand::Integer(address)) => (AddressBase::Absolute(address as u64), 0),
            _ => {
                let message = "expected a register, a variable or a number as the address".to_owned();
                return Err(self.error(start, message));
            }
        };
        Ok(Operand::Address { base, offset })
    }
}
