//! Compiles the kernels of `kernels/cuda` to the PTX of `kernels/ptx`, and the exercises of readers.
//!
//! The compiler is NVRTC, NVIDIA's run-time compiler, in one pinned version, so that everybody gets the same bytes. It
//! needs no GPU. [`find_or_fetch_nvrtc`] looks for an installed copy and otherwise asks pip for the pinned wheel;
//! [`Compiler`] opens it; [`regenerate`] and [`check`] are what `cargo kernels` does.
//!
//! Nothing else needs NVRTC: the PTX is committed, so a reader without it runs every chapter.

mod generate;
pub mod libclang;
mod nvrtc;
mod registers;
mod source;
mod toolchain;

use std::path::PathBuf;

pub use generate::{Change, Outcome, check, regenerate};
pub use nvrtc::{CompileError, Compiler};
pub use registers::measure_registers;
pub use source::{KernelSource, Needs, names, stated_sources};
pub use toolchain::{BASELINE, Pin, find_or_fetch_nvrtc, pinned};

/// The checkout's root: the nearest folder above the current one that holds `kernels/cuda`, else the one that this program
/// was built from.
pub fn workspace_root() -> PathBuf {
    let built_from = || {
        let mut root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        root.pop();
        root.pop();
        root
    };
    std::env::current_dir()
        .ok()
        .and_then(|folder| {
            folder.ancestors().find(|above| above.join("kernels/cuda").is_dir()).map(PathBuf::from)
        })
        .unwrap_or_else(built_from)
}
