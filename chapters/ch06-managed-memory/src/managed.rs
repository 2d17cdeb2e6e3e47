//! Managed memory, where cudarc's safe layer ends: prefetching to either side, advice, and pinned
//! memory by the address that the device knows it by.

use std::mem::ManuallyDrop;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use anyhow::{Context, Result};
use cudarc::driver::sys::{self, CUmem_advise, CUmemLocation, CUmemLocationType};
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DevicePtr, PinnedHostSlice, UnifiedSlice, result,
};

// ANCHOR: allocate
/// Memory with one address for the CPU and the device. What is in it is not said.
pub fn allocate(context: &Arc<CudaContext>, n: usize) -> Result<UnifiedSlice<f32>> {
    // SAFETY: every pattern of bits is a float.
    let memory = unsafe { context.alloc_unified(n, true) };
    memory.with_context(|| format!("allocating {n} managed floats"))
}
// ANCHOR_END: allocate

/// Where pages can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the memory of the stream's device.
    Device,
    /// In the host's memory.
    Host,
}

impl Place {
    fn location(self, context: &CudaContext) -> CUmemLocation {
        let (type_, id) = match self {
            Place::Device => {
                (CUmemLocationType::CU_MEM_LOCATION_TYPE_DEVICE, context.ordinal() as i32)
            }
            Place::Host => (CUmemLocationType::CU_MEM_LOCATION_TYPE_HOST, 0),
        };
        CUmemLocation { type_, id }
    }
}

// ANCHOR: prefetch
/// Enqueues the move of all pages to a place.
pub fn prefetch(memory: &UnifiedSlice<f32>, place: Place, stream: &CudaStream) -> Result<()> {
    let (address, _in_use) = memory.device_ptr(stream);
    let location = place.location(stream.context());
    // SAFETY: the address and the size are those of a managed allocation, which lives on.
    let moved = unsafe {
        result::mem_prefetch_async(address, memory.num_bytes(), location, stream.cu_stream())
    };
    moved.with_context(|| format!("prefetching {} bytes to {place:?}", memory.num_bytes()))
}
// ANCHOR_END: prefetch

/// What the driver can be told about managed memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Advice {
    /// It is mostly read: whoever reads it may have a copy.
    ReadMostly,
    /// It belongs in a place, and is to stay there if it can be reached from where it is used.
    Preferred(Place),
    /// It is used from a place, which should have it in its page table wherever it is.
    AccessedBy(Place),
}

// ANCHOR: advise
/// Tells the driver about a whole allocation.
pub fn advise(memory: &UnifiedSlice<f32>, advice: Advice, stream: &CudaStream) -> Result<()> {
    let (word, place) = match advice {
        Advice::ReadMostly => (CUmem_advise::CU_MEM_ADVISE_SET_READ_MOSTLY, Place::Device),
        Advice::Preferred(place) => (CUmem_advise::CU_MEM_ADVISE_SET_PREFERRED_LOCATION, place),
        Advice::AccessedBy(place) => (CUmem_advise::CU_MEM_ADVISE_SET_ACCESSED_BY, place),
    };
    let (address, _in_use) = memory.device_ptr(stream);
    let location = place.location(stream.context());
    // SAFETY: the address and the size are those of a managed allocation, which lives on.
    let advised = unsafe { result::mem_advise(address, memory.num_bytes(), word, location) };
    advised.with_context(|| format!("advising {advice:?} for {} bytes", memory.num_bytes()))
}
// ANCHOR_END: advise

/// Pinned memory that kernels read and write in place, over the link.
pub struct Mapped {
    /// What the device sees, at the address by which it sees it. It must not be freed: `host` is.
    device: ManuallyDrop<CudaSlice<f32>>,
    host: PinnedHostSlice<f32>,
    stream: Arc<CudaStream>,
}

impl Mapped {
    // ANCHOR: mapped
    /// `n` floats of pinned memory, mapped into the device's address space.
    pub fn allocate(stream: &Arc<CudaStream>, n: usize) -> Result<Self> {
        let context = stream.context();
        let flags = sys::CU_MEMHOSTALLOC_DEVICEMAP;
        // SAFETY: every pattern of bits is a float.
        let mut host = unsafe { context.alloc_pinned_with_flags::<f32>(n, flags) }
            .with_context(|| format!("allocating {n} pinned floats"))?;
        let mut address = 0;
        let pointer = host.as_mut_ptr()?.cast();
        // SAFETY: the pointer is one of pinned memory, and the answer has a place.
        unsafe { sys::cuMemHostGetDevicePointer_v2(&mut address, pointer, 0) }
            .result()
            .context("asking for the device's address of pinned memory")?;
        // SAFETY: `n` floats are at that address, and `host` outlives this slice.
        let device = ManuallyDrop::new(unsafe { stream.upgrade_device_ptr(address, n) });
        Ok(Self { device, host, stream: stream.clone() })
    }
    // ANCHOR_END: mapped

    /// The floats, for the CPU, once the device is done with them.
    pub fn as_slice(&self) -> Result<&[f32]> {
        self.stream.synchronize()?;
        Ok(self.host.as_slice()?)
    }

    /// The same, to be written.
    pub fn as_mut_slice(&mut self) -> Result<&mut [f32]> {
        self.stream.synchronize()?;
        Ok(self.host.as_mut_slice()?)
    }
}

impl Deref for Mapped {
    type Target = CudaSlice<f32>;

    fn deref(&self) -> &CudaSlice<f32> {
        &self.device
    }
}

impl DerefMut for Mapped {
    fn deref_mut(&mut self) -> &mut CudaSlice<f32> {
        &mut self.device
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // The memory must outlast the kernels that use it; an error here is the next call's too.
        let _ = self.stream.synchronize();
        // SAFETY: nobody uses the field after this.
        unsafe { ManuallyDrop::take(&mut self.device) }.leak();
    }
}
