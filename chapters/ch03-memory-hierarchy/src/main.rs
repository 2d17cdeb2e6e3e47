//! `cargo run -p ch03-memory-hierarchy`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch03_memory_hierarchy::CELLS)
}
