//! `EMULATED_GPU_CHECK=stream`: what no event and no synchronisation orders is a fault, and what one orders is not.

mod common;

use std::{
    env,
    ffi::c_void,
    ptr::null_mut,
    sync::{Once, mpsc},
};

use common::{Context, KERNELS, alloc, code, cu, download, function, launch, load, ok, param};

/// A context with two streams that do not wait for the default stream, and memory.
struct Bench {
    context: Context,
    first: usize,
    second: usize,
    event: usize,
    memory: u64,
    fill: usize,
}

impl Bench {
    fn new() -> Bench {
        static CHECK: Once = Once::new();
        // SAFETY: The driver is loaded after this, and no test reads the environment.
        CHECK.call_once(|| unsafe { env::set_var("EMULATED_GPU_CHECK", "stream") });
        let context = Context::new();
        let (mut first, mut second, mut event) = (0usize, 0usize, 0usize);
        ok!(cuStreamCreate(&mut first as *mut usize, 1u32));
        ok!(cuStreamCreate(&mut second as *mut usize, 1u32));
        ok!(cuEventCreate(&mut event as *mut usize, 2u32));
        let memory = alloc(4096);
        let fill = function(load(KERNELS), c"fill");
        ok!(cuCtxSynchronize());
        Bench { context, first, second, event, memory, fill }
    }

    /// A kernel that writes `count` numbers from number `start` on.
    fn kernel(&self, stream: usize, start: u64, count: u32) {
        let (mut out, mut count, mut value) = (self.memory + 4 * start, count, 5u32);
        let mut params = [param(&mut out), param(&mut count), param(&mut value)];
        assert_eq!(launch(self.fill, count.div_ceil(32), 32, 0, stream, &mut params), 0);
    }

    fn set(&self, stream: usize, start: u64, count: usize) {
        ok!(cuMemsetD32Async(self.memory + 4 * start, 1u32, count, stream));
    }

    /// Ends the test: the context has failed, or not.
    #[track_caller]
    fn expect(self, code: u32) {
        assert_eq!(cu!(cuCtxSynchronize()), code);
        drop(self.context);
    }
}

#[test]
fn two_streams_without_an_event_are_a_fault() {
    let bench = Bench::new();
    bench.set(bench.first, 0, 100);
    bench.kernel(bench.second, 50, 100);
    bench.expect(code::LAUNCH_FAILED);
}

#[test]
fn an_event_orders() {
    let bench = Bench::new();
    bench.set(bench.first, 0, 100);
    ok!(cuEventRecord(bench.event, bench.first));
    ok!(cuStreamWaitEvent(bench.second, bench.event, 0u32));
    bench.kernel(bench.second, 50, 100);
    bench.expect(code::SUCCESS);
}

#[test]
fn an_event_recorded_too_early_does_not() {
    let bench = Bench::new();
    ok!(cuEventRecord(bench.event, bench.first));
    bench.set(bench.first, 0, 100);
    ok!(cuStreamWaitEvent(bench.second, bench.event, 0u32));
    bench.kernel(bench.second, 50, 100);
    bench.expect(code::LAUNCH_FAILED);
}

#[test]
fn synchronisation_orders() {
    let bench = Bench::new();
    bench.set(bench.first, 0, 100);
    ok!(cuStreamSynchronize(bench.first));
    bench.kernel(bench.second, 50, 100);
    bench.expect(code::SUCCESS);
}

#[test]
fn parts_of_an_allocation_are_apart() {
    let bench = Bench::new();
    bench.kernel(bench.first, 0, 50);
    bench.kernel(bench.second, 50, 100);
    bench.expect(code::SUCCESS);
}

#[test]
fn reads_do_not_disturb_each_other() {
    let bench = Bench::new();
    let other = alloc(800);
    ok!(cuCtxSynchronize());
    ok!(cuMemcpyDtoDAsync_v2(other, bench.memory, 400usize, bench.first));
    ok!(cuMemcpyDtoDAsync_v2(other + 400, bench.memory, 400usize, bench.second));
    bench.expect(code::SUCCESS);
}

#[test]
fn the_default_stream_orders_blocking_streams_only() {
    let bench = Bench::new();
    let mut blocking = 0usize;
    ok!(cuStreamCreate(&mut blocking as *mut usize, 0u32));
    bench.set(blocking, 0, 100);
    bench.kernel(0, 0, 100);
    bench.set(blocking, 0, 100);
    assert_eq!(download::<u32>(bench.memory, 1), [1]);
    bench.expect(code::SUCCESS);

    let bench = Bench::new();
    bench.kernel(bench.first, 0, 100);
    let mut value = 0u32;
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(&mut value as *mut u32, bench.memory, 4usize)),
        code::LAUNCH_FAILED,
        "the copy does not wait for a non-blocking stream"
    );
    bench.expect(code::LAUNCH_FAILED);
}

#[test]
fn freed_too_early() {
    let bench = Bench::new();
    let mut address = 0u64;
    ok!(cuMemAllocAsync(&mut address as *mut u64, 64usize, bench.first));
    ok!(cuMemsetD8Async(address, 0u8, 64usize, bench.first));
    ok!(cuMemFreeAsync(address, bench.second));
    bench.expect(code::LAUNCH_FAILED);
}

#[test]
fn pinned_memory_counts() {
    let bench = Bench::new();
    let mut pinned = null_mut::<u32>();
    ok!(cuMemAllocHost_v2(&mut pinned as *mut *mut u32, 400usize));
    ok!(cuMemcpyDtoHAsync_v2(pinned, bench.memory, 400usize, bench.first));
    ok!(cuMemcpyHtoDAsync_v2(bench.memory + 400, pinned, 400usize, bench.second));
    bench.expect(code::LAUNCH_FAILED);
}

/// Waits until the test drops the sender.
extern "C" fn wait(receiver: *mut c_void) {
    // SAFETY: The tests keep the receiver until the stream is done.
    let receiver = unsafe { &*receiver.cast::<mpsc::Receiver<()>>() };
    assert!(receiver.recv().is_err(), "nothing is sent");
}

#[test]
fn operations_count_in_the_order_of_the_calls() {
    for is_ordered in [false, true] {
        let bench = Bench::new();
        let (sender, mut receiver) = mpsc::channel::<()>();
        let held = (&raw mut receiver).cast::<c_void>();
        ok!(cuLaunchHostFunc(bench.first, wait as extern "C" fn(_), held));
        bench.kernel(bench.first, 0, 100);
        if is_ordered {
            ok!(cuEventRecord(bench.event, bench.first));
            ok!(cuStreamWaitEvent(bench.second, bench.event, 0u32));
        }
        bench.set(bench.second, 50, 100);
        if !is_ordered {
            // The host waits for the later one, which ends first. That does not order the earlier one.
            ok!(cuStreamSynchronize(bench.second));
        }
        drop(sender);
        bench.expect(if is_ordered { code::SUCCESS } else { code::LAUNCH_FAILED });
    }
}
