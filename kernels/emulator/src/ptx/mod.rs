//! PTX text to a syntax tree: [`parse`] reads a whole module into [`ast::Module`].
//!
//! The grammar is that of the PTX ISA manual, up to version 9.0. Where the manual is silent, ptxas 12.0 and 13.0 were asked:
//! what they refuse as a syntax error is refused here too. Opcodes and modifiers stay words, so that PTX with newer
//! instructions gets through, and whoever executes it can say which word it lacks.

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
