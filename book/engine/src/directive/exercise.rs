//! `exercise CHAPTER NAME`: the task, the code with its hole, hints and solution folded.

use super::Page;
use super::listing::fence;
use crate::exercise::{Exercise, exercises};
use crate::html::escape;

/// `exercise CHAPTER NAME`.
pub(super) fn exercise(page: &Page<'_>, arguments: &str) -> Result<String, String> {
    let [chapter, name] = arguments.split_whitespace().collect::<Vec<_>>()[..] else {
        return Err("`exercise` takes a chapter and a name, as in exercise ch01 guard".to_owned());
    };
    let chapter = page.root.chapter(chapter).map_err(|error| format!("{error}"))?;
    let exercises = exercises(page.root, chapter.short()).map_err(|error| format!("{error:#}"))?;
    let Some(exercise) = exercises.iter().find(|exercise| exercise.name == name) else {
        let known: Vec<&str> = exercises.iter().map(|exercise| exercise.name.as_str()).collect();
        return Err(format!("{} has no exercise `{name}`; it has: {}", chapter.name, known.join(", ")));
    };
    let id = page.unique_id(&format!("exercise-{}-{name}", exercise.chapter));
    let Exercise { about, .. } = exercise;
    let hole = without_heading(&exercise.source(page.root, "cu")?);
    let solution = without_heading(&exercise.source(page.root, "solution.cu")?);
    let command = format!("cargo book exercise {} {name}", exercise.chapter);
    let mut html = format!(
        "<div class=\"lab-exercise\" id=\"{id}\">\n\
         <p class=\"lab-exercise-title\"><strong>Exercise {}: {}</strong></p>\n<p>{}</p>\n\n{}\n\n\
         <p class=\"lab-source\">{}</p>\n\n{}\n\n\
         <details><summary>What the check looks at</summary><p>{}</p></details>\n",
        about.number,
        escape(&about.title),
        escape(&about.task),
        fence(&hole, "cpp"),
        escape(&exercise.path("cu")),
        fence(&format!("$ {command}"), "console"),
        escape(&about.check),
    );
    for (place, hint) in about.hints.iter().enumerate() {
        html.push_str(&format!(
            "<details><summary>Hint {}</summary><p>{}</p></details>\n",
            place + 1,
            escape(hint)
        ));
    }
    html.push_str(&format!(
        "<details><summary>A solution</summary>\n\n{}\n\n</details>\n</div>",
        fence(&solution, "cpp")
    ));
    Ok(html)
}

/// The source without the comment at its top, which says what the page has said.
fn without_heading(source: &str) -> String {
    let lines: Vec<&str> =
        source.lines().skip_while(|line| line.starts_with("//") || line.trim().is_empty()).collect();
    lines.join("\n")
}
