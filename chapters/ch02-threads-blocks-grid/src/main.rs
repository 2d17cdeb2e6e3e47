//! `cargo run -p ch02-threads-blocks-grid`: the chapter in a terminal.

fn main() -> std::process::ExitCode {
    lab::main(lab::chapter!(), ch02_threads_blocks_grid::CELLS)
}
