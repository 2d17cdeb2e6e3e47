//! NVRTC through its C interface, opened at run time.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::{fmt, ptr};

use anyhow::{Context, Result};
use libloading::Library;

use crate::source::KernelSource;
use crate::toolchain::{BASELINE, Pin, find_or_fetch_nvrtc};

/// An opened NVRTC.
pub struct Compiler {
    api: Api,
    version: String,
}

/// A kernel that does not compile.
#[derive(Debug)]
pub struct CompileError {
    /// What NVRTC said, each line with its place as `file:line`, the file relative to the repository.
    pub log: String,
}

impl Compiler {
    /// Opens the NVRTC that compiles the book's kernels, fetching it if need be.
    ///
    /// # Errors
    /// When there is none and none can be fetched; the message says what to install.
    pub fn open() -> Result<Self> {
        Self::open_pinned(BASELINE)
    }

    /// As [`open`](Self::open), of another pinned version.
    ///
    /// # Errors
    /// When there is none and none can be fetched; the message says what to install.
    pub fn open_pinned(pin: Pin) -> Result<Self> {
        Self::open_library(&find_or_fetch_nvrtc(pin)?.join(pin.library()))
    }

    /// Opens the library at a path, of whatever version it is.
    ///
    /// # Errors
    /// When it is no NVRTC, or none that works.
    pub fn open_library(library: &Path) -> Result<Self> {
        let api = Api::open(library).with_context(|| format!("opening {}", library.display()))?;
        let mut compiler = Self { api, version: String::new() };
        // nvrtcVersion answers 12.0 alone. Which 12.0 it is stands in the PTX that it writes.
        let probe = compiler.compile_raw("", "version.cu", &[], &[]).context("compiling an empty file")?;
        let version = probe
            .lines()
            .find_map(|line| line.strip_prefix("// Cuda compilation tools, release ")?.split_once(", V"))
            .context("its PTX states no version")?;
        compiler.version = version.1.trim().to_string();
        Ok(compiler)
    }

    /// The version in full, such as `12.0.140`.
    pub fn version(&self) -> &str {
        &self.version
    }

    /// Compiles a kernel to PTX, with the target and the options that it asks for. The `.file` names in it are relative to
    /// the repository, so that the same source gives the same bytes in every clone.
    ///
    /// # Errors
    /// When it does not compile; the log says where and why.
    pub fn compile(&self, kernel: &KernelSource) -> Result<String, CompileError> {
        let options = kernel.needs.options();
        let headers: Vec<(&str, &str)> =
            kernel.headers.iter().map(|header| (header.include.as_str(), header.text.as_str())).collect();
        let ptx = self.compile_raw(&kernel.text, &kernel.path, &headers, &options)?;
        Ok(relative_files(&ptx, kernel))
    }

    /// Calls NVRTC.
    fn compile_raw(
        &self,
        text: &str,
        name: &str,
        headers: &[(&str, &str)],
        options: &[String],
    ) -> Result<String, CompileError> {
        let c_string = |text: &str| {
            CString::new(text).map_err(|_| CompileError { log: format!("{name}: it holds a NUL character") })
        };
        let text = c_string(text)?;
        let c_name = c_string(name)?;
        let header_names = headers.iter().map(|(name, _)| c_string(name)).collect::<Result<Vec<_>, _>>()?;
        let header_texts = headers.iter().map(|(_, text)| c_string(text)).collect::<Result<Vec<_>, _>>()?;
        let options = options.iter().map(|option| c_string(option)).collect::<Result<Vec<_>, _>>()?;
        self.api
            .compile(&text, &c_name, &header_names, &header_texts, &options)
            .map_err(|log| CompileError { log: places(&log) })
    }
}

impl fmt::Display for CompileError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.log.trim_end())
    }
}

impl std::error::Error for CompileError {}

/// NVRTC's functions, as its header declares them. A program is a `nvrtcProgram`, a pointer.
struct Api {
    create: unsafe extern "C" fn(
        *mut *mut c_void,
        *const c_char,
        *const c_char,
        c_int,
        *const *const c_char,
        *const *const c_char,
    ) -> c_int,
    destroy: unsafe extern "C" fn(*mut *mut c_void) -> c_int,
    compile: unsafe extern "C" fn(*mut c_void, c_int, *const *const c_char) -> c_int,
    log_size: unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int,
    log: unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int,
    ptx_size: unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int,
    ptx: unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int,
    error_string: unsafe extern "C" fn(c_int) -> *const c_char,
    // The functions above live in these.
    _library: Library,
    _builtins: Option<Library>,
}

impl Api {
    fn open(path: &Path) -> Result<Self> {
        // NVRTC opens its builtins by name alone: ours must be the one that has the name by then.
        let builtins = path
            .parent()
            .into_iter()
            .flat_map(std::fs::read_dir)
            .flatten()
            .flatten()
            .find(|entry| entry.file_name().to_string_lossy().starts_with("libnvrtc-builtins.so."));
        // SAFETY: the library is NVIDIA's, and its initialisers have no requirement.
        let builtins = builtins.and_then(|entry| unsafe { Library::new(entry.path()) }.ok());
        // SAFETY: as above.
        let library = unsafe { Library::new(path) }?;
        // SAFETY: the types are those of nvrtc.h, which has not changed them since CUDA 8.
        unsafe {
            Ok(Self {
                create: *library.get(b"nvrtcCreateProgram")?,
                destroy: *library.get(b"nvrtcDestroyProgram")?,
                compile: *library.get(b"nvrtcCompileProgram")?,
                log_size: *library.get(b"nvrtcGetProgramLogSize")?,
                log: *library.get(b"nvrtcGetProgramLog")?,
                ptx_size: *library.get(b"nvrtcGetPTXSize")?,
                ptx: *library.get(b"nvrtcGetPTX")?,
                error_string: *library.get(b"nvrtcGetErrorString")?,
                _library: library,
                _builtins: builtins,
            })
        }
    }

