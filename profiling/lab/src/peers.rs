//! The same operation in other languages, timed beside ours: CUDA C++ as a library in this process, Python as programs.
//!
//! The sources lie in `tests/peers`, or in a bundle's `peers`. Nothing here is needed to run a chapter: where a compiler or
//! a package is missing, the caller gets one sentence that says so.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, thread};

use anyhow::{Context, Result};
use record::Point;

/// Why a peer was not measured, in one sentence that says how to change that.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing(String);

impl fmt::Display for Missing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A CUDA C++ peer, compiled and loaded into this process. It shares the device's primary context with us.
pub struct Library {
    library: libloading::Library,
    version: String,
    /// Holds the compiled file for as long as it is loaded.
    _folder: tempfile::TempDir,
}

impl Library {
    /// A function of the library.
    ///
    /// # Errors
    /// The library has no function of that name.
    ///
    /// # Safety
    /// `F` is the function's type as the C++ source declares it.
    pub unsafe fn function<F: Copy>(&self, name: &str) -> Result<F> {
        // SAFETY: the caller answers for the type; the library stays loaded while `self` lives.
        let symbol = unsafe { self.library.get::<F>(name.as_bytes()) };
        symbol.map(|symbol| *symbol).with_context(|| format!("looking up {name} in the CUDA C++ peer"))
    }

    /// The compiler that built it, such as `nvcc 13.0`.
    pub fn version(&self) -> &str {
        &self.version
    }
}

/// Compiles `tests/peers/<source>` by nvcc for the GPU at hand and loads it.
///
/// # Errors
/// [`Missing`] says whether nvcc or the source was not found, or what nvcc complained about.
pub fn cuda_library(source: &str) -> Result<Library, Missing> {
    let source = find_source(source)?;
    let nvcc = find_nvcc()?;
    let folder = tempfile::tempdir()
        .map_err(|error| Missing(format!("no temporary folder for nvcc's output: {error}")))?;
    let output = folder.path().join("libpeer.so");
    let run = Command::new(&nvcc)
        .args(["-O3", "-std=c++17", "-arch=native", "-shared", "-Xcompiler", "-fPIC", "-o"])
        .arg(&output)
        .arg(&source)
        .output()
        .map_err(|error| Missing(format!("nvcc could not be started: {error}")))?;
    if !run.status.success() {
        let complaint = String::from_utf8_lossy(&run.stderr);
        return Err(Missing(format!(
            "nvcc refused it: {}",
            complaint.lines().next().unwrap_or("without a word")
        )));
    }
    // SAFETY: the library was compiled above from our own source; its initialisers are the CUDA runtime's.
    let library = unsafe { libloading::Library::new(&output) };
    let library =
        library.map_err(|error| Missing(format!("what nvcc built could not be loaded: {error}")))?;
    Ok(Library { library, version: nvcc_version(&nvcc), _folder: folder })
}

/// What a Python peer printed.
#[derive(Clone, Debug, PartialEq)]
pub struct Report(serde_json::Value);

impl Report {
    /// A number of the report.
    pub fn number(&self, name: &str) -> Option<f64> {
        self.0.get(name)?.as_f64()
    }

    /// A list of numbers of the report; empty where it is missing.
    pub fn numbers(&self, name: &str) -> Vec<f64> {
        let list = self.0.get(name).and_then(serde_json::Value::as_array);
        list.into_iter().flatten().filter_map(serde_json::Value::as_f64).collect()
    }

    /// A word of the report; empty where it is missing.
    pub fn word(&self, name: &str) -> &str {
        self.0.get(name).and_then(serde_json::Value::as_str).unwrap_or_default()
    }
}

/// Runs `tests/peers/<script>` by `python3` and reads the JSON object on its last line.
///
/// # Errors
/// [`Missing`] says whether Python or a package was not found, or how the program ended.
pub fn python(script: &str) -> Result<Report, Missing> {
    python_with(script, &[])
}

