//! Managed memory's advice, batches of copies, and attributes of streams.

use std::{
    ffi::c_void,
    ptr::{null, null_mut},
};

use crate::common::{Context, alloc, code, cu, download, ok, upload};

/// What was advised for a range.
fn advised(number: u32, address: u64, bytes: usize) -> i32 {
    let mut value = 99i32;
    ok!(cuMemRangeGetAttribute(&mut value as *mut i32, 4usize, number, address, bytes));
    value
}

#[test]
fn advice_is_kept() {
    const PAGES: usize = 4 * 65_536;
    const HALF: usize = PAGES / 2;
    let _context = Context::new();
    let mut address = 0u64;
    ok!(cuMemAllocManaged(&mut address as *mut u64, PAGES, 1u32));
    assert_eq!(
        (1..=4)
            .filter(|&number| number != 3)
            .map(|number| advised(number, address, PAGES))
            .collect::<Vec<_>>(),
        [0, -2, -2]
    );
    ok!(cuMemAdvise(address, HALF, 1u32, 0i32));
    assert_eq!((advised(1, address, HALF), advised(1, address, PAGES)), (1, 0));
    ok!(cuMemAdvise(address, PAGES, 3u32, -1i32));
    ok!(cuMemAdvise(address, HALF, 3u32, 0i32));
    assert_eq!(
        (advised(2, address, HALF), advised(2, address + HALF as u64, HALF), advised(2, address, PAGES)),
        (0, -1, -2)
    );
    ok!(cuMemAdvise(address, PAGES, 5u32, 0i32));
    let mut devices = [7i32; 3];
    ok!(cuMemRangeGetAttribute(devices.as_mut_ptr(), 12usize, 3u32, address, PAGES));
    assert_eq!(devices, [0, -2, -2]);
    ok!(cuMemPrefetchAsync(address, PAGES, 0i32, 0usize));
    ok!(cuCtxSynchronize());
    let (mut read_mostly, mut place) = (9i32, 9i32);
    let mut answers = [(&raw mut read_mostly).cast::<c_void>(), (&raw mut place).cast()];
    ok!(cuMemRangeGetAttributes(
        answers.as_mut_ptr(),
        [4usize, 4].as_ptr(),
        [1u32, 4].as_ptr(),
        2usize,
        address,
        HALF
    ));
    assert_eq!((read_mostly, place), (1, 0));
    let mut value = 0i32;
    assert_eq!(
        cu!(cuMemRangeGetAttribute(&mut value as *mut i32, 4usize, 1u32, 16u64, 4usize)),
        code::INVALID_VALUE
    );
    ok!(cuMemFree_v2(address));
}

#[test]
fn many_copies_at_once() {
    /// `CUmemcpyAttributes`
    #[repr(C)]
    struct Attributes {
        source_order: u32,
        places: [u32; 4],
        flags: u32,
    }
    let _context = Context::new();
    let mut stream = 0usize;
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    let (a, b) = (alloc(64), alloc(64));
    upload(a, &(0..16).collect::<Vec<u32>>());
    let (to, from, bytes) = ([b, b + 32], [a + 32, a], [32usize, 32]);
    let attributes = Attributes { source_order: 1, places: [0; 4], flags: 0 };
    let (first, mut failed) = (0usize, 9usize);
    ok!(cuMemcpyBatchAsync(
        to.as_ptr(),
        from.as_ptr(),
        bytes.as_ptr(),
        2usize,
        &raw const attributes,
        &raw const first,
        1usize,
        &raw mut failed,
        stream,
    ));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(download::<u32>(b, 16), (8..16).chain(0..8).collect::<Vec<u32>>());
    assert_eq!(
        cu!(cuMemcpyBatchAsync(
            to.as_ptr(),
            from.as_ptr(),
            bytes.as_ptr(),
            2usize,
            null::<Attributes>(),
            null::<usize>(),
            0usize,
            &raw mut failed,
            0usize,
        )),
        code::INVALID_VALUE,
        "the legacy stream cannot"
    );
    ok!(cuMemFree_v2(a));
    ok!(cuMemFree_v2(b));
    ok!(cuStreamDestroy_v2(stream));
}

#[test]
fn attributes_of_streams() {
    let _context = Context::new();
    let (mut stream, mut other) = (0usize, 0usize);
    ok!(cuStreamCreateWithPriority(&mut stream as *mut usize, 1u32, -2i32));
    ok!(cuStreamCreate(&mut other as *mut usize, 1u32));
    let get = |stream: usize, number: u32| {
        let mut value = [9u64; 8];
        ok!(cuStreamGetAttribute(stream, number, value.as_mut_ptr()));
        value[0] as i32
    };
    assert_eq!(get(stream, 8), -2);
    assert_eq!(get(stream, 3), -1, "nothing was asked for");
    ok!(cuStreamSetAttribute(stream, 3u32, [2u64, 0, 0, 0, 0, 0, 0, 0].as_ptr()));
    assert_eq!((get(stream, 3), get(other, 3)), (2, -1));
    ok!(cuStreamCopyAttributes(other, stream));
    assert_eq!(get(other, 3), 2);
    let mut value = [0u64; 8];
    assert_eq!(cu!(cuStreamGetAttribute(stream, 99u32, value.as_mut_ptr())), code::INVALID_VALUE);
    ok!(cuStreamDestroy_v2(stream));
    ok!(cuStreamDestroy_v2(other));
}

#[test]
fn core_dumps_are_off() {
    let _context = Context::new();
    let (mut on, mut bytes) = (true, 1usize);
    ok!(cuCoredumpGetAttribute(1u32, &raw mut on, &mut bytes as *mut usize));
    assert!(!on);
    assert_eq!(
        cu!(cuCoredumpGetAttribute(99u32, null_mut::<c_void>(), &mut bytes as *mut usize)),
        code::INVALID_VALUE
    );
}
