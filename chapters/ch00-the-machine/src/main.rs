//! The chapter in a terminal.
fn main() {}
