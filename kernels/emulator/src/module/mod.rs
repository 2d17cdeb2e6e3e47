//! A loaded module: kernels decoded once for execution, variables in memory.

mod decode;
mod flow;
pub(crate) mod link;
mod names;
pub(crate) mod program;
mod registers;
mod steps;
mod symbols;
mod variables;

use std::{collections::HashMap, fmt, sync::Arc};

pub(crate) use decode::{Base, Class, Decoded, Decoder, Register, invalid, type_bytes};
pub(crate) use symbols::{Symbol, builtin, undefined};

pub use crate::warp::Level;

use crate::{
    memory::Memory,
    model::{Limits, Model},
    ptx::{self, ast},
};
use decode::{align_up, size};
use program::{Builtin, Callee, End, Program};
use symbols::Symbols;

/// A loaded module. Its variables stay allocated until [`Module::unload`].
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
    /// The 32-bit registers that ptxas gave a thread, as the PTX says in a comment, else an estimate.
    pub registers: u32,
    /// What executes.
    pub(crate) program: Program,
}

/// Why a module was not loaded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadError {
    /// The PTX is malformed: `CUDA_ERROR_INVALID_PTX`.
    Invalid(String),
    /// The PTX needs what the emulated GPU does not have: `CUDA_ERROR_NOT_SUPPORTED`.
    Unsupported(String),
    /// There is no memory left for its variables: `CUDA_ERROR_OUT_OF_MEMORY`.
    OutOfMemory(String),
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            LoadError::Invalid(message)
            | LoadError::Unsupported(message)
            | LoadError::OutOfMemory(message) => f.write_str(message),
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
    load_at(ptx, memory, model, Level::host())
}

/// Loads several modules, linked to one.
///
/// # Errors
///
/// As for [`load`], and [`LoadError::Invalid`] for names that are defined nowhere or twice.
pub fn load_linked(texts: &[&str], memory: &Memory, model: &Model) -> Result<Module, LoadError> {
    if let [ptx] = texts {
        return load(ptx, memory, model);
    }
    let parsed = link::link(texts.iter().map(|ptx| parse(ptx)).collect::<Result<_, _>>()?)?;
    load_parsed(&parsed, texts, memory, model, Level::host())
}

/// Loads a module to run on a certain vector unit, which the host must have.
///
/// # Errors
///
/// As for [`load`].
pub fn load_at(ptx: &str, memory: &Memory, model: &Model, level: Level) -> Result<Module, LoadError> {
    load_parsed(&parse(ptx)?, &[ptx], memory, model, level)
}

/// Parses PTX.
pub(crate) fn parse(ptx: &str) -> Result<ast::Module, LoadError> {
    ptx::parse(ptx).map_err(|error| {
        LoadError::Invalid(format!("PTX line {}, column {}: {}", error.line, error.column, error.message))
    })
}

fn load_parsed(
    parsed: &ast::Module,
    texts: &[&str],
    memory: &Memory,
    model: &Model,
    level: Level,
) -> Result<Module, LoadError> {
    check_target(parsed, model)?;
    let mut symbols = Symbols::new(parsed)?;
    let mut module = Module { kernels: HashMap::new(), globals: HashMap::new() };
    let known = registers::known(texts, model.compute_capability);
    let filled = variables::place(&mut symbols, memory, &mut module.globals)
        .and_then(|()| kernels(parsed, &symbols, level, model, &known, &mut module.kernels));
    if let Err(error) = filled {
        module.unload(memory);
        return Err(error);
    }
    Ok(module)
}

impl Module {
    /// Frees its variables.
    pub fn unload(self, memory: &Memory) {
        for global in self.globals.values() {
            // They were allocated by `load`, and nobody else knows them.
            let _ = memory.free(global.address);
        }
    }
}

/// A module for a newer card than this one does not load, as on a real GPU.
fn check_target(module: &ast::Module, model: &Model) -> Result<(), LoadError> {
    let (major, minor) = model.compute_capability;
    match module.architecture() {
        Some(number) if number > major * 10 + minor => Err(LoadError::Invalid(format!(
            "the PTX is for sm_{number}, and {} has compute capability {major}.{minor}; compile for compute_{major}{minor} or \
             lower, or set EMULATED_GPU_MODEL",
            model.name
        ))),
        _ => Ok(()),
    }
}

/// Fails for a kernel that must be launched in clusters of several blocks: alone, its blocks would compute something else.
fn refuse_clusters(function: &ast::Function) -> Result<(), LoadError> {
    match function.directives.iter().find(|(directive, _)| directive == "reqnctapercluster") {
        Some((_, blocks)) if blocks.iter().any(|&blocks| blocks > 1) => {
            Err(decode::unsupported(&format!("`.reqnctapercluster` of `{}`", function.name)))
        }
        _ => Ok(()),
    }
}

fn kernels(
    parsed: &ast::Module,
    symbols: &Symbols<'_>,
    level: Level,
    model: &Model,
    known_registers: &HashMap<&str, u32>,
    kernels: &mut HashMap<String, Arc<Kernel>>,
) -> Result<(), LoadError> {
    for function in symbols.functions.iter().filter(|function| function.entry) {
        refuse_clusters(function)?;
        let (reached, mut kernelwide) = symbols.reach(function)?;
        let mut program = Program::default();
        for reached in reached {
            program.functions.push(decode::decode(
                reached,
                &parsed.files,
                &mut kernelwide,
                level,
                model.compute_capability,
            )?);
        }
        program.allocates = program.functions.iter().flat_map(|function| &function.blocks).any(|block| {
            matches!(&block.end, End::Call(call) if matches!(call.callee, Callee::Builtin(Builtin::Malloc | Builtin::Free)))
        });
        program.caches = kernelwide.caches;
        program.addresses = std::mem::take(&mut kernelwide.by_address);
        let mut params = Vec::new();
        let mut offset = 0;
        for param in &function.params {
            let (bytes, align) = size(param)?;
            offset = align_up(offset, align);
            params.push(Param { offset: offset as u32, bytes: bytes as u32, align: align as u32 });
            offset += bytes;
            if offset > u64::from(Limits::PARAM_BYTES) {
                let name = &function.name;
                return Err(invalid(&format!(
                    "`{name}` has {offset} bytes of parameters, more than {}",
                    Limits::PARAM_BYTES
                )));
            }
        }
        let shape = |name: &str| {
            let (_, values) = function.directives.iter().find(|(directive, _)| directive == name)?;
            let axis = |index: usize| values.get(index).map_or(1, |&value| value.clamp(1, 1024) as u32);
            Some([axis(0), axis(1), axis(2)])
        };
        let required_block = shape("reqntid");
        let max_threads = required_block
            .or(shape("maxntid"))
            .map_or(Limits::THREADS_PER_BLOCK, |shape| shape.iter().product());
        let main = &program.functions[0];
        kernels.insert(
            function.name.clone(),
            Arc::new(Kernel {
                name: function.name.clone(),
                params,
                param_bytes: offset as u32,
                static_shared_bytes: kernelwide.shared_bytes as u32,
                local_bytes_per_thread: main.local_bytes,
                max_threads_per_block: max_threads.min(Limits::THREADS_PER_BLOCK),
                required_block,
                registers: known_registers
                    .get(function.name.as_str())
                    .copied()
                    .unwrap_or_else(|| registers::estimate(main.row_bytes, max_threads)),
                program,
            }),
        );
    }
    Ok(())
}
