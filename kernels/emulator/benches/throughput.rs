//! Thread instructions a second, with counters on: `cargo bench -p emulator`.
//!
//! Criterion calls them elements: `Melem/s` is a million thread instructions a second. Each kernel runs on one host thread
//! and on all, on every vector unit that the host has, and once more with all checks on.

#[path = "../tests/machine/mod.rs"]
mod machine;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use emulator::{module::Level, settings::Checks};
use machine::{Gpu, Shape};

const KERNELS: &str = include_str!("../tests/ptx/bench/kernels.ptx");

/// A kernel, its launch, and the sizes of its buffers in floats.
struct Work {
    name: &'static str,
    shape: Shape,
    buffers: &'static [usize],
    numbers: &'static [u32],
}

fn works() -> [Work; 3] {
    const N: u32 = 1 << 20;
    [
        Work {
            name: "vector_add",
            shape: Shape::new([N / 256, 1, 1], [256, 1, 1]),
            buffers: &[N as usize; 3],
            numbers: &[N],
        },
        Work {
            name: "sgemm_tiled",
            shape: Shape::new([16, 16, 1], [16, 16, 1]),
            buffers: &[256 * 256; 3],
            numbers: &[256],
        },
        Work {
            name: "mandelbrot",
            shape: Shape::new([32, 64, 1], [16, 8, 1]),
            buffers: &[512 * 512],
            numbers: &[512, 512, 256],
        },
    ]
}

fn throughput(criterion: &mut Criterion) {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    for work in works() {
        let mut group = criterion.benchmark_group(work.name);
        for level in Level::all() {
            for threads in [1, cores] {
                bench(&mut group, &work, level, threads, false);
            }
        }
        bench(&mut group, &work, Level::host(), 1, true);
        group.finish();
    }
}

fn bench(
    group: &mut criterion::BenchmarkGroup<'_, criterion::measurement::WallTime>,
    work: &Work,
    level: Level,
    threads: usize,
    checked: bool,
) {
    let checks = if checked { Checks::ALL } else { Checks::default() };
    let mut gpu = Gpu::load_with(KERNELS, level, checks).unwrap_or_else(|error| panic!("{error}"));
    gpu.settings.threads = threads;
    let addresses: Vec<[u8; 8]> =
        work.buffers.iter().map(|&floats| gpu.upload(&vec![0.5f32; floats]).to_le_bytes()).collect();
    let numbers: Vec<[u8; 4]> = work.numbers.iter().map(|number| number.to_le_bytes()).collect();
    let params: Vec<&[u8]> = addresses
        .iter()
        .map(|address| &address[..])
        .chain(numbers.iter().map(|number| &number[..]))
        .collect();
    let run = || gpu.launch(work.name, work.shape, &params).unwrap_or_else(|stop| panic!("{stop:?}"));
    group.throughput(Throughput::Elements(run().thread_instructions));
    let name =
        format!("{}{}", format!("{level:?}").to_lowercase(), if checked { " with all checks" } else { "" });
    group.bench_function(BenchmarkId::new(name, threads), |bencher| bencher.iter(run));
}

fn load(criterion: &mut Criterion) {
    let lines = KERNELS.lines().count();
    criterion.bench_function(&format!("load a module of {lines} lines"), |bencher| {
        bencher.iter(|| Gpu::new(KERNELS));
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(20).warm_up_time(Duration::from_millis(300)).measurement_time(Duration::from_secs(1));
    targets = throughput, load
}
criterion_main!(benches);
