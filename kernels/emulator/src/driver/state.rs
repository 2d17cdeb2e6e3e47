//! Devices, contexts, and which context each thread works in.

use std::{
    cell::RefCell,
    collections::{HashMap, HashSet},
    io::Write,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering},
    },
    thread::ThreadId,
};

use super::{
    allocations,
    error::{CUresult, Result},
    event::Event,
    function::Function,
    handle::{Handle, objects},
    library::Library,
    log,
    module::Module,
    order,
    pool::Pool,
    queue::{self, Point},
    stream::Stream,
};
use crate::{
    memory::Memory,
    model::Model,
    settings::{Settings, settings},
};

/// A device, as C names it: its ordinal.
pub(crate) type CUdevice = i32;
/// A context, as C names it.
pub(crate) type CUcontext = Handle<Context>;

/// An emulated card.
pub(crate) struct Device {
    /// Its number, from 0.
    pub(crate) ordinal: u32,
    /// What it stands for.
    pub(crate) model: &'static Model,
    /// What the environment asks for.
    pub(crate) settings: &'static Settings,
    /// Its primary context.
    pub(crate) primary: Mutex<Primary>,
    /// The pool that stream-ordered allocation takes from, and the one it takes from unless told otherwise.
    pub(crate) pools: OnceLock<Mutex<(Handle<Pool>, Handle<Pool>)>>,
    memory: OnceLock<Option<Memory>>,
}

/// The context that every user of a device shares.
pub(crate) struct Primary {
    /// Its handle, the same for the life of the process.
    pub(crate) handle: CUcontext,
    /// How often it was retained and not released.
    pub(crate) retained: usize,
    /// The flags of the next one.
    pub(crate) flags: u32,
    /// It exists.
    pub(crate) active: bool,
}

/// A context: what belongs together on a device, and fails together.
pub(crate) struct Context {
    /// Its handle.
    pub(crate) handle: CUcontext,
    /// Its number, unlike that of any other context of the process.
    pub(crate) id: u64,
    /// Its device.
    pub(crate) device: &'static Device,
    /// It is the device's primary context.
    pub(crate) primary: bool,
    /// Users that `cuCtxAttach` and `cuCtxDetach` count.
    pub(crate) users: AtomicU32,
    /// `CU_CTX_*`
    pub(crate) flags: AtomicU32,
    /// What `cuCtxGetCacheConfig` answers.
    pub(crate) cache_config: AtomicU32,
    /// What `cuCtxGetSharedMemConfig` answers.
    pub(crate) shared_config: AtomicU32,
    /// Values of `cuCtxSetLimit`.
    pub(crate) limits: Mutex<HashMap<u32, usize>>,
    /// Devices whose memory its kernels may use.
    pub(crate) peers: Mutex<HashSet<u32>>,
    /// The default stream of all threads.
    pub(crate) legacy: Mutex<Option<Arc<Stream>>>,
    /// The default stream of each thread that uses its own.
    pub(crate) per_thread: Mutex<HashMap<ThreadId, Arc<Stream>>>,
    /// What all its streams wait for before they do anything more.
    gate: Mutex<Vec<Point>>,
    /// What kernels printed since the program last waited.
    pub(crate) printed: Mutex<Vec<u8>>,
    /// The error of a kernel, which every later call answers.
    error: AtomicU32,
    /// That error ends other kernels.
    pub(crate) halted: AtomicBool,
    destroyed: AtomicBool,
}

objects!(Context: INVALID_CONTEXT);

static DEVICES: OnceLock<Vec<Device>> = OnceLock::new();

thread_local! {
    /// Contexts pushed by this thread; the last one is current.
    static CONTEXTS: RefCell<Vec<CUcontext>> = const { RefCell::new(Vec::new()) };
}

/// Locks; what a panicking thread left is whole, because nothing here is changed in steps.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// `cuInit` was called.
pub(crate) fn is_initialized() -> bool {
    DEVICES.get().is_some()
}

