//! Statements of a function's body.

use super::directive::FUNCTION_DIRECTIVES;
use super::{Parser, variable};
use crate::ptx::Error;
use crate::ptx::ast::{Instruction, Linkage, Loc, Predicate, Statement};
use crate::ptx::lexer::{Kind, Token};

/// How many bytes the names in ranges of all `.branchtargets` and `.calltargets` may have. A few bytes such as `a<99999999>`
/// must not fill the memory.
const MAX_TARGET_BYTES: usize = 1 << 20;

impl<'a> Parser<'a> {
    /// `{ … }`
    pub(super) fn body(&mut self) -> Result<Vec<Statement>, Error> {
        let opening = self.peek();
        self.expect("{")?;
        let mut statements = Vec::new();
        while !self.eat("}") {
            self.statement(opening, &mut statements)?;
        }
        Ok(statements)
    }

    fn statement(&mut self, opening: Token<'a>, statements: &mut Vec<Statement>) -> Result<(), Error> {
        let token = self.peek();
        match (token.kind, token.text) {
            (Kind::Mark, "{") => statements.push(Statement::Block(self.nested(Self::body)?)),
            (Kind::Mark, "@") => statements.push(Statement::Instruction(self.instruction()?)),
            (Kind::Word, _) if self.peek_at(1).text == ":" => statements.push(self.labelled()?),
            (Kind::Word, _) => statements.push(Statement::Instruction(self.instruction()?)),
            (Kind::Dotted, ".loc") => statements.push(Statement::Loc(self.loc()?)),
            (Kind::Dotted, ".pragma") => statements.extend(self.pragma()?.into_iter().map(Statement::Pragma)),
            (Kind::Dotted, text) if variable::starts_declaration(text) => {
                statements.extend(self.variables(Linkage::Internal)?.into_iter().map(Statement::Variable));
            }
            (Kind::End, _) => {
                let what = format!("`}}` for the `{{` of line {}", opening.line);
                return Err(self.expected(&what));
            }
            _ => return Err(self.expected("an instruction, a declaration or `}`")),
        }
        Ok(())
    }

    /// `name:`, and the table or prototype that it may name.
    fn labelled(&mut self) -> Result<Statement, Error> {
        let name = self.name("a label")?;
        self.expect(":")?;
        if self.eat_dotted(".branchtargets") {
            let targets = self.targets("a label")?;
            return Ok(Statement::BranchTargets { name, targets });
        }
        if self.eat_dotted(".calltargets") {
            let targets = self.targets("a function")?;
            return Ok(Statement::CallTargets { name, targets });
        }
        if self.eat_dotted(".callprototype") {
            let returns = self.optional_params()?;
            self.keyword("_")?;
            let params = self.optional_params()?;
            let header = self.header(FUNCTION_DIRECTIVES)?;
            self.expect(";")?;
            return Ok(Statement::CallPrototype { name, returns, params, directives: header.directives });
        }
        Ok(Statement::Label(name))
    }

    /// `a, b, c;` The names of `n<3>` are written out: `n0, n1, n2`.
    fn targets(&mut self, what: &str) -> Result<Vec<String>, Error> {
        let mut targets = Vec::new();
        loop {
            let name = self.name(what)?;
            match self.range()? {
                Some(count) => {
                    self.count_target_bytes((name.len() + 10).saturating_mul(count as usize))?;
                    targets.extend((0..count).map(|index| format!("{name}{index}")));
                }
                None => targets.push(name),
            }
            if !self.eat(",") {
                break;
            }
        }
        self.expect(";")?;
        Ok(targets)
    }

    fn count_target_bytes(&mut self, bytes: usize) -> Result<(), Error> {
        self.target_bytes = self.target_bytes.saturating_add(bytes);
        if self.target_bytes > MAX_TARGET_BYTES {
            return Err(self.error(self.peek(), "too many targets in ranges such as `label<10>`".to_owned()));
        }
        Ok(())
    }

    /// `[@[!]p] opcode.modifier… operand, …;`
    fn instruction(&mut self) -> Result<Instruction, Error> {
        let predicate = if self.eat("@") {
            let negated = self.eat("!");
            Some(Predicate { register: self.name("a predicate register")?, negated })
        } else {
            None
        };
        let token = self.peek();
        if token.kind != Kind::Word || !token.text.starts_with(|first: char| first.is_ascii_alphabetic()) {
            return Err(self.expected("an instruction"));
        }
        self.advance();
        let mut modifiers = Vec::new();
        while let Some(modifier) = self.eat_any_dotted() {
            modifiers.push(modifier.to_owned());
        }
        let is_call = token.text == "call";
        let mut operands = Vec::new();
        if !self.at(";") {
            operands = self.comma_separated(|parser| {
                if is_call && parser.at("(") { parser.operand_list() } else { parser.operand() }
            })?;
        }
        self.close(";")?;
        Ok(Instruction { predicate, opcode: token.text.to_owned(), modifiers, operands, line: token.line })
    }

    /// `.loc file line column [, function_name label [+ offset], inlined_at file line column]`
    fn loc(&mut self) -> Result<Loc, Error> {
        self.advance();
        let (file, line, column) = self.source_position()?;
        let mut inlined_at = None;
        if self.eat(",") {
            self.keyword("function_name")?;
            self.name("the label of a function's name")?;
            self.offset()?;
            self.expect(",")?;
            self.keyword("inlined_at")?;
            inlined_at = Some(self.source_position()?);
        }
        Ok(Loc { file, line, column, inlined_at })
    }

    fn keyword(&mut self, word: &str) -> Result<(), Error> {
        if self.peek().text != word {
            return Err(self.expected(&format!("`{word}`")));
        }
        self.advance();
        Ok(())
    }

    fn source_position(&mut self) -> Result<(u32, u32, u32), Error> {
        Ok((self.number("a file's index")?, self.number("a line")?, self.number("a column")?))
    }
}
