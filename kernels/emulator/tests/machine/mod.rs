//! An emulated GPU without its driver, for tests that look at what the driver does not show.
#![allow(dead_code, reason = "each test program uses a part of it")]

mod shape;

use std::sync::{Mutex, atomic::AtomicBool};

use emulator::{
    counters::Counters,
    grid::{self, Launch, Machine, Stop},
    memory::{Kind, Memory, View},
    model::{MODELS, Model},
    module::{self, Level, LoadError, Module},
    settings::{Checks, Settings},
};
pub(crate) use shape::Shape;

/// A device with one module.
pub(crate) struct Gpu {
    pub(crate) memory: Memory,
    pub(crate) module: Module,
    pub(crate) model: &'static Model,
    pub(crate) settings: Settings,
    pub(crate) printed: Mutex<Vec<u8>>,
}

impl Gpu {
    pub(crate) fn new(ptx: &str) -> Gpu {
        Gpu::load(ptx, Level::host()).unwrap_or_else(|error| panic!("{error}"))
    }

    pub(crate) fn load(ptx: &str, level: Level) -> Result<Gpu, LoadError> {
        Gpu::load_with(ptx, level, Checks::default())
    }

    pub(crate) fn load_with(ptx: &str, level: Level, checks: Checks) -> Result<Gpu, LoadError> {
        let mut memory = Memory::new(1 << 32).unwrap();
        if checks.init {
            memory.track_writes().unwrap();
        }
        let model = &MODELS[0];
        let module = module::load_at(ptx, &memory, model, level)?;
        let settings = Settings { threads: 1, checks, ..Settings::read([]).unwrap() };
        Ok(Gpu { memory, module, model, settings, printed: Mutex::default() })
    }

    pub(crate) fn upload<T: Copy>(&self, values: &[T]) -> u64 {
        let bytes = size_of_val(values) as u64;
        let address = self.memory.allocate(bytes, Kind::Device).unwrap();
        let pointer = self.memory.host_pointer(address, bytes).unwrap();
        // SAFETY: the allocation has that many bytes, and no kernel runs.
        unsafe { pointer.cast::<T>().copy_from_nonoverlapping(values.as_ptr(), values.len()) };
        self.memory.define(address, bytes);
        address
    }

    pub(crate) fn download<T: Copy>(&self, address: u64, count: usize) -> Vec<T> {
        let pointer = self.memory.host_pointer(address, (count * size_of::<T>()) as u64).unwrap();
        // SAFETY: the allocation has that many bytes, and no kernel runs.
        unsafe { std::slice::from_raw_parts(pointer.cast::<T>(), count) }.to_vec()
    }

    pub(crate) fn launch(&self, name: &str, shape: Shape, params: &[&[u8]]) -> Result<Counters, Stop> {
        let kernel = self.module.kernels.get(name).unwrap_or_else(|| panic!("there is no kernel `{name}`"));
        assert_eq!(kernel.params.len(), params.len(), "parameters of {name}");
        let mut bytes = vec![0; kernel.param_bytes as usize];
        for (param, value) in kernel.params.iter().zip(params) {
            assert_eq!(param.bytes as usize, value.len(), "size of a parameter of {name}");
            bytes[param.offset as usize..][..value.len()].copy_from_slice(value);
        }
        let machine = Machine {
            memory: &self.memory,
            model: self.model,
            settings: &self.settings,
            printed: &self.printed,
            stack_bytes: 1024,
            heap_bytes: 1 << 20,
            view: View::default(),
            halted: &AtomicBool::new(false),
        };
        let launch = Launch {
            kernel,
            module: &self.module,
            grid: shape.grid,
            block: shape.block,
            dynamic_shared_bytes: shape.shared,
            params: bytes,
            cooperative: shape.cooperative,
        };
        grid::run(&machine, &launch)
    }

    pub(crate) fn printed(&self) -> String {
        String::from_utf8_lossy(&std::mem::take(&mut *self.printed.lock().unwrap())).into_owned()
    }
}
