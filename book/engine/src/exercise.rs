//! `cargo book exercise`: one hole in a kernel, compiled and checked.
