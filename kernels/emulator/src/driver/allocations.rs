//! Every allocation of every device: who owns it, and where its bytes are.
//!
//! Addresses are unified: one names its allocation, and so its device and context, whatever context is current.

use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock},
};

use super::{
    advice,
    error::{CUresult, Result},
    handle::Handle,
    log,
    pool::Pool,
    state::{CUcontext, Context, Device, devices},
};
use crate::memory::{self, Held, Kind, Memory};

/// An allocation with its owner.
#[derive(Clone, Copy)]
pub(crate) struct Owned {
    /// The first byte's address.
    pub(crate) address: u64,
    /// Its size.
    pub(crate) bytes: u64,
    /// What it is.
    pub(crate) kind: Kind,
    /// The context that it was made in.
    pub(crate) context: CUcontext,
    /// That context's number.
    pub(crate) context_id: u64,
    /// The device that it was made on.
    pub(crate) device: &'static Device,
    /// The flags that it was made with.
    pub(crate) flags: u32,
    /// The pool that it came from.
    pub(crate) pool: Option<Handle<Pool>>,
    /// What `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` answers.
    pub(crate) sync_memops: bool,
    /// Its number, unlike that of any other.
    pub(crate) number: u64,
}

static OWNED: RwLock<(u64, BTreeMap<u64, Owned>)> = RwLock::new((0, BTreeMap::new()));

/// Allocates.
pub(crate) fn allocate(
    context: &Context,
    bytes: u64,
    kind: Kind,
    flags: u32,
    pool: Option<Handle<Pool>>,
) -> Result<u64> {
    // Only large allocations are worth the question.
    if bytes > 64 << 20
        && let Some(host) = memory::host_available()
        && bytes > host
    {
        log::reason(&format!(
            "an allocation of {bytes} bytes is refused: this machine has {host} bytes of memory left"
        ));
        return Err(CUresult::OUT_OF_MEMORY);
    }
    let address = context.device.memory()?.allocate(bytes, kind).map_err(code)?;
    add(context, address, bytes, kind, flags, pool);
    if kind.is_host() {
        share(context.device, address, bytes);
    }
    Ok(address)
}

/// Makes memory of the host visible to the devices.
pub(crate) fn register(context: &Context, address: u64, bytes: u64, flags: u32) -> Result {
    // SAFETY: The caller of `cuMemHostRegister` promises that the range stays mapped until it is unregistered.
    unsafe { context.device.memory()?.register_host(address as *mut u8, bytes) }.map_err(code)?;
    add(context, address, bytes, Kind::Registered, flags, None);
    share(context.device, address, bytes);
    Ok(())
}

/// Notes the variable of a module, which the module allocated.
pub(crate) fn add(
    context: &Context,
    address: u64,
    bytes: u64,
    kind: Kind,
    flags: u32,
    pool: Option<Handle<Pool>>,
) {
    let mut owned = OWNED.write().unwrap_or_else(PoisonError::into_inner);
    owned.0 += 1;
    let allocation = Owned {
        address,
        bytes,
        kind,
        context: context.handle,
        context_id: context.id,
        device: context.device,
        flags,
        pool,
        sync_memops: false,
        number: owned.0,
    };
    owned.1.insert(address, allocation);
}

/// Frees the allocation of one of these kinds that starts at `address`.
pub(crate) fn free(address: u64, kinds: &[Kind]) -> Result {
    release(&retire(address, kinds)?)
}

/// Ends the allocation of one of these kinds that starts at `address`, as far as the program is concerned: devices may
/// use it until it is released.
pub(crate) fn retire(address: u64, kinds: &[Kind]) -> Result<Owned> {
    let mut owned = OWNED.write().unwrap_or_else(PoisonError::into_inner);
    match owned.1.get(&address) {
        Some(allocation) if kinds.contains(&allocation.kind) => {}
        _ => return Err(CUresult::INVALID_VALUE),
    }
    owned.1.remove(&address).ok_or(CUresult::INVALID_VALUE)
}

