//! Rebuilds the book when something that its pages show has changed.
//!
//! Files are asked for size and time ten times a second. That costs a millisecond, works on every file system (network shares
//! and WSL's drives included), and needs no library that may miss an event.

use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash as _, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use record::{Record, Status};
use walkdir::WalkDir;

use super::site::Site;
use super::state::{Phase, Shared};
use super::terminal::Terminal;
use crate::records::LOCAL;
use crate::root::Root;
use crate::static_book::{self, Problem};

const PAUSE: Duration = Duration::from_millis(100);
/// An editor writes a file in several steps; a build between two of them would show half.
const SETTLE: Duration = Duration::from_millis(40);

/// What pages are drawn from, relative to the repository.
const WATCHED: [&str; 8] = [
    "book/book.toml",
    "book/src",
    "book/theme",
    "book/records",
    "chapters",
    "kernels/cuda",
    "kernels/exercises",
    "tests/peers",
];

/// Where mdBook writes what is then held in memory. By port, so that two servers do not meet.
pub(super) fn folder(root: &Root, port: u16) -> PathBuf {
    root.path.join("target/served-book").join(port.to_string())
}

/// Builds the book and puts it into memory; a build that fails leaves the last one in place and says why.
pub(super) fn build(root: &Root, shared: &Shared, terminal: &Terminal) {
    let options = static_book::Options { destination: folder(root, shared.port), problems_on_page: true };
    let built = static_book::build(root, &options)
        .and_then(|problems| Ok((problems, Site::read(&options.destination)?)));
    match built {
        Ok((problems, site)) => {
            shared.change(|state| {
                state.site = Arc::new(site);
                state.builds += 1;
                state.problem = None;
            });
            terminal.problems(&problems.iter().map(Problem::to_string).collect::<Vec<_>>());
        }
        Err(error) => {
            let message =
                format!("The book cannot be built, and you see the last pages that could: {error:#}");
            terminal.problems(std::slice::from_ref(&message));
            shared.change(|state| state.problem = Some(message));
        }
    }
}

/// Watches until the server ends. `seen` is the stamp from before the first build.
pub(super) fn watch(root: &Root, shared: &Shared, terminal: &Terminal, mut seen: u64) {
    loop {
        std::thread::sleep(PAUSE);
        let at_work = {
            let state = shared.state();
            if state.stop {
                return;
            }
            state.run.as_ref().map(|run| run.chapter.clone())
        };
        // While we run a chapter its record changes with every cell: that is progress, told without a new page.
        let own = at_work.as_ref().map(|chapter| own_record(root, chapter));
        if let Some(path) = &own {
            tell_progress(path, shared);
        }
        let mut now = stamp(root, own.as_deref());
        while now != seen {
            std::thread::sleep(SETTLE);
            let settled = stamp(root, own.as_deref());
            if settled == now {
                // Noted first: what changes during the build is seen in the next round.
                seen = now;
                build(root, shared, terminal);
                break;
            }
            now = settled;
        }
    }
}

/// The reader's own record of a chapter.
pub(super) fn own_record(root: &Root, chapter: &str) -> PathBuf {
    record::path(&root.records().join(LOCAL), chapter)
}

fn tell_progress(path: &Path, shared: &Shared) {
    let Ok(Some(record)) = Record::load(path) else { return };
    let Status::Running { cell, done, total } = record.status else { return };
    let told = |run: &super::state::Run| (run.cell == cell, run.done, run.total) == (true, done, total);
    let news = shared.state().run.as_ref().is_some_and(|run| run.phase == Phase::Running && !told(run));
    if news {
        shared.change(|state| {
            if let Some(run) = &mut state.run {
                (run.cell, run.done, run.total) = (cell, done, total);
            }
        });
    }
}

/// Changes when a watched file does, except for one.
pub(super) fn stamp(root: &Root, except: Option<&Path>) -> u64 {
    let mut hasher = DefaultHasher::new();
    for watched in WATCHED {
        let files = WalkDir::new(root.path.join(watched)).sort_by_file_name().into_iter();
        // `target` below a chapter is cargo's, if somebody built there.
        for entry in files.filter_entry(|entry| entry.file_name() != "target").flatten() {
            let Ok(metadata) = entry.metadata() else { continue };
            if !metadata.is_file() || Some(entry.path()) == except {
                continue;
            }
            entry.path().hash(&mut hasher);
            metadata.len().hash(&mut hasher);
            metadata.modified().ok().hash(&mut hasher);
        }
    }
    hasher.finish()
}
