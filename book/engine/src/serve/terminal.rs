//! What the terminal shows while the book is served.

use std::io::IsTerminal as _;
use std::sync::Mutex;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

use super::state::Run;

/// One line of progress at the bottom, and lines that stay above it. Where standard error is no terminal, only those.
pub(super) struct Terminal {
    bar: ProgressBar,
    shown: bool,
    /// The problems that were printed last, so that each is printed once.
    problems: Mutex<Vec<String>>,
}

impl Terminal {
    pub(super) fn new() -> Terminal {
        let bar = ProgressBar::new_spinner();
        bar.set_style(spinner());
        Terminal { bar, shown: std::io::stderr().is_terminal(), problems: Mutex::default() }
    }

    /// A line that stays.
    pub(super) fn say(&self, line: &str) {
        self.bar.suspend(|| eprintln!("{line}"));
    }

    pub(super) fn building(&self, chapter: &str) {
        self.bar.reset();
        self.bar.set_style(spinner());
        self.bar.set_prefix(chapter.to_owned());
        self.bar.set_message("building");
        self.bar.enable_steady_tick(Duration::from_millis(120));
        if !self.shown {
            self.say(&format!("{chapter}: building"));
        }
    }

    /// What cargo is at.
    pub(super) fn compiling(&self, doing: &str) {
        self.bar.set_message(format!("building: {doing}"));
    }

    pub(super) fn running(&self, chapter: &str) {
        self.bar.set_message("starting");
        if !self.shown {
            self.say(&format!("{chapter}: running"));
        }
    }

    pub(super) fn progress(&self, run: &Run) {
        if run.total > 0 {
            self.bar.set_style(bar());
            self.bar.set_length(run.total as u64);
            self.bar.set_position(run.done as u64);
            self.bar.set_message(run.cell.clone());
        }
    }

    /// A chapter has ended: well, or with what went wrong.
    pub(super) fn ended(&self, chapter: &str, wrong: Option<&str>) {
        let seconds = self.bar.elapsed().as_secs_f64();
        self.bar.finish_and_clear();
        match wrong {
            None => self.say(&format!("{chapter}: done in {seconds:.1} s")),
            Some(message) => self.say(&format!("error: {message}")),
        }
    }

    /// What is wrong on the pages; what was said before is not said again.
    pub(super) fn problems(&self, problems: &[String]) {
        let mut before = self.problems.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let news: Vec<&String> = problems.iter().filter(|problem| !before.contains(problem)).collect();
        for problem in news.iter().take(SAID) {
            self.say(&format!("error: {problem}"));
        }
        if news.len() > SAID {
            self.say(&format!("and {} more, each in its place on the pages", news.len() - SAID));
        }
        if problems.is_empty() && !before.is_empty() {
            self.say("The pages are in order again.");
        }
        *before = problems.to_vec();
    }
}

/// Problems of a build that are listed; a reader who broke one file need not scroll.
const SAID: usize = 10;

fn spinner() -> ProgressStyle {
    ProgressStyle::with_template("{spinner} {prefix}: {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_spinner())
}

fn bar() -> ProgressStyle {
    ProgressStyle::with_template("{prefix} [{bar:24}] {pos}/{len} {wide_msg}")
        .unwrap_or_else(|_| ProgressStyle::default_bar())
        .progress_chars("=> ")
}
