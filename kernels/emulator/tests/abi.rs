//! What any CUDA driver answers to a C program. `CUDA_DRIVER=libcuda.so.1` runs the same on a GPU.

mod common;

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut, without_provenance_mut},
    sync::atomic::{AtomicU32, Ordering},
};

use common::{Context, KERNELS, alloc, code, cu, download, function, launch, load, ok, param, upload};

#[test]
fn errors_have_names_and_sentences() {
    let text = |code: u32| {
        let (mut name, mut sentence) = (null::<c_char>(), null::<c_char>());
        ok!(cuGetErrorName(code, &mut name as *mut _));
        ok!(cuGetErrorString(code, &mut sentence as *mut _));
        // SAFETY: The driver answers strings that live as long as it does.
        unsafe { (CStr::from_ptr(name).to_str().unwrap(), CStr::from_ptr(sentence).to_str().unwrap()) }
    };
    assert_eq!(text(0), ("CUDA_SUCCESS", "no error"));
    assert_eq!(text(1), ("CUDA_ERROR_INVALID_VALUE", "invalid argument"));
    assert_eq!(text(700), ("CUDA_ERROR_ILLEGAL_ADDRESS", "an illegal memory access was encountered"));
    let mut name = std::ptr::dangling::<c_char>();
    assert_eq!(cu!(cuGetErrorName(12345u32, &mut name as *mut _)), code::INVALID_VALUE);
    assert!(name.is_null());
}

#[test]
fn devices_answer_what_they_are() {
    assert_eq!(cu!(cuInit(1u32)), code::INVALID_VALUE);
    ok!(cuInit(0u32));
    let (mut version, mut count, mut device) = (0i32, 0i32, -1i32);
    ok!(cuDriverGetVersion(&mut version as *mut i32));
    assert!(version >= 12_000);
    ok!(cuDeviceGetCount(&mut count as *mut i32));
    assert!(count >= 1);
    ok!(cuDeviceGet(&mut device as *mut i32, 0i32));
    assert_eq!(cu!(cuDeviceGet(&mut device as *mut i32, count)), code::INVALID_DEVICE);
    assert_eq!(cu!(cuDeviceGet(&mut device as *mut i32, -1i32)), code::INVALID_DEVICE);
    assert_eq!(cu!(cuDeviceGetCount(null_mut::<i32>())), code::INVALID_VALUE);

    let mut name = [1 as c_char; 6];
    ok!(cuDeviceGetName(name.as_mut_ptr(), 6i32, 0i32));
    assert_eq!(name[5], 0, "the name is cut and ends with a zero");
    assert_eq!(cu!(cuDeviceGetName(name.as_mut_ptr(), 6i32, count)), code::INVALID_DEVICE);

    let attribute = |number: u32| {
        let mut value = -7i32;
        ok!(cuDeviceGetAttribute(&mut value as *mut i32, number, 0i32));
        value
    };
    assert_eq!((attribute(1), attribute(10)), (1024, 32));
    assert_eq!((attribute(2), attribute(3), attribute(4)), (1024, 1024, 64));
    assert_eq!((attribute(5), attribute(6), attribute(7)), (i32::MAX, 65_535, 65_535));
    let mut value = 0i32;
    assert_eq!(cu!(cuDeviceGetAttribute(&mut value as *mut i32, 9999u32, 0i32)), code::INVALID_VALUE);
    let (mut major, mut minor) = (0i32, 0i32);
    ok!(cuDeviceComputeCapability(&mut major as *mut i32, &mut minor as *mut i32, 0i32));
    assert_eq!((major, minor), (attribute(75), attribute(76)));

    let mut bus = [0 as c_char; 16];
    ok!(cuDeviceGetPCIBusId(bus.as_mut_ptr(), 16i32, 0i32));
    ok!(cuDeviceGetByPCIBusId(&mut device as *mut i32, bus.as_ptr()));
    assert_eq!(device, 0);
}

