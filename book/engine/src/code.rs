//! Named anchors of real, compiled source.
//!
//! Lines that hold `ANCHOR: name` and `ANCHOR_END: name`, in a comment of whatever language, mark a part of a file. A page
//! names it with `chapter:anchor` or `path:anchor`; what is missing, doubled, unclosed or empty is an error.

use std::path::{Component, Path};

use walkdir::WalkDir;

use crate::root::Root;

const START: &str = "ANCHOR:";
const END: &str = "ANCHOR_END:";

/// A piece of source, as a page shows it.
#[derive(Clone, Debug, PartialEq)]
pub struct Listing {
    /// The file, relative to the repository.
    pub path: String,
    /// The anchor, if it is not the whole file.
    pub anchor: Option<String>,
    /// The first line shown, from 1.
    pub first: usize,
    /// The last line shown.
    pub last: usize,
    /// The lines, without common indentation and without anchor marks.
    pub text: String,
    /// The word for the highlighter.
    pub language: &'static str,
}

impl Listing {
    /// `path:first–last`.
    pub fn place(&self) -> String {
        match &self.anchor {
            Some(_) if self.first == self.last => format!("{}:{}", self.path, self.first),
            Some(_) => format!("{}:{}–{}", self.path, self.first, self.last),
            None => self.path.clone(),
        }
    }
}

/// Reads `chapter:anchor`, `path:anchor` or `path`. Two folders need not be named: `kernels/copy.cu` lies in `kernels/cuda`, and
/// `ch01-raw-kernel/driver.rs` in that chapter's `src`.
pub fn listing(root: &Root, place: &str) -> Result<Listing, String> {
    let (file, anchor) = match place.split_once(':') {
        Some((file, anchor)) => (file.trim(), Some(anchor.trim())),
        None => (place.trim(), None),
    };
    if file.is_empty() || anchor == Some("") {
        return Err(format!("`{place}` names no source: write CHAPTER:ANCHOR or PATH:ANCHOR"));
    }
    if file.starts_with("ch") && !file.contains(['/', '.']) {
        let anchor = anchor
            .ok_or_else(|| format!("`{place}` names a whole chapter: add an anchor, as in {place}:ANCHOR"))?;
        return in_chapter(root, file, anchor);
    }
    let path = repository_path(root, file)?;
    let text = read(root, &path)?;
    cut(&path, &text, anchor)
}

/// The names of the anchors of a file.
pub fn anchors(text: &str) -> Vec<&str> {
    text.lines().filter_map(|line| mark(line, START)).collect()
}

fn in_chapter(root: &Root, chapter: &str, anchor: &str) -> Result<Listing, String> {
    let chapter = root.chapter(chapter).map_err(|error| format!("{error}"))?;
    let folder = root.path.join("chapters").join(&chapter.name);
    let mut known = Vec::new();
    let mut found = Vec::new();
    for part in ["src", "tests", "benches"] {
        let files = WalkDir::new(folder.join(part)).sort_by_file_name().into_iter().filter_map(Result::ok);
        for entry in files.filter(|entry| entry.path().extension().is_some_and(|extension| extension == "rs"))
        {
            let path = relative(root, entry.path());
            let text = read(root, &path)?;
            known.extend(anchors(&text).into_iter().map(str::to_owned));
            if anchors(&text).contains(&anchor) {
                found.push((path, text));
            }
        }
    }
    match &found[..] {
        [(path, text)] => cut(path, text, Some(anchor)),
        [] => Err(missing(&chapter.name, anchor, &known)),
        several => {
            let paths: Vec<&str> = several.iter().map(|(path, _)| path.as_str()).collect();
            Err(format!("the anchor `{anchor}` is in several files: name one of {}", paths.join(", ")))
        }
    }
}

