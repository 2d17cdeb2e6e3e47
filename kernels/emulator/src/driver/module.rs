//! `cuModule*`: PTX that was loaded into a context.

use std::{
    collections::HashMap,
    ffi::{c_char, c_void},
    sync::{Arc, Mutex},
    time::Instant,
};

use super::{
    abi::{In, Out, Text, driver},
    allocations,
    error::{CUresult, Result},
    function::{CUfunction, Function},
    handle::{Handle, objects},
    image::{self, Refusal},
    log,
    state::{Context, current, lock},
};
use crate::{memory::Kind, module as code};

/// A module, as C names it.
pub(crate) type CUmodule = Handle<Module>;

/// A module in a context.
pub(crate) struct Module {
    /// Where it belongs.
    pub(crate) context: Arc<Context>,
    /// The architecture that its PTX names.
    pub(crate) target: u32,
    /// Registers that the compiler was told to give a thread at most.
    pub(crate) max_registers: u32,
    code: code::Module,
    /// Addresses of its variables, with the numbers of the allocations.
    variables: Vec<(u64, u64)>,
    functions: Mutex<HashMap<String, CUfunction>>,
}

objects!(Module);

/// Options of the compiler: where it should write, and how many registers a thread may have. Others change nothing here.
pub(crate) struct JitOptions {
    /// `CU_JIT_MAX_REGISTERS`
    max_registers: u32,
    /// `CU_JIT_LOG_VERBOSE`
    verbose: bool,
    info: JitLog,
    error: JitLog,
    /// Where `CU_JIT_WALL_TIME` is answered.
    time: Option<Out<f32>>,
    started: Instant,
}

/// A buffer for messages.
#[derive(Default)]
struct JitLog {
    buffer: Option<(Out<c_char>, usize)>,
    /// Where the number of bytes written is answered.
    written: Option<Out<usize>>,
}

const JIT_MAX_REGISTERS: u32 = 0;
const JIT_WALL_TIME: u32 = 2;
const JIT_INFO_BUFFER: u32 = 3;
const JIT_INFO_BYTES: u32 = 4;
const JIT_ERROR_BUFFER: u32 = 5;
const JIT_ERROR_BYTES: u32 = 6;
const JIT_OPTIMIZATION: u32 = 7;
const JIT_VERBOSE: u32 = 12;
const JIT_OPTIONS: u32 = 35;

driver! {
    /// Loads a file.
    call cuModuleLoad 2000 (answer: Out<CUmodule>, name: Text) {
        answer.check()?;
        let name = name.get()?;
        let context = current()?;
        let bytes = read_file(&name)?;
        let options = JitOptions::none();
        answer.set(load(&context, image::ptx_in(&bytes, context.device.model.compute_capability), &options)?)
    }

    /// Loads PTX or a fat binary.
    call cuModuleLoadData 2000 (answer: Out<CUmodule>, data: In<c_void>) {
        answer.check()?;
        let context = current()?;
        answer.set(load(&context, image::ptx_of(data, context.device.model.compute_capability), &JitOptions::none())?)
    }

    /// Loads PTX or a fat binary, with options for the compiler.
    call cuModuleLoadDataEx 2010 (
        answer: Out<CUmodule>, data: In<c_void>, count: u32, options: In<u32>, values: In<*mut c_void>,
    ) {
        answer.check()?;
        let context = current()?;
        let options = JitOptions::new(count, options, values)?;
        answer.set(load(&context, image::ptx_of(data, context.device.model.compute_capability), &options)?)
    }

    /// Loads a fat binary.
    call cuModuleLoadFatBinary 2000 (answer: Out<CUmodule>, data: In<c_void>) {
        answer.check()?;
        let context = current()?;
        answer.set(load(&context, image::ptx_of(data, context.device.model.compute_capability), &JitOptions::none())?)
    }

    /// Unloads a module.
    call cuModuleUnload 2000 (handle: CUmodule) {
        let module = handle.get()?;
        module.context.synchronize()?;
        handle.take()?;
        for function in lock(&module.functions).values() {
            // A function that is gone already needs no unloading.
            let _gone = function.take();
        }
        Ok(())
    }

    /// Answers the kernel of a name.
    call cuModuleGetFunction 2000 (answer: Out<CUfunction>, handle: CUmodule, name: Text) {
        answer.check()?;
        let module = handle.get()?;
        module.context.check()?;
        answer.set(module.function(handle, &name.get()?)?)
    }

    /// Answers the variable of a name.
    call cuModuleGetGlobal_v2 3020 (address: Out<u64>, bytes: Out<usize>, handle: CUmodule, name: Text) {
        let module = handle.get()?;
        module.context.check()?;
        let global = module.global(&name.get()?)?;
        if address.is_null() && bytes.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        address.set_if_wanted(global.address);
        bytes.set_if_wanted(global.bytes as usize);
        Ok(())
    }

    /// Answers the number of kernels.
    call cuModuleGetFunctionCount 12040 (answer: Out<u32>, handle: CUmodule) {
        answer.check()?;
        answer.set(handle.get()?.names().len() as u32)
    }

    /// Answers kernels.
    call cuModuleEnumerateFunctions 12040 (answer: Out<CUfunction>, room: u32, handle: CUmodule) {
        answer.check()?;
        let module = handle.get()?;
        let names = module.names();
        let functions: Result<Vec<_>> =
            names.iter().take(room as usize).map(|name| module.function(handle, name)).collect();
        answer.set_all(functions?)
    }
}

