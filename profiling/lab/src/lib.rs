//! The bench that every chapter stands on: it puts a CUDA driver in place (the GPU's, or the emulated one), runs the
//! chapter's cells, times them, shows them in the terminal and records them for the book.
//!
//! A chapter is a list of cells, like a notebook:
//!
//! ```no_run
//! # mod ch01_raw_kernel {
//! const CELLS: &[lab::CellSpec] = &[lab::cell("four-steps", "Add two vectors by the driver API", four_steps)];
//!
//! fn four_steps(cell: &mut lab::Cell) -> anyhow::Result<()> {
//!     cell.value("elements", 1000.0, "");
//!     Ok(())
//! }
//! # }
//! ```
//!
//! and its program is one line, `lab::main(lab::chapter!(), ch01_raw_kernel::CELLS)`.

mod arguments;
mod cell;
mod chapter;
mod checked;
mod counts;
mod device;
mod journal;
pub mod libraries;
mod links;
mod messages;
mod nvml;
mod origin;
pub mod peers;
mod privacy;
mod progress;
mod provenance;
mod range;
mod restart;
mod run;
mod terminal;
pub mod timing;

pub use record::{Abscissa, Axis, Entry, Figure, HeatMap, Lane, Point, Series, Span, Table, Timeline};

pub use cell::Cell;
pub use chapter::{CellSpec, Chapter, cell};
pub use checked::reports;
pub use counts::Counts;
pub use device::{DeviceChoice, device_clock, is_emulated, open_device, prepare_device, what_is_missing};
pub use messages::driver_messages;
pub use range::{Range, range};
pub use run::main;

/// A table's row of unlike things: `lab::row!["copy", bytes, seconds]`.
#[macro_export]
macro_rules! row {
    ($($entry:expr),* $(,)?) => { [$($crate::Entry::from($entry)),*] };
}
