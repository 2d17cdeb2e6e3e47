//! Kernels from a real compiler, from loading to results.

use std::sync::Mutex;

use emulator::{
    counters::Counters,
    grid::{self, Launch, Machine, Stop},
    memory::{Kind, Memory},
    model::MODELS,
    module::{self, Module},
    settings::Settings,
};

struct Gpu {
    memory: Memory,
    module: Module,
    settings: Settings,
    printed: Mutex<Vec<u8>>,
}

impl Gpu {
    fn new(ptx: &str, threads: usize) -> Gpu {
        let memory = Memory::new(1 << 30).unwrap();
        let module = module::load(ptx, &memory, &MODELS[0]).unwrap_or_else(|error| panic!("{error}"));
        let settings = Settings { threads, ..Settings::read([]).unwrap() };
        Gpu { memory, module, settings, printed: Mutex::default() }
    }

    fn upload<T: Copy>(&self, values: &[T]) -> u64 {
        let bytes = size_of_val(values) as u64;
        let address = self.memory.allocate(bytes, Kind::Device).unwrap();
        let pointer = self.memory.host_pointer(address, bytes).unwrap();
        // SAFETY: the allocation has that many bytes, and no kernel runs.
        unsafe { pointer.cast::<T>().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        address
    }

    fn download<T: Copy>(&self, address: u64, count: usize) -> Vec<T> {
        let pointer = self.memory.host_pointer(address, (count * size_of::<T>()) as u64).unwrap();
        // SAFETY: the allocation has that many bytes, and no kernel runs.
        unsafe { std::slice::from_raw_parts(pointer.cast::<T>(), count) }.to_vec()
    }

    fn launch(
        &self,
        name: &str,
        grid: [u32; 3],
        block: [u32; 3],
        params: &[&[u8]],
    ) -> Result<Counters, Stop> {
        let kernel = &self.module.kernels[name];
        let mut bytes = vec![0; kernel.param_bytes as usize];
        for (param, value) in kernel.params.iter().zip(params) {
            bytes[param.offset as usize..][..value.len()].copy_from_slice(value);
        }
        let machine = Machine {
            memory: &self.memory,
            model: &MODELS[0],
            settings: &self.settings,
            printed: &self.printed,
            stack_bytes: 1024,
        };
        let launch = Launch {
            kernel,
            module: &self.module,
            grid,
            block,
            dynamic_shared_bytes: 0,
            params: bytes,
            cooperative: false,
        };
        grid::run(&machine, &launch)
    }
}

const VECTOR_ADD: &str = include_str!("ptx/bench/kernels.ptx");

#[test]
fn vector_add() {
    for n in [1usize, 31, 33, 1000] {
        let gpu = Gpu::new(VECTOR_ADD, 2);
        let a: Vec<f32> = (0..n).map(|i| i as f32).collect();
        let b: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
        let (a, b, c) = (gpu.upload(&a), gpu.upload(&b), gpu.upload(&vec![0f32; n]));
        let blocks = n.div_ceil(256) as u32;
        let params = [&a.to_le_bytes()[..], &b.to_le_bytes(), &c.to_le_bytes(), &(n as i32).to_le_bytes()];
        let counters = gpu.launch("vector_add", [blocks, 1, 1], [256, 1, 1], &params).unwrap();
        assert_eq!(gpu.download::<f32>(c, n), (0..n).map(|i| 1.5 * i as f32).collect::<Vec<_>>());
        assert_eq!(counters.global_store.sectors, n.div_ceil(8) as u64);
    }
}
