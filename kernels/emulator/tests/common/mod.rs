//! Calls the driver as a C program does: by name, through the dynamic loader.

#![allow(
    dead_code,
    unused_macros,
    unused_imports,
    missing_docs,
    reason = "each test program uses a part of this"
)]

pub(crate) mod random;

use std::{
    env,
    path::{Path, PathBuf},
    sync::LazyLock,
};

/// What functions of the driver return, by the number.
pub(crate) mod code {
    pub(crate) const SUCCESS: u32 = 0;
    pub(crate) const INVALID_VALUE: u32 = 1;
    pub(crate) const OUT_OF_MEMORY: u32 = 2;
    pub(crate) const NOT_INITIALIZED: u32 = 3;
    pub(crate) const NO_DEVICE: u32 = 100;
    pub(crate) const INVALID_DEVICE: u32 = 101;
    pub(crate) const INVALID_IMAGE: u32 = 200;
    pub(crate) const INVALID_CONTEXT: u32 = 201;
    pub(crate) const NO_BINARY_FOR_GPU: u32 = 209;
    pub(crate) const UNSUPPORTED_LIMIT: u32 = 215;
    pub(crate) const INVALID_PTX: u32 = 218;
    pub(crate) const UNSUPPORTED_PTX_VERSION: u32 = 222;
    pub(crate) const FILE_NOT_FOUND: u32 = 301;
    pub(crate) const INVALID_HANDLE: u32 = 400;
    pub(crate) const ILLEGAL_STATE: u32 = 401;
    pub(crate) const NOT_FOUND: u32 = 500;
    pub(crate) const NOT_READY: u32 = 600;
    pub(crate) const ILLEGAL_ADDRESS: u32 = 700;
    pub(crate) const LAUNCH_TIMEOUT: u32 = 702;
    pub(crate) const PEER_ACCESS_ALREADY_ENABLED: u32 = 704;
    pub(crate) const PEER_ACCESS_NOT_ENABLED: u32 = 705;
    pub(crate) const CONTEXT_IS_DESTROYED: u32 = 709;
    pub(crate) const HOST_MEMORY_ALREADY_REGISTERED: u32 = 712;
    pub(crate) const HOST_MEMORY_NOT_REGISTERED: u32 = 713;
    pub(crate) const MISALIGNED_ADDRESS: u32 = 716;
    pub(crate) const LAUNCH_FAILED: u32 = 719;
    pub(crate) const COOPERATIVE_LAUNCH_TOO_LARGE: u32 = 720;
    pub(crate) const NOT_PERMITTED: u32 = 800;
    pub(crate) const NOT_SUPPORTED: u32 = 801;
    pub(crate) const STREAM_CAPTURE_UNSUPPORTED: u32 = 900;
    pub(crate) const STREAM_CAPTURE_INVALIDATED: u32 = 901;
    pub(crate) const STREAM_CAPTURE_UNMATCHED: u32 = 903;
    pub(crate) const STREAM_CAPTURE_UNJOINED: u32 = 904;
    pub(crate) const STREAM_CAPTURE_ISOLATION: u32 = 905;
    pub(crate) const STREAM_CAPTURE_IMPLICIT: u32 = 906;
    pub(crate) const CAPTURED_EVENT: u32 = 907;
}

/// The emulated driver, which Cargo puts beside the test programs.
pub(crate) fn emulated_driver() -> PathBuf {
    let program = env::current_exe().expect("a running program has a path");
    let path = program.parent().unwrap_or(Path::new(".")).join("libemulator.so");
    assert!(path.is_file(), "{} was built with this test", path.display());
    path
}

/// The driver under test: the emulated one, or what `CUDA_DRIVER` names, to see whether a GPU's does the same.
pub(crate) static DRIVER: LazyLock<libloading::Library> = LazyLock::new(|| {
    // SAFETY: The driver is loaded before any test calls it, and no test reads the environment.
    unsafe { env::set_var("EMULATED_GPU_DEVICES", "2") };
    let path = env::var_os("CUDA_DRIVER").map_or_else(emulated_driver, PathBuf::from);
    // SAFETY: A CUDA driver may be loaded at any time.
    unsafe { libloading::Library::new(&path) }.unwrap_or_else(|error| panic!("{}: {error}", path.display()))
});

/// Calls a function of the driver with arguments of exactly its types.
macro_rules! cu {
    ($name:ident($($argument:expr),* $(,)?)) => {{
        // SAFETY: Every call in these tests passes what cuda.h declares.
        unsafe {
            let function = $crate::common::DRIVER
                .get::<unsafe extern "C" fn($($crate::common::any!($argument)),*) -> u32>(stringify!($name).as_bytes())
                .expect(stringify!($name));
            function($($argument),*)
        }
    }};
}
pub(crate) use cu;

