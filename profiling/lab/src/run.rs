//! A chapter's `main`: its cells run one by one, are shown, and are recorded.

use std::any::Any;
use std::cell::Cell as StdCell;
use std::collections::BTreeMap;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use anyhow::{Context, Result, bail};
use record::{Input, InputKind, Output, Record, inputs};

use crate::arguments::Arguments;
use crate::journal::Journal;
use crate::nvml::Nvml;
use crate::origin::Origin;
use crate::privacy::scrub;
use crate::progress::Progress;
use crate::provenance::{self, OPT_LEVEL};
use crate::{Cell, CellSpec, Chapter, counts, device, libraries, links, range, restart, terminal, timing};

/// A chapter's whole `main`: reads the command line, puts a driver in place, runs the cells, shows and records what comes
/// out. Call it first: it may start the program again, and it changes environment variables.
///
/// The exit code is 1 when something failed, 2 when the command line makes no sense, 130 when the reader stopped the run.
pub fn main(chapter: Chapter, cells: &'static [CellSpec]) -> ExitCode {
    // SAFETY: this is the first statement of the program's `main`, so there is no other thread.
    unsafe { restart::restore_environment() };
    match start(chapter, cells) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{}: {}", chapter.name, causes(&error).join("\n  because: "));
            ExitCode::FAILURE
        }
    }
}

fn start(chapter: Chapter, cells: &'static [CellSpec]) -> Result<ExitCode> {
    let described = record::chapter::Chapter::parse(chapter.manifest)?;
    let arguments = Arguments::read(chapter.name, &described.title);
    if arguments.list {
        for cell in cells {
            show(&format!("{:20} {}\n", cell.id, cell.title));
        }
        return Ok(ExitCode::SUCCESS);
    }
    let chosen = choose(cells, &arguments.cells)?;
    // SAFETY: `main` calls this function alone, before it starts a thread.
    let _counts = unsafe { counts::ask_for() }?;
    let mut found = Vec::new();
    device::prepare(arguments.device()?, |driver_major| {
        found = libraries::find(driver_major);
        let links = libraries::links(&found);
        if links.is_empty() { Ok(Vec::new()) } else { Ok(vec![links::folder(&links)?]) }
    })?;
    range::set_domain(&described.domain);
    timing::ONCE.store(arguments.once, Ordering::Relaxed);

    let origin = Origin::find()?;
    let (provenance, nvml) = provenance::gather(&arguments, &origin, &found)?;
    let (device, emulated) = (provenance.device.clone(), provenance.emulated);
    show(&format!("{} on {device}\n", described.title));
    let (inputs, file) = match store(&described, &arguments, &origin, OPT_LEVEL) {
        Ok((inputs, file)) => (inputs, Some(file)),
        Err(NotStored(reason)) => {
            eprintln!("nothing is recorded: {reason}");
            (Vec::new(), None)
        }
    };
    // What cannot be read is about to be replaced, and its loss harms nobody.
    let previous = file.as_ref().and_then(|file| Record::load(file).ok().flatten());
    let order = cells.iter().map(|cell| cell.id).collect();
    let computed: Vec<&str> = chosen.iter().map(|cell| cell.id).collect();
    let journal = Journal::new(chapter.name, order, &computed, provenance, inputs, previous, file.clone());

    let run = Run {
        chapter,
        root: match &origin {
            Origin::Checkout { root } => Some(root.clone()),
            Origin::Bundle { .. } | Origin::Unknown => None,
        },
        quick: arguments.quick,
        emulated,
        parameters: Arc::new(described.parameters),
        journal: Arc::new(Mutex::new(journal)),
        nvml,
    };
    run.stop_on_signals()?;
    quiet_panics();
    let code = run.cells(&chosen)?;
    if let Some(file) = file.filter(|_| code == ExitCode::SUCCESS) {
        eprintln!("recorded in {}", shown(&file));
    }
    Ok(code)
}

/// A run that has begun.
struct Run {
    chapter: Chapter,
    root: Option<PathBuf>,
    quick: bool,
    emulated: bool,
    parameters: Arc<BTreeMap<String, String>>,
    journal: Arc<Mutex<Journal>>,
    nvml: Option<Nvml>,
}