#[test]
fn contexts_are_a_stack_of_each_thread() {
    let get = || {
        let mut context = 1usize;
        ok!(cuCtxGetCurrent(&mut context as *mut usize));
        context
    };
    let a = Context::new();
    let b = Context::new();
    assert_eq!(get(), b.0);
    let mut popped = 0usize;
    ok!(cuCtxPopCurrent_v2(&mut popped as *mut usize));
    assert_eq!((popped, get()), (b.0, a.0));
    ok!(cuCtxPushCurrent_v2(b.0));
    ok!(cuCtxSetCurrent(a.0));
    assert_eq!(get(), a.0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            assert_eq!(get(), 0);
            assert_eq!(cu!(cuCtxSynchronize()), code::INVALID_CONTEXT);
            assert_eq!(cu!(cuMemAlloc_v2(&mut 0u64 as *mut u64, 4usize)), code::INVALID_CONTEXT);
            assert_eq!(cu!(cuCtxPopCurrent_v2(null_mut::<usize>())), code::INVALID_CONTEXT);
        });
    });
    let (mut context, mut version, mut flags) = (0usize, 0u32, 9u32);
    assert_eq!(cu!(cuCtxCreate_v2(&mut context as *mut usize, 1u32 << 20, 0i32)), code::INVALID_VALUE);
    ok!(cuCtxGetApiVersion(a.0, &mut version as *mut u32));
    ok!(cuCtxGetFlags(&mut flags as *mut u32));
    assert_eq!(cu!(cuCtxPushCurrent_v2(0usize)), code::INVALID_VALUE);
}

#[test]
fn limits_can_be_asked_and_set() {
    let _context = Context::new();
    let get = |limit: u32| {
        let mut value = 0usize;
        ok!(cuCtxGetLimit(&mut value as *mut usize, limit));
        value
    };
    assert_eq!(get(0), 1024);
    ok!(cuCtxSetLimit(0u32, 4096usize));
    assert_eq!(get(0), 4096);
    assert_eq!(get(2), 8 << 20);
    let mut value = 0usize;
    assert_eq!(cu!(cuCtxGetLimit(&mut value as *mut usize, 77u32)), code::INVALID_VALUE);
    let (mut least, mut greatest) = (9i32, 9i32);
    ok!(cuCtxGetStreamPriorityRange(&mut least as *mut i32, &mut greatest as *mut i32));
    assert!(least == 0 && greatest < 0);
}

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

#[test]
fn modules_are_refused_with_a_reason() {
    let _context = Context::new();
    let check = |text: &CStr, expected: u32, word: &str| {
        let mut buffer = [0u8; 4096];
        let options = [5u32, 6];
        let mut values = [buffer.as_mut_ptr().cast::<c_void>(), 4096 as *mut c_void];
        let mut module = 0usize;
        let answer = cu!(cuModuleLoadDataEx(
            &mut module as *mut usize,
            text.as_ptr(),
            2u32,
            options.as_ptr(),
            values.as_mut_ptr(),
        ));
        assert_eq!(answer, expected, "{text:?}");
        let log = CStr::from_bytes_until_nul(&buffer).unwrap().to_str().unwrap();
        assert!(log.contains(word), "{log}");
    };
    check(
        c".version 8.0\n.target sm_75\n.address_size 64\n.visible .entry k() { nonsense }\n",
        code::INVALID_PTX,
        "4",
    );
    check(c".version 99.0\n.target sm_75\n.address_size 64\n", code::UNSUPPORTED_PTX_VERSION, "");
    assert_eq!(cu!(cuModuleLoad(&mut 0usize as *mut usize, c"/no/such/file".as_ptr())), code::FILE_NOT_FOUND);
    assert_eq!(cu!(cuModuleLoadData(&mut 0usize as *mut usize, null::<u8>())), code::INVALID_VALUE);
}

