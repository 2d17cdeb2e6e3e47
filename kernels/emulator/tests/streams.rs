//! Streams of the emulated driver, beyond what any driver promises: what a fault leaves, programs that end in the middle,
//! host functions that wait for each other, and many streams of many threads.

mod common;

use std::{
    env,
    ffi::c_void,
    process::{Command, Output},
    ptr::null_mut,
    sync::{
        Barrier,
        atomic::{AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use common::{
    Context, KERNELS, alloc, code, cu, download, function, launch, load, ok, param, random::Random, upload,
};

/// `waits` waits for a number at `flag` that is not 0. `mixes` makes a number of each at `x` another, in an order that shows.
const OWN: &str = "
.version 7.0
.target sm_52
.address_size 64
.visible .entry waits(.param .u64 flag)
{
	.reg .pred %p;
	.reg .b32 %v;
	.reg .b64 %flag;
	ld.param.u64 %flag, [flag];
again:
	ld.volatile.u32 %v, [%flag];
	setp.eq.u32 %p, %v, 0;
	@%p bra again;
	ret;
}
.visible .entry mixes(.param .u64 x, .param .u32 factor)
{
	.reg .b32 %v, %t, %factor;
	.reg .b64 %x, %offset;
	ld.param.u64 %x, [x];
	ld.param.u32 %factor, [factor];
	mov.u32 %t, %tid.x;
	mul.wide.u32 %offset, %t, 4;
	add.s64 %x, %x, %offset;
	ld.u32 %v, [%x];
	mad.lo.u32 %v, %v, %factor, %t;
	st.u32 [%x], %v;
	ret;
}
";

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

/// A number in pinned memory, 0 at first.
fn pinned() -> &'static AtomicU32 {
    let mut address = null_mut::<u32>();
    ok!(cuMemAllocHost_v2(&mut address as *mut *mut u32, 64usize));
    ok!(cuMemsetD8_v2(address as u64, 0u8, 64usize));
    // SAFETY: The driver allocated it, and no test uses it when the context is gone.
    unsafe { AtomicU32::from_ptr(address) }
}

fn address(number: &AtomicU32) -> u64 {
    number.as_ptr() as u64
}

/// Keeps a stream busy until the number is set.
fn wait(kernel: usize, flag: &AtomicU32, stream: usize) {
    let mut flag = address(flag);
    assert_eq!(launch(kernel, 1, 1, 0, stream, &mut [param(&mut flag)]), 0);
}

/// Runs a test of this program again, on its own and with settings, unless this is such a run already.
fn in_child(test: &str, settings: &[(&str, &str)]) -> Option<Output> {
    if env::var_os("STREAMS_CHILD").is_some() {
        return None;
    }
    let mut child = Command::new(env::current_exe().expect("a running program has a path"));
    child.args(["--exact", test, "--nocapture", "--test-threads=1"]).env("STREAMS_CHILD", "1");
    Some(child.envs(settings.iter().copied()).output().expect("the child starts"))
}

extern "C" fn meet(barrier: *mut c_void) {
    // SAFETY: The tests pass a barrier that outlives the streams' work.
    unsafe { &*barrier.cast::<Barrier>() }.wait();
}

extern "C" fn count(counter: *mut c_void) {
    // SAFETY: The tests pass a counter that outlives the streams' work.
    unsafe { &*counter.cast::<AtomicU32>() }.fetch_add(1, Ordering::SeqCst);
}

#[test]
fn host_functions_of_many_streams_run_at_the_same_moment() {
    let _context = Context::new();
    let barrier = Barrier::new(20);
    let streams: Vec<usize> = (0..20).map(|_| stream(1)).collect();
    for &stream in &streams {
        ok!(cuLaunchHostFunc(
            stream,
            meet as extern "C" fn(_),
            (&raw const barrier).cast_mut().cast::<c_void>()
        ));
    }
    for &stream in &streams {
        ok!(cuStreamSynchronize(stream));
    }
}

#[test]
fn kernels_of_many_streams_run_at_the_same_moment() {
    let _context = Context::new();
    let (flag, kernel) = (pinned(), function(load(OWN), c"waits"));
    let streams: Vec<usize> = (0..20).map(|_| stream(1)).collect();
    streams.iter().for_each(|&stream| wait(kernel, flag, stream));
    assert!(streams.iter().all(|&stream| cu!(cuStreamQuery(stream)) == code::NOT_READY));
    // Behind all of them is one that runs.
    let last = stream(1);
    ok!(cuMemsetD32Async(address(flag), 1u32, 1usize, last));
    ok!(cuCtxSynchronize());
}

#[test]
fn one_host_thread_is_enough() {
    let Some(child) = in_child("one_host_thread_is_enough", &[("EMULATED_GPU_THREADS", "1")]) else {
        let _context = Context::new();
        let (flag, module) = (pinned(), load(OWN));
        let (first, second, x) = (stream(1), stream(1), alloc(128));
        wait(function(module, c"waits"), flag, first);
        let (mut out, mut factor) = (x, 3u32);
        for _ in 0..10 {
            let mixes = function(module, c"mixes");
            assert_eq!(launch(mixes, 1, 32, 0, second, &mut [param(&mut out), param(&mut factor)]), 0);
        }
        ok!(cuMemsetD32Async(address(flag), 1u32, 1usize, second));
        ok!(cuCtxSynchronize());
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn a_fault_ends_what_runs_and_leaves_out_the_rest() {
    static CALLED: AtomicU32 = AtomicU32::new(0);
    static STATUS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn callback(_stream: usize, status: u32, _data: *mut c_void) {
        STATUS.store(status, Ordering::SeqCst);
    }
    let _context = Context::new();
    let (flag, first, second) = (pinned(), stream(1), stream(1));
    let (stops, waits, event) = (function(load(KERNELS), c"stops"), function(load(OWN), c"waits"), event());
    let barrier = Barrier::new(2);
    // Nobody ever releases this one.
    wait(waits, flag, second);
    ok!(cuLaunchHostFunc(first, meet as extern "C" fn(_), (&raw const barrier).cast_mut().cast::<c_void>()));
    assert_eq!(launch(stops, 1, 1, 0, first, &mut []), 0);
    ok!(cuLaunchHostFunc(first, count as extern "C" fn(_), (&raw const CALLED).cast_mut().cast::<c_void>()));
    ok!(cuStreamAddCallback(first, callback as extern "C" fn(_, _, _), null_mut::<c_void>(), 0u32));
    ok!(cuEventRecord(event, second));
    ok!(cuStreamWaitEvent(first, event, 0u32));
    barrier.wait();
    assert_eq!(cu!(cuStreamSynchronize(second)), code::LAUNCH_FAILED);
    assert_eq!(cu!(cuCtxSynchronize()), code::LAUNCH_FAILED);
    assert_eq!(cu!(cuEventSynchronize(event)), code::LAUNCH_FAILED);
    assert_eq!(cu!(cuStreamQuery(first)), code::LAUNCH_FAILED);
    assert_eq!(cu!(cuMemsetD8Async(address(flag), 0u8, 4usize, first)), code::LAUNCH_FAILED);
    // A context that has failed answers at once, whatever is still in its queues.
    let started = Instant::now();
    while STATUS.load(Ordering::SeqCst) == 0 && started.elapsed() < Duration::from_secs(20) {
        thread::sleep(Duration::from_millis(1));
    }
    assert_eq!((CALLED.load(Ordering::SeqCst), STATUS.load(Ordering::SeqCst)), (0, code::LAUNCH_FAILED));
}

#[test]
fn an_endless_kernel_ends_by_the_budget() {
    let test = "an_endless_kernel_ends_by_the_budget";
    let Some(child) = in_child(test, &[("EMULATED_GPU_BUDGET", "1000000")]) else {
        let _context = Context::new();
        let (flag, first) = (pinned(), stream(1));
        wait(function(load(OWN), c"waits"), flag, first);
        assert_eq!(cu!(cuStreamSynchronize(first)), code::LAUNCH_TIMEOUT);
        let _context = Context::new();
        let (flag, first) = (pinned(), stream(1));
        ok!(cuStreamWaitValue32_v2(first, address(flag), 1u32, 1u32));
        assert_eq!(cu!(cuStreamSynchronize(first)), code::LAUNCH_TIMEOUT);
        return;
    };
    assert!(child.status.success(), "{child:?}");
}

#[test]
fn a_program_may_end_at_any_time() {
    let Some(child) = in_child("a_program_may_end_at_any_time", &[]) else {
        let _context = Context::new();
        let (flag, waits) = (pinned(), function(load(OWN), c"waits"));
        let barrier = Barrier::new(2);
        for _ in 0..4 {
            let stream = stream(1);
            wait(waits, flag, stream);
            ok!(cuMemsetD32Async(address(flag) + 4, 1u32, 1usize, stream));
        }
        let held = (&raw const barrier).cast_mut().cast::<c_void>();
        ok!(cuLaunchHostFunc(stream(1), meet as extern "C" fn(_), held));
        thread::sleep(Duration::from_millis(20));
        std::process::exit(42);
    };
    assert_eq!(child.status.code(), Some(42), "{child:?}");
}

#[test]
fn events_order_two_devices() {
    let first_context = Context::on(0);
    let (flag, waits, event) = (pinned(), function(load(OWN), c"waits"), event());
    let first = stream(1);
    wait(waits, flag, first);
    ok!(cuEventRecord(event, first));
    let _second_context = Context::on(1);
    let (second, other, x) = (stream(1), stream(1), alloc(4));
    upload(x, &[1u32]);
    ok!(cuStreamWaitEvent(second, event, 0u32));
    ok!(cuMemsetD32Async(x, 2u32, 1usize, second));
    ok!(cuMemcpyDtoHAsync_v2(address(flag) + 4, x, 4usize, other));
    ok!(cuStreamSynchronize(other));
    // SAFETY: There are 64 bytes.
    assert_eq!(unsafe { flag.as_ptr().add(1).read_volatile() }, 1, "the second device has not gone on");
    assert_eq!(cu!(cuStreamQuery(second)), code::NOT_READY);
    flag.store(1, Ordering::SeqCst);
    ok!(cuStreamSynchronize(second));
    assert_eq!(download::<u32>(x, 1), [2]);
    ok!(cuCtxPushCurrent_v2(first_context.0));
    ok!(cuCtxSynchronize());
    ok!(cuCtxPopCurrent_v2(null_mut::<usize>()));
}

#[test]
fn a_context_waits_for_an_event_and_is_one() {
    let context = Context::new();
    let (flag, module, x) = (pinned(), load(OWN), alloc(4));
    let (first, second, before, after) = (stream(1), stream(1), event(), event());
    wait(function(module, c"waits"), flag, first);
    ok!(cuEventRecord(before, first));
    ok!(cuCtxRecordEvent(context.0, after));
    ok!(cuMemsetD32Async(x, 1u32, 1usize, second));
    ok!(cuStreamSynchronize(second));
    ok!(cuCtxWaitEvent(context.0, before));
    ok!(cuMemsetD32Async(x, 2u32, 1usize, second));
    assert_eq!(cu!(cuStreamQuery(second)), code::NOT_READY);
    assert_eq!(cu!(cuEventQuery(after)), code::NOT_READY);
    flag.store(1, Ordering::SeqCst);
    ok!(cuEventSynchronize(after));
    ok!(cuStreamSynchronize(second));
    assert_eq!(download::<u32>(x, 1), [2]);
}

#[test]
fn times_of_events_rise() {
    let _context = Context::new();
    let (streams, mixes, x) = ([stream(1), stream(0)], function(load(OWN), c"mixes"), alloc(128));
    let mut events = Vec::new();
    for index in 0..100 {
        let (mut out, mut factor) = (x, 3u32);
        assert_eq!(
            launch(mixes, 1, 32, 0, streams[index % 2], &mut [param(&mut out), param(&mut factor)]),
            0
        );
        events.push(event());
        ok!(cuEventRecord(events[index], streams[index % 2]));
    }
    ok!(cuCtxSynchronize());
    for pair in events.windows(3) {
        let mut ms = -1f32;
        ok!(cuEventElapsedTime(&mut ms as *mut f32, pair[0], pair[2]));
        assert!((0.0..10e3).contains(&ms), "{ms}");
    }
}

/// Threads that give their streams work in no order but that of events, and what must come out.
#[test]
fn many_streams_of_many_threads() {
    const THREADS: u64 = 4;
    const STREAMS: usize = 5;
    const NUMBERS: usize = 32;
    let context = Context::new();
    let module = load(OWN);
    let mixes = function(module, c"mixes");
    let started = Instant::now();
    thread::scope(|scope| {
        for seed in 0..THREADS {
            let context = context.0;
            scope.spawn(move || {
                ok!(cuCtxPushCurrent_v2(context));
                let mut random = Random(seed);
                let streams: Vec<usize> = (0..STREAMS).map(|index| stream(index as u32 % 2)).collect();
                let (x, back) = (alloc(4 * NUMBERS), pinned_numbers(NUMBERS));
                let mut expected = [0u32; NUMBERS];
                let mut last = streams[0];
                ok!(cuMemsetD32Async(x, 0u32, NUMBERS, last));
                for _ in 0..300 {
                    // One array goes from stream to stream: each waits for the one before.
                    let next = *random.pick(&streams);
                    if next != last {
                        let event = event();
                        ok!(cuEventRecord(event, last));
                        ok!(cuStreamWaitEvent(next, event, 0u32));
                        ok!(cuEventDestroy_v2(event));
                        last = next;
                    }
                    match random.index(8) {
                        0 => {
                            let value = random.index(1000) as u32;
                            ok!(cuMemsetD32Async(x + 4, value, 3usize, last));
                            expected[1..4].fill(value);
                        }
                        1 => {
                            let value = random.index(1000) as u32;
                            ok!(cuMemcpyHtoDAsync_v2(x + 8, [value; 5].as_ptr(), 20usize, last));
                            expected[2..7].fill(value);
                        }
                        2 => {
                            ok!(cuMemcpyDtoHAsync_v2(back, x, 4 * NUMBERS, last));
                            ok!(cuStreamSynchronize(last));
                            // SAFETY: The driver allocated as many numbers, and the copy is done.
                            assert_eq!(unsafe { std::slice::from_raw_parts(back, NUMBERS) }, expected);
                        }
                        3 => {
                            let mut other = 0u64;
                            ok!(cuMemAllocAsync(&mut other as *mut u64, 4 * NUMBERS, last));
                            ok!(cuMemcpyDtoDAsync_v2(other, x, 4 * NUMBERS, last));
                            ok!(cuMemsetD8Async(x, 0u8, 4 * NUMBERS, last));
                            ok!(cuMemcpyDtoDAsync_v2(x, other, 4 * NUMBERS, last));
                            ok!(cuMemFreeAsync(other, last));
                        }
                        _ => {
                            let (mut out, mut factor) = (x, random.index(100) as u32);
                            let mut params = [param(&mut out), param(&mut factor)];
                            assert_eq!(launch(mixes, 1, NUMBERS as u32, 0, last, &mut params), 0);
                            for (index, number) in expected.iter_mut().enumerate() {
                                *number = number.wrapping_mul(factor).wrapping_add(index as u32);
                            }
                        }
                    }
                }
                ok!(cuStreamSynchronize(last));
                assert_eq!(download::<u32>(x, NUMBERS), expected, "seed {seed}");
                streams.into_iter().for_each(|stream| ok!(cuStreamDestroy_v2(stream)));
            });
        }
    });
    assert!(started.elapsed() < Duration::from_secs(100));
}

fn pinned_numbers(count: usize) -> *mut u32 {
    let mut address = null_mut::<u32>();
    ok!(cuMemAllocHost_v2(&mut address as *mut *mut u32, 4 * count));
    address
}