/// Makes the devices.
pub(crate) fn initialize() -> Result {
    let settings = settings().map_err(|error| {
        log::always(&error.to_string());
        CUresult::INVALID_VALUE
    })?;
    if settings.devices == 0 {
        return Err(CUresult::NO_DEVICE);
    }
    DEVICES.get_or_init(|| {
        (0..settings.devices)
            .map(|ordinal| Device {
                ordinal,
                model: settings.model,
                settings,
                primary: Mutex::new(Primary {
                    handle: Handle::fresh(),
                    retained: 0,
                    flags: 0,
                    active: false,
                }),
                pools: OnceLock::new(),
                memory: OnceLock::new(),
            })
            .collect()
    });
    Ok(())
}

/// Every device.
pub(crate) fn devices() -> &'static [Device] {
    DEVICES.get().map_or(&[], Vec::as_slice)
}

/// The device of an ordinal.
pub(crate) fn device(ordinal: CUdevice) -> Result<&'static Device> {
    usize::try_from(ordinal).ok().and_then(|ordinal| devices().get(ordinal)).ok_or(CUresult::INVALID_DEVICE)
}

/// The context that is current, whatever became of it.
pub(crate) fn current_handle() -> CUcontext {
    CONTEXTS.with_borrow(|contexts| contexts.last().copied().unwrap_or(Handle::NULL))
}

/// The context that is current, if it still works.
pub(crate) fn current() -> Result<Arc<Context>> {
    let context = current_even_if_failed()?;
    context.check()?;
    Ok(context)
}

/// The context that is current, whether or not a kernel of it failed.
pub(crate) fn current_even_if_failed() -> Result<Arc<Context>> {
    let handle = current_handle();
    if handle.is_null() {
        return Err(CUresult::INVALID_CONTEXT);
    }
    handle.get().map_err(|_| CUresult::CONTEXT_IS_DESTROYED)
}

/// Makes a context current above the others.
pub(crate) fn push(context: CUcontext) {
    CONTEXTS.with_borrow_mut(|contexts| contexts.push(context));
}

/// Takes the current context away.
pub(crate) fn pop() -> Result<CUcontext> {
    CONTEXTS.with_borrow_mut(Vec::pop).filter(|context| !context.is_null()).ok_or(CUresult::INVALID_CONTEXT)
}

/// Puts a context, or none, in the place of the current one.
pub(crate) fn replace_current(context: CUcontext) {
    CONTEXTS.with_borrow_mut(|contexts| {
        contexts.pop();
        if !context.is_null() {
            contexts.push(context);
        }
    });
}

impl Device {
    /// Its memory.
    pub(crate) fn memory(&self) -> Result<&Memory> {
        let memory = self.memory.get_or_init(|| {
            let mut memory = Memory::new(self.settings.memory).ok()?;
            if self.settings.checks.init {
                memory.track_writes().ok()?;
            }
            allocations::share_all_with(self, &memory);
            Some(memory)
        });
        memory.as_ref().ok_or_else(|| {
            log::reason("the host refuses the addresses that device memory needs (ulimit -v?)");
            CUresult::OUT_OF_MEMORY
        })
    }

    /// Its memory, unless the device was never used.
    pub(crate) fn memory_if_used(&self) -> Option<&Memory> {
        self.memory.get()?.as_ref()
    }

    /// The primary context, made if there is none.
    pub(crate) fn primary_context(&'static self, primary: &mut Primary) -> Result<Arc<Context>> {
        if !primary.active {
            Context::make(self, primary.handle, true, primary.flags)?;
            primary.active = true;
        }
        primary.handle.get()
    }

    /// Waits for the work of the primary context, as long as others may still use it.
    pub(crate) fn wait_for_primary(&self) {
        let handle = lock(&self.primary).handle;
        if let Ok(context) = handle.get() {
            // What failed ends with the context.
            let _failed = context.synchronize();
        }
    }

    /// Destroys the primary context with all that it holds.
    pub(crate) fn destroy_primary_context(&self, primary: &mut Primary) {
        primary.active = false;
        if let Ok(context) = primary.handle.take() {
            context.destroy();
        }
    }
}

