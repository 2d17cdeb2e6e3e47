//! What the emulated GPU counted in a launch. It appends one JSON object a launch to a file that an environment variable
//! names; whoever wants the counts of some work reads what was appended meanwhile.

use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::PathBuf;

use anyhow::{Context, Result};
use serde_json::{Map, Value};

const VARIABLE: &str = "EMULATED_GPU_COUNTERS";

/// The exact counts of one launch, by the names that the emulated GPU gives them.
#[derive(Clone, Debug, PartialEq)]
pub struct Counts {
    /// The kernel's name.
    pub kernel: String,
    counters: Map<String, Value>,
}

impl Counts {
    /// A counter by its name, such as `global_load_sectors`.
    pub fn get(&self, counter: &str) -> Option<f64> {
        self.counters.get(counter)?.as_f64()
    }

    fn parse(line: &str) -> Result<Self> {
        let counters: Map<String, Value> = serde_json::from_str(line).context("a line is no JSON object")?;
        let kernel = counters.get("kernel").and_then(Value::as_str).context("a line names no kernel")?;
        Ok(Self { kernel: kernel.to_owned(), counters })
    }
}

/// Asks the emulated GPU to write its counts to a temporary file, unless the reader has named a file. The file lasts as
/// long as what is returned.
///
/// # Safety
/// No other thread may run: setting an environment variable while another thread reads one is undefined behaviour.
pub(crate) unsafe fn ask_for() -> Result<Option<tempfile::TempPath>> {
    if std::env::var_os(VARIABLE).is_some() {
        return Ok(None);
    }
    let file = tempfile::NamedTempFile::new().context("making a file for the emulated GPU's counts")?;
    let path = file.into_temp_path();
    // SAFETY: the caller runs no other thread.
    unsafe { std::env::set_var(VARIABLE, &path) };
    Ok(Some(path))
}

/// Runs `work` and reads what the emulated GPU counted meanwhile.
pub(crate) fn during<R>(work: impl FnOnce() -> Result<R>) -> Result<(R, Vec<Counts>)> {
    let Some(path) = std::env::var_os(VARIABLE).map(PathBuf::from) else {
        return Ok((work()?, Vec::new()));
    };
    let reading = || format!("reading the emulated GPU's counts from {}", path.display());
    let before = std::fs::metadata(&path).map_or(0, |file| file.len());
    let result = work()?;
    let Ok(mut file) = File::open(&path) else {
        // Nothing was launched yet, or on a GPU.
        return Ok((result, Vec::new()));
    };
    let mut text = String::new();
    file.seek(SeekFrom::Start(before)).and_then(|_| file.read_to_string(&mut text)).with_context(reading)?;
    let counts = text.lines().map(Counts::parse).collect::<Result<_>>().with_context(reading)?;
    Ok((result, counts))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_go_by_name() {
        let counts =
            Counts::parse(r#"{"kernel": "add", "grid": [1, 1, 1], "global_load_sectors": 8}"#).unwrap();
        assert_eq!(counts.kernel, "add");
        assert_eq!(counts.get("global_load_sectors"), Some(8.0));
        assert_eq!(counts.get("grid"), None);
        assert!(Counts::parse("{").is_err());
    }
}
