//! Builds and runs chapters by cargo.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};

use anyhow::{Context, Result, bail};
use compiler::libclang::{self, Libclang};
use record::{Record, Status};

use crate::root::{Chapter, Root};

/// How chapters are run.
#[derive(Clone, Debug)]
pub struct Options {
    /// `auto`, `gpu` or `emulated`.
    pub device: String,
    /// Smaller problem sizes.
    pub quick: bool,
    /// The folder under which `<chapter>/record.json` is written.
    pub record: PathBuf,
    /// Cells to run; all when empty.
    pub cells: Vec<String>,
}

impl Options {
    /// Into the reader's own records, on the GPU if there is one.
    pub fn local(root: &Root) -> Options {
        let record = root.records().join(crate::records::LOCAL);
        Options { device: "auto".to_owned(), quick: false, record, cells: Vec::new() }
    }
}

/// How a chapter's run ended.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome {
    /// Every cell finished.
    Complete,
    /// The program failed, with its exit code where it has one.
    Failed(Option<i32>),
    /// Stopped from outside.
    Interrupted,
}

/// The command that builds a chapter's program, with NVTX ranges where libclang can be had. Its words are the reader's to see.
pub fn build_command(root: &Root, chapter: &Chapter) -> Command {
    let mut command = cargo(root);
    command.args(["build", "--package", &chapter.name]);
    if let Ok(libclang) = libclang::find() {
        with_ranges(&mut command, [chapter.name.as_str()], &libclang);
    }
    command
}

/// Where [`build_command`] leaves the program.
///
/// # Errors
/// When cargo does not say where it builds to.
pub fn program(root: &Root, chapter: &Chapter) -> Result<PathBuf> {
    Ok(target_folder(root)?.join("debug").join(&chapter.name))
}

/// The command that runs a built chapter.
///
/// # Errors
/// When cargo does not say where it builds to.
pub fn run_command(root: &Root, chapter: &Chapter, options: &Options) -> Result<Command> {
    let mut command = Command::new(program(root, chapter)?);
    command.current_dir(&root.path).args(&options.cells).args(["--device", &options.device]);
    command.arg("--record").arg(&options.record);
    if options.quick {
        command.arg("--quick");
    }
    Ok(command)
}

/// Runs chapters one after the other in the terminal. One that fails is reported, and the others go on; Ctrl-C reaches the
/// chapter at work, which leaves a record that says so, and ends the list.
///
/// # Errors
/// When a program cannot be started at all.
pub fn run(root: &Root, chapters: &[&Chapter], options: &Options) -> Result<Vec<(String, Outcome)>> {
    pass_on_interrupts()?;
    let mut outcomes = Vec::new();
    for (place, chapter) in chapters.iter().enumerate() {
        eprintln!("[{}/{}] {}: {}", place + 1, chapters.len(), chapter.name, chapter.title);
        let outcome = run_one(root, chapter, options)?;
        match &outcome {
            Outcome::Complete => {}
            Outcome::Failed(code) => {
                let code = code.map(|code| format!(" with code {code}")).unwrap_or_default();
                eprintln!("error: {} failed{code}", chapter.name);
            }
            Outcome::Interrupted => eprintln!("error: {} was interrupted", chapter.name),
        }
        let stop = outcome == Outcome::Interrupted;
        outcomes.push((chapter.name.clone(), outcome));
        if stop {
            break;
        }
    }
    Ok(outcomes)
}

/// Runs chapters and puts the records of those that finish among the committed ones, in the folder of the device that they say
/// they ran on. What was recorded before stays where a run fails.
///
/// # Errors
/// When a program cannot be started, or a record not be written.
pub fn record(root: &Root, chapters: &[&Chapter], options: &Options) -> Result<Vec<(String, Outcome)>> {
    if options.quick {
        bail!("a committed record is made at full size: leave --quick away");
    }
    // Beside the committed records, so that a half-done run never replaces a whole one.
    let scratch = target_folder(root)?.join("recording").join(std::process::id().to_string());
    let outcomes = run(root, chapters, &Options { record: scratch.clone(), ..options.clone() });
    let placed = outcomes.and_then(|outcomes| {
        for (chapter, _) in outcomes.iter().filter(|(_, outcome)| *outcome == Outcome::Complete) {
            let record = Record::load(&record::path(&scratch, chapter))?
                .with_context(|| format!("{chapter} ended well and left no record"))?;
            let path = place(root, record)?;
            eprintln!("recorded {}", root.relative(&path));
        }
        Ok(outcomes)
    });
    // Whatever became of the run, its scratch folder is of no further use.
    let _ = std::fs::remove_dir_all(&scratch);
    placed
}

