//! NVRTC, all of it that a program needs: PTX or machine code, and templates by name.
//!
//! cudarc's own `compile_ptx` gives PTX of functions that are `extern "C"`. This module adds what it leaves out, over the
//! same bindings, and answers a mistake in the source with NVRTC's words.

use std::ffi::{CStr, CString, c_char};
use std::fmt;

use anyhow::{Context, Result, ensure};
use cudarc::nvrtc::result::NvrtcError;
use cudarc::nvrtc::{result, sys};

// ANCHOR: source
/// What is to be compiled.
#[derive(Clone, Debug, Default)]
pub struct Source<'a> {
    /// What messages call the file.
    pub file: &'a str,
    /// CUDA C++.
    pub text: &'a str,
    /// Such as `-DDEGREE=8`.
    pub options: Vec<String>,
    /// Instances of templates, written as C++ does: `polynomial<float, 8>`.
    pub instances: Vec<&'a str>,
}
// ANCHOR_END: source

/// What comes out of the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// PTX for a compute capability and all that come after it, such as 75: the driver makes machine code of it.
    Ptx(u32),
    /// Machine code for GPUs of one compute capability, such as 90, and of later ones with the same first number.
    Cubin(u32),
}

impl Target {
    /// The option that asks for it.
    pub fn option(self) -> String {
        match self {
            Target::Ptx(capability) => format!("--gpu-architecture=compute_{capability}"),
            Target::Cubin(capability) => format!("--gpu-architecture=sm_{capability}"),
        }
    }
}

/// What was compiled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// PTX with a zero byte at its end, or an ELF file.
    pub bytes: Vec<u8>,
    /// Under which names the instances are found in it, in their order.
    pub lowered: Vec<String>,
}

/// The source does not compile.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileError {
    /// What NVRTC said.
    pub log: String,
}

impl fmt::Display for CompileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.log.trim_end())
    }
}

impl std::error::Error for CompileError {}

/// Why nothing can be compiled here, and what to do about it; `None` if NVRTC is here.
pub fn missing() -> Option<&'static str> {
    // SAFETY: it opens the library, whose initialisers have no requirement, and closes it again.
    let is_here = unsafe { sys::is_culib_present() };
    (!is_here).then_some(
        "not compiled: NVRTC is not on this machine. `python3 -m pip install nvidia-cuda-nvrtc-cu12` brings it, and so does \
         the CUDA Toolkit; this program looks in both places.",
    )
}

/// Its version, such as (12, 0).
///
/// # Errors
/// When NVRTC does not say.
pub fn version() -> Result<(u32, u32)> {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers have a place.
    unsafe { sys::nvrtcVersion(&mut major, &mut minor) }
        .result()
        .context("asking NVRTC for its version")?;
    Ok((u32::try_from(major)?, u32::try_from(minor)?))
}

/// The latest compute capability that both this NVRTC and the device know, such as 90.
///
/// # Errors
/// When NVRTC does not say which it knows, or knows none that the device has.
pub fn capability(device: (i32, i32)) -> Result<u32> {
    let mut count = 0;
    // SAFETY: the number has a place.
    unsafe { sys::nvrtcGetNumSupportedArchs(&mut count) }
        .result()
        .context("asking NVRTC what it compiles for")?;
    let mut known = vec![0; usize::try_from(count)?];
    // SAFETY: there is room for as many as NVRTC said.
    unsafe { sys::nvrtcGetSupportedArchs(known.as_mut_ptr()) }
        .result()
        .context("asking NVRTC what it compiles for")?;
    let of_device = 10 * device.0 + device.1;
    let best = known.into_iter().filter(|&capability| capability <= of_device).max();
    Ok(u32::try_from(
        best.with_context(|| format!("this NVRTC knows no compute capability up to {of_device}"))?,
    )?)
}

