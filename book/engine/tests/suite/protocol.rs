//! A stock mdBook starts us as a program: JSON in, JSON out.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use book::preprocess::preprocess;
use mdbook_driver::MDBook;
use mdbook_preprocessor::PreprocessorContext;
use mdbook_preprocessor::book::{Book, BookItem};

use crate::fixture::Fixture;

const PAGE: &str =
    "# Sample\n\n{{#lab code ch01-sample:add}}\n\nIt is {{#lab val ch01-sample.copies.rate[16]}}.\n";

/// What mdBook sends.
fn question(fixture: &Fixture) -> String {
    let book = MDBook::load(fixture.path().join("book")).expect("a book");
    let context = PreprocessorContext::new(book.root.clone(), book.config.clone(), "html".to_owned());
    serde_json::to_string(&(context, book.book)).expect("JSON")
}

fn ask(fixture: &Fixture, arguments: &[&str], question: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_book"))
        .arg("preprocess")
        .args(arguments)
        .current_dir(fixture.path().join("book"))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts");
    // A program that only answers `supports` may close its input first.
    let _ = child.stdin.take().expect("a pipe").write_all(question.as_bytes());
    child.wait_with_output().expect("the program ends")
}

fn only_page(book: &Book) -> &str {
    let chapters = book.iter().filter_map(|item| match item {
        BookItem::Chapter(chapter) => Some(chapter.content.as_str()),
        _ => None,
    });
    chapters.last().expect("a page")
}

#[test]
fn the_program_answers_as_the_library_does() {
    let fixture = Fixture::new(PAGE);
    let question = question(&fixture);
    let output = ask(&fixture, &[], &question);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let answered: Book = serde_json::from_slice(&output.stdout).expect("nothing but JSON");
    let mut inside = Vec::new();
    preprocess(question.as_bytes(), &mut inside).expect("an answer");
    let inside: Book = serde_json::from_slice(&inside).expect("JSON");
    assert_eq!(answered, inside);
    let page = only_page(&answered);
    assert!(page.contains("a + b") && page.contains("4\u{202f}000"), "{page}");
    assert!(!page.contains("{{#lab"), "{page}");
}

#[test]
fn a_problem_fails_the_program_with_page_and_line() {
    let fixture = Fixture::new("# Sample\n\n{{#lab code ch01-sample:nothing}}\n");
    let output = ask(&fixture, &[], &question(&fixture));
    assert!(!output.status.success());
    assert!(output.stdout.is_empty());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("book/src/ch01-sample.md:3: ch01-sample has no anchor `nothing`"), "{errors}");
}

#[test]
fn it_answers_what_it_supports() {
    let fixture = Fixture::new(PAGE);
    assert!(ask(&fixture, &["supports", "html"], "").status.success());
    assert!(!ask(&fixture, &["supports", "epub"], "").status.success());
}

#[test]
fn another_versions_question_is_refused_in_a_sentence() {
    let fixture = Fixture::new(PAGE);
    let output = ask(&fixture, &[], "[{}, {\"sections\": []}]");
    assert!(!output.status.success());
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(errors.contains("is this mdBook 0.5?"), "{errors}");
}