impl JitOptions {
    /// No options.
    pub(crate) fn none() -> JitOptions {
        JitOptions {
            max_registers: u32::MAX,
            verbose: false,
            info: JitLog::default(),
            error: JitLog::default(),
            time: None,
            started: Instant::now(),
        }
    }

    /// The options of a call: numbers, and as many values, each either a value or a pointer.
    pub(crate) fn new(count: u32, options: In<u32>, values: In<*mut c_void>) -> Result<JitOptions> {
        let mut parsed = JitOptions::none();
        let (mut info_bytes, mut error_bytes) = (0, 0);
        let list = values.list(count as usize)?;
        for (index, option) in options.list(count as usize)?.into_iter().enumerate() {
            let value = list[index];
            match option {
                JIT_WALL_TIME => parsed.time = Some(values.slot(index)),
                JIT_INFO_BUFFER => parsed.info.buffer = Some((Out::of(value.cast()), 0)),
                JIT_INFO_BYTES => {
                    info_bytes = value as usize;
                    parsed.info.written = Some(values.slot(index));
                }
                JIT_ERROR_BUFFER => parsed.error.buffer = Some((Out::of(value.cast()), 0)),
                JIT_ERROR_BYTES => {
                    error_bytes = value as usize;
                    parsed.error.written = Some(values.slot(index));
                }
                JIT_MAX_REGISTERS => match value as usize as u32 {
                    0 => return Err(CUresult::INVALID_VALUE),
                    most => parsed.max_registers = most,
                },
                JIT_OPTIMIZATION if value as usize as u32 > 4 => return Err(CUresult::INVALID_VALUE),
                JIT_VERBOSE => parsed.verbose = value as usize as u32 != 0,
                _ if option < JIT_OPTIONS => {}
                _ => return Err(CUresult::INVALID_VALUE),
            }
        }
        for (log, bytes) in [(&mut parsed.info, info_bytes), (&mut parsed.error, error_bytes)] {
            if let Some(buffer) = &mut log.buffer {
                buffer.1 = bytes & u32::MAX as usize;
            }
        }
        Ok(parsed)
    }

    /// Writes what there is to say.
    pub(crate) fn finish(&self, info: &str, error: &str) {
        self.info.write(info);
        self.error.write(error);
        if let Some(time) = self.time {
            time.set_if_wanted((self.started.elapsed().as_secs_f64() * 1e3) as f32);
        }
    }
}

impl JitLog {
    fn write(&self, text: &str) {
        let Some((buffer, room)) = self.buffer else { return };
        let kept = text.len().min(room.saturating_sub(1));
        if room > 0 {
            // A null buffer gets nothing.
            let _null = buffer.set_text(text, room);
        }
        if let Some(written) = self.written {
            written.set_if_wanted(if text.is_empty() { 0 } else { kept + 1 });
        }
    }
}

impl Module {
    /// The kernel of a name, with the same handle each time.
    pub(crate) fn function(self: &Arc<Self>, handle: CUmodule, name: &str) -> Result<CUfunction> {
        let kernel = self.code().kernels.get(name).ok_or(CUresult::NOT_FOUND)?;
        let mut functions = lock(&self.functions);
        if let Some(function) = functions.get(name) {
            return Ok(*function);
        }
        let function = Handle::new(Function::new(self, handle, kernel));
        functions.insert(name.to_owned(), function);
        Ok(function)
    }

