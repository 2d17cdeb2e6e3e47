//! Source on a page: anchors, diffs, tabs.

use super::Page;
use crate::code::{self, Listing};
use crate::html::escape;
use crate::{diff, tabs};

/// `code PLACE`.
pub(super) fn code(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let listing = code::listing(page.root, arguments)?;
    Ok(block("lab-code", &listing.text, listing.language, &source(page, &listing)))
}

/// `diff PLACE PLACE`.
pub(super) fn diff(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let [before, after] = arguments.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err(
            "`diff` takes two places, as in diff kernels/copy_01_scalar.cu kernels/copy_02_strided.cu"
                .to_owned(),
        );
    };
    let (before, after) = (code::listing(page.root, before)?, code::listing(page.root, after)?);
    let caption = format!("{} → {}", source(page, &before), source(page, &after));
    Ok(block("lab-code lab-diff", &diff::unified(&before, &after)?, "diff", &caption))
}

/// `tabs PLACE | PLACE`: radio buttons, so that it works with the keyboard and without scripts.
pub(super) fn tabs(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let tabs = tabs::tabs(page.root, arguments)?;
    let name = page.unique_id("lab-tabs");
    let mut html = format!(
        "<div class=\"lab-tabs\" role=\"group\" aria-label=\"The same step in {} languages\">\n",
        tabs.len()
    );
    for (place, tab) in tabs.iter().enumerate() {
        let checked = if place == 0 { " checked" } else { "" };
        let label = escape(&tab.label);
        html.push_str(&format!(
            "<input type=\"radio\" class=\"lab-tab-choice\" name=\"{name}\" id=\"{name}-{place}\"{checked}>\
             <label class=\"lab-tab-label\" for=\"{name}-{place}\">{label}</label>\n\
             <div class=\"lab-tab-panel\" role=\"group\" aria-label=\"{label}\">\n\n{}\n\n\
             <p class=\"lab-source\">{}</p>\n</div>\n",
            fence(&tab.listing.text, tab.listing.language),
            source(page, &tab.listing)
        ));
    }
    html.push_str("</div>");
    Ok(html)
}

/// A fenced block that no line of the text can close.
pub(super) fn fence(text: &str, language: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}", text.trim_end())
}

/// Where a listing comes from; a link where the repository can be read by others.
pub(super) fn source(page: &Page<'_>, listing: &Listing) -> String {
    let place = escape(&listing.place());
    match page.repository {
        Some(repository) => {
            let lines = listing.anchor.as_ref().map(|_| format!("#L{}-L{}", listing.first, listing.last));
            let address = format!("{repository}/blob/main/{}{}", listing.path, lines.unwrap_or_default());
            format!("<a href=\"{}\">{place}</a>", escape(&address))
        }
        None => place,
    }
}

fn block(class: &str, text: &str, language: &str, caption: &str) -> String {
    format!(
        "<div class=\"{class}\">\n\n{}\n\n<p class=\"lab-source\">{caption}</p>\n</div>",
        fence(text, language)
    )
}
