//! Records are published: what names the reader or the reader's machine is taken out of their texts.

use std::path::Path;

/// A text without the checkout's place, the reader's home folder and the place of Cargo's registry.
pub(crate) fn scrub(text: &str, root: Option<&Path>) -> String {
    let home = std::env::home_dir();
    scrub_with(text, root, home.as_deref())
}

fn scrub_with(text: &str, root: Option<&Path>, home: Option<&Path>) -> String {
    let mut text = without_registry(text);
    for (path, instead) in [(root, "."), (home, "~")] {
        // The root folder itself is in every path, and names nobody.
        if let Some(path) = path.and_then(Path::to_str).filter(|path| path.len() > 1) {
            text = text.replace(&format!("{path}/"), if instead == "." { "" } else { "~/" });
            text = text.replace(path, instead);
        }
    }
    text
}

/// Cuts `<anything>/registry/src/<index>/` off the paths of other people's crates: `cudarc-0.19.10/src/driver/result.rs`.
fn without_registry(text: &str) -> String {
    const MARK: &str = "/registry/src/";
    let mut kept = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(MARK) {
        let begin = rest[..at].rfind([' ', '\n', '"', '\'', '`', '(']).map_or(0, |before| before + 1);
        let index = at + MARK.len();
        let end = rest[index..].find('/').map_or(rest.len(), |slash| index + slash + 1);
        kept.push_str(&rest[..begin]);
        rest = &rest[end..];
    }
    kept.push_str(rest);
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_shortened_and_names_taken_out() {
        let scrubbed = scrub_with(
            "at /home/ada/ladder/chapters/x.rs:3, /home/ada/.cargo/registry/src/index-1/cudarc-0.19.10/src/lib.rs, \
             /home/ada/notes, in /home/ada/ladder",
            Some(Path::new("/home/ada/ladder")),
            Some(Path::new("/home/ada")),
        );
        assert_eq!(scrubbed, "at chapters/x.rs:3, cudarc-0.19.10/src/lib.rs, ~/notes, in .");
    }

    #[test]
    fn a_root_folder_is_left_alone() {
        assert_eq!(scrub_with("a / b", Some(Path::new("/")), None), "a / b");
    }
}
