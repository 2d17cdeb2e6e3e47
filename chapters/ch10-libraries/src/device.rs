//! What the cells share: a device with its stream, and memory filled with something.

use std::sync::Arc;

use anyhow::Result;
use cudarc::driver::sys::CUstream;
use cudarc::driver::{
    CudaContext, CudaSlice, CudaStream, DeviceRepr, DriverError, ValidAsZeroBits,
};

/// A device and the stream that everything in this chapter runs on.
pub struct Device {
    /// The device's primary context.
    pub context: Arc<CudaContext>,
    /// Its default stream.
    pub stream: Arc<CudaStream>,
}

impl Device {
    /// The device that the reader chose.
    pub fn open() -> Result<Self> {
        let context = lab::open_device()?;
        Ok(Self { stream: context.default_stream(), context })
    }

    /// The driver's handle of the stream, for timing.
    pub fn raw_stream(&self) -> CUstream {
        self.stream.cu_stream()
    }

    /// Zeros. There is no allocation of nothing: memory for no element has room for one.
    pub fn zeros<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        len: usize,
    ) -> Result<CudaSlice<T>, DriverError> {
        self.stream.alloc_zeros(len.max(1))
    }

    /// A copy of a host slice.
    pub fn copy<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        host: &[T],
    ) -> Result<CudaSlice<T>, DriverError> {
        self.repeat(host, host.len())
    }

    /// `len` elements that repeat a host slice over and over.
    pub fn repeat<T: DeviceRepr + ValidAsZeroBits>(
        &self,
        host: &[T],
        len: usize,
    ) -> Result<CudaSlice<T>, DriverError> {
        let mut memory = self.zeros(len)?;
        for start in (0..len).step_by(host.len().max(1)) {
            let part = &host[..host.len().min(len - start)];
            self.stream.memcpy_htod(part, &mut memory.slice_mut(start..start + part.len()))?;
        }
        Ok(memory)
    }

    /// The first `len` elements, on the host.
    pub fn fetch<T: DeviceRepr + Clone + Default>(
        &self,
        memory: &CudaSlice<T>,
        len: usize,
    ) -> Result<Vec<T>, DriverError> {
        let mut host = vec![T::default(); len];
        if len > 0 {
            self.stream.memcpy_dtoh(&memory.slice(..len), &mut host)?;
            self.stream.synchronize()?;
        }
        Ok(host)
    }
}
