//! `cuInit`, versions, error names, profiler switches.

use std::ffi::c_char;

use super::{
    abi::{In, Out, driver},
    error::CUresult,
    state,
};

/// The driver's version: CUDA 13.0.
pub(crate) const VERSION: i32 = 13_000;
/// The newest PTX that it loads, as `major * 10 + minor`.
pub(crate) const PTX_VERSION: u32 = 90;

driver! {
    /// Makes the devices. The flags must be 0.
    early cuInit 2000 (flags: u32) {
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        state::initialize()
    }

    /// Answers the CUDA version.
    early cuDriverGetVersion 2020 (version: Out<i32>) {
        version.set(VERSION)
    }

    /// Answers `CUDA_ERROR_…`.
    early cuGetErrorName 6000 (error: CUresult, name: Out<*const c_char>) {
        name.set(error.name().map_or(std::ptr::null(), |name| name.as_ptr()))?;
        error.name().map(drop).ok_or(CUresult::INVALID_VALUE)
    }

    /// Answers a sentence.
    early cuGetErrorString 6000 (error: CUresult, sentence: Out<*const c_char>) {
        sentence.set(error.sentence().map_or(std::ptr::null(), |sentence| sentence.as_ptr()))?;
        error.sentence().map(drop).ok_or(CUresult::INVALID_VALUE)
    }

    /// Answers that functions are loaded with their module.
    call cuModuleGetLoadingMode 11070 (mode: Out<u32>) {
        mode.set(1)
    }

    /// Does nothing: there is no profiler to start.
    call cuProfilerStart 4000 () {
        state::current().map(drop)
    }

    /// Does nothing: there is no profiler to stop.
    call cuProfilerStop 4000 () {
        state::current().map(drop)
    }

    /// Is no longer supported by any driver.
    call cuProfilerInitialize 4000 (_config: In<c_char>, _output: In<c_char>, _mode: u32) {
        Err(CUresult::NOT_SUPPORTED)
    }
}
