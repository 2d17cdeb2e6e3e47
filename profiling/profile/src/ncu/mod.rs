//! Nsight Compute: what one kernel did with the hardware.

pub mod kernels;
pub mod metrics;
pub mod raw;
pub mod session;

mod group;
mod limits;
mod roofline;
