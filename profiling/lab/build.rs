//! Notes with what the program was built, for the records' provenance.

use std::process::Command;

fn main() {
    let rustc = std::env::var("RUSTC").unwrap_or_else(|_| "rustc".to_owned());
    let version = Command::new(rustc)
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .unwrap_or_default();
    println!("cargo::rustc-env=LAB_RUSTC={}", version.trim());
    println!("cargo::rustc-env=LAB_OPT_LEVEL={}", std::env::var("OPT_LEVEL").unwrap_or_default());
    println!("cargo::rerun-if-changed=build.rs");
}
