//! Compiled kernels on disk, so that a program compiles each of them once and not at every start.
//!
//! An entry is a file. Its name is the SHA-256 of all that decides what comes out: the source and its name, the options, the
//! instances, the target and the compiler's version. What the source includes from elsewhere is not looked at: who includes
//! files puts their text into the source, or a version into the options.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::Result;
use sha2::{Digest, Sha256};

use crate::nvrtc::{self, Image, Source, Target};

/// A folder of compiled kernels.
pub struct Cache {
    folder: PathBuf,
}

/// Where an image came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum From {
    /// The compiler.
    Compiler,
    /// The folder.
    Disk,
}

impl Cache {
    /// A cache in this folder, which is made when the first entry is written.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// `XDG_CACHE_HOME`, or `.cache` in the home folder: where programs of a Linux desktop keep what can be made again.
    pub fn of_user(program: &str) -> Option<Self> {
        let base =
            std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
        let base = base.or_else(|| Some(std::env::home_dir()?.join(".cache")))?;
        Some(Self::new(base.join(program)))
    }

    // ANCHOR: get
    /// The image of a source, from the folder if it is there.
    ///
    /// # Errors
    /// As [`nvrtc::compile`]. A folder that cannot be written is no error: the next start compiles
    /// again, and a line on standard error says so.
    pub fn get(&self, source: &Source<'_>, target: Target) -> Result<(Image, From)> {
        let path = self.folder.join(key(source, target, nvrtc::version()?));
        if let Some(image) = fs::read(&path).ok().and_then(|bytes| decode(&bytes)) {
            return Ok((image, From::Disk));
        }
        let image = nvrtc::compile(source, target)?;
        if let Err(error) = write(&path, &encode(&image)) {
            eprintln!(
                "warning: the compiled kernel was not kept in {}: {error}",
                self.folder.display()
            );
        }
        Ok((image, From::Compiler))
    }
    // ANCHOR_END: get
}

// ANCHOR: key
/// The name of an entry: what decides the result, hashed.
pub fn key(source: &Source<'_>, target: Target, (major, minor): (u32, u32)) -> String {
    let mut hash = Sha256::new();
    let mut part = |bytes: &[u8]| {
        // With its length before it, no part can be taken for the end of another.
        hash.update((bytes.len() as u64).to_le_bytes());
        hash.update(bytes);
    };
    part(format!("NVRTC {major}.{minor}, format 1").as_bytes());
    part(target.option().as_bytes());
    part(source.file.as_bytes());
    part(source.text.as_bytes());
    for (what, words) in [
        ("options", source.options.iter().map(String::as_str).collect::<Vec<_>>()),
        ("instances", source.instances.clone()),
    ] {
        part(format!("{} {what}", words.len()).as_bytes());
        words.iter().for_each(|word| part(word.as_bytes()));
    }
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}
// ANCHOR_END: key

/// Writes a file that others see whole or not at all, whoever else writes the same one, and whatever ends this program.
fn write(path: &Path, bytes: &[u8]) -> std::io::Result<()> {
    let folder = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.persist(path)?;
    Ok(())
}

/// The hash of the rest, then the names, one a line and an empty one at the end, then the image.
fn encode(image: &Image) -> Vec<u8> {
    let mut rest: Vec<u8> =
        image.lowered.iter().flat_map(|name| format!("{name}\n").into_bytes()).collect();
    rest.push(b'\n');
    rest.extend(&image.bytes);
    let mut bytes = Sha256::digest(&rest).to_vec();
    bytes.extend(rest);
    bytes
}

/// `None` unless the entry is whole: a machine may have lost its power while it was written.
fn decode(bytes: &[u8]) -> Option<Image> {
    let (hash, mut rest) = bytes.split_at_checked(32)?;
    if Sha256::digest(rest).as_slice() != hash {
        return None;
    }
    let mut lowered = Vec::new();
    loop {
        let end = rest.iter().position(|&byte| byte == b'\n')?;
        let (line, behind) = (&rest[..end], &rest[end + 1..]);
        rest = behind;
        if line.is_empty() {
            return Some(Image { bytes: rest.to_vec(), lowered });
        }
        lowered.push(String::from_utf8(line.to_vec()).ok()?);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source() -> Source<'static> {
        Source {
            file: "k.cu",
            text: "int x;",
            options: vec!["-DA=1".into(), "-DB=2".into()],
            instances: vec!["f<float>"],
        }
    }

    #[test]
    fn everything_that_decides_the_result_is_in_the_key() {
        let (first, target, version) = (source(), Target::Ptx(75), (12, 0));
        let mut keys = vec![
            key(&first, target, version),
            key(&first, Target::Ptx(80), version),
            key(&first, Target::Cubin(75), version),
            key(&first, target, (12, 1)),
            key(&first, target, (13, 0)),
            key(&Source { file: "l.cu", ..source() }, target, version),
            key(&Source { text: "int y;", ..source() }, target, version),
            key(&Source { options: vec!["-DA=1".into()], ..source() }, target, version),
            key(&Source { options: vec!["-DA=1-DB=2".into()], ..source() }, target, version),
            key(
                &Source { options: vec!["-DB=2".into(), "-DA=1".into()], ..source() },
                target,
                version,
            ),
            key(&Source { instances: vec!["f<int>"], ..source() }, target, version),
            key(
                &Source {
                    options: vec![],
                    instances: vec!["-DA=1", "-DB=2", "f<float>"],
                    ..source()
                },
                target,
                version,
            ),
        ];
        assert_eq!(keys[0], key(&source(), target, version));
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), 12);
    }

    #[test]
    fn an_entry_comes_back_and_a_damaged_one_does_not() {
        for image in [
            Image { bytes: vec![], lowered: vec![] },
            Image { bytes: b"\n\n\x7fELF\0".to_vec(), lowered: vec!["_Z1fIfE".into(), "g".into()] },
        ] {
            let bytes = encode(&image);
            assert_eq!(decode(&bytes), Some(image));
            for at in 0..bytes.len() {
                assert_eq!(decode(&bytes[..at]), None, "cut at {at}");
                let mut damaged = bytes.clone();
                damaged[at] ^= 1;
                assert_eq!(decode(&damaged), None, "changed at {at}");
            }
        }
    }

    #[test]
    fn a_folder_that_cannot_be_made_is_said_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a file");
        fs::write(&file, "").unwrap();
        assert!(write(&file.join("entry"), b"x").is_err());
        write(&folder.path().join("new/entry"), b"x").unwrap();
        assert_eq!(fs::read(folder.path().join("new/entry")).unwrap(), b"x");
        assert_eq!(
            fs::read_dir(folder.path().join("new")).unwrap().count(),
            1,
            "nothing else is left"
        );
    }
}