// ANCHOR: compile
/// Compiles a source.
///
/// # Errors
/// A [`CompileError`] when the source is wrong; another error when NVRTC failed.
pub fn compile(source: &Source<'_>, target: Target) -> Result<Image> {
    let file = CString::new(source.file).context("the file's name holds a zero byte")?;
    let text = CString::new(source.text).context("the source holds a zero byte")?;
    let program =
        Program(result::create_program(&text, Some(&file)).context("handing a source to NVRTC")?);

    // A template becomes code for those instances that somebody asks for.
    let mut instances = Vec::new();
    for instance in &source.instances {
        let instance = CString::new(*instance).context("an instance's name holds a zero byte")?;
        // SAFETY: the program lives, and NVRTC copies the name.
        unsafe { sys::nvrtcAddNameExpression(program.0, instance.as_ptr()) }
            .result()
            .with_context(|| format!("asking NVRTC for {instance:?}"))?;
        instances.push(instance);
    }

    let mut options = vec![target.option()];
    options.extend(source.options.iter().cloned());
    // SAFETY: the program lives.
    if let Err(error) = unsafe { result::compile_program(program.0, &options) } {
        return Err(program.failure(error));
    }
    let lowered =
        instances.iter().map(|instance| program.lowered(instance)).collect::<Result<_>>()?;
    Ok(Image { bytes: program.image(target)?, lowered })
}
// ANCHOR_END: compile

/// A program of NVRTC's, given back at the end.
struct Program(sys::nvrtcProgram);

impl Program {
    /// What is wrong with the source, or with NVRTC.
    fn failure(&self, error: NvrtcError) -> anyhow::Error {
        // SAFETY: the program lives.
        match unsafe { result::get_program_log(self.0) } {
            Ok(log) if error.0 == sys::nvrtcResult::NVRTC_ERROR_COMPILATION => {
                CompileError { log: text_of(&log) }.into()
            }
            Ok(log) => anyhow::anyhow!("NVRTC answers {:?}: {}", error.0, text_of(&log).trim_end()),
            Err(_) => anyhow::anyhow!("NVRTC answers {:?}, and has no log", error.0),
        }
    }

    fn lowered(&self, instance: &CStr) -> Result<String> {
        let mut name = std::ptr::null();
        // SAFETY: the program was compiled with this instance; the answer belongs to the program, which outlives its use here.
        let name = unsafe {
            sys::nvrtcGetLoweredName(self.0, instance.as_ptr(), &mut name)
                .result()
                .with_context(|| format!("asking NVRTC what it calls {instance:?}"))?;
            CStr::from_ptr(name)
        };
        Ok(name.to_str().context("a lowered name is no UTF-8")?.to_owned())
    }

    fn image(&self, target: Target) -> Result<Vec<u8>> {
        let (of_size, get): (SizeOf, Get) = match target {
            Target::Ptx(_) => (sys::nvrtcGetPTXSize, sys::nvrtcGetPTX),
            Target::Cubin(_) => (sys::nvrtcGetCUBINSize, sys::nvrtcGetCUBIN),
        };
        let mut size = 0;
        // SAFETY: the program was compiled, and the number has a place.
        unsafe { of_size(self.0, &mut size) }
            .result()
            .context("asking NVRTC for the size of the image")?;
        ensure!(size > 0, "NVRTC made no image for {}", target.option());
        let mut bytes = vec![0u8; size];
        // SAFETY: there is room for as many bytes as NVRTC said.
        unsafe { get(self.0, bytes.as_mut_ptr().cast()) }
            .result()
            .context("taking the image from NVRTC")?;
        Ok(bytes)
    }
}

type SizeOf = unsafe fn(sys::nvrtcProgram, *mut usize) -> sys::nvrtcResult;
type Get = unsafe fn(sys::nvrtcProgram, *mut c_char) -> sys::nvrtcResult;

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: nobody else has the program. That it cannot be given back is no reason to end.
        let _ = unsafe { result::destroy_program(self.0) };
    }
}

/// A log without the zero byte at its end.
fn text_of(log: &[c_char]) -> String {
    let bytes: Vec<u8> = log.iter().map(|&byte| byte as u8).take_while(|&byte| byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
