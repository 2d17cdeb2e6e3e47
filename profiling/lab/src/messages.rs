//! What the driver wrote to standard error while something went wrong.

use std::fs::File;
use std::io::{Read, Seek, Write};
use std::os::fd::AsRawFd;

use anyhow::{Context, Result};

/// Runs `work` and returns, beside its result, what was written to standard error meanwhile. The emulated GPU reports its
/// faults there; a real driver writes nothing.
///
/// # Errors
/// Passes on `work`'s error, and says so when standard error cannot be redirected.
pub fn driver_messages<R>(work: impl FnOnce() -> Result<R>) -> Result<(R, String)> {
    let mut file = tempfile::tempfile().context("opening a temporary file for the driver's messages")?;
    let redirected = Redirected::to(&file)?;
    let result = work();
    drop(redirected);
    let mut bytes = Vec::new();
    file.rewind()
        .and_then(|()| file.read_to_end(&mut bytes))
        .context("reading the driver's messages back")?;
    Ok((result?, String::from_utf8_lossy(&bytes).into_owned()))
}

/// Standard error goes to a file until this is dropped.
struct Redirected {
    original: i32,
}

impl Redirected {
    fn to(file: &File) -> Result<Self> {
        let _ = std::io::stderr().flush();
        // SAFETY: descriptor 2 is standard error; `dup` only makes another descriptor of it.
        let original = unsafe { libc::dup(libc::STDERR_FILENO) };
        if original < 0 {
            return Err(std::io::Error::last_os_error()).context("duplicating standard error");
        }
        // SAFETY: both descriptors are open: one is the file's, the other standard error.
        if unsafe { libc::dup2(file.as_raw_fd(), libc::STDERR_FILENO) } < 0 {
            // SAFETY: `original` was opened above and is not used again.
            unsafe { libc::close(original) };
            return Err(std::io::Error::last_os_error()).context("redirecting standard error");
        }
        Ok(Self { original })
    }
}

impl Drop for Redirected {
    fn drop(&mut self) {
        // SAFETY: `original` is the descriptor of standard error that `to` saved, and is closed only here.
        unsafe {
            libc::dup2(self.original, libc::STDERR_FILENO);
            libc::close(self.original);
        }
    }
}
