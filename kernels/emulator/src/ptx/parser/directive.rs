//! Directives at module level, down to a function's body.

use super::super::Error;
use super::super::ast::{File, Function, Item, Linkage, Module};
use super::super::lexer::Kind;
use super::{Parser, variable};

/// The directives between a function's parameters and its body.
#[derive(Default)]
pub(super) struct Header {
    /// The directives that take numbers or nothing.
    pub(super) directives: Vec<(String, Vec<i64>)>,
    attributes: Vec<String>,
    pragmas: Vec<String>,
}

impl Parser<'_> {
    /// A whole module.
    pub(in super::super) fn module(&mut self) -> Result<Module, Error> {
        // 32 is what the manual says of a module that does not name its address size.
        let mut module = Module { address_size: 32, ..Module::default() };
        if !self.eat_dotted(".version") {
            return Err(self.expected("`.version`, with which PTX starts"));
        }
        module.version = self.version()?;
        if !self.at_dotted(".target") {
            return Err(self.expected("`.target`, which follows `.version`"));
        }
        while self.peek().kind != Kind::End {
            self.item(&mut module)?;
        }
        Ok(module)
    }

    fn item(&mut self, module: &mut Module) -> Result<(), Error> {
        let token = self.peek();
        match (token.kind, token.text) {
            (Kind::Dotted, ".target") => {
                self.advance();
                module.target.extend(self.comma_separated(|parser| parser.name("a target such as `sm_80`"))?);
            }
            (Kind::Dotted, ".address_size") => {
                self.advance();
                module.address_size = self.number("32 or 64")?;
            }
            (Kind::Dotted, ".file") => module.files.push(self.file()?),
            // Outside a function there is no instruction that it could speak of.
            (Kind::Dotted, ".loc") => {
                self.loc()?;
            }
            (Kind::Dotted, ".section") => module.items.push(Item::Section(self.section()?)),
            (Kind::Dotted, ".pragma") => module.items.extend(self.pragma()?.into_iter().map(Item::Pragma)),
            (Kind::Dotted, ".alias") => module.items.push(self.alias()?),
            (Kind::Mark, ";") => self.position += 1,
            _ => {
                let linkage = self.linkage();
                self.definition(linkage, module)?;
            }
        }
        Ok(())
    }

    /// A function or variables.
    fn definition(&mut self, linkage: Linkage, module: &mut Module) -> Result<(), Error> {
        if self.at_dotted(".entry") || self.at_dotted(".func") {
            module.items.push(Item::Function(self.function(linkage)?));
        } else if variable::space(self.peek().text).is_some() {
            module.items.extend(self.variables(linkage)?.into_iter().map(Item::Variable));
        } else {
            let what = match linkage {
                Linkage::Internal => "a directive such as `.visible`, `.entry`, `.func` or `.global`",
                _ => "`.entry`, `.func` or a state space such as `.global`",
            };
            return Err(self.expected(what));
        }
        Ok(())
    }

    fn linkage(&mut self) -> Linkage {
        let linkage = match self.peek().text {
            ".visible" => Linkage::Visible,
            ".extern" => Linkage::Extern,
            ".weak" => Linkage::Weak,
            ".common" => Linkage::Common,
            _ => return Linkage::Internal,
        };
        self.advance();
        linkage
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

    /// `.file index "name" [, timestamp, size]`
    fn file(&mut self) -> Result<File, Error> {
        self.advance();
        let file =
            File { index: self.number("a file's index")?, name: self.string("a file's name in quotes")? };
        if self.eat(",") {
            self.integer("a time stamp")?;
            self.expect(",")?;
            self.integer("a file's size")?;
        }
        Ok(file)
    }

    /// `.pragma "a", "b";`
    pub(super) fn pragma(&mut self) -> Result<Vec<String>, Error> {
        self.advance();
        let pragmas = self.comma_separated(|parser| parser.string("a pragma in quotes"))?;
        self.expect(";")?;
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

    /// `.section name { … }`, of which only the name is kept, without its dot.
    pub(super) fn section(&mut self) -> Result<String, Error> {
        self.advance();
        let name = match self.eat_any_dotted() {
            Some(name) => name.to_owned(),
            None => self.name("a section's name")?,
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
        Ok(name)
    }

    fn function(&mut self, linkage: Linkage) -> Result<Function, Error> {
        let keyword = self.advance();
        let entry = keyword.text == ".entry";
        let mut attributes = if self.eat_dotted(".attribute") { self.attributes()? } else { Vec::new() };
        let returns = if entry { Vec::new() } else { self.optional_params()? };
        let name = self.name("a function's name")?;
        let params = self.optional_params()?;
        let header = self.header()?;
        attributes.extend(header.attributes);
        let body = if self.eat(";") {
            None
        } else if self.at("{") {
            Some(self.body()?)
        } else {
            return Err(self.expected("`{`, `;` or a directive such as `.maxntid`"));
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

    /// `.maxntid 256, 1, 1`, `.noreturn`, `.pragma "…";` …
    pub(super) fn header(&mut self) -> Result<Header, Error> {
        let mut header = Header::default();
        while self.peek().kind == Kind::Dotted {
            if self.at_dotted(".pragma") {
                header.pragmas.extend(self.pragma()?);
            } else if self.eat_dotted(".attribute") {
                header.attributes.extend(self.attributes()?);
            } else {
                let name = self.advance().text[1..].to_owned();
                let values = match self.peek().kind {
                    Kind::Integer => self.comma_separated(|parser| Ok(parser.integer("a number")? as i64))?,
                    _ => Vec::new(),
                };
                header.directives.push((name, values));
            }
        }
        Ok(header)
    }
}
