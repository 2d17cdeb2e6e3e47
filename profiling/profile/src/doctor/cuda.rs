//! The driver, the GPU with its clocks, and the run-time compiler.

use std::ffi::{CStr, c_char, c_int};
use std::path::{Path, PathBuf};

use libloading::Library;

use super::Check;
use crate::invocation::Invocation;
use crate::tools::Places;

pub(super) const DRIVER: &str = "driver";
pub(super) const GPU: &str = "GPU";

/// What the driver says of itself.
pub(super) struct Facts {
    /// The kernel module's version.
    module: Option<String>,
    /// What `libcuda` says, or why it says nothing.
    library: Result<Driver, String>,
}

struct Driver {
    /// The CUDA version that it speaks, as 13000 for 13.0.
    cuda: c_int,
    /// The devices' names, or the error of `cuInit`.
    devices: Result<Vec<String>, c_int>,
}

impl Facts {
    pub(super) fn gather() -> Self {
        let module = std::fs::read_to_string("/proc/driver/nvidia/version").ok();
        let module = module.as_deref().and_then(module_version).map(str::to_owned);
        Self { module, library: driver() }
    }

    pub(super) fn checks(&self, places: &Places) -> Vec<Check> {
        vec![self.driver(), self.gpu(), self.clocks(places), self.nvrtc(places)]
    }

    fn driver(&self) -> Check {
        let module = self.module.as_deref().unwrap_or("unknown");
        match &self.library {
            Ok(driver) => Check::ok(DRIVER, format!("{module}, speaks CUDA {}", version(driver.cuda))),
            Err(reason) => Check::missing(
                DRIVER,
                format!("libcuda.so.1 does not load ({reason})"),
                "install NVIDIA's driver; in a container start it with --gpus all. Without one, chapters run on the emulated GPU",
            ),
        }
    }

    fn gpu(&self) -> Check {
        let none = "everything but profiling works on the emulated GPU";
        match self.library.as_ref().map(|driver| &driver.devices) {
            Ok(Ok(devices)) if devices.is_empty() => Check::missing(GPU, "the driver sees none", none),
            Ok(Ok(devices)) if devices.iter().all(|name| name.to_lowercase().contains("emulated")) => {
                Check::missing(
                    GPU,
                    format!("{}, which has no profile", devices.join(", ")),
                    "take it off LD_LIBRARY_PATH",
                )
            }
            Ok(Ok(devices)) => Check::ok(GPU, devices.join(", ")),
            // 100 is CUDA_ERROR_NO_DEVICE.
            Ok(Err(100)) => Check::missing(GPU, "the driver sees none (CUDA_ERROR_NO_DEVICE)", none),
            Ok(Err(code)) => Check::missing(
                GPU,
                format!("cuInit answers error {code}"),
                "the kernel module and libcuda often differ after an update: nvidia-smi says so, a reboot helps",
            ),
            Err(_) => Check::missing(GPU, "no driver to ask", none),
        }
    }

    fn clocks(&self, places: &Places) -> Check {
        const NAME: &str = "clocks";
        const FIELDS: &str = "clocks.sm,clocks.max.sm,clocks.mem,clocks.max.mem,power.limit,mig.mode.current";
        let line = places.program("nvidia-smi").map(|program| {
            Invocation::new(program)
                .arguments([format!("--query-gpu={FIELDS}").as_str(), "--format=csv,noheader,nounits"])
                .run(Path::new("/"))
        });
        let fields: Option<Vec<String>> = match &line {
            Some(Ok(said)) if said.success => said
                .output
                .lines()
                .next()
                .map(|line| line.split(',').map(|field| field.trim().to_owned()).collect()),
            _ => None,
        };
        match fields.as_deref() {
            Some([sm, sm_max, memory, memory_max, power, mig]) => Check::ok(
                NAME,
                format!(
                    "now {sm} of {sm_max} MHz, memory {memory} of {memory_max} MHz, limit {power} W, MIG {}; never \
                     changed by this program",
                    mig.to_lowercase()
                ),
            ),
            _ => Check::optional(NAME, "nvidia-smi does not say", "comes with NVIDIA's driver"),
        }
    }

    fn nvrtc(&self, places: &Places) -> Check {
        const NAME: &str = "NVRTC";
        let Some((major, minor, file)) = nvrtc(places) else {
            return Check::optional(
                NAME,
                "not found: kernels that a chapter compiles at run time are not run",
                "comes with the CUDA toolkit, and as pip's nvidia-cuda-nvrtc-cu12",
            );
        };
        let found = format!("{major}.{minor} ({file})");
        match &self.library {
            Ok(driver) if major * 1000 + minor * 10 > driver.cuda => Check::optional(
                NAME,
                format!(
                    "{found} is newer than the driver's CUDA {}: the driver may refuse its PTX",
                    version(driver.cuda)
                ),
                "ask NVRTC for a cubin of this GPU, install the NVRTC of the driver's version, or update the driver",
            ),
            _ => Check::ok(NAME, found),
        }
    }
}