/// A file that a page may show: inside the repository, tracked or not, but never through `..` or a link to elsewhere.
fn repository_path(root: &Root, file: &str) -> Result<String, String> {
    let plain = Path::new(file).components().all(|part| matches!(part, Component::Normal(_)));
    if !plain {
        return Err(format!("`{file}` leaves the repository: paths start at its top"));
    }
    let kernel = file.strip_prefix("kernels/").map(|name| format!("kernels/cuda/{name}"));
    let in_chapter =
        file.split_once('/').filter(|(first, _)| root.chapters.iter().any(|chapter| chapter.name == *first));
    let source = in_chapter.map(|(chapter, name)| format!("chapters/{chapter}/src/{name}"));
    let other = in_chapter.map(|_| format!("chapters/{file}"));
    for candidate in [Some(file.to_owned()), kernel, source, other].into_iter().flatten() {
        let path = root.path.join(&candidate);
        let inside = path.canonicalize().ok().zip(root.path.canonicalize().ok());
        if path.is_file() && inside.is_some_and(|(path, root)| path.starts_with(root)) {
            return Ok(candidate);
        }
    }
    Err(format!("there is no file `{file}` in the repository"))
}

fn read(root: &Root, path: &str) -> Result<String, String> {
    let text =
        std::fs::read_to_string(root.path.join(path)).map_err(|error| format!("reading {path}: {error}"))?;
    Ok(text.replace("\r\n", "\n"))
}

fn cut(path: &str, text: &str, anchor: Option<&str>) -> Result<Listing, String> {
    let lines: Vec<&str> = text.lines().collect();
    let (start, end) = match anchor {
        None => (0, lines.len()),
        Some(anchor) => {
            let starts: Vec<usize> = positions(&lines, START, anchor);
            let ends: Vec<usize> = positions(&lines, END, anchor);
            match (&starts[..], &ends[..]) {
                ([], _) => {
                    let known: Vec<String> = anchors(text).into_iter().map(str::to_owned).collect();
                    return Err(missing(path, anchor, &known));
                }
                ([start], [end]) if start < end => (start + 1, *end),
                ([start], _) => {
                    return Err(format!(
                        "{path}:{}: the anchor `{anchor}` needs one `{END} {anchor}` below it",
                        start + 1
                    ));
                }
                (starts, _) => {
                    return Err(format!("{path}:{}: the anchor `{anchor}` is there twice", starts[1] + 1));
                }
            }
        }
    };
    let is_shown = |line: &&str| mark(line, START).is_none() && mark(line, END).is_none();
    let shown: Vec<(usize, &str)> = (start..end)
        .zip(&lines[start..end])
        .map(|(at, line)| (at, *line))
        .filter(|(_, line)| is_shown(line))
        .collect();
    let is_blank = |(_, line): &&(usize, &str)| line.trim().is_empty();
    let skipped = shown.iter().take_while(is_blank).count();
    let trailing = shown.iter().rev().take_while(is_blank).count();
    if skipped == shown.len() {
        return Err(format!(
            "{}: nothing is in it",
            anchor.map_or(path.to_owned(), |anchor| format!("{path}:{anchor}"))
        ));
    }
    let shown = &shown[skipped..shown.len() - trailing];
    Ok(Listing {
        path: path.to_owned(),
        anchor: anchor.map(str::to_owned),
        first: shown[0].0 + 1,
        last: shown[shown.len() - 1].0 + 1,
        text: without_indentation(shown),
        language: language(path),
    })
}

fn positions(lines: &[&str], word: &str, anchor: &str) -> Vec<usize> {
    lines.iter().enumerate().filter(|(_, line)| mark(line, word) == Some(anchor)).map(|(at, _)| at).collect()
}

/// The name after `ANCHOR:` or `ANCHOR_END:`. The words must stand in a comment, so that a string that speaks of anchors
/// is none.
fn mark<'a>(line: &'a str, word: &str) -> Option<&'a str> {
    let line = line.trim_start();
    let comment =
        ["//", "#", "--", ";", "/*", "<!--"].into_iter().find_map(|sign| line.strip_prefix(sign))?;
    comment.trim_start_matches(['/', '!']).trim_start().strip_prefix(word)?.split_whitespace().next()
}

