//! `cargo book`.
fn main() {}
