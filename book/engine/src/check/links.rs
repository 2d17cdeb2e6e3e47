//! Links of the built pages: to pages, files and anchors that exist, and to nothing that a page would load from elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context, Result};
use walkdir::WalkDir;

use crate::root::Root;
use crate::static_book::Problem;

/// Checks every page that has a source in `book/src`.
///
/// # Errors
/// When a page cannot be read.
pub(super) fn check(root: &Root, built: &Path) -> Result<Vec<Problem>> {
    let mut pages = BTreeMap::new();
    let source = root.book().join("src");
    for entry in WalkDir::new(built).sort_by_file_name() {
        let entry = entry.context("listing the built pages")?;
        let relative = entry.path().strip_prefix(built).unwrap_or(entry.path()).to_path_buf();
        if relative.extension().is_some_and(|extension| extension == "html") {
            let html = std::fs::read_to_string(entry.path())
                .with_context(|| format!("reading {}", relative.display()))?;
            pages.insert(relative, Built::read(&html));
        }
    }
    let mut problems = Vec::new();
    for (path, page) in &pages {
        let markdown = source.join(path).with_extension("md");
        let Ok(text) = std::fs::read_to_string(&markdown) else { continue };
        let file = root.relative(&markdown);
        let mut complain = |needle: &str, what: String| {
            problems.push(Problem { file: file.clone(), line: line_with(&text, needle), what });
        };
        for link in &page.links {
            if let Some(what) = wrong(link, path, &pages, built) {
                complain(&link.target, what);
            }
        }
        for directive in &page.directives {
            complain(directive, format!("`{directive}` was left as it is: it names what is not there"));
        }
    }
    Ok(problems)
}

/// What the check needs of a page.
#[derive(Default)]
struct Built {
    ids: BTreeSet<String>,
    links: Vec<Link>,
    /// Directives that nobody expanded.
    directives: Vec<String>,
}

struct Link {
    target: String,
    /// The browser loads it without being asked.
    loaded: bool,
}

impl Built {
    fn read(html: &str) -> Built {
        let mut built = Built::default();
        let mut code = 0usize;
        let mut rest = html;
        while let Some(start) = rest.find('<') {
            if code == 0
                && let Some(at) = rest[..start].find("{{#")
            {
                let directive = &rest[at..start];
                let end = directive.find("}}").map_or(directive.len(), |end| end + 2);
                built.directives.push(directive[..end].to_owned());
            }
            rest = &rest[start..];
            let Some(end) = rest.find('>') else { break };
            let tag = &rest[1..end];
            rest = &rest[end + 1..];
            let (name, attributes) = tag.split_once(char::is_whitespace).unwrap_or((tag, ""));
            match name {
                "code" | "pre" => code += 1,
                "/code" | "/pre" => code = code.saturating_sub(1),
                "script" | "style" => {
                    built.see(name, attributes);
                    rest = rest.find("</").map_or("", |end| &rest[end..]);
                }
                _ => built.see(name, attributes),
            }
        }
        built
    }

    fn see(&mut self, name: &str, text: &str) {
        let attribute = |wanted: &str| attribute(text, wanted);
        if let Some(id) = attribute("id") {
            self.ids.insert(id);
        }
        if let Some(target) = attribute("href") {
            let loaded =
                name == "link" && attribute("rel").is_none_or(|rel| rel != "canonical" && rel != "license");
            self.links.push(Link { target, loaded });
        }
        if let Some(target) = attribute("src") {
            self.links.push(Link { target, loaded: true });
        }
    }
}

/// The value of an attribute in a tag's text.
fn attribute(tag: &str, name: &str) -> Option<String> {
    for (at, _) in tag.match_indices(name) {
        let starts = at == 0 || tag[..at].ends_with(char::is_whitespace);
        let Some(value) = tag[at + name.len()..].strip_prefix('=').filter(|_| starts) else {
            continue;
        };
        let quote = value.chars().next()?;
        let value = if quote == '"' || quote == '\'' {
            value[1..].split(quote).next()?
        } else {
            value.split(char::is_whitespace).next()?
        };
        return Some(unescape(value));
    }
    None
}

