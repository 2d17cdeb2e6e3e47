//! Thread instructions a second, with counters on: `cargo bench -p emulator`.
//!
//! Words after `--` choose among the lines: `cargo bench -p emulator -- sgemm_tiled avx2`.
//!
//! Each kernel runs on one host thread and on all, and on every vector unit that the host has. Printed are the median of
//! some runs, and the best; and the same by processor time, which other programs on the machine disturb less.

#[path = "../tests/machine/mod.rs"]
mod machine;

use std::time::Instant;

use emulator::module::Level;
use machine::{Gpu, Shape};

const KERNELS: &str = include_str!("../tests/ptx/bench/kernels.ptx");
const RUNS: usize = 15;

fn main() {
    // `cargo test --benches` only wants to know that it runs.
    let quick = std::env::args().any(|argument| argument == "--test");
    let words: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with("--")).collect();
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    println!("10^9 thread instructions a second          wall: median  best   processor: median  best");
    for level in Level::all().into_iter().rev() {
        for threads in [1, cores] {
            for (name, run) in [
                ("vector_add", vector_add as fn(&Gpu, bool) -> u64),
                ("sgemm_tiled", sgemm_tiled),
                ("mandelbrot", mandelbrot),
            ] {
                let line = format!("{name} {level:?} {threads}").to_lowercase();
                if !words.iter().all(|word| line.contains(&word.to_lowercase())) {
                    continue;
                }
                let mut gpu = Gpu::load(KERNELS, level).unwrap_or_else(|error| panic!("{error}"));
                gpu.settings.threads = threads;
                let mut wall = Vec::new();
                let mut processor = Vec::new();
                // The first one also faults the memory in, and is not counted.
                for round in 0..if quick { 2 } else { RUNS + 1 } {
                    let (start, used) = (Instant::now(), processor_seconds());
                    let instructions = run(&gpu, quick) as f64 / 1e9;
                    if round > 0 {
                        wall.push(instructions / start.elapsed().as_secs_f64());
                        processor.push(instructions / (processor_seconds() - used));
                    }
                }
                for rates in [&mut wall, &mut processor] {
                    rates.sort_by(f64::total_cmp);
                }
                let middle = |rates: &[f64]| rates[rates.len() / 2];
                let best = |rates: &[f64]| rates[rates.len() - 1];
                println!(
                    "{name:<12} {:<9} {threads:>2} threads {:>18.2} {:>5.2} {:>18.2} {:>5.2}",
                    format!("{level:?}"),
                    middle(&wall),
                    best(&wall),
                    middle(&processor),
                    best(&processor)
                );
            }
        }
    }
}

/// What this process has used of all processors so far.
fn processor_seconds() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the clock exists, and `time` is its to write.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Memory of the device that a run may keep for the next: allocating it is not measured.
fn buffers(gpu: &Gpu, count: usize, floats: usize) -> Vec<u64> {
    let live = gpu.memory.allocations();
    let found: Vec<u64> = live
        .iter()
        .filter(|allocation| allocation.bytes == 4 * floats as u64)
        .map(|allocation| allocation.address)
        .collect();
    if found.len() >= count {
        return found;
    }
    (0..count).map(|_| gpu.upload(&vec![0.5f32; floats])).collect()
}

fn vector_add(gpu: &Gpu, quick: bool) -> u64 {
    let n: u32 = if quick { 1 << 12 } else { 1 << 20 };
    let found = buffers(gpu, 3, n as usize);
    let params =
        [&found[0].to_le_bytes()[..], &found[1].to_le_bytes(), &found[2].to_le_bytes(), &n.to_le_bytes()];
    gpu.launch("vector_add", Shape::new([n / 256, 1, 1], [256, 1, 1]), &params).unwrap().thread_instructions
}

fn sgemm_tiled(gpu: &Gpu, quick: bool) -> u64 {
    let n: u32 = if quick { 32 } else { 256 };
    let found = buffers(gpu, 3, (n * n) as usize);
    let params =
        [&found[0].to_le_bytes()[..], &found[1].to_le_bytes(), &found[2].to_le_bytes(), &n.to_le_bytes()];
    gpu.launch("sgemm_tiled", Shape::new([n / 16, n / 16, 1], [16, 16, 1]), &params)
        .unwrap()
        .thread_instructions
}

fn mandelbrot(gpu: &Gpu, quick: bool) -> u64 {
    let (n, limit): (u32, u32) = if quick { (32, 16) } else { (512, 256) };
    let found = buffers(gpu, 1, (n * n) as usize);
    let params = [&found[0].to_le_bytes()[..], &n.to_le_bytes(), &n.to_le_bytes(), &limit.to_le_bytes()];
    gpu.launch("mandelbrot", Shape::new([n / 16, n / 8, 1], [16, 8, 1]), &params).unwrap().thread_instructions
}
