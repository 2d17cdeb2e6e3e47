//! Nsight Systems: who did what when.

pub mod export;
pub mod session;
pub mod timeline;
pub mod trace_events;

mod nesting;
mod picture;
mod tables;

pub(crate) use picture::dimensions;