impl Context {
    /// Makes a context.
    pub(crate) fn make(
        device: &'static Device,
        handle: CUcontext,
        primary: bool,
        flags: u32,
    ) -> Result<Arc<Context>> {
        static CONTEXTS: AtomicU64 = AtomicU64::new(1);
        device.memory()?;
        let context = Arc::new(Context {
            handle,
            id: CONTEXTS.fetch_add(1, Ordering::Relaxed),
            device,
            primary,
            users: AtomicU32::new(1),
            flags: AtomicU32::new(flags),
            cache_config: AtomicU32::new(0),
            shared_config: AtomicU32::new(1),
            limits: Mutex::default(),
            peers: Mutex::default(),
            legacy: Mutex::default(),
            printed: Mutex::default(),
            per_thread: Mutex::default(),
            gate: Mutex::default(),
            error: AtomicU32::new(0),
            halted: AtomicBool::new(false),
            destroyed: AtomicBool::new(false),
        });
        handle.bind(Arc::clone(&context));
        Ok(context)
    }

    /// The error of an earlier kernel.
    pub(crate) fn check(&self) -> Result {
        if self.destroyed.load(Ordering::Acquire) {
            return Err(CUresult::CONTEXT_IS_DESTROYED);
        }
        match self.error.load(Ordering::Acquire) {
            0 => Ok(()),
            error => Err(CUresult(error)),
        }
    }

    /// Memory of other devices that kernels of this context may use.
    pub(crate) fn peer_memories(&self) -> Vec<&'static Memory> {
        let peers = lock(&self.peers);
        devices()
            .iter()
            .filter(|device| peers.contains(&device.ordinal))
            .filter_map(Device::memory_if_used)
            .collect()
    }

    /// A kernel failed: from now on every call answers this, until the context is gone. What its streams have still to
    /// do is left out, and kernels that run are ended.
    pub(crate) fn fail(&self, error: CUresult) {
        // The first error stays.
        let _later = self.error.compare_exchange(0, error.0, Ordering::AcqRel, Ordering::Acquire);
        self.halted.store(true, Ordering::Release);
    }

    /// Waits for all work that its streams were given.
    pub(crate) fn synchronize(&self) -> Result {
        self.wait(&queue::of_context(self.id))
    }

    /// Waits for some of it.
    pub(crate) fn wait(&self, points: &[Point]) -> Result {
        queue::wait(points);
        order::settle();
        self.print();
        self.check()
    }

    /// Makes later work of all its streams wait.
    pub(crate) fn close_gate(&self, point: Point) {
        lock(&self.gate).push(point);
    }

    /// What work that it is given now has to wait for.
    pub(crate) fn gate(&self) -> Vec<Point> {
        let mut gate = lock(&self.gate);
        gate.retain(|point| !point.is_done());
        gate.clone()
    }

    /// Writes to standard output what kernels printed.
    pub(crate) fn print(&self) {
        let printed = std::mem::take(&mut *lock(&self.printed));
        if !printed.is_empty() {
            let mut output = std::io::stdout().lock();
            // A program may have closed its standard output; that is no reason to fail.
            let _closed = output.write_all(&printed).and_then(|()| output.flush());
        }
    }

    /// Ends the context and frees what it holds. Its handle is taken already.
    pub(crate) fn destroy(&self) {
        // Its error, if there is one, ends with it.
        let _failed = self.synchronize();
        self.destroyed.store(true, Ordering::Release);
        Handle::<Stream>::sweep(|stream| stream.context.id == self.id);
        Handle::<Event>::sweep(|event| event.context.id == self.id);
        Handle::<Function>::sweep(|function| function.context.id == self.id);
        Handle::<Module>::sweep(|module| module.context.id == self.id);
        Handle::<Library>::for_each(|library| library.forget(self.id));
        allocations::free_all_of(self);
        lock(&self.legacy).take();
        lock(&self.per_thread).clear();
    }
}
