//! `cargo bench -p ch02-threads-blocks-grid`: vector add over the size of a block, and the same work
//! with and without divergence, timed by CUDA events.
//!
//! Without a GPU there is nothing to time, and the bench says so.

use std::time::Duration;

use ch02_threads_blocks_grid::data::Vectors;
use ch02_threads_blocks_grid::{Decides, Diverging};
use criterion::{BenchmarkId, Criterion, Throughput};
use cudarc::driver::LaunchConfig;
use kernels::vector_add_01_scalar::{Arguments, Kernel};

fn main() -> anyhow::Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    if lab::timing::device(stream.cu_stream(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(20)
        .configure_from_args();
    let timed = |launches: u64, mut launch: Box<dyn FnMut() -> anyhow::Result<()> + '_>| {
        let elapsed = lab::timing::between_events(stream.cu_stream(), || {
            (0..launches).try_for_each(|_| launch())
        });
        elapsed.expect("the kernel was launched the same way before, in the warm-up")
    };

    let n = 1 << 26;
    let kernel = Kernel::load(&context)?;
    let mut vectors = Vectors::new(&stream, n)?;
    let mut group = criterion.benchmark_group("vector_add by block size");
    group.throughput(Throughput::Bytes(3 * (n * size_of::<f32>()) as u64));
    for threads in [32_u32, 128, 256, 1024] {
        let config = LaunchConfig {
            grid_dim: (u32::try_from(n.div_ceil(threads as usize))?, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        group.bench_function(BenchmarkId::from_parameter(threads), |bencher| {
            bencher.iter_custom(|launches| {
                let Vectors { a, b, c, .. } = &mut vectors;
                let launch = || {
                    let arguments = Arguments { a, b, c, n: n as u64 };
                    // SAFETY: this kernel takes blocks of any size.
                    Ok(unsafe { kernel.launch_with(&stream, config, arguments) }?)
                };
                timed(launches, Box::new(launch))
            });
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("sixteen ways");
    for decides in Decides::ALL {
        let mut work = Diverging::new(&context, decides, 1 << 22)?;
        group.bench_function(format!("{decides:?}"), |bencher| {
            bencher.iter_custom(|launches| timed(launches, Box::new(|| work.launch(16, 128))));
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