impl Run {
    fn cells(&self, chosen: &[&CellSpec]) -> Result<ExitCode> {
        let mut clocks = Vec::new();
        for (place, spec) in chosen.iter().enumerate() {
            self.journal().begin(spec.id)?;
            let progress = Progress::of_cell(self.chapter.name, place + 1, chosen.len(), spec.title);
            let begun = Instant::now();
            let (outputs, mut result) = self.cell(spec, progress);
            clocks.extend(self.nvml.as_ref().and_then(Nvml::sm_clock));
            let mut cell = record::Cell {
                id: spec.id.to_owned(),
                title: spec.title.to_owned(),
                seconds: begun.elapsed().as_secs_f64(),
                order_dependent: spec.order_dependent,
                outputs,
            };
            if result.is_ok() {
                result = cell.check().map_err(|error| vec![error.to_string()]);
            }
            show(&terminal::cell(&cell, self.emulated));
            if let Err(causes) = result {
                eprintln!("the cell `{}` failed: {}", spec.id, causes.join("\n  because: "));
                let message = scrub(&causes.join("\n"), self.root.as_deref());
                self.journal().fail(spec.id, message)?;
                return Ok(ExitCode::FAILURE);
            }
            self.scrub(&mut cell);
            let mut journal = self.journal();
            if let (Some(low), Some(high)) = (clocks.iter().min(), clocks.iter().max()) {
                journal.note("SM clock, after each cell", format!("{low} to {high} MHz"));
            }
            journal.finish(cell, self.kernels())?;
        }
        self.journal().complete()?;
        Ok(ExitCode::SUCCESS)
    }

    /// Runs one cell. The error is a list of causes, the outermost first.
    fn cell(&self, spec: &CellSpec, progress: Progress) -> (Vec<Output>, Result<(), Vec<String>>) {
        let mut cell = Cell::new(self.quick, self.emulated, Arc::clone(&self.parameters), progress);
        // A cell that panicked is not looked at again, except for what it had said.
        IN_CELL.set(true);
        let result = match catch_unwind(AssertUnwindSafe(|| (spec.run)(&mut cell))) {
            Ok(result) => result.map_err(|error| causes(&error)),
            Err(payload) => Err(vec![panic_message(payload.as_ref())]),
        };
        IN_CELL.set(false);
        (cell.into_outputs(), result)
    }

    fn kernels(&self) -> Vec<Input> {
        let loaded = (self.chapter.loaded_kernels)().into_iter();
        loaded
            .map(|(name, ptx)| Input {
                kind: InputKind::Kernel,
                name: name.to_owned(),
                hash: inputs::ptx(ptx),
            })
            .collect()
    }

    fn scrub(&self, cell: &mut record::Cell) {
        let root = self.root.as_deref();
        for output in &mut cell.outputs {
            match output {
                Output::Text(said) => said.text = scrub(&said.text, root),
                Output::Table(table) => {
                    for entry in table.rows.iter_mut().flatten() {
                        if let record::Entry::Text(text) = entry {
                            *text = scrub(text, root);
                        }
                    }
                }
                _ => {}
            }
        }
    }

    /// Ctrl-C, a termination signal or a closed terminal: the record says so, and the process ends at once. The driver's
    /// own exit handlers are not run, they may wait for work that never ends.
    fn stop_on_signals(&self) -> Result<()> {
        let journal = Arc::clone(&self.journal);
        ctrlc::set_handler(move || {
            let saved = lock(&journal).interrupt();
            match saved {
                Ok(()) => eprintln!("\nstopped"),
                Err(error) => eprintln!("\nstopped; {error:#}"),
            }
            // SAFETY: `_exit` ends the process; whatever is left undone in memory ends with it.
            unsafe { libc::_exit(130) }
        })
        .context("listening for Ctrl-C")
    }

    fn journal(&self) -> MutexGuard<'_, Journal> {
        lock(&self.journal)
    }
}

fn lock(journal: &Mutex<Journal>) -> MutexGuard<'_, Journal> {
    // A journal whose writer panicked holds what had been said until then.
    journal.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The cells to run: all, or those that were named, in the order of the story.
fn choose<'a>(cells: &'a [CellSpec], named: &[String]) -> Result<Vec<&'a CellSpec>> {
    if let Some(unknown) = named.iter().find(|name| cells.iter().all(|cell| cell.id != **name)) {
        let known: Vec<&str> = cells.iter().map(|cell| cell.id).collect();
        bail!("there is no cell `{unknown}`; the cells are {}", known.join(", "));
    }
    Ok(cells.iter().filter(|cell| named.is_empty() || named.iter().any(|name| *name == cell.id)).collect())
}

/// Why a run leaves no record, as a clause.
#[derive(Debug)]
struct NotStored(String);

