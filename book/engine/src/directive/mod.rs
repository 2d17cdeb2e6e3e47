//! The directives of a page: `{{#lab NAME ARGUMENTS}}`, found outside code and expanded to HTML.
//!
//! | directive | gives |
//! |---|---|
//! | `code PLACE` | an anchor of real source |
//! | `diff PLACE PLACE` | two kernel steps, as a diff |
//! | `tabs PLACE PLACE…` | the same step in several languages |
//! | `out CELL` | what a cell gave, recorded and own |
//! | `plot CELL` or `plot CELL.FIGURE` | its figure, or its timeline |
//! | `val REFERENCE` | a number or word in a sentence |
//! | `claim STATEMENT` | a statement that the records must bear out |
//! | `state CHAPTER` | the head of a chapter's page |
//! | `exercise CHAPTER NAME` | a task with its hole, hints and solution |

mod cell;
mod exercise;
mod find;
mod listing;
mod markup;
mod sentence;

use std::cell::RefCell;
use std::collections::BTreeSet;

use crate::html::escape;
use crate::records::{GPU, Records};
use crate::root::{Chapter, Root};
use crate::static_book::Problem;

pub use find::{Directive, Unclosed, find, left_alone, line_of};
pub use markup::well_formed;

/// What directives are expanded from.
pub struct Page<'a> {
    /// The repository.
    pub root: &'a Root,
    /// Its records.
    pub records: &'a Records,
    /// The page's file, relative to the repository.
    pub file: &'a str,
    /// Where the repository can be read by others, without a slash at the end; sources are links then.
    pub repository: Option<&'a str>,
    ids: RefCell<BTreeSet<String>>,
}

/// A page with its directives expanded.
pub struct Expanded {
    /// Markdown and HTML for mdBook. What is wrong stands there as a red box.
    pub text: String,
    /// What is wrong.
    pub problems: Vec<Problem>,
}

impl<'a> Page<'a> {
    /// The page in `file`.
    pub fn new(root: &'a Root, records: &'a Records, file: &'a str, repository: Option<&'a str>) -> Page<'a> {
        Page { root, records, file, repository, ids: RefCell::default() }
    }

    /// An id that no other block of this page has: `wanted`, or `wanted-2`.
    fn unique_id(&self, wanted: &str) -> String {
        let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '-' };
        let wanted: String = wanted.chars().map(plain).collect();
        let mut ids = self.ids.borrow_mut();
        let mut id = wanted.clone();
        let mut count = 1;
        while !ids.insert(id.clone()) {
            count += 1;
            id = format!("{wanted}-{count}");
        }
        id
    }
}

/// Expands every directive of a page. A directive that cannot be is a problem with its line, and the others go on.
pub fn expand(page: &Page<'_>, text: &str) -> Expanded {
    let mut expanded = Expanded { text: String::with_capacity(2 * text.len()), problems: Vec::new() };
    let mut at = 0;
    for directive in find(text) {
        let (range, line, alone, result) = match directive {
            Ok(directive) => {
                let result = expand_one(page, &directive);
                (directive.range, directive.line, directive.alone, result)
            }
            Err(Unclosed { line }) => {
                // The rest of the line belongs to it, and is taken out of the reader's sight.
                let start = line_start(text, line).max(at);
                let end = text[start..].find('\n').map_or(text.len(), |length| start + length);
                (
                    start..end,
                    line,
                    Some(""),
                    Err("a directive is opened with {{#lab and not closed on its line".to_owned()),
                )
            }
        };
        expanded.text.push_str(&text[at..range.start]);
        at = range.end;
        let html = result.unwrap_or_else(|what| {
            if let Some(chapter) = awaited(page, text, &range) {
                return waiting(chapter, text[range.clone()].contains("#lab claim"), alone.is_some());
            }
            let problem = Problem { file: page.file.to_owned(), line, what };
            let html = problem_box(&problem, alone.is_some());
            expanded.problems.push(problem);
            html
        });
        match alone {
            // A blank line before and after ends a paragraph above and starts one below, inside a quote or list too.
            Some(prefix) => {
                let block = html.trim_end().replace('\n', &format!("\n{prefix}"));
                expanded.text.push_str(&format!("\n{prefix}{block}\n{}\n", prefix.trim_end()));
            }
            None => expanded.text.push_str(&html),
        }
    }
    expanded.text.push_str(&text[at..]);
    expanded
}

