//! A loaded module: kernels decoded once for execution, variables in memory.

use std::{collections::HashMap, fmt, sync::Arc};

use crate::{memory::Memory, model::Model};

/// A loaded module. Its variables stay allocated until [`Module::unload`].
#[derive(Debug)]
pub struct Module {
    /// Kernels by name.
    pub kernels: HashMap<String, Arc<Kernel>>,
    /// `.global` and `.const` variables by name.
    pub globals: HashMap<String, Global>,
}

/// A variable that the host can find by name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Global {
    /// Its device address.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
}

/// A parameter of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Param {
    /// Where it starts among the launch's parameter bytes.
    pub offset: u32,
    /// Its size.
    pub bytes: u32,
    /// Its alignment.
    pub align: u32,
}

/// A kernel.
#[derive(Debug)]
pub struct Kernel {
    /// Its name.
    pub name: String,
    /// Its parameters.
    pub params: Vec<Param>,
    /// Bytes of all parameters.
    pub param_bytes: u32,
    /// Bytes of shared memory that it declares.
    pub static_shared_bytes: u32,
    /// Bytes of local memory that each thread needs, without calls.
    pub local_bytes_per_thread: u32,
    /// `.maxntid` or `.reqntid` as a number of threads, else 1024.
    pub max_threads_per_block: u32,
    /// `.reqntid`
    pub required_block: Option<[u32; 3]>,
    /// An estimate of the 32-bit registers that ptxas would use.
    pub registers: u32,
}

/// Why a module was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The PTX is malformed: `CUDA_ERROR_INVALID_PTX`.
    Invalid(String),
    /// The PTX needs what the emulated GPU does not have: `CUDA_ERROR_NOT_SUPPORTED`.
    Unsupported(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Invalid(message) | LoadError::Unsupported(message) => f.write_str(message),
        }
    }
}

impl std::error::Error for LoadError {}

/// Loads a module.
///
/// # Errors
///
/// [`LoadError::Invalid`] for malformed PTX, [`LoadError::Unsupported`] for PTX that the emulated GPU cannot execute.
pub fn load(ptx: &str, memory: &Memory, model: &Model) -> Result<Module, LoadError> {
    let _ = (ptx, memory, model);
    Err(LoadError::Unsupported("not yet".into()))
}

impl Module {
    /// Frees its variables.
    pub fn unload(self, memory: &Memory) {
        let _ = memory;
    }
}
