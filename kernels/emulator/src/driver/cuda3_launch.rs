//! Launches as CUDA 3 had them: the shape and the parameters are set one by one in the function, and stay there.
//!
//! The manual deprecates them, drivers have them still, and PyCUDA calls them.

use std::sync::Mutex;

use super::{
    abi::{In, driver},
    error::{CUresult, Result},
    function::{self, CUfunction},
    launch::{self, Shape},
    state::lock,
    stream::CUstream,
};
use crate::model::Limits;

/// What is set in a function.
pub(crate) struct Cuda3Launch {
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    params: Vec<u8>,
    /// Bytes of parameters that a launch hands over.
    param_bytes: usize,
}

const MOST_PARAM_BYTES: usize = Limits::PARAM_BYTES as usize;

driver! {
    /// Sets the threads of a block.
    call cuFuncSetBlockShape 2000 (handle: CUfunction, x: i32, y: i32, z: i32) {
        let function = function::find(handle)?;
        let block = [x, y, z].map(|threads| u32::try_from(threads).unwrap_or(0));
        let fits = block.iter().zip(Limits::BLOCK).all(|(&threads, most)| (1..=most).contains(&threads));
        if !fits || block.iter().product::<u32>() > function.max_threads() {
            return Err(CUresult::INVALID_VALUE);
        }
        lock(&function.cuda3_launch).block = block;
        Ok(())
    }

    /// Sets the bytes of dynamic shared memory.
    call cuFuncSetSharedSize 2000 (handle: CUfunction, bytes: u32) {
        let function = function::find(handle)?;
        if bytes > function.max_dynamic_shared() {
            return Err(CUresult::INVALID_VALUE);
        }
        lock(&function.cuda3_launch).dynamic_shared_bytes = bytes;
        Ok(())
    }

    /// Sets how many bytes of parameters there are.
    call cuParamSetSize 2000 (handle: CUfunction, bytes: u32) {
        let function = function::find(handle)?;
        if bytes as usize > MOST_PARAM_BYTES {
            return Err(CUresult::INVALID_VALUE);
        }
        lock(&function.cuda3_launch).param_bytes = bytes as usize;
        Ok(())
    }

    /// Sets a parameter that is a whole number.
    call cuParamSeti 2000 (handle: CUfunction, offset: i32, value: u32) {
        lock(&function::find(handle)?.cuda3_launch).set(offset, &value.to_ne_bytes())
    }

    /// Sets a parameter that is a floating-point number.
    call cuParamSetf 2000 (handle: CUfunction, offset: i32, value: f32) {
        lock(&function::find(handle)?.cuda3_launch).set(offset, &value.to_ne_bytes())
    }

    /// Sets bytes of parameters.
    call cuParamSetv 2000 (handle: CUfunction, offset: i32, bytes: In<u8>, count: u32) {
        let function = function::find(handle)?;
        if count as usize > MOST_PARAM_BYTES {
            return Err(CUresult::INVALID_VALUE);
        }
        lock(&function.cuda3_launch).set(offset, &bytes.list(count as usize)?)
    }

    /// Launches one block.
    call cuLaunch 2000 (handle: CUfunction) {
        run(handle, 1, 1, CUstream::NULL)
    }

    /// Launches blocks in two dimensions.
    call cuLaunchGrid 2000 (handle: CUfunction, width: i32, height: i32) {
        run(handle, width, height, CUstream::NULL)
    }

    /// The same, in a stream.
    call cuLaunchGridAsync 2000 (handle: CUfunction, width: i32, height: i32, stream: CUstream) {
        run(handle, width, height, stream)
    }
}

impl Cuda3Launch {
    /// What a function has before anything is set.
    pub(crate) fn new() -> Mutex<Cuda3Launch> {
        let params = Vec::new();
        Mutex::new(Cuda3Launch { block: [0; 3], dynamic_shared_bytes: 0, params, param_bytes: 0 })
    }

    fn set(&mut self, offset: i32, bytes: &[u8]) -> Result {
        let start = usize::try_from(offset).map_err(|_| CUresult::INVALID_VALUE)?;
        let end = start.checked_add(bytes.len()).filter(|&end| end <= MOST_PARAM_BYTES);
        let end = end.ok_or(CUresult::INVALID_VALUE)?;
        if self.params.len() < end {
            self.params.resize(end, 0);
        }
        self.params[start..end].copy_from_slice(bytes);
        Ok(())
    }
}

fn run(handle: CUfunction, width: i32, height: i32, stream: CUstream) -> Result {
    let function = function::find(handle)?;
    let (shape, params) = {
        let set = lock(&function.cuda3_launch);
        let mut params = set.params.clone();
        params.resize(set.param_bytes, 0);
        let grid = [width, height, 1].map(|blocks| u32::try_from(blocks).unwrap_or(0));
        (Shape { grid, block: set.block, dynamic_shared_bytes: set.dynamic_shared_bytes }, params)
    };
    launch::launch_bytes(handle, shape, stream, params)
}
