//! What any CUDA driver answers to a C program. `CUDA_DRIVER=libcuda.so.1` runs the same on a GPU.

#[path = "../common/mod.rs"]
mod common;

mod batches;
mod devices;
mod graph_nodes;
mod graphs;
mod launches;
mod linking;
mod memory;
mod modules;
mod queues;
mod streams;
