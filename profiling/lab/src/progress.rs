//! How far a run has come, on standard error: a bar in a terminal, a line a cell elsewhere.
//!
//! The bar is drawn by the thread that works, and only when a step begins: a thread of its own would write into what a
//! driver says on standard error.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// The progress of one cell.
pub(crate) struct Progress {
    bar: ProgressBar,
    ticks: u64,
}

impl Progress {
    /// A cell begins: the `place`-th of `total`.
    pub(crate) fn of_cell(chapter: &str, place: usize, total: usize, title: &str) -> Self {
        let prefix = format!("{chapter} {place}/{total} {title}");
        if !std::io::stderr().is_terminal() {
            eprintln!("{prefix}");
            return Self::hidden();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
        bar.set_style(style("{prefix} {msg}"));
        bar.set_prefix(prefix);
        bar.tick();
        Self { bar, ticks: 0 }
    }

    /// Nothing to see.
    pub(crate) fn hidden() -> Self {
        Self { bar: ProgressBar::hidden(), ticks: 0 }
    }

    /// The cell announces its steps.
    pub(crate) fn steps(&mut self, total: u64) {
        self.bar.set_style(style("{prefix} {bar:24.cyan/dim} {pos}/{len} {wide_msg}"));
        self.bar.set_length(total);
        self.bar.set_position(0);
        self.ticks = 0;
    }

    /// A step begins: the ones before it have ended.
    pub(crate) fn tick(&mut self, what: &str) {
        self.bar.set_message(what.to_owned());
        self.bar.set_position(self.ticks);
        self.ticks += 1;
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

fn style(template: &str) -> ProgressStyle {
    // The templates are the two above; one that did not parse would only look plainer.
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}
