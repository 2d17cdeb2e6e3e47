//! A launch: the blocks of a grid over the host's threads.

use std::{
    collections::{BTreeMap, VecDeque},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering},
    },
};

use crate::{
    block::{Block, Turn},
    counters::Counters,
    fault::{Cause, Fault, Place},
    heap::Heap,
    memory::{Memory, Range, Table, View},
    model::Model,
    module::{Kernel, Module},
    settings::Settings,
    warp::{Context, Copies, Row, Stopped, Threads},
};

/// What a launch runs on.
pub struct Machine<'a> {
    /// The device's memory.
    pub memory: &'a Memory,
    /// The card that it stands for.
    pub model: &'a Model,
    /// Threads, budget and checks.
    pub settings: &'a Settings,
    /// What device code prints. The driver writes it to standard output when the program synchronises.
    pub printed: &'a Mutex<Vec<u8>>,
    /// Bytes of stack that each thread has for calls, `CU_LIMIT_STACK_SIZE`.
    pub stack_bytes: u64,
    /// Bytes of the heap of device code, `CU_LIMIT_MALLOC_HEAP_SIZE`.
    pub heap_bytes: u64,
    /// What kernels may use beside the device's memory, and who wants to know what they used.
    pub view: View,
    /// Ends whatever runs: another kernel of the context failed.
    pub halted: &'a AtomicBool,
}

/// What to run.
pub struct Launch<'a> {
    /// The kernel.
    pub kernel: &'a Kernel,
    /// Its module.
    pub module: &'a Module,
    /// `gridDim`
    pub grid: [u32; 3],
    /// `blockDim`
    pub block: [u32; 3],
    /// Bytes of dynamic shared memory.
    pub dynamic_shared_bytes: u32,
    /// The parameters, each at its offset.
    pub params: Vec<u8>,
    /// All blocks are resident at the same time.
    pub cooperative: bool,
}

/// Why a launch ended early.
#[derive(Clone, Debug, PartialEq)]
pub enum Stop {
    /// The program's fault.
    Fault(Box<Fault>),
    /// The emulator's limit.
    Unsupported(String),
    /// The machine was halted.
    Halted,
}

/// Runs a launch to its end. The caller has checked its shape against the model.
///
/// # Errors
///
/// The program's fault, or what the emulated GPU cannot do.
pub fn run(machine: &Machine<'_>, launch: &Launch<'_>) -> Result<Counters, Stop> {
    static LAUNCHES: AtomicU32 = AtomicU32::new(1);
    let shared = u64::from(launch.kernel.static_shared_bytes).next_multiple_of(16)
        + u64::from(launch.dynamic_shared_bytes);
    let heap = match launch.kernel.program.allocates {
        true => Some(machine.memory.heap(machine.heap_bytes).map_err(|error| {
            Stop::Unsupported(format!("a heap of {} bytes for device code: {error}", machine.heap_bytes))
        })?),
        false => None,
    };
    let grid = Grid {
        machine,
        launch,
        heap,
        table: machine.memory.table(&machine.view),
        blocks: launch.grid.iter().map(|&axis| u64::from(axis)).product(),
        next: AtomicU64::new(0),
        fuel: AtomicI64::new(machine.settings.budget.min(i64::MAX as u64) as i64),
        ended: AtomicBool::new(false),
        outcome: Mutex::new(Outcome::default()),
        threads: Threads {
            grid: launch.grid,
            block: launch.block,
            index: [0; 3],
            dynamic_shared: launch.dynamic_shared_bytes,
            total_shared: shared as u32,
            multiprocessor: 0,
            multiprocessors: machine.model.multiprocessors,
            launch: LAUNCHES.fetch_add(1, Ordering::Relaxed),
            stack: machine.stack_bytes,
        },
    };
    let workers = (machine.settings.threads as u64).clamp(1, grid.blocks.max(1));
    if workers > 1 && !launch.cooperative {
        // Most launches are small: they are over before another thread would have started.
        grid.work(0, 1, ALONE);
    }
    let workers = workers.min(grid.blocks_left());
    std::thread::scope(|scope| {
        for worker in 1..workers {
            let grid = &grid;
            scope.spawn(move || grid.work(worker, workers, u64::MAX));
        }
        grid.work(0, workers.max(1), u64::MAX);
    });
    let outcome = grid.outcome.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut printed = machine.printed.lock().unwrap_or_else(PoisonError::into_inner);
    for text in outcome.printed.values() {
        printed.extend_from_slice(text);
    }
    drop(printed);
    match outcome.stop {
        Some((_, stop)) => Err(stop),
        None => Ok(Counters { managed: grid.table.touched(), ..outcome.counters }),
    }
}

