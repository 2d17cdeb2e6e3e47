//! `cargo book check`: everything that a page promises, judged without a GPU.
