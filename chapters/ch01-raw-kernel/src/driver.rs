//! The driver API, spoken raw: one small function a step, every return code checked.
//!
//! `cudarc::driver::sys` is the C header `cuda.h`, name for name; look any of these functions up in
//! NVIDIA's CUDA Driver API manual. What is added here is the least that makes them pleasant:
//! [`check`], and types that free what they own.

use std::ffi::{CStr, c_void};
use std::marker::PhantomData;
use std::{fmt, ptr, slice};

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdeviceptr, CUfunction, CUmodule, CUresult, CUstream,
};

// ANCHOR: check
/// A driver call that did not return `CUDA_SUCCESS`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DriverError {
    /// The call, such as `cuMemAlloc`.
    pub call: &'static str,
    /// What it returned.
    pub code: CUresult,
}

/// Turns the driver's return code into a `Result`: no call of this chapter goes unchecked.
pub fn check(call: &'static str, code: CUresult) -> Result<(), DriverError> {
    match code {
        CUresult::CUDA_SUCCESS => Ok(()),
        code => Err(DriverError { call, code }),
    }
}

impl fmt::Display for DriverError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut description = ptr::null();
        // SAFETY: the driver writes a pointer to a static string, or leaves the null pointer for an
        // unknown code.
        let description = unsafe {
            let _ = sys::cuGetErrorString(self.code, &mut description);
            if description.is_null() { c"unknown error" } else { CStr::from_ptr(description) }
        };
        let number = self.code as u32;
        write!(
            f,
            "{} returned {:?} ({number}): {}",
            self.call,
            self.code,
            description.to_string_lossy()
        )
    }
}
// ANCHOR_END: check

impl std::error::Error for DriverError {}

// ANCHOR: context
/// The first GPU, made current on this thread. Everything below happens in its *primary context*:
/// the state that the driver keeps for one process on one device, such as its memory and its loaded
/// code.
pub struct PrimaryContext {
    device: CUdevice,
    /// A context is current on the thread that set it, so the owner stays there.
    on_this_thread: PhantomData<CUcontext>,
}

impl PrimaryContext {
    /// Initialises the driver and takes device 0.
    pub fn open() -> Result<Self, DriverError> {
        let mut device = 0;
        let mut context = ptr::null_mut();
        // SAFETY: the flags must be 0, and are.
        check("cuInit", unsafe { sys::cuInit(0) })?;
        // SAFETY: `device` outlives the call, which writes to it.
        check("cuDeviceGet", unsafe { sys::cuDeviceGet(&mut device, 0) })?;
        // SAFETY: `context` outlives the call, and `device` came from cuDeviceGet.
        check("cuDevicePrimaryCtxRetain", unsafe {
            sys::cuDevicePrimaryCtxRetain(&mut context, device)
        })?;
        let this = Self { device, on_this_thread: PhantomData };
        // SAFETY: the context was retained in the line above and is released only when `this`
        // drops.
        check("cuCtxSetCurrent", unsafe { sys::cuCtxSetCurrent(context) })?;
        Ok(this)
    }

    /// Waits until the device has done all that it was given.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: a context is current on this thread while `self` lives.
        check("cuCtxSynchronize", unsafe { sys::cuCtxSynchronize() })
    }
}

impl Drop for PrimaryContext {
    fn drop(&mut self) {
        // SAFETY: the device was retained once in `open`.
        let _ = unsafe { sys::cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}
// ANCHOR_END: context

impl PrimaryContext {
    /// A number that the device tells about itself.
    pub fn attribute(&self, attribute: sys::CUdevice_attribute) -> Result<usize, DriverError> {
        let mut number = 0;
        // SAFETY: `number` outlives the call, which writes to it.
        let code = unsafe { sys::cuDeviceGetAttribute(&mut number, attribute, self.device) };
        check("cuDeviceGetAttribute", code)?;
        Ok(usize::try_from(number).unwrap_or(0))
    }

    /// Bytes of device memory that are free now.
    pub fn free_memory(&self) -> Result<usize, DriverError> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both numbers outlive the call, which writes to them.
        check("cuMemGetInfo", unsafe { sys::cuMemGetInfo_v2(&mut free, &mut total) })?;
        Ok(free)
    }
}

// ANCHOR: allocate
/// Floats on the device. The pointer means something to the device alone: the CPU cannot read
/// through it.
pub struct DeviceMemory {
    pointer: CUdeviceptr,
    len: usize,
}

impl DeviceMemory {
    /// Step 1: allocates `len` floats on the device, with whatever was there before in them.
    pub fn allocate(len: usize) -> Result<Self, DriverError> {
        let mut pointer = 0;
        // SAFETY: `pointer` outlives the call, which writes to it.
        let code = unsafe { sys::cuMemAlloc_v2(&mut pointer, (len * size_of::<f32>()).max(1)) };
        check("cuMemAlloc", code)?;
        Ok(Self { pointer, len })
    }
}

impl Drop for DeviceMemory {
    fn drop(&mut self) {
        // SAFETY: the pointer came from cuMemAlloc and is freed only here.
        let _ = unsafe { sys::cuMemFree_v2(self.pointer) };
    }
}
// ANCHOR_END: allocate

impl DeviceMemory {
    /// Step 2: copies `host` to the start of this memory, and returns when `host` may be changed
    /// again.
    // ANCHOR: copy_in
    pub fn copy_from(&self, host: &[f32]) -> Result<(), DriverError> {
        assert!(host.len() <= self.len, "{} floats do not fit into {}", host.len(), self.len);
        // SAFETY: both sides hold at least `host.len()` floats, the line above checked it.
        let code =
            unsafe { sys::cuMemcpyHtoD_v2(self.pointer, host.as_ptr().cast(), size_of_val(host)) };
        check("cuMemcpyHtoD", code)
    }
    // ANCHOR_END: copy_in