/// A launch in progress.
struct Grid<'a> {
    machine: &'a Machine<'a>,
    launch: &'a Launch<'a>,
    heap: Option<Arc<Heap>>,
    table: Arc<Table>,
    blocks: u64,
    /// The block that starts next.
    next: AtomicU64,
    /// Warp instructions that are left.
    fuel: AtomicI64,
    /// Some block has ended the launch.
    ended: AtomicBool,
    outcome: Mutex<Outcome>,
    threads: Threads,
}

#[derive(Default)]
struct Outcome {
    counters: Counters,
    /// What blocks printed, by their number: a GPU would mix them.
    printed: BTreeMap<u64, Vec<u8>>,
    /// Why the launch ended, and the number of the block that did it: the lowest wins.
    stop: Option<(u64, Stop)>,
}

/// Warp instructions that a worker executes before it looks at the launch's budget again.
const FUEL: i64 = 1 << 24;

/// Warp instructions that a launch executes before other threads are started: about as long as it takes to start one.
const ALONE: u64 = 1 << 12;

impl Grid<'_> {
    /// Runs blocks until none is left, or starts no more after so many warp instructions.
    fn work(&self, worker: u64, workers: u64, limit: u64) {
        let program = &self.launch.kernel.program;
        let mut context = Context {
            rows: std::ptr::null_mut(),
            predicates: std::ptr::null_mut(),
            mask: 0,
            lanes: Row([0; 32]),
            unguarded: 0,
            live: 0,
            arrived: 0,
            pass: 0,
            at_warp_barrier: false,
            copies: Copies::default(),
            carry: 0,
            local: std::ptr::null_mut(),
            local_bytes: 0,
            own_end: 0,
            frame: 0,
            shared: std::ptr::null_mut(),
            shared_bytes: 0,
            race: std::ptr::null_mut(),
            params: self.launch.params.as_ptr(),
            param_bytes: self.launch.params.len() as u32,
            heap: self.heap.clone(),
            table: Arc::clone(&self.table),
            caches: vec![Range::default(); program.caches as usize],
            counters: Counters::default(),
            slice: 0,
            polls: 0,
            printed: Vec::new(),
            stop: None,
        };
        let mut resident: VecDeque<(u64, Block)> = VecDeque::new();
        let mut free: Vec<Block> = Vec::new();
        let room = (self.resident_blocks() / workers).max(1) as usize;
        let mut mine = 0..0;
        if self.launch.cooperative {
            // All at once, dealt out evenly.
            for number in (worker..self.blocks).step_by(workers as usize) {
                resident.push_back((number, self.start(number, &mut free)));
            }
        }
        // Every block that is here has yielded since the last one was started.
        let mut yielded = 0;
        while !self.ended.load(Ordering::Relaxed) {
            if self.machine.halted.load(Ordering::Relaxed) {
                self.end(u64::MAX, Stop::Halted);
                break;
            }
            let start = !self.launch.cooperative
                && resident.len() < room
                && yielded >= resident.len()
                && context.counters.warp_instructions < limit;
            let next = if start { mine.next().or_else(|| self.take(workers, &mut mine)) } else { None };
            let (number, mut block) = match next {
                Some(number) => {
                    yielded = 0;
                    (number, self.start(number, &mut free))
                }
                None => match resident.pop_front() {
                    Some(next) => next,
                    None => break,
                },
            };
            let granted = self.fuel.load(Ordering::Relaxed).clamp(0, FUEL);
            let mut fuel = granted;
            context.printed = std::mem::take(&mut block.printed);
            let turn = block.run(&mut context, program, &mut fuel);
            let left = self.fuel.fetch_sub(granted - fuel, Ordering::Relaxed) - (granted - fuel);
            match turn {
                Turn::Done => {
                    yielded = 0;
                    if !context.printed.is_empty() {
                        self.print(number, std::mem::take(&mut context.printed));
                    }
                    free.push(block);
                }
                Turn::Yield => {
                    yielded += 1;
                    block.printed = std::mem::take(&mut context.printed);
                    resident.push_back((number, block));
                    // The block that it waits for may be another worker's.
                    if resident.len() >= room || self.next.load(Ordering::Relaxed) >= self.blocks {
                        std::thread::yield_now();
                    }
                }
                Turn::Stop(place, warp) => {
                    let stop = match context.stop.take() {
                        Some(Stopped::Fault(cause, lanes)) => self.fault(*cause, place, number, warp, lanes),
                        Some(Stopped::Unsupported(what)) => Stop::Unsupported(format!(
                            "kernel {}, PTX line {}, {}: {what}",
                            self.launch.kernel.name, place.ptx_line, place.instruction
                        )),
                        None => Stop::Unsupported(format!("kernel {} stopped", self.launch.kernel.name)),
                    };
                    self.print(number, std::mem::take(&mut context.printed));
                    self.end(number, stop);
                }
                Turn::Fault(cause, place, warp, lanes) => {
                    if matches!(*cause, Cause::Budget { .. }) && left > 0 {
                        block.printed = std::mem::take(&mut context.printed);
                        resident.push_front((number, block));
                        continue;
                    }
                    let cause = match *cause {
                        Cause::Budget { .. } => Cause::Budget { limit: self.machine.settings.budget },
                        cause => cause,
                    };
                    self.print(number, std::mem::take(&mut context.printed));
                    self.end(number, self.fault(cause, place, number, warp, lanes));
                }
            }
        }
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.counters.add(&context.counters);
    }

    /// The next block, and some behind it, so that workers do not meet at each one.
    fn take(&self, workers: u64, mine: &mut std::ops::Range<u64>) -> Option<u64> {
        let count = if workers == 1 { 1 } else { (self.blocks_left() / (workers * 16)).clamp(1, 64) };
        let first = self.next.fetch_add(count, Ordering::Relaxed);
        *mine = first.min(self.blocks)..(first + count).min(self.blocks);
        mine.next()
    }

    /// Blocks that nobody has taken yet.
    fn blocks_left(&self) -> u64 {
        self.blocks.saturating_sub(self.next.load(Ordering::Relaxed))
    }

    fn start(&self, number: u64, free: &mut Vec<Block>) -> Block {
        let checks = self.machine.settings.checks;
        let mut block = free.pop().unwrap_or_else(|| Block::new(self.threads, checks));
        let multiprocessor = (number % u64::from(self.machine.model.multiprocessors.max(1))) as u32;
        block.start(self.index(number), multiprocessor, &self.launch.kernel.program);
        block
    }

    /// `blockIdx` of a block by its number.
    fn index(&self, number: u64) -> [u32; 3] {
        let [x, y, _] = self.launch.grid.map(u64::from);
        [number % x, number / x % y, number / x / y].map(|axis| axis as u32)
    }

    /// How many blocks the card holds at a time.
    fn resident_blocks(&self) -> u64 {
        let limits = &self.machine.model.limits;
        let by_threads = limits.threads_per_multiprocessor / self.threads.count().max(32);
        let by_shared = limits
            .shared_per_multiprocessor
            .checked_div(self.threads.total_shared + limits.shared_reserved_per_block)
            .unwrap_or(u32::MAX);
        let blocks = by_threads.min(limits.blocks_per_multiprocessor).min(by_shared).max(1);
        u64::from(blocks) * u64::from(self.machine.model.multiprocessors)
    }

    fn print(&self, number: u64, text: Vec<u8>) {
        if !text.is_empty() {
            let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
            outcome.printed.entry(number).or_default().extend(text);
        }
    }

    fn fault(&self, cause: Cause, place: Place, number: u64, warp: u32, lanes: u32) -> Stop {
        let first = warp * 32 + lanes.trailing_zeros().min(31);
        Stop::Fault(Box::new(Fault {
            cause: self.explain(cause),
            kernel: self.launch.kernel.name.clone(),
            grid: self.launch.grid,
            block_shape: self.launch.block,
            block: self.index(number),
            thread: self.threads.thread(first),
            threads: lanes.count_ones(),
            place,
        }))
    }

    /// Adds what is around a wrong address.
    fn explain(&self, cause: Cause) -> Cause {
        use crate::fault::{Near, Space};
        match cause {
            Cause::OutOfBounds {
                access,
                space: space @ (Space::Global | Space::Constant),
                address,
                bytes,
                ..
            } => {
                let memory = self.machine.memory;
                let near = if address < 1 << 16 {
                    Near::Null
                } else if let Some(freed) = memory.find_freed(address) {
                    Near::Freed(freed)
                } else if let Some(live) = memory.find(address).or_else(|| memory.nearest(address)) {
                    Near::Live(live)
                } else {
                    Near::Nothing
                };
                Cause::OutOfBounds { access, space, address, bytes, near }
            }
            Cause::Uninitialised {
                access, space: space @ Space::Global, address, bytes, unwritten, ..
            } => {
                let near = self.machine.memory.find(address).map_or(Near::Nothing, Near::Live);
                Cause::Uninitialised { access, space, address, bytes, unwritten, near }
            }
            Cause::Race { access, address, bytes, mut earlier } => {
                earlier.thread = self.threads.thread(earlier.number);
                earlier.place = self.launch.kernel.program.find(earlier.site).unwrap_or_default();
                Cause::Race { access, address, bytes, earlier }
            }
            cause => cause,
        }
    }

    fn end(&self, number: u64, stop: Stop) {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if outcome.stop.as_ref().is_none_or(|(other, _)| number < *other) {
            outcome.stop = Some((number, stop));
        }
        self.ended.store(true, Ordering::Relaxed);
    }
}
