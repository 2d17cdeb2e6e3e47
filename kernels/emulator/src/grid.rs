//! A launch: the blocks of a grid over the host's threads.

use std::sync::Mutex;

use crate::{
    counters::Counters,
    fault::Fault,
    memory::Memory,
    model::Model,
    module::{Kernel, Module},
    settings::Settings,
};

/// What a launch runs on.
pub struct Machine<'a> {
    /// The device's memory.
    pub memory: &'a Memory,
    /// The card that it stands for.
    pub model: &'a Model,
    /// Threads, budget and checks.
    pub settings: &'a Settings,
    /// What device code prints. The driver writes it to standard output when the program synchronises.
    pub printed: &'a Mutex<Vec<u8>>,
    /// Bytes of stack that each thread has for calls, `CU_LIMIT_STACK_SIZE`.
    pub stack_bytes: u64,
}

/// What to run.
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its module.
    pub module: &'a Module,
    /// `gridDim`
    pub grid: [u32; 3],
    /// `blockDim`
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// The parameters, each at its offset.
    pub params: Vec<u8>,
    /// All blocks are resident at the same time.
    pub cooperative: bool,
}

/// Why a launch ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The program's fault.
    Fault(Box<Fault>),
    /// The emulator's limit.
    Unsupported(String),
}

/// Runs a launch to its end. The caller has checked its shape against the model.
///
/// # Errors
///
/// The program's fault, or what the emulated GPU cannot do.
pub fn run(machine: &Machine<'_>, launch: &Launch<'_>) -> Result<Counters, Stop> {
    let _ = (machine, launch);
    Err(Stop::Unsupported("not yet".into()))
}