    /// Step 4: waits for the kernels before it, then copies the start of this memory over all of
    /// `host`.
    // ANCHOR: copy_out
    pub fn copy_to(&self, host: &mut [f32]) -> Result<(), DriverError> {
        assert!(host.len() <= self.len, "{} floats are not in {}", host.len(), self.len);
        // SAFETY: both sides hold at least `host.len()` floats, the line above checked it.
        let code = unsafe {
            sys::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), self.pointer, size_of_val(host))
        };
        check("cuMemcpyDtoH", code)
    }
    // ANCHOR_END: copy_out

    /// Copies elements from `start` on over all of `host`.
    pub fn copy_range_to(&self, start: usize, host: &mut [f32]) -> Result<(), DriverError> {
        assert!(
            start + host.len() <= self.len,
            "{} floats from {start} on are not in {}",
            host.len(),
            self.len
        );
        // SAFETY: both sides hold that many floats, the line above checked it.
        let code = unsafe {
            sys::cuMemcpyDtoH_v2(host.as_mut_ptr().cast(), self.at(start), size_of_val(host))
        };
        check("cuMemcpyDtoH", code)
    }

    /// Fills the memory with repetitions of `pattern`, each copy on the device twice as long as the
    /// one before.
    pub fn fill(&self, pattern: &[f32]) -> Result<(), DriverError> {
        let mut filled = pattern.len().min(self.len);
        self.copy_from(&pattern[..filled])?;
        while filled < self.len {
            let more = filled.min(self.len - filled);
            // SAFETY: `filled + more <= len`, and the two ranges do not overlap because `more <=
            // filled`.
            let code = unsafe {
                sys::cuMemcpyDtoD_v2(self.at(filled), self.pointer, more * size_of::<f32>())
            };
            check("cuMemcpyDtoD", code)?;
            filled += more;
        }
        Ok(())
    }

    // ANCHOR: copy_async
    /// Enqueues the copy of `len` floats from pinned memory, and returns at once. `host` must not
    /// change until the stream has come past the copy.
    pub fn copy_from_async(
        &self,
        host: &PinnedMemory,
        len: usize,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        assert!(len <= self.len.min(host.len), "{len} floats do not fit");
        let bytes = len * size_of::<f32>();
        // SAFETY: both sides hold at least `len` floats, the line above checked it; pinned memory
        // does not move.
        let code = unsafe {
            sys::cuMemcpyHtoDAsync_v2(self.pointer, host.pointer.cast(), bytes, stream.raw())
        };
        check("cuMemcpyHtoDAsync", code)
    }
    // ANCHOR_END: copy_async

    /// Enqueues the copy of `len` floats to pinned memory, and returns at once. `host` holds them
    /// when the stream has come past the copy.
    pub fn copy_to_async(
        &self,
        host: &mut PinnedMemory,
        len: usize,
        stream: &Stream,
    ) -> Result<(), DriverError> {
        assert!(len <= self.len.min(host.len), "{len} floats do not fit");
        let bytes = len * size_of::<f32>();
        // SAFETY: both sides hold at least `len` floats, the line above checked it; pinned memory
        // does not move.
        let code = unsafe {
            sys::cuMemcpyDtoHAsync_v2(host.pointer.cast(), self.pointer, bytes, stream.raw())
        };
        check("cuMemcpyDtoHAsync", code)
    }

    /// The device address of an element.
    pub fn at(&self, index: usize) -> CUdeviceptr {
        self.pointer + (index * size_of::<f32>()) as CUdeviceptr
    }
}

/// *Pinned* host memory: pages that the operating system may not move or swap out, so that the
/// device's copy engine can read and write them itself while the CPU does something else.
// ANCHOR: pinned
pub struct PinnedMemory {
    pointer: *mut f32,
    len: usize,
}