/// As [`python`], with arguments, such as the path of a kernel that the peer alternates with its own.
///
/// # Errors
/// As [`python`].
pub fn python_with(script: &str, arguments: &[&OsStr]) -> Result<Report, Missing> {
    let path = find_source(script)?;
    let mut child = Command::new("python3")
        .arg(&path)
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Missing(format!("python3 could not be started: {error}")))?;
    // Both pipes are read while it runs: a full pipe would stop it.
    let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
    let (stdout, stderr) = (thread::spawn(|| read_all(stdout)), thread::spawn(|| read_all(stderr)));
    let end = Instant::now() + LIMIT;
    let status = loop {
        match child.try_wait() {
            Ok(Some(status)) => break status,
            Ok(None) if Instant::now() > end => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Missing(format!("it ran longer than {} s", LIMIT.as_secs())));
            }
            Ok(None) => thread::sleep(Duration::from_millis(20)),
            Err(error) => return Err(Missing(format!("waiting for python3 failed: {error}"))),
        }
    };
    let (stdout, stderr) = (stdout.join().unwrap_or_default(), stderr.join().unwrap_or_default());
    if !status.success() {
        return Err(complaint(&stderr));
    }
    let last = stdout.lines().last().unwrap_or_default();
    serde_json::from_str(last).map(Report).map_err(|_| Missing("its last line is no JSON object".to_owned()))
}

/// As [`python`], for a peer that takes turns with our kernels: the files, by name and text, lie in a folder that is the
/// program's argument.
///
/// # Errors
/// As [`python`].
pub fn python_with_files(script: &str, files: &[(&str, &str)]) -> Result<Report, Missing> {
    let folder = tempfile::tempdir()
        .map_err(|error| Missing(format!("no temporary folder for the peer's files: {error}")))?;
    for (name, text) in files {
        fs::write(folder.path().join(name), text)
            .map_err(|error| Missing(format!("{name} could not be written for the peer: {error}")))?;
    }
    python_with(script, &[folder.path().as_os_str()])
}

/// A Python peer that answers line by line, so that its work can take turns with ours: it measures one sample when it is
/// asked, and waits otherwise.
pub struct Conversation {
    child: Child,
    questions: ChildStdin,
    answers: Receiver<String>,
}

impl Conversation {
    /// Sends a line and reads the JSON object that answers it.
    ///
    /// # Errors
    /// When the peer has ended, takes longer than two minutes or answers with something else.
    pub fn ask(&mut self, question: &str) -> Result<Report> {
        writeln!(self.questions, "{question}")
            .and_then(|()| self.questions.flush())
            .with_context(|| format!("asking the Python peer for `{question}`"))?;
        let answer = self
            .answers
            .recv_timeout(LIMIT)
            .with_context(|| format!("waiting for the Python peer's answer to `{question}`"))?;
        let answer = serde_json::from_str(&answer)
            .with_context(|| format!("the Python peer answered `{question}` with `{answer}`"))?;
        Ok(Report(answer))
    }
}

impl Drop for Conversation {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Starts `tests/peers/<script>` by `python3` for a conversation. Its first line is a JSON object, too.
///
/// # Errors
/// [`Missing`] says whether Python or a package was not found, or how the program ended.
pub fn converse(script: &str) -> Result<(Conversation, Report), Missing> {
    let path = find_source(script)?;
    let mut child = Command::new("python3")
        .arg(&path)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| Missing(format!("python3 could not be started: {error}")))?;
    let (questions, stdout, stderr) = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let (sender, answers) = channel();
    thread::spawn(move || {
        for line in stdout.into_iter().flat_map(|pipe| BufReader::new(pipe).lines()).map_while(Result::ok) {
            if sender.send(line).is_err() {
                break;
            }
        }
    });
    let stderr = thread::spawn(|| read_all(stderr));
    let first = answers.recv_timeout(LIMIT).ok().and_then(|line| serde_json::from_str(&line).ok());
    match (first, questions) {
        (Some(first), Some(questions)) => Ok((Conversation { child, questions, answers }, Report(first))),
        _ => {
            let _ = child.kill();
            let _ = child.wait();
            Err(complaint(&stderr.join().unwrap_or_default()))
        }
    }
}

/// Samples of our work and of another's, in seconds, taken in turn.
#[derive(Clone, Debug, PartialEq)]
pub struct Turns(Vec<(f64, f64)>);

impl Turns {
    /// Takes so many pairs of samples. Who comes first changes each time.
    ///
    /// # Errors
    /// Passes on the errors of both.
    pub fn take(
        pairs: usize,
        mut ours: impl FnMut() -> Result<f64>,
        mut theirs: impl FnMut() -> Result<f64>,
    ) -> Result<Self> {
        let pair = |turn: usize| {
            if turn.is_multiple_of(2) {
                let first = ours()?;
                Ok((first, theirs()?))
            } else {
                let first = theirs()?;
                Ok((ours()?, first))
            }
        };
        Ok(Self((0..pairs).map(pair).collect::<Result<_>>()?))
    }

    /// The median of our samples.
    pub fn ours(&self) -> f64 {
        at(0.5, &self.sorted(|pair| pair.0))
    }

