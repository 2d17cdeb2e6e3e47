//! `cargo run -p ch01-raw-kernel`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch01_raw_kernel::CELLS)
}
