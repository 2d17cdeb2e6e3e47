//! What stands in a sentence: numbers from the records, and statements that the records must bear out.

use record::format;

use super::{Page, checked, inline};
use crate::claim;
use crate::html::escape;
use crate::reference::{Found, Origin, Reference, resolve};

/// `val REFERENCE`: the number with its unit, or the word.
pub(super) fn val(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let reference = Reference::parse(arguments)?;
    let (shown, mut about, origin) = match resolve(&reference, page.root, page.records)? {
        Found::Text { text, origin } => (text, String::new(), origin),
        Found::Number { point, unit, origin } => {
            if point.value.is_none() {
                return Err(format!(
                    "`{reference}` has no value in the {} record: a time that needs a GPU",
                    origin.slug
                ));
            }
            let spread = format::spread(point, &unit);
            let about =
                spread.map(|spread| format!("20 to 80 % of samples: {spread} · ")).unwrap_or_default();
            (format::point(point, &unit), about, origin)
        }
    };
    about.push_str(&format!("{reference} · {}", source(&origin)));
    checked(format!("<span class=\"lab-val\" title=\"{}\">{}</span>", inline(&about), inline(&shown)))
}

/// `claim STATEMENT`: a small tick, with the statement and its numbers folded under it.
pub(super) fn claim(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let verdict =
        claim::judge(arguments, |reference| resolve(reference, page.root, page.records), format::quantity)?;
    if !verdict.holds {
        return Err(format!("the records do not bear out `{arguments}`: {} is false", verdict.numbers));
    }
    let sources: Vec<String> = verdict.origins.iter().map(source).collect();
    checked(format!(
        "<details class=\"lab-claim\"><summary title=\"This statement is checked against the records\">\
         <span aria-hidden=\"true\">✓</span><span class=\"lab-claim-word\"> checked</span></summary>\
         <p><code>{}</code></p><p>{}</p><p class=\"lab-source\">{}</p></details>",
        escape(arguments),
        escape(&verdict.numbers),
        escape(&sources.join("; "))
    ))
}

fn source(origin: &Origin) -> String {
    format!("{}, {}", origin.device, origin.date)
}
