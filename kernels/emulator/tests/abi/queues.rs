//! Streams work on their own: they wait for each other where they must, and nowhere else.

use std::{
    ffi::c_void,
    sync::atomic::{AtomicU32, Ordering},
    thread,
    time::Duration,
};

use crate::common::{Context, alloc, code, cu, download, function, launch, load, ok, param, upload};

/// `waits` waits for a number at `flag` that is not 0, and writes it to `out`. `adds` adds one to the number at `out`.
const KERNELS: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry waits(.param .u64 flag, .param .u64 out)
{
	.reg .pred %p;
	.reg .b32 %v;
	.reg .b64 %flag, %out;
	ld.param.u64 %flag, [flag];
	ld.param.u64 %out, [out];
again:
	ld.volatile.u32 %v, [%flag];
	setp.eq.u32 %p, %v, 0;
	@%p bra again;
	st.u32 [%out], %v;
	ret;
}
.visible .entry adds(.param .u64 out)
{
	.reg .b32 %v;
	.reg .b64 %out;
	ld.param.u64 %out, [out];
	ld.u32 %v, [%out];
	add.u32 %v, %v, 1;
	st.u32 [%out], %v;
	ret;
}
";

/// A context with two streams that do not wait for the default stream, a flag in pinned memory, and device memory.
struct Bench {
    _context: Context,
    waits: usize,
    adds: usize,
    first: usize,
    second: usize,
    flag: u64,
    out: u64,
}

impl Bench {
    fn new() -> Bench {
        let context = Context::new();
        let module = load(KERNELS);
        let (mut flag, out) = (0u64, alloc(64));
        ok!(cuMemAllocHost_v2(&mut flag as *mut u64, 64usize));
        ok!(cuMemsetD8_v2(flag, 0u8, 64usize));
        ok!(cuMemsetD8_v2(out, 0u8, 64usize));
        ok!(cuCtxSynchronize());
        Bench {
            _context: context,
            waits: function(module, c"waits"),
            adds: function(module, c"adds"),
            first: stream(1),
            second: stream(1),
            flag,
            out,
        }
    }

    /// Keeps a stream busy until the flag is set, which `out` is then.
    fn wait(&self, stream: usize) {
        let (mut flag, mut out) = (self.flag, self.out);
        assert_eq!(launch(self.waits, 1, 1, 0, stream, &mut [param(&mut flag), param(&mut out)]), 0);
    }

    /// Adds one to what is at `out`.
    fn add(&self, stream: usize) {
        let mut out = self.out;
        assert_eq!(launch(self.adds, 1, 1, 0, stream, &mut [param(&mut out)]), 0);
    }

    /// A number of the pinned memory, which the flag is the first of.
    fn pinned(&self, index: u64) -> &AtomicU32 {
        // SAFETY: The driver allocated 64 bytes there, which go with the context.
        unsafe { AtomicU32::from_ptr((self.flag + 4 * index) as *mut u32) }
    }

    fn set_flag(&self, value: u32) {
        self.pinned(0).store(value, Ordering::SeqCst);
    }

    /// Sets the flag after a while, during which `call` waits.
    fn waits_for_flag(&self, call: impl FnOnce()) {
        thread::scope(|scope| {
            scope.spawn(|| {
                thread::sleep(Duration::from_millis(30));
                self.set_flag(7);
            });
            call();
            assert_eq!(self.pinned(0).load(Ordering::SeqCst), 7, "the call came back too early");
        });
    }

    /// What is at `out` when all is done.
    #[track_caller]
    fn expect(&self, out: u32) {
        ok!(cuCtxSynchronize());
        assert_eq!(download::<u32>(self.out, 1), [out]);
    }
}

fn stream(flags: u32) -> usize {
    let mut stream = 0usize;
    ok!(cuStreamCreate(&mut stream as *mut usize, flags));
    stream
}

fn event() -> usize {
    let mut event = 0usize;
    ok!(cuEventCreate(&mut event as *mut usize, 0u32));
    event
}

#[track_caller]
fn is_busy(stream: usize) {
    assert_eq!(cu!(cuStreamQuery(stream)), code::NOT_READY);
}

extern "C" fn set(flag: *mut c_void) {
    // SAFETY: The tests pass the address of a number.
    unsafe { AtomicU32::from_ptr(flag.cast()) }.store(7, Ordering::SeqCst);
}

#[test]
fn the_host_goes_on_and_releases_a_kernel() {
    let bench = Bench::new();
    bench.wait(bench.first);
    is_busy(bench.first);
    ok!(cuStreamQuery(bench.second));
    bench.set_flag(7);
    ok!(cuStreamSynchronize(bench.first));
    ok!(cuStreamQuery(bench.first));
    bench.expect(7);
}

