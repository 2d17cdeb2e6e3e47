//! `cuDevice*`: what the card is.

use std::ffi::c_char;

use super::{
    abi::{Out, Text, driver},
    error::{CUresult, Result},
    handle::Handle,
    pool::{self, Pool},
    state::{CUdevice, Device, device, devices, lock},
};
use crate::model::Limits;

/// The attributes that every emulated card answers alike, by number. Features that the emulated GPU does not have answer
/// 0, whatever the card has: a program that asks first must not be led to them.
const ATTRIBUTES: &[(u32, i32)] = &[
    (1, Limits::THREADS_PER_BLOCK as i32),
    (2, Limits::BLOCK[0] as i32),
    (3, Limits::BLOCK[1] as i32),
    (4, Limits::BLOCK[2] as i32),
    (5, Limits::GRID[0] as i32),
    (6, Limits::GRID[1] as i32),
    (7, Limits::GRID[2] as i32),
    (8, Limits::SHARED_PER_BLOCK as i32),
    (9, Limits::CONSTANT as i32),
    (10, Limits::WARP as i32),
    (11, i32::MAX), // bytes of a pitch
    (12, Limits::REGISTERS_PER_BLOCK as i32),
    (14, 512), // texture alignment
    (15, 1),   // copies overlap kernels
    (17, 0),   // no time limit
    (18, 0),   // not integrated
    (19, 1),   // maps host memory
    (20, 0),   // any number of contexts
    (21, 131_072),
    (22, 131_072),
    (23, 65_536),
    (24, 16_384),
    (25, 16_384),
    (26, 16_384),
    (27, 32_768),
    (28, 32_768),
    (29, 2048),
    (30, 512), // surface alignment
    (31, 1),   // concurrent kernels
    (34, 0),   // not a TCC driver
    (41, 1),   // unified addresses
    (42, 32_768),
    (43, 2048),
    (44, 1),
    (45, 32_768),
    (46, 32_768),
    (47, 8192),
    (48, 8192),
    (49, 32_768),
    (50, 0),  // PCI domain
    (51, 32), // texture pitch alignment
    (52, 32_768),
    (53, 32_768),
    (54, 2046),
    (55, 32_768),
    (56, 131_072),
    (57, 65_536),
    (58, 16_384),
    (59, 16_384),
    (60, 16_384),
    (61, 32_768),
    (62, 2048),
    (63, 32_768),
    (64, 32_768),
    (65, 2048),
    (66, 32_768),
    (67, 32_768),
    (68, 2046),
    (69, 268_435_456),
    (70, 131_072),
    (71, 65_000),
    (72, 2_097_120),
    (73, 32_768),
    (74, 32_768),
    (77, 32_768),
    (78, 1), // stream priorities
    (79, 1), // L1 for global memory
    (80, 1), // L1 for local memory
    (83, 1), // managed memory
    (84, 0), // one GPU a board
    (86, 0), // no native host atomics
    (88, 0), // no pageable memory in kernels
    (89, 1), // host and device use managed memory at once
    (90, 1), // preemption
    (91, 1), // registered memory has the host's addresses
    (92, 0), // stream memory operations
    (93, 0),
    (94, 0),
    (95, 1), // cooperative launches
    (96, 0), // over several devices
    (98, 1), // flushes remote writes
    (99, 1), // host memory can be registered
    (100, 0),
    (101, 0),
    (102, 0), // virtual memory management
    (103, 0),
    (104, 0),
    (105, 0),
    (107, 0), // compressible memory
    (110, 0),
    (112, 0), // sparse arrays
    (113, 1), // read-only registration
    (114, 0), // timeline semaphores
    (115, 1), // memory pools
    (116, 0), // GPUDirect RDMA
    (117, 0),
    (118, 0),
    (119, 0), // handles of memory pools
    (120, 0), // clusters
    (121, 0),
    (122, 1), // numbers of 64 bits that streams wait for
    (123, 1), // the comparison NOR there
    (124, 0), // dma-buf
    (125, 0), // interprocess events
    (126, 1), // memory synchronisation domains
    (127, 0), // tensor maps
    (128, 0), // fabric handles
    (129, 0), // unified function pointers
    (130, 0),
    (131, -1), // NUMA node of the device
    (132, 0),  // multicast
    (133, 0),  // MPS
    (134, -1), // NUMA node of the host
    (135, 0),
    (136, 0),
    (137, 0),
    (138, 0),
    (139, 0),
    (140, 0),
    (141, 0),
    (142, 0),
    (143, 0),
    (144, 0),
    (145, 0),
    (146, 0),
    (147, 0),
];

