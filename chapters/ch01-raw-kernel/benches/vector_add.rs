//! `cargo bench -p ch01-raw-kernel`: the three kernels over size, timed by CUDA events on a stream
//! of their own.
//!
//! Without a GPU there is nothing to time, and the bench says so. `cargo bench … --
//! --save-baseline` and the other options of criterion work as everywhere.

use std::time::Duration;

use ch01_raw_kernel::driver::{DeviceMemory, PrimaryContext, Stream};
use ch01_raw_kernel::{Adder, Step, cpu};
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> anyhow::Result<()> {
    lab::open_device()?;
    let _context = PrimaryContext::open()?;
    let stream = Stream::new()?;
    if lab::timing::device(stream.raw(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("vector_add");
    group
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(20);

    for step in Step::ALL {
        let kernel = Adder::load(step)?;
        for n in [1 << 12, 1 << 20, 1 << 26] {
            let memory = [
                DeviceMemory::allocate(n)?,
                DeviceMemory::allocate(n)?,
                DeviceMemory::allocate(n)?,
            ];
            memory.iter().try_for_each(|memory| memory.fill(&cpu::numbers(n.min(1 << 16), 5)))?;
            let [a, b, c] = memory.each_ref().map(|memory| memory.at(0));
            group.throughput(Throughput::Bytes(3 * (n * size_of::<f32>()) as u64));
            group.bench_function(BenchmarkId::new(step.name(), n), |bencher| {
                bencher.iter_custom(|launches| {
                    let elapsed = lab::timing::between_events(stream.raw(), || {
                        (0..launches).try_for_each(|_| kernel.launch(a, b, c, n, &stream))
                    });
                    elapsed.expect("the kernel was launched the same way before, in the warm-up")
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