/// Puts a complete record among the committed ones. What a profiler added to the one before is kept: it has its own inputs.
///
/// # Errors
/// When the record is not complete, or cannot be written.
pub fn place(root: &Root, mut record: Record) -> Result<PathBuf> {
    if record.status != Status::Complete {
        bail!("the record of {} is not complete", record.chapter);
    }
    let slug = record::slug(&record.provenance.device, record.provenance.emulated);
    let path = record::path(&root.records().join(slug), &record.chapter);
    if record.profile.is_none() {
        // A record that cannot be read has nothing to keep.
        record.profile = Record::load(&path).ok().flatten().and_then(|before| before.profile);
    }
    record.save(&path)?;
    Ok(path)
}

/// Whether tracked files differ from the commit.
pub fn is_dirty(root: &Root) -> bool {
    git(root, &["status", "--porcelain", "--untracked-files=no"]).is_some_and(|changes| !changes.is_empty())
}

/// The commit that is checked out, if this is a git checkout.
pub fn commit(root: &Root) -> Option<String> {
    git(root, &["rev-parse", "HEAD"])
}

/// What git answers, if it does.
pub fn git(root: &Root, arguments: &[&str]) -> Option<String> {
    git_bytes(root, arguments).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
}

/// What git answers, byte by byte.
pub fn git_bytes(root: &Root, arguments: &[&str]) -> Option<Vec<u8>> {
    let output =
        Command::new("git").args(arguments).current_dir(&root.path).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}

/// `cargo`, the one that runs us if it does, at the top of the repository.
pub fn cargo(root: &Root) -> Command {
    let mut command = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.current_dir(&root.path);
    command
}

/// Turns the NVTX ranges of these chapters on in a cargo command that names their packages. They need libclang to be built.
pub fn with_ranges<'n>(
    command: &mut Command,
    chapters: impl IntoIterator<Item = &'n str>,
    libclang: &Libclang,
) {
    let features: Vec<String> = chapters.into_iter().map(|chapter| format!("{chapter}/nvtx")).collect();
    command.args(["--features", &features.join(",")]).envs(libclang.environment());
}

/// Cargo's target folder.
///
/// # Errors
/// When cargo does not say.
pub fn target_folder(root: &Root) -> Result<PathBuf> {
    let output = cargo(root)
        .args(["metadata", "--no-deps", "--offline", "--format-version", "1"])
        .stderr(Stdio::inherit())
        .output()
        .context("starting cargo metadata")?;
    let metadata: serde_json::Value =
        serde_json::from_slice(&output.stdout).context("reading cargo metadata")?;
    let folder = metadata["target_directory"].as_str().context("cargo metadata names no target directory")?;
    Ok(PathBuf::from(folder))
}

/// The process group at work, for Ctrl-C; 0 when there is none.
static AT_WORK: AtomicI32 = AtomicI32::new(0);
static INTERRUPTED: AtomicBool = AtomicBool::new(false);

fn pass_on_interrupts() -> Result<()> {
    ctrlc::set_handler(|| {
        INTERRUPTED.store(true, Ordering::SeqCst);
        let group = AT_WORK.load(Ordering::SeqCst);
        if group == 0 {
            std::process::exit(130);
        }
        // SAFETY: `kill` touches no memory of ours. The group is that of a child which has not been waited for: `wait` sets
        // AT_WORK to 0 before it reaps, so the number is not reused.
        unsafe { libc::kill(-group, libc::SIGINT) };
    })
    .context("catching Ctrl-C")
}

fn run_one(root: &Root, chapter: &Chapter, options: &Options) -> Result<Outcome> {
    for mut command in [build_command(root, chapter), run_command(root, chapter, options)?] {
        let status = wait(&mut command)?;
        if INTERRUPTED.load(Ordering::SeqCst) {
            return Ok(Outcome::Interrupted);
        }
        if !status.success() {
            return Ok(Outcome::Failed(status.code()));
        }
    }
    Ok(Outcome::Complete)
}

/// Runs a command in a process group of its own, so that Ctrl-C reaches it once, by us, and not by the terminal as well.
fn wait(command: &mut Command) -> Result<ExitStatus> {
    let program = Path::new(command.get_program()).to_string_lossy().into_owned();
    let mut child: Child = command.process_group(0).spawn().with_context(|| format!("starting {program}"))?;
    // A process id fits: Linux has at most 2^22.
    let id = child.id() as i32;
    AT_WORK.store(id, Ordering::SeqCst);
    let ended = wait_without_reaping(id);
    AT_WORK.store(0, Ordering::SeqCst);
    ended.with_context(|| format!("waiting for {program}"))?;
    child.wait().with_context(|| format!("waiting for {program}"))
}

/// Waits until a child has ended and leaves its number taken.
fn wait_without_reaping(id: i32) -> std::io::Result<()> {
    loop {
        // SAFETY: all zeros is a valid siginfo_t, which is plain data.
        let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: `info` is ours and outlives the call.
        let result =
            unsafe { libc::waitid(libc::P_PID, id as libc::id_t, &mut info, libc::WEXITED | libc::WNOWAIT) };
        let error = std::io::Error::last_os_error();
        match (result, error.kind()) {
            (0, _) => return Ok(()),
            (_, std::io::ErrorKind::Interrupted) => {}
            _ => return Err(error),
        }
    }
}