    /// The median of the other's samples.
    pub fn theirs(&self) -> f64 {
        at(0.5, &self.sorted(|pair| pair.1))
    }

    /// Their time over ours, pair by pair: above 1 ours is faster.
    pub fn speed(&self) -> Point {
        let ratios = self.sorted(|(ours, theirs)| theirs / ours);
        Point {
            value: Some(at(0.5, &ratios)),
            low: Some(at(0.2, &ratios)),
            high: Some(at(0.8, &ratios)),
            samples: Some(ratios.len()),
        }
    }

    fn sorted(&self, of: impl Fn(&(f64, f64)) -> f64) -> Vec<f64> {
        let mut numbers: Vec<f64> = self.0.iter().map(of).collect();
        numbers.sort_by(f64::total_cmp);
        numbers
    }
}

/// The sorted number below which about such a part of them lies; NaN where there is none.
fn at(part: f64, sorted: &[f64]) -> f64 {
    let place = (part * sorted.len().saturating_sub(1) as f64).round() as usize;
    sorted.get(place).copied().unwrap_or(f64::NAN)
}

/// Long enough to import a framework and compile its kernels.
const LIMIT: Duration = Duration::from_secs(120);

/// What a Python program that failed said last.
fn complaint(stderr: &str) -> Missing {
    let complaint = stderr.lines().last().unwrap_or("it ended without a word");
    Missing(match complaint.strip_prefix("ModuleNotFoundError: No module named ") {
        Some(package) => format!("the Python package {package} is not installed"),
        None => complaint.to_owned(),
    })
}

fn read_all(pipe: Option<impl Read>) -> String {
    let mut bytes = Vec::new();
    if let Some(mut pipe) = pipe {
        let _ = pipe.read_to_end(&mut bytes);
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// `tests/peers` above the current folder or the program, or a bundle's `peers`.
fn find_source(name: &str) -> Result<PathBuf, Missing> {
    let starts = [env::current_dir().ok(), env::current_exe().ok()];
    starts
        .iter()
        .flatten()
        .flat_map(|start| start.ancestors())
        .flat_map(|folder| [folder.join("tests/peers").join(name), folder.join("peers").join(name)])
        .find(|path| path.is_file())
        .ok_or_else(|| Missing(format!("{name} was not found in tests/peers; run from the repository")))
}

fn find_nvcc() -> Result<PathBuf, Missing> {
    let path = env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = env::split_paths(&path).collect();
    for variable in ["CUDA_PATH", "CUDA_HOME"] {
        folders.extend(env::var_os(variable).map(|folder| Path::new(&folder).join("bin")));
    }
    folders.push("/usr/local/cuda/bin".into());
    folders
        .into_iter()
        .map(|folder| folder.join("nvcc"))
        .find(|nvcc| fs::metadata(nvcc).is_ok_and(|file| file.is_file()))
        .ok_or_else(|| Missing("nvcc is not installed; the CUDA Toolkit brings it".to_owned()))
}

/// `nvcc 13.0` from `Cuda compilation tools, release 13.0, V13.0.88`.
fn nvcc_version(nvcc: &Path) -> String {
    let output = Command::new(nvcc).arg("--version").output();
    let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    let release = text.split("release ").nth(1).and_then(|rest| rest.split(',').next());
    format!("nvcc {}", release.unwrap_or("of unknown version"))
}

#[cfg(test)]
mod tests {
    use super::{Report, Turns};

    #[test]
    fn turns_change_places_and_are_told_by_their_medians() {
        let calls = std::cell::RefCell::new(String::new());
        let sample = |who: char, seconds: f64| {
            calls.borrow_mut().push(who);
            Ok(seconds)
        };
        let turns = Turns::take(5, || sample('o', 2.0), || sample('t', 3.0)).unwrap();
        assert_eq!(*calls.borrow(), "ottoottoot");
        assert_eq!((turns.ours(), turns.theirs(), turns.speed().value), (2.0, 3.0, Some(1.5)));
    }

    #[test]
    fn a_report_answers_by_name_and_has_nothing_of_what_is_missing() {
        let report = Report(serde_json::json!({"peer": "CuPy", "gbps": 2.5, "used": [64, 128.5]}));
        assert_eq!((report.word("peer"), report.number("gbps")), ("CuPy", Some(2.5)));
        assert_eq!(report.numbers("used"), [64.0, 128.5]);
        assert_eq!((report.word("gbps"), report.number("used")), ("", None));
        assert_eq!(report.numbers("gbps"), [0.0; 0]);
    }
}
