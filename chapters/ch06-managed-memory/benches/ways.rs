//! `cargo bench -p ch06-managed-memory`: the ways there and back over size, by the wall clock.
//!
//! Without a GPU there is nothing to time, and the bench says so. `cargo bench … --
//! --save-baseline` and the other options of criterion work as everywhere.

use std::time::{Duration, Instant};

use ch06_managed_memory::cpu;
use ch06_managed_memory::ways::Way;
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> anyhow::Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    if lab::timing::device(stream.cu_stream(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("ways");
    group
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(10);

    for way in Way::ALL {
        for n in [1 << 16, 1 << 20, 1 << 24] {
            let mut trip = way.open(&context, n)?;
            trip.with(&mut |a, b, _| {
                a.copy_from_slice(&cpu::numbers(n, 1));
                b.copy_from_slice(&cpu::numbers(n, 2));
            })?;
            group.throughput(Throughput::Bytes(3 * (n * size_of::<f32>()) as u64));
            group.bench_function(BenchmarkId::new(way.name(), n), |bencher| {
                bencher.iter_custom(|trips| {
                    let mut elapsed = Duration::ZERO;
                    for _ in 0..trips {
                        let timed = trip.prepare().and_then(|()| {
                            let begin = Instant::now();
                            trip.bring()?;
                            trip.add()?;
                            trip.fetch()?;
                            Ok(begin.elapsed())
                        });
                        elapsed += timed.expect("the trip was made the same way in the warm-up");
                    }
                    elapsed
                });
            });
        }
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
