//! Asking a driver's library what it has, before cudarc touches one.

use std::ffi::{CStr, c_char, c_int, c_uint};
use std::path::Path;

use anyhow::{Result, anyhow};
use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY, RTLD_LOCAL, RTLD_NOW, Symbol};

/// What a driver with at least one device says.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    /// Whether the first device says that it is emulated.
    pub(super) emulated: bool,
    /// The CUDA version, such as 12 of 12.2.
    pub(super) major: u32,
}

/// Asks the driver that cudarc would open. The error is a clause that says why there is none to use.
pub(super) fn loaders_driver() -> Result<Answer, String> {
    let library = loaders_choice().ok_or("no NVIDIA driver is installed (libcuda.so.1 is not found)")?;
    let answer = ask(&library);
    // Closing a real driver can take its worker threads' code away from under them, and cudarc opens it again anyway.
    std::mem::forget(library);
    answer
}

/// Opens a driver so that the dynamic loader answers later requests for its name with it.
pub(super) fn open_for_all(path: &Path) -> Result<Library> {
    // SAFETY: the emulated driver's only initialiser is the Rust standard library's.
    unsafe { Library::open(Some(path), RTLD_NOW | RTLD_GLOBAL) }
        .map_err(|error| anyhow!("opening the emulated GPU: {error}"))
}

/// Whether cudarc's requests are answered with this library.
pub(super) fn is_loaders_choice(library: &Library) -> bool {
    let address = |library: &Library| {
        // SAFETY: the symbol is never called, only its address is compared.
        unsafe { library.get::<unsafe extern "C" fn()>(b"cuInit\0") }.ok().map(|symbol| symbol.as_raw_ptr())
    };
    loaders_choice().is_some_and(|other| address(&other) == address(library))
}

/// Asks a driver for its version and its first device. The error is a clause.
pub(super) fn ask(library: &Library) -> Result<Answer, String> {
    let driver = Functions::of(library)?;
    // SAFETY: these are the driver's functions with the types that cuda.h gives them; each pointer is to a local of the
    // type that the function writes, and the name's buffer has the length that is passed.
    unsafe {
        driver.check((driver.init)(0))?;
        let mut devices = 0;
        driver.check((driver.device_count)(&mut devices))?;
        if devices == 0 {
            return Err("the NVIDIA driver has no device".to_owned());
        }
        let mut version = 0;
        driver.check((driver.version)(&mut version))?;
        let (mut device, mut name) = (0, [0; 256]);
        driver.check((driver.device)(&mut device, 0))?;
        driver.check((driver.device_name)(name.as_mut_ptr(), 256, device))?;
        let name = CStr::from_ptr(name.as_ptr()).to_string_lossy();
        Ok(Answer {
            emulated: super::is_emulated_name(&name),
            major: u32::try_from(version / 1000).unwrap_or(0),
        })
    }
}

/// The library that cudarc would open, by the names that it tries in their order.
fn loaders_choice() -> Option<Library> {
    cudarc::get_lib_name_candidates("cuda").into_iter().find_map(|name| {
        // SAFETY: a CUDA driver's initialisers have no precondition; cudarc would open the same library.
        unsafe { Library::open(Some(name), RTLD_LAZY | RTLD_LOCAL) }.ok()
    })
}

/// The few functions of the driver that are asked.
struct Functions {
    init: Symbol<unsafe extern "C" fn(c_uint) -> c_int>,
    version: Symbol<unsafe extern "C" fn(*mut c_int) -> c_int>,
    device_count: Symbol<unsafe extern "C" fn(*mut c_int) -> c_int>,
    device: Symbol<unsafe extern "C" fn(*mut c_int, c_int) -> c_int>,
    device_name: Symbol<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int>,
    error_name: Symbol<unsafe extern "C" fn(c_int, *mut *const c_char) -> c_int>,
}

impl Functions {
    fn of(library: &Library) -> Result<Self, String> {
        let missing = |error| format!("the library is no CUDA driver ({error})");
        // SAFETY: the types are those of cuda.h, the same in every driver since CUDA 6.
        unsafe {
            Ok(Self {
                init: library.get(b"cuInit\0").map_err(missing)?,
                version: library.get(b"cuDriverGetVersion\0").map_err(missing)?,
                device_count: library.get(b"cuDeviceGetCount\0").map_err(missing)?,
                device: library.get(b"cuDeviceGet\0").map_err(missing)?,
                device_name: library.get(b"cuDeviceGetName\0").map_err(missing)?,
                error_name: library.get(b"cuGetErrorName\0").map_err(missing)?,
            })
        }
    }

    fn check(&self, code: c_int) -> Result<(), String> {
        if code == 0 {
            return Ok(());
        }
        let mut name = std::ptr::null();
        // SAFETY: `name` is a local of the type that the function writes.
        let known = unsafe { (self.error_name)(code, &mut name) } == 0 && !name.is_null();
        // SAFETY: the driver's error names are constants that end with a zero byte.
        let name = known.then(|| unsafe { CStr::from_ptr(name) }.to_string_lossy());
        let name = name.unwrap_or_else(|| format!("error {code}").into());
        Err(match code {
            34 => format!("libcuda.so is the toolkit's stub and no driver ({name})"),
            100 => format!("the NVIDIA driver has no device ({name})"),
            803 => {
                format!("the driver's library does not fit the kernel's module ({name}); restart the machine")
            }
            _ => format!("the NVIDIA driver does not start ({name})"),
        })
    }
}
