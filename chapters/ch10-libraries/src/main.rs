//! `cargo run -p ch10-libraries`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch10_libraries::CELLS)
}
