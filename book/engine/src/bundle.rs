//! `cargo book bundle`: one archive for a GPU machine that has no Rust.
