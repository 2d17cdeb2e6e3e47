//! Finds libclang, which the crate `nvtx` needs to be built: its build runs bindgen, and bindgen reads C headers with it.
//!
//! libclang alone is not enough, it wants the compiler's own headers (`stddef.h`) too. A distribution's `libclang-dev` has
//! them; the Python wheel and Debian's `libclang1` have not, and there the C compiler's serve as well.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::toolchain::pip_install;

/// A libclang and, where it comes without, a folder of headers that go with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Libclang {
    folder: PathBuf,
    headers: Option<PathBuf>,
}

impl Libclang {
    /// Where it is, in a line.
    pub fn describe(&self) -> String {
        self.folder.display().to_string()
    }

    /// The variables with which the crate `nvtx` builds.
    pub fn environment(&self) -> Vec<(String, String)> {
        let folder = ("LIBCLANG_PATH".to_owned(), self.folder.display().to_string());
        let headers = self.headers.as_ref().map(|headers| {
            // What the reader has set for bindgen stays.
            let readers = env::var("BINDGEN_EXTRA_CLANG_ARGS").unwrap_or_default();
            let arguments = format!("{readers} -I{}", headers.display());
            ("BINDGEN_EXTRA_CLANG_ARGS".to_owned(), arguments.trim_start().to_owned())
        });
        std::iter::once(folder).chain(headers).collect()
    }
}

/// Looks where `LIBCLANG_PATH` says, where distributions and LLVM's own packages put it, and where
/// [`find_or_fetch`] has put it before.
///
/// # Errors
/// When there is none that can be used; the message says how to get it.
pub fn find() -> Result<Libclang> {
    let mut without_headers = None;
    for folder in folders().into_iter().filter(|folder| holds_libclang(folder)) {
        if has_headers(&folder) {
            return Ok(Libclang { folder, headers: None });
        }
        without_headers.get_or_insert(folder);
    }
    let Some(folder) = without_headers else {
        bail!("install it (Debian and Ubuntu: apt-get install libclang-dev; Fedora: dnf install clang-devel)")
    };
    let headers = compilers_headers().with_context(|| {
        format!(
            "libclang in {} has no stddef.h and there is no C compiler to take it from; install libclang-dev",
            folder.display()
        )
    })?;
    Ok(Libclang { folder, headers: Some(headers) })
}

/// As [`find`]; failing that, `python3 -m pip` installs the pinned wheel into `target/toolchain`.
///
/// # Errors
/// When there is none and it cannot be fetched; the message says how to get it.
pub fn find_or_fetch() -> Result<Libclang> {
    find().or_else(|missing| {
        pip_install("libclang", include_str!("../libclang.txt"), &fetched()).with_context(|| {
            format!("libclang is not installed and could not be fetched; {missing:#}, or Python 3 with pip")
        })?;
        find()
    })
}

/// Where the wheel is installed.
fn fetched() -> PathBuf {
    crate::workspace_root().join("target/toolchain/libclang-18.1.1")
}

/// The folders that may hold libclang, most explicit first.
fn folders() -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = env::var_os("LIBCLANG_PATH").map(PathBuf::from).into_iter().collect();
    let mut versions = subfolders(Path::new("/usr/lib"), "llvm-");
    versions.sort();
    folders.extend(versions.into_iter().rev().map(|folder| folder.join("lib")));
    folders.push(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH).into());
    folders.push("/usr/lib64".into());
    folders.push(fetched().join("clang/native"));
    folders
}

/// Whether the folder holds libclang under one of the names that bindgen looks for.
fn holds_libclang(folder: &Path) -> bool {
    let Ok(entries) = folder.read_dir() else { return false };
    entries.flatten().any(|entry| {
        let name = entry.file_name().to_string_lossy().into_owned();
        name == "libclang.so"
            || name.starts_with("libclang.so.")
            || name.starts_with("libclang-") && name.contains(".so") && !name.starts_with("libclang-cpp")
    })
}

/// Whether clang's own headers lie where this libclang looks for them: `clang/<version>/include` beside it. Debian keeps
/// them in LLVM's folder, which the link of the library leads to.
fn has_headers(folder: &Path) -> bool {
    let clang = |folder: &Path| {
        let versions = subfolders(&folder.join("clang"), "");
        versions.iter().any(|version| version.join("include/stddef.h").is_file())
    };
    let llvm = || subfolders(Path::new("/usr/lib"), "llvm-").iter().any(|llvm| clang(&llvm.join("lib")));
    clang(folder) || folder.starts_with("/usr/lib") && llvm()
}

/// The folder of the C compiler's own headers.
fn compilers_headers() -> Option<PathBuf> {
    let output = Command::new("cc").arg("-print-file-name=include").output().ok()?;
    let folder = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
    folder.join("stddef.h").is_file().then_some(folder)
}

fn subfolders(folder: &Path, prefix: &str) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let starts =
        |path: &PathBuf| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(prefix));
    entries.flatten().map(|entry| entry.path()).filter(starts).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_libclang_counts_as_libclang() {
        let folder = env::temp_dir().join(format!("libclang-names-{}", std::process::id()));
        for (name, counts) in [
            ("libclang.so", true),
            ("libclang.so.1", true),
            ("libclang-14.so.1", true),
            ("libclang-cpp.so.14", false),
            ("libclang.a", false),
        ] {
            std::fs::create_dir_all(&folder).unwrap();
            std::fs::write(folder.join(name), "").unwrap();
            assert_eq!(holds_libclang(&folder), counts, "{name}");
            std::fs::remove_dir_all(&folder).unwrap();
        }
    }

    #[test]
    fn headers_are_named_only_where_they_are_missing() {
        let with = Libclang { folder: "/c".into(), headers: None };
        assert_eq!(with.environment(), [("LIBCLANG_PATH".to_owned(), "/c".to_owned())]);
        let without = Libclang { folder: "/c".into(), headers: Some("/h".into()) };
        assert!(without.environment()[1].1.ends_with("-I/h"));
    }

    #[test]
    fn the_c_compiler_has_headers() {
        assert!(compilers_headers().is_some(), "a bare machine has a C compiler");
    }
}
