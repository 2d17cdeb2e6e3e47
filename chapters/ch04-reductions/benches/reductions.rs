//! `cargo bench -p ch04-reductions`: every step of the sum and the scan over size, timed by CUDA
//! events.
//!
//! Without a GPU there is nothing to time, and the bench says so.

use std::time::Duration;

use ch04_reductions::device::Device;
use ch04_reductions::{cpu, scan, sum};
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> anyhow::Result<()> {
    let device = Device::open()?;
    if lab::timing::device(device.raw_stream(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("reductions");
    group
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(20);

    for n in [1usize << 16, 1 << 20, 1 << 26] {
        let a = device.repeat(&cpu::numbers(n.min(1 << 16), 5), n)?;
        group.throughput(Throughput::Bytes((n * size_of::<f32>()) as u64));
        for step in sum::Step::ALL.into_iter().skip(1) {
            let summer = sum::Summer::load(&device, step)?;
            let mut scratch = summer.scratch(&device, n)?;
            group.bench_function(BenchmarkId::new(format!("sum, {}", step.name()), n), |bencher| {
                bencher.iter_custom(|launches| {
                    let elapsed = lab::timing::between_events(device.raw_stream(), || {
                        (0..launches).try_for_each(|_| summer.enqueue(&device, &a, n, &mut scratch))
                    });
                    elapsed.expect("the kernel was launched the same way before, in the warm-up")
                });
            });
        }
        let mut c = device.zeros(n)?;
        for step in scan::Step::ALL.into_iter().skip(1) {
            let scanner = scan::Scanner::load(&device, step)?;
            let mut scratch = scanner.scratch(&device, n)?;
            group.bench_function(
                BenchmarkId::new(format!("scan, {}", step.name()), n),
                |bencher| {
                    bencher.iter_custom(|launches| {
                        let elapsed = lab::timing::between_events(device.raw_stream(), || {
                            (0..launches).try_for_each(|_| {
                                scanner.enqueue(&device, &a, &mut c, n, &mut scratch)
                            })
                        });
                        elapsed
                            .expect("the kernel was launched the same way before, in the warm-up")
                    });
                },
            );
        }
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
