//! Tokens to the syntax tree, by recursive descent: a file each for directives, declarations, statements, operands and
//! constant expressions, from the outside in.

mod directive;
mod variable;

mod statement;

mod operand;

mod expression;

use super::Error;
use super::lexer::{self, Kind, Token};

/// How deep blocks, initializers and expressions may nest. The compilers we know of stay below ten.
const MAX_DEPTH: u32 = 100;

/// A place in the tokens of a module.
///
/// Every method that reads something returns what it read and stands behind it, or returns an error.
pub(super) struct Parser<'a> {
    source: &'a str,
    tokens: lexer::Tokens<'a>,
    position: usize,
    depth: u32,
    /// See [`Parser::count_target_bytes`].
    target_bytes: usize,
}

impl<'a> Parser<'a> {
    /// Stands at the start of `source`.
    pub(super) fn new(source: &'a str) -> Self {
        Parser { source, tokens: lexer::tokens(source), position: 0, depth: 0, target_bytes: 0 }
    }

    fn peek(&self) -> Token<'a> {
        self.peek_at(0)
    }

    /// The token `ahead` of the next one; the last one for ever.
    fn peek_at(&self, ahead: usize) -> Token<'a> {
        let list = &self.tokens.list;
        list[(self.position + ahead).min(list.len() - 1)]
    }

    fn advance(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn at(&self, mark: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Mark && token.text == mark
    }

    fn eat(&mut self, mark: &str) -> bool {
        let found = self.at(mark);
        self.position += found as usize;
        found
    }

    fn expect(&mut self, mark: &str) -> Result<(), Error> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(&format!("`{mark}`"))) }
    }

    /// The mark that ends a list.
    fn close(&mut self, mark: &str) -> Result<(), Error> {
        if self.eat(mark) { Ok(()) } else { Err(self.expected(&format!("`,` or `{mark}`"))) }
    }

    /// Whether the word `name` comes next, which starts with a dot.
    fn at_dotted(&self, name: &str) -> bool {
        let token = self.peek();
        token.kind == Kind::Dotted && token.text == name
    }

    fn eat_dotted(&mut self, name: &str) -> bool {
        let found = self.at_dotted(name);
        self.position += found as usize;
        found
    }

    /// The next word that starts with a dot, without the dot, if there is one.
    fn eat_any_dotted(&mut self) -> Option<&'a str> {
        let token = self.peek();
        (token.kind == Kind::Dotted).then(|| {
            self.position += 1;
            &token.text[1..]
        })
    }

    fn name(&mut self, what: &str) -> Result<String, Error> {
        if is_name(self.peek()) { Ok(self.advance().text.to_owned()) } else { Err(self.expected(what)) }
    }

    /// A string without its quotes.
    fn string(&mut self, what: &str) -> Result<String, Error> {
        if self.peek().kind != Kind::String {
            return Err(self.expected(what));
        }
        let text = self.advance().text;
        Ok(text[1..text.len() - 1].to_owned())
    }

    /// `item, item, …`, at least one.
    fn comma_separated<T>(
        &mut self,
        mut item: impl FnMut(&mut Self) -> Result<T, Error>,
    ) -> Result<Vec<T>, Error> {
        let mut items = vec![item(self)?];
        while self.eat(",") {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// Reads something that can contain itself.
    fn nested<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, Error>) -> Result<T, Error> {
        if self.depth == MAX_DEPTH {
            return Err(self.error(self.peek(), format!("nested more than {MAX_DEPTH} deep")));
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The next token is not what the grammar wants here.
    fn expected(&self, what: &str) -> Error {
        let token = self.peek();
        let found = match token.kind {
            Kind::End => "the end of the text".to_owned(),
            Kind::String => format!("the string {}", shortened(token.text)),
            _ => format!("`{}`", shortened(token.text)),
        };
        self.error(token, format!("expected {what}, found {found}"))
    }

    /// The error that `message` is at `token`, unless the text there is no token at all, which is said instead.
    fn error(&self, token: Token<'a>, message: String) -> Error {
        match &self.tokens.error {
            Some(error) if token.kind == Kind::Invalid => error.clone(),
            _ => lexer::error_at(self.source, token, message),
        }
    }
}

/// Whether a token names something. `_` and `WARP_SZ` do not.
fn is_name(token: Token<'_>) -> bool {
    token.kind == Kind::Word && !matches!(token.text, "_" | "WARP_SZ")
}

/// `text`, or its beginning, so that a message stays readable whatever it quotes.
fn shortened(text: &str) -> String {
    let mut shortened: String = text.chars().take(60).collect();
    if shortened.len() < text.len() {
        shortened.push('…');
    }
    shortened
}
