//! Directives at module level, down to a function's body.

use super::{Parser, variable};
use crate::ptx::Error;
use crate::ptx::ast::{File, Function, Item, Linkage, Module};
use crate::ptx::lexer::Kind;

/// A directive between parameters and body, and the fewest and the most numbers that it takes.
pub(super) type HeaderDirective = (&'static str, usize, usize);

const ENTRY_DIRECTIVES: &[HeaderDirective] = &[
    (".maxntid", 1, 3),
    (".reqntid", 1, 3),
    (".minnctapersm", 1, 1),
    (".maxnctapersm", 1, 1),
    (".maxnreg", 1, 1),
    (".local_maxnreg", 1, 1),
    (".explicitcluster", 0, 0),
    (".reqnctapercluster", 1, 3),
    (".maxclusterrank", 1, 1),
    (".blocksareclusters", 0, 0),
];

pub(super) const FUNCTION_DIRECTIVES: &[HeaderDirective] =
    &[(".noreturn", 0, 0), (".abi_preserve", 1, 1), (".abi_preserve_control", 1, 1)];

/// What stands between a function's parameters and its body.
#[derive(Default)]
pub(super) struct Header {
    pub(super) directives: Vec<(String, Vec<i64>)>,
    pragmas: Vec<String>,
}

impl Parser<'_> {
    /// A whole module.
    pub(in crate::ptx) fn module(&mut self) -> Result<Module, Error> {
        if !self.eat_dotted(".version") {
            return Err(self.expected("`.version`, with which PTX starts"));
        }
        let version = self.version()?;
        if !self.eat_dotted(".target") {
            return Err(self.expected("`.target`, which follows `.version`"));
        }
        let target = self.comma_separated(|parser| parser.name("a target such as `sm_80`"))?;
        let address_size = if self.eat_dotted(".address_size") { self.address_size()? } else { 32 };
        let mut module = Module { version, target, address_size, ..Module::default() };
        while self.peek().kind != Kind::End {
            self.item(&mut module)?;
        }
        Ok(module)
    }

    /// The `7.3` of `.version 7.3`.
    fn version(&mut self) -> Result<(u32, u32), Error> {
        let text = self.peek().text;
        let numbers =
            text.split_once('.').and_then(|(major, minor)| Some((major.parse().ok()?, minor.parse().ok()?)));
        let Some(version) = numbers else {
            return Err(self.expected("a version such as `7.3`"));
        };
        self.advance();
        Ok(version)
    }

    fn address_size(&mut self) -> Result<u32, Error> {
        if !matches!(self.peek().text, "32" | "64") {
            return Err(self.expected("32 or 64"));
        }
        self.number("32 or 64")
    }

    fn item(&mut self, module: &mut Module) -> Result<(), Error> {
        match self.peek().text {
            ".file" => module.files.push(self.file()?),
            ".section" => module.items.push(Item::Section(self.section()?)),
            ".pragma" => module.items.extend(self.pragma()?.into_iter().map(Item::Pragma)),
            ".alias" => module.items.push(self.alias()?),
            ".visible" => self.linked(Linkage::Visible, module)?,
            ".extern" => self.linked(Linkage::Extern, module)?,
            ".weak" => self.linked(Linkage::Weak, module)?,
            ".common" => self.linked(Linkage::Common, module)?,
            _ => self.definition(Linkage::Internal, module)?,
        }
        Ok(())
    }

    /// A function or variables behind `.visible` and its like.
    fn linked(&mut self, linkage: Linkage, module: &mut Module) -> Result<(), Error> {
        self.advance();
        self.definition(linkage, module)
    }

    fn definition(&mut self, linkage: Linkage, module: &mut Module) -> Result<(), Error> {
        match self.peek().text {
            ".entry" | ".func" => module.items.push(Item::Function(self.function(linkage)?)),
            word if variable::starts_declaration(word) => {
                module.items.extend(self.variables(linkage)?.into_iter().map(Item::Variable));
            }
            _ => {
                return Err(self.expected("a function or variable, such as `.entry`, `.func` or `.global`"));
            }
        }
        Ok(())
    }

    /// `.file index "name" [, timestamp [, size]]`
    fn file(&mut self) -> Result<File, Error> {
        self.advance();
        let file =
            File { index: self.number("a file's index")?, name: self.string("a file's name in quotes")? };
        if self.eat(",") {
            self.literal("a time stamp")?;
            if self.eat(",") {
                self.literal("a file's size")?;
            }
        }
        Ok(file)
    }

    /// `.section .name { … }`, of which only the name is kept.
    fn section(&mut self) -> Result<String, Error> {
        self.advance();
        let Some(name) = self.eat_any_dotted() else {
            return Err(self.expected("a section's name such as `.debug_str`"));
        };
        self.expect("{")?;
        while !self.eat("}") {
            let token = self.peek();
            match (token.kind, token.text) {
                (Kind::Dotted | Kind::Word | Kind::Integer, _) | (Kind::Mark, ":" | "," | "+" | "-") => {
                    self.advance();
                }
                _ => return Err(self.expected("debugging data or `}`")),
            }
        }
        Ok(name.to_owned())
    }

    /// `.pragma "a", "b";`
    pub(super) fn pragma(&mut self) -> Result<Vec<String>, Error> {
        self.advance();
        let pragmas = self.comma_separated(|parser| parser.string("a pragma in quotes"))?;
        self.close(";")?;
        Ok(pragmas)
    }

    /// `.alias name, aliasee;`
    fn alias(&mut self) -> Result<Item, Error> {
        self.advance();
        let name = self.name("a function's new name")?;
        self.expect(",")?;
        let aliasee = self.name("a function")?;
        self.expect(";")?;
        Ok(Item::Alias { name, aliasee })
    }

    fn function(&mut self, linkage: Linkage) -> Result<Function, Error> {
        let keyword = self.advance();
        let entry = keyword.text == ".entry";
        let mut attributes = Vec::new();
        let mut returns = Vec::new();
        if !entry {
            if self.eat_dotted(".attribute") {
                attributes = self.attributes()?;
            }
            returns = self.optional_params()?;
        }
        let name = self.name("a function's name")?;
        let params = self.optional_params()?;
        let header = self.header(if entry { ENTRY_DIRECTIVES } else { FUNCTION_DIRECTIVES })?;
        let body = match self.peek().text {
            "{" => Some(self.body()?),
            ";" => {
                self.advance();
                None
            }
            _ => {
                return Err(self.expected("`{`, `;` or a directive such as `.maxntid` or `.noreturn`"));
            }
        };
        Ok(Function {
            linkage,
            entry,
            name,
            returns,
            params,
            directives: header.directives,
            attributes,
            pragmas: header.pragmas,
            body,
            line: keyword.line,
        })
    }

    /// `.maxntid 256, 1, 1`, `.noreturn`, `.pragma "…";` …, as long as they are among `known`.
    pub(super) fn header(&mut self, known: &[HeaderDirective]) -> Result<Header, Error> {
        let mut header = Header::default();
        loop {
            if self.at_dotted(".pragma") {
                header.pragmas.extend(self.pragma()?);
                continue;
            }
            let Some((name, fewest, most)) = known.iter().find(|(name, ..)| self.at_dotted(name)) else {
                return Ok(header);
            };
            self.advance();
            let mut values = Vec::new();
            while values.len() < *fewest || values.len() < *most && self.at(",") {
                if !values.is_empty() {
                    self.expect(",")?;
                }
                values.push(self.number("a number")?.into());
            }
            header.directives.push((name[1..].to_owned(), values));
        }
    }
}
