//! `cargo kernels`.
fn main() {}
