//! `cargo profile`.
fn main() {}
