//! Runs a CUDA program on the emulated GPU.
fn main() {}
