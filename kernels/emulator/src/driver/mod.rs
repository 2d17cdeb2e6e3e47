//! The CUDA driver's C interface over the emulated GPU.
