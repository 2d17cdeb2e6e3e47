//! What every typed handle does: load a kernel, check a launch, hand it to the driver.

use std::ffi::c_void;
use std::sync::{Arc, OnceLock};

use cudarc::driver::sys::{self, CUdevice_attribute, CUdeviceptr};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaStream, DevicePtr, DevicePtrMut, DeviceSlice, DriverError, LaunchConfig,
    SyncOnDrop, result,
};
use cudarc::nvrtc::Ptx;

use crate::error::Error;
use crate::image::{Image, text};

/// Threads in a block, for kernels that take blocks of any size: eight warps. Multiprocessors hold a multiple of it.
pub const BLOCK: u32 = 256;

/// A grid's first dimension has at most this many blocks, on every device.
pub(crate) const MOST_BLOCKS: u32 = i32::MAX as u32;

/// A grid's second and third dimension have at most this many blocks, on every device.
pub(crate) const MOST_ROWS_OF_BLOCKS: u32 = u16::MAX as u32;

/// A loaded kernel.
#[derive(Debug)]
pub struct Handle {
    image: &'static Image,
    context: Arc<CudaContext>,
    function: CudaFunction,
    resident_blocks: OnceLock<u32>,
}

/// The launch shape that a kernel gets unless the caller gives one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    blocks: (u128, u128, u128),
    threads: (u32, u32, u32),
    resident: bool,
    limit: Option<Limit>,
}

/// The largest value of an argument that a kernel is right for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Limit {
    argument: &'static str,
    value: u128,
    most: u128,
}

impl Shape {
    /// At least so many threads, in blocks of [`BLOCK`].
    pub const fn threads(threads: u128) -> Self {
        Self::blocks_of(threads.div_ceil(BLOCK as u128), BLOCK)
    }

    /// So many blocks of one warp.
    pub const fn blocks(blocks: u128) -> Self {
        Self::blocks_of(blocks, 32)
    }

    /// So many blocks of so many threads.
    pub const fn blocks_of(blocks: u128, threads: u32) -> Self {
        Self::volume((blocks, 1, 1), (threads, 1, 1))
    }

    /// A grid in two dimensions: so many blocks along x and y, each of so many threads along x and y.
    pub const fn plane(blocks: (u128, u128), threads: (u32, u32)) -> Self {
        Self::volume((blocks.0, blocks.1, 1), (threads.0, threads.1, 1))
    }

    /// A grid in three dimensions: so many blocks along x, y and z, each of so many threads along x, y and z.
    pub const fn volume(blocks: (u128, u128, u128), threads: (u32, u32, u32)) -> Self {
        Self { blocks, threads, resident: false, limit: None }
    }

    /// The same shape, for a kernel that is right only as long as an argument is at most this large.
    pub const fn limited(self, argument: &'static str, value: u128, most: u128) -> Self {
        Self { limit: Some(Limit { argument, value, most }), ..self }
    }

    /// As [`threads`](Self::threads), but no more blocks than the device holds at once: for kernels that stride.
    pub const fn resident(threads: u128) -> Self {
        Self { resident: true, ..Self::threads(threads) }
    }
}

impl Handle {
    /// Loads a kernel: the driver compiles its PTX for the device.
    ///
    /// # Errors
    /// When the driver refuses it, with what its compiler said.
    pub(crate) fn load(image: &'static Image, context: &Arc<CudaContext>) -> Result<Self, Error> {
        let ptx = image.ptx();
        let function = context
            .load_module(Ptx::from_src(text(ptx)))
            .and_then(|module| module.load_function(text(image.name())))
            .map_err(|source| Error::Load {
                kernel: text(image.name()),
                source,
                log: load_log(context, image),
            })?;
        Ok(Self { image, context: context.clone(), function, resident_blocks: OnceLock::new() })
    }

