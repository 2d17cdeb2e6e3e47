//! `cuMemPool*`: pools of stream-ordered memory.
//!
//! A pool only counts: memory is taken from the device when it is allocated, and goes back when it is freed.

use std::{
    ffi::c_void,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    abi::{In, Out, driver},
    advice::Location,
    allocations,
    error::{CUresult, Result},
    graph_memory::GraphMemory,
    handle::{Handle, objects},
    order::{self, Use},
    queue::{self, Job, Pace},
    state::{CUdevice, Device, device, lock},
    stream::{self, CUstream, Stream},
    work::{self, Work},
};
use crate::memory::Kind;

/// A pool.
pub(crate) struct Pool {
    /// Whose memory it gives.
    pub(crate) device: &'static Device,
    limit: u64,
    used: AtomicU64,
    used_high: AtomicU64,
    /// Reuse policies and the release threshold, by attribute number; they change nothing.
    settings: Mutex<[u64; 4]>,
}

objects!(Pool: INVALID_VALUE);

/// `CUmemPoolProps`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Properties {
    pub(crate) kind: u32,
    handles: u32,
    place: Location,
    security: *const c_void,
    limit: usize,
    usage: u16,
    reserved: [u8; 54],
}

/// `CUmemAccessDesc`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Access {
    place: Location,
    flags: u32,
}

const DEVICE: u32 = 1;
const READ_WRITE: u32 = 3;
/// `CU_MEM_ALLOCATION_TYPE_PINNED`
pub(crate) const PINNED: u32 = 1;

driver! {
    /// Makes a pool of a device's memory that no other process can open.
    call cuMemPoolCreate 11020 (answer: Out<Handle<Pool>>, properties: In<Properties>) {
        answer.check()?;
        let properties = properties.get()?;
        if properties.kind != PINNED {
            return Err(CUresult::INVALID_VALUE);
        }
        if properties.handles != 0 || properties.place.kind != DEVICE {
            return Err(CUresult::NOT_SUPPORTED);
        }
        answer.set(Handle::new(Pool::new(device(properties.place.id)?, properties.limit as u64)))
    }

    /// Destroys a pool; its memory stays until it is freed.
    call cuMemPoolDestroy 11020 (handle: Handle<Pool>) {
        let pool = handle.get()?;
        let mut pools = lock(of(pool.device));
        if pools.0 == handle {
            return Err(CUresult::INVALID_VALUE);
        }
        if pools.1 == handle {
            pools.1 = pools.0;
        }
        handle.take().map(drop)
    }

    /// Allocates from a pool, in the order of a stream.
    call cuMemAllocFromPoolAsync 11020, cuMemAllocFromPoolAsync_ptsz 11020 (
        answer: Out<u64>, bytes: usize, pool: Handle<Pool>, stream: CUstream,
    ) {
        answer.check()?;
        let stream = stream::get(stream)?;
        answer.set(allocate(&stream, bytes, pool)?)
    }

    /// Does nothing: a pool keeps no memory that is not in use.
    call cuMemPoolTrimTo 11020 (handle: Handle<Pool>, _keep: usize) {
        handle.get().map(drop)
    }

    /// Answers an attribute.
    call cuMemPoolGetAttribute 11020 (handle: Handle<Pool>, number: u32, answer: Out<c_void>) {
        let pool = handle.get()?;
        let (used, high) = (pool.used.load(Ordering::Relaxed), pool.used_high.load(Ordering::Relaxed));
        match number {
            1..=3 => answer.cast::<i32>().set(lock(&pool.settings)[number as usize - 1] as i32),
            4 => answer.cast::<u64>().set(lock(&pool.settings)[3]),
            5 | 7 => answer.cast::<u64>().set(used),
            6 | 8 => answer.cast::<u64>().set(high),
            _ => Err(CUresult::INVALID_VALUE),
        }
    }

    /// Sets an attribute.
    call cuMemPoolSetAttribute 11020 (handle: Handle<Pool>, number: u32, value: Out<c_void>) {
        let pool = handle.get()?;
        match number {
            1..=3 => lock(&pool.settings)[number as usize - 1] = value.cast::<i32>().read()? as u64,
            4 => lock(&pool.settings)[3] = value.cast::<u64>().read()?,
            // The highest use can only be set back.
            6 | 8 if value.cast::<u64>().read()? == 0 => {
                pool.used_high.store(pool.used.load(Ordering::Relaxed), Ordering::Relaxed);
            }
            _ => return Err(CUresult::INVALID_VALUE),
        }
        Ok(())
    }

    /// Checks its arguments; every device may use every pool that its contexts may reach.
    call cuMemPoolSetAccess 11020 (handle: Handle<Pool>, list: In<Access>, count: usize) {
        handle.get()?;
        for access in list.list(count)? {
            if access.place.kind != DEVICE || !matches!(access.flags, 0 | 1 | READ_WRITE) {
                return Err(CUresult::INVALID_VALUE);
            }
            device(access.place.id)?;
        }
        Ok(())
    }

    /// Answers the pool that a place was born with.
    call cuMemGetDefaultMemPool 13000 (answer: Out<Handle<Pool>>, place: In<Location>, kind: u32) {
        answer.check()?;
        answer.set(lock(of(at(place, kind)?)).0)
    }

    /// Answers the pool that allocation at a place takes from.
    call cuMemGetMemPool 13000 (answer: Out<Handle<Pool>>, place: In<Location>, kind: u32) {
        answer.check()?;
        answer.set(lock(of(at(place, kind)?)).1)
    }

    /// Chooses the pool that allocation at a place takes from.
    call cuMemSetMemPool 13000 (place: In<Location>, kind: u32, chosen: Handle<Pool>) {
        choose(at(place, kind)?, chosen)
    }

    /// Answers that a device may read and write.
    call cuMemPoolGetAccess 11020 (answer: Out<u32>, handle: Handle<Pool>, place: In<Location>) {
        answer.check()?;
        handle.get()?;
        let place = place.get()?;
        if place.kind != DEVICE {
            return Err(CUresult::INVALID_VALUE);
        }
        device(place.id)?;
        answer.set(READ_WRITE)
    }
}