fn expand_one(page: &Page<'_>, directive: &Directive<'_>) -> Result<String, String> {
    let arguments = directive.arguments;
    let expansion = match directive.name {
        "val" => return sentence::val(page, arguments),
        _ if directive.alone.is_none() && NAMES.contains(&directive.name) => {
            return Err(format!("`{}` stands alone on its line", directive.name));
        }
        "claim" => sentence::claim(page, arguments),
        "code" => listing::code(page, arguments),
        "diff" => listing::diff(page, arguments),
        "tabs" => listing::tabs(page, arguments),
        "out" => cell::out(page, arguments),
        "plot" => cell::plot(page, arguments),
        "state" => cell::state(page, arguments),
        "exercise" => exercise::exercise(page, arguments),
        "" => Err(format!("the directive has no name: there are {}", NAMES.join(", "))),
        name => Err(format!("there is no directive `{name}`: there are {}", NAMES.join(", "))),
    }?;
    Ok(without_includes(&expansion))
}

/// mdBook's own preprocessor runs after this one, and takes a backslash away. What stands in a listing is no include.
fn without_includes(text: &str) -> String {
    let escaped = |line: &str| match line.find("{{#") {
        Some(start) if line[start..].contains("}}") => line.replace("{{#", "\\{{#"),
        _ => line.to_owned(),
    };
    text.split_inclusive('\n').map(escaped).collect()
}

const NAMES: [&str; 9] = ["code", "diff", "tabs", "out", "plot", "val", "claim", "state", "exercise"];

/// HTML drawn from records, checked: a blank line would end the block in Markdown, a stray tag would swallow the page.
fn checked(html: String) -> Result<String, String> {
    match well_formed(&html) {
        Ok(()) => Ok(html),
        Err(what) => {
            Err(format!("the engine drew HTML that is not well-formed ({what}): please report this page"))
        }
    }
}

/// The draft whose GPU record a directive waits for, if that is why it cannot be expanded.
fn awaited<'a>(page: &Page<'a>, text: &str, range: &std::ops::Range<usize>) -> Option<&'a Chapter> {
    let directive = &text[range.clone()];
    page.root.chapters.iter().find(|chapter| {
        chapter.draft
            && directive.contains(&format!("{}.", chapter.name))
            && page.records.get(GPU, &chapter.name).is_none()
    })
}

/// What stands where a draft's measurements will stand. Nobody misses a statement that nothing bears out yet.
fn waiting(chapter: &Chapter, claim: bool, block: bool) -> String {
    let short = chapter.short();
    if claim {
        String::new()
    } else if block {
        format!(
            "<p class=\"lab-note\">Not measured yet: this waits for a GPU. If you have one, <code>cargo run -p {}</code> shows yours.</p>",
            escape(&chapter.name)
        )
    } else {
        format!("<span class=\"needs-gpu\">(not measured yet, {})</span>", escape(short))
    }
}

fn problem_box(problem: &Problem, block: bool) -> String {
    let text = problem.to_string();
    if block {
        let text = escape(&text).replace('{', "&#123;").replace('\n', "<br>");
        format!("<div class=\"lab-problem\" role=\"alert\">{text}</div>")
    } else {
        format!("<span class=\"lab-problem\" role=\"alert\">{}</span>", inline(&text))
    }
}

/// Text that Markdown leaves as it is, in a table too.
fn inline(text: &str) -> String {
    let mut html = String::new();
    for c in escape(text).chars() {
        match c {
            '*' | '_' | '|' | '`' | '[' | ']' | '\\' | '~' | '{' | '\n' => {
                html.push_str(&format!("&#{};", u32::from(c)))
            }
            c => html.push(c),
        }
    }
    html
}

fn line_start(text: &str, line: usize) -> usize {
    text.split_inclusive('\n').take(line - 1).map(str::len).sum()
}
