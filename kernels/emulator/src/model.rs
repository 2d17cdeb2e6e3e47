//! The cards that the emulated GPU can stand for.
//!
//! A model decides what attribute queries answer and which launches are refused; it never changes what a kernel
//! computes. Every figure is what the card's own driver answers.

/// A card.
#[derive(Clone, Debug, PartialEq)]
pub struct Model {
    /// The word for it in `EMULATED_GPU_MODEL`.
    pub key: &'static str,
    /// The name that `cuDeviceGetName` answers. It always says that the card is emulated.
    pub name: &'static str,
    /// Major and minor.
    pub compute_capability: (u32, u32),
    /// Streaming multiprocessors.
    pub multiprocessors: u32,
    /// Bytes of device memory.
    pub total_memory: u64,
    /// Bytes of L2 cache.
    pub l2_bytes: u32,
    /// Boost clock in kHz.
    pub clock_khz: u32,
    /// Memory clock in kHz.
    pub memory_clock_khz: u32,
    /// Width of the memory bus in bits.
    pub memory_bus_bits: u32,
    /// Copy engines.
    pub copy_engines: u32,
    /// Error correction is on.
    pub ecc: bool,
    /// Single-precision operations a double-precision one costs.
    pub double_ratio: u32,
    /// What every card of its compute capability has.
    pub limits: Limits,
}

/// Limits that the compute capability sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Threads resident on a multiprocessor.
    pub threads_per_multiprocessor: u32,
    /// Blocks resident on a multiprocessor.
    pub blocks_per_multiprocessor: u32,
    /// 32-bit registers of a multiprocessor.
    pub registers_per_multiprocessor: u32,
    /// Bytes of shared memory of a multiprocessor.
    pub shared_per_multiprocessor: u32,
    /// Bytes of shared memory that a block may have after its kernel asked for more than 48 KiB.
    pub shared_per_block_optin: u32,
    /// Bytes of each block's shared memory that the system keeps.
    pub shared_reserved_per_block: u32,
}

impl Limits {
    /// Threads of a block.
    pub const THREADS_PER_BLOCK: u32 = 1024;
    /// Threads of a block in each dimension.
    pub const BLOCK: [u32; 3] = [1024, 1024, 64];
    /// Blocks of a grid in each dimension.
    pub const GRID: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];
    /// Registers of a block.
    pub const REGISTERS_PER_BLOCK: u32 = 65_536;
    /// Registers of a thread.
    pub const REGISTERS_PER_THREAD: u32 = 255;
    /// Bytes of shared memory that every kernel may have.
    pub const SHARED_PER_BLOCK: u32 = 48 << 10;
    /// Bytes of parameters that a kernel can have.
    pub const PARAM_BYTES: u32 = 32_764;
    /// Bytes of shared memory that a block can have on any card, if its kernel consents.
    pub const MOST_SHARED_PER_BLOCK: u32 = 227 << 10;
    /// Bytes of constant memory.
    pub const CONSTANT: u32 = 64 << 10;
    /// Threads of a warp.
    pub const WARP: u32 = 32;
}

impl Model {
    /// The model of a word, in any case.
    pub fn find(key: &str) -> Option<&'static Model> {
        MODELS.iter().find(|model| model.key.eq_ignore_ascii_case(key))
    }
}

const TURING: Limits = Limits {
    threads_per_multiprocessor: 1024,
    blocks_per_multiprocessor: 16,
    registers_per_multiprocessor: 65_536,
    shared_per_multiprocessor: 64 << 10,
    shared_per_block_optin: 64 << 10,
    shared_reserved_per_block: 0,
};

const AMPERE: Limits = Limits {
    threads_per_multiprocessor: 2048,
    blocks_per_multiprocessor: 32,
    shared_per_multiprocessor: 164 << 10,
    shared_per_block_optin: 163 << 10,
    shared_reserved_per_block: 1 << 10,
    ..TURING
};

const AMPERE_86: Limits = Limits {
    threads_per_multiprocessor: 1536,
    blocks_per_multiprocessor: 16,
    shared_per_multiprocessor: 100 << 10,
    shared_per_block_optin: 99 << 10,
    ..AMPERE
};

const ADA: Limits = Limits { blocks_per_multiprocessor: 24, ..AMPERE_86 };