/// Frees an allocation that was ended. What runs and uses it may go on.
pub(crate) fn release(allocation: &Owned) -> Result {
    let address = allocation.address;
    advice::forget(allocation.number);
    if allocation.kind.is_host() {
        for device in devices().iter().filter(|device| !std::ptr::eq(*device, allocation.device)) {
            if let Some(memory) = device.memory_if_used() {
                // A device that was first used after the allocation was made may not have it.
                let _absent = memory.unregister_host(address as *mut u8);
            }
        }
    }
    let memory = allocation.device.memory()?;
    match allocation.kind {
        Kind::Registered => memory.unregister_host(address as *mut u8).map_err(code)?,
        _ => memory.free(address).map_err(code)?,
    }
    if let Some(pool) = allocation.pool
        && let Ok(pool) = pool.get()
    {
        pool.give_back(allocation.bytes);
    }
    Ok(())
}

/// Frees what a context still holds.
pub(crate) fn free_all_of(context: &Context) {
    let all = OWNED.read().unwrap_or_else(PoisonError::into_inner).1.values().copied().collect::<Vec<_>>();
    for allocation in all.iter().filter(|allocation| allocation.context_id == context.id) {
        // Variables went with their modules before; what is left is freed whatever kind it is.
        let _freed = free(allocation.address, &[allocation.kind]);
    }
}

/// The allocation that holds `address`.
pub(crate) fn find(address: u64) -> Option<Owned> {
    let owned = OWNED.read().unwrap_or_else(PoisonError::into_inner);
    let (_, allocation) = owned.1.range(..=address).next_back()?;
    (address < allocation.address + allocation.bytes).then_some(*allocation)
}

/// Where the host finds `bytes` at a device address.
pub(crate) fn host_pointer(address: u64, bytes: u64) -> Result<*mut u8> {
    let allocation = find(address).ok_or(CUresult::INVALID_VALUE)?;
    if bytes > allocation.address + allocation.bytes - address {
        return Err(CUresult::INVALID_VALUE);
    }
    allocation.device.memory()?.host_pointer(address, bytes).map_err(code)
}

/// The bytes at an address, which work of a stream is about to use. They may be retired already.
pub(crate) fn hold(address: u64, bytes: u64) -> Result<Held> {
    let memories = devices().iter().filter_map(Device::memory_if_used);
    memories.filter_map(|memory| memory.hold(address, bytes)).next().ok_or(CUresult::INVALID_VALUE)
}

/// Sets what `CU_POINTER_ATTRIBUTE_SYNC_MEMOPS` answers.
pub(crate) fn set_sync_memops(address: u64, on: bool) -> Result {
    let start = find(address).ok_or(CUresult::INVALID_VALUE)?.address;
    let mut owned = OWNED.write().unwrap_or_else(PoisonError::into_inner);
    owned.1.get_mut(&start).ok_or(CUresult::INVALID_VALUE)?.sync_memops = on;
    Ok(())
}

/// Makes host memory that exists visible to a device that is used for the first time.
pub(crate) fn share_all_with(device: &Device, memory: &Memory) {
    let owned = OWNED.read().unwrap_or_else(PoisonError::into_inner);
    let others = owned.1.values().filter(|allocation| !std::ptr::eq(allocation.device, device));
    for allocation in others.filter(|allocation| allocation.kind.is_host()) {
        // SAFETY: The owner keeps the memory until it frees it, and `free` takes it away from every device before.
        let _present = unsafe { memory.register_host(allocation.address as *mut u8, allocation.bytes) };
    }
}

/// Makes host memory visible to the devices beside its own.
fn share(own: &Device, address: u64, bytes: u64) {
    for device in devices().iter().filter(|device| !std::ptr::eq(*device, own)) {
        if let Some(memory) = device.memory_if_used() {
            // SAFETY: The owner keeps the memory until it frees it, and `free` takes it away from every device before.
            let _present = unsafe { memory.register_host(address as *mut u8, bytes) };
        }
    }
}

fn code(error: memory::Error) -> CUresult {
    match error {
        memory::Error::InvalidValue => CUresult::INVALID_VALUE,
        memory::Error::OutOfMemory => CUresult::OUT_OF_MEMORY,
        memory::Error::AlreadyRegistered => CUresult::HOST_MEMORY_ALREADY_REGISTERED,
        memory::Error::NotRegistered => CUresult::HOST_MEMORY_NOT_REGISTERED,
    }
}
