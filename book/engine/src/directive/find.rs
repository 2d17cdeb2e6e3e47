//! Finds the directives of a page, outside of code and comments.

use std::ops::Range;

use mdbook_markdown::pulldown_cmark::{Event, Tag, TagEnd};
use mdbook_markdown::{MarkdownOptions, new_cmark_parser};

const OPEN: &str = "{{#lab";
const CLOSE: &str = "}}";

/// A directive as the page wrote it.
#[derive(Clone, Debug, PartialEq)]
pub struct Directive<'a> {
    /// Its bytes in the page, braces included.
    pub range: Range<usize>,
    /// Its line, from 1.
    pub line: usize,
    /// The first word, such as `code`; empty if there is none.
    pub name: &'a str,
    /// The rest.
    pub arguments: &'a str,
    /// What stands before it on its line (indentation, `>`) if the line holds nothing else.
    pub alone: Option<&'a str>,
}

/// A directive that is not closed on its line.
#[derive(Clone, Debug, PartialEq)]
pub struct Unclosed {
    /// Its line, from 1.
    pub line: usize,
}

/// The directives of a page, in order. Code spans, code blocks, HTML comments and `\{{#lab` are left alone.
pub fn find(page: &str) -> Vec<Result<Directive<'_>, Unclosed>> {
    let left_alone = left_alone(page);
    let mut found = Vec::new();
    let mut at = 0;
    while let Some(offset) = page[at..].find(OPEN) {
        let start = at + offset;
        at = start + OPEN.len();
        let escaped = page[..start].ends_with('\\');
        let another_word = page[at..].starts_with(|c: char| c.is_alphanumeric() || c == '_' || c == '-');
        if escaped || another_word || left_alone.iter().any(|range| range.contains(&start)) {
            continue;
        }
        let line = line_of(page, start);
        let line_start = page[..start].rfind('\n').map_or(0, |newline| newline + 1);
        let line_end = page[start..].find('\n').map_or(page.len(), |newline| start + newline);
        let Some(length) = page[at..line_end].find(CLOSE) else {
            found.push(Err(Unclosed { line }));
            continue;
        };
        let end = at + length + CLOSE.len();
        let words = page[at..at + length].trim();
        let (name, arguments) = words.split_once(char::is_whitespace).unwrap_or((words, ""));
        let before = &page[line_start..start];
        let alone = before.chars().all(|c| c.is_whitespace() || c == '>')
            && page[end..line_end].chars().all(char::is_whitespace);
        found.push(Ok(Directive {
            range: start..end,
            line,
            name,
            arguments: arguments.trim(),
            alone: alone.then_some(before),
        }));
        at = end;
    }
    found
}

/// The line, from 1, of a byte.
pub fn line_of(text: &str, byte: usize) -> usize {
    text[..byte].bytes().filter(|&b| b == b'\n').count() + 1
}

/// The bytes of a page that are code or comment.
pub fn left_alone(page: &str) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let mut code_start = None;
    for (event, range) in new_cmark_parser(page, &MarkdownOptions::default()).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(_)) => code_start = Some(range.start),
            Event::End(TagEnd::CodeBlock) => ranges.push(code_start.take().unwrap_or(range.start)..range.end),
            Event::Code(_) => ranges.push(range),
            _ => {}
        }
    }
    let mut at = 0;
    while let Some(offset) = page[at..].find("<!--") {
        let start = at + offset;
        if let Some(code) = ranges.iter().find(|range| range.contains(&start)) {
            at = code.end;
            continue;
        }
        let end = page[start..].find("-->").map_or(page.len(), |length| start + length + "-->".len());
        ranges.push(start..end);
        at = end;
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(page: &str, expected: &[(usize, &str, &str, bool)]) {
        let found: Vec<_> = find(page)
            .into_iter()
            .map(|directive| {
                let directive = directive.expect("closed");
                (directive.line, directive.name, directive.arguments, directive.alone.is_some())
            })
            .collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn block_and_inline() {
        check(
            "# Title\n\n{{#lab code ch01:add}}\nIt is {{#lab val a.b.c}} times {{#lab val a.b.d[8]}}.\n",
            &[(3, "code", "ch01:add", true), (4, "val", "a.b.c", false), (4, "val", "a.b.d[8]", false)],
        );
    }

    #[test]
    fn quotes_and_lists() {
        check(
            "> {{#lab out a.b}}\n\n- x\n\n  {{#lab out a.c}}\n",
            &[(1, "out", "a.b", true), (5, "out", "a.c", true)],
        );
    }

    #[test]
    fn code_comments_and_escapes_are_left_alone() {
        check("```\n{{#lab code x}}\n```\n", &[]);
        check("~~~md\n```\n{{#lab code x}}\n~~~\n", &[]);
        check("    {{#lab code x}}\n", &[]);
        check("Write `{{#lab val x}}` there.\n", &[]);
        check("Write ``a ` {{#lab val x}}`` there.\n", &[]);
        check("<!-- {{#lab val x}}\n{{#lab val y}} -->\n", &[]);
        check("\\{{#lab val x}}\n", &[]);
        check("{{#label x}} {{#include y}}\n", &[]);
        check("`<!--` {{#lab val x}}\n", &[(1, "val", "x", false)]);
    }

    #[test]
    fn a_claim_may_compare() {
        check("{{#lab claim a.b.c[x] <= 2 * a.b.d}}", &[(1, "claim", "a.b.c[x] <= 2 * a.b.d", true)]);
    }

    #[test]
    fn unclosed_directives_have_a_line() {
        assert_eq!(find("one\n\n{{#lab code x\n}}\n"), [Err(Unclosed { line: 3 })]);
    }
}
