//! The mdBook preprocessor `lab`: the same whether a stock mdBook starts it as a program or it runs inside our own process.

use std::io::{Read, Write};
use std::sync::{Arc, Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use mdbook_preprocessor::book::{Book, BookItem};
use mdbook_preprocessor::{Preprocessor, PreprocessorContext, parse_input};

use crate::directive::{Page, expand};
use crate::records::Records;
use crate::root::Root;
use crate::static_book::Problem;

/// The preprocessor.
#[derive(Clone, Debug)]
pub struct Lab {
    /// Show a problem on its page and go on; otherwise any problem fails the build.
    pub problems_on_page: bool,
    /// What was wrong in the last run.
    pub problems: Arc<Mutex<Vec<Problem>>>,
}

impl Lab {
    /// A preprocessor that has not run yet.
    pub fn new(problems_on_page: bool) -> Lab {
        Lab { problems_on_page, problems: Arc::default() }
    }

    /// What was wrong in the last run.
    pub fn take_problems(&self) -> Vec<Problem> {
        std::mem::take(&mut self.problems.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Preprocessor for Lab {
    fn name(&self) -> &str {
        "lab"
    }

    fn run(&self, context: &PreprocessorContext, mut book: Book) -> Result<Book> {
        let problems = expand_book(context, &mut book)?;
        let report: Vec<String> = problems.iter().map(ToString::to_string).collect();
        *self.problems.lock().unwrap_or_else(PoisonError::into_inner) = problems;
        if !report.is_empty() && !self.problems_on_page {
            bail!("{}", report.join("\n"));
        }
        Ok(book)
    }

    fn supports_renderer(&self, renderer: &str) -> Result<bool> {
        Ok(renderer == "html")
    }
}

/// Answers a stock mdBook: its JSON in, the book with expanded directives out. Nothing else may go to `output`.
///
/// # Errors
/// When a page has a problem; the message has one line for each, with file and line.
pub fn preprocess(input: impl Read, mut output: impl Write) -> Result<()> {
    let (context, book) = parse_input(input).context("reading what mdBook sent; is this mdBook 0.5?")?;
    let book = Lab::new(false).run(&context, book)?;
    serde_json::to_writer(&mut output, &book).context("answering mdBook")?;
    output.flush().context("answering mdBook")
}

fn expand_book(context: &PreprocessorContext, book: &mut Book) -> Result<Vec<Problem>> {
    let folder =
        context.root.canonicalize().with_context(|| format!("looking for {}", context.root.display()))?;
    let root = Root::above(&folder)?
        .context("the book is in no repository with chapters: book/book.toml is missing")?;
    let records = Records::read(&root)?;
    let repository: Option<String> = context.config.get("output.html.git-repository-url")?;
    let repository = repository.as_deref().map(|address| address.trim_end_matches('/'));
    let source = folder.join(&context.config.book.src);
    let mut problems = Vec::new();
    book.for_each_mut(|item| {
        let BookItem::Chapter(chapter) = item else { return };
        let Some(path) = &chapter.source_path else { return };
        let file = root.relative(&source.join(path));
        let expanded = expand(&Page::new(&root, &records, &file, repository), &chapter.content);
        chapter.content = expanded.text;
        problems.extend(expanded.problems);
    });
    Ok(problems)
}