#[test]
fn work_of_another_stream_releases_a_kernel() {
    let release: [fn(&Bench); 4] = [
        |bench| {
            upload(bench.out + 4, &[7u32]);
            ok!(cuMemcpyDtoHAsync_v2(bench.flag, bench.out + 4, 4usize, bench.second));
        },
        |bench| ok!(cuMemsetD32Async(bench.flag, 7u32, 1usize, bench.second)),
        |bench| ok!(cuStreamWriteValue32_v2(bench.second, bench.flag, 7u32, 0u32)),
        |bench| ok!(cuLaunchHostFunc(bench.second, set as extern "C" fn(_), bench.flag as *mut c_void)),
    ];
    for release in release {
        let bench = Bench::new();
        bench.wait(bench.first);
        is_busy(bench.first);
        release(&bench);
        ok!(cuStreamSynchronize(bench.first));
        bench.expect(7);
    }
}

#[test]
fn device_memory_releases_a_kernel_too() {
    let bench = Bench::new();
    let (mut flag, mut out) = (bench.out + 4, bench.out);
    assert_eq!(launch(bench.waits, 1, 1, 0, bench.first, &mut [param(&mut flag), param(&mut out)]), 0);
    is_busy(bench.first);
    ok!(cuMemsetD32Async(flag, 5u32, 1usize, bench.second));
    bench.expect(5);
}

#[test]
fn a_stream_does_its_work_in_order() {
    let bench = Bench::new();
    bench.wait(bench.first);
    bench.add(bench.first);
    ok!(cuMemcpyDtoHAsync_v2(bench.flag + 4, bench.out, 4usize, bench.first));
    bench.add(bench.first);
    assert_eq!(bench.pinned(1).load(Ordering::SeqCst), 0, "the copy comes behind the kernel");
    bench.set_flag(7);
    ok!(cuStreamSynchronize(bench.first));
    assert_eq!(bench.pinned(1).load(Ordering::SeqCst), 8);
    bench.expect(9);
}

#[test]
fn bytes_of_the_host_are_read_before_the_call_returns() {
    let bench = Bench::new();
    bench.wait(bench.first);
    let mut value = 20u32;
    ok!(cuMemcpyHtoDAsync_v2(bench.out, &value as *const u32, 4usize, bench.first));
    value += 10;
    is_busy(bench.first);
    bench.set_flag(7);
    bench.add(bench.first);
    bench.expect(21);
    assert_eq!(value, 30);
}

#[test]
fn bytes_of_pinned_memory_are_read_in_their_turn() {
    let bench = Bench::new();
    bench.wait(bench.first);
    ok!(cuMemcpyHtoDAsync_v2(bench.out, bench.flag + 4, 4usize, bench.first));
    bench.pinned(1).store(30, Ordering::SeqCst);
    bench.set_flag(7);
    bench.expect(30);
}

#[test]
fn bytes_of_the_host_are_written_before_the_call_returns() {
    let bench = Bench::new();
    let mut value = 0u32;
    bench.wait(bench.first);
    bench
        .waits_for_flag(|| ok!(cuMemcpyDtoHAsync_v2(&mut value as *mut u32, bench.out, 4usize, bench.first)));
    assert_eq!(value, 7);
}

#[test]
fn the_default_stream_waits_for_blocking_streams() {
    let bench = Bench::new();
    let blocking = stream(0);
    bench.wait(blocking);
    bench.add(0);
    is_busy(0);
    ok!(cuStreamQuery(bench.first));
    bench.add(blocking);
    bench.set_flag(7);
    bench.expect(9);
    ok!(cuStreamQuery(0usize));
}

#[test]
fn blocking_streams_wait_for_the_default_stream() {
    let bench = Bench::new();
    let blocking = stream(0);
    bench.wait(0);
    bench.add(blocking);
    ok!(cuMemsetD32Async(bench.out + 4, 5u32, 1usize, bench.first));
    ok!(cuStreamSynchronize(bench.first));
    is_busy(0);
    is_busy(blocking);
    bench.set_flag(7);
    ok!(cuStreamSynchronize(blocking));
    bench.expect(8);
}

#[test]
fn streams_of_threads_wait_for_the_default_stream() {
    const PER_THREAD: usize = 2;
    let bench = Bench::new();
    bench.wait(0);
    bench.add(PER_THREAD);
    is_busy(PER_THREAD);
    bench.set_flag(7);
    ok!(cuStreamSynchronize(PER_THREAD));
    bench.expect(8);
}

#[test]
fn copies_that_wait_have_their_place_in_the_default_stream() {
    let bench = Bench::new();
    bench.wait(bench.first);
    assert_eq!(download::<u32>(bench.out, 1), [0], "no copy waits for a stream that does not block");
    is_busy(bench.first);
    bench.set_flag(1);
    ok!(cuCtxSynchronize());
    bench.set_flag(0);
    bench.wait(stream(0));
    bench.waits_for_flag(|| assert_eq!(download::<u32>(bench.out, 1), [7]));
}

