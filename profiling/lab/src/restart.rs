//! Starting the program again with more folders on its library path.
//!
//! The dynamic loader reads `LD_LIBRARY_PATH` once, when a program starts; a program that needs another path replaces
//! itself (`execve`: same process id, same files). The program's own children get the path that the reader had.

use std::convert::Infallible;
use std::ffi::OsString;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;

use anyhow::{Context, Result, bail};

const PATH: &str = "LD_LIBRARY_PATH";
/// The path that the reader had; set only by a restart, empty where there was none.
const READERS_PATH: &str = "LADDER_LIBRARY_PATH";

static RESTARTED: OnceLock<bool> = OnceLock::new();

/// Gives the environment back the reader's library path after a restart.
///
/// # Safety
/// No other thread may run: setting an environment variable while another thread reads one is undefined behaviour.
pub(crate) unsafe fn restore_environment() {
    let Some(readers) = std::env::var_os(READERS_PATH) else { return };
    RESTARTED.get_or_init(|| true);
    // SAFETY: the caller runs no other thread.
    unsafe {
        std::env::remove_var(READERS_PATH);
        if readers.is_empty() {
            std::env::remove_var(PATH);
        } else {
            std::env::set_var(PATH, readers);
        }
    }
}

/// Whether this program was started again.
pub(crate) fn restarted() -> bool {
    *RESTARTED.get_or_init(|| std::env::var_os(READERS_PATH).is_some())
}

/// Replaces this program by itself, with `first` before and `last` behind the folders of the reader's library path.
///
/// # Errors
/// When the program was started again before, or cannot be. It does not return otherwise.
pub(crate) fn restart(first: &[PathBuf], last: &[PathBuf]) -> Result<Infallible> {
    if restarted() {
        bail!(
            "the dynamic loader still finds another libcuda.so although this program was started again with \
             its own first on {PATH}; take the other one off the path (an RPATH, or LD_PRELOAD)"
        );
    }
    let readers = std::env::var_os(PATH).unwrap_or_default();
    let program = std::env::current_exe().context("asking for this program's path")?;
    let mut arguments = std::env::args_os();
    let name = arguments.next().unwrap_or_else(|| program.clone().into());
    let error = Command::new(&program)
        .arg0(name)
        .args(arguments)
        .env(PATH, path(first, &readers, last)?)
        .env(READERS_PATH, &readers)
        .exec();
    Err(error).with_context(|| format!("starting {} again", program.display()))
}

fn path(first: &[PathBuf], readers: &OsString, last: &[PathBuf]) -> Result<OsString> {
    // An empty entry means the current folder to the loader: an empty path must stay without entries.
    let readers = std::env::split_paths(readers).filter(|folder| !folder.as_os_str().is_empty());
    std::env::join_paths(first.iter().cloned().chain(readers).chain(last.iter().cloned()))
        .context("a folder with a colon in its name cannot stand on the library path")
}

#[cfg(test)]
mod tests {
    use super::path;

    #[test]
    fn paths_have_no_empty_entry() {
        let join = |first: &[&str], readers: &str, last: &[&str]| {
            let folders = |names: &[&str]| names.iter().map(|name| (*name).into()).collect::<Vec<_>>();
            path(&folders(first), &readers.into(), &folders(last)).unwrap().into_string().unwrap()
        };
        assert_eq!(join(&["/e"], "", &[]), "/e");
        assert_eq!(join(&["/e"], "/a:/b", &["/l"]), "/e:/a:/b:/l");
        assert_eq!(join(&[], "/a::", &["/l"]), "/a:/l");
    }
}
