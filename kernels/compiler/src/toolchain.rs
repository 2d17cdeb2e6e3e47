//! Where NVRTC comes from: an installed copy of the pinned version, else the pinned wheel.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use anyhow::{Context, Result, anyhow, bail};

use crate::nvrtc::Compiler;

/// A version of NVRTC whose wheel is pinned by hash.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The version in full, such as `12.0.140`.
    pub version: &'static str,
    /// A pip requirements file with the hash of every wheel.
    requirements: &'static str,
}

/// The compiler of every kernel that asks for no other one.
pub const BASELINE: Pin = Pin { version: "12.0.140", requirements: include_str!("../nvrtc-12.0.txt") };

/// Every pinned version.
const PINS: [Pin; 2] =
    [BASELINE, Pin { version: "13.0.88", requirements: include_str!("../nvrtc-13.0.txt") }];

/// The pin for a version as kernels write it, such as `13.0`.
///
/// # Errors
/// When no wheel of that version is pinned.
pub fn pinned(version: &str) -> Result<Pin> {
    PINS.into_iter().find(|pin| pin.short() == version).ok_or_else(|| {
        let known: Vec<&str> = PINS.iter().map(Pin::short).collect();
        anyhow!(
            "no NVRTC {version} is pinned, only {}; add its wheel and hashes beside kernels/compiler/nvrtc-12.0.txt",
            known.join(" and ")
        )
    })
}

/// The folder of a `libnvrtc` of the pinned version and of its builtins library.
///
/// Installed copies come first: those that `CUDA_PATH`, `CUDA_HOME`, `CONDA_PREFIX` or `LD_LIBRARY_PATH` name, then the
/// usual places. Each is asked for its exact version. Failing those, `python3 -m pip` installs the pinned wheel into
/// `target/toolchain`.
///
/// # Errors
/// When there is neither; the message says what to install.
pub fn find_or_fetch_nvrtc(pin: Pin) -> Result<PathBuf> {
    let fetched = crate::workspace_root().join("target/toolchain").join(format!("nvrtc-{}", pin.version));
    let mut others = Vec::new();
    for folder in wheel_folders(&fetched).into_iter().chain(installed_folders()) {
        match version_in(&folder, pin) {
            Some(version) if version == pin.version => return Ok(folder),
            Some(version) => others.push(version),
            None => {}
        }
    }
    fetch(pin, &fetched).map_err(|error| missing(pin, &others, &error))?;
    wheel_folders(&fetched)
        .into_iter()
        .find(|folder| version_in(folder, pin).as_deref() == Some(pin.version))
        .ok_or_else(|| anyhow!("the wheel of NVRTC {} in {} does not work", pin.version, fetched.display()))
}

impl Pin {
    /// Major and minor version, as kernels write it.
    pub fn short(&self) -> &'static str {
        self.version.rsplit_once('.').map_or(self.version, |(short, _)| short)
    }

    /// The file that the dynamic loader calls this library by.
    pub(crate) fn library(&self) -> String {
        let major = self.version.split('.').next().unwrap_or_default();
        format!("libnvrtc.so.{major}")
    }
}

/// Where the wheels put the libraries: CUDA 12's and CUDA 13's.
fn wheel_folders(install: &Path) -> Vec<PathBuf> {
    vec![install.join("nvidia/cuda_nvrtc/lib"), install.join("nvidia/cu13/lib")]
}

/// Folders that may hold an installed NVRTC, most explicit first.
fn installed_folders() -> Vec<PathBuf> {
    let target = format!("targets/{}-linux/lib", env::consts::ARCH);
    let mut folders = Vec::new();
    for root in ["CUDA_PATH", "CUDA_HOME", "CONDA_PREFIX"].into_iter().filter_map(env::var_os) {
        let root = PathBuf::from(root);
        folders.extend([root.join("lib64"), root.join("lib"), root.join(&target)]);
    }
    if let Some(path) = env::var_os("LD_LIBRARY_PATH") {
        folders.extend(env::split_paths(&path));
    }
    let mut toolkits: Vec<PathBuf> = fs::read_dir("/usr/local")
        .into_iter()
        .flatten()
        .flatten()
        .filter(|entry| entry.file_name().to_string_lossy().starts_with("cuda"))
        .map(|entry| entry.path().join("lib64"))
        .collect();
    toolkits.sort();
    folders.extend(toolkits);
    folders.push(format!("/usr/lib/{}-linux-gnu", env::consts::ARCH).into());
    folders.push("/usr/lib64".into());
    folders
}

