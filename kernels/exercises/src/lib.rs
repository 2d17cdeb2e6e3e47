//! The readers' exercises: kernels with one hole each, and the check of what a reader puts in.
//!
//! An exercise is three files of this folder: `chNN_<name>.cu` with the hole, `chNN_<name>.solution.cu`, and
//! `chNN_<name>.toml` with the task, the hints and what the check expects. [`find`] reads them, [`observe`] runs a kernel on
//! a device at awkward sizes, [`judge`] says in the words of the lesson what is wrong, and [`confine`] lets the device
//! itself stop what reaches out of its memory. [`look`], [`verdict`] and [`fence`] do the same for kernels on a matrix,
//! [`glance`] and [`appraise`] for kernels on managed memory, and [`watch`], [`sentence`] and [`enclose`] for kernels that
//! are launched once for each part of a vector.

mod chunks;
mod exercise;
mod judge;
mod layer;
mod managed;
mod matrix;
mod reduction;
mod run;

pub use chunks::{Chunks, LENGTHS, Step, enclose, sentence, watch};
pub use exercise::{About, Exercise, Expect, Launch, Operation, find, hole};
pub use judge::judge;
pub use layer::{LAYERS, Layer, Outputs, complaint, compute};
pub use managed::{Glance, Managed, Pages, appraise, glance};
pub use matrix::{MATRICES, Matrix, Sight, Traffic, Wanted, fence, look, verdict};
pub use reduction::{Answer, explain_report, judge_reduction, reduce, signature};
pub use run::{Attempt, Counts, Observation, SIZES, Stop, confine, observe};
