//! `cuLink*`: the driver's linker. What it makes of PTX is PTX, so one input is all that it takes.

use std::{
    ffi::{c_char, c_void},
    sync::Mutex,
};

use super::{
    abi::{In, Out, Text, driver},
    error::{CUresult, Result},
    handle::{Handle, objects},
    image::{self, Refusal},
    module::{self, JitOptions},
    state::{current, lock},
};
use crate::ptx;

/// A link in the making.
pub(crate) struct Link {
    options: Mutex<JitOptions>,
    /// The PTX, with the zero byte at its end.
    ptx: Mutex<Option<Vec<u8>>>,
}

objects!(Link);

const CUBIN: u32 = 0;
const PTX: u32 = 1;
const FAT_BINARY: u32 = 2;

driver! {
    /// Begins a link.
    call cuLinkCreate 5050, cuLinkCreate_v2 6050 (
        count: u32, options: In<u32>, values: In<*mut c_void>, answer: Out<Handle<Link>>,
    ) {
        answer.check()?;
        current()?;
        let options = JitOptions::new(count, options, values)?;
        answer.set(Handle::new(Link { options: Mutex::new(options), ptx: Mutex::default() }))
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

    /// Answers the image, which stays valid until the link is destroyed.
    call cuLinkComplete 5050 (handle: Handle<Link>, image: Out<*const c_void>, bytes: Out<usize>) {
        image.check()?;
        let link = handle.get()?;
        let ptx = lock(&link.ptx);
        let ptx = ptx.as_ref().ok_or(CUresult::INVALID_VALUE)?;
        image.set(ptx.as_ptr().cast())?;
        bytes.set_if_wanted(ptx.len());
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
        let refuse = |code, reason: &str| module::refuse(Refusal::new(code, reason), &options);
        match kind {
            PTX | FAT_BINARY | CUBIN => {}
            3..6 => {
                return refuse(
                    CUresult::NOT_SUPPORTED,
                    "the emulated GPU links neither objects nor libraries",
                );
            }
            _ => return Err(CUresult::INVALID_VALUE),
        }
        let text = image::ptx_in(data).or_else(|refusal| module::refuse(refusal, &options))?;
        if let Err(error) = ptx::parse(&text) {
            return refuse(CUresult::INVALID_PTX, &error.to_string());
        }
        let mut ptx = lock(&self.ptx);
        if ptx.is_some() {
            return refuse(
                CUresult::NOT_SUPPORTED,
                "the emulated GPU links one input; compile the others into it",
            );
        }
        let mut bytes = text.into_bytes();
        bytes.push(0);
        *ptx = Some(bytes);
        Ok(())
    }
}
