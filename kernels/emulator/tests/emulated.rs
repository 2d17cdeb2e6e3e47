//! What only the emulated driver answers: its name, what it does not have, how it reports, and two cards on any machine.

mod common;

use std::{
    ffi::{CStr, CString, c_char, c_void},
    ptr::{null, null_mut},
    sync::mpsc,
};

use common::{
    Context, KERNELS, alloc, code, cu, download, function, launch, load, ok, param, try_load, upload,
};

#[test]
fn it_says_that_it_is_emulated() {
    ok!(cuInit(0u32));
    let mut name = [0 as c_char; 100];
    ok!(cuDeviceGetName(name.as_mut_ptr(), 100i32, 1i32));
    // SAFETY: The driver ends the name with a zero.
    assert_eq!(unsafe { CStr::from_ptr(name.as_ptr()) }.to_str(), Ok("Emulated NVIDIA H200"));
    let (mut first, mut second) = ([0u8; 16], [0u8; 16]);
    ok!(cuDeviceGetUuid_v2(&mut first as *mut [u8; 16], 0i32));
    ok!(cuDeviceGetUuid_v2(&mut second as *mut [u8; 16], 1i32));
    assert!(first.starts_with(b"emulated-gpu") && first != second);
    let (mut count, mut version) = (0i32, 0i32);
    ok!(cuDeviceGetCount(&mut count as *mut i32));
    ok!(cuDriverGetVersion(&mut version as *mut i32));
    assert_eq!((count, version), (2, 13_000));
}

#[test]
fn what_it_does_not_have_is_neither_promised_nor_there() {
    let _context = Context::new();
    assert_eq!(cu!(cuArrayCreate_v2(null_mut::<usize>(), null::<u8>())), code::NOT_SUPPORTED);
    assert_eq!(cu!(cuIpcGetMemHandle(null_mut::<u8>(), 0u64)), code::NOT_SUPPORTED);
    assert_eq!(cu!(cuGetExportTable(null_mut::<*const u8>(), null::<u8>())), code::NOT_SUPPORTED);
    // Virtual memory management, interprocess events, clusters, multicast, tensor maps.
    for number in [102u32, 125, 120, 132, 127] {
        let mut value = -1i32;
        ok!(cuDeviceGetAttribute(&mut value as *mut i32, number, 0i32));
        assert_eq!(value, 0, "attribute {number}");
    }
}

/// What loading an image answers, with its error log.
fn refusal(image: &[u8]) -> (u32, String) {
    let loaded = try_load(image, None);
    assert_eq!(loaded.written, loaded.log.len() + 1);
    (loaded.code, loaded.log)
}

#[test]
fn its_own_limits_are_not_the_programs_errors() {
    let _context = Context::new();
    let (answer, log) = refusal(b"\x7fELF\0\0\0\0");
    assert_eq!(answer, code::NO_BINARY_FOR_GPU);
    assert!(log.contains("executes PTX") && log.contains("nvcc"), "{log}");

    let (answer, log) = refusal(
        b".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n{\n\
          \twgmma.fence.sync.aligned;\n\tret;\n}\n\0",
    );
    assert_eq!(answer, code::NOT_SUPPORTED);
    assert!(log.contains("wgmma") && log.contains('6'), "{log}");

    let (answer, log) = refusal(
        b".version 8.6\n.target sm_90\n.address_size 64\n.visible .entry k()\n.explicitcluster\n\
          .reqnctapercluster 1, 2, 1\n{\n\tret;\n}\n\0",
    );
    assert_eq!(answer, code::NOT_SUPPORTED);
    assert!(log.contains(".reqnctapercluster") && log.contains('k'), "{log}");

    let (answer, log) = refusal(b".version 8.6\n.target sm_120\n.address_size 64\n\0");
    assert_eq!(answer, code::INVALID_PTX);
    assert!(log.contains("sm_120") && log.contains("sm_90"), "{log}");

    let (answer, log) = refusal(b".version 9.9\n.target sm_75\n.address_size 64\n\0");
    assert_eq!(answer, code::UNSUPPORTED_PTX_VERSION);
    assert!(log.contains("9.9") && log.contains("older CUDA"), "{log}");

    assert_eq!(refusal(b"#include <stdio.h>\n\0").0, code::INVALID_IMAGE);
}