/// An attribute's value.
pub(crate) fn attribute(device: &Device, number: u32) -> Option<i32> {
    let model = device.model;
    let limits = model.limits;
    let value = match number {
        13 => model.clock_khz,
        16 => model.multiprocessors,
        32 => u32::from(model.ecc),
        33 => bus(device),
        35 => 0,
        36 => model.memory_clock_khz,
        37 => model.memory_bus_bits,
        38 => model.l2_bytes,
        39 => limits.threads_per_multiprocessor,
        40 => model.copy_engines,
        75 => model.compute_capability.0,
        76 => model.compute_capability.1,
        81 => limits.shared_per_multiprocessor,
        82 => limits.registers_per_multiprocessor,
        85 => device.ordinal,
        87 => model.double_ratio,
        97 => limits.shared_per_block_optin,
        106 => limits.blocks_per_multiprocessor,
        // From compute capability 8.0 on, a part of L2 can be set aside.
        108 if model.compute_capability >= (8, 0) => model.l2_bytes / 8 * 5,
        109 if model.compute_capability >= (8, 0) => 128 << 20,
        108 | 109 => 0,
        111 => limits.shared_reserved_per_block,
        34 | 17 => 0,
        _ => {
            let found = ATTRIBUTES.binary_search_by_key(&number, |attribute| attribute.0);
            return found.ok().map(|index| ATTRIBUTES[index].1);
        }
    };
    Some(value as i32)
}

/// `CUdevprop`.
#[repr(C)]
struct Properties {
    max_threads_per_block: i32,
    max_threads: [i32; 3],
    max_grid: [i32; 3],
    shared_per_block: i32,
    constant: i32,
    warp: i32,
    pitch: i32,
    registers_per_block: i32,
    clock_khz: i32,
    texture_align: i32,
}

