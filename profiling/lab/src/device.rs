//! Which device a program runs on, and how the CUDA driver behind it gets into place.
//!
//! cudarc opens the driver by name at the first CUDA call, asking for `libcuda.so`, then for versioned names down to
//! `libcuda.so.1`. So everything is decided before that call:
//!
//! 1. A real driver wins if it has a device. Its library is opened here, the way cudarc will, and asked.
//! 2. Else the emulated GPU: `libemulator.so`, which names itself `libcuda.so.1`, is opened for all (`RTLD_GLOBAL`). The
//!    dynamic loader matches the names of what is loaded already, so cudarc's request is answered with it.
//! 3. Where a real `libcuda.so` lies in the way (a driver without a device, or `--device emulated` on a GPU machine), the
//!    loader would find that file first. There the program is started [again](crate::restart) with a folder first on its
//!    library path that holds the emulated driver under both names. In a chapter that is before any thread; a test program
//!    is started again by the first test that opens a device.

mod emulated;
mod probe;

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use anyhow::{Context, Result, anyhow, bail};
use cudarc::driver::CudaContext;

use probe::Answer;

/// Which device to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DeviceChoice {
    /// The GPU if there is one, else the emulated GPU.
    #[default]
    Auto,
    /// A real GPU, or an error.
    Gpu,
    /// The emulated GPU.
    Emulated,
}

impl DeviceChoice {
    /// What the environment variable `LADDER_DEVICE` says, for tests and benches: `auto`, `gpu` or `emulated`.
    ///
    /// # Errors
    /// When it says something else.
    pub fn from_environment() -> Result<Self> {
        use clap::ValueEnum;
        match std::env::var("LADDER_DEVICE") {
            Err(_) => Ok(Self::Auto),
            Ok(word) => Self::from_str(&word, true)
                .map_err(|_| anyhow!("LADDER_DEVICE is `{word}`; it can be auto, gpu or emulated")),
        }
    }
}

/// The driver that a process uses, once it is in place.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Driver {
    /// Whether it is the emulated GPU's.
    pub(crate) emulated: bool,
}

/// Puts `libcuda` in place, the GPU's own or the emulated one, before the first CUDA call. Does nothing the second time.
///
/// # Errors
/// When the chosen device is not there; the message says what to do.
pub fn prepare_device(choice: DeviceChoice) -> Result<()> {
    prepare(choice, |_| Ok(Vec::new())).map(|_| ())
}

/// Opens the first device: the GPU if there is one, else the emulated GPU, or what `LADDER_DEVICE` says. For tests,
/// benches and chapters that use cudarc's safe layer.
///
/// # Errors
/// When there is no device; the message says what to do.
pub fn open_device() -> Result<Arc<CudaContext>> {
    if prepared().is_none() {
        prepare_device(DeviceChoice::from_environment()?)?;
    }
    CudaContext::new(0).context("opening device 0")
}

/// What this device cannot give, as a sentence for a reader; empty for a GPU.
pub fn what_is_missing(context: &CudaContext) -> &'static str {
    match is_emulated(context) {
        true => "counts are exact; times need an NVIDIA GPU and its driver",
        false => "",
    }
}

/// Whether `context` is one of the emulated GPU. For tools; a chapter passes on `None` instead.
pub fn is_emulated(context: &CudaContext) -> bool {
    context.name().is_ok_and(|name| is_emulated_name(&name))
}

/// Readings of a clock of the device, such as `%globaltimer` or `clock64()`, for who draws or compares them. `None` on the
/// emulated GPU, whose clocks count instructions.
pub fn device_clock<T>(readings: T) -> Option<T> {
    (!is_emulated_in_use()).then_some(readings)
}

/// Whether this process runs on the emulated GPU. Without a driver in place there is nothing to run on, nor to time.
pub(crate) fn is_emulated_in_use() -> bool {
    prepared().is_some_and(|driver| driver.emulated)
}

/// The emulated GPU always says so in its name.
pub(crate) fn is_emulated_name(name: &str) -> bool {
    name.to_lowercase().contains("emulated")
}

/// As [`prepare_device`]; `folders` gives, for the driver's CUDA version, further folders that must be on the library path.
pub(crate) fn prepare(
    choice: DeviceChoice,
    folders: impl FnOnce(u32) -> Result<Vec<PathBuf>>,
) -> Result<Driver> {
    let driver = PREPARED
        .get_or_init(|| put_in_place(choice, folders).map_err(|error| format!("{error:#}")))
        .clone()
        .map_err(anyhow::Error::msg)?;
    let other = match choice {
        DeviceChoice::Auto => false,
        DeviceChoice::Gpu => driver.emulated,
        DeviceChoice::Emulated => !driver.emulated,
    };
    if other {
        bail!("this process has opened the other device already; a process uses the GPU or the emulated GPU");
    }
    Ok(driver)
}

static PREPARED: OnceLock<Result<Driver, String>> = OnceLock::new();

fn prepared() -> Option<&'static Driver> {
    PREPARED.get()?.as_ref().ok()
}

fn put_in_place(choice: DeviceChoice, folders: impl FnOnce(u32) -> Result<Vec<PathBuf>>) -> Result<Driver> {
    let (answer, in_the_way) = match choice {
        DeviceChoice::Gpu => match probe::loaders_driver() {
            Ok(answer) if answer.emulated => bail!(
                "no GPU to run on: the library path holds the emulated driver; leave out `--device gpu`, or take \
                 the emulated driver off the path"
            ),
            Ok(answer) => (answer, None),
            Err(reason) => {
                bail!("no GPU to run on: {reason}; leave out `--device gpu` to run on the emulated GPU")
            }
        },
        DeviceChoice::Auto => match probe::loaders_driver() {
            Ok(answer) => (answer, None),
            Err(reason) => emulated_driver().with_context(|| format!("there is no GPU here: {reason}"))?,
        },
        DeviceChoice::Emulated => emulated_driver()?,
    };
    let last = folders(answer.major)?;
    if in_the_way.is_some() || (!last.is_empty() && !crate::restart::restarted()) {
        crate::restart::restart(&Vec::from_iter(in_the_way), &last)?;
    }
    Ok(Driver { emulated: answer.emulated })
}

/// Loads the emulated driver. With its answer comes the folder of links that a restart needs, if another driver lies in
/// the way.
fn emulated_driver() -> Result<(Answer, Option<PathBuf>)> {
    let path = emulated::find()?;
    let library = probe::open_for_all(&path)?;
    let answer = probe::ask(&library)
        .map_err(|reason| anyhow!("the emulated GPU in {} does not start: {reason}", path.display()))?;
    let in_the_way = !probe::is_loaders_choice(&library);
    // It stays loaded for the life of the process, as cudarc keeps a driver.
    std::mem::forget(library);
    let folder = in_the_way.then(|| emulated::links(&path)).transpose()?;
    Ok((answer, folder))
}