    /// PTX, or the log of what is wrong.
    fn compile(
        &self,
        text: &CStr,
        name: &CStr,
        header_names: &[CString],
        header_texts: &[CString],
        options: &[CString],
    ) -> Result<String, String> {
        let header_names: Vec<*const c_char> = header_names.iter().map(|name| name.as_ptr()).collect();
        let header_texts: Vec<*const c_char> = header_texts.iter().map(|text| text.as_ptr()).collect();
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = ptr::null_mut();
        // SAFETY: every pointer is to a string that outlives the call, and the counts are those of the arrays.
        self.result(unsafe {
            (self.create)(
                &mut program,
                text.as_ptr(),
                name.as_ptr(),
                header_names.len() as c_int,
                header_texts.as_ptr(),
                header_names.as_ptr(),
            )
        })?;
        // SAFETY: the program was created above, and the options outlive the call.
        let code = unsafe { (self.compile)(program, options.len() as c_int, options.as_ptr()) };
        let result = match self.result(code) {
            Ok(()) => self.text(program, self.ptx_size, self.ptx),
            Err(error) => match self.text(program, self.log_size, self.log) {
                Ok(log) if !log.trim().is_empty() => Err(log),
                _ => Err(error),
            },
        };
        // SAFETY: the program was created above, and nothing uses it any more.
        unsafe { (self.destroy)(&mut program) };
        result
    }

    /// A text of a program, by the two functions that give its size and itself.
    fn text(
        &self,
        program: *mut c_void,
        size: unsafe extern "C" fn(*mut c_void, *mut usize) -> c_int,
        get: unsafe extern "C" fn(*mut c_void, *mut c_char) -> c_int,
    ) -> Result<String, String> {
        let mut bytes = 0;
        // SAFETY: the program is alive, and the size goes to a `usize`, as `size_t` is.
        self.result(unsafe { size(program, &mut bytes) })?;
        let mut text = vec![0u8; bytes];
        // SAFETY: the buffer has the size that NVRTC asked for.
        self.result(unsafe { get(program, text.as_mut_ptr().cast()) })?;
        // The size counts the final NUL.
        text.truncate(text.iter().position(|byte| *byte == 0).unwrap_or(bytes));
        String::from_utf8(text).map_err(|_| "NVRTC answered in something else than UTF-8".to_string())
    }

    fn result(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: NVRTC answers every code with a constant string.
        let name = unsafe { CStr::from_ptr((self.error_string)(code)) };
        Err(name.to_string_lossy().into_owned())
    }
}

/// Rewrites the `.file` names: NVRTC puts the current folder in front of every name that it was given.
fn relative_files(ptx: &str, kernel: &KernelSource) -> String {
    let mut text = String::with_capacity(ptx.len());
    for line in ptx.lines() {
        let mut quoted = line.splitn(3, '"');
        if let (Some(before), Some(file), Some(after)) = (quoted.next(), quoted.next(), quoted.next())
            && before.trim_start().starts_with(".file")
        {
            text.push_str(&format!("{before}\"{}\"{after}", kernel.relative(file)));
        } else {
            text.push_str(line);
        }
        text.push('\n');
    }
    text
}

/// Turns the `file(12): error` of NVRTC into the `file:12: error` that terminals and editors open.
fn places(log: &str) -> String {
    let place = |line: &str| {
        let (file, rest) = line.split_once('(')?;
        let (number, rest) = rest.split_once(')')?;
        (!file.contains(' ') && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()))
            .then(|| format!("{file}:{number}{rest}"))
    };
    log.lines().map(|line| place(line).unwrap_or_else(|| line.to_string()) + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_file_and_line() {
        assert_eq!(
            places(
                "kernels/cuda/a.cu(12): error: identifier \"x\" is undefined\n  f(1);\n\n1 error detected\n"
            ),
            "kernels/cuda/a.cu:12: error: identifier \"x\" is undefined\n  f(1);\n\n1 error detected\n"
        );
    }

    #[test]
    fn file_names_lose_the_folder_of_the_clone() {
        let kernel = KernelSource::from_text("kernels/cuda/a.cu", "").unwrap();
        let ptx = "ret;\n\t.file\t1 \"/home/ada/clone/kernels/cuda/a.cu\"\n\t.loc 1 2 3\n";
        assert_eq!(relative_files(ptx, &kernel), "ret;\n\t.file\t1 \"kernels/cuda/a.cu\"\n\t.loc 1 2 3\n");
    }

    #[test]
    fn what_is_no_library_is_an_error() {
        let error = Compiler::open_library(Path::new("/nowhere/libnvrtc.so.12")).err().unwrap();
        assert!(format!("{error:#}").contains("/nowhere/libnvrtc.so.12"), "{error:#}");
    }
}
