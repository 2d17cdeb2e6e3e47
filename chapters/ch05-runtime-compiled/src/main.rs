//! `cargo run -p ch05-runtime-compiled`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch05_runtime_compiled::CELLS)
}
