//! cuSOLVER: systems of linear equations by Cholesky's method.

use anyhow::{Context, Result, ensure};
use cudarc::cusolver::{DnHandle, sys};
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut};
use lab::libraries::{Missing, ask};

use crate::device::Device;

const FUNCTIONS: [&str; 5] = [
    "cusolverDnCreate",
    "cusolverDnSetStream",
    "cusolverDnSpotrf_bufferSize",
    "cusolverDnSpotrf",
    "cusolverDnSpotrs",
];

/// cuSOLVER on a device's stream.
pub struct Solver {
    handle: DnHandle,
    info: CudaSlice<i32>,
}

impl Solver {
    /// Asks for the library first.
    pub fn open(device: &Device) -> Result<Result<Self, Missing>> {
        if let Err(missing) = ask("cuSOLVER", &FUNCTIONS) {
            return Ok(Err(missing));
        }
        let handle = DnHandle::new(device.stream.clone()).context("opening cuSOLVER")?;
        Ok(Ok(Self { handle, info: device.zeros(2)? }))
    }

    // ANCHOR: solve
    /// Solves `a x = b` for a symmetric positive definite `a` of `n` × `n`, which is the same row by
    /// row and column by column. `b` holds `count` right-hand sides, one after the other (column by
    /// column), and holds the solutions afterwards; `a` holds its factor.
    pub fn solve(
        &mut self,
        device: &Device,
        a: &mut CudaSlice<f32>,
        b: &mut CudaSlice<f32>,
        n: usize,
        count: usize,
    ) -> Result<()> {
        ensure!(
            a.len() >= n * n && b.len() >= n * count,
            "{n} equations do not fit the memory given"
        );
        let (n, count) = (n as i32, count as i32);
        let lower = sys::cublasFillMode_t::CUBLAS_FILL_MODE_LOWER;
        let (handle, stream) = (self.handle.cu(), self.handle.stream());
        let (a, _a) = a.device_ptr_mut(stream);
        let (b, _b) = b.device_ptr_mut(stream);
        let (info, _info) = self.info.device_ptr_mut(stream);
        let a = a as *mut f32;
        let mut floats = 0;
        // SAFETY: `a` holds n × n floats, as was checked; the library writes one number.
        unsafe { sys::cusolverDnSpotrf_bufferSize(handle, lower, n, a, n, &mut floats) }
            .result()
            .context("asking cuSOLVER for its workspace")?;
        let workspace = device.zeros::<f32>(floats as usize)?;
        let (space, _space) = workspace.device_ptr(stream);
        let info = info as *mut i32;
        // SAFETY: a, b and the workspace hold as much as the sizes say, the two numbers of `info` are
        // device memory, and the guards keep all of them until the work is enqueued.
        unsafe {
            sys::cusolverDnSpotrf(handle, lower, n, a, n, space as *mut f32, floats, info)
                .result()?;
            sys::cusolverDnSpotrs(handle, lower, n, count, a, n, b as *mut f32, n, info.add(1))
                .result()?;
        }
        Ok(())
    }
    // ANCHOR_END: solve

    /// What the last call said: 0 is well, k > 0 says that the k-th pivot was not positive.
    pub fn info(&self, device: &Device) -> Result<[i32; 2]> {
        let info = device.fetch(&self.info, 2)?;
        Ok([info[0], info[1]])
    }
}
