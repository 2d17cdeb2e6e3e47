//! How far records can be trusted, in words, and the head of a chapter's page.

use std::fmt::Write as _;

use record::{Record, Status, format};

use super::{Shown, StateInput, escape};
use crate::records::State;

/// The head of a chapter's page: the command that runs it, the time it took, whose records are shown, a Run button that the
/// server's script brings to life (`<button data-run="ch01-raw-kernel" hidden>`).
pub fn state_block(input: &StateInput<'_>) -> String {
    let StateInput { chapter, short, .. } = input;
    let mut html =
        format!("<aside class=\"lab-head\" data-chapter=\"{}\" aria-label=\"Records\">\n", escape(chapter));
    let _ = writeln!(
        html,
        "<p class=\"lab-command\"><code>cargo book run {}</code> <button type=\"button\" class=\"lab-run\" data-run=\"{}\" hidden>Run</button></p>",
        escape(short),
        escape(chapter)
    );
    if input.heavy {
        html += "<p class=\"lab-note\">This chapter is heavy: it runs only when it is asked for.</p>\n";
    }
    html += "<ul class=\"lab-records\">";
    for shown in &input.recorded {
        let _ = write!(html, "<li>recorded: {}{}</li>", source(shown), took(shown.record));
    }
    match &input.own {
        Some(own) => {
            let _ = write!(html, "<li class=\"own\">yours: {}{}</li>", source(own), took(own.record));
        }
        None => html += "<li class=\"own\">yours: <span class=\"lab-state missing\">not run</span></li>",
    }
    html += "</ul>\n";
    for shown in input.recorded.iter().chain(&input.own) {
        html += &message(&shown.state);
    }
    html += "</aside>\n";
    html
}

/// `H200 · driver 580 · 2026-12-03 · fresh`.
pub(super) fn source(shown: &Shown<'_>) -> String {
    let mut parts = Vec::new();
    match shown.record {
        Some(record) => {
            let provenance = &record.provenance;
            parts.push(escape(device(record)));
            if let Some(major) = provenance.driver.split('.').next().filter(|major| !major.is_empty()) {
                parts.push(format!("driver {}", escape(major)));
            }
            let day = provenance.date.split('T').next().unwrap_or_default();
            parts.push(format!("<time datetime=\"{}\">{}</time>", escape(&provenance.date), escape(day)));
        }
        None => parts.push(escape(shown.slug)),
    }
    parts.push(word(&shown.state));
    parts.join(" · ")
}

/// The device as a page calls it: without the maker's name, which every one of them has.
pub(super) fn device(record: &Record) -> &str {
    let name = record.provenance.device.as_str();
    name.strip_prefix("NVIDIA ").unwrap_or(name)
}

/// A state as a word with a class; the class gives a colour, the word says it alone.
pub(super) fn word(state: &State) -> String {
    let (class, text) = match state {
        State::Fresh => ("fresh", "fresh".to_owned()),
        State::Stale(changed) => ("stale", format!("stale ({})", changes(changed))),
        State::OtherHardware { ratio: Some(ratio), than } => {
            ("other", format!("other hardware (×{} of the {})", format::number(*ratio), without_maker(than)))
        }
        State::OtherHardware { ratio: None, than } => {
            ("other", format!("other hardware than the {}", without_maker(than)))
        }
        State::Running { cell, done, total } => ("running", format!("running {done}/{total}: {cell}")),
        State::Failed { cell, .. } => ("failed", format!("failed in {cell}")),
        State::Interrupted { cell } => ("interrupted", format!("stopped in {cell}")),
        State::Missing(reason) if reason.is_empty() => ("missing", "not run".to_owned()),
        State::Missing(reason) => ("missing", format!("not run: {reason}")),
    };
    format!("<span class=\"lab-state {class}\">{}</span>", escape(&text))
}

/// What needs more room than a word: the inputs that changed, the error with its causes.
pub(super) fn message(state: &State) -> String {
    match state {
        State::Stale(changed) if changed.len() > NAMED => {
            let mut html =
                String::from("<details class=\"lab-changed\"><summary>What changed since</summary><ul>");
            for change in changed {
                let _ = write!(html, "<li>{}</li>", escape(change));
            }
            html + "</ul></details>\n"
        }
        State::Failed { cell, message } => {
            format!(
                "<pre class=\"lab-error\" role=\"note\">{}: {}</pre>\n",
                escape(cell),
                super::lines(message.trim_end())
            )
        }
        _ => String::new(),
    }
}

/// How many changed inputs stand in the line itself.
const NAMED: usize = 2;

fn changes(changed: &[String]) -> String {
    let named = changed.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    match changed.len().saturating_sub(NAMED) {
        0 => named,
        more => format!("{named} and {more} more"),
    }
}

fn without_maker(device: &str) -> &str {
    device.strip_prefix("NVIDIA ").unwrap_or(device)
}

fn took(record: Option<&Record>) -> String {
    match record.map(|record| (&record.status, record.provenance.seconds)) {
        Some((Status::Complete, seconds)) if seconds > 0.0 => {
            format!(" · took {}", format::quantity(seconds, "s"))
        }
        _ => String::new(),
    }
}