impl PinnedMemory {
    /// Allocates `len` floats of pinned host memory, all zero.
    pub fn allocate(len: usize) -> Result<Self, DriverError> {
        let mut pointer = ptr::null_mut();
        // SAFETY: `pointer` outlives the call, which writes to it.
        let code = unsafe { sys::cuMemHostAlloc(&mut pointer, (len * size_of::<f32>()).max(1), 0) };
        check("cuMemHostAlloc", code)?;
        // SAFETY: the driver gave `len` floats; zero bytes are the float 0.0.
        unsafe { ptr::write_bytes(pointer.cast::<f32>(), 0, len) };
        Ok(Self { pointer: pointer.cast(), len })
    }
}
// ANCHOR_END: pinned

impl PinnedMemory {
    /// The floats.
    pub fn as_slice(&self) -> &[f32] {
        // SAFETY: the memory holds `len` initialised floats and lives as long as `self`.
        unsafe { slice::from_raw_parts(self.pointer, self.len) }
    }

    /// The floats, to write to.
    pub fn as_mut_slice(&mut self) -> &mut [f32] {
        // SAFETY: as above, and `self` is borrowed for writing.
        unsafe { slice::from_raw_parts_mut(self.pointer, self.len) }
    }
}

impl Drop for PinnedMemory {
    fn drop(&mut self) {
        // SAFETY: the pointer came from cuMemHostAlloc and is freed only here.
        let _ = unsafe { sys::cuMemFreeHost(self.pointer.cast()) };
    }
}

// ANCHOR: load
/// A kernel, and the module that holds its code.
pub struct Kernel {
    module: CUmodule,
    function: CUfunction,
}

impl Kernel {
    /// Hands PTX, the portable assembly of NVIDIA's GPUs, to the driver, which compiles it for this
    /// GPU, and looks up a kernel by its name.
    pub fn load(ptx: &CStr, name: &CStr) -> Result<Self, DriverError> {
        let mut module = ptr::null_mut();
        // SAFETY: `ptx` ends in a zero byte, by which the driver knows its length.
        check("cuModuleLoadData", unsafe {
            sys::cuModuleLoadData(&mut module, ptx.as_ptr().cast())
        })?;
        let mut kernel = Self { module, function: ptr::null_mut() };
        // SAFETY: the module was loaded in the lines above; `name` ends in a zero byte.
        let code =
            unsafe { sys::cuModuleGetFunction(&mut kernel.function, kernel.module, name.as_ptr()) };
        check("cuModuleGetFunction", code)?;
        Ok(kernel)
    }
}
// ANCHOR_END: load

impl Drop for Kernel {
    fn drop(&mut self) {
        // SAFETY: the module came from cuModuleLoadData and is unloaded only here.
        let _ = unsafe { sys::cuModuleUnload(self.module) };
    }
}

/// How many threads a launch starts: `blocks` blocks of `threads` threads each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Blocks in the grid.
    pub blocks: u32,
    /// Threads in a block.
    pub threads: u32,
}

impl Kernel {
    /// Step 3: starts the kernel on `stream`, a queue of work for the device, and returns without
    /// waiting for it.
    ///
    /// # Safety
    /// `arguments` points to the kernel's parameters, each of the type and in the place that the
    /// kernel declares, and every device pointer among them leads to as many elements as the kernel
    /// will touch. Nothing checks this: not the compiler, not the driver.
    // ANCHOR: launch
    pub unsafe fn launch(
        &self,
        shape: Shape,
        stream: &Stream,
        arguments: &mut [*mut c_void],
    ) -> Result<(), DriverError> {
        let Shape { blocks, threads } = shape;
        let shared_memory_bytes = 0;
        let (parameters, extra) = (arguments.as_mut_ptr(), ptr::null_mut());
        // SAFETY: the caller answers for the arguments; the driver copies them before it returns.
        let code = unsafe {
            sys::cuLaunchKernel(
                self.function,
                blocks,
                1,
                1,
                threads,
                1,
                1,
                shared_memory_bytes,
                stream.0,
                parameters,
                extra,
            )
        };
        check("cuLaunchKernel", code)
    }
    // ANCHOR_END: launch
}

/// A queue of work for the device.
pub struct Stream(CUstream);

impl Stream {
    /// The default stream, which every program has.
    pub fn null() -> Self {
        Self(ptr::null_mut())
    }

    /// A stream of our own, which does not wait for the default one.
    pub fn new() -> Result<Self, DriverError> {
        let mut stream = ptr::null_mut();
        let flags = sys::CUstream_flags::CU_STREAM_NON_BLOCKING as u32;
        // SAFETY: `stream` outlives the call, which writes to it.
        check("cuStreamCreate", unsafe { sys::cuStreamCreate(&mut stream, flags) })?;
        Ok(Self(stream))
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.0
    }

    /// Waits until everything in the stream is done.
    pub fn synchronize(&self) -> Result<(), DriverError> {
        // SAFETY: the stream lives as long as `self`.
        check("cuStreamSynchronize", unsafe { sys::cuStreamSynchronize(self.0) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if !self.0.is_null() {
            // SAFETY: the stream came from cuStreamCreate and is destroyed only here.
            let _ = unsafe { sys::cuStreamDestroy_v2(self.0) };
        }
    }
}
