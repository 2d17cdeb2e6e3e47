//! Devices, contexts, limits, and how functions are found.

use std::{
    ffi::{CStr, c_char, c_void},
    ptr::{null, null_mut},
};

use crate::common::{Context, code, cu, ok};

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
