//! Declarations of variables, registers and parameters.

use super::Parser;
use crate::ptx::Error;
use crate::ptx::ast::{Init, InitValue, Linkage, Ptr, Space, TypeName, Variable};
use crate::ptx::lexer::Kind;

/// Whether a declaration starts with `word`, which has its dot.
pub(super) fn starts_declaration(word: &str) -> bool {
    space(word).is_some() || matches!(word, ".align" | ".attribute")
}

/// The state space of a word with its dot, such as `.global`. PTX 2's constant banks are all constant memory.
fn space(word: &str) -> Option<Space> {
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

/// The types that registers and variables can have. Instructions have more.
const FUNDAMENTAL_TYPES: [&str; 18] = [
    "b8", "b16", "b32", "b64", "b128", "u8", "u16", "u32", "u64", "s8", "s16", "s32", "s64", "f16", "f16x2",
    "f32", "f64", "pred",
];

/// The types of texture, sampler and surface handles.
const OPAQUE_TYPES: [&str; 3] = ["texref", "samplerref", "surfref"];

fn is_type(word: &str) -> bool {
    FUNDAMENTAL_TYPES.contains(&word) || OPAQUE_TYPES.contains(&word)
}

/// Everything in front of the name: what the variables of one declaration have in common.
struct Qualifiers {
    space: Space,
    align: Option<u32>,
    vector: Option<u32>,
    ty: TypeName,
    ptr: Option<Ptr>,
    attributes: Vec<String>,
}

impl Parser<'_> {
    /// `.space .type name, name = value, …;`
    pub(super) fn variables(&mut self, linkage: Linkage) -> Result<Vec<Variable>, Error> {
        let qualifiers = self.qualifiers()?;
        let variables = self.comma_separated(|parser| {
            let mut variable = parser.declarator(&qualifiers, |parser| parser.name("a name"))?;
            variable.linkage = linkage;
            if matches!(qualifiers.space, Space::Global | Space::Const) && parser.eat("=") {
                variable.init = Some(parser.init()?);
            }
            Ok(variable)
        })?;
        self.close(";")?;
        Ok(variables)
    }

    /// `(.param .u32 a, …)`, or nothing.
    pub(super) fn optional_params(&mut self) -> Result<Vec<Variable>, Error> {
        if !self.eat("(") || self.eat(")") {
            return Ok(Vec::new());
        }
        let params = self.comma_separated(|parser| {
            let qualifiers = parser.qualifiers()?;
            parser.declarator(&qualifiers, Self::parameter_name)
        })?;
        self.close(")")?;
        Ok(params)
    }

    /// What follows `.attribute`: `(.managed, .unified(0, 1))`. The dots are left out.
    pub(super) fn attributes(&mut self) -> Result<Vec<String>, Error> {
        self.expect("(")?;
        let mut attributes = vec![self.attribute()?];
        if self.eat(",") {
            attributes.push(self.attribute()?);
        }
        self.expect(")")?;
        Ok(attributes)
    }

    fn attribute(&mut self) -> Result<String, Error> {
        if self.eat_dotted(".managed") {
            return Ok("managed".to_owned());
        }
        if !self.eat_dotted(".unified") {
            return Err(self.expected("`.managed` or `.unified`"));
        }
        self.expect("(")?;
        let first = self.literal("half of an identifier")?;
        self.expect(",")?;
        let second = self.literal("half of an identifier")?;
        self.expect(")")?;
        Ok(format!("unified({first}, {second})"))
    }

    /// `<10>`, or nothing.
    pub(super) fn range(&mut self) -> Result<Option<u32>, Error> {
        if !self.eat("<") {
            return Ok(None);
        }
        let count = self.number("how many names there are")?;
        self.expect(">")?;
        Ok(Some(count))
    }

    fn qualifiers(&mut self) -> Result<Qualifiers, Error> {
        let (mut state_space, mut align, mut vector, mut ty, mut ptr) = (None, None, None, None, None);
        let mut attributes = Vec::new();
        loop {
            let token = self.peek();
            let Some(word) = self.eat_any_dotted() else { break };
            match word {
                "align" => align = Some(self.number("an alignment in bytes")?),
                "attribute" => attributes = self.attributes()?,
                "v2" | "v4" | "v8" if state_space.is_some() && vector.is_none() && ty.is_none() => {
                    vector = word[1..].parse().ok()
                }
                "ptr" if ty.is_some() && ptr.is_none() => ptr = Some(self.ptr()?),
                _ if state_space.is_none() && space(token.text).is_some() => state_space = space(token.text),
                _ if state_space.is_some() && ty.is_none() && is_type(word) => ty = Some(word),
                _ => {
                    self.position -= 1;
                    break;
                }
            }
        }
        let Some(space) = state_space else {
            return Err(self.expected("a state space such as `.param` or `.reg`"));
        };
        let Some(ty) = ty.map(str::to_owned) else {
            return Err(self.expected("a type such as `.u32`"));
        };
        Ok(Qualifiers { space, align, vector, ty, ptr, attributes })
    }

    /// What follows `.ptr`: `[.space] [.align n]`.
    fn ptr(&mut self) -> Result<Ptr, Error> {
        let space = space(self.peek().text);
        if space.is_some() {
            self.advance();
        }
        let align = if self.eat_dotted(".align") { self.number("an alignment in bytes")? } else { 4 };
        Ok(Ptr { space, align })
    }

    /// `name`, `name<10>`, `name[4][]`
    fn declarator(
        &mut self,
        qualifiers: &Qualifiers,
        name: impl FnOnce(&mut Self) -> Result<String, Error>,
    ) -> Result<Variable, Error> {
        let line = self.peek().line;
        let name = name(self)?;
        let range = self.range()?;
        let mut dimensions = Vec::new();
        while self.eat("[") {
            dimensions.push(if self.at("]") { None } else { Some(self.literal("an array's size")?) });
            self.expect("]")?;
        }
        Ok(Variable {
            linkage: Linkage::Internal,
            space: qualifiers.space,
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

    /// Parameters need no name of their own: `_`.
    fn parameter_name(&mut self) -> Result<String, Error> {
        if self.peek().text == "_" {
            return Ok(self.advance().text.to_owned());
        }
        self.name("a parameter's name")
    }

    fn init(&mut self) -> Result<Init, Error> {
        if !self.eat("{") {
            return Ok(Init::Value(self.init_value()?));
        }
        if self.eat("}") {
            return Ok(Init::List(Vec::new()));
        }
        let values = self.comma_separated(|parser| parser.nested(Self::init))?;
        self.close("}")?;
        Ok(Init::List(values))
    }

    fn init_value(&mut self) -> Result<InitValue, Error> {
        let token = self.peek();
        if super::is_name(token) {
            return if self.mark_follows("=") { self.field() } else { self.init_address(None) };
        }
        if token.kind == Kind::Integer && self.mark_follows("(") {
            let mask = self.literal("a mask")?;
            self.expect("(")?;
            let address = self.init_address(Some(mask))?;
            self.expect(")")?;
            return Ok(address);
        }
        if !self.at_constant() {
            return Err(self.expected("a constant or a name"));
        }
        Ok(self.constant()?.into())
    }

    fn mark_follows(&self, mark: &str) -> bool {
        let next = self.peek_at(1);
        next.kind == Kind::Mark && next.text == mark
    }

    /// `symbol+4`, `generic(symbol)+4`
    fn init_address(&mut self, mask: Option<u64>) -> Result<InitValue, Error> {
        let generic = self.peek().text == "generic" && self.mark_follows("(");
        if generic {
            self.advance();
            self.expect("(")?;
        }
        let symbol = self.name("a variable or function")?;
        if generic {
            self.expect(")")?;
        }
        Ok(InitValue::Address { symbol, offset: self.offset()?.unwrap_or_default(), generic, mask })
    }

    /// `filter_mode = nearest`
    fn field(&mut self) -> Result<InitValue, Error> {
        let name = self.name("a field")?;
        self.expect("=")?;
        let value = match self.peek().kind {
            Kind::Integer => self.literal("an integer")?.to_string(),
            _ => self.name("a value such as `nearest`")?,
        };
        Ok(InitValue::Field { name, value })
    }
}
