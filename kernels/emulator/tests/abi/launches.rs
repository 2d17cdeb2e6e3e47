//! Launches, faults and occupancy.

use std::{
    ffi::c_void,
    ptr::{null_mut, without_provenance_mut},
};

use crate::common::{Context, KERNELS, alloc, code, cu, download, function, launch, load, ok, param};

#[test]
fn kernels_are_launched_with_either_kind_of_parameters() {
    let _context = Context::new();
    let module = load(KERNELS);
    let fill = function(module, c"fill");
    let mut out = alloc(400);
    ok!(cuMemsetD32_v2(out, 0u32, 100usize));
    let (mut n, mut value) = (70u32, 5u32);
    let mut params = [param(&mut out), param(&mut n), param(&mut value)];
    assert_eq!(launch(fill, 3, 32, 0, 0, &mut params), 0);
    let mut expected = vec![5u32; 70];
    expected.resize(100, 0);
    assert_eq!(download::<u32>(out, 100), expected);

    let mut buffer = [0u8; 20];
    buffer[0] = 200;
    buffer[8..16].copy_from_slice(&out.to_ne_bytes());
    buffer[16..].copy_from_slice(&100u32.to_ne_bytes());
    let mut size = buffer.len();
    let (pointer, bytes) = (without_provenance_mut(1), without_provenance_mut(2));
    let mut extra: [*mut c_void; 5] =
        [pointer, buffer.as_mut_ptr().cast(), bytes, (&raw mut size).cast(), null_mut()];
    let mixed = function(module, c"mixed");
    let none = null_mut::<*mut c_void>();
    ok!(cuLaunchKernel(mixed, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, 0usize, none, extra.as_mut_ptr(),));
    assert_eq!(download::<u32>(out, 1), [300]);
    assert_eq!(
        cu!(cuLaunchKernel(mixed, 1u32, 1u32, 1u32, 1u32, 1u32, 1u32, 0u32, 0usize, none, none)),
        code::INVALID_VALUE
    );
    let count = function(module, c"count");
    assert_eq!(launch(count, 10, 32, 0, 0, &mut []), 0);
    let mut counter = 0u64;
    ok!(cuModuleGetGlobal_v2(&mut counter as *mut u64, null_mut::<usize>(), module, c"counter".as_ptr()));
    assert_eq!(download::<u32>(counter, 1), [327]);
    ok!(cuModuleUnload(module));
}

#[test]
fn launches_that_no_card_can_do_are_refused() {
    let _context = Context::new();
    let module = load(KERNELS);
    let count = function(module, c"count");
    let shape = |function: usize, grid: [u32; 3], block: [u32; 3], shared: u32| {
        let none = null_mut::<*mut c_void>();
        cu!(cuLaunchKernel(
            function, grid[0], grid[1], grid[2], block[0], block[1], block[2], shared, 0usize, none, none,
        ))
    };
    assert_eq!(shape(count, [0, 1, 1], [1, 1, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(count, [1, 1, 1], [1, 0, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(count, [1, 1, 1], [1025, 1, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(count, [1, 1, 1], [33, 33, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(count, [1, 1, 1], [1, 1, 65], 0), code::INVALID_VALUE);
    assert_eq!(shape(count, [1, 65_536, 1], [1, 1, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(count, [1, 1, 1], [1, 1, 1], 49_153), code::INVALID_VALUE);
    assert_eq!(shape(function(module, c"limited"), [1, 1, 1], [65, 1, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(function(module, c"exact"), [1, 1, 1], [64, 1, 1], 0), code::INVALID_VALUE);
    assert_eq!(shape(function(module, c"exact"), [1, 1, 1], [32, 2, 1], 0), 0);
    assert_eq!(shape(0, [1, 1, 1], [1, 1, 1], 0), code::INVALID_HANDLE);
    let none = null_mut::<*mut c_void>();
    assert_eq!(
        cu!(cuLaunchCooperativeKernel(
            count,
            1_000_000u32,
            1u32,
            1u32,
            1024u32,
            1u32,
            1u32,
            0u32,
            0usize,
            none,
        )),
        code::COOPERATIVE_LAUNCH_TOO_LARGE
    );
    let mut most = 0i32;
    ok!(cuDeviceGetAttribute(&mut most as *mut i32, 97u32, 0i32));
    assert_eq!(cu!(cuFuncSetAttribute(count, 8u32, most + 1)), code::INVALID_VALUE);
    ok!(cuFuncSetAttribute(count, 8u32, most));
    assert_eq!(shape(count, [1, 1, 1], [1, 1, 1], most as u32), 0);
    ok!(cuCtxSynchronize());
}

#[test]
fn a_fault_is_the_error_of_every_later_call_of_its_context() {
    let mut context = 0usize;
    ok!(cuInit(0u32));
    ok!(cuCtxCreate_v2(&mut context as *mut usize, 0u32, 0i32));
    let module = load(KERNELS);
    let fill = function(module, c"fill");
    let (mut nowhere, mut n, mut value) = (16u64, 1u32, 0u32);
    let mut params = [param(&mut nowhere), param(&mut n), param(&mut value)];
    assert_eq!(launch(fill, 1, 1, 0, 0, &mut params), 0, "the launch itself succeeds");
    assert_eq!(cu!(cuCtxSynchronize()), code::ILLEGAL_ADDRESS);
    assert_eq!(cu!(cuMemAlloc_v2(&mut 0u64 as *mut u64, 4usize)), code::ILLEGAL_ADDRESS);
    assert_eq!(launch(fill, 1, 1, 0, 0, &mut params), code::ILLEGAL_ADDRESS);
    assert_eq!(cu!(cuStreamSynchronize(0usize)), code::ILLEGAL_ADDRESS);
    let mut device = -1i32;
    ok!(cuCtxGetDevice(&mut device as *mut i32));
    ok!(cuCtxDestroy_v2(context));
}

#[test]
fn occupancy() {
    let _context = Context::new();
    let module = load(KERNELS);
    let count = function(module, c"count");
    let (mut blocks, mut grid, mut block) = (0i32, 0i32, 0i32);
    let (mut threads, mut multiprocessors) = (0i32, 0i32);
    ok!(cuDeviceGetAttribute(&mut threads as *mut i32, 39u32, 0i32));
    ok!(cuDeviceGetAttribute(&mut multiprocessors as *mut i32, 16u32, 0i32));
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks as *mut i32, count, 256i32, 0usize));
    assert_eq!(blocks, threads / 256);
    ok!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks as *mut i32, count, 256i32, 40_000usize));
    assert!(blocks > 0 && blocks < threads / 256);
    ok!(cuOccupancyMaxPotentialBlockSize(
        &mut grid as *mut i32,
        &mut block as *mut i32,
        count,
        None::<extern "C" fn(i32) -> usize>,
        0usize,
        0i32,
    ));
    assert_eq!(grid * block, threads * multiprocessors);
    assert_eq!(
        cu!(cuOccupancyMaxActiveBlocksPerMultiprocessor(&mut blocks as *mut i32, count, 0i32, 0usize)),
        code::INVALID_VALUE
    );
}
