//! The suite.

mod fixture;
#[cfg(feature = "installed")]
mod kernels;

#[cfg(feature = "installed")]
mod browser;
#[cfg(feature = "installed")]
mod cudarc_examples;
#[cfg(feature = "installed")]
mod foreign;
#[cfg(feature = "installed")]
mod mdbook;
#[cfg(feature = "installed")]
mod nvtx;
#[cfg(feature = "installed")]
mod pages;
#[cfg(feature = "installed")]
mod run_time;

mod serve;
