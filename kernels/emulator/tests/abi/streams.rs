//! Streams, events and host functions.

use std::{
    ffi::c_void,
    ptr::without_provenance_mut,
    sync::atomic::{AtomicU32, Ordering},
};

use crate::common::{Context, code, cu, ok};

#[test]
fn streams_and_events() {
    let context = Context::new();
    let (mut stream, mut priority, mut flags, mut owner) = (0usize, 9i32, 9u32, 0usize);
    assert_eq!(cu!(cuStreamCreate(&mut stream as *mut usize, 8u32)), code::INVALID_VALUE);
    ok!(cuStreamCreateWithPriority(&mut stream as *mut usize, 1u32, -1i32));
    ok!(cuStreamGetPriority(stream, &mut priority as *mut i32));
    ok!(cuStreamGetFlags(stream, &mut flags as *mut u32));
    ok!(cuStreamGetCtx(stream, &mut owner as *mut usize));
    assert_eq!((priority, flags, owner), (-1, 1, context.0));
    ok!(cuStreamQuery(stream));

    let (mut start, mut end, mut untimed, mut ms) = (0usize, 0usize, 0usize, -1f32);
    ok!(cuEventCreate(&mut start as *mut usize, 0u32));
    ok!(cuEventCreate(&mut end as *mut usize, 0u32));
    ok!(cuEventCreate(&mut untimed as *mut usize, 2u32));
    ok!(cuEventQuery(start));
    assert_eq!(
        cu!(cuEventElapsedTime(&mut ms as *mut f32, start, end)),
        code::INVALID_HANDLE,
        "not recorded"
    );
    ok!(cuEventRecord(start, stream));
    ok!(cuEventRecord(end, stream));
    ok!(cuEventRecord(untimed, stream));
    ok!(cuStreamWaitEvent(0usize, end, 0u32));
    ok!(cuEventSynchronize(end));
    ok!(cuEventElapsedTime(&mut ms as *mut f32, start, end));
    assert!((0.0..1000.0).contains(&ms));
    assert_eq!(cu!(cuEventElapsedTime(&mut ms as *mut f32, start, untimed)), code::INVALID_HANDLE);
    ok!(cuEventDestroy_v2(start));
    ok!(cuEventDestroy_v2(end));
    ok!(cuEventDestroy_v2(untimed));
    ok!(cuStreamDestroy_v2(stream));
}

#[test]
fn host_functions_run_in_order() {
    static STEPS: AtomicU32 = AtomicU32::new(0);
    extern "C" fn step(digit: *mut c_void) {
        STEPS
            .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |steps| Some(steps * 10 + digit as u32))
            .unwrap();
        let mut count = 0i32;
        assert_eq!(cu!(cuDeviceGetCount(&mut count as *mut i32)), code::NOT_PERMITTED);
    }
    extern "C" fn callback(_stream: usize, status: u32, digit: *mut c_void) {
        assert_eq!(status, 0);
        step(digit);
    }
    let _context = Context::new();
    let mut stream = 0usize;
    ok!(cuStreamCreate(&mut stream as *mut usize, 0u32));
    ok!(cuLaunchHostFunc(stream, step as extern "C" fn(_), without_provenance_mut::<c_void>(1)));
    ok!(cuStreamAddCallback(
        stream,
        callback as extern "C" fn(_, _, _),
        without_provenance_mut::<c_void>(2),
        0u32
    ));
    ok!(cuLaunchHostFunc(stream, step as extern "C" fn(_), without_provenance_mut::<c_void>(3)));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(STEPS.load(Ordering::SeqCst), 123);
    ok!(cuStreamDestroy_v2(stream));
}
