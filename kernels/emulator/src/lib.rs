//! An emulated CUDA GPU, behind the CUDA driver's own C interface.
//!
//! The library of this crate is a `libcuda.so.1`: whatever speaks the driver's interface runs on it, unchanged. A call
//! enters at `driver`, a module's PTX goes through `ptx` and `module`, and a launch through `grid`, `block`
//! and `warp`, down to `memory`.

mod block;
pub mod counters;
mod driver;
pub mod fault;
pub mod grid;
mod heap;
pub mod memory;
pub mod model;
pub mod module;
mod printf;
pub mod ptx;
mod race;
mod scope;
pub mod settings;
mod warp;

pub use scope::scope;
