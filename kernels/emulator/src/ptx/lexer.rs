//! PTX text to tokens.
//!
//! Words that start with a dot are one token each, with their `::` parts (`.shared::cta`, `.L2::128B`), because a dot means
//! nothing else in PTX: it starts a directive, a type, a modifier or the component of a vector.

use super::Error;

/// What a token is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// `add`, `%r1`, `$L__BB0_1`, `_`
    Word,
    /// `.global`, `.u32`, `.x`, `.L2::128B`; the text has the dot.
    Dotted,
    /// `12`, `0x1F`, `017`, `0b101`, `7U`
    Integer,
    /// `1.5`, `1e-3`, `0f3F800000`, `0d3FF0000000000000`
    Float,
    /// `"…"`, perhaps of several lines; the text has the quotes. A backslash means itself.
    String,
    /// An operator or punctuation mark.
    Mark,
    /// The end of the text.
    End,
    /// Text that is no token. It is the last one; [`Tokens::error`] says why.
    Invalid,
}

/// A token, with its text in the source.
#[derive(Clone, Copy, Debug)]
pub(super) struct Token<'a> {
    /// What it is.
    pub(super) kind: Kind,
    /// Its text.
    pub(super) text: &'a str,
    /// Its line, from 1.
    pub(super) line: u32,
}

/// The tokens of a text.
pub(super) struct Tokens<'a> {
    /// The tokens; the last one is [`Kind::End`] or [`Kind::Invalid`], and no other is.
    pub(super) list: Vec<Token<'a>>,
    /// What is wrong at the last token if that is [`Kind::Invalid`].
    pub(super) error: Option<Error>,
}

/// Splits `source` into tokens.
pub(super) fn tokens(source: &str) -> Tokens<'_> {
    let mut lexer = Lexer { source, position: 0, line: 1, previous: Kind::Mark };
    // Real PTX has a token for every four to five bytes.
    let mut list = Vec::with_capacity(source.len() / 4 + 1);
    let mut error = None;
    loop {
        let token = match lexer.next() {
            Ok(token) => token,
            Err(found) => {
                let (token, message) = *found;
                error = Some(error_at(source, token, message));
                token
            }
        };
        list.push(token);
        if matches!(token.kind, Kind::End | Kind::Invalid) {
            return Tokens { list, error };
        }
    }
}

/// The error that `message` is at `token`, a part of `source`.
pub(super) fn error_at(source: &str, token: Token<'_>, message: String) -> Error {
    let offset = token.text.as_ptr() as usize - source.as_ptr() as usize;
    let line_start = source[..offset].rfind('\n').map_or(0, |newline| newline + 1);
    Error { line: token.line, column: source[line_start..offset].chars().count() as u32 + 1, message }
}

struct Lexer<'a> {
    source: &'a str,
    position: usize,
    line: u32,
    previous: Kind,
}

/// A token of [`Kind::Invalid`] and what is wrong with it. Boxed, since it is rare.
type Invalid<'a> = Box<(Token<'a>, String)>;

impl<'a> Lexer<'a> {
    fn next(&mut self) -> Result<Token<'a>, Invalid<'a>> {
        self.skip_blanks()?;
        let start = self.position;
        let line = self.line;
        let Some(first) = self.byte(0) else {
            return Ok(self.token(Kind::End, start, line));
        };
        let kind = match first {
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => self.word(),
            b'%' | b'$' if self.byte(1).is_some_and(is_word) => self.word(),
            b'.' if self.byte(1).is_some_and(|b| b.is_ascii_digit()) && self.previous == Kind::Mark => {
                self.number()
            }
            b'.' if self.byte(1).is_some_and(is_word) => self.dotted(),
            b'0'..=b'9' => self.number(),
            b'"' => self.string()?,
            _ => self.mark()?,
        };
        let token = self.token(kind, start, line);
        self.previous = kind;
        Ok(token)
    }

