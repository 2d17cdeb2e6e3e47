//! An emulated CUDA GPU.
