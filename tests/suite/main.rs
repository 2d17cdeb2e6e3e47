//! The suite.

#[cfg(feature = "installed")]
mod kernels;
