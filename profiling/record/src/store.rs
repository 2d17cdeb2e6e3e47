//! Records as files: written whole or not at all, and read with a clear word when something else lies there.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result, bail};

use crate::{Record, SCHEMA};

/// Where a chapter's record lies below a folder of records such as `book/records/h200`.
pub fn path(folder: &Path, chapter: &str) -> PathBuf {
    folder.join(chapter).join("record.json")
}

/// The folder's name for a device's committed records: `emulated`, or made from the GPU's name (`NVIDIA H200` is `h200`).
pub fn slug(device: &str, emulated: bool) -> String {
    if emulated {
        return "emulated".to_owned();
    }
    let words = device.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let vendor = ["nvidia", "geforce", "tesla", "quadro"];
    let words: Vec<String> =
        words.map(str::to_ascii_lowercase).filter(|word| !vendor.contains(&word.as_str())).collect();
    if words.is_empty() { "gpu".to_owned() } else { words.join("-") }
}

impl Record {
    /// Reads a record; `None` where there is no file.
    ///
    /// # Errors
    /// When the file is half-written, is no record, or has another version's layout. The message says which.
    pub fn load(path: &Path) -> Result<Option<Self>> {
        let bytes = match fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(error).with_context(|| format!("reading {}", path.display())),
        };
        Self::parse(&bytes).map(Some).with_context(|| format!("reading {}", path.display()))
    }

    /// Writes the record so that a reader at any moment finds the old one or the new one, never a half.
    ///
    /// # Errors
    /// When the folder or the file cannot be written.
    pub fn save(&self, path: &Path) -> Result<()> {
        let mut text = serde_json::to_string_pretty(self).context("writing a record as JSON")?;
        text.push('\n');
        replace(path, text.as_bytes()).with_context(|| format!("writing {}", path.display()))
    }

    fn parse(bytes: &[u8]) -> Result<Self> {
        const AGAIN: &str = "run the chapter again to replace it";
        let json: serde_json::Value = match serde_json::from_slice(bytes) {
            Ok(json) => json,
            Err(error) if error.is_eof() => bail!("the file is cut off ({error}): {AGAIN}"),
            Err(error) => bail!("the file is no JSON ({error}): {AGAIN}"),
        };
        match json.get("schema").and_then(serde_json::Value::as_u64) {
            Some(schema) if schema == u64::from(SCHEMA) => {}
            Some(schema) => {
                bail!("the record has layout {schema}, this program reads layout {SCHEMA}: {AGAIN}")
            }
            None => bail!("the file is no chapter's record, it names no schema: {AGAIN}"),
        }
        serde_json::from_value(json).map_err(|error| {
            anyhow::anyhow!("the record lacks something or has it in another form ({error}): {AGAIN}")
        })
    }
}

/// Puts `bytes` at `path` by writing a temporary file beside it and renaming that.
fn replace(path: &Path, bytes: &[u8]) -> Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().context("the path has no folder")?;
    fs::create_dir_all(folder)?;
    let unique = format!(".record.{}.{}.tmp", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
    let temporary = folder.join(unique);
    let written = File::create(&temporary)
        .and_then(|mut file| {
            file.write_all(bytes)?;
            // Renaming a file whose bytes are still on their way could leave an empty record after a power cut.
            file.sync_all()
        })
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // The write's own error is what the reader must see; a left-over temporary file harms nobody.
        let _ = fs::remove_file(&temporary);
    }
    Ok(written?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Provenance, Status};

    fn sample() -> Record {
        Record {
            schema: SCHEMA,
            chapter: "ch99-sample".to_owned(),
            status: Status::Complete,
            provenance: Provenance::default(),
            inputs: Vec::new(),
            cells: Vec::new(),
            profile: None,
        }
    }

    #[track_caller]
    fn message(bytes: &[u8]) -> String {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("record.json");
        fs::write(&path, bytes).unwrap();
        format!("{:#}", Record::load(&path).unwrap_err())
    }

    #[test]
    fn a_saved_record_comes_back_and_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = path(folder.path(), "ch99-sample");
        assert_eq!(Record::load(&path).unwrap(), None);
        sample().save(&path).unwrap();
        sample().save(&path).unwrap();
        assert_eq!(Record::load(&path).unwrap(), Some(sample()));
        assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), 1);
    }

    #[test]
    fn half_a_record_says_that_it_is_cut_off() {
        let whole = serde_json::to_vec_pretty(&sample()).unwrap();
        for length in [0, 1, whole.len() / 2, whole.len() - 1] {
            let message = message(&whole[..length]);
            assert!(message.contains("cut off"), "{length}: {message}");
        }
    }

    #[test]
    fn foreign_files_say_what_is_wrong() {
        assert!(message(b"<html>").contains("no JSON"));
        assert!(message(b"{\"name\": 1}").contains("names no schema"));
        assert!(message(b"{\"schema\": 99}").contains("layout 99"));
        assert!(message(b"{\"schema\": 1}").contains("missing field `chapter`"));
    }

    #[test]
    fn slugs() {
        for (device, expected) in [
            ("NVIDIA H200", "h200"),
            ("NVIDIA A100-SXM4-80GB", "a100-sxm4-80gb"),
            ("NVIDIA GeForce RTX 4090", "rtx-4090"),
            ("Tesla T4", "t4"),
            ("NVIDIA", "gpu"),
        ] {
            assert_eq!(slug(device, false), expected);
        }
        assert_eq!(slug("NVIDIA H200 (emulated)", true), "emulated");
    }
}
