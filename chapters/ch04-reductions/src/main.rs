//! `cargo run -p ch04-reductions`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch04_reductions::CELLS)
}
