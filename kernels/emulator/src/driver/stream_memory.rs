//! `cuStreamWriteValue*` and `cuStreamWaitValue*`: numbers in memory that streams write and wait for.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use super::{
    abi::driver,
    allocations,
    error::{CUresult, Result},
    log,
    queue::{self, Pace},
    stream::{self, CUstream, Stream},
    work,
};
use crate::memory::{DEFINED, Held};

/// `CU_STREAM_WAIT_VALUE_*`: what is compared; the flag above it concerns writes of other hardware.
const COMPARISONS: u32 = 3;
const FLUSH: u32 = 1 << 30;
/// `CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER`
const NO_BARRIER: u32 = 1;

/// A number in memory.
#[derive(Clone, Copy)]
struct Place {
    address: u64,
    /// Its size: 4 or 8.
    bytes: u64,
}

driver! {
    /// Writes a number.
    call cuStreamWriteValue32 8000, cuStreamWriteValue32_ptsz 8000, cuStreamWriteValue32_v2 11070,
        cuStreamWriteValue32_v2_ptsz 11070 (stream: CUstream, address: u64, value: u32, flags: u32)
    {
        write(stream, Place { address, bytes: 4 }, value.into(), flags)
    }

    /// Writes a number.
    call cuStreamWriteValue64 9000, cuStreamWriteValue64_ptsz 9000, cuStreamWriteValue64_v2 11070,
        cuStreamWriteValue64_v2_ptsz 11070 (stream: CUstream, address: u64, value: u64, flags: u32)
    {
        write(stream, Place { address, bytes: 8 }, value, flags)
    }

    /// Has later work of a stream wait for a number.
    call cuStreamWaitValue32 8000, cuStreamWaitValue32_ptsz 8000, cuStreamWaitValue32_v2 11070,
        cuStreamWaitValue32_v2_ptsz 11070 (stream: CUstream, address: u64, value: u32, flags: u32)
    {
        wait(stream, Place { address, bytes: 4 }, value.into(), flags)
    }

    /// Has later work of a stream wait for a number.
    call cuStreamWaitValue64 9000, cuStreamWaitValue64_ptsz 9000, cuStreamWaitValue64_v2 11070,
        cuStreamWaitValue64_v2_ptsz 11070 (stream: CUstream, address: u64, value: u64, flags: u32)
    {
        wait(stream, Place { address, bytes: 8 }, value, flags)
    }
}

impl Place {
    /// The stream, if the number may be used there.
    fn check(self, handle: CUstream, known: bool) -> Result<Arc<Stream>> {
        let stream = stream::get(handle)?;
        stream.context.check()?;
        stream.refuse_while_capturing()?;
        if !known || !self.address.is_multiple_of(self.bytes) {
            return Err(CUresult::INVALID_VALUE);
        }
        allocations::host_pointer(self.address, self.bytes)?;
        Ok(stream)
    }

    fn hold(self) -> Result<Held> {
        allocations::hold(self.address, self.bytes)
    }

    fn load(self, held: &Held) -> u64 {
        // SAFETY: The bytes are held, and the number is aligned.
        unsafe {
            match self.bytes {
                4 => AtomicU32::from_ptr(held.pointer.cast()).load(Ordering::SeqCst).into(),
                _ => AtomicU64::from_ptr(held.pointer.cast()).load(Ordering::SeqCst),
            }
        }
    }

    fn store(self, held: &Held, value: u64) {
        // SAFETY: The bytes are held, and the number is aligned. The shadow has as many bytes.
        unsafe {
            match self.bytes {
                4 => AtomicU32::from_ptr(held.pointer.cast()).store(value as u32, Ordering::SeqCst),
                _ => AtomicU64::from_ptr(held.pointer.cast()).store(value, Ordering::SeqCst),
            }
            if let Some(known) = held.shadow {
                known.write_bytes(DEFINED, self.bytes as usize);
            }
        }
    }

    /// Whether what is there is what a stream waits for.
    fn is_reached(self, found: u64, value: u64, flags: u32) -> bool {
        // In the upper bits, where a number of 4 bytes has its sign where one of 8 has it.
        let shift = 64 - 8 * self.bytes;
        let (found, value) = (found << shift, value << shift);
        match flags & COMPARISONS {
            0 => found.wrapping_sub(value) as i64 >= 0,
            1 => found == value,
            2 => found & value != 0,
            _ => !(found | value) >> shift != 0,
        }
    }
}

fn write(handle: CUstream, place: Place, value: u64, flags: u32) -> Result {
    let stream = place.check(handle, flags & !NO_BARRIER == 0)?;
    let job = work::job(&stream, Pace::Quick, move |_| {
        place.store(&place.hold()?, value);
        Ok(())
    });
    queue::give(stream.lane(), vec![job.after(stream.context.gate())]);
    Ok(())
}

fn wait(handle: CUstream, place: Place, value: u64, flags: u32) -> Result {
    let stream = place.check(handle, flags & !FLUSH <= COMPARISONS)?;
    let job = work::job(&stream, Pace::Long, move |stream| wait_until(stream, place, value, flags));
    queue::give(stream.lane(), vec![job.after(stream.context.gate())]);
    Ok(())
}

/// Waits for a number that somebody writes, as long as an endless loop would be let run.
fn wait_until(stream: &Stream, place: Place, value: u64, flags: u32) -> Result {
    /// What a kernel may execute in a second, more or less.
    const INSTRUCTIONS_PER_SECOND: f64 = 1e8;
    const LONGEST_SLEEP: Duration = Duration::from_micros(500);
    let held = place.hold()?;
    let longest = stream.context.device.settings.budget as f64 / INSTRUCTIONS_PER_SECOND;
    let (start, mut sleep) = (Instant::now(), Duration::from_micros(1));
    while !place.is_reached(place.load(&held), value, flags) {
        if stream.context.check().is_err() {
            return Ok(());
        }
        if start.elapsed().as_secs_f64() > longest {
            log::always(&format!(
                "a stream waited too long for a number at {:#x}: nobody wrote one that passes for {value:#x}; \
                 EMULATED_GPU_BUDGET allows it to wait longer",
                place.address
            ));
            return Err(CUresult::LAUNCH_TIMEOUT);
        }
        thread::sleep(sleep);
        sleep = (2 * sleep).min(LONGEST_SLEEP);
    }
    Ok(())
}
