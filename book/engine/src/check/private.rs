//! What says whose machine it was: absolute paths, the user's and the host's name, a GPU's serial identity.

use serde_json::Value;

/// Places that are the same on every machine of a kind, and so say nothing of whose it is.
const COMMON: [&str; 9] =
    ["/usr/", "/lib/", "/lib64/", "/bin/", "/etc/", "/opt/nvidia/", "/proc/", "/sys/", "/dev/"];

/// Names that must not stand in a record.
#[derive(Clone, Debug, Default)]
pub struct Machine {
    /// User names and host names.
    pub names: Vec<String>,
}

impl Machine {
    /// The machine and user that we run as. `root` and `localhost` say nothing.
    pub fn this() -> Machine {
        let user = ["USER", "LOGNAME"].into_iter().filter_map(|name| std::env::var(name).ok());
        let host = std::fs::read_to_string("/proc/sys/kernel/hostname").ok();
        let names = user.chain(host).map(|name| name.trim().to_owned());
        Machine {
            names: names.filter(|name| name.len() >= 3 && name != "root" && name != "localhost").collect(),
        }
    }
}

/// What is private in a record, one sentence each.
pub fn private(record: &Value, machine: &Machine) -> Vec<String> {
    let mut found = Vec::new();
    visit(record, "", &mut |place, text| {
        for line in text.lines() {
            if let Some(path) = absolute_path(line) {
                found.push(format!("{place} holds the absolute path {path}"));
            }
            if let Some(name) = machine.names.iter().find(|name| has_word(line, name)) {
                found.push(format!("{place} holds the name of this machine or its user, {name}"));
            }
            if has_gpu_identity(line) {
                found.push(format!("{place} holds a GPU's UUID"));
            }
        }
    });
    found.sort();
    found.dedup();
    found
}

fn visit(value: &Value, place: &str, see: &mut impl FnMut(&str, &str)) {
    match value {
        Value::String(text) => see(place, text),
        Value::Array(items) => items.iter().for_each(|item| visit(item, place, see)),
        Value::Object(fields) => {
            for (name, value) in fields {
                see(place, name);
                let inner = if place.is_empty() { name.clone() } else { format!("{place}.{name}") };
                visit(value, &inner, see);
            }
        }
        _ => {}
    }
}

/// The first absolute path of two parts or more, outside of [`COMMON`] places.
fn absolute_path(line: &str) -> Option<&str> {
    let delimiter = |c: char| c.is_whitespace() || "\"'`()[]{}<>=,;|".contains(c);
    for word in line.split(delimiter) {
        // `file:/home/x` and `-I/home/x` as well as `/home/x`.
        let Some(start) = word.char_indices().position(|(at, c)| c == '/' && starts_path(&word[..at])) else {
            continue;
        };
        let (start, _) = word.char_indices().nth(start)?;
        let path = &word[start..];
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        let is_path = parts.len() >= 2 && parts[0].starts_with(|c: char| c.is_ascii_alphabetic() || c == '.');
        if is_path && !COMMON.iter().any(|common| path.starts_with(common)) {
            return Some(path);
        }
    }
    // A drive's letter starts one on Windows.
    line.split(delimiter).find(|word| {
        let bytes = word.as_bytes();
        bytes.len() > 3 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':' && bytes[2] == b'\\'
    })
}

/// Whether a slash after `before` starts a path: at a word's start, after a colon, or after a compiler's flag.
fn starts_path(before: &str) -> bool {
    before.is_empty()
        || (before.ends_with(':') && !before.ends_with("http:") && !before.ends_with("https:"))
        || (before.len() == 2 && before.starts_with('-'))
}

fn has_word(line: &str, name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    line.match_indices(name)
        .any(|(at, _)| !line[..at].ends_with(is_part) && !line[at + name.len()..].starts_with(is_part))
}

/// `GPU-` or `MIG-` with eight hexadecimal digits and a hyphen.
fn has_gpu_identity(line: &str) -> bool {
    ["GPU-", "MIG-"].into_iter().any(|prefix| {
        line.match_indices(prefix).any(|(at, _)| {
            let rest = &line.as_bytes()[at + prefix.len()..];
            rest.len() > 8 && rest[..8].iter().all(u8::is_ascii_hexdigit) && rest[8] == b'-'
        })
    })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Option<&str>) {
        let machine = Machine { names: vec!["alice".into(), "node-17".into()] };
        let found = private(&json!({"facts": {"a": [text]}}), &machine);
        match expected {
            None => assert_eq!(found, Vec::<String>::new(), "{text}"),
            Some(expected) => {
                assert!(found.iter().any(|what| what.contains(expected)), "{text}: {found:?}")
            }
        }
    }

    #[test]
    fn what_is_private() {
        check("in /home/alice2/x", Some("facts.a holds the absolute path /home/alice2/x"));
        check("at \"/srv/repo/target/debug/ch01\"", Some("/srv/repo"));
        check("-I/tmp/x/y", Some("/tmp/x/y"));
        check("file:/scratch/x", Some("/scratch/x"));
        check("C:\\Users\\x", Some("C:\\Users"));
        check("by alice", Some("alice"));
        check("on node-17:", Some("node-17"));
        check("GPU-1a2b3c4d-0000-1111", Some("UUID"));
    }

    #[test]
    fn what_is_not() {
        for text in [
            "4 262 GB/s and/or more",
            "1 / 2 a/b/c chapters/ch01-raw-kernel/src/lib.rs",
            "https://example.org/a/b",
            "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
            "/proc/self/maps",
            "malice, alices, node-178",
            "GPU-bound",
            "a // comment",
            "/",
            "/s",
            "~/repo",
        ] {
            check(text, None);
        }
    }
}