fn driver() -> Result<Driver, String> {
    // SAFETY: libcuda's initialisers only set up its own state; the name is the driver's soname, which no other library
    // carries but the emulated GPU, written for being loaded like this.
    let library = unsafe { Library::new("libcuda.so.1") }.map_err(|error| error.to_string())?;
    let symbol = |name: &str| format!("it has no {name}");
    // SAFETY: the four signatures are those of cuda.h, and the same in every version since 2.2.
    let (version, init, count, name) = unsafe {
        (
            library
                .get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDriverGetVersion\0")
                .map_err(|_| symbol("cuDriverGetVersion"))?,
            library.get::<unsafe extern "C" fn(u32) -> c_int>(b"cuInit\0").map_err(|_| symbol("cuInit"))?,
            library
                .get::<unsafe extern "C" fn(*mut c_int) -> c_int>(b"cuDeviceGetCount\0")
                .map_err(|_| symbol("cuDeviceGetCount"))?,
            library
                .get::<unsafe extern "C" fn(*mut c_char, c_int, c_int) -> c_int>(b"cuDeviceGetName\0")
                .map_err(|_| symbol("cuDeviceGetName"))?,
        )
    };
    let mut cuda = 0;
    // SAFETY: the pointer is to a live integer, and the call needs no cuInit.
    let code = unsafe { version(&mut cuda) };
    if code != 0 {
        return Err(format!("cuDriverGetVersion answers error {code}"));
    }
    // SAFETY: 0 is the only value that the call allows.
    let code = unsafe { init(0) };
    if code != 0 {
        return Ok(Driver { cuda, devices: Err(code) });
    }
    let mut devices = 0;
    // SAFETY: the pointer is to a live integer, and cuInit has succeeded.
    let code = unsafe { count(&mut devices) };
    if code != 0 {
        return Ok(Driver { cuda, devices: Err(code) });
    }
    let mut names = Vec::new();
    for device in 0..devices {
        let mut buffer = [0 as c_char; 256];
        // SAFETY: the buffer has the length that is passed, and a device's handle is its ordinal.
        let code = unsafe { name(buffer.as_mut_ptr(), buffer.len() as c_int, device) };
        if code != 0 {
            return Ok(Driver { cuda, devices: Err(code) });
        }
        let last = buffer.len() - 1;
        buffer[last] = 0;
        // SAFETY: the buffer is live and ends with a NUL, at the latest the one just written.
        let name = unsafe { CStr::from_ptr(buffer.as_ptr()) };
        names.push(name.to_string_lossy().into_owned());
    }
    Ok(Driver { cuda, devices: Ok(names) })
}

/// The version of the first NVRTC that loads, and its file's name.
fn nvrtc(places: &Places) -> Option<(c_int, c_int, String)> {
    let mut candidates: Vec<PathBuf> =
        ["libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so"].map(PathBuf::from).into();
    if let Some(nvcc) = places.program("nvcc")
        && let Some(toolkit) = nvcc.parent().and_then(Path::parent)
    {
        candidates.push(toolkit.join("lib64/libnvrtc.so"));
    }
    candidates.into_iter().find_map(|file| {
        // SAFETY: NVRTC's initialisers only set up its own state.
        let library = unsafe { Library::new(&file) }.ok()?;
        // SAFETY: the signature is that of nvrtc.h, and the same in every version.
        let version = unsafe {
            library.get::<unsafe extern "C" fn(*mut c_int, *mut c_int) -> c_int>(b"nvrtcVersion\0")
        }
        .ok()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to live integers.
        let code = unsafe { version(&mut major, &mut minor) };
        let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
        (code == 0).then_some((major, minor, name))
    })
}

/// `580.159.04` in the kernel module's words about itself.
fn module_version(text: &str) -> Option<&str> {
    let line = text.lines().find(|line| line.starts_with("NVRM version"))?;
    line.split_whitespace().find(|word| {
        word.starts_with(|c: char| c.is_ascii_digit()) && word.chars().all(|c| c.is_ascii_digit() || c == '.')
    })
}

fn version(cuda: c_int) -> String {
    format!("{}.{}", cuda / 1000, cuda % 1000 / 10)
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn the_module_says_its_version() {
        let open = "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.159.04  Release Build\nGCC version: 15\n";
        assert_eq!(module_version(open), Some("580.159.04"));
        let closed = "NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12\n";
        assert_eq!(module_version(closed), Some("535.183.01"));
        assert_eq!(module_version(""), None);
    }

    #[test]
    fn no_device_is_told_apart_from_no_driver() {
        let facts = |devices| Facts { module: None, library: Ok(Driver { cuda: 13000, devices }) };
        assert!(facts(Err(100)).gpu().found.contains("CUDA_ERROR_NO_DEVICE"));
        assert!(facts(Err(803)).gpu().found.contains("803"));
        assert_eq!(facts(Ok(vec!["NVIDIA H200".into()])).gpu().state, State::Ok);
        assert_eq!(facts(Ok(vec!["NVIDIA H200 (emulated)".into()])).gpu().state, State::Missing);
        let none = Facts { module: None, library: Err("not found".into()) };
        assert_eq!((none.driver().state, none.gpu().state), (State::Missing, State::Missing));
    }
}
