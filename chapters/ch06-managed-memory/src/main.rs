//! `cargo run -p ch06-managed-memory`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch06_managed_memory::CELLS)
}
