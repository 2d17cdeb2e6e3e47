//! `cuMem*`: device, pinned, registered and managed memory.

use std::sync::Arc;

use super::{
    abi::{Out, driver},
    allocations::{self, allocate},
    capture,
    error::{CUresult, Result},
    host, order, pool,
    state::{Context, current, lock},
    stream::{self, CUstream},
};
use crate::memory::{Kind, host_available};

/// Rows of pitched memory start on multiples of this.
const PITCH: usize = 512;

driver! {
    /// Answers free and total bytes of the current device. What the host could not hold is not free.
    call cuMemGetInfo_v2 3020 (free: Out<usize>, total: Out<usize>) {
        free.check()?;
        total.check()?;
        let context = current()?;
        let memory = context.device.memory()?;
        let available = memory.available().min(host_available().unwrap_or(u64::MAX));
        free.set(available as usize)?;
        total.set(memory.capacity() as usize)
    }

    /// Allocates device memory.
    call cuMemAlloc_v2 3020 (answer: Out<u64>, bytes: usize) {
        answer.check()?;
        let context = ready()?;
        answer.set(allocate(&context, bytes as u64, Kind::Device, 0, None)?)
    }

    /// Allocates device memory for rows.
    call cuMemAllocPitch_v2 3020 (answer: Out<u64>, pitch: Out<usize>, width: usize, height: usize, element: u32) {
        answer.check()?;
        pitch.check()?;
        if !matches!(element, 4 | 8 | 16) || width == 0 || height == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let context = ready()?;
        let row = width.checked_next_multiple_of(PITCH).ok_or(CUresult::INVALID_VALUE)?;
        let bytes = row.checked_mul(height).ok_or(CUresult::OUT_OF_MEMORY)?;
        answer.set(allocate(&context, bytes as u64, Kind::Device, 0, None)?)?;
        pitch.set(row)
    }

    /// Frees device or managed memory; null is no memory.
    call cuMemFree_v2 3020 (address: u64) {
        let context = ready()?;
        if address == 0 {
            return Ok(());
        }
        wait_for_users(&context, address)?;
        allocations::free(address, &[Kind::Device, Kind::Managed])
    }

    /// Allocates device memory in the order of a stream.
    call cuMemAllocAsync 11020, cuMemAllocAsync_ptsz 11020 (answer: Out<u64>, bytes: usize, stream: CUstream) {
        answer.check()?;
        let stream = stream::get(stream)?;
        let pool = lock(pool::of(stream.context.device)).1;
        answer.set(pool::allocate(&stream, bytes, pool)?)
    }

    /// Frees device memory in the order of a stream.
    call cuMemFreeAsync 11020, cuMemFreeAsync_ptsz 11020 (address: u64, stream: CUstream) {
        let stream = stream::get(stream)?;
        pool::free(&stream, address)
    }

    /// Answers the allocation that holds an address.
    call cuMemGetAddressRange_v2 3020 (start: Out<u64>, bytes: Out<usize>, address: u64) {
        current()?;
        let allocation = allocations::find(address).ok_or(CUresult::NOT_FOUND)?;
        start.set_if_wanted(allocation.address);
        bytes.set_if_wanted(allocation.bytes as usize);
        Ok(())
    }

    /// Allocates memory of the host that devices see.
    call cuMemAllocHost_v2 3020 (answer: Out<u64>, bytes: usize) {
        answer.check()?;
        let context = ready()?;
        answer.set(allocate(&context, bytes as u64, Kind::Pinned, 0, None)?)
    }

    /// Allocates memory of the host that devices see.
    call cuMemHostAlloc 2020 (answer: Out<u64>, bytes: usize, flags: u32) {
        answer.check()?;
        if flags & !7 != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let context = ready()?;
        answer.set(allocate(&context, bytes as u64, Kind::Pinned, flags, None)?)
    }

    /// Frees memory of the host; null is no memory.
    call cuMemFreeHost 2000 (address: u64) {
        let context = ready()?;
        if address == 0 {
            return Ok(());
        }
        wait_for_users(&context, address)?;
        allocations::free(address, &[Kind::Pinned])
    }

    /// Makes memory of the host visible to devices.
    call cuMemHostRegister 4000, cuMemHostRegister_v2 6050 (address: u64, bytes: usize, flags: u32) {
        // PORTABLE, DEVICEMAP, READ_ONLY; memory of other hardware (IOMEMORY) is not there.
        if flags & !0xf != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        if flags & 4 != 0 {
            return Err(CUresult::NOT_SUPPORTED);
        }
        let context = ready()?;
        if !host::is_readable(address as usize, bytes) {
            return Err(CUresult::INVALID_VALUE);
        }
        allocations::register(&context, address, bytes as u64, flags)
    }

    /// Ends that.
    call cuMemHostUnregister 4000 (address: u64) {
        let context = ready()?;
        if address == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        wait_for_users(&context, address)?;
        allocations::free(address, &[Kind::Registered]).map_err(|_| CUresult::HOST_MEMORY_NOT_REGISTERED)
    }

    /// Answers the address that devices use: the host's own.
    call cuMemHostGetDevicePointer_v2 3020 (answer: Out<u64>, address: u64, flags: u32) {
        answer.check()?;
        current()?;
        let is_host = |kind| matches!(kind, Kind::Pinned | Kind::Registered);
        if flags != 0 || !allocations::find(address).is_some_and(|found| is_host(found.kind)) {
            return Err(CUresult::INVALID_VALUE);
        }
        answer.set(address)
    }

    /// Answers the flags of an allocation of host memory. Devices see all of it.
    call cuMemHostGetFlags 2030 (answer: Out<u32>, address: u64) {
        const DEVICE_MAP: u32 = 2;
        answer.check()?;
        current()?;
        let allocation = allocations::find(address).filter(|found| found.kind == Kind::Pinned);
        answer.set(allocation.ok_or(CUresult::INVALID_VALUE)?.flags | DEVICE_MAP)
    }

    /// Allocates memory that host and devices use at one address.
    call cuMemAllocManaged 6000 (answer: Out<u64>, bytes: usize, flags: u32) {
        answer.check()?;
        if !matches!(flags, 1 | 2) {
            return Err(CUresult::INVALID_VALUE);
        }
        let context = ready()?;
        answer.set(allocate(&context, bytes as u64, Kind::Managed, flags, None)?)
    }

    /// Does nothing: copies of others are seen at once.
    call cuFlushGPUDirectRDMAWrites 11030 (_target: u32, _scope: u32) {
        current().map(drop)
    }
}

/// Waits for the work of the current context, and of the one that memory belongs to.
fn wait_for_users(context: &Context, address: u64) -> Result {
    context.synchronize()?;
    order::host_waited_for_context(context.id);
    let owner = allocations::find(address).and_then(|allocation| allocation.context.get().ok());
    if let Some(owner) = owner.filter(|owner| owner.id != context.id) {
        // What failed there is no business of this context.
        let _failed = owner.synchronize();
    }
    Ok(())
}

/// The current context, where nothing forbids to allocate or free.
fn ready() -> Result<Arc<Context>> {
    let context = current()?;
    capture::refuse_unsafe()?;
    Ok(context)
}
