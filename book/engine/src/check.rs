//! `cargo book check`: everything that a page promises, judged without a GPU.

mod links;
mod private;
mod prose;

use anyhow::{Context, Result};
use record::inputs;

use crate::records::{EMULATED, GPU, Loaded, Records, State};
use crate::root::{Chapter, Root};
use crate::static_book::{self, Problem};

pub use private::{Machine, private};

/// What is wrong, in the order of files and lines: directives that do not resolve, claims that do not hold, links that lead
/// nowhere, measured numbers typed in prose, records that are stale, incomplete, at odds with each other or say whose machine it
/// was, chapters without a page or a record.
///
/// # Errors
/// When the book cannot be built at all.
pub fn check(root: &Root) -> Result<Vec<Problem>> {
    let built = tempfile::tempdir().context("making a temporary folder")?;
    let options = static_book::Options { destination: built.path().to_owned(), problems_on_page: true };
    let mut problems = static_book::build(root, &options)?;
    problems.extend(links::check(root, built.path())?);
    problems.extend(prose::check(root)?);
    let records = Records::read(root)?;
    let machine = Machine::this();
    for loaded in records.committed() {
        problems.extend(check_record(root, loaded, &machine));
    }
    let summary =
        std::fs::read_to_string(root.book().join("src/SUMMARY.md")).context("reading SUMMARY.md")?;
    for chapter in &root.chapters {
        problems.extend(check_chapter(root, chapter, &records, &summary));
        problems.extend(compare_exact(root, chapter, &records));
    }
    problems.sort();
    problems.dedup();
    Ok(problems)
}

fn check_record(root: &Root, loaded: &Loaded, machine: &Machine) -> Vec<Problem> {
    let mut problems = Vec::new();
    let file = root.relative(&loaded.path);
    let mut complain = |what: String| problems.push(Problem { file: file.clone(), line: 0, what });
    match &loaded.state {
        State::Fresh => {}
        State::Stale(changes) => {
            let device = if loaded.slug == EMULATED { " --device emulated" } else { "" };
            let again = format!("cargo book record {}{device}", loaded.chapter);
            complain(format!("stale, because {}: `{again}` makes it again", changes.join(", ")));
        }
        state => complain(state.to_string()),
    }
    let Ok(record) = &loaded.record else { return problems };
    if record.chapter != loaded.chapter {
        complain(format!("it is a record of {}", record.chapter));
    }
    if !root.chapters.iter().any(|chapter| chapter.name == loaded.chapter) {
        complain("there is no such chapter any more".to_owned());
    }
    let slug = record::slug(&record.provenance.device, record.provenance.emulated);
    if slug != loaded.slug {
        complain(format!("it was recorded on `{}`, so it belongs into {slug}", record.provenance.device));
    }
    if record.quick() {
        complain("it was made with --quick: record it at full size".to_owned());
    }
    for cell in record.all_cells() {
        if let Err(error) = cell.check() {
            complain(format!("cell {}: {error:#}", cell.id));
        }
    }
    if let Some(profile) = &record.profile {
        for change in inputs::changes(&root.path, &loaded.chapter, &profile.inputs) {
            complain(format!("its profile is stale, because {change}"));
        }
    }
    match serde_json::to_value(record) {
        Ok(json) => private(&json, machine).into_iter().for_each(complain),
        Err(error) => complain(error.to_string()),
    }
    problems
}

/// What is called exact is the same in the records of every device.
fn compare_exact(root: &Root, chapter: &Chapter, records: &Records) -> Vec<Problem> {
    let of_chapter = records.committed().filter(|loaded| loaded.chapter == chapter.name);
    let readable: Vec<_> =
        of_chapter.filter_map(|loaded| Some((loaded, loaded.record.as_ref().ok()?))).collect();
    let Some((_, emulated)) = readable.iter().find(|(loaded, _)| loaded.slug == EMULATED) else {
        return Vec::new();
    };
    let others = readable.iter().filter(|(loaded, _)| loaded.slug != EMULATED);
    let differences = others.flat_map(|(loaded, record)| {
        record.exact_differences(emulated).into_iter().map(|difference| Problem {
            file: root.relative(&loaded.path),
            line: 0,
            what: format!("it calls exact what differs from the {EMULATED} record: {difference}"),
        })
    });
    differences.collect()
}

fn check_chapter(root: &Root, chapter: &Chapter, records: &Records, summary: &str) -> Vec<Problem> {
    let mut problems = Vec::new();
    let mut complain = |file: String, what: String| problems.push(Problem { file, line: 0, what });
    let page = chapter.page();
    if !root.book().join("src").join(&page).is_file() {
        complain(format!("book/src/{page}"), format!("{} has no page", chapter.name));
    } else if !summary.contains(&format!("({page})")) && !summary.contains(&format!("(./{page})")) {
        complain("book/src/SUMMARY.md".to_owned(), format!("{page} is not in it"));
    }
    // A heavy rung may need what the emulated GPU has not; a draft has not met a GPU yet.
    for (slug, needed) in [(GPU, !chapter.draft), (EMULATED, !chapter.heavy)] {
        if needed && records.get(slug, &chapter.name).is_none() {
            let file = root.relative(&record::path(&root.records().join(slug), &chapter.name));
            complain(file, format!("missing: {} has no {slug} record", chapter.name));
        }
    }
    problems
}
