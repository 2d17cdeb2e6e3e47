//! Builds and runs chapters one by one, each into the reader's own records.

use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use record::{Record, Status};

use super::state::{Phase, Run, Shared};
use super::terminal::Terminal;
use super::watch;
use crate::records::{LOCAL, Records, State};
use crate::root::{Chapter, Root};
use crate::run;

/// How long a chapter may take to save what it has after it was told to stop.
const GRACE: Duration = Duration::from_secs(5);
/// As much as a person reads of a failed build.
const LINES: usize = 60;

/// The chapters that run by themselves: all but the heavy ones and those whose own record is fresh.
pub(super) fn due(root: &Root) -> VecDeque<String> {
    let chapters = root.chapters.iter().filter(|chapter| !chapter.heavy && !has_fresh_record(root, chapter));
    chapters.map(|chapter| chapter.name.clone()).collect()
}

/// Runs what waits until the server ends.
pub(super) fn work(root: &Root, shared: &Shared, terminal: &Terminal) {
    loop {
        // Taken and marked as running in one step, so that no second run can be accepted between.
        let next = shared.wait_for(|state| {
            let chapter = state.waiting.pop_front()?;
            state.cancel = false;
            state.failed = None;
            state.run = Some(Run {
                chapter: chapter.clone(),
                phase: Phase::Building,
                cell: String::new(),
                done: 0,
                total: 0,
            });
            Some(chapter)
        });
        let Some(name) = next else { return };
        shared.change(|_| ());
        let Ok(chapter) = root.chapter(&name) else {
            shared.change(|state| state.run = None);
            continue;
        };
        let ended = run_one(root, chapter, shared, terminal);
        close_record(root, &name);
        let message = match ended {
            Ok(Ended::Complete) => None,
            Ok(Ended::Stopped) => Some(format!("{name} was stopped.")),
            Ok(Ended::Failed(said)) => Some(format!("{name} failed.\n{said}")),
            Err(error) => Some(format!("{name} could not be run: {error:#}")),
        };
        terminal.ended(&name, message.as_deref());
        shared.change(|state| {
            state.run = None;
            if state.cancel {
                // Stop means quiet: what would have come next stays undone too.
                state.waiting.clear();
            }
            state.failed = message;
        });
    }
}

enum Ended {
    Complete,
    Stopped,
    /// With the last lines that it wrote.
    Failed(String),
}

fn run_one(root: &Root, chapter: &Chapter, shared: &Shared, terminal: &Terminal) -> Result<Ended> {
    terminal.building(&chapter.name);
    let built = watched(run::build_command(root, chapter), shared, |line| {
        let Some(doing) = doing(line) else { return };
        terminal.compiling(&doing);
        let news = shared.state().run.as_ref().is_some_and(|run| run.cell != doing);
        if news {
            shared.change(|state| {
                if let Some(run) = &mut state.run {
                    run.cell = doing;
                }
            });
        }
    })
    .context("building it by cargo")?;
    if !matches!(built, Ended::Complete) {
        return Ok(built);
    }
    shared.change(|state| {
        if let Some(run) = &mut state.run {
            run.phase = Phase::Running;
            run.cell.clear();
        }
    });
    terminal.running(&chapter.name);
    watched(run::run_command(root, chapter, &run::Options::local(root))?, shared, |_| {
        if let Some(run) = &shared.state().run {
            terminal.progress(run);
        }
    })
}

/// What cargo is doing, by the line that it wrote last.
fn doing(line: &str) -> Option<String> {
    let line = line.trim();
    if line.starts_with("Blocking waiting for file lock") {
        return Some("waiting for another cargo".to_owned());
    }
    line.strip_prefix("Compiling ").and_then(|rest| rest.split(' ').next()).map(str::to_owned)
}

/// Runs a command to its end or until somebody stops it; `tick` is called for each line on its standard error, and ten times a
/// second with none.
fn watched(mut command: Command, shared: &Shared, mut tick: impl FnMut(&str)) -> Result<Ended> {
    // A process group of its own: Ctrl-C reaches it once, through us, and its children with it.
    let mut child = command
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .with_context(|| format!("starting {}", command.get_program().to_string_lossy()))?;
    let said = Arc::new(Mutex::new(VecDeque::new()));
    let readers = [
        child.stdout.take().map(|stream| keep_last_lines(stream, &said)),
        child.stderr.take().map(|stream| keep_last_lines(stream, &said)),
    ];
    let mut stopped_at: Option<Instant> = None;
    let status = loop {
        if let Some(status) = child.try_wait().context("waiting for it")? {
            break status;
        }
        let wanted = {
            let state = shared.state();
            state.stop || state.cancel
        };
        match stopped_at {
            None if wanted => {
                signal(&child, libc::SIGINT);
                stopped_at = Some(Instant::now());
            }
            Some(at) if at.elapsed() > GRACE => signal(&child, libc::SIGKILL),
            _ => {}
        }
        let last = said.lock().unwrap_or_else(PoisonError::into_inner).back().cloned().unwrap_or_default();
        tick(&last);
        std::thread::sleep(Duration::from_millis(100));
    };
    for reader in readers.into_iter().flatten() {
        // A reader only copies lines; one that panicked would lack some.
        let _ = reader.join();
    }
    Ok(match (stopped_at, status) {
        (Some(_), _) => Ended::Stopped,
        (None, status) if status.success() => Ended::Complete,
        (None, status) => {
            Ended::Failed(last_words(&said.lock().unwrap_or_else(PoisonError::into_inner), status))
        }
    })
}

fn keep_last_lines(
    stream: impl Read + Send + 'static,
    said: &Arc<Mutex<VecDeque<String>>>,
) -> JoinHandle<()> {
    let said = Arc::clone(said);
    std::thread::spawn(move || {
        for line in BufReader::new(stream).split(b'\n').map_while(Result::ok) {
            let mut said = said.lock().unwrap_or_else(PoisonError::into_inner);
            said.push_back(String::from_utf8_lossy(&line).trim_end().to_owned());
            if said.len() > LINES {
                said.pop_front();
            }
        }
    })
}

fn last_words(said: &VecDeque<String>, status: ExitStatus) -> String {
    let lines: Vec<&str> = said.iter().map(String::as_str).collect();
    // Cargo says first what it compiles; the error is what one wants to read.
    let start = lines.iter().position(|line| line.starts_with("error")).unwrap_or(0);
    match lines[start..].join("\n") {
        nothing if nothing.is_empty() => format!("It said nothing ({status})."),
        words => words,
    }
}

fn signal(child: &Child, signal: i32) {
    // SAFETY: `kill` touches no memory of ours. The group is the child's own, and the child has not been waited for, so that
    // its number is not another's. A process id fits an i32.
    unsafe { libc::kill(-child.id().cast_signed(), signal) };
}

/// A program that was killed could not say so: its record still says "running".
fn close_record(root: &Root, chapter: &str) {
    let path = watch::own_record(root, chapter);
    let Ok(Some(mut record)) = Record::load(&path) else { return };
    if let Status::Running { cell, .. } = &record.status {
        record.status = Status::Interrupted { cell: cell.clone() };
        // Where this fails the page says "running" until the next run.
        let _ = record.save(&path);
    }
}

fn has_fresh_record(root: &Root, chapter: &Chapter) -> bool {
    let Ok(records) = Records::read(root) else { return false };
    let own = records.get(LOCAL, &chapter.name);
    own.is_some_and(|own| matches!(own.state, State::Fresh | State::OtherHardware { .. }))
}
