//! A compiler's message with the line that it is about.
//!
//! NVRTC names a file and a line, and no column. Where the message quotes a word of that line, the caret stands under the
//! word; else the whole line is underlined.

/// Adds to each message of a log the line of the source, and a mark under what the message is about.
///
/// `file` is what the log calls the source. Lines that name no place in it are left as they are.
pub fn explain(log: &str, file: &str, source: &str) -> String {
    let mut text = String::new();
    for line in log.lines().filter(|line| !is_echo(line, source)) {
        text.push_str(line.trim_end());
        text.push('\n');
        if let Some((number, message)) = place(line, file)
            && let Some(shown) = number.checked_sub(1).and_then(|index| source.lines().nth(index))
        {
            let margin = number.to_string();
            let blank = " ".repeat(margin.len());
            text.push_str(&format!(
                "{blank} |\n{margin} | {shown}\n{blank} | {}\n",
                mark(shown, message)
            ));
        }
    }
    text
}

/// The line number and the message of `file(12): error: …`.
fn place<'a>(line: &'a str, file: &str) -> Option<(usize, &'a str)> {
    let (number, message) =
        line.trim_start().strip_prefix(file)?.strip_prefix('(')?.split_once("): ")?;
    Some((number.parse().ok()?, message))
}

/// NVRTC repeats the line itself, with a caret that stands at its beginning or end: ours replaces both.
fn is_echo(line: &str, source: &str) -> bool {
    let words = line.trim();
    words == "^"
        || (line.starts_with("  ")
            && !words.is_empty()
            && source.lines().any(|shown| shown.trim() == words))
}

/// Spaces and carets under what a message quotes, or under all of the line.
fn mark(line: &str, message: &str) -> String {
    let indent = line.chars().take_while(|letter| letter.is_whitespace()).count();
    let quoted = message.split('"').skip(1).step_by(2);
    let found = quoted
        .filter(|word| !word.is_empty())
        .find_map(|word| find_word(line, word).map(|at| (at, word)));
    let (start, width) = match found {
        // What is expected is what is not there: it was missed at the line's first word.
        _ if message.starts_with("error: expected") => (indent, 1),
        Some((at, word)) => (line[..at].chars().count(), word.chars().count()),
        None => (indent, line.trim().chars().count()),
    };
    // A tab stays a tab, so that the mark stands below its word in every terminal.
    let indent: String =
        line.chars().take(start).map(|letter| if letter == '\t' { '\t' } else { ' ' }).collect();
    indent + &"^".repeat(width.max(1))
}

/// Where a word stands in a line, not as a part of a longer one.
fn find_word(line: &str, word: &str) -> Option<usize> {
    let is_letter = |letter: char| letter.is_alphanumeric() || letter == '_';
    line.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = line[..at].chars().next_back();
        let behind = line[at + word.len()..].chars().next();
        let is_free = |neighbour: Option<char>, own: Option<char>| {
            !(own.is_some_and(is_letter) && neighbour.is_some_and(is_letter))
        };
        is_free(before, word.chars().next()) && is_free(behind, word.chars().next_back())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str =
        "__global__ void f(float* c) {\n\tint in = 0, i = blockIdx.x;\n    c[i] = a;\n}\n";

    #[test]
    fn the_caret_stands_under_the_word_that_the_message_quotes() {
        let log = "k.cu(3): error: identifier \"a\" is undefined\n      c[i] = a;\n             ^\n\n1 error detected.\n";
        assert_eq!(
            explain(log, "k.cu", SOURCE),
            "k.cu(3): error: identifier \"a\" is undefined\n  |\n3 |     c[i] = a;\n  |            ^\n\n1 error detected.\n"
        );
    }

    #[test]
    fn a_part_of_a_longer_word_is_not_it_and_tabs_stay() {
        let text = explain("k.cu(2): error: \"i\" is wrong", "k.cu", SOURCE);
        assert!(text.ends_with("\n  | \t            ^\n"), "{text:?}");
    }

    #[test]
    fn without_a_word_the_line_is_underlined() {
        let log = "k.cu(3): error: expression must be a modifiable lvalue";
        let text = explain(log, "k.cu", "\n\n  x y\n");
        assert!(text.ends_with("3 |   x y\n  |   ^^^\n"), "{text:?}");
    }

    #[test]
    fn what_is_expected_is_missing_before_the_first_word() {
        let text = explain("k.cu(3): error: expected a \";\"", "k.cu", "\n\n  x y;\n");
        assert!(text.ends_with("3 |   x y;\n  |   ^\n"), "{text:?}");
    }

    #[test]
    fn what_names_no_line_of_the_source_is_left_alone() {
        for log in [
            "k.cu(99): error: no such line\n",
            "other.h(1): error: x\n",
            "k.cu(x): error\n",
            "k.cu(0): e\n",
        ] {
            assert_eq!(explain(log, "k.cu", SOURCE), log);
        }
        assert_eq!(explain("", "k.cu", SOURCE), "");
    }
}