    fn token(&self, kind: Kind, start: usize, line: u32) -> Token<'a> {
        Token { kind, text: &self.source[start..self.position], line }
    }

    fn byte(&self, ahead: usize) -> Option<u8> {
        self.source.as_bytes().get(self.position + ahead).copied()
    }

    /// The text from `start`, of which the next character is the last one, is no token.
    fn invalid(&mut self, start: usize, line: u32, message: impl Into<String>) -> Invalid<'a> {
        let next = self.source[self.position..].chars().next();
        self.position += next.map_or(0, char::len_utf8);
        Box::new((self.token(Kind::Invalid, start, line), message.into()))
    }

    /// White space, comments, and lines for debuggers and preprocessors (`#line`, and PTX 1's `@@DWARF`).
    fn skip_blanks(&mut self) -> Result<(), Invalid<'a>> {
        while let Some(byte) = self.byte(0) {
            let rest = &self.source.as_bytes()[self.position..];
            match byte {
                b'\n' => {
                    self.line += 1;
                    self.position += 1;
                }
                b' ' | b'\t' | b'\r' => self.position += 1,
                b'/' if rest.starts_with(b"//") => self.skip_line(),
                b'/' if rest.starts_with(b"/*") => self.skip_comment()?,
                b'@' if rest.starts_with(b"@@DWARF") || rest.starts_with(b"@@dwarf") => self.skip_line(),
                b'#' => self.skip_line_marker()?,
                _ => break,
            }
        }
        Ok(())
    }

    fn skip_line(&mut self) {
        let rest = &self.source[self.position..];
        self.position += rest.find('\n').unwrap_or(rest.len());
    }

    fn skip_comment(&mut self) -> Result<(), Invalid<'a>> {
        let rest = &self.source[self.position..];
        let Some(end) = rest[2..].find("*/") else {
            let (start, line) = (self.position, self.line);
            return Err(self.invalid(start, line, "this comment has no end: expected `*/`"));
        };
        self.skip_to(self.position + end + 4);
        Ok(())
    }

    /// Goes on at `end`, over text that may have several lines.
    fn skip_to(&mut self, end: usize) {
        self.line += self.source[self.position..end].bytes().filter(|byte| *byte == b'\n').count() as u32;
        self.position = end;
    }

    fn skip_line_marker(&mut self) -> Result<(), Invalid<'a>> {
        let marker = self.source[self.position + 1..].trim_start_matches([' ', '\t']);
        if marker.starts_with("line")
            || marker.starts_with("file")
            || marker.starts_with(|c: char| c.is_ascii_digit())
        {
            self.skip_line();
            return Ok(());
        }
        let (start, line) = (self.position, self.line);
        let message = "found `#`, a directive of the C preprocessor: expected PTX that the preprocessor has been run over";
        Err(self.invalid(start, line, message))
    }

    fn skip_word(&mut self) {
        while self.byte(0).is_some_and(is_word) {
            self.position += 1;
        }
    }

    fn word(&mut self) -> Kind {
        self.position += 1;
        self.skip_word();
        Kind::Word
    }

    fn dotted(&mut self) -> Kind {
        self.position += 1;
        let start = self.position;
        self.skip_word();
        while self.byte(0) == Some(b':') && self.byte(1) == Some(b':') && self.byte(2).is_some_and(is_word) {
            self.position += 2;
            self.skip_word();
        }
        if &self.source[start..self.position] == "const" {
            self.constant_bank();
        }
        Kind::Dotted
    }

    /// The bank of PTX 2's `.const[3]`.
    fn constant_bank(&mut self) {
        let rest = &self.source.as_bytes()[self.position..];
        let digits = rest.iter().skip(1).take_while(|byte| byte.is_ascii_digit()).count();
        if digits > 0 && rest[0] == b'[' && rest.get(digits + 1) == Some(&b']') {
            self.position += digits + 2;
        }
    }

    /// A number with everything that clings to it, so that `12ab` is one wrong number rather than a number and a word.
    fn number(&mut self) -> Kind {
        let prefix = [self.byte(0), self.byte(1)];
        match prefix {
            [Some(b'0'), Some(b'x' | b'X' | b'b' | b'B')] => {
                self.skip_word();
                return Kind::Integer;
            }
            [Some(b'0'), Some(b'f' | b'F' | b'd' | b'D')] => {
                self.skip_word();
                return Kind::Float;
            }
            _ => {}
        }
        let mut kind = Kind::Integer;
        self.skip_digits();
        if self.byte(0) == Some(b'.') {
            kind = Kind::Float;
            self.position += 1;
            self.skip_digits();
        }
        if matches!(self.byte(0), Some(b'e' | b'E')) {
            let sign = matches!(self.byte(1), Some(b'+' | b'-')) as usize;
            if self.byte(1 + sign).is_some_and(|b| b.is_ascii_digit()) {
                kind = Kind::Float;
                self.position += 1 + sign;
            }
        }
        self.skip_word();
        kind
    }

    fn skip_digits(&mut self) {
        while self.byte(0).is_some_and(|byte| byte.is_ascii_digit()) {
            self.position += 1;
        }
    }

    fn string(&mut self) -> Result<Kind, Invalid<'a>> {
        let (start, line) = (self.position, self.line);
        let Some(length) = self.source[start + 1..].find('"') else {
            return Err(self.invalid(start, line, "this string has no end: expected `\"`"));
        };
        self.skip_to(start + length + 2);
        Ok(Kind::String)
    }

    fn mark(&mut self) -> Result<Kind, Invalid<'a>> {
        const PAIRS: [&[u8; 2]; 8] = [b"<<", b">>", b"<=", b">=", b"==", b"!=", b"&&", b"||"];
        let rest = &self.source.as_bytes()[self.position..];
        if PAIRS.iter().any(|pair| rest.starts_with(*pair)) {
            self.position += 2;
        } else if b",;:()[]{}<>+-*/%&|^!~?=@".contains(&rest[0]) {
            self.position += 1;
        } else {
            let (start, line) = (self.position, self.line);
            let message = match self.source[start..].chars().next().unwrap_or_default() {
                character if character.is_control() => {
                    format!("found `{}`", character.escape_default())
                }
                character => format!("found `{character}`"),
            };
            return Err(self.invalid(start, line, message + ", which no PTX contains here"));
        }
        Ok(Kind::Mark)
    }
}

fn is_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'$')
}
