//! `cuMemset*`: fills of one and two dimensions.

use super::{
    abi::driver,
    allocations,
    error::{CUresult, Result},
    order::Use,
    queue::{Pace, QUICK_BYTES},
    stream::{self, CUstream},
    work::{self, Work},
};
use crate::memory::DEFINED;

/// A fill: `height` rows of `width` elements.
#[derive(Clone, Copy)]
pub(crate) struct Set {
    /// The first byte.
    pub(crate) address: u64,
    /// Bytes from a row to the next.
    pub(crate) pitch: u64,
    /// The value of each element.
    pub(crate) value: u32,
    /// Bytes of an element: 1, 2 or 4.
    pub(crate) element: u32,
    /// Elements of a row.
    pub(crate) width: u64,
    /// Rows.
    pub(crate) height: u64,
}

driver! {
    /// Fills bytes.
    call cuMemsetD8_v2 3020, cuMemsetD8_v2_ptds 7000 (address: u64, value: u8, count: usize) {
        now(Set::flat(address, 1, value.into(), count))
    }

    /// Fills 16-bit elements.
    call cuMemsetD16_v2 3020, cuMemsetD16_v2_ptds 7000 (address: u64, value: u16, count: usize) {
        now(Set::flat(address, 2, value.into(), count))
    }

    /// Fills 32-bit elements.
    call cuMemsetD32_v2 3020, cuMemsetD32_v2_ptds 7000 (address: u64, value: u32, count: usize) {
        now(Set::flat(address, 4, value, count))
    }

    /// Fills rows of bytes.
    call cuMemsetD2D8_v2 3020, cuMemsetD2D8_v2_ptds 7000 (
        address: u64, pitch: usize, value: u8, width: usize, height: usize,
    ) {
        now(Set::rows(address, pitch, 1, value.into(), width, height))
    }

    /// Fills rows of 16-bit elements.
    call cuMemsetD2D16_v2 3020, cuMemsetD2D16_v2_ptds 7000 (
        address: u64, pitch: usize, value: u16, width: usize, height: usize,
    ) {
        now(Set::rows(address, pitch, 2, value.into(), width, height))
    }

    /// Fills rows of 32-bit elements.
    call cuMemsetD2D32_v2 3020, cuMemsetD2D32_v2_ptds 7000 (
        address: u64, pitch: usize, value: u32, width: usize, height: usize,
    ) {
        now(Set::rows(address, pitch, 4, value, width, height))
    }

    /// Fills bytes.
    call cuMemsetD8Async 3020, cuMemsetD8Async_ptsz 7000 (address: u64, value: u8, count: usize, stream: CUstream) {
        later(Set::flat(address, 1, value.into(), count), stream)
    }

    /// Fills 16-bit elements.
    call cuMemsetD16Async 3020, cuMemsetD16Async_ptsz 7000 (address: u64, value: u16, count: usize, stream: CUstream) {
        later(Set::flat(address, 2, value.into(), count), stream)
    }

    /// Fills 32-bit elements.
    call cuMemsetD32Async 3020, cuMemsetD32Async_ptsz 7000 (address: u64, value: u32, count: usize, stream: CUstream) {
        later(Set::flat(address, 4, value, count), stream)
    }

    /// Fills rows of bytes.
    call cuMemsetD2D8Async 3020, cuMemsetD2D8Async_ptsz 7000 (
        address: u64, pitch: usize, value: u8, width: usize, height: usize, stream: CUstream,
    ) {
        later(Set::rows(address, pitch, 1, value.into(), width, height), stream)
    }

    /// Fills rows of 16-bit elements.
    call cuMemsetD2D16Async 3020, cuMemsetD2D16Async_ptsz 7000 (
        address: u64, pitch: usize, value: u16, width: usize, height: usize, stream: CUstream,
    ) {
        later(Set::rows(address, pitch, 2, value.into(), width, height), stream)
    }

    /// Fills rows of 32-bit elements.
    call cuMemsetD2D32Async 3020, cuMemsetD2D32Async_ptsz 7000 (
        address: u64, pitch: usize, value: u32, width: usize, height: usize, stream: CUstream,
    ) {
        later(Set::rows(address, pitch, 4, value, width, height), stream)
    }
}

