//! `exercise NAME`: the task, the code with its hole, hints and solution folded.

use super::Page;

/// `exercise NAME`.
pub(super) fn exercise(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let _ = (page, arguments);
    Err("not yet".to_owned())
}
