//! `cuFunc*`: kernels of a module.

use std::{
    ffi::{CString, c_char},
    sync::{
        Arc, Mutex,
        atomic::{AtomicI32, AtomicU32, Ordering},
    },
};

use super::{
    abi::{Out, driver},
    cuda3_launch::Cuda3Launch,
    error::{CUresult, Result},
    handle::{Handle, objects},
    library,
    module::{CUmodule, Module},
    state::Context,
};
use crate::{model::Limits, module::Kernel};

/// A kernel, as C names it. A `CUkernel` of a library serves as one.
pub(crate) type CUfunction = Handle<Function>;

/// A kernel in a context.
pub(crate) struct Function {
    /// Where it belongs.
    pub(crate) context: Arc<Context>,
    /// The module that holds it.
    pub(crate) module: Arc<Module>,
    /// The module's handle.
    pub(crate) module_handle: CUmodule,
    /// Its code.
    pub(crate) kernel: Arc<Kernel>,
    /// Its name, as C reads it.
    name: CString,
    /// Bytes of dynamic shared memory that launches may ask for.
    max_dynamic_shared: AtomicU32,
    /// The share of shared memory, in percent, that it would like; it changes nothing.
    carveout: AtomicI32,
    /// What launches of CUDA 3 set.
    pub(crate) cuda3_launch: Mutex<Cuda3Launch>,
}

objects!(Function);

const MAX_DYNAMIC_SHARED: u32 = 8;
const CARVEOUT: u32 = 9;

driver! {
    /// Answers an attribute.
    call cuFuncGetAttribute 2020 (answer: Out<i32>, number: u32, handle: CUfunction) {
        answer.check()?;
        answer.set(find(handle)?.attribute(number)?)
    }

    /// Sets an attribute.
    call cuFuncSetAttribute 9000 (handle: CUfunction, number: u32, value: i32) {
        find(handle)?.set_attribute(number, value)
    }

    /// Notes a preferred division between L1 and shared memory, which changes nothing.
    call cuFuncSetCacheConfig 3000 (handle: CUfunction, config: u32) {
        find(handle)?;
        if config > 3 { Err(CUresult::INVALID_VALUE) } else { Ok(()) }
    }

    /// Accepts a width of shared-memory banks, which no card since Kepler can change.
    call cuFuncSetSharedMemConfig 4020 (handle: CUfunction, config: u32) {
        find(handle)?;
        if config > 2 { Err(CUresult::INVALID_VALUE) } else { Ok(()) }
    }

    /// Answers the module.
    call cuFuncGetModule 11000 (answer: Out<CUmodule>, handle: CUfunction) {
        answer.check()?;
        answer.set(find(handle)?.module_handle)
    }

    /// Answers the name.
    call cuFuncGetName 12030 (answer: Out<*const c_char>, handle: CUfunction) {
        answer.check()?;
        answer.set(find(handle)?.name.as_ptr())
    }

    /// Answers where a parameter lies among the bytes of all.
    call cuFuncGetParamInfo 12040 (handle: CUfunction, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        offset.check()?;
        find(handle)?.param(index, offset, bytes)
    }

    /// Answers that the kernel is loaded.
    call cuFuncIsLoaded 12040 (answer: Out<u32>, handle: CUfunction) {
        answer.check()?;
        find(handle)?;
        answer.set(1)
    }

    /// Does nothing: kernels are loaded with their module.
    call cuFuncLoad 12040 (handle: CUfunction) {
        find(handle).map(drop)
    }
}

impl Function {
    /// A kernel of a module.
    pub(crate) fn new(module: &Arc<Module>, module_handle: CUmodule, kernel: &Arc<Kernel>) -> Function {
        let dynamic = Limits::SHARED_PER_BLOCK.saturating_sub(kernel.static_shared_bytes);
        Function {
            context: Arc::clone(&module.context),
            module: Arc::clone(module),
            module_handle,
            kernel: Arc::clone(kernel),
            // A name of PTX holds no zero byte.
            name: CString::new(kernel.name.as_str()).unwrap_or_default(),
            max_dynamic_shared: AtomicU32::new(dynamic),
            carveout: AtomicI32::new(-1),
            cuda3_launch: Cuda3Launch::new(),
        }
    }

    /// Bytes of dynamic shared memory that launches may ask for.
    pub(crate) fn max_dynamic_shared(&self) -> u32 {
        self.max_dynamic_shared.load(Ordering::Relaxed)
    }

    /// Threads that a block may have.
    pub(crate) fn max_threads(&self) -> u32 {
        self.kernel.max_threads_per_block.min(Limits::THREADS_PER_BLOCK)
    }

    /// Registers of a thread.
    pub(crate) fn registers(&self) -> u32 {
        self.kernel.registers.min(self.module.max_registers)
    }

    /// An attribute's value.
    pub(crate) fn attribute(&self, number: u32) -> Result<i32> {
        let (major, minor) = self.context.device.model.compute_capability;
        let value = match number {
            0 => self.max_threads(),
            1 => self.kernel.static_shared_bytes,
            2 => self.module.constant_bytes(),
            3 => self.kernel.local_bytes_per_thread,
            4 => self.registers(),
            5 => self.module.target,
            6 => major * 10 + minor,
            7 | 10..=15 => 0,
            MAX_DYNAMIC_SHARED => self.max_dynamic_shared(),
            CARVEOUT => return Ok(self.carveout.load(Ordering::Relaxed)),
            _ => return Err(CUresult::INVALID_VALUE),
        };
        Ok(value as i32)
    }

    /// Sets an attribute's value.
    pub(crate) fn set_attribute(&self, number: u32, value: i32) -> Result {
        match number {
            MAX_DYNAMIC_SHARED => {
                let most = self.context.device.model.limits.shared_per_block_optin;
                let value = u32::try_from(value).map_err(|_| CUresult::INVALID_VALUE)?;
                if value.saturating_add(self.kernel.static_shared_bytes) > most {
                    return Err(CUresult::INVALID_VALUE);
                }
                self.max_dynamic_shared.store(value, Ordering::Relaxed);
                Ok(())
            }
            CARVEOUT if (-1..=100).contains(&value) => {
                self.carveout.store(value, Ordering::Relaxed);
                Ok(())
            }
            // Clusters.
            11..=15 => Err(CUresult::NOT_SUPPORTED),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Answers where a parameter lies.
    pub(crate) fn param(&self, index: usize, offset: Out<usize>, bytes: Out<usize>) -> Result {
        let param = self.kernel.params.get(index).ok_or(CUresult::INVALID_VALUE)?;
        bytes.set_if_wanted(param.bytes as usize);
        offset.set(param.offset as usize)
    }
}

/// The kernel of a handle, which may also be one of a library.
pub(crate) fn find(handle: CUfunction) -> Result<Arc<Function>> {
    let function = match handle.get() {
        Ok(function) => function,
        Err(error) => library::function(Handle::special(handle.number())).map_err(|_| error)?,
    };
    function.context.check()?;
    Ok(function)
}
