//! `cuLaunch*`: launches, checked as the real driver checks them.

use std::{ffi::c_void, sync::Arc, time::Instant};

use super::{
    abi::{In, driver},
    counters_file,
    error::{CUresult, Result},
    function::{self, CUfunction, Function},
    log, occupancy,
    order::{self, Ticket, Use},
    queue,
    stream::{self, CUstream, Stream},
    work::{self, Work},
};
use crate::{
    grid::{self, Launch, Machine, Stop},
    memory::{Footprint, View},
    model::Limits,
};

/// A launch, with its parameters.
#[derive(Clone)]
pub(crate) struct KernelLaunch {
    /// The kernel.
    pub(crate) function: Arc<Function>,
    /// Blocks.
    pub(crate) grid: [u32; 3],
    /// Threads of a block.
    pub(crate) block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub(crate) dynamic_shared_bytes: u32,
    /// The parameters' bytes.
    pub(crate) params: Vec<u8>,
    /// All blocks are resident at the same time.
    pub(crate) cooperative: bool,
}

/// `CUlaunchConfig`
#[repr(C)]
#[derive(Clone, Copy)]
struct Config {
    grid: [u32; 3],
    block: [u32; 3],
    dynamic_shared_bytes: u32,
    stream: CUstream,
    attributes: In<Attribute>,
    attribute_count: u32,
}

/// `CUlaunchAttribute`
#[repr(C)]
#[derive(Clone, Copy)]
struct Attribute {
    id: u32,
    padding: u32,
    value: [u32; 16],
}

/// `CU_LAUNCH_ATTRIBUTE_*`
pub(crate) const COOPERATIVE: u32 = 2;
/// Blocks of a cluster.
pub(crate) const CLUSTER_DIMENSION: u32 = 4;
const PROGRAMMATIC_EVENT: u32 = 7;
/// The last one.
pub(crate) const LAST_ATTRIBUTE: u32 = 16;
/// What ends, and what stands in, the list `extra`.
const EXTRA_END: usize = 0;
const EXTRA_POINTER: usize = 1;
const EXTRA_SIZE: usize = 2;

driver! {
    /// Launches a kernel.
    call cuLaunchKernel 4000, cuLaunchKernel_ptsz 7000 (
        function: CUfunction, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        dynamic_shared_bytes: u32, stream: CUstream, params: In<In<u8>>, extra: In<usize>,
    ) {
        let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], dynamic_shared_bytes };
        launch(function, shape, false, stream, params, extra)
    }

    /// Launches a kernel all of whose blocks are resident at the same time.
    call cuLaunchCooperativeKernel 9000, cuLaunchCooperativeKernel_ptsz 9000 (
        function: CUfunction, grid_x: u32, grid_y: u32, grid_z: u32, block_x: u32, block_y: u32, block_z: u32,
        dynamic_shared_bytes: u32, stream: CUstream, params: In<In<u8>>,
    ) {
        let shape = Shape { grid: [grid_x, grid_y, grid_z], block: [block_x, block_y, block_z], dynamic_shared_bytes };
        launch(function, shape, true, stream, params, In::NULL)
    }

    /// Launches a kernel with attributes.
    call cuLaunchKernelEx 11060, cuLaunchKernelEx_ptsz 11060 (
        config: In<Config>, function: CUfunction, params: In<In<u8>>, extra: In<usize>,
    ) {
        let config = config.get()?;
        let mut cooperative = false;
        for attribute in config.attributes.list(config.attribute_count as usize)? {
            match attribute.id {
                COOPERATIVE => cooperative = attribute.value[0] != 0,
                CLUSTER_DIMENSION if attribute.value[..3] != [1, 1, 1] => {
                    log::once("clusters of blocks are not supported; launch without a cluster dimension");
                    return Err(CUresult::NOT_SUPPORTED);
                }
                PROGRAMMATIC_EVENT => return Err(CUresult::NOT_SUPPORTED),
                // What is left is advice, or an order that holds anyway.
                0..=LAST_ATTRIBUTE => {}
                _ => return Err(CUresult::INVALID_VALUE),
            }
        }
        let Config { grid, block, dynamic_shared_bytes, stream, .. } = config;
        launch(function, Shape { grid, block, dynamic_shared_bytes }, cooperative, stream, params, extra)
    }
}

