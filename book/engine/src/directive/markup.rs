//! Whether HTML can stand in a Markdown page: balanced tags, quoted attributes, no blank line.

/// Elements without content.
const VOID: [&str; 9] = ["br", "col", "hr", "img", "input", "link", "meta", "source", "wbr"];

/// Checks a block of HTML or SVG.
///
/// # Errors
/// Says what is wrong with it.
pub fn well_formed(html: &str) -> Result<(), String> {
    if let Some(line) = html.trim_end().lines().position(|line| line.trim().is_empty()) {
        return Err(format!("line {} is blank", line + 1));
    }
    let mut open: Vec<&str> = Vec::new();
    let mut rest = html;
    while let Some(start) = rest.find(['<', '&']) {
        let at = &rest[start..];
        if let Some(after) = at.strip_prefix('&') {
            let known = after.split_once(';').is_some_and(|(name, _)| {
                name.len() <= 8
                    && !name.is_empty()
                    && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '#')
            });
            if !known {
                return Err("a bare &".to_owned());
            }
            rest = after;
            continue;
        }
        if let Some(comment) = at.strip_prefix("<!--") {
            let (_, after) = comment.split_once("-->").ok_or("a comment is not closed")?;
            rest = after;
            continue;
        }
        let end = tag_end(at)?;
        let tag = &at[1..end];
        rest = &at[end + 1..];
        if let Some(name) = tag.strip_prefix('/') {
            match open.pop() {
                Some(opened) if opened == name.trim() => {}
                Some(opened) => return Err(format!("</{name}> closes <{opened}>")),
                None => return Err(format!("</{name}> closes nothing")),
            }
            continue;
        }
        let name = tag.split(|c: char| c.is_whitespace() || c == '/').next().unwrap_or_default();
        if !name.starts_with(|c: char| c.is_ascii_alphabetic()) {
            return Err("a bare <".to_owned());
        }
        if matches!(name, "script" | "style") {
            // Their content is no markup.
            let close = format!("</{name}>");
            let (_, after) =
                rest.split_once(close.as_str()).ok_or_else(|| format!("<{name}> is not closed"))?;
            rest = after;
        } else if !tag.ends_with('/') && !VOID.contains(&name) {
            open.push(name);
        }
    }
    match open.pop() {
        Some(name) => Err(format!("<{name}> is not closed")),
        None => Ok(()),
    }
}

/// The place of the `>` that closes the tag, outside of quotes.
fn tag_end(text: &str) -> Result<usize, String> {
    let mut quote = None;
    for (at, c) in text.char_indices().skip(1) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), '<') => return Err("a bare < in an attribute".to_owned()),
            (Some(_), _) => {}
            (None, '"' | '\'') => quote = Some(c),
            (None, '>') => return Ok(at),
            (None, '<') => break,
            (None, _) => {}
        }
    }
    Err("a tag is not closed".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_well_formed() {
        for html in [
            "text",
            "<div class=\"a > b\">x<br>y <img src=\"a\"/></div>",
            "<svg viewBox=\"0 0 1 1\">\n<path d=\"M0 0\"/>\n</svg>\n",
            "<details><summary>a &amp; b &#39;</summary></details>",
            "<script>if (a < b && c) {}</script>",
            "<input type=\"radio\" checked><label>a</label>",
        ] {
            assert_eq!(well_formed(html), Ok(()), "{html}");
        }
    }

    #[test]
    fn what_is_not() {
        for (html, why) in [
            ("<p>a\n\nb</p>", "line 2 is blank"),
            ("<p>", "<p> is not closed"),
            ("</p>", "</p> closes nothing"),
            ("<b><i></b></i>", "</b> closes <i>"),
            ("a & b", "a bare &"),
            ("a < b", "a tag is not closed"),
            ("<p title=\"<b>\"></p>", "a bare < in an attribute"),
            ("<script>a", "<script> is not closed"),
        ] {
            assert_eq!(well_formed(html).unwrap_err(), why, "{html}");
        }
    }
}
