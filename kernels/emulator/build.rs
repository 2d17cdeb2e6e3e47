//! Gives the shared library the name that CUDA programs ask for.

fn main() {
    // The dynamic loader matches the sonames of the libraries that are loaded: once this one is, a program's own
    // `dlopen("libcuda.so.1")` gets it.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-soname,libcuda.so.1");
    // Its entry points call each other and never those of another driver in the same process.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-Bsymbolic");
    // Its threads are never joined, so it stays where it is, also when a program closes it.
    println!("cargo::rustc-link-arg-cdylib=-Wl,-z,nodelete");
    println!("cargo::rerun-if-changed=build.rs");
}