/// The shape of a launch.
#[derive(Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) dynamic_shared_bytes: u32,
}

impl KernelLaunch {
    /// Takes the parameters and checks everything.
    pub(crate) fn new(
        function: CUfunction,
        shape: Shape,
        cooperative: bool,
        params: In<In<u8>>,
        extra: In<usize>,
    ) -> Result<KernelLaunch> {
        let function = function::find(function)?;
        check(&function, shape, cooperative)?;
        let params = params_of(&function, params, extra)?;
        let Shape { grid, block, dynamic_shared_bytes } = shape;
        Ok(KernelLaunch { function, grid, block, dynamic_shared_bytes, params, cooperative })
    }

    /// Runs it to its end. Somebody may want to know what it uses.
    pub(crate) fn run(&self, stream: &Stream, ticket: Option<Ticket>) -> Result {
        let context = &stream.context;
        let device = context.device;
        let memory = device.memory()?;
        let footprint = order::is_checked().then(Arc::<Footprint>::default);
        let machine = Machine {
            memory,
            model: device.model,
            settings: device.settings,
            printed: &context.printed,
            stack_bytes: context.limit(0)? as u64,
            heap_bytes: context.limit(2)? as u64,
            view: View { peers: context.peer_memories(), footprint: footprint.clone() },
            halted: &context.halted,
        };
        let launch = Launch {
            kernel: &self.function.kernel,
            module: self.function.module.code(),
            grid: self.grid,
            block: self.block,
            dynamic_shared_bytes: self.dynamic_shared_bytes,
            params: self.params.clone(),
            cooperative: self.cooperative,
        };
        let started = Instant::now();
        match grid::run(&machine, &launch) {
            Ok(counters) => {
                if let Some(path) = &device.settings.counters {
                    counters_file::append(path, &launch, &counters, started.elapsed());
                }
                if let (Some(ticket), Some(footprint)) = (ticket, footprint) {
                    let used = |(bytes, writes)| Use { bytes, writes };
                    ticket.finish(footprint.uses().into_iter().map(used).collect());
                }
                Ok(())
            }
            Err(Stop::Fault(fault)) => {
                context.print();
                eprint!("{fault}");
                Err(CUresult(fault.cuda_error() as u32))
            }
            Err(Stop::Unsupported(reason)) => {
                let kernel = &self.function.kernel.name;
                let limit = "a limit of the emulated GPU, not an error of the program";
                log::always(&format!("{kernel} was not run to its end: {reason}: {limit}"));
                Err(CUresult::NOT_SUPPORTED)
            }
            // Whoever halted it has said why.
            Err(Stop::Halted) => Ok(()),
        }
    }
}

fn launch(
    function: CUfunction,
    shape: Shape,
    cooperative: bool,
    stream: CUstream,
    params: In<In<u8>>,
    extra: In<usize>,
) -> Result {
    let stream = stream::get(stream)?;
    stream.context.check()?;
    submit(&stream, KernelLaunch::new(function, shape, cooperative, params, extra)?)
}

/// Launches with the parameters' bytes.
pub(crate) fn launch_bytes(
    function: CUfunction,
    shape: Shape,
    stream: CUstream,
    mut params: Vec<u8>,
) -> Result {
    let stream = stream::get(stream)?;
    stream.context.check()?;
    let function = function::find(function)?;
    check(&function, shape, false)?;
    if params.len() < function.kernel.param_bytes as usize {
        return Err(CUresult::INVALID_VALUE);
    }
    params.truncate(function.kernel.param_bytes as usize);
    let Shape { grid, block, dynamic_shared_bytes } = shape;
    submit(&stream, KernelLaunch { function, grid, block, dynamic_shared_bytes, params, cooperative: false })
}

/// Hands a launch to its stream.
fn submit(stream: &Arc<Stream>, launch: KernelLaunch) -> Result {
    if launch.function.context.id != stream.context.id {
        return Err(CUresult::INVALID_HANDLE);
    }
    work::submit(stream, Work::Kernel(launch))?;
    queue::make_room(stream.lane());
    Ok(())
}

