//! Rust, hashed as its tokens: comments, documentation and layout do not count.

use anyhow::{Result, anyhow};
use proc_macro2::{Delimiter, Spacing, TokenStream, TokenTree};

/// The hash of a Rust file's tokens, without comments and `doc` attributes.
///
/// # Errors
/// When the text does not split into tokens, with line and column.
pub fn rust(source: &str) -> Result<String> {
    let tokens: TokenStream = source.parse().map_err(|error: proc_macro2::LexError| {
        let start = error.span().start();
        anyhow!("line {}, column {}: this is no Rust", start.line, start.column + 1)
    })?;
    let mut text = String::with_capacity(source.len());
    write(tokens, &mut text);
    Ok(super::sha256(text.as_bytes()))
}

fn write(tokens: TokenStream, text: &mut String) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            // An attribute is `#`, perhaps `!`, and brackets. The two marks are held back until the brackets are seen.
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                let bang = tokens.next_if(|next| matches!(next, TokenTree::Punct(p) if p.as_char() == '!'));
                if tokens.next_if(is_doc).is_none() {
                    text.push('#');
                    if bang.is_some() {
                        text.push('!');
                    }
                    text.push('\n');
                }
            }
            TokenTree::Punct(mark) => {
                text.push(mark.as_char());
                // `a && b` is not `a & &b`.
                if mark.spacing() == Spacing::Alone {
                    text.push('\n');
                }
            }
            TokenTree::Ident(word) => {
                text.push_str(&word.to_string());
                text.push('\n');
            }
            TokenTree::Literal(literal) => {
                text.push_str(&literal.to_string());
                text.push('\n');
            }
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(\n", ")\n"),
                    Delimiter::Brace => ("{\n", "}\n"),
                    Delimiter::Bracket => ("[\n", "]\n"),
                    Delimiter::None => ("", ""),
                };
                text.push_str(open);
                write(group.stream(), text);
                text.push_str(close);
            }
        }
    }
}

/// `[doc = "…"]` or `[doc(hidden)]`, which is also how `///` and `//!` arrive.
fn is_doc(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    group.delimiter() == Delimiter::Bracket
        && matches!(group.stream().into_iter().next(), Some(TokenTree::Ident(word)) if word == "doc")
}

#[cfg(test)]
mod tests {
    use super::rust;

    const SOURCE: &str = r##"//! What it is.
        #![allow(dead_code)]
        /// Adds.
        #[inline]
        fn add(a: &f32, b: &f32) -> f32 { a + b /* fused? */ } // no
        #[doc(hidden)]
        const TEXT: &str = "// no comment";
        #[doc = "raw"]
        const RAW: &str = r#"/// nor this"#;
    "##;

    #[track_caller]
    fn same(from: &str, to: &str) {
        assert!(SOURCE.contains(from), "{from}");
        assert_eq!(rust(SOURCE).unwrap(), rust(&SOURCE.replacen(from, to, 1)).unwrap(), "{from} -> {to}");
    }

    #[track_caller]
    fn differs(from: &str, to: &str) {
        assert!(SOURCE.contains(from), "{from}");
        assert_ne!(rust(SOURCE).unwrap(), rust(&SOURCE.replacen(from, to, 1)).unwrap(), "{from} -> {to}");
    }

    #[test]
    fn comments_documentation_and_layout_do_not_count() {
        same("//! What it is.", "//! What else it is.\n//! And more.");
        same("/// Adds.", "");
        same("/* fused? */", "");
        same("// no\n", "\n");
        same("#[doc(hidden)]", "");
        same("#[doc = \"raw\"]", "#[doc = \"cooked\"]");
        same("a + b", "a\n+\nb");
    }

    #[test]
    fn code_counts() {
        differs("a + b", "a - b");
        differs("add(", "sum(");
        differs("#[inline]", "");
        differs("#![allow(dead_code)]", "");
        differs("// no comment", "// a comment");
        differs("/// nor this", "/// but this");
        differs("a: &f32, b", "a: &&f32, b");
        differs("{ a + b /* fused? */ }", "{ (a + b) }");
    }

    #[test]
    fn what_is_no_rust_is_an_error_with_its_place() {
        let message = rust("fn f() {\n  \"open\n").unwrap_err().to_string();
        assert!(message.contains("no Rust"), "{message}");
    }
}