    /// The variable of a name.
    pub(crate) fn global(&self, name: &str) -> Result<code::Global> {
        self.code().globals.get(name).copied().ok_or(CUresult::NOT_FOUND)
    }

    /// The code.
    pub(crate) fn code(&self) -> &code::Module {
        &self.code
    }

    /// Bytes of its constant variables.
    pub(crate) fn constant_bytes(&self) -> u32 {
        let constants = self.code().globals.values().filter(|global| {
            allocations::find(global.address).is_some_and(|allocation| allocation.kind == Kind::Constant)
        });
        constants.map(|global| global.bytes as u32).sum()
    }

    /// What the compiler tells when it is asked to be verbose.
    fn describe(&self) -> String {
        let kernels = &self.code().kernels;
        let describe = |name: String| {
            let kernel = &kernels[&name];
            format!(
                "{name}: {} registers, {} bytes of shared memory, {} bytes of local memory, {} bytes of parameters\n",
                kernel.registers.min(self.max_registers),
                kernel.static_shared_bytes,
                kernel.local_bytes_per_thread,
                kernel.param_bytes,
            )
        };
        self.names().into_iter().map(describe).collect()
    }

    /// The kernels' names, sorted.
    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = self.code().kernels.keys().cloned().collect();
        names.sort_unstable();
        names
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        for &(address, number) in &self.variables {
            // A context that was destroyed took its variables along, and another may have the address by now.
            if allocations::find(address).is_some_and(|allocation| allocation.number == number) {
                let _freed = allocations::free(address, &[Kind::Global, Kind::Constant, Kind::Managed]);
            }
        }
    }
}

/// Loads PTX into a context.
pub(crate) fn load(
    context: &Arc<Context>,
    ptx: core::result::Result<String, Refusal>,
    options: &JitOptions,
) -> Result<CUmodule> {
    match ptx.and_then(|ptx| compile(context, &ptx)) {
        Ok(mut module) => {
            module.max_registers = options.max_registers;
            options.finish(&if options.verbose { module.describe() } else { String::new() }, "");
            Ok(Handle::new(module))
        }
        Err(refusal) => refuse(refusal, options),
    }
}

/// Tells why a module was not loaded, in the log and where the program asked for it.
pub(crate) fn refuse<T>(Refusal { code, reason }: Refusal, options: &JitOptions) -> Result<T> {
    let name = code.name().unwrap_or_default().to_string_lossy();
    log::reason(&format!("a module was not loaded ({name}): {reason}"));
    options.finish("", &reason);
    Err(code)
}

fn compile(context: &Arc<Context>, ptx: &str) -> core::result::Result<Module, Refusal> {
    let device = context.device;
    let modules = image::modules(ptx);
    // Without a headline it is not PTX, and loading it says in which line.
    let headlines: Vec<_> = modules.iter().filter_map(|module| image::headline(module)).collect();
    for headline in &headlines {
        image::check_headline(*headline, device.model.compute_capability)?;
    }
    let memory = device.memory().map_err(|code| Refusal::new(code, "there is no device memory"))?;
    let code = code::load_linked(&modules, memory, device.model).map_err(|error| match error {
        code::LoadError::Invalid(message) => Refusal::new(CUresult::INVALID_PTX, message),
        code::LoadError::OutOfMemory(message) => Refusal::new(CUresult::OUT_OF_MEMORY, message),
        code::LoadError::Unsupported(message) => {
            let limit = "a limit of the emulated GPU, not an error of the program";
            Refusal::new(CUresult::NOT_SUPPORTED, format!("{message}: {limit}"))
        }
    })?;
    for global in code.globals.values() {
        let kind = memory.find(global.address).map_or(Kind::Global, |allocation| allocation.kind);
        allocations::add(context, global.address, global.bytes, kind, 0, None);
    }
    let number = |address| allocations::find(address).map(|allocation| (address, allocation.number));
    let variables = code.globals.values().filter_map(|global| number(global.address)).collect();
    Ok(Module {
        context: Arc::clone(context),
        target: headlines.iter().map(|(_, target, _)| *target).max().unwrap_or(0),
        max_registers: u32::MAX,
        code,
        variables,
        functions: Mutex::default(),
    })
}

/// The bytes of a file.
pub(crate) fn read_file(name: &str) -> Result<Vec<u8>> {
    std::fs::read(name).map_err(|error| {
        log::reason(&format!("{name} cannot be read: {error}"));
        CUresult::FILE_NOT_FOUND
    })
}
