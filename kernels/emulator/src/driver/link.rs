//! `cuLink*`: the driver's linker. What it makes of PTX is PTX: the text of its inputs, one behind the other, which every
//! function that loads modules links.

use std::{
    ffi::{c_char, c_void},
    sync::{Arc, Mutex, OnceLock},
};

use super::{
    abi::{In, Out, Text, driver},
    error::{CUresult, Result},
    handle::{Handle, objects},
    image::{self, Refusal},
    module::{self, JitOptions},
    state::{Context, current, lock},
};
use crate::module::{self as code, Decoded, link::link};

/// A link in the making.
pub(crate) struct Link {
    context: Arc<Context>,
    options: Mutex<JitOptions>,
    inputs: Mutex<Vec<String>>,
    /// The text with the zero byte at its end, once the link is complete.
    image: OnceLock<Vec<u8>>,
}

objects!(Link);

/// The first number that is no type of input: machine code, PTX, fat binaries, objects and libraries of the host, and NVVM
/// code come before.
const INPUT_TYPES: u32 = 6;
const NVVM: u32 = 5;

driver! {
    /// Begins a link.
    call cuLinkCreate 5050, cuLinkCreate_v2 6050 (
        count: u32, options: In<u32>, values: In<*mut c_void>, answer: Out<Handle<Link>>,
    ) {
        answer.check()?;
        let context = current()?;
        let options = JitOptions::new(count, options, values)?;
        answer.set(Handle::new(Link {
            context,
            options: Mutex::new(options),
            inputs: Mutex::default(),
            image: OnceLock::new(),
        }))
    }

    /// Adds an input.
    call cuLinkAddData 5050, cuLinkAddData_v2 6050 (
        handle: Handle<Link>, kind: u32, data: In<u8>, bytes: usize, _name: In<c_char>,
        _count: u32, _options: In<u32>, _values: In<*mut c_void>,
    ) {
        let link = handle.get()?;
        let data = data.list(bytes)?;
        link.add(kind, &data)
    }

    /// Adds a file.
    call cuLinkAddFile 5050, cuLinkAddFile_v2 6050 (
        handle: Handle<Link>, kind: u32, name: Text, _count: u32, _options: In<u32>, _values: In<*mut c_void>,
    ) {
        let link = handle.get()?;
        let bytes = module::read_file(&name.get()?)?;
        link.add(kind, &bytes)
    }

    /// Links, and answers the image, which stays valid until the link is destroyed.
    call cuLinkComplete 5050 (handle: Handle<Link>, image: Out<*const c_void>, bytes: Out<usize>) {
        image.check()?;
        let link = handle.get()?;
        let linked = link.complete()?;
        image.set(linked.as_ptr().cast())?;
        bytes.set_if_wanted(linked.len());
        Ok(())
    }

    /// Ends a link.
    call cuLinkDestroy 5050 (handle: Handle<Link>) {
        handle.take().map(drop)
    }
}

impl Link {
    fn add(&self, kind: u32, data: &[u8]) -> Result {
        let options = lock(&self.options);
        if kind >= INPUT_TYPES {
            return Err(CUresult::INVALID_VALUE);
        }
        if self.image.get().is_some() {
            return Err(CUresult::INVALID_VALUE);
        }
        if kind == NVVM {
            let reason = "the emulated GPU links PTX, not NVVM code; compile without -dlto";
            return module::refuse(Refusal::new(CUresult::NOT_SUPPORTED, reason), &options);
        }
        let capability = self.context.device.model.compute_capability;
        let text = image::ptx_in(data, capability).or_else(|refusal| module::refuse(refusal, &options))?;
        for module in image::modules(&text) {
            if let Some(headline) = image::headline(module) {
                image::check_headline(headline, capability)
                    .or_else(|refusal| module::refuse(refusal, &options))?;
            }
            if let Err(error) = code::parse(module) {
                return module::refuse(Refusal::new(CUresult::INVALID_PTX, error.to_string()), &options);
            }
        }
        lock(&self.inputs).push(text);
        Ok(())
    }

    fn complete(&self) -> Result<&[u8]> {
        if let Some(image) = self.image.get() {
            return Ok(image);
        }
        let options = lock(&self.options);
        let inputs = lock(&self.inputs);
        if inputs.is_empty() {
            return Err(CUresult::INVALID_VALUE);
        }
        let text = image::linked(&inputs);
        let parsed: Decoded<Vec<_>> = image::modules(&text).into_iter().map(code::parse).collect();
        if let Err(error) = parsed.and_then(link) {
            return module::refuse(Refusal::new(CUresult::NO_BINARY_FOR_GPU, error.to_string()), &options);
        }
        options.finish("", "");
        Ok(self.image.get_or_init(|| text.into_bytes().into_iter().chain([0]).collect()))
    }
}
