//! Finds libclang, which the crate `nvtx` needs to be built.

use std::env;
use std::path::{Path, PathBuf};

use anyhow::{Result, bail};

/// A libclang and the headers that go with it.
#[derive(Clone, Debug)]
pub struct Libclang {
    folder: PathBuf,
}

impl Libclang {
    /// Where it is, in a line.
    pub fn describe(&self) -> String {
        self.folder.display().to_string()
    }

    /// The variables with which the crate `nvtx` builds.
    pub fn environment(&self) -> Vec<(String, String)> {
        vec![("LIBCLANG_PATH".into(), self.folder.display().to_string())]
    }
}

/// Looks where distributions and LLVM's own packages put it.
///
/// # Errors
/// When there is none; the message says how to get it.
pub fn find() -> Result<Libclang> {
    let mut folders: Vec<PathBuf> = env::var_os("LIBCLANG_PATH").map(PathBuf::from).into_iter().collect();
    let mut versions = subfolders("/usr/lib", "llvm-");
    versions.sort();
    folders.extend(versions.into_iter().rev().map(|folder| folder.join("lib")));
    folders.push(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH).into());
    folders.push("/usr/lib64".into());
    for folder in folders {
        if holds_libclang(&folder) {
            return Ok(Libclang { folder });
        }
    }
    bail!("install it (Debian and Ubuntu: apt-get install libclang-dev; Fedora: dnf install clang-devel)")
}

fn holds_libclang(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name == "libclang.so"
            || name.starts_with("libclang.so.")
            || name.starts_with("libclang-") && name.contains(".so") && !name.starts_with("libclang-cpp")
    })
}

fn subfolders(folder: &str, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = Path::new(folder).read_dir() else { return Vec::new() };
    let starts =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    entries.flatten().map(|entry| entry.path()).filter(starts).collect()
}