const HOPPER: Limits =
    Limits { shared_per_multiprocessor: 228 << 10, shared_per_block_optin: 227 << 10, ..AMPERE };

/// Every model; the first is the default.
pub static MODELS: &[Model] = &[
    Model {
        key: "h200",
        name: "Emulated NVIDIA H200",
        compute_capability: (9, 0),
        multiprocessors: 132,
        total_memory: 150_109_880_320,
        l2_bytes: 60 << 20,
        clock_khz: 1_980_000,
        memory_clock_khz: 3_201_000,
        memory_bus_bits: 6016,
        copy_engines: 3,
        ecc: true,
        double_ratio: 2,
        limits: HOPPER,
    },
    Model {
        key: "h100",
        name: "Emulated NVIDIA H100 80GB HBM3",
        compute_capability: (9, 0),
        multiprocessors: 132,
        total_memory: 84_929_347_584,
        l2_bytes: 50 << 20,
        clock_khz: 1_980_000,
        memory_clock_khz: 2_619_000,
        memory_bus_bits: 5120,
        copy_engines: 3,
        ecc: true,
        double_ratio: 2,
        limits: HOPPER,
    },
    Model {
        key: "a100",
        name: "Emulated NVIDIA A100-SXM4-80GB",
        compute_capability: (8, 0),
        multiprocessors: 108,
        total_memory: 84_974_239_744,
        l2_bytes: 40 << 20,
        clock_khz: 1_410_000,
        memory_clock_khz: 1_593_000,
        memory_bus_bits: 5120,
        copy_engines: 3,
        ecc: true,
        double_ratio: 2,
        limits: AMPERE,
    },
    Model {
        key: "a10",
        name: "Emulated NVIDIA A10",
        compute_capability: (8, 6),
        multiprocessors: 72,
        total_memory: 23_836_098_560,
        l2_bytes: 6 << 20,
        clock_khz: 1_695_000,
        memory_clock_khz: 6_251_000,
        memory_bus_bits: 384,
        copy_engines: 2,
        ecc: true,
        double_ratio: 32,
        limits: AMPERE_86,
    },
    Model {
        key: "l40s",
        name: "Emulated NVIDIA L40S",
        compute_capability: (8, 9),
        multiprocessors: 142,
        total_memory: 47_697_362_944,
        l2_bytes: 96 << 20,
        clock_khz: 2_520_000,
        memory_clock_khz: 9_001_000,
        memory_bus_bits: 384,
        copy_engines: 2,
        ecc: true,
        double_ratio: 64,
        limits: ADA,
    },
    Model {
        key: "l4",
        name: "Emulated NVIDIA L4",
        compute_capability: (8, 9),
        multiprocessors: 58,
        total_memory: 23_660_724_224,
        l2_bytes: 48 << 20,
        clock_khz: 2_040_000,
        memory_clock_khz: 6_251_000,
        memory_bus_bits: 192,
        copy_engines: 2,
        ecc: true,
        double_ratio: 64,
        limits: ADA,
    },
    Model {
        key: "t4",
        name: "Emulated Tesla T4",
        compute_capability: (7, 5),
        multiprocessors: 40,
        total_memory: 15_828_320_256,
        l2_bytes: 4 << 20,
        clock_khz: 1_590_000,
        memory_clock_khz: 5_001_000,
        memory_bus_bits: 256,
        copy_engines: 3,
        ecc: true,
        double_ratio: 32,
        limits: TURING,
    },
    Model {
        key: "rtx3090",
        name: "Emulated NVIDIA GeForce RTX 3090",
        compute_capability: (8, 6),
        multiprocessors: 82,
        total_memory: 25_438_126_080,
        l2_bytes: 6 << 20,
        clock_khz: 1_695_000,
        memory_clock_khz: 9_751_000,
        memory_bus_bits: 384,
        copy_engines: 2,
        ecc: false,
        double_ratio: 32,
        limits: AMPERE_86,
    },
    Model {
        key: "rtx4090",
        name: "Emulated NVIDIA GeForce RTX 4090",
        compute_capability: (8, 9),
        multiprocessors: 128,
        total_memory: 25_386_352_640,
        l2_bytes: 72 << 20,
        clock_khz: 2_520_000,
        memory_clock_khz: 10_501_000,
        memory_bus_bits: 384,
        copy_engines: 2,
        ecc: false,
        double_ratio: 64,
        limits: ADA,
    },
];
