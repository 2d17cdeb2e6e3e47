//! The same operation in other languages, timed beside ours: CUDA C++ as a library in this process, Python as programs.
//!
//! The sources lie in `tests/peers`, or in a bundle's `peers`. Nothing here is needed to run a chapter: where a compiler or
//! a package is missing, the caller gets one sentence that says so.

use std::ffi::OsStr;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use std::{env, fmt, fs, thread};

use anyhow::{Context, Result};

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
        let complaint = stderr.lines().last().unwrap_or("it ended without a word");
        return Err(Missing(match complaint.strip_prefix("ModuleNotFoundError: No module named ") {
            Some(package) => format!("the Python package {package} is not installed"),
            None => complaint.to_owned(),
        }));
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

/// Long enough to import a framework and compile its kernels.
const LIMIT: Duration = Duration::from_secs(120);

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
    use super::Report;

    #[test]
    fn a_report_answers_by_name_and_has_nothing_of_what_is_missing() {
        let report = Report(serde_json::json!({"peer": "CuPy", "gbps": 2.5, "used": [64, 128.5]}));
        assert_eq!((report.word("peer"), report.number("gbps")), ("CuPy", Some(2.5)));
        assert_eq!(report.numbers("used"), [64.0, 128.5]);
        assert_eq!((report.word("gbps"), report.number("used")), ("", None));
        assert_eq!(report.numbers("gbps"), [0.0; 0]);
    }
}
