//! Two kernel steps, as a diff: what the next step changes is the lesson.

use similar::TextDiff;

use crate::code::Listing;

/// A listing of this many lines is shown whole, so that the reader sees the change in its place.
const SHOWN_WHOLE: usize = 40;

/// A unified diff from one listing to the other, without file names.
pub fn unified(before: &Listing, after: &Listing) -> Result<String, String> {
    if before.text == after.text {
        return Err(format!(
            "{} and {} are equal: there is no difference to show",
            before.place(),
            after.place()
        ));
    }
    let lines = before.text.lines().count().max(after.text.lines().count());
    let context = if lines <= SHOWN_WHOLE { lines } else { 3 };
    let diff = TextDiff::from_lines(&before.text, &after.text);
    let unified = diff.unified_diff().context_radius(context).to_string();
    let without_single_header = unified.matches("\n@@").count() == 0 && unified.starts_with("@@");
    match unified.split_once('\n') {
        // One hunk that starts at the top needs no line numbers.
        Some((_, body)) if without_single_header && lines <= SHOWN_WHOLE => Ok(body.to_owned()),
        _ => Ok(unified),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listing(text: &str) -> Listing {
        Listing { path: "a.cu".into(), anchor: None, first: 1, last: 2, text: text.into(), language: "cpp" }
    }

    #[test]
    fn a_short_kernel_is_shown_whole() {
        let diff = unified(&listing("a\nb\nc\n"), &listing("a\nB\nc\n")).expect("a difference");
        assert_eq!(diff, " a\n-b\n+B\n c\n");
    }

    #[test]
    fn a_long_one_in_hunks() {
        let lines: Vec<String> = (0..60).map(|line| format!("line {line}\n")).collect();
        let before = lines.concat();
        let after = before.replace("line 30\n", "line thirty\n");
        let diff = unified(&listing(&before), &listing(&after)).expect("a difference");
        assert!(diff.starts_with("@@ -28,7 +28,7 @@\n line 27\n"), "{diff}");
        assert!(diff.contains("-line 30\n+line thirty\n"), "{diff}");
    }

    #[test]
    fn equal_steps_are_an_error() {
        assert!(unified(&listing("a\n"), &listing("a\n")).expect_err("equal").contains("equal"));
    }
}
