//! Where figures come from: the machine, the versions, the command. Nothing in it names the reader, the host or the card.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use cudarc::driver::result::{self, device};
use cudarc::driver::sys::{self, CUdevice, CUdevice_attribute};
use record::Provenance;

use crate::arguments::Arguments;
use crate::device::is_emulated_name;
use crate::libraries::Library;
use crate::nvml::Nvml;
use crate::origin::{self, Origin};
use crate::range;

/// The optimisation level of this build, such as `3`.
pub(crate) const OPT_LEVEL: &str = env!("LAB_OPT_LEVEL");

/// Gathers the provenance of a run on the first device, and a hand on the GPU to read its clock by.
///
/// # Errors
/// When the driver cannot be asked.
pub(crate) fn gather(
    arguments: &Arguments,
    origin: &Origin,
    libraries: &[Library],
) -> Result<(Provenance, Option<Nvml>)> {
    result::init().context("starting the CUDA driver (cuInit)")?;
    let gpu = device::get(0).context("asking for the first device (cuDeviceGet)")?;
    let name = device::get_name(gpu).context("asking for the device's name (cuDeviceGetName)")?;
    let emulated = is_emulated_name(&name);
    let nvml = if emulated { None } else { pci_address(gpu).and_then(|address| Nvml::open(&address)) };

    let mut facts = nvml.as_ref().map(Nvml::facts).unwrap_or_default();
    device_facts(gpu, &mut facts);
    facts.extend(libraries.iter().map(|library| (library.name.to_owned(), library.version.clone())));
    let (commit, dirty) = origin.commit();
    let provenance = Provenance {
        device: name,
        emulated,
        compute_capability: compute_capability(gpu)?,
        cuda_driver: driver_version()?,
        driver: nvml.as_ref().and_then(Nvml::driver_version).unwrap_or_default(),
        facts,
        host_cpu: host_cpu(),
        os: format!("{} {}", std::env::consts::OS, std::env::consts::ARCH),
        rustc: env!("LAB_RUSTC").to_owned(),
        cudarc: origin::cudarc_version(),
        opt_level: OPT_LEVEL.to_owned(),
        nvtx: range::COMPILED_IN,
        date: record::now(),
        commit,
        dirty,
        arguments: arguments.for_provenance(),
        seconds: 0.0,
    };
    Ok((provenance, nvml))
}

fn attribute(gpu: CUdevice, attribute: CUdevice_attribute) -> Option<i32> {
    // SAFETY: `gpu` came from `cuDeviceGet`.
    unsafe { device::get_attribute(gpu, attribute) }.ok()
}

fn compute_capability(gpu: CUdevice) -> Result<String> {
    let part = |which| attribute(gpu, which).context("asking for the compute capability");
    Ok(format!(
        "{}.{}",
        part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
        part(CUdevice_attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?
    ))
}

fn driver_version() -> Result<String> {
    let mut version = 0;
    // SAFETY: `version` outlives the call, which writes to it.
    unsafe { sys::cuDriverGetVersion(&mut version) }.result().context("asking for the driver's version")?;
    Ok(format!("{}.{}", version / 1000, version % 1000 / 10))
}

fn device_facts(gpu: CUdevice, facts: &mut BTreeMap<String, String>) {
    let count = attribute(gpu, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    facts.extend(count.map(|count| ("multiprocessors".to_owned(), count.to_string())));
    let cache = attribute(gpu, CUdevice_attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
    let mebibytes = |bytes| format!("{} MiB", f64::from(bytes) / f64::from(1 << 20));
    facts.extend(cache.map(|bytes| ("L2 cache".to_owned(), mebibytes(bytes))));
    // SAFETY: `gpu` came from `cuDeviceGet`.
    if let Ok(bytes) = unsafe { device::total_mem(gpu) } {
        facts.insert("memory".to_owned(), format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30)));
    }
}

/// The address by which the management library finds the same GPU. It is used here and stored nowhere.
fn pci_address(gpu: CUdevice) -> Option<String> {
    let mut address = [0; 32];
    // SAFETY: the buffer has the length that is passed, and `gpu` came from `cuDeviceGet`.
    let code = unsafe { sys::cuDeviceGetPCIBusId(address.as_mut_ptr(), 32, gpu) };
    code.result().ok()?;
    let bytes = address.map(|character| character as u8);
    let end = bytes.iter().position(|byte| *byte == 0)?;
    String::from_utf8(bytes[..end].to_vec()).ok()
}

/// The host processor's model and how many threads it runs.
fn host_cpu() -> String {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or("unknown processor", |(_, model)| model);
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    format!("{}, {threads} threads", model.trim())
}