impl Set {
    fn flat(address: u64, element: u32, value: u32, count: usize) -> Set {
        Set { address, pitch: 0, value, element, width: count as u64, height: 1 }
    }

    fn rows(address: u64, pitch: usize, element: u32, value: u32, width: usize, height: usize) -> Set {
        Set { address, pitch: pitch as u64, value, element, width: width as u64, height: height as u64 }
    }

    /// Fails for what is not in an allocation, misaligned, or of rows that overlap.
    pub(crate) fn check(&self) -> Result {
        self.resolve().map(drop)
    }

    /// Fills.
    pub(crate) fn run(&self) -> Result {
        let used = self.used().bytes;
        if used.is_empty() {
            return Ok(());
        }
        let held = allocations::hold(self.address, used.end - used.start)?;
        let (first, known) = (held.pointer, held.shadow);
        let value = &self.value.to_ne_bytes()[..self.element as usize];
        for row in 0..self.height {
            // SAFETY: All rows are held. Nobody else holds a reference to memory of a device.
            let bytes = unsafe {
                std::slice::from_raw_parts_mut(
                    first.add((row * self.pitch) as usize),
                    (self.width * u64::from(self.element)) as usize,
                )
            };
            if let Some(known) = known {
                // SAFETY: the shadow has as many bytes as the rows.
                unsafe { known.add((row * self.pitch) as usize).write_bytes(DEFINED, bytes.len()) };
            }
            match value {
                [byte] => bytes.fill(*byte),
                _ => bytes.chunks_exact_mut(value.len()).for_each(|element| element.copy_from_slice(value)),
            }
        }
        Ok(())
    }

    /// The bytes that it writes, from the first to the last.
    pub(crate) fn used(&self) -> Use {
        let row = self.width * u64::from(self.element);
        let last = if row == 0 || self.height == 0 { 0 } else { (self.height - 1) * self.pitch + row };
        Use { bytes: self.address..self.address + last, writes: true }
    }

    /// Whether it is over at once.
    pub(crate) fn pace(&self) -> Pace {
        let bytes = self.width.saturating_mul(self.element.into()).saturating_mul(self.height);
        if bytes <= QUICK_BYTES { Pace::Quick } else { Pace::Long }
    }

    /// Where the first byte is; nothing for a fill of nothing.
    fn resolve(&self) -> Result<Option<*mut u8>> {
        if !matches!(self.element, 1 | 2 | 4) || !self.address.is_multiple_of(self.element.into()) {
            return Err(CUresult::INVALID_VALUE);
        }
        if self.width == 0 || self.height == 0 {
            return Ok(None);
        }
        let row = self.width.checked_mul(self.element.into()).ok_or(CUresult::INVALID_VALUE)?;
        if self.height > 1 && (self.pitch < row || !self.pitch.is_multiple_of(self.element.into())) {
            return Err(CUresult::INVALID_VALUE);
        }
        let extent = (self.height - 1).checked_mul(self.pitch).and_then(|rows| rows.checked_add(row));
        allocations::host_pointer(self.address, extent.ok_or(CUresult::INVALID_VALUE)?).map(Some)
    }
}

fn now(set: Set) -> Result {
    let stream = stream::default()?;
    set.check()?;
    work::submit(&stream, Work::Set(set))?;
    // The host sees its own memory at once.
    let is_host = allocations::find(set.address).is_some_and(|allocation| allocation.kind.is_host());
    if is_host && stream.capture().is_none() { stream.synchronize() } else { Ok(()) }
}

fn later(set: Set, stream: CUstream) -> Result {
    let stream = stream::get(stream)?;
    set.check()?;
    work::submit(&stream, Work::Set(set))
}
