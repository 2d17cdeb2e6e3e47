//! Nsight Systems: who did what when.

pub mod export;
pub mod session;
pub mod timeline;
pub mod trace_events;
