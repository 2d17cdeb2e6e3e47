//! `cargo bench -p ch07-streams-and-graphs`: a chain of kernels launched by hand and as a graph, timed by CUDA events, and
//! copies behind kernels, timed by the wall clock.
//!
//! Without a GPU there is nothing to time, and the bench says so.

use std::time::{Duration, Instant};

use ch07_streams_and_graphs::graphs::{Chain, Link};
use ch07_streams_and_graphs::overlap::{Order, Pipeline};
use criterion::{BenchmarkId, Criterion, Throughput};

fn main() -> anyhow::Result<()> {
    let context = lab::open_device()?;
    if lab::timing::device(context.default_stream().cu_stream(), |_| Ok(()))?.is_none() {
        println!("No times were taken: criterion's figures need a GPU, and there is none.");
        return Ok(());
    }
    let mut criterion = Criterion::default()
        .measurement_time(Duration::from_secs(2))
        .warm_up_time(Duration::from_millis(500))
        .sample_size(20)
        .configure_from_args();

    let mut chain = Chain::new(&context)?;
    let stream = chain.stream().clone();
    let mut group = criterion.benchmark_group("chain");
    for links in [10_usize, 100, 1000] {
        group.throughput(Throughput::Elements(links as u64));
        let graph = chain.capture(Link::Ordinary, links, 1)?;
        let timed = |launches: u64, launch: &mut dyn FnMut() -> anyhow::Result<()>| {
            let elapsed = lab::timing::between_events(stream.cu_stream(), || {
                (0..launches).try_for_each(|_| launch())
            });
            elapsed.expect("the chain was launched the same way before, in the warm-up")
        };
        group.bench_function(BenchmarkId::new("by hand", links), |bencher| {
            bencher.iter_custom(|launches| {
                timed(launches, &mut || chain.by_hand(Link::Ordinary, links, 1))
            });
        });
        group.bench_function(BenchmarkId::new("graph", links), |bencher| {
            bencher.iter_custom(|launches| timed(launches, &mut || Ok(graph.launch()?)));
        });
    }
    group.finish();

    let n = 1 << 24;
    // SAFETY: each chunk stays in one stream, no two chunks share memory, and the pipeline waits before it frees anything.
    unsafe { context.disable_event_tracking() };
    let mut work = Pipeline::new(&context, n, 4, true)?;
    let mut group = criterion.benchmark_group("there and back");
    group.throughput(Throughput::Bytes(2 * (n * size_of::<f32>()) as u64));
    for (streams, chunks) in [(1, 1), (2, 16), (4, 16)] {
        group.bench_function(format!("{streams} streams, {chunks} chunks"), |bencher| {
            bencher.iter_custom(|times| {
                let begin = Instant::now();
                for _ in 0..times {
                    work.there_and_back(Order::DepthFirst, streams, chunks, 1900)
                        .expect("the same was done before, in the warm-up");
                }
                begin.elapsed()
            });
        });
    }
    group.finish();
    criterion.final_summary();
    Ok(())
}