#[test]
fn a_stream_waits_for_an_event() {
    let bench = Bench::new();
    let event = event();
    bench.wait(bench.first);
    ok!(cuEventRecord(event, bench.first));
    assert_eq!(cu!(cuEventQuery(event)), code::NOT_READY);
    ok!(cuStreamWaitEvent(bench.second, event, 0u32));
    bench.add(bench.second);
    is_busy(bench.second);
    // It stands for what it was recorded in when the other stream was told to wait.
    let third = stream(1);
    ok!(cuEventRecord(event, third));
    ok!(cuEventSynchronize(event));
    is_busy(bench.second);
    bench.set_flag(7);
    ok!(cuStreamSynchronize(bench.second));
    bench.expect(8);
}

#[test]
fn an_event_waits_for_what_is_before_it() {
    let bench = Bench::new();
    let (early, late) = (event(), event());
    ok!(cuEventRecord(early, bench.first));
    bench.wait(bench.first);
    ok!(cuEventRecord(late, bench.first));
    let mut ms = 0f32;
    assert_eq!(cu!(cuEventElapsedTime(&mut ms as *mut f32, early, late)), code::NOT_READY);
    bench.waits_for_flag(|| ok!(cuEventSynchronize(late)));
    ok!(cuEventElapsedTime(&mut ms as *mut f32, early, late));
    assert!((20.0..20e3).contains(&ms), "{ms}");
    ok!(cuEventQuery(early));
}

#[test]
fn an_event_of_the_default_stream_waits_for_blocking_streams() {
    let bench = Bench::new();
    let (event, blocking) = (event(), stream(0));
    bench.wait(blocking);
    ok!(cuEventRecord(event, 0usize));
    assert_eq!(cu!(cuEventQuery(event)), code::NOT_READY);
    bench.set_flag(7);
    ok!(cuEventSynchronize(event));
    ok!(cuStreamQuery(blocking));
}

#[test]
fn what_frees_waits() {
    let bench = Bench::new();
    let other = alloc(64);
    bench.wait(bench.first);
    bench.waits_for_flag(|| ok!(cuMemFree_v2(other)));
    bench.expect(7);
}

#[test]
fn memory_is_freed_in_the_order_of_a_stream() {
    let bench = Bench::new();
    let mut memory = 0u64;
    ok!(cuMemAllocAsync(&mut memory as *mut u64, 64usize, bench.first));
    bench.wait(bench.first);
    ok!(cuMemsetD32Async(memory, 11u32, 1usize, bench.first));
    ok!(cuMemcpyDtoDAsync_v2(bench.out, memory, 4usize, bench.first));
    ok!(cuMemFreeAsync(memory, bench.first));
    bench.set_flag(7);
    bench.expect(11);
}

#[test]
fn a_stream_that_is_destroyed_ends_its_work() {
    let bench = Bench::new();
    bench.wait(bench.first);
    bench.add(bench.first);
    ok!(cuStreamDestroy_v2(bench.first));
    assert_eq!(bench.pinned(0).load(Ordering::SeqCst), 0);
    bench.set_flag(7);
    bench.expect(8);
}

#[test]
fn everything_waits_for_a_context() {
    let bench = Bench::new();
    bench.wait(bench.first);
    bench.waits_for_flag(|| ok!(cuCtxSynchronize()));
    ok!(cuStreamQuery(bench.first));
}

#[test]
fn a_stream_waits_for_a_number() {
    /// What is compared: at least, equal, some bits, not all bits; with what is there before, and after.
    const COMPARISONS: [(u32, u32, u32, u32); 5] =
        [(0, 5, 4, 6), (0, 1, u32::MAX, 1), (1, 5, 6, 5), (2, 6, 1, 5), (3, 0xffff_ff00, 0xff, 0xf0)];
    for (comparison, value, before, after) in COMPARISONS {
        let bench = Bench::new();
        bench.set_flag(before);
        ok!(cuStreamWaitValue32_v2(bench.first, bench.flag, value, comparison));
        bench.add(bench.first);
        is_busy(bench.first);
        thread::sleep(Duration::from_millis(2));
        is_busy(bench.first);
        bench.set_flag(after);
        ok!(cuStreamSynchronize(bench.first));
        bench.expect(1);
    }
}

#[test]
fn a_graph_is_launched_into_a_stream() {
    let bench = Bench::new();
    let (mut graph, mut exec) = (0usize, 0usize);
    ok!(cuStreamBeginCapture_v2(bench.first, 2u32));
    bench.wait(bench.first);
    bench.add(bench.first);
    ok!(cuStreamEndCapture(bench.first, &mut graph as *mut usize));
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    ok!(cuGraphLaunch(exec, bench.first));
    is_busy(bench.first);
    // It never runs twice at once, and what is destroyed is done before.
    ok!(cuGraphLaunch(exec, bench.second));
    ok!(cuGraphExecDestroy(exec));
    is_busy(bench.second);
    bench.set_flag(7);
    ok!(cuStreamSynchronize(bench.second));
    bench.expect(8);
}