    /// The kernel's name.
    pub fn name(&self) -> &'static str {
        text(self.image.name())
    }

    /// The driver's handle, for calls that cudarc or this crate do not make.
    pub fn cu_function(&self) -> sys::CUfunction {
        self.function.cu_function()
    }

    /// The kernel as cudarc knows it: for its attributes, its occupancy, or an untyped launch.
    pub fn function(&self) -> &CudaFunction {
        &self.function
    }

    /// The blocks and threads that a shape means on this device.
    pub(crate) fn config(&self, shape: Shape) -> Result<LaunchConfig, Error> {
        if let Some(Limit { argument, value, most }) = shape.limit
            && value > most
        {
            return Err(Error::Limit { kernel: self.name(), argument, value, most });
        }
        let (mut blocks, rows, layers) = shape.blocks;
        let threads = shape.threads.0 * shape.threads.1 * shape.threads.2;
        if shape.resident {
            blocks = blocks.min(self.resident_blocks(threads)?.into());
        }
        let within = |blocks: u128, most: u32| u32::try_from(blocks).ok().filter(|&blocks| blocks <= most);
        let across =
            within(blocks, MOST_BLOCKS).ok_or(Error::Grid { kernel: self.name(), blocks, threads })?;
        let further =
            |rows| within(rows, MOST_ROWS_OF_BLOCKS).ok_or(Error::Rows { kernel: self.name(), rows });
        Ok(LaunchConfig {
            grid_dim: (across, further(rows)?, further(layers)?),
            block_dim: shape.threads,
            shared_mem_bytes: 0,
        })
    }

    /// How many blocks of this kernel the device holds at once.
    fn resident_blocks(&self, threads: u32) -> Result<u32, Error> {
        if let Some(blocks) = self.resident_blocks.get() {
            return Ok(*blocks);
        }
        let ask = || -> Result<u32, DriverError> {
            self.context.bind_to_thread()?;
            let each = self.function.occupancy_max_active_blocks_per_multiprocessor(threads, 0, None)?;
            let multiprocessors =
                self.context.attribute(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
            Ok(each * multiprocessors.unsigned_abs())
        };
        let blocks = ask().map_err(|source| self.refused(source))?;
        Ok(*self.resident_blocks.get_or_init(|| blocks))
    }

    /// An error unless the stream belongs to the kernel's device.
    #[inline]
    pub(crate) fn check_stream(&self, stream: &CudaStream) -> Result<(), Error> {
        self.check_device("stream", stream)
    }

    /// An error unless a slice has the length that the signature states.
    #[inline]
    pub(crate) fn check_length(
        &self,
        argument: &'static str,
        length: usize,
        rule: &'static str,
        expected: u128,
    ) -> Result<(), Error> {
        if length as u128 == expected {
            return Ok(());
        }
        Err(Error::Length { kernel: self.name(), argument, length, rule, expected })
    }

    /// The address of a slice that the kernel reads. The guard, dropped after the launch, tells cudarc that it was read.
    #[inline]
    pub(crate) fn input<'a, T>(
        &self,
        argument: &'static str,
        slice: &'a dyn DevicePtr<T>,
        stream: &'a CudaStream,
        alignment: u64,
    ) -> Result<(CUdeviceptr, SyncOnDrop<'a>), Error> {
        self.check_device(argument, DeviceSlice::stream(slice))?;
        let (address, guard) = slice.device_ptr(stream);
        self.check_alignment::<T>(argument, address, alignment)?;
        Ok((address, guard))
    }

    /// The address of a slice that the kernel writes, with its guard.
    #[inline]
    pub(crate) fn output<'a, T>(
        &self,
        argument: &'static str,
        slice: &'a mut dyn DevicePtrMut<T>,
        stream: &'a CudaStream,
        alignment: u64,
    ) -> Result<(CUdeviceptr, SyncOnDrop<'a>), Error> {
        self.check_device(argument, DeviceSlice::stream(slice))?;
        let (address, guard) = slice.device_ptr_mut(stream);
        self.check_alignment::<T>(argument, address, alignment)?;
        Ok((address, guard))
    }

    /// Enqueues the kernel. Nothing is allocated, and a grid of no blocks is no launch.
    ///
    /// # Safety
    /// - `parameters` points to as many values as the kernel has parameters, each of the parameter's type.
    /// - The memory that they name belongs to the kernel's device, is as long as the kernel assumes for these values and
    ///   this shape, and stays allocated until the kernel has run.
    /// - What the kernel writes is borrowed mutably.
    #[inline]
    pub(crate) unsafe fn enqueue(
        &self,
        stream: &CudaStream,
        config: LaunchConfig,
        parameters: &mut [*mut c_void],
    ) -> Result<(), Error> {
        if config.grid_dim.0 == 0 || config.grid_dim.1 == 0 || config.grid_dim.2 == 0 {
            return Ok(());
        }
        self.context.bind_to_thread().map_err(|source| self.refused(source))?;
        // SAFETY: the function is loaded, the stream belongs to its context (checked by the caller), and the rest is this
        // function's own contract.
        unsafe {
            result::launch_kernel(
                self.function.cu_function(),
                config.grid_dim,
                config.block_dim,
                config.shared_mem_bytes,
                stream.cu_stream(),
                parameters,
            )
        }
        .map_err(|source| self.refused(source))
    }

    #[inline]
    fn check_device(&self, argument: &'static str, stream: &CudaStream) -> Result<(), Error> {
        if stream.context().cu_ctx() == self.context.cu_ctx() {
            return Ok(());
        }
        Err(Error::OtherDevice { kernel: self.name(), argument })
    }

    #[inline]
    fn check_alignment<T>(
        &self,
        argument: &'static str,
        address: CUdeviceptr,
        alignment: u64,
    ) -> Result<(), Error> {
        if address.is_multiple_of(alignment) {
            return Ok(());
        }
        let elements = alignment / size_of::<T>().max(1) as u64;
        Err(Error::Alignment { kernel: self.name(), argument, alignment, elements })
    }

    fn refused(&self, source: DriverError) -> Error {
        Error::Launch { kernel: self.name(), source }
    }
}

