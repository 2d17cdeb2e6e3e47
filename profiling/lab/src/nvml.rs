//! A GPU's own facts, from the management library that comes with the driver. Where there is none, there are no facts.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};

use libloading::Library;

/// A GPU as the management library knows it.
pub(crate) struct Nvml {
    library: Library,
    device: *mut c_void,
}

// SAFETY: the handle stands for a device in a library that may be called from any thread.
unsafe impl Send for Nvml {}

/// `nvmlClockType_t`.
const CLOCK_SM: c_uint = 1;
const CLOCK_MEMORY: c_uint = 2;

type Get = unsafe extern "C" fn(*mut c_void, *mut c_uint) -> c_int;
type GetTwo = unsafe extern "C" fn(*mut c_void, *mut c_uint, *mut c_uint) -> c_int;
type GetClock = unsafe extern "C" fn(*mut c_void, c_uint, *mut c_uint) -> c_int;

impl Nvml {
    /// The GPU at a PCI address, such as `0000:65:00.0`.
    pub(crate) fn open(pci_address: &str) -> Option<Self> {
        let address = CString::new(pci_address).ok()?;
        // SAFETY: the library's initialisers have no precondition, and the types are those of nvml.h.
        unsafe {
            let library = Library::new("libnvidia-ml.so.1").ok()?;
            let init = library.get::<unsafe extern "C" fn() -> c_int>(b"nvmlInit_v2\0").ok()?;
            if init() != 0 {
                return None;
            }
            type Find = unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> c_int;
            let find = library.get::<Find>(b"nvmlDeviceGetHandleByPciBusId_v2\0").ok()?;
            let mut device = std::ptr::null_mut();
            if find(address.as_ptr(), &mut device) != 0 {
                return None;
            }
            Some(Self { library, device })
        }
    }

    /// The kernel driver's version, such as `580.159.04`.
    pub(crate) fn driver_version(&self) -> Option<String> {
        let mut version = [0; 80];
        type Version = unsafe extern "C" fn(*mut c_char, c_uint) -> c_int;
        // SAFETY: the type is that of nvml.h, and the buffer has the length that is passed.
        unsafe {
            let get = self.library.get::<Version>(b"nvmlSystemGetDriverVersion\0").ok()?;
            if get(version.as_mut_ptr(), 80) != 0 {
                return None;
            }
            Some(CStr::from_ptr(version.as_ptr()).to_string_lossy().into_owned())
        }
    }

    /// The clock of the multiprocessors at this moment, in MHz.
    pub(crate) fn sm_clock(&self) -> Option<u32> {
        self.clock(b"nvmlDeviceGetClockInfo\0", CLOCK_SM)
    }

    /// What a reader may want to compare. None of it names the card or the machine.
    pub(crate) fn facts(&self) -> BTreeMap<String, String> {
        let mut facts = BTreeMap::new();
        let mut add = |name: &str, fact: Option<String>| {
            facts.extend(fact.map(|fact| (name.to_owned(), fact)));
        };
        let mhz = |clock: u32| format!("{clock} MHz");
        add("SM clock, highest", self.clock(b"nvmlDeviceGetMaxClockInfo\0", CLOCK_SM).map(mhz));
        add("memory clock", self.clock(b"nvmlDeviceGetClockInfo\0", CLOCK_MEMORY).map(mhz));
        let watts = |milliwatts: u32| format!("{} W", milliwatts / 1000);
        add("power limit", self.get(b"nvmlDeviceGetEnforcedPowerLimit\0").map(watts));
        let switch = |(now, _): (u32, u32)| if now == 0 { "off".to_owned() } else { "on".to_owned() };
        add("ECC", self.get_two(b"nvmlDeviceGetEccMode\0").map(switch));
        add("MIG", self.get_two(b"nvmlDeviceGetMigMode\0").map(switch));
        let generation = self.get(b"nvmlDeviceGetMaxPcieLinkGeneration\0");
        let lanes = self.get(b"nvmlDeviceGetMaxPcieLinkWidth\0");
        add("PCIe", generation.zip(lanes).map(|(generation, lanes)| format!("{generation}.0 x{lanes}")));
        facts
    }

    fn clock(&self, function: &[u8], which: c_uint) -> Option<u32> {
        let mut megahertz = 0;
        // SAFETY: the functions that take a clock have this type in nvml.h.
        unsafe {
            let get = self.library.get::<GetClock>(function).ok()?;
            (get(self.device, which, &mut megahertz) == 0).then_some(megahertz)
        }
    }

    fn get(&self, function: &[u8]) -> Option<u32> {
        let mut value = 0;
        // SAFETY: the functions that are asked by this name have this type in nvml.h.
        unsafe {
            let get = self.library.get::<Get>(function).ok()?;
            (get(self.device, &mut value) == 0).then_some(value)
        }
    }

    fn get_two(&self, function: &[u8]) -> Option<(u32, u32)> {
        let (mut one, mut other) = (0, 0);
        // SAFETY: the functions that are asked by this name have this type in nvml.h.
        unsafe {
            let get = self.library.get::<GetTwo>(function).ok()?;
            (get(self.device, &mut one, &mut other) == 0).then_some((one, other))
        }
    }
}
