//! What a bundle says of itself, and what its results are checked against.

use std::collections::BTreeMap;

use record::Input;
use serde::{Deserialize, Serialize};

/// The version of the manifest's layout.
pub const SCHEMA: u32 = 1;

/// `manifest.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// [`SCHEMA`] of the program that wrote it.
    pub schema: u32,
    /// The commit that was built; empty outside a git checkout.
    pub commit: String,
    /// Whether tracked files differed from that commit.
    pub dirty: bool,
    /// `rustc --version` of the build.
    pub rustc: String,
    /// When it was packed, UTC.
    pub date: String,
    /// The chapters in it.
    pub chapters: BTreeMap<String, BundledChapter>,
    /// SHA-256 of each program and library, by its path in the bundle.
    pub programs: BTreeMap<String, String>,
    /// Every crate in `Cargo.lock` that came from a registry, with its versions.
    pub crates: BTreeMap<String, Vec<String>>,
}

/// A chapter in a bundle.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct BundledChapter {
    /// The chapter's own sources and data, hashed as for its records.
    pub inputs: Vec<Input>,
    /// The cells that profilers look at, as the chapter's `Cargo.toml` says it; null where it says nothing.
    pub profile: serde_json::Value,
    /// Whether NVTX ranges were compiled in.
    pub nvtx: bool,
}
