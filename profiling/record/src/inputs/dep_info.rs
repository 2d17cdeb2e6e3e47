//! Cargo's dep-info: the makefile rule beside a program that names every source it was built from.

use std::path::PathBuf;

/// The files that a dep-info text names, in its order.
pub fn dep_info(text: &str) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for line in text.lines() {
        // `target: source source`. A path with a colon and a space would need escapes that Cargo does not write either.
        let Some((_, sources)) = line.split_once(": ") else { continue };
        let mut file = String::new();
        let mut characters = sources.chars();
        while let Some(character) = characters.next() {
            match character {
                '\\' => file.extend(characters.next()),
                ' ' => push(&mut file, &mut files),
                _ => file.push(character),
            }
        }
        push(&mut file, &mut files);
    }
    files
}

fn push(file: &mut String, files: &mut Vec<PathBuf>) {
    if !file.is_empty() {
        files.push(PathBuf::from(std::mem::take(file)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escaped_spaces_belong_to_the_name() {
        let text = "/t/debug/ch01: /r/my\\ books/lib.rs /r/main.rs\n\n/t/debug/other: /r/x.cu\n";
        let files: Vec<String> = dep_info(text).iter().map(|path| path.display().to_string()).collect();
        assert_eq!(files, ["/r/my books/lib.rs", "/r/main.rs", "/r/x.cu"]);
    }
}