driver! {
    /// Answers the device of an ordinal.
    call cuDeviceGet 2000 (answer: Out<CUdevice>, ordinal: i32) {
        answer.check()?;
        device(ordinal)?;
        answer.set(ordinal)
    }

    /// Answers how many devices there are.
    call cuDeviceGetCount 2000 (count: Out<i32>) {
        count.set(devices().len() as i32)
    }

    /// Answers the name, cut to `room` bytes with the zero at its end.
    call cuDeviceGetName 2000 (name: Out<c_char>, room: i32, ordinal: CUdevice) {
        let device = device(ordinal)?;
        name.set_text(device.model.name, usize::try_from(room).map_err(|_| CUresult::INVALID_VALUE)?)
    }

    /// Answers a UUID that depends on the ordinal alone.
    call cuDeviceGetUuid 9020, cuDeviceGetUuid_v2 11040 (uuid: Out<[u8; 16]>, ordinal: CUdevice) {
        let device = device(ordinal)?;
        let mut bytes = *b"emulated-gpu\0\0\0\0";
        bytes[15] = device.ordinal as u8;
        uuid.set(bytes)
    }

    /// Answers the bytes of device memory.
    call cuDeviceTotalMem_v2 3020 (bytes: Out<usize>, ordinal: CUdevice) {
        let device = device(ordinal)?;
        bytes.set(device.settings.memory as usize)
    }

    /// Answers an attribute.
    call cuDeviceGetAttribute 2000 (answer: Out<i32>, number: u32, ordinal: CUdevice) {
        answer.check()?;
        let device = device(ordinal)?;
        answer.set(attribute(device, number).ok_or(CUresult::INVALID_VALUE)?)
    }

    /// Answers what CUDA 2 asked for.
    call cuDeviceGetProperties 2000 (answer: Out<Properties>, ordinal: CUdevice) {
        let device = device(ordinal)?;
        answer.set(Properties {
            max_threads_per_block: Limits::THREADS_PER_BLOCK as i32,
            max_threads: Limits::BLOCK.map(|size| size as i32),
            max_grid: Limits::GRID.map(|size| size as i32),
            shared_per_block: Limits::SHARED_PER_BLOCK as i32,
            constant: Limits::CONSTANT as i32,
            warp: Limits::WARP as i32,
            pitch: i32::MAX,
            registers_per_block: Limits::REGISTERS_PER_BLOCK as i32,
            clock_khz: device.model.clock_khz as i32,
            texture_align: 512,
        })
    }

    /// Answers the compute capability.
    call cuDeviceComputeCapability 2000 (major: Out<i32>, minor: Out<i32>, ordinal: CUdevice) {
        let device = device(ordinal)?;
        minor.check()?;
        major.set(device.model.compute_capability.0 as i32)?;
        minor.set(device.model.compute_capability.1 as i32)
    }

    /// Answers `0000:01:00.0`.
    call cuDeviceGetPCIBusId 4010 (answer: Out<c_char>, room: i32, ordinal: CUdevice) {
        let device = device(ordinal)?;
        let room = usize::try_from(room).map_err(|_| CUresult::INVALID_VALUE)?;
        answer.set_text(&format!("0000:{:02X}:00.0", bus(device)), room)
    }

    /// Finds a device by what `cuDeviceGetPCIBusId` answers.
    call cuDeviceGetByPCIBusId 4010 (answer: Out<CUdevice>, name: Text) {
        answer.check()?;
        let name = name.get()?;
        // The domain and the function may be left out.
        let number = name.split(['.']).next().and_then(|name| name.rsplit(':').nth(1)).ok_or(CUresult::INVALID_VALUE)?;
        let number = u32::from_str_radix(number, 16).map_err(|_| CUresult::INVALID_VALUE)?;
        let found = devices().iter().find(|device| bus(device) == number).ok_or(CUresult::INVALID_DEVICE)?;
        answer.set(found.ordinal as CUdevice)
    }

    /// Answers whether kernels of one device may use memory of another: each may that of every other.
    call cuDeviceCanAccessPeer 4000 (answer: Out<i32>, ordinal: CUdevice, peer: CUdevice) {
        answer.check()?;
        device(ordinal)?;
        device(peer)?;
        answer.set(i32::from(ordinal != peer))
    }

    /// Answers what a pair of devices can do.
    call cuDeviceGetP2PAttribute 8000 (answer: Out<i32>, number: u32, ordinal: CUdevice, peer: CUdevice) {
        answer.check()?;
        device(ordinal)?;
        device(peer)?;
        if ordinal == peer {
            return Err(CUresult::INVALID_DEVICE);
        }
        answer.set(match number {
            1 | 5 => 0,
            2 | 3 => 1,
            4 => 0,
            _ => return Err(CUresult::INVALID_VALUE),
        })
    }

    /// Answers that no share of the multiprocessors can be asked for.
    call cuDeviceGetExecAffinitySupport 11040 (answer: Out<i32>, kind: u32, ordinal: CUdevice) {
        device(ordinal)?;
        if kind != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        answer.set(0)
    }

    /// Answers the pool that the device was born with.
    call cuDeviceGetDefaultMemPool 11020 (answer: Out<Handle<Pool>>, ordinal: CUdevice) {
        answer.check()?;
        answer.set(lock(pool::of(device(ordinal)?)).0)
    }

    /// Answers the pool that stream-ordered allocation takes from.
    call cuDeviceGetMemPool 11020 (answer: Out<Handle<Pool>>, ordinal: CUdevice) {
        answer.check()?;
        answer.set(lock(pool::of(device(ordinal)?)).1)
    }

    /// Chooses the pool that stream-ordered allocation takes from.
    call cuDeviceSetMemPool 11020 (ordinal: CUdevice, chosen: Handle<Pool>) {
        pool::choose(device(ordinal)?, chosen)
    }
}

/// The bus that the device seems to be on.
fn bus(device: &Device) -> u32 {
    device.ordinal + 1
}

/// Fails for an ordinal that is none.
pub(crate) fn check(ordinal: CUdevice) -> Result {
    device(ordinal).map(drop)
}
