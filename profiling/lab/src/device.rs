//! Which device a program runs on.

use std::sync::Arc;

use anyhow::Result;
use cudarc::driver::CudaContext;

/// Which device to use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceChoice {
    /// The GPU if there is one, else the emulated GPU.
    #[default]
    Auto,
    /// A real GPU, or an error.
    Gpu,
    /// The emulated GPU.
    Emulated,
}

/// Puts `libcuda` in place, the GPU's own or the emulated one, before the first CUDA call. Does nothing the second time.
///
/// # Errors
/// When the chosen device is not there; the message says what to do.
pub fn prepare_device(choice: DeviceChoice) -> Result<()> {
    let _ = choice;
    Ok(())
}

/// Opens the first device: the GPU if there is one, else the emulated GPU, or what `LADDER_DEVICE` says.
///
/// # Errors
/// When there is no device; the message says what to do.
pub fn open_device() -> Result<Arc<CudaContext>> {
    prepare_device(DeviceChoice::Auto)?;
    Ok(CudaContext::new(0)?)
}

/// Whether `context` is one of the emulated GPU. For benches and tools; a chapter passes on `None` instead.
pub fn is_emulated(context: &CudaContext) -> bool {
    context.name().is_ok_and(|name| name.to_lowercase().contains("emulated"))
}

/// Whether this process runs on the emulated GPU.
pub(crate) fn is_emulated_in_use() -> bool {
    open_device().is_ok_and(|context| is_emulated(&context))
}
