//! Declarations of variables, registers and parameters.

use super::super::Error;
use super::super::ast::{Init, InitValue, Linkage, Ptr, Space, TypeName, Variable};
use super::super::lexer::Kind;
use super::Parser;

/// The state space of a word with its dot, such as `.global`. PTX 2's constant banks are all constant memory.
pub(super) fn space(word: &str) -> Option<Space> {
    Some(match word {
        ".reg" => Space::Reg,
        ".sreg" => Space::Sreg,
        ".const" => Space::Const,
        ".global" => Space::Global,
        ".local" => Space::Local,
        ".param" => Space::Param,
        ".shared" => Space::Shared,
        ".tex" => Space::Tex,
        _ if word.starts_with(".const[") => Space::Const,
        _ => return None,
    })
}

/// Everything between the state space and the name.
#[derive(Default)]
struct Qualifiers {
    align: Option<u32>,
    vector: Option<u32>,
    ty: TypeName,
    ptr: Option<Ptr>,
    attributes: Vec<String>,
}

impl Parser<'_> {
    /// `.space qualifiers name, name, …;`
    pub(super) fn variables(&mut self, linkage: Linkage) -> Result<Vec<Variable>, Error> {
        let space = self.space()?;
        let qualifiers = self.qualifiers()?;
        let variables = self.comma_separated(|parser| {
            let mut variable = parser.declarator(space, &qualifiers)?;
            variable.linkage = linkage;
            if parser.eat("=") {
                variable.init = Some(parser.init()?);
            }
            Ok(variable)
        })?;
        if !self.eat(";") {
            return Err(self.expected("`,`, `=` or `;`"));
        }
        Ok(variables)
    }

    /// `(.param .u32 a, …)`, or nothing.
    pub(super) fn optional_params(&mut self) -> Result<Vec<Variable>, Error> {
        if !self.eat("(") || self.eat(")") {
            return Ok(Vec::new());
        }
        let params = self.comma_separated(|parser| {
            let space = parser.space()?;
            let qualifiers = parser.qualifiers()?;
            parser.declarator(space, &qualifiers)
        })?;
        if !self.eat(")") {
            return Err(self.expected("`,` or `)`"));
        }
        Ok(params)
    }

    /// `.attribute(.managed, .unified(0, 1))`, without the dots.
    pub(super) fn attributes(&mut self) -> Result<Vec<String>, Error> {
        self.expect("(")?;
        let attributes = self.comma_separated(|parser| {
            let Some(name) = parser.eat_any_dotted() else {
                return Err(parser.expected("an attribute such as `.managed`"));
            };
            if !parser.eat("(") {
                return Ok(name.to_owned());
            }
            let values = parser.comma_separated(|parser| Ok(parser.integer("a number")?.to_string()))?;
            parser.expect(")")?;
            Ok(format!("{name}({})", values.join(", ")))
        })?;
        self.expect(")")?;
        Ok(attributes)
    }

    /// `<10>`, if there.
    pub(super) fn range(&mut self) -> Result<Option<u32>, Error> {
        if !self.eat("<") {
            return Ok(None);
        }
        let count = self.number("how many names there are")?;
        self.expect(">")?;
        Ok(Some(count))
    }

    fn space(&mut self) -> Result<Space, Error> {
        let Some(space) = space(self.peek().text) else {
            return Err(self.expected("a state space such as `.param` or `.reg`"));
        };
        self.advance();
        Ok(space)
    }

    fn qualifiers(&mut self) -> Result<Qualifiers, Error> {
        let mut qualifiers = Qualifiers::default();
        loop {
            let token = self.peek();
            let Some(word) = self.eat_any_dotted() else { break };
            match word {
                "align" => qualifiers.align = Some(self.number("an alignment in bytes")?),
                "v2" | "v4" | "v8" => qualifiers.vector = word[1..].parse().ok(),
                "ptr" => qualifiers.ptr = Some(self.ptr()?),
                "attribute" => qualifiers.attributes = self.attributes()?,
                _ if qualifiers.ty.is_empty() => qualifiers.ty = word.to_owned(),
                _ => {
                    let message = format!("expected one type, found `.{}` and `.{word}`", qualifiers.ty);
                    return Err(self.error(token, message));
                }
            }
        }
        if qualifiers.ty.is_empty() { Err(self.expected("a type such as `.u32`")) } else { Ok(qualifiers) }
    }

    /// What follows `.ptr`.
    fn ptr(&mut self) -> Result<Ptr, Error> {
        let token = self.peek();
        let space = if token.kind == Kind::Dotted { space(token.text) } else { None };
        self.position += space.is_some() as usize;
        let align = if self.eat_dotted(".align") { self.number("an alignment in bytes")? } else { 4 };
        Ok(Ptr { space, align })
    }

    fn declarator(&mut self, space: Space, qualifiers: &Qualifiers) -> Result<Variable, Error> {
        let line = self.peek().line;
        let name = self.name("a name")?;
        let range = self.range()?;
        let mut dimensions = Vec::new();
        while self.eat("[") {
            let size = if self.at("]") { None } else { Some(self.integer("a constant size")?) };
            self.expect("]")?;
            dimensions.push(size);
        }
        Ok(Variable {
            linkage: Linkage::Internal,
            space,
            align: qualifiers.align,
            vector: qualifiers.vector,
            ty: qualifiers.ty.clone(),
            ptr: qualifiers.ptr,
            name,
            range,
            dimensions,
            init: None,
            attributes: qualifiers.attributes.clone(),
            line,
        })
    }

    fn init(&mut self) -> Result<Init, Error> {
        if !self.eat("{") {
            return Ok(Init::Value(self.init_value()?));
        }
        if self.eat("}") {
            return Ok(Init::List(Vec::new()));
        }
        let values = self.comma_separated(|parser| parser.nested(Self::init))?;
        if !self.eat("}") {
            return Err(self.expected("`,` or `}`"));
        }
        Ok(Init::List(values))
    }

    fn init_value(&mut self) -> Result<InitValue, Error> {
        let next = self.peek_at(1);
        let name_comes = self.peek().kind == Kind::Word && self.peek().text != "WARP_SZ";
        if name_comes && next.kind == Kind::Mark && next.text == "=" {
            return self.field();
        }
        if name_comes {
            return self.init_address(None);
        }
        if self.peek().kind == Kind::Integer && next.kind == Kind::Mark && next.text == "(" {
            let mask = self.literal("a mask")?;
            self.expect("(")?;
            let address = self.init_address(Some(mask))?;
            self.expect(")")?;
            return Ok(address);
        }
        if !self.at_constant() {
            return Err(self.expected("a constant or a name"));
        }
        let constant = self.constant()?;
        Ok(constant.integer_or_float().map_or_else(InitValue::Float, InitValue::Integer))
    }

    /// `symbol+4`, `generic(symbol)+4`
    fn init_address(&mut self, mask: Option<u64>) -> Result<InitValue, Error> {
        let next = self.peek_at(1);
        let generic = self.peek().text == "generic" && next.kind == Kind::Mark && next.text == "(";
        let mut inner = 0;
        if generic {
            self.position += 2;
        }
        let symbol = self.name("a variable or function")?;
        if generic {
            inner = self.offset()?;
            self.expect(")")?;
        }
        Ok(InitValue::Address { symbol, offset: inner.wrapping_add(self.offset()?), generic, mask })
    }

    /// `filter_mode = nearest`
    fn field(&mut self) -> Result<InitValue, Error> {
        let name = self.name("a field")?;
        self.expect("=")?;
        let value =
            if self.at_constant() { self.integer("a number")?.to_string() } else { self.name("a value")? };
        Ok(InitValue::Field { name, value })
    }
}
