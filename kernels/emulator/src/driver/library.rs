//! `cuLibrary*` and `cuKernel*`: PTX that is loaded into each context that uses it.

use std::{
    collections::HashMap,
    ffi::{CString, c_char, c_void},
    sync::{Arc, Mutex},
};

use super::{
    abi::{In, Out, Text, driver},
    allocations,
    error::{CUresult, Result},
    function::{CUfunction, Function},
    handle::{Handle, objects},
    image::{self, Refusal},
    module::{self, CUmodule, JitOptions},
    state::{CUdevice, Context, current, device, lock},
};
use crate::{memory::Kind, module as code, ptx::ast::Item, settings::settings};

/// A library, as C names it.
pub(crate) type CUlibrary = Handle<Library>;
/// A kernel of a library, as C names it.
pub(crate) type CUkernel = Handle<LibraryKernel>;

/// PTX, and the modules that it became.
pub(crate) struct Library {
    ptx: String,
    /// The kernels' names, in the order of the PTX.
    names: Vec<String>,
    /// By the number of the context.
    modules: Mutex<HashMap<u64, CUmodule>>,
    kernels: Mutex<HashMap<String, CUkernel>>,
}

/// A kernel of a library, in whatever context.
pub(crate) struct LibraryKernel {
    library: CUlibrary,
    name: CString,
    /// Attributes that were set for each device, by number.
    attributes: Mutex<Vec<(CUdevice, u32, i32)>>,
}

objects!(Library, LibraryKernel);

driver! {
    /// Loads PTX or a fat binary.
    call cuLibraryLoadData 12000 (
        answer: Out<CUlibrary>, data: In<c_void>, options: In<u32>, values: In<*mut c_void>, count: u32,
        _library_options: In<u32>, _library_values: In<*mut c_void>, _library_count: u32,
    ) {
        answer.check()?;
        let options = JitOptions::new(count, options, values)?;
        answer.set(load(image::ptx_of(data, capability()), &options)?)
    }

    /// Loads a file.
    call cuLibraryLoadFromFile 12000 (
        answer: Out<CUlibrary>, name: Text, options: In<u32>, values: In<*mut c_void>, count: u32,
        _library_options: In<u32>, _library_values: In<*mut c_void>, _library_count: u32,
    ) {
        answer.check()?;
        let options = JitOptions::new(count, options, values)?;
        let bytes = module::read_file(&name.get()?)?;
        answer.set(load(image::ptx_in(&bytes, capability()), &options)?)
    }

    /// Unloads a library from every context.
    call cuLibraryUnload 12000 (handle: CUlibrary) {
        let library = handle.take()?;
        for kernel in lock(&library.kernels).values() {
            kernel.take()?;
        }
        for module in lock(&library.modules).values() {
            module.take()?;
        }
        Ok(())
    }

    /// Answers the kernel of a name.
    call cuLibraryGetKernel 12000 (answer: Out<CUkernel>, handle: CUlibrary, name: Text) {
        answer.check()?;
        answer.set(handle.get()?.kernel(handle, &name.get()?)?)
    }

    /// Answers the number of kernels.
    call cuLibraryGetKernelCount 12040 (answer: Out<u32>, handle: CUlibrary) {
        answer.check()?;
        answer.set(handle.get()?.names.len() as u32)
    }

    /// Answers kernels.
    call cuLibraryEnumerateKernels 12040 (answer: Out<CUkernel>, room: u32, handle: CUlibrary) {
        answer.check()?;
        let library = handle.get()?;
        let kernels: Result<Vec<_>> =
            library.names.iter().take(room as usize).map(|name| library.kernel(handle, name)).collect();
        answer.set_all(kernels?)
    }

    /// Answers the module that the library is in the current context.
    call cuLibraryGetModule 12000 (answer: Out<CUmodule>, handle: CUlibrary) {
        answer.check()?;
        answer.set(handle.get()?.module(&current()?)?)
    }

    /// Answers the variable of a name, in the current context.
    call cuLibraryGetGlobal 12000 (address: Out<u64>, bytes: Out<usize>, handle: CUlibrary, name: Text) {
        if address.is_null() && bytes.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        let module = handle.get()?.module(&current()?)?;
        let global = module.get()?.global(&name.get()?)?;
        address.set_if_wanted(global.address);
        bytes.set_if_wanted(global.bytes as usize);
        Ok(())
    }

    /// Answers the managed variable of a name, which every context has.
    call cuLibraryGetManaged 12000 (address: Out<u64>, bytes: Out<usize>, handle: CUlibrary, name: Text) {
        let module = handle.get()?.module(&current()?)?;
        let global = module.get()?.global(&name.get()?)?;
        allocations::find(global.address).filter(|found| found.kind == Kind::Managed).ok_or(CUresult::NOT_FOUND)?;
        address.set_if_wanted(global.address);
        bytes.set_if_wanted(global.bytes as usize);
        Ok(())
    }

    /// Answers the kernel in the current context.
    call cuKernelGetFunction 12000 (answer: Out<CUfunction>, handle: CUkernel) {
        answer.check()?;
        answer.set(handle.get()?.function(&current()?)?)
    }

    /// Answers the library.
    call cuKernelGetLibrary 12050 (answer: Out<CUlibrary>, handle: CUkernel) {
        answer.check()?;
        answer.set(handle.get()?.library)
    }

    /// Answers the name.
    call cuKernelGetName 12030 (answer: Out<*const c_char>, handle: CUkernel) {
        answer.check()?;
        answer.set(handle.get()?.name.as_ptr())
    }

    /// Answers an attribute, as it is on a device.
    call cuKernelGetAttribute 12000 (answer: Out<i32>, number: u32, handle: CUkernel, ordinal: CUdevice) {
        answer.check()?;
        let kernel = handle.get()?;
        device(ordinal)?;
        let set = lock(&kernel.attributes).iter().find(|set| (set.0, set.1) == (ordinal, number)).map(|set| set.2);
        answer.set(match set {
            Some(value) => value,
            None => kernel.function(&current()?)?.get()?.attribute(number)?,
        })
    }

    /// Sets an attribute on a device.
    call cuKernelSetAttribute 12000 (number: u32, value: i32, handle: CUkernel, ordinal: CUdevice) {
        let kernel = handle.get()?;
        device(ordinal)?;
        let context = current()?;
        if context.device.ordinal as CUdevice == ordinal {
            kernel.function(&context)?.get()?.set_attribute(number, value)?;
        }
        let mut attributes = lock(&kernel.attributes);
        attributes.retain(|set| (set.0, set.1) != (ordinal, number));
        attributes.push((ordinal, number, value));
        Ok(())
    }

    /// Notes a preferred division between L1 and shared memory, which changes nothing.
    call cuKernelSetCacheConfig 12000 (handle: CUkernel, config: u32, ordinal: CUdevice) {
        handle.get()?;
        device(ordinal)?;
        if config > 3 { Err(CUresult::INVALID_VALUE) } else { Ok(()) }
    }

    /// Answers where a parameter lies among the bytes of all.
    call cuKernelGetParamInfo 12040 (handle: CUkernel, index: usize, offset: Out<usize>, bytes: Out<usize>) {
        offset.check()?;
        handle.get()?.function(&current()?)?.get()?.param(index, offset, bytes)
    }
}

