//! What the emulated GPU executes, as a page: made from the table by which instructions are decoded.

use std::fmt::Write as _;

use crate::warp::instructions::{CHAPTERS, Entry, How};

/// The page, in Markdown.
pub fn scope() -> String {
    let mut text = String::from(
        "# What the emulated GPU executes\n\n\
         These are all instructions of PTX ISA 9.0, for programs of sm_75 to sm_90.\n\
         A program that has one which is not executed is refused when it is loaded: `CUDA_ERROR_NOT_SUPPORTED`, and the log names line and instruction.\n\
         `cargo run -p emulator -- --scope` prints this page, from the table by which the emulator decodes.\n",
    );
    for chapter in CHAPTERS {
        // Writing to a string cannot fail.
        let _written = write!(
            text,
            "\n## {}\n\n| instruction | executed | not executed |\n|---|---|---|\n",
            chapter.title
        );
        for entry in chapter.entries {
            let words: Vec<String> = entry.words.iter().map(|word| format!("`{word}`")).collect();
            let _written =
                writeln!(text, "| {} | {} | {} |", words.join(" "), executed(entry), entry.missing);
        }
    }
    text
}

fn executed(entry: &Entry) -> &'static str {
    match entry.how {
        How::Nobody => "no",
        _ if entry.missing.is_empty() => "yes",
        _ => "yes, but for",
    }
}
