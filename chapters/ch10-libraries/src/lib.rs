//! Chapter 10, library calls: what somebody else has written, and when to call it.
//!
//! You need chapters 1 to 4. You get: cuBLAS, cuBLASLt, cuSPARSE, cuSOLVER, cuDNN, cuRAND and cuFFT
//! called from Rust, each against a way of our own; a network that reads digits by both; and what a
//! library costs, keeps and promises.

pub mod blas;
pub mod by_hand;
pub mod convolution;
pub mod cost;
mod counts;
pub mod cpu;
pub mod data;
pub mod device;
pub mod digits;
mod found;
pub mod layer;
pub mod layout;
pub mod outcome;
mod peers;
pub mod random;
mod same;
pub mod solver;
pub mod sparse;
pub mod spectrum;
mod whole;

use lab::CellSpec;

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("libraries", "Look which libraries are here", found::libraries),
    lab::cell("by-hand", "Hold our own kernels against the CPU, and count", counts::by_hand),
    lab::cell("product", "From a tiled kernel to tensor cores", blas::rates),
    lab::cell("batched", "Many small products, in one call", blas::batched),
    lab::cell("layer", "Bias and GELU within the product", layer::fused),
    lab::cell("digits", "Read digits, by hand and by libraries", digits::digits),
    lab::cell("sparse", "Leave the zeros out", sparse::sparse),
    lab::cell("convolution", "Find the edges of 1797 digits", convolution::convolution),
    lab::cell("softmax", "Softmax, again", convolution::softmax),
    lab::cell("random", "Random numbers", random::random),
    lab::cell("sunspots", "Find the cycle of the sun", spectrum::sunspots),
    lab::cell("cost", "What a call costs the CPU", cost::cost),
    lab::cell("same-twice", "Ask twenty times", same::same_twice),
    lab::cell("whole", "Every operation, by hand and by a call", whole::whole),
    lab::cell("profiled", "Every library once, for a profiler", whole::profiled),
    lab::cell("peers", "The same from PyTorch and CuPy", peers::peers),
];
