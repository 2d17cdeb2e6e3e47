//! Drives Nsight Systems and Nsight Compute for a chapter, reads what they wrote, and puts it, reduced, into the chapter's
//! record.
//!
//! [`run`] is one `cargo profile CHAPTER`: it builds the chapter with NVTX ranges ([`target`]), finds the tools
//! ([`tools`]), lets [`nsys`] say who did what when and [`ncu`] what each kernel did with the hardware, and stores the cells
//! ([`store`]). [`doctor`] says what a machine lacks for that.
//!
//! Each figure is [measured, derived by a formula that is named, or not collected for a reason](reading::Reading).
//!
//! | tier | gives | needs |
//! |---|---|---|
//! | Nsight Compute | counters of each kernel | a GPU whose counters the user may read |
//! | Nsight Systems | the timeline | a GPU |
//! | CUDA events | the times in the chapter's own record | a GPU; nothing to be done here |

pub mod doctor;
pub mod invocation;
pub mod ncu;
pub mod nsys;
pub mod reading;
pub mod store;
pub mod target;
pub mod tools;

mod session;

pub use session::{Request, run};
