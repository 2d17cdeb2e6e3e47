//! `cargo run -p ch07-streams-and-graphs`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch07_streams_and_graphs::CELLS)
}