impl Properties {
    /// Memory of a device.
    pub(crate) fn of_device(ordinal: CUdevice) -> Properties {
        Properties {
            kind: PINNED,
            handles: 0,
            place: Location { kind: DEVICE, id: ordinal },
            security: std::ptr::null(),
            limit: 0,
            usage: 0,
            reserved: [0; 54],
        }
    }

    /// The device whose memory it is.
    pub(crate) fn device(&self) -> Result<&'static Device> {
        match self.place.kind {
            DEVICE => device(self.place.id),
            _ => Err(CUresult::NOT_SUPPORTED),
        }
    }
}

impl Pool {
    fn new(device: &'static Device, limit: u64) -> Pool {
        Pool {
            device,
            limit,
            used: AtomicU64::new(0),
            used_high: AtomicU64::new(0),
            settings: Mutex::new([1, 1, 1, 0]),
        }
    }

    /// Counts what was freed.
    pub(crate) fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }
}

/// The device of a place, which has pools of memory that stays where it is.
fn at(place: In<Location>, kind: u32) -> Result<&'static Device> {
    let place = place.get()?;
    match (place.kind, kind) {
        (DEVICE, PINNED) => device(place.id),
        (0..=4, 1..=2) => Err(CUresult::NOT_SUPPORTED),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

/// Chooses the pool that allocation takes from.
pub(crate) fn choose(device: &'static Device, chosen: Handle<Pool>) -> Result {
    if !std::ptr::eq(chosen.get()?.device, device) {
        return Err(CUresult::INVALID_VALUE);
    }
    lock(of(device)).1 = chosen;
    Ok(())
}

/// The pool that a device was born with, and the one that allocation takes from.
pub(crate) fn of(device: &'static Device) -> &'static Mutex<(Handle<Pool>, Handle<Pool>)> {
    device.pools.get_or_init(|| {
        let pool = Handle::new(Pool::new(device, 0));
        Mutex::new((pool, pool))
    })
}

/// Allocates from a pool, or as a node of the graph that the stream captures.
pub(crate) fn allocate(stream: &Arc<Stream>, bytes: usize, handle: Handle<Pool>) -> Result<u64> {
    stream.context.check()?;
    let pool = handle.get()?;
    let bytes = bytes as u64;
    if pool.limit > 0 && pool.used.load(Ordering::Relaxed) + bytes > pool.limit {
        return Err(CUresult::OUT_OF_MEMORY);
    }
    let take = || allocations::allocate(&stream.context, bytes, Kind::Device, 0, Some(handle));
    let address = take().or_else(|error| {
        if error != CUresult::OUT_OF_MEMORY || stream.capture().is_some() {
            return Err(error);
        }
        // What the stream frees before may be enough.
        queue::wait(&queue::of_stream(stream.lane()));
        take()
    })?;
    let used = pool.used.fetch_add(bytes, Ordering::Relaxed) + bytes;
    pool.used_high.fetch_max(used, Ordering::Relaxed);
    if stream.capture().is_some() {
        let memory = GraphMemory::new(&stream.context, address, bytes);
        work::submit(stream, Work::Allocate(Arc::new(memory)))?;
    }
    if stream.capture().is_none() {
        let used = || vec![Use { bytes: address..address + bytes, writes: true }];
        order::operation(stream, "cuMemAllocAsync", used);
    }
    Ok(address)
}

/// Frees in the order of a stream.
pub(crate) fn free(stream: &Arc<Stream>, address: u64) -> Result {
    stream.context.check()?;
    if stream.capture().is_some() {
        allocations::find(address).ok_or(CUresult::INVALID_VALUE)?;
        return work::submit(stream, Work::Free(address));
    }
    // What kernels used is looked up among the allocations when they have run.
    order::settle();
    if let Some(allocation) = allocations::find(address) {
        let bytes = address..address + allocation.bytes;
        order::operation(stream, "cuMemFreeAsync", || vec![Use { bytes, writes: true }]);
    }
    let allocation = allocations::retire(address, &[Kind::Device])?;
    let release = Job::new(Pace::Quick, move || {
        // Nobody else can have released it.
        let _released = allocations::release(&allocation);
    });
    queue::give(stream.lane(), vec![release.after(stream.context.gate())]);
    Ok(())
}
