//! Chunks and diamonds against the CPU, at sizes that are no multiple of anything. Runs on the GPU if there is one,
//! else on the emulated GPU.

use std::sync::Arc;

use ch07_streams_and_graphs::diamond::{Diamond, Waits};
use ch07_streams_and_graphs::memory::{Buffer, MIB, Pool, Source, take_steps};
use ch07_streams_and_graphs::overlap::{Order, OwnChunks, Pipeline};
use cudarc::driver::CudaContext;
use proptest::prelude::*;

fn untracked() -> Arc<CudaContext> {
    let context = lab::open_device().unwrap();
    // SAFETY: each chunk stays in one stream, no two share memory, and pipelines wait before they free anything.
    unsafe { context.disable_event_tracking() };
    context
}

#[track_caller]
fn check(n: usize, order: Order, streams: usize, chunks: usize, pinned: bool) {
    let mut work = Pipeline::new(&untracked(), n, streams, pinned).unwrap();
    work.there_and_back(order, streams, chunks, 5).unwrap();
    work.check(5)
        .unwrap_or_else(|error| panic!("{n} numbers, {streams} streams, {chunks} chunks: {error}"));
    // The check must be able to fail: what came back was cleared.
    assert_eq!(work.check(5).is_err(), n > 0);
}

#[test]
fn chunks_of_every_size_come_back() {
    for n in [0, 1, 31, 33, 1000, 4097] {
        for (streams, chunks) in [(1, 1), (1, 7), (2, 3), (4, 4), (4, 64), (3, 1)] {
            check(n, Order::DepthFirst, streams, chunks, true);
            check(n, Order::BreadthFirst, streams, chunks, true);
        }
        check(n, Order::DepthFirst, 3, 5, false);
    }
}

#[test]
fn a_stream_for_each_stage_is_right_too() {
    for n in [0, 1, 33, 1000] {
        let mut work = Pipeline::new(&untracked(), n, 3, true).unwrap();
        for chunks in [1, 2, 7] {
            work.by_stage(chunks, 5).unwrap();
            work.check(5).unwrap();
        }
    }
}

#[test]
fn cudarc_orders_slices_by_itself() {
    for n in [0, 1, 31, 33, 1000] {
        let context = lab::open_device().unwrap();
        assert!(context.is_event_tracking());
        let mut whole = Pipeline::new(&context, n, 4, true).unwrap();
        whole.there_and_back(Order::BreadthFirst, 4, 5, 5).unwrap();
        whole.check(5).unwrap();
        for chunks in [1, 7] {
            let mut own = OwnChunks::new(&context, n, 4, chunks).unwrap();
            own.there_and_back(5).unwrap();
            own.check(5).unwrap();
            assert_eq!(own.check(5).is_err(), n > 0);
        }
    }
}

#[test]
fn whoever_waits_the_diamond_is_right() {
    for waits in [Waits::Tracked, Waits::Events, Waits::ForkAndJoin] {
        for n in [0, 1, 31, 33, 1000] {
            let mut diamond = Diamond::new(&lab::open_device().unwrap(), waits, n).unwrap();
            for rounds in [1, 1000] {
                diamond.run(waits, rounds).unwrap();
                assert_eq!(
                    diamond.wrong(rounds).unwrap(),
                    0,
                    "{waits:?}, {n} numbers, {rounds} rounds"
                );
            }
            diamond.run(waits, 1).unwrap();
            assert_eq!(diamond.wrong(2).unwrap(), n, "another number of rounds gives other sums");
        }
    }
}

#[test]
fn memory_is_free_when_its_value_is_dropped() {
    let context = lab::open_device().unwrap();
    let stream = context.new_stream().unwrap();
    let pool = Arc::new(Pool::new(&context, u64::MAX).unwrap());
    let source = Source::Pool(pool.clone(), stream.clone());
    let mut used = Vec::new();
    let look = || {
        stream.synchronize()?;
        used.push(pool.used_and_reserved()?[0] / MIB as u64);
        Ok(())
    };
    take_steps(&source, look, || Ok(())).unwrap();
    assert_eq!(used, [64, 128, 192, 128, 64, 192, 128, 192, 64, 0, 0]);
    drop(Buffer::new(&Source::Driver(context.clone()), MIB).unwrap());
    context.check_err().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_number_in_any_number_of_chunks(
        n in 0_usize..3000,
        streams in 1_usize..6,
        chunks in 1_usize..20,
        breadth in any::<bool>(),
        pinned in any::<bool>(),
    ) {
        let order = if breadth { Order::BreadthFirst } else { Order::DepthFirst };
        check(n, order, streams, chunks, pinned);
    }
}
