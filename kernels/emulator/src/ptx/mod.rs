//! PTX text to a syntax tree: [`parse`] reads a whole module into [`ast::Module`].
//!
//! The grammar is that of the PTX ISA manual, up to version 9.0. Opcodes, modifiers and types stay words, so text that is
//! newer than this parser usually gets through, and whoever executes it can say which word is not implemented.

pub mod ast;
mod error;
mod lexer;
mod parser;

pub use error::Error;

/// Reads a PTX module.
///
/// # Errors
///
/// The first place where the text is not PTX, with what was found there and what was expected.
pub fn parse(text: &str) -> Result<ast::Module, Error> {
    parser::Parser::new(text).module()
}