#[test]
fn modules_hold_kernels_and_variables() {
    let _context = Context::new();
    let module = load(KERNELS);
    let fill = function(module, c"fill");
    assert_eq!(function(module, c"fill"), fill, "the same handle each time");
    let mut missing = 0usize;
    assert_eq!(
        cu!(cuModuleGetFunction(&mut missing as *mut usize, module, c"nothing".as_ptr())),
        code::NOT_FOUND
    );
    let (mut address, mut bytes) = (0u64, 0usize);
    ok!(cuModuleGetGlobal_v2(&mut address as *mut u64, &mut bytes as *mut usize, module, c"table".as_ptr()));
    assert_eq!(bytes, 12);
    assert_eq!(download::<f32>(address, 3), [1.0, 2.0, 3.0]);
    assert_eq!(
        cu!(cuModuleGetGlobal_v2(
            &mut address as *mut u64,
            &mut bytes as *mut usize,
            module,
            c"nothing".as_ptr()
        )),
        code::NOT_FOUND
    );
    let attribute = |function: usize, number: u32| {
        let mut value = -1i32;
        ok!(cuFuncGetAttribute(&mut value as *mut i32, number, function));
        value
    };
    assert_eq!((attribute(fill, 0), attribute(fill, 5)), (1024, 52));
    assert_eq!(attribute(function(module, c"limited"), 0), 64);
    assert_eq!(attribute(function(module, c"shares"), 1), 1024);
    let (mut offset, mut size) = (0usize, 0usize);
    let mixed = function(module, c"mixed");
    let offsets: Vec<_> = (0..3usize)
        .map(|index| {
            ok!(cuFuncGetParamInfo(mixed, index, &mut offset as *mut usize, &mut size as *mut usize));
            (offset, size)
        })
        .collect();
    assert_eq!(offsets, [(0, 1), (8, 8), (16, 4)]);
    assert_eq!(
        cu!(cuFuncGetParamInfo(mixed, 3usize, &mut offset as *mut usize, &mut size as *mut usize)),
        code::INVALID_VALUE
    );
    ok!(cuModuleUnload(module));
}

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
fn graphs_are_captured_and_launched() {
    let _context = Context::new();
    let module = load(KERNELS);
    let count = function(module, c"count");
    let mut counter = 0u64;
    ok!(cuModuleGetGlobal_v2(&mut counter as *mut u64, null_mut::<usize>(), module, c"counter".as_ptr()));
    let (mut stream, mut other, mut fork, mut join) = (0usize, 0usize, 0usize, 0usize);
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    ok!(cuStreamCreate(&mut other as *mut usize, 1u32));
    ok!(cuEventCreate(&mut fork as *mut usize, 2u32));
    ok!(cuEventCreate(&mut join as *mut usize, 2u32));

    assert_eq!(cu!(cuStreamBeginCapture_v2(0usize, 0u32)), code::STREAM_CAPTURE_UNSUPPORTED);
    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    assert_eq!(cu!(cuStreamBeginCapture_v2(stream, 2u32)), code::ILLEGAL_STATE);
    ok!(cuMemsetD32Async(counter, 100u32, 1usize, stream));
    ok!(cuEventRecord(fork, stream));
    ok!(cuStreamWaitEvent(other, fork, 0u32));
    let mut status = 9u32;
    ok!(cuStreamIsCapturing(other, &mut status as *mut u32));
    assert_eq!(status, 1, "the other stream joined");
    assert_eq!(launch(count, 1, 32, 0, stream, &mut []), 0);
    assert_eq!(launch(count, 2, 32, 0, other, &mut []), 0);
    ok!(cuEventRecord(join, other));
    ok!(cuStreamWaitEvent(stream, join, 0u32));
    let mut graph = 0usize;
    assert_eq!(cu!(cuStreamEndCapture(other, &mut graph as *mut usize)), code::STREAM_CAPTURE_UNMATCHED);
    ok!(cuStreamEndCapture(stream, &mut graph as *mut usize));
    assert_eq!(download::<u32>(counter, 1), [7], "nothing has run");

    let mut nodes = 0usize;
    ok!(cuGraphGetNodes(graph, null_mut::<usize>(), &mut nodes as *mut usize));
    assert_eq!(nodes, 3);
    let mut exec = 0usize;
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(download::<u32>(counter, 1), [196]);
    ok!(cuGraphExecDestroy(exec));
    ok!(cuGraphDestroy(graph));
}

#[test]
fn captures_that_go_wrong_say_how() {
    let _context = Context::new();
    let (mut stream, mut other, mut event, mut graph) = (0usize, 0usize, 0usize, 1usize);
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    ok!(cuStreamCreate(&mut other as *mut usize, 1u32));
    ok!(cuEventCreate(&mut event as *mut usize, 2u32));
    let a = alloc(64);

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    assert_eq!(cu!(cuStreamSynchronize(stream)), code::STREAM_CAPTURE_UNSUPPORTED);
    assert_eq!(cu!(cuMemsetD8Async(a, 0u8, 1usize, stream)), code::STREAM_CAPTURE_INVALIDATED);
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_INVALIDATED);
    assert_eq!(graph, 0);

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    ok!(cuEventRecord(event, stream));
    assert_eq!(cu!(cuEventSynchronize(event)), code::CAPTURED_EVENT);
    cu!(cuStreamEndCapture(stream, &mut graph as *mut usize));

    ok!(cuEventRecord(event, other));
    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    assert_eq!(cu!(cuStreamWaitEvent(stream, event, 0u32)), code::STREAM_CAPTURE_ISOLATION);
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_INVALIDATED);

    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    ok!(cuEventRecord(event, stream));
    ok!(cuStreamWaitEvent(other, event, 0u32));
    ok!(cuMemsetD8Async(a, 0u8, 1usize, other));
    assert_eq!(cu!(cuStreamEndCapture(stream, &mut graph as *mut usize)), code::STREAM_CAPTURE_UNJOINED);
    ok!(cuMemsetD8Async(a, 0u8, 1usize, other));
    ok!(cuStreamSynchronize(other));
}