fn without_indentation(lines: &[(usize, &str)]) -> String {
    let indentation = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let full = lines.iter().filter(|(_, line)| !line.trim().is_empty());
    let common = full.map(|(_, line)| indentation(line)).min().unwrap_or(0);
    let mut text = String::new();
    for (_, line) in lines {
        text.push_str(line.get(common..).unwrap_or_default().trim_end());
        text.push('\n');
    }
    text
}

fn language(path: &str) -> &'static str {
    match Path::new(path).extension().and_then(|extension| extension.to_str()).unwrap_or_default() {
        "rs" => "rust,ignore",
        "cu" | "cuh" | "cpp" | "h" => "cpp",
        "c" => "c",
        "py" => "python",
        "toml" => "toml",
        "sh" => "bash",
        "json" => "json",
        "yml" | "yaml" => "yaml",
        // The highlighter knows no PTX, and a word that it does not know is an error in the console.
        _ => "text",
    }
}

fn missing(place: &str, anchor: &str, known: &[String]) -> String {
    let known =
        if known.is_empty() { "it has none".to_owned() } else { format!("it has {}", known.join(", ")) };
    format!("{place} has no anchor `{anchor}`; {known}")
}

fn relative(root: &Root, path: &Path) -> String {
    path.strip_prefix(&root.path).unwrap_or(path).to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "\
use x;
// ANCHOR: outer

    fn f() {
        // ANCHOR: inner
        let a = 1;

            let b = 2;
        // ANCHOR_END: inner
    }
// ANCHOR_END: outer
";

    #[test]
    fn an_anchor_loses_its_indentation() {
        let listing = cut("a.rs", SOURCE, Some("inner")).expect("an anchor");
        assert_eq!(listing.text, "let a = 1;\n\n    let b = 2;\n");
        assert_eq!((listing.first, listing.last), (6, 8));
        assert_eq!(listing.place(), "a.rs:6–8");
    }

    #[test]
    fn nested_marks_are_not_shown() {
        let listing = cut("a.rs", SOURCE, Some("outer")).expect("an anchor");
        assert_eq!(listing.text, "fn f() {\n    let a = 1;\n\n        let b = 2;\n}\n");
        assert_eq!(listing.first, 4);
    }

    #[test]
    fn a_whole_file() {
        let listing = cut("a.py", "# ANCHOR: add\nx = 1\n# ANCHOR_END: add\ny = 2\n", None).expect("a file");
        assert_eq!((listing.text.as_str(), listing.language), ("x = 1\ny = 2\n", "python"));
        assert_eq!(listing.place(), "a.py");
    }

    #[track_caller]
    fn fails(text: &str, why: &str) {
        let error = cut("a.rs", text, Some("x")).expect_err(text);
        assert!(error.contains(why), "{error}");
    }

    #[test]
    fn anchors_that_are_no_good() {
        fails("// ANCHOR: y\na\n// ANCHOR_END: y\n", "a.rs has no anchor `x`; it has y");
        fails("a\n", "it has none");
        fails("// ANCHOR: x\na\n", "a.rs:1: the anchor `x` needs one `ANCHOR_END: x`");
        fails("// ANCHOR_END: x\n// ANCHOR: x\na\n", "a.rs:2: the anchor `x` needs one");
        fails(
            "// ANCHOR: x\na\n// ANCHOR_END: x\n// ANCHOR: x\nb\n// ANCHOR_END: x\n",
            "a.rs:4: the anchor `x` is there twice",
        );
        fails("// ANCHOR: x\n\n// ANCHOR_END: x\n", "nothing is in it");
        fails("let s = \"// ANCHOR: x\";\n", "no anchor");
        fails("// ANCHOR: xx\na\n// ANCHOR_END: xx\n", "no anchor `x`; it has xx");
    }
}
