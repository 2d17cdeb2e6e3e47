//! `cargo bench -p ch03-memory-hierarchy`: the transposes over size, timed by CUDA events.
//!
//! Without a GPU there is nothing to time, and the bench says so. `cargo bench … --
//! --save-baseline` and the other options of criterion work as everywhere.

use std::time::Duration;

use ch03_memory_hierarchy::{Step, Transposer, cpu};
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> anyhow::Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    if lab::timing::device(stream.cu_stream(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("transpose");
    group
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(20);

    for step in Step::ALL {
        let kernel = Transposer::load(step, &context)?;
        for side in [1024u32, 4096, 8192, 8191] {
            let n = (side * side) as usize;
            let a = stream.clone_htod(&cpu::numbers(n, 5))?;
            let mut c = stream.alloc_zeros::<f32>(n)?;
            group.throughput(Throughput::Bytes(2 * (n * size_of::<f32>()) as u64));
            group.bench_function(BenchmarkId::new(step.name(), side), |bencher| {
                bencher.iter_custom(|launches| {
                    let elapsed = lab::timing::between_events(stream.cu_stream(), || {
                        (0..launches)
                            .try_for_each(|_| Ok(kernel.launch(&stream, &a, &mut c, side, side)?))
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