/// What the driver's compiler says about a PTX that it has refused: loads it again, with a buffer for the log.
fn load_log(context: &Arc<CudaContext>, image: &'static Image) -> String {
    let mut log = vec![0u8; 8192];
    let mut options =
        [sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER, sys::CUjit_option::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES];
    let mut values = [log.as_mut_ptr().cast::<c_void>(), log.len() as *mut c_void];
    if context.bind_to_thread().is_err() {
        return String::new();
    }
    let mut module = std::ptr::null_mut();
    // SAFETY: the PTX ends in NUL; there are two options with two values, the buffer and its size passed as a pointer, as
    // cuda.h wants it; the buffer outlives the call.
    let result = unsafe {
        sys::cuModuleLoadDataEx(
            &mut module,
            image.ptx().as_ptr().cast(),
            options.len() as u32,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    if result == sys::CUresult::CUDA_SUCCESS {
        // SAFETY: it was loaded in the line above, and nothing knows it.
        let _ = unsafe { result::module::unload(module) };
    }
    let end = log.iter().position(|byte| *byte == 0).unwrap_or(log.len());
    String::from_utf8_lossy(&log[..end]).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_cover_what_they_say() {
        let blocks = |shape: Shape| shape.blocks.0;
        assert_eq!([0, 1, 256, 257].map(|n| blocks(Shape::threads(n))), [0, 1, 1, 2]);
        assert_eq!(blocks(Shape::threads(u128::from(u64::MAX))), 1 << 56);
        assert_eq!(Shape::blocks(5), Shape::blocks_of(5, 32));
        assert_eq!(Shape::blocks_of(5, 32), Shape::plane((5, 1), (32, 1)));
        assert_eq!(Shape::plane((5, 2), (8, 4)), Shape::volume((5, 2, 1), (8, 4, 1)));
        assert!(Shape::resident(1).resident);
    }
}
