//! The CUDA driver's C interface over the emulated GPU.
//!
//! One file for each of the manual's chapters. `abi` says what a C call is, `state` what there is before any call, `work`
//! what streams and graphs do, `queue` when and on which thread. Every symbol of a CUDA 13.0 driver is exported;
//! `unsupported` lists those that do nothing.

mod abi;
mod error;
mod handle;
mod host;
mod log;
mod state;

mod init;
mod symbols;
mod unsupported;

mod context;
mod device;
mod primary;

mod function;
mod image;
mod library;
mod link;
mod module;
mod occupancy;

mod advice;
mod allocations;
mod batch;
mod copy;
mod memory;
mod pointer;
mod pool;
mod set;

mod capture;
mod event;
mod graph;
mod graph_memory;
mod graph_nodes;
mod node_params;
mod order;
mod queue;
mod stream;
mod stream_memory;
mod user_object;
mod work;

mod coredump;
mod counters_file;
mod cuda3_launch;
mod launch;