#[test]
fn wild_pointers_and_handles_are_refused() {
    let _context = Context::new();
    let (nowhere, mut address) = (0x7fff_ffff_f000usize, 0u64);
    ok!(cuMemAlloc_v2(&mut address as *mut u64, 4096usize));
    assert_eq!(cu!(cuMemAlloc_v2(nowhere, 4usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemcpyHtoD_v2(address, nowhere, 4096usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemcpyDtoH_v2(nowhere, address, 4096usize)), code::INVALID_VALUE);
    static CONSTANT: [u8; 64] = [7; 64];
    assert_eq!(
        cu!(cuMemcpyDtoH_v2(CONSTANT.as_ptr(), address, 64usize)),
        code::INVALID_VALUE,
        "it is read-only"
    );
    assert_eq!(cu!(cuModuleLoadData(&mut address as *mut u64, nowhere)), code::INVALID_VALUE);
    let (mut image, mut bytes) = (0usize, 0usize);
    assert_eq!(
        cu!(cuLinkComplete(0usize, &mut image as *mut usize, &mut bytes as *mut usize)),
        code::INVALID_HANDLE
    );
    assert_eq!(cu!(cuGraphLaunch(address as usize, 0usize)), code::INVALID_VALUE);
}

#[test]
fn a_primary_context_is_new_after_a_reset() {
    ok!(cuInit(0u32));
    let state = || {
        let (mut flags, mut active) = (9u32, 9i32);
        ok!(cuDevicePrimaryCtxGetState(1i32, &mut flags as *mut u32, &mut active as *mut i32));
        (flags, active)
    };
    assert_eq!(state(), (0, 0));
    assert_eq!(cu!(cuDevicePrimaryCtxRelease_v2(1i32)), code::INVALID_CONTEXT);
    ok!(cuDevicePrimaryCtxSetFlags_v2(1i32, 4u32));
    let (mut context, mut again) = (0usize, 0usize);
    ok!(cuDevicePrimaryCtxRetain(&mut context as *mut usize, 1i32));
    ok!(cuDevicePrimaryCtxRetain(&mut again as *mut usize, 1i32));
    assert_eq!((context, state()), (again, (4, 1)));
    ok!(cuCtxSetCurrent(context));

    let module = load(KERNELS);
    assert_eq!(launch(function(module, c"stops"), 1, 1, 0, 0, &mut []), 0);
    assert_eq!(cu!(cuCtxSynchronize()), code::LAUNCH_FAILED);
    assert_eq!(cu!(cuModuleUnload(module)), code::LAUNCH_FAILED);
    ok!(cuDevicePrimaryCtxReset_v2(1i32));
    assert_eq!(state(), (4, 0));
    assert_eq!(cu!(cuCtxSynchronize()), code::CONTEXT_IS_DESTROYED);

    ok!(cuDevicePrimaryCtxRetain(&mut context as *mut usize, 1i32));
    ok!(cuCtxSetCurrent(context));
    ok!(cuCtxSynchronize());
    assert_eq!(cu!(cuModuleUnload(module)), code::INVALID_HANDLE, "it went with the old context");
    ok!(cuMemFree_v2(alloc(4)));
    for _ in 0..3 {
        ok!(cuDevicePrimaryCtxRelease_v2(1i32));
    }
    assert_eq!(state().1, 0);
    ok!(cuCtxSetCurrent(0usize));
}

#[test]
fn two_cards_share_addresses_and_copy_to_each_other() {
    let first = Context::on(0);
    let a = alloc(16);
    upload(a, &[1u32, 2, 3, 4]);
    let second = Context::on(1);
    let b = alloc(16);
    ok!(cuMemcpyPeer(b, second.0, a, first.0, 16usize));
    assert_eq!(download::<u32>(b, 4), [1, 2, 3, 4]);
    ok!(cuMemcpyDtoD_v2(b, a + 8, 8usize));
    assert_eq!(download::<u32>(b, 4), [3, 4, 3, 4]);
    let device_of = |address: u64| {
        let mut device = -1i32;
        ok!(cuPointerGetAttribute(&mut device as *mut i32, 9u32, address));
        device
    };
    assert_eq!((device_of(a), device_of(b)), (0, 1));

    let mut can = 9i32;
    ok!(cuDeviceCanAccessPeer(&mut can as *mut i32, 0i32, 1i32));
    assert_eq!(can, 1);
    ok!(cuDeviceCanAccessPeer(&mut can as *mut i32, 1i32, 1i32));
    assert_eq!(can, 0);
    assert_eq!(cu!(cuCtxEnablePeerAccess(second.0, 0u32)), code::INVALID_DEVICE);
    ok!(cuCtxEnablePeerAccess(first.0, 0u32));
    assert_eq!(cu!(cuCtxEnablePeerAccess(first.0, 0u32)), code::PEER_ACCESS_ALREADY_ENABLED);

    // A kernel of the second card writes to the memory of the first, and to the host's.
    let module = load(KERNELS);
    let fill = function(module, c"fill");
    let (mut out, mut n, mut value) = (a, 2u32, 9u32);
    assert_eq!(launch(fill, 1, 32, 0, 0, &mut [param(&mut out), param(&mut n), param(&mut value)]), 0);
    ok!(cuCtxSynchronize());
    assert_eq!(download::<u32>(a, 4), [9, 9, 3, 4]);
    ok!(cuCtxPopCurrent_v2(null_mut::<usize>()));
    let mut pinned = null_mut::<u32>();
    ok!(cuMemAllocHost_v2(&mut pinned as *mut *mut u32, 8usize));
    ok!(cuCtxPushCurrent_v2(second.0));
    let mut out = pinned as u64;
    assert_eq!(launch(fill, 1, 32, 0, 0, &mut [param(&mut out), param(&mut n), param(&mut value)]), 0);
    ok!(cuCtxSynchronize());
    // SAFETY: The driver allocated 8 bytes.
    assert_eq!(unsafe { [pinned.read(), pinned.add(1).read()] }, [9, 9]);
    ok!(cuMemFreeHost(pinned));

    ok!(cuCtxDisablePeerAccess(first.0));
    assert_eq!(cu!(cuCtxDisablePeerAccess(first.0)), code::PEER_ACCESS_NOT_ENABLED);
    let mut out = a;
    assert_eq!(launch(fill, 1, 32, 0, 0, &mut [param(&mut out), param(&mut n), param(&mut value)]), 0);
    assert_eq!(cu!(cuCtxSynchronize()), code::ILLEGAL_ADDRESS, "peer access has ended");
}

#[test]
fn a_host_function_may_wait_for_what_the_program_does_next() {
    extern "C" fn wait(receiver: *mut c_void) {
        // SAFETY: The test keeps the receiver until the stream is done.
        let receiver = unsafe { &*receiver.cast::<mpsc::Receiver<()>>() };
        receiver.recv().expect("the test sends");
    }
    let _context = Context::new();
    let (sender, mut receiver) = mpsc::channel::<()>();
    ok!(cuLaunchHostFunc(0usize, wait as extern "C" fn(_), (&raw mut receiver).cast::<c_void>()));
    assert_eq!(cu!(cuStreamQuery(0usize)), code::NOT_READY);
    sender.send(()).expect("the receiver is there");
    ok!(cuStreamSynchronize(0usize));
    ok!(cuStreamQuery(0usize));
}

#[test]
fn memory_beyond_its_allocation_is_refused() {
    let _context = Context::new();
    let a = alloc(16);
    assert_eq!(cu!(cuMemcpyHtoD_v2(a, [0u8; 17].as_ptr(), 17usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemsetD8_v2(a + 1, 0u8, 16usize)), code::INVALID_VALUE);
    assert_eq!(cu!(cuMemcpyDtoD_v2(a, a + 8, 9usize)), code::INVALID_VALUE);
    ok!(cuMemFree_v2(a));
    assert_eq!(cu!(cuMemcpyDtoH_v2([0u8; 4].as_mut_ptr(), a, 4usize)), code::INVALID_VALUE);
}

#[test]
fn memory_goes_with_its_context() {
    let context = Context::new();
    let (mut before, mut total, mut after) = (0usize, 0usize, 0usize);
    let a = alloc(1 << 20);
    ok!(cuMemGetInfo_v2(&mut before as *mut usize, &mut total as *mut usize));
    assert!(before > 0 && total > 1 << 30);
    drop(context);
    let _context = Context::new();
    assert_eq!(cu!(cuMemFree_v2(a)), code::INVALID_VALUE);
    ok!(cuMemGetInfo_v2(&mut after as *mut usize, &mut total as *mut usize));
}

#[test]
fn captured_allocations_belong_to_the_graph() {
    let _context = Context::new();
    let (mut stream, mut graph, mut exec, mut address) = (0usize, 0usize, 0usize, 0u64);
    ok!(cuStreamCreate(&mut stream as *mut usize, 1u32));
    let mut back = [0u32; 4];
    ok!(cuStreamBeginCapture_v2(stream, 2u32));
    ok!(cuMemAllocAsync(&mut address as *mut u64, 16usize, stream));
    ok!(cuMemsetD32Async(address, 6u32, 4usize, stream));
    ok!(cuMemcpyDtoHAsync_v2(back.as_mut_ptr(), address, 16usize, stream));
    ok!(cuMemFreeAsync(address, stream));
    ok!(cuStreamEndCapture(stream, &mut graph as *mut usize));
    ok!(cuGraphInstantiateWithFlags(&mut exec as *mut usize, graph, 0u64));
    ok!(cuGraphDestroy(graph));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuGraphLaunch(exec, stream));
    ok!(cuStreamSynchronize(stream));
    assert_eq!(back, [6; 4]);
    ok!(cuGraphExecDestroy(exec));
    assert_eq!(cu!(cuMemFree_v2(address)), code::INVALID_VALUE);
}

#[test]
fn the_linker_takes_ptx() {
    let _context = Context::new();
    let text = CString::new(KERNELS).expect("PTX has no zero byte");
    let (mut link, mut image, mut bytes, mut module) = (0usize, null::<c_void>(), 0usize, 0usize);
    let (no_options, no_values) = (null::<u32>(), null::<*mut c_void>());
    ok!(cuLinkCreate_v2(0u32, no_options, no_values, &mut link as *mut usize));
    let size = text.as_bytes_with_nul().len();
    ok!(cuLinkAddData_v2(link, 1u32, text.as_ptr(), size, c"kernels".as_ptr(), 0u32, no_options, no_values));
    ok!(cuLinkComplete(link, &mut image as *mut *const c_void, &mut bytes as *mut usize));
    ok!(cuModuleLoadData(&mut module as *mut usize, image));
    function(module, c"fill");
    ok!(cuLinkDestroy(link));
}
