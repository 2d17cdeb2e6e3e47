//! Device memory in three ways: asked from the driver each time, from a pool, and with values that free it when dropped.

use std::ffi::c_void;
use std::sync::Arc;

use anyhow::{Context, Result};
use cudarc::driver::sys::{
    CUdeviceptr, CUmemAllocationType, CUmemLocationType, CUmemPool_attribute, CUmemPoolProps,
};
use cudarc::driver::{CudaContext, CudaStream, result, sys};

/// Bytes of a mebibyte.
pub const MIB: usize = 1 << 20;

/// Steps that allocate and free: a letter and how many MiB; a letter that comes again is freed. The Python peers take the
/// same.
pub const SEQUENCE: [(&str, usize); 10] = [
    ("a", 64),
    ("b", 64),
    ("c", 64),
    ("a", 0),
    ("b", 0),
    ("d", 128),
    ("c", 0),
    ("e", 64),
    ("d", 0),
    ("e", 0),
];

/// Where memory comes from.
#[derive(Clone)]
pub enum Source {
    /// `cuMemAlloc` and `cuMemFree`.
    Driver(Arc<CudaContext>),
    /// `cuMemAllocFromPoolAsync` and `cuMemFreeAsync`, in the order of a stream.
    Pool(Arc<Pool>, Arc<CudaStream>),
}

// ANCHOR: buffer
/// Bytes on the device, for as long as this value lives.
pub struct Buffer {
    address: CUdeviceptr,
    source: Source,
}

impl Buffer {
    /// Allocates `bytes` bytes.
    pub fn new(source: &Source, bytes: usize) -> Result<Self> {
        // SAFETY: nobody reads the bytes before they are written, and they are freed once, by `drop`.
        let address = unsafe {
            match source {
                Source::Driver(context) => {
                    context.bind_to_thread()?;
                    result::malloc_sync(bytes)
                }
                Source::Pool(pool, stream) => {
                    stream.context().bind_to_thread()?;
                    result::mem_pool::alloc_async(pool.pool, bytes, stream.cu_stream())
                }
            }
        };
        Ok(Self { address: address.context("allocating device memory")?, source: source.clone() })
    }
}

impl Drop for Buffer {
    fn drop(&mut self) {
        // SAFETY: the address came from `new`, by the same source, and nobody has it after this.
        unsafe {
            match &self.source {
                Source::Driver(context) => context.record_err(result::free_sync(self.address)),
                Source::Pool(_, stream) => {
                    stream
                        .context()
                        .record_err(result::free_async(self.address, stream.cu_stream()));
                }
            }
        }
    }
}
// ANCHOR_END: buffer

/// A pool of device memory.
pub struct Pool {
    pool: sys::CUmemoryPool,
    context: Arc<CudaContext>,
}

// SAFETY: the driver's functions on pools may be called from any thread.
unsafe impl Send for Pool {}
// SAFETY: as above.
unsafe impl Sync for Pool {}

impl Pool {
    // ANCHOR: pool
    /// A pool of its own that keeps at most `keep` bytes which nobody uses when a stream is waited for.
    pub fn new(context: &Arc<CudaContext>, keep: u64) -> Result<Self> {
        context.bind_to_thread()?;
        // SAFETY: numbers and null pointers are a value of this type.
        let mut properties: CUmemPoolProps = unsafe { std::mem::zeroed() };
        properties.allocType = CUmemAllocationType::CU_MEM_ALLOCATION_TYPE_PINNED;
        properties.location.type_ = CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE;
        properties.location.id = context.ordinal() as i32;
        // SAFETY: the properties are valid and outlive the call.
        let pool = unsafe { result::mem_pool::create(&properties) }.context("creating a pool")?;
        let pool = Self { pool, context: context.clone() };
        let mut keep = keep;
        let threshold = CUmemPool_attribute::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD;
        // SAFETY: this attribute is a number of 64 bits.
        unsafe {
            result::mem_pool::set_attribute(pool.pool, threshold, (&raw mut keep).cast::<c_void>())
        }
        .context("setting a pool's release threshold")?;
        Ok(pool)
    }
    // ANCHOR_END: pool

    /// Bytes in buffers that are alive, and bytes that the pool holds.
    pub fn used_and_reserved(&self) -> Result<[u64; 2]> {
        let ask = |attribute| {
            let mut bytes = 0_u64;
            // SAFETY: both attributes are numbers of 64 bits.
            unsafe {
                result::mem_pool::get_attribute(
                    self.pool,
                    attribute,
                    (&raw mut bytes).cast::<c_void>(),
                )
            }
            .context("asking a pool how much it holds")?;
            anyhow::Ok(bytes)
        };
        Ok([
            ask(CUmemPool_attribute::CU_MEMPOOL_ATTR_USED_MEM_CURRENT)?,
            ask(CUmemPool_attribute::CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT)?,
        ])
    }

    /// Gives back to the driver what nobody uses.
    pub fn trim(&self) -> Result<()> {
        // SAFETY: the pool lives.
        unsafe { result::mem_pool::trim_to(self.pool, 0) }.context("trimming a pool")
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        // SAFETY: the pool came from `new` and is destroyed only here; every buffer of it holds it alive.
        let destroyed = unsafe { result::mem_pool::destroy(self.pool) };
        self.context.record_err(destroyed);
    }
}

/// Takes the steps of [`SEQUENCE`], and then `give_back`. Calls `look` after each of them.
pub fn take_steps(
    source: &Source,
    mut look: impl FnMut() -> Result<()>,
    give_back: impl FnOnce() -> Result<()>,
) -> Result<()> {
    // ANCHOR: sequence
    let mut buffers = std::collections::BTreeMap::new();
    for (name, mebibytes) in SEQUENCE {
        match buffers.remove(name) {
            Some(buffer) => drop(buffer),
            None => drop(buffers.insert(name, Buffer::new(source, mebibytes * MIB)?)),
        }
        look()?;
    }
    give_back()?;
    look()
    // ANCHOR_END: sequence
}