/// Fails for shapes that the card cannot launch.
fn check(function: &Function, shape: Shape, cooperative: bool) -> Result {
    let Shape { grid, block, dynamic_shared_bytes } = shape;
    let kernel = &function.kernel;
    let refuse = |code, reason: String| {
        log::reason(&format!(
            "{} was not launched with grid {grid:?}, block {block:?}: {reason}",
            kernel.name
        ));
        Err(code)
    };
    if grid.contains(&0) || block.contains(&0) {
        return refuse(CUresult::INVALID_VALUE, "a dimension is 0".into());
    }
    if let Some(axis) = (0..3).find(|&axis| grid[axis] > Limits::GRID[axis]) {
        return refuse(
            CUresult::INVALID_VALUE,
            format!("the grid may have {} blocks there", Limits::GRID[axis]),
        );
    }
    if let Some(axis) = (0..3).find(|&axis| block[axis] > Limits::BLOCK[axis]) {
        return refuse(
            CUresult::INVALID_VALUE,
            format!("a block may have {} threads there", Limits::BLOCK[axis]),
        );
    }
    let threads = block.iter().product::<u32>();
    if threads > function.max_threads() {
        let most = function.max_threads();
        return refuse(CUresult::INVALID_VALUE, format!("{threads} threads in a block are more than {most}"));
    }
    if let Some(required) = kernel.required_block
        && required != block
    {
        return refuse(CUresult::INVALID_VALUE, format!("the kernel requires blocks of {required:?}"));
    }
    if dynamic_shared_bytes > function.max_dynamic_shared() {
        let most = function.max_dynamic_shared();
        let hint = "more needs CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES";
        return refuse(
            CUresult::INVALID_VALUE,
            format!("{dynamic_shared_bytes} bytes of dynamic shared memory are more than {most}; {hint}"),
        );
    }
    let resident = occupancy::blocks_per_multiprocessor(function, threads, dynamic_shared_bytes);
    if resident == 0 {
        return refuse(
            CUresult::LAUNCH_OUT_OF_RESOURCES,
            format!(
                "a block needs more registers ({} a thread) or shared memory than there are",
                function.registers()
            ),
        );
    }
    let resident = u64::from(resident) * u64::from(function.context.device.model.multiprocessors);
    let blocks = grid.iter().map(|&blocks| u64::from(blocks)).product::<u64>();
    if cooperative && blocks > resident {
        return refuse(
            CUresult::COOPERATIVE_LAUNCH_TOO_LARGE,
            format!("only {resident} blocks of a cooperative launch can be resident"),
        );
    }
    Ok(())
}

/// The parameters' bytes, from one pointer for each or from `extra`.
fn params_of(function: &Function, params: In<In<u8>>, extra: In<usize>) -> Result<Vec<u8>> {
    let kernel = &function.kernel;
    match (params.is_null(), extra.is_null()) {
        (false, false) => Err(CUresult::INVALID_VALUE),
        (true, true) if kernel.params.is_empty() => Ok(Vec::new()),
        (true, true) => Err(CUresult::INVALID_VALUE),
        (false, true) => {
            let mut bytes = vec![0; kernel.param_bytes as usize];
            for (param, pointer) in kernel.params.iter().zip(params.list(kernel.params.len())?) {
                let start = param.offset as usize;
                let value = pointer.list(param.bytes as usize)?;
                bytes[start..start + value.len()].copy_from_slice(&value);
            }
            Ok(bytes)
        }
        (true, false) => {
            let (mut buffer, mut size) = (In::<u8>::NULL, None);
            let mut next = extra;
            loop {
                match next.get()? {
                    EXTRA_END => break,
                    EXTRA_POINTER => buffer = In::of(next.after().get()? as *const u8),
                    EXTRA_SIZE => size = Some(In::of(next.after().get()? as *const usize).get()?),
                    _ => return Err(CUresult::INVALID_VALUE),
                }
                next = next.after().after();
            }
            let size = size.ok_or(CUresult::INVALID_VALUE)?;
            if size < kernel.param_bytes as usize {
                return Err(CUresult::INVALID_VALUE);
            }
            buffer.list(kernel.param_bytes as usize)
        }
    }
}

/// `c_void` is what `extra` points to in C; its entries are pointers, numbers and pointers to sizes.
const _: () = assert!(size_of::<*const c_void>() == size_of::<usize>());