/// The exact version of the NVRTC in a folder, if there is one that works.
fn version_in(folder: &Path, pin: Pin) -> Option<String> {
    let library = folder.join(pin.library());
    library
        .is_file()
        .then(|| Compiler::open_library(&library).ok())?
        .map(|compiler| compiler.version().into())
}

/// Installs the pinned wheel.
fn fetch(pin: Pin, fetched: &Path) -> Result<()> {
    pip_install(&format!("NVRTC {}", pin.version), pin.requirements, fetched)
}

/// Has pip install what `requirements` pins into the folder `fetched`. Whoever finishes first wins, so that two of us may
/// run at once.
pub(crate) fn pip_install(what: &str, requirements: &str, fetched: &Path) -> Result<()> {
    let toolchain = fetched.parent().context("the toolchain folder has a parent")?;
    fs::create_dir_all(toolchain).with_context(|| format!("creating {}", toolchain.display()))?;
    let name = fetched.file_name().unwrap_or_default().display();
    let list = toolchain.join(format!("{name}.txt"));
    fs::write(&list, requirements).with_context(|| format!("writing {}", list.display()))?;

    eprintln!("fetching {what} into target/toolchain with pip (once)");
    let partial = toolchain.join(format!("{name}.{}", std::process::id()));
    let output = Command::new("python3")
        .args(["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"])
        .args(["--only-binary=:all:", "--require-hashes", "--target"])
        .arg(&partial)
        .arg("--requirement")
        .arg(&list)
        .output()
        .map_err(|_| anyhow!("python3 is not installed"))?;
    if !output.status.success() {
        let _ = fs::remove_dir_all(&partial);
        let errors = String::from_utf8_lossy(&output.stderr);
        let last = errors.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it said nothing");
        bail!("python3 -m pip could not install it: {last}");
    }
    if !fetched.is_dir()
        && let Err(error) = fs::rename(&partial, fetched)
        && !fetched.is_dir()
    {
        return Err(error).with_context(|| format!("moving the wheel to {}", fetched.display()));
    }
    let _ = fs::remove_dir_all(&partial);
    Ok(())
}

/// What is missing and how to get it, in one sentence.
fn missing(pin: Pin, others: &[String], fetch: &anyhow::Error) -> anyhow::Error {
    let installed = match others {
        [] => "is not installed".to_string(),
        others => format!("is not installed ({} is)", others.join(", ")),
    };
    anyhow!(
        "NVRTC {}, which compiles the kernels, {installed} and could not be fetched ({fetch:#}): install Python 3 with \
         pip and call this again, or install CUDA {} and set CUDA_PATH to its folder",
        pin.version,
        pin.short(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pins_name_their_wheels_with_hashes() {
        for pin in PINS {
            assert!(pin.requirements.contains(&format!("=={} \\", pin.version)), "{pin:?}");
            assert!(pin.requirements.contains("--hash=sha256:"), "{pin:?}");
            assert_eq!(pinned(pin.short()).unwrap(), pin);
        }
        assert_eq!(BASELINE.short(), "12.0");
        assert_eq!(BASELINE.library(), "libnvrtc.so.12");
    }

    #[test]
    fn what_is_missing_is_said_in_one_sentence() {
        let message =
            missing(BASELINE, &["12.9.86".into()], &anyhow!("python3 is not installed")).to_string();
        assert_eq!(
            message,
            "NVRTC 12.0.140, which compiles the kernels, is not installed (12.9.86 is) and could not be fetched (python3 \
             is not installed): install Python 3 with pip and call this again, or install CUDA 12.0 and set CUDA_PATH to \
             its folder"
        );
    }

    #[test]
    fn an_unknown_version_says_which_are_known() {
        let message = pinned("9.2").unwrap_err().to_string();
        assert!(message.contains("no NVRTC 9.2 is pinned, only 12.0 and 13.0"), "{message}");
    }
}