#[test]
fn graphs_are_built_by_hand() {
    let _context = Context::new();
    #[repr(C)]
    struct Memset {
        address: u64,
        pitch: usize,
        value: u32,
        element: u32,
        width: usize,
        height: usize,
    }
    let mut owner = 0usize;
    ok!(cuCtxGetCurrent(&mut owner as *mut usize));
    let a = alloc(64);
    let (mut graph, mut first, mut second, mut empty) = (0usize, 0usize, 0usize, 0usize);
    ok!(cuGraphCreate(&mut graph as *mut usize, 0u32));
    let mut params = Memset { address: a, pitch: 0, value: 1, element: 4, width: 16, height: 1 };
    let none = null::<usize>();
    ok!(cuGraphAddMemsetNode(&mut first as *mut usize, graph, none, 0usize, &params as *const Memset, owner));
    params.value = 2;
    params.width = 4;
    ok!(cuGraphAddMemsetNode(
        &mut second as *mut usize,
        graph,
        &first as *const usize,
        1usize,
        &params as *const Memset,
        owner
    ));
    ok!(cuGraphAddEmptyNode(&mut empty as *mut usize, graph, none, 0usize));
    let (mut kind, mut count) = (9u32, 8usize);
    ok!(cuGraphNodeGetType(second, &mut kind as *mut u32));
    let mut roots = [9usize; 8];
    ok!(cuGraphGetRootNodes(graph, roots.as_mut_ptr(), &mut count as *mut usize));
    assert_eq!((kind, count), (2, 2));
    assert!(roots[..2].contains(&first) && roots[..2].contains(&empty), "in any order");
    ok!(cuGraphAddDependencies(graph, &second as *const usize, &empty as *const usize, 1usize));

    let (mut exec, mut copy) = (0usize, 0usize);
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    ok!(cuGraphLaunch(exec, 0usize));
    let mut expected = [1u32; 16];
    expected[..4].fill(2);
    assert_eq!(download::<u32>(a, 16), expected);
    params.value = 3;
    ok!(cuGraphExecMemsetNodeSetParams(exec, second, &params as *const Memset, owner));
    ok!(cuGraphLaunch(exec, 0usize));
    expected[..4].fill(3);
    assert_eq!(download::<u32>(a, 16), expected);
    ok!(cuGraphClone(&mut copy as *mut usize, graph));
    ok!(cuGraphDestroy(graph));
    assert_eq!(cu!(cuGraphNodeGetType(second, &mut kind as *mut u32)), code::INVALID_VALUE);
    ok!(cuGraphGetNodes(copy, null_mut::<usize>(), &mut count as *mut usize));
    assert_eq!(count, 3);
    ok!(cuGraphDestroy(copy));
    ok!(cuGraphExecDestroy(exec));
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

#[test]
fn libraries_are_loaded_where_they_are_used() {
    let _context = Context::new();
    let text = std::ffi::CString::new(KERNELS).unwrap();
    let (mut library, mut kernel, mut module_function, mut count) = (0usize, 0usize, 0usize, 0u32);
    let (no_options, no_values) = (null::<u32>(), null::<*mut c_void>());
    ok!(cuLibraryLoadData(
        &mut library as *mut usize,
        text.as_ptr(),
        no_options,
        no_values,
        0u32,
        no_options,
        no_values,
        0u32,
    ));
    ok!(cuLibraryGetKernelCount(&mut count as *mut u32, library));
    assert_eq!(count, 8);
    ok!(cuLibraryGetKernel(&mut kernel as *mut usize, library, c"count".as_ptr()));
    ok!(cuKernelGetFunction(&mut module_function as *mut usize, kernel));
    assert_eq!(launch(module_function, 1, 1, 0, 0, &mut []), 0);
    assert_eq!(launch(kernel, 1, 1, 0, 0, &mut []), 0, "a kernel serves as a function");
    let mut address = 0u64;
    ok!(cuLibraryGetGlobal(&mut address as *mut u64, null_mut::<usize>(), library, c"counter".as_ptr()));
    assert_eq!(download::<u32>(address, 1), [9]);
    ok!(cuLibraryUnload(library));
}

#[test]
fn functions_are_found_by_name_and_version() {
    let find = |name: &CStr, version: i32| {
        let (mut address, mut status) = (null::<c_void>(), 9u32);
        let code = cu!(cuGetProcAddress_v2(
            name.as_ptr(),
            &mut address as *mut _,
            version,
            0u64,
            &mut status as *mut u32
        ));
        (code, address.is_null(), status)
    };
    assert_eq!(find(c"cuMemAlloc", 12_000), (0, false, 0));
    assert_eq!(find(c"cuNothing", 12_000), (0, true, 1));
    assert_eq!(find(c"cuLaunchKernelEx", 11_000), (0, true, 2));
    assert_eq!(find(c"cuMemAlloc", 99_000).0, code::INVALID_VALUE);
}
