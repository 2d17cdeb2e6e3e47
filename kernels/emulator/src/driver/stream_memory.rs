//! `cuStreamWriteValue*` and `cuStreamWaitValue*`: numbers in memory that streams write and wait for.
//!
//! Work is done when it is given, so a stream can only wait for a number that is there. A program that asks for
//! `CU_DEVICE_ATTRIBUTE_CAN_USE_64_BIT_STREAM_MEM_OPS` learns that it should not count on more.

use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::{
    abi::driver,
    allocations,
    error::{CUresult, Result},
    log,
    stream::{self, CUstream, Stream},
};
use crate::memory::DEFINED;

/// `CU_STREAM_WAIT_VALUE_*`: what is compared; the flag above it concerns writes of other hardware.
const COMPARISONS: u32 = 3;
const FLUSH: u32 = 1 << 30;
/// `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`
const NO_BARRIER: u32 = 1;

driver! {
    /// Writes a number.
    call cuStreamWriteValue32 8000, cuStreamWriteValue32_ptsz 8000, cuStreamWriteValue32_v2 11070,
        cuStreamWriteValue32_v2_ptsz 11070 (stream: CUstream, address: u64, value: u32, flags: u32)
    {
        let place = place(stream, address, 4, flags & !NO_BARRIER == 0)?;
        // SAFETY: The allocation holds the number, which is aligned.
        unsafe { AtomicU32::from_ptr(place.cast()) }.store(value, Ordering::SeqCst);
        define(address, size_of_val(&value));
        Ok(())
    }

    /// Writes a number.
    call cuStreamWriteValue64 9000, cuStreamWriteValue64_ptsz 9000, cuStreamWriteValue64_v2 11070,
        cuStreamWriteValue64_v2_ptsz 11070 (stream: CUstream, address: u64, value: u64, flags: u32)
    {
        let place = place(stream, address, 8, flags & !NO_BARRIER == 0)?;
        // SAFETY: The allocation holds the number, which is aligned.
        unsafe { AtomicU64::from_ptr(place.cast()) }.store(value, Ordering::SeqCst);
        define(address, size_of_val(&value));
        Ok(())
    }

    /// Waits for a number.
    call cuStreamWaitValue32 8000, cuStreamWaitValue32_ptsz 8000, cuStreamWaitValue32_v2 11070,
        cuStreamWaitValue32_v2_ptsz 11070 (stream: CUstream, address: u64, value: u32, flags: u32)
    {
        let place = place(stream, address, 4, flags & !FLUSH <= COMPARISONS)?;
        // SAFETY: The allocation holds the number, which is aligned.
        let found = unsafe { AtomicU32::from_ptr(place.cast()) }.load(Ordering::SeqCst);
        let ahead = (found.wrapping_sub(value) as i32) >= 0;
        wait(found.into(), value.into(), ahead, !u64::from(u32::MAX), flags)
    }

    /// Waits for a number.
    call cuStreamWaitValue64 9000, cuStreamWaitValue64_ptsz 9000, cuStreamWaitValue64_v2 11070,
        cuStreamWaitValue64_v2_ptsz 11070 (stream: CUstream, address: u64, value: u64, flags: u32)
    {
        let place = place(stream, address, 8, flags & !FLUSH <= COMPARISONS)?;
        // SAFETY: The allocation holds the number, which is aligned.
        let found = unsafe { AtomicU64::from_ptr(place.cast()) }.load(Ordering::SeqCst);
        wait(found, value, (found.wrapping_sub(value) as i64) >= 0, 0, flags)
    }
}

/// Where the host finds the number, when the work before is done.
fn place(handle: CUstream, address: u64, bytes: u64, known: bool) -> Result<*mut u8> {
    let stream: std::sync::Arc<Stream> = stream::get(handle)?;
    stream.context.check()?;
    stream.refuse_while_capturing()?;
    if !known || !address.is_multiple_of(bytes) {
        return Err(CUresult::INVALID_VALUE);
    }
    let place = allocations::host_pointer(address, bytes)?;
    stream.context.host_functions.wait();
    drop(stream.context.device.work());
    Ok(place)
}

/// Notes that the bytes are written.
fn define(address: u64, bytes: usize) {
    if let Some(known) = allocations::shadow_pointer(address, bytes as u64) {
        // SAFETY: The shadow has as many bytes as were written.
        unsafe { known.write_bytes(DEFINED, bytes) };
    }
}

/// Fails unless the number is there. `none` are the bits above it.
fn wait(found: u64, value: u64, ahead: bool, none: u64, flags: u32) -> Result {
    let there = match flags & COMPARISONS {
        0 => ahead,
        1 => found == value,
        2 => found & value != 0,
        _ => !(found | value | none) != 0,
    };
    if there {
        return Ok(());
    }
    log::reason(&format!(
        "a stream cannot wait for a number that is not there yet: {found:#x} is, and {value:#x} is compared with it; the \
         emulated GPU does work when it is given"
    ));
    Err(CUresult::NOT_SUPPORTED)
}