/// A type that is inferred, for each argument.
macro_rules! any {
    ($argument:expr) => {
        _
    };
}
pub(crate) use any;

/// Calls a function of the driver that must succeed.
macro_rules! ok {
    ($name:ident($($argument:expr),* $(,)?)) => {
        assert_eq!($crate::common::cu!($name($($argument),*)), 0, stringify!($name))
    };
}
pub(crate) use ok;

/// A context of one's own, current in this thread, which goes with the value.
pub(crate) struct Context(pub(crate) usize);

impl Context {
    /// Makes one on device 0.
    pub(crate) fn new() -> Context {
        Context::on(0)
    }

    /// Makes one on a device.
    pub(crate) fn on(device: i32) -> Context {
        ok!(cuInit(0u32));
        let mut context = 0usize;
        ok!(cuCtxCreate_v2(&mut context as *mut usize, 0u32, device));
        Context(context)
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        cu!(cuCtxDestroy_v2(self.0));
    }
}

/// Allocates device memory.
pub(crate) fn alloc(bytes: usize) -> u64 {
    let mut address = 0u64;
    ok!(cuMemAlloc_v2(&mut address as *mut u64, bytes));
    address
}

/// Copies to a device.
pub(crate) fn upload<T: Copy>(address: u64, values: &[T]) {
    ok!(cuMemcpyHtoD_v2(address, values.as_ptr(), size_of_val(values)));
}

/// Copies from a device.
pub(crate) fn download<T: Copy + Default>(address: u64, count: usize) -> Vec<T> {
    let mut values = vec![T::default(); count];
    ok!(cuMemcpyDtoH_v2(values.as_mut_ptr(), address, count * size_of::<T>()));
    values
}

/// Loads PTX.
pub(crate) fn load(ptx: &str) -> usize {
    let text = std::ffi::CString::new(ptx).expect("PTX has no zero byte");
    let mut module = 0usize;
    ok!(cuModuleLoadData(&mut module as *mut usize, text.as_ptr()));
    module
}

/// What loading an image came to.
pub(crate) struct Loaded {
    /// The driver's answer.
    pub(crate) code: u32,
    pub(crate) module: usize,
    /// The error log, and how many bytes the driver says that it has.
    pub(crate) log: String,
    pub(crate) written: usize,
}

/// Loads an image, text with a zero byte at its end for example, at a level of the driver's optimiser.
pub(crate) fn try_load(image: &[u8], level: Option<usize>) -> Loaded {
    const ERROR_LOG: u32 = 5;
    const ERROR_LOG_BYTES: u32 = 6;
    const OPTIMIZATION_LEVEL: u32 = 7;
    let number = std::ptr::without_provenance_mut::<u8>;
    let mut log = vec![0u8; 8192];
    let mut options = vec![ERROR_LOG, ERROR_LOG_BYTES];
    let mut values = vec![log.as_mut_ptr(), number(log.len())];
    if let Some(level) = level {
        options.push(OPTIMIZATION_LEVEL);
        values.push(number(level));
    }
    let mut module = 0usize;
    let code = cu!(cuModuleLoadDataEx(
        &mut module as *mut usize,
        image.as_ptr(),
        options.len() as u32,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
    ));
    let text = std::ffi::CStr::from_bytes_until_nul(&log).expect("the log ends with a zero byte");
    let log = text.to_str().expect("the log is text").to_owned();
    Loaded { code, module, log, written: values[1].addr() }
}

/// Finds a kernel.
pub(crate) fn function(module: usize, name: &std::ffi::CStr) -> usize {
    let mut function = 0usize;
    ok!(cuModuleGetFunction(&mut function as *mut usize, module, name.as_ptr()));
    function
}

/// Launches a kernel in one dimension and answers what the driver answers.
pub(crate) fn launch(
    function: usize,
    grid: u32,
    block: u32,
    shared: u32,
    stream: usize,
    params: &mut [*mut u8],
) -> u32 {
    let extra = std::ptr::null_mut::<*mut u8>();
    cu!(cuLaunchKernel(
        function,
        grid,
        1u32,
        1u32,
        block,
        1u32,
        1u32,
        shared,
        stream,
        params.as_mut_ptr(),
        extra,
    ))
}

/// A pointer to a parameter.
pub(crate) fn param<T>(value: &mut T) -> *mut u8 {
    std::ptr::from_mut(value).cast()
}

/// Kernels for these tests: PTX of CUDA 11 for the oldest card that any model stands for.
pub(crate) const KERNELS: &str = include_str!("kernels.ptx");
