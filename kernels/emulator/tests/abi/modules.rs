//! Modules and libraries.

use std::{
    ffi::{CStr, c_void},
    ptr::{null, null_mut},
};

use crate::common::{Context, KERNELS, code, cu, download, function, launch, load, ok, try_load};

#[test]
fn modules_are_refused_with_a_reason() {
    let _context = Context::new();
    let check = |text: &CStr, expected: u32, word: &str| {
        let loaded = try_load(text.to_bytes_with_nul(), None);
        assert_eq!(loaded.code, expected, "{text:?}");
        assert!(loaded.log.contains(word), "{}", loaded.log);
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
