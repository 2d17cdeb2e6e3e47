//! What the threads of the server share, and what pages are told of it.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::site::Site;

/// Shared by the threads that answer, watch and run.
pub(super) struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    /// See [`super::guard`].
    pub(super) token: String,
    pub(super) port: u16,
}

/// What is going on.
#[derive(Default)]
pub(super) struct State {
    /// Rises with every change that pages are told of.
    version: u64,
    /// Rises with every build of the book.
    pub(super) builds: u64,
    pub(super) site: Arc<Site>,
    /// Why the last build failed, if it did; the pages before it are still served then.
    pub(super) problem: Option<String>,
    pub(super) run: Option<Run>,
    /// Chapters that will run next.
    pub(super) waiting: VecDeque<String>,
    /// What the last run that failed said.
    pub(super) failed: Option<String>,
    /// Somebody pressed Stop.
    pub(super) cancel: bool,
    /// The server ends.
    pub(super) stop: bool,
}

/// A chapter at work.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Run {
    pub(super) chapter: String,
    pub(super) phase: Phase,
    /// The cell at work, or what is being compiled; empty before the first.
    pub(super) cell: String,
    pub(super) done: usize,
    pub(super) total: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Phase {
    Building,
    Running,
}

/// The state as pages get it.
#[derive(Serialize)]
struct Told<'a> {
    version: u64,
    pages: u64,
    problem: &'a Option<String>,
    run: &'a Option<Run>,
    waiting: &'a VecDeque<String>,
    failed: &'a Option<String>,
}

impl Shared {
    pub(super) fn new(token: String, port: u16) -> Shared {
        Shared { state: Mutex::default(), changed: Condvar::new(), token, port }
    }

    /// A look at the state.
    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        // A thread that panicked left plain data behind, each field valid by itself.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state and tells everybody who waits.
    pub(super) fn change<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        let mut state = self.state();
        let result = change(&mut state);
        state.version += 1;
        drop(state);
        self.changed.notify_all();
        result
    }

    /// Waits until the state is not the one that a page has seen, or for a while; then what to tell it.
    pub(super) fn news(&self, seen: u64, patience: Duration) -> String {
        let end = Instant::now() + patience;
        let mut state = self.state();
        while state.version == seen && !state.stop {
            let Some(left) = end.checked_duration_since(Instant::now()) else { break };
            state = self.changed.wait_timeout(state, left).unwrap_or_else(PoisonError::into_inner).0;
        }
        state.told()
    }

    /// Waits until `ready` gives something, or the server ends.
    pub(super) fn wait_for<R>(&self, mut ready: impl FnMut(&mut State) -> Option<R>) -> Option<R> {
        let mut state = self.state();
        loop {
            if state.stop {
                return None;
            }
            if let Some(result) = ready(&mut state) {
                return Some(result);
            }
            state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

impl State {
    fn told(&self) -> String {
        let State { version, builds, problem, run, waiting, failed, .. } = self;
        let told = Told { version: *version, pages: *builds, problem, run, waiting, failed };
        // Strings and numbers only: this cannot fail.
        serde_json::to_string(&told).unwrap_or_default()
    }
}