impl Library {
    fn kernel(&self, handle: CUlibrary, name: &str) -> Result<CUkernel> {
        if !self.names.iter().any(|known| known == name) {
            return Err(CUresult::NOT_FOUND);
        }
        let mut kernels = lock(&self.kernels);
        if let Some(kernel) = kernels.get(name) {
            return Ok(*kernel);
        }
        let kernel = Handle::new(LibraryKernel {
            library: handle,
            name: CString::new(name).map_err(|_| CUresult::NOT_FOUND)?,
            attributes: Mutex::default(),
        });
        kernels.insert(name.to_owned(), kernel);
        Ok(kernel)
    }

    /// The module that the library is in a context.
    fn module(&self, context: &Arc<Context>) -> Result<CUmodule> {
        let mut modules = lock(&self.modules);
        if let Some(module) = modules.get(&context.id) {
            return Ok(*module);
        }
        let module = module::load(context, Ok(self.ptx.clone()), &JitOptions::none())?;
        modules.insert(context.id, module);
        Ok(module)
    }

    /// Forgets the module in a context that is gone. The library stays.
    pub(crate) fn forget(&self, context_id: u64) {
        lock(&self.modules).remove(&context_id);
    }
}

impl LibraryKernel {
    fn function(&self, context: &Arc<Context>) -> Result<CUfunction> {
        let name = self.name.to_str().map_err(|_| CUresult::NOT_FOUND)?;
        let module = self.library.get()?.module(context)?;
        let handle = module.get()?.function(module, name)?;
        let function = handle.get()?;
        let ordinal = context.device.ordinal as CUdevice;
        for &(_, number, value) in lock(&self.attributes).iter().filter(|set| set.0 == ordinal) {
            function.set_attribute(number, value)?;
        }
        Ok(handle)
    }
}

/// The function that a kernel of a library is in the current context.
pub(crate) fn function(handle: CUkernel) -> Result<Arc<Function>> {
    handle.get()?.function(&current()?)?.get()
}

/// The compute capability of every device.
fn capability() -> (u32, u32) {
    settings().map_or((0, 0), |settings| settings.model.compute_capability)
}

fn load(text: core::result::Result<String, Refusal>, options: &JitOptions) -> Result<CUlibrary> {
    // What is wrong with the PTX is reported now, where there is a context to load it into, or by the parser alone.
    let context = current().ok();
    let (text, module) = match (text, &context) {
        (Ok(text), Some(context)) => {
            let module = module::load(context, Ok(text.clone()), options)?;
            (text, Some((context.id, module)))
        }
        (Ok(text), None) => (text, None),
        (Err(refusal), _) => return module::refuse(refusal, options),
    };
    let mut names = Vec::new();
    for module in image::modules(&text) {
        let parsed = code::parse(module).or_else(|error| {
            module::refuse(Refusal::new(CUresult::INVALID_PTX, error.to_string()), options)
        })?;
        names.extend(parsed.items.into_iter().filter_map(|item| match item {
            Item::Function(function) if function.entry && function.body.is_some() => Some(function.name),
            _ => None,
        }));
    }
    Ok(Handle::new(Library {
        ptx: text,
        names,
        modules: Mutex::new(module.into_iter().collect()),
        kernels: Mutex::default(),
    }))
}
