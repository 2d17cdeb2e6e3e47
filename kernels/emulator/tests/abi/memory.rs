//! Memory: allocation, copies, fills, pools, and what pointers say.

use std::{ffi::c_void, ptr::null_mut};

use crate::common::{Context, alloc, code, cu, download, ok, upload};

#[test]
fn memory_is_copied_and_filled() {
    let _context = Context::new();
    let a = alloc(4000);
    upload(a, &(0..1000).collect::<Vec<u32>>());
    let b = alloc(4000);
    ok!(cuMemcpyDtoD_v2(b, a, 4000usize));
    ok!(cuMemsetD32_v2(b + 40, 5u32, 10usize));
    ok!(cuMemsetD16_v2(b, 0x1234u16, 1usize));
    ok!(cuMemsetD8_v2(b + 2, 0xabu8, 2usize));
    let mut expected: Vec<u32> = (0..1000).collect();
    expected[10..20].fill(5);
    expected[0] = 0xabab_1234;
    assert_eq!(download::<u32>(b, 1000), expected);
    // Unified addresses: the direction follows from the pointers.
    let mut host = [0u32; 2];
    ok!(cuMemcpy(host.as_mut_ptr() as u64, b + 76, 8usize));
    assert_eq!(host, [5, 20]);
    let (mut start, mut size) = (0u64, 0usize);
    ok!(cuMemGetAddressRange_v2(&mut start as *mut u64, &mut size as *mut usize, a + 17));
    assert_eq!((start, size), (a, 4000));
    ok!(cuMemFree_v2(a));
    assert_eq!(cu!(cuMemFree_v2(a)), code::INVALID_VALUE);
    ok!(cuMemFree_v2(b));
}