/// The inputs and the file of the record, or why there is none.
fn store(
    chapter: &record::chapter::Chapter,
    arguments: &Arguments,
    origin: &Origin,
    opt_level: &str,
) -> Result<(Vec<Input>, PathBuf), NotStored> {
    let because = |reason: &str| Err(NotStored(reason.to_owned()));
    if arguments.no_record {
        return because("--no-record was given");
    }
    if arguments.once {
        return because("--once was given");
    }
    if !matches!(opt_level, "2" | "3") {
        return Err(NotStored(format!(
            "this build is not optimised (opt-level {opt_level}), its figures would mislead; build it with the \
             workspace's own profile"
        )));
    }
    let Some(folder) = arguments.record.clone().or_else(|| origin.local_records()) else {
        return because("this is no checkout of the book; --record DIR says where else to store");
    };
    let inputs = origin.inputs(chapter, arguments.quick).map_err(|error| NotStored(format!("{error:#}")))?;
    Ok((inputs, record::path(&folder, &chapter.name)))
}

/// Shows a text on standard output. Who has stopped reading (`| head`) ends the showing, not the run.
fn show(text: &str) {
    let mut stdout = std::io::stdout();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}

/// A path as the reader would type it.
fn shown(path: &std::path::Path) -> String {
    let here = std::env::current_dir().unwrap_or_default();
    path.strip_prefix(&here).unwrap_or(path).display().to_string()
}

fn causes(error: &anyhow::Error) -> Vec<String> {
    error.chain().map(ToString::to_string).collect()
}

/// A panic in a cell becomes that cell's error; the reader is told once, and without a backtrace. Who asks for one by
/// `RUST_BACKTRACE` gets it.
fn quiet_panics() {
    if std::env::var_os("RUST_BACKTRACE").is_some_and(|value| value != "0") {
        return;
    }
    std::panic::set_hook(Box::new(|info| {
        if IN_CELL.get() {
            let place = info.location().map(|place| format!(" ({}:{})", place.file(), place.line()));
            *lock_place() = place.unwrap_or_default();
        } else {
            eprintln!("{info}");
        }
    }));
}

thread_local! {
    /// Whether this thread is running a cell, whose panics are told by who called it.
    static IN_CELL: StdCell<bool> = const { StdCell::new(false) };
}

/// Where the last panic was, for [`panic_message`].
static PANIC_PLACE: Mutex<String> = Mutex::new(String::new());

fn lock_place() -> MutexGuard<'static, String> {
    PANIC_PLACE.lock().unwrap_or_else(PoisonError::into_inner)
}

fn panic_message(payload: &(dyn Any + Send)) -> String {
    let said = payload
        .downcast_ref::<&str>()
        .map(|said| (*said).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned());
    let said = said.unwrap_or_else(|| "a panic without a message".to_owned());
    format!("{said}{}", lock_place())
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[track_caller]
    fn not_stored(line: &[&str], opt_level: &str, because: &str) {
        let chapter = record::chapter::Chapter::parse("[package]\nname = \"ch99-sample\"\n").unwrap();
        let arguments = Arguments::parse_from(std::iter::once("ch99").chain(line.iter().copied()));
        let NotStored(reason) = store(&chapter, &arguments, &Origin::Unknown, opt_level).unwrap_err();
        assert!(reason.contains(because), "{reason}");
    }

    #[test]
    fn figures_that_would_mislead_or_cannot_be_traced_are_not_stored() {
        not_stored(&["--no-record"], "3", "--no-record");
        not_stored(&["--once"], "3", "--once");
        not_stored(&[], "0", "opt-level 0");
        not_stored(&["--record", "/nowhere"], "1", "opt-level 1");
        not_stored(&[], "3", "--record DIR");
        not_stored(&["--record", "/nowhere"], "3", "neither in a checkout nor in a bundle");
    }

    #[test]
    fn cells_run_in_the_order_of_the_story() {
        const CELLS: &[CellSpec] = &[crate::cell("a", "", |_| Ok(())), crate::cell("b", "", |_| Ok(()))];
        let ids = |named: &[&str]| -> Result<Vec<&str>> {
            let named: Vec<String> = named.iter().map(|name| (*name).to_owned()).collect();
            Ok(choose(CELLS, &named)?.iter().map(|cell| cell.id).collect())
        };
        assert_eq!(ids(&[]).unwrap(), ["a", "b"]);
        assert_eq!(ids(&["b", "a"]).unwrap(), ["a", "b"]);
        assert_eq!(ids(&["c"]).unwrap_err().to_string(), "there is no cell `c`; the cells are a, b");
    }
}
