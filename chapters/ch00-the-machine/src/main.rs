//! `cargo run -p ch00-the-machine`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch00_the_machine::CELLS)
}