fn wrong(link: &Link, page: &Path, pages: &BTreeMap<PathBuf, Built>, built: &Path) -> Option<String> {
    let target = link.target.as_str();
    let scheme = target.split_once(':').map(|(scheme, _)| scheme);
    let elsewhere = target.starts_with("//") || matches!(scheme, Some("http" | "https"));
    if elsewhere {
        return link.loaded.then(|| format!("the page loads {target} from another host"));
    }
    if scheme.is_some_and(|scheme| scheme.chars().all(|c| c.is_ascii_alphanumeric())) {
        return None;
    }
    let (path, anchor) = target.split_once('#').map_or((target, None), |(path, anchor)| (path, Some(anchor)));
    let path = path.split('?').next().unwrap_or_default();
    let file = if path.is_empty() {
        page.to_path_buf()
    } else {
        let folder = page.parent().unwrap_or(Path::new(""));
        let Some(file) = normal(&folder.join(percent_decoded(path))) else {
            return Some(format!("the link {target} leaves the book"));
        };
        if built.join(&file).is_dir() { file.join("index.html") } else { file }
    };
    let Some(linked) = pages.get(&file) else {
        return (!built.join(&file).is_file()).then(|| format!("the link {target} leads to no page or file"));
    };
    let anchor = anchor.filter(|anchor| !anchor.is_empty())?;
    (!linked.ids.contains(&percent_decoded(anchor)))
        .then(|| format!("the link {target}: that page has no such heading"))
}

/// A path without `.` and `..`, or none if it leaves the folder.
fn normal(path: &Path) -> Option<PathBuf> {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => normal.push(name),
            Component::ParentDir if normal.pop() => {}
            Component::CurDir => {}
            _ => return None,
        }
    }
    Some(normal)
}

fn percent_decoded(text: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&first, after)) = rest.split_first() {
        let hex = after.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        match hex.and_then(|hex| u8::from_str_radix(hex, 16).ok()) {
            Some(byte) if first == b'%' => {
                bytes.push(byte);
                rest = &after[2..];
            }
            _ => {
                bytes.push(first);
                rest = after;
            }
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn unescape(text: &str) -> String {
    text.replace("&quot;", "\"")
        .replace("&#39;", "'")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&")
}

/// The line of the page's source that speaks of it; 0 if none does.
fn line_with(text: &str, needle: &str) -> usize {
    let stem = needle.replace(".html", ".md");
    let place = text.lines().position(|line| line.contains(needle) || line.contains(&stem));
    place.map_or(0, |line| line + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_is_read() {
        let built = Built::read(
            "<h2 id=\"a\">x</h2><a href=\"b.html#c\">y</a><code>{{#lab val x}}</code>{{#include z}} more<script src='s.js'>\
             if (a < b) {}</script><img src=i.png>",
        );
        assert!(built.ids.contains("a"));
        let links: Vec<(&str, bool)> =
            built.links.iter().map(|link| (link.target.as_str(), link.loaded)).collect();
        assert_eq!(links, [("b.html#c", false), ("s.js", true), ("i.png", true)]);
        assert_eq!(built.directives, ["{{#include z}}"]);
    }

    #[test]
    fn targets() {
        let folder = std::env::temp_dir();
        let mut pages = BTreeMap::new();
        pages.insert(PathBuf::from("a.html"), Built::read("<p id=\"x y\">"));
        pages.insert(PathBuf::from("sub/b.html"), Built::default());
        let wrong = |target: &str, loaded: bool| {
            let link = Link { target: target.to_owned(), loaded };
            wrong(&link, Path::new("sub/b.html"), &pages, &folder)
        };
        assert_eq!(wrong("../a.html", false), None);
        assert_eq!(wrong("../a.html#x%20y", false), None);
        assert_eq!(wrong("https://example.org", false), None);
        assert_eq!(wrong("mailto:a@b", false), None);
        assert_eq!(wrong("#", false), None);
        assert!(wrong("../a.html#z", false).is_some_and(|what| what.contains("no such heading")));
        assert!(wrong("a.html", false).is_some_and(|what| what.contains("no page or file")));
        assert!(wrong("../../a.html", false).is_some_and(|what| what.contains("leaves the book")));
        assert!(wrong("https://example.org/x.js", true).is_some_and(|what| what.contains("another host")));
        assert!(wrong("//example.org/x.js", true).is_some_and(|what| what.contains("another host")));
    }
}
