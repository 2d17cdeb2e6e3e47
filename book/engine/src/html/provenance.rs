//! Everything that is known about where figures come from, and the figures themselves as data.

use std::fmt::Write as _;

use record::{InputKind, Output, Provenance, Record, format};

use super::{Shown, escape};

/// One small disclosure: the whole provenance of each record and the outputs as they are stored.
pub(super) fn disclosure(shown: &[&Shown<'_>]) -> String {
    let mut html = String::from("<details class=\"lab-about\"><summary>Where this comes from</summary>\n");
    for shown in shown {
        let Some(record) = shown.record else { continue };
        let whose = if shown.slug == crate::records::LOCAL { "yours" } else { "recorded" };
        let _ = writeln!(html, "<h4>{whose}: {}</h4>", escape(&record.provenance.device));
        html += &facts(record);
        html += &raw(&shown.outputs, whose);
    }
    html += "</details>\n";
    html
}

fn facts(record: &Record) -> String {
    let Provenance {
        device: _,
        emulated,
        compute_capability,
        cuda_driver,
        driver,
        facts,
        host_cpu,
        os,
        rustc,
        cudarc,
        opt_level,
        nvtx,
        date,
        commit,
        dirty,
        arguments,
        seconds,
    } = &record.provenance;
    let mut html = String::from("<dl class=\"lab-facts\">");
    let mut fact = |name: &str, value: &str| {
        if !value.is_empty() {
            let _ = write!(html, "<div><dt>{}</dt><dd>{}</dd></div>", escape(name), escape(value));
        }
    };
    if *emulated {
        fact("emulated", "counts are exact, and there are no times");
    }
    fact("compute capability", compute_capability);
    fact("CUDA", cuda_driver);
    fact("driver", driver);
    for (name, value) in facts {
        fact(name, value);
    }
    fact("processor", host_cpu);
    fact("system", os);
    fact("rustc", rustc);
    fact("cudarc", cudarc);
    fact("opt-level", opt_level);
    fact("NVTX ranges", if *nvtx { "on" } else { "off" });
    fact("date", date);
    let commit_text = match (commit.get(..12).unwrap_or(commit), dirty) {
        ("", _) => String::new(),
        (commit, false) => commit.to_owned(),
        (commit, true) => format!("{commit}, with changes"),
    };
    fact("commit", &commit_text);
    fact("arguments", &arguments.join(" "));
    fact("took", &format::quantity(*seconds, "s"));
    for input in &record.inputs {
        let kind = match input.kind {
            InputKind::Source => "source",
            InputKind::Kernel => "kernel",
            InputKind::Timing => "timing",
            InputKind::Data => "data",
            InputKind::Parameter => "parameter",
            InputKind::Library => "library",
        };
        let hash = match input.kind {
            InputKind::Parameter | InputKind::Library => input.hash.as_str(),
            _ => input.hash.get(..12).unwrap_or(&input.hash),
        };
        fact(kind, &format!("{} {hash}", input.name));
    }
    html += "</dl>\n";
    html
}

/// The outputs as they are stored, as a link that needs no server: in the page's text they would fill the search index.
fn raw(outputs: &[&Output], whose: &str) -> String {
    let Ok(json) = serde_json::to_string_pretty(outputs) else { return String::new() };
    if outputs.is_empty() {
        return String::new();
    }
    format!(
        "<p class=\"lab-raw\"><a download=\"{whose}.json\" href=\"data:application/json,{}\">Raw data (JSON)</a></p>\n",
        percent_encoded(&json)
    )
}

fn percent_encoded(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 3 / 2);
    for byte in text.bytes() {
        match byte {
            b'A'..=b'Z'
            | b'a'..=b'z'
            | b'0'..=b'9'
            | b'-'
            | b'.'
            | b'_'
            | b'~'
            | b':'
            | b','
            | b'['
            | b']'
            | b'/' => {
                encoded.push(char::from(byte));
            }
            _ => encoded.push_str(&format!("%{byte:02X}")),
        }
    }
    encoded
}