#[test]
fn wrong_memory_calls_are_refused() {
    let _context = Context::new();
    let mut address = 0u64;
    assert_eq!(cu!(cuMemAlloc_v2(&mut address as *mut u64, 0usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemAlloc_v2(null_mut::<u64>(), 4usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemAlloc_v2(&mut address as *mut u64, 1usize << 50)), code::OUT_OF_MEMORY);
    let a = alloc(64);
    assert_eq!(cu!(cuMemFree_v2(a + 4)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemsetD32_v2(a + 2, 0u32, 1usize)), code::INVALID_VALUE, "misaligned");
    assert_eq!(cu!(cuMemcpyHtoD_v2(0u64, [0u8; 4].as_ptr(), 4usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemcpyDtoH_v2(null_mut::<u8>(), a, 4usize)), code::INVALID_VALUE);
    ok!(cuMemcpyHtoD_v2(a, [0u8; 4].as_ptr(), 0usize));
    ok!(cuMemFree_v2(a));
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
struct Memcpy2D {
    src_x: usize,
    src_y: usize,
    src_type: u32,
    src_host: *const c_void,
    src_device: u64,
    src_array: usize,
    src_pitch: usize,
    dst_x: usize,
    dst_y: usize,
    dst_type: u32,
    dst_host: *mut c_void,
    dst_device: u64,
    dst_array: usize,
    dst_pitch: usize,
    width: usize,
    height: usize,
}

#[test]
fn rectangles_are_copied() {
    let _context = Context::new();
    let (mut address, mut pitch) = (0u64, 0usize);
    ok!(cuMemAllocPitch_v2(&mut address as *mut u64, &mut pitch as *mut usize, 20usize, 3usize, 4u32));
    assert!(pitch >= 20 && pitch.is_multiple_of(4));
    ok!(cuMemsetD2D8_v2(address, pitch, 0u8, 20usize, 3usize));
    let from: Vec<u8> = (0..24).collect();
    // Rows 1 and 2 of a 4 by 6 picture of bytes, from its column 2 on, to column 5 of row 1.
    let mut copy = Memcpy2D {
        src_x: 2,
        src_y: 1,
        src_type: 1,
        src_host: from.as_ptr().cast(),
        src_device: 0,
        src_array: 0,
        src_pitch: 6,
        dst_x: 5,
        dst_y: 1,
        dst_type: 2,
        dst_host: null_mut(),
        dst_device: address,
        dst_array: 0,
        dst_pitch: pitch,
        width: 3,
        height: 2,
    };
    ok!(cuMemcpy2D_v2(&copy as *const Memcpy2D));
    let all = download::<u8>(address, pitch * 2 + 20);
    assert_eq!(&all[pitch + 4..pitch + 9], [0, 8, 9, 10, 0]);
    assert_eq!(&all[2 * pitch + 4..2 * pitch + 9], [0, 14, 15, 16, 0]);
    copy.src_pitch = 4;
    assert_eq!(cu!(cuMemcpy2D_v2(&copy as *const Memcpy2D)), code::INVALID_VALUE, "rows overlap");
    ok!(cuMemFree_v2(address));
}

#[test]
fn host_memory_is_seen_by_devices() {
    let _context = Context::new();
    let mut pinned = null_mut::<u32>();
    ok!(cuMemHostAlloc(&mut pinned as *mut *mut u32, 64usize, 2u32));
    let (mut address, mut flags) = (0u64, 0u32);
    ok!(cuMemHostGetDevicePointer_v2(&mut address as *mut u64, pinned, 0u32));
    ok!(cuMemHostGetFlags(&mut flags as *mut u32, pinned));
    assert_eq!(flags & 2, 2);
    ok!(cuMemsetD32_v2(address, 3u32, 16usize));
    ok!(cuCtxSynchronize());
    // SAFETY: The driver allocated 64 bytes.
    assert_eq!(unsafe { pinned.add(15).read() }, 3);
    ok!(cuMemFreeHost(pinned));
    assert_eq!(cu!(cuMemFreeHost(pinned)), code::INVALID_VALUE);

    let mut own = vec![0u8; 8192];
    ok!(cuMemHostRegister_v2(own.as_mut_ptr(), 8192usize, 0u32));
    assert_eq!(
        cu!(cuMemHostRegister_v2(own.as_mut_ptr(), 8192usize, 0u32)),
        code::HOST_MEMORY_ALREADY_REGISTERED
    );
    ok!(cuMemHostUnregister(own.as_mut_ptr()));
    assert_eq!(cu!(cuMemHostUnregister(own.as_mut_ptr())), code::HOST_MEMORY_NOT_REGISTERED);

    let mut managed = null_mut::<u32>();
    assert_eq!(cu!(cuMemAllocManaged(&mut managed as *mut *mut u32, 64usize, 9u32)), code::INVALID_VALUE);
    ok!(cuMemAllocManaged(&mut managed as *mut *mut u32, 64usize, 1u32));
    // SAFETY: The driver allocated 64 bytes that the host may use.
    unsafe { managed.write(77) };
    assert_eq!(download::<u32>(managed as u64, 1), [77]);
    ok!(cuMemPrefetchAsync(managed as u64, 64usize, 0i32, 0usize));
    ok!(cuMemAdvise(managed as u64, 64usize, 1u32, 0i32));
    ok!(cuCtxSynchronize());
    ok!(cuMemFree_v2(managed as u64));
}

#[test]
fn pointers_say_what_they_are() {
    let context = Context::new();
    let a = alloc(100);
    let (mut kind, mut owner, mut start, mut managed) = (0u32, 0usize, 0u64, 9u32);
    ok!(cuPointerGetAttribute(&mut kind as *mut u32, 2u32, a + 8));
    ok!(cuPointerGetAttribute(&mut owner as *mut usize, 1u32, a));
    ok!(cuPointerGetAttribute(&mut start as *mut u64, 11u32, a + 8));
    ok!(cuPointerGetAttribute(&mut managed as *mut u32, 8u32, a));
    assert_eq!((kind, owner, start, managed), (2, context.0, a, 0));
    let local = 0u32;
    assert_eq!(
        cu!(cuPointerGetAttribute(&mut kind as *mut u32, 2u32, &local as *const u32 as u64)),
        code::INVALID_VALUE
    );
    ok!(cuMemFree_v2(a));
}

#[test]
fn memory_in_the_order_of_streams() {
    let _context = Context::new();
    let mut stream = 0usize;
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    let mut address = 0u64;
    ok!(cuMemAllocAsync(&mut address as *mut u64, 256usize, stream));
    ok!(cuMemsetD8Async(address, 1u8, 256usize, stream));
    let mut back = [0u8; 256];
    ok!(cuMemcpyDtoHAsync_v2(back.as_mut_ptr(), address, 256usize, stream));
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(back, [1; 256]);
    let (mut default, mut chosen, mut threshold) = (0usize, 0usize, 9u64);
    ok!(cuDeviceGetDefaultMemPool(&mut default as *mut usize, 0i32));
    ok!(cuDeviceGetMemPool(&mut chosen as *mut usize, 0i32));
    assert_eq!(default, chosen);
    ok!(cuMemPoolGetAttribute(default, 4u32, &mut threshold as *mut u64));
    ok!(cuStreamDestroy_v2(stream));
}
