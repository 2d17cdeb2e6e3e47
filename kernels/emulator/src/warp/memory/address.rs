//! Addresses of lanes, and the windows of generic addresses.

use crate::module::program::{Ins, NONE};
use crate::warp::{Context, Word, context::FULL};

/// Where generic addresses of shared memory start, above all that a process can map.
pub(crate) const GENERIC_SHARED: u64 = 0x0001_0000_0000_0000;

/// Of local memory.
pub(crate) const GENERIC_LOCAL: u64 = 0x0001_0001_0000_0000;

/// Of a kernel's parameters.
pub(crate) const GENERIC_PARAM: u64 = 0x0001_0002_0000_0000;

/// Every window is this large.
pub(crate) const WINDOW: u64 = 1 << 32;

/// A register that can hold an address.
pub(crate) trait Address: Word {
    fn widen(self) -> u64;
}

impl Address for u32 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self.into()
    }
}

impl Address for u64 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self
    }
}

/// The lanes' addresses. Inactive lanes get the address of an active one, so that checks and counts need no mask.
#[inline(always)]
pub(crate) unsafe fn addresses<A: Address>(context: &Context, ins: &Ins) -> [u64; 32] {
    if ins.a == NONE {
        return [ins.x; 32];
    }
    // SAFETY: the decoder chose a row of this width.
    let row: [A; 32] = unsafe { context.row(ins.a) };
    let mut found = [0; 32];
    for lane in 0..32 {
        found[lane] = row[lane].widen().wrapping_add(ins.x);
    }
    if A::ROW == 128 {
        // Offsets in 32-bit spaces wrap around there.
        for address in &mut found {
            *address &= u64::from(u32::MAX);
        }
    }
    if context.mask != FULL {
        repeat_active(&mut found, context.mask);
    }
    found
}

/// The first lane's address, if all lanes are active and each one's bytes lie right behind those of the lane before it.
#[inline(always)]
pub(crate) unsafe fn in_a_row<A: Address>(context: &Context, ins: &Ins, bytes: u64) -> Option<u64> {
    if A::ROW != u64::ROW || ins.a == NONE || context.mask != FULL {
        return None;
    }
    // SAFETY: the decoder chose a row of this width.
    let row: [A; 32] = unsafe { context.row(ins.a) };
    let first = row[0].widen();
    let mut differences = 0;
    for (lane, address) in row.iter().enumerate() {
        differences |= address.widen().wrapping_sub(first) ^ (lane as u64 * bytes);
    }
    (differences == 0).then(|| first.wrapping_add(ins.x))
}

/// Gives each inactive lane the address of the active lane before it, or else of the first.
pub(crate) fn repeat_active(found: &mut [u64; 32], mask: u32) {
    let mut last = found[mask.trailing_zeros().min(31) as usize];
    for (lane, address) in found.iter_mut().enumerate() {
        if mask >> lane & 1 != 0 {
            last = *address;
        } else {
            *address = last;
        }
    }
}

/// The least address, the greatest, and all their bits.
#[inline(always)]
pub(super) fn extent(addresses: &[u64; 32]) -> (u64, u64, u64) {
    let first = addresses[0];
    let (mut bits, mut others) = (0, 0);
    for &address in addresses {
        bits |= address;
        others |= address ^ first;
    }
    if others >> 32 == 0 {
        // Vector units compare halves faster than whole addresses.
        let (mut least, mut greatest) = (u32::MAX, 0);
        for &address in addresses {
            least = least.min(address as u32);
            greatest = greatest.max(address as u32);
        }
        let high = first & !u64::from(u32::MAX);
        return (high | u64::from(least), high | u64::from(greatest), bits);
    }
    let least = addresses.iter().fold(u64::MAX, |least, &address| least.min(address));
    let greatest = addresses.iter().fold(0, |greatest, &address| greatest.max(address));
    (least, greatest, bits)
}

/// The space that a generic address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Global,
    Shared,
    Local,
    Param,
}

/// The space that a generic address is in.
#[inline(always)]
pub(crate) fn window(address: u64) -> Window {
    match address & !(WINDOW - 1) {
        GENERIC_SHARED => Window::Shared,
        GENERIC_LOCAL => Window::Local,
        GENERIC_PARAM => Window::Param,
        _ => Window::Global,
    }
}

impl Context {
    /// Up to 8 bytes at a generic address of a lane, or zero when there is nothing.
    pub(crate) fn peek(&self, address: u64, bytes: u64, lane: usize) -> u64 {
        let mut value = 0;
        for byte in 0..bytes {
            value |= u64::from(self.peek_byte(address.wrapping_add(byte), lane).unwrap_or(0)) << (8 * byte);
        }
        value
    }

    /// A string that ends in a zero byte, at a generic address of a lane.
    pub(crate) fn string(&self, address: u64, lane: usize) -> Vec<u8> {
        (0..1 << 16)
            .map_while(|offset| self.peek_byte(address.wrapping_add(offset), lane).filter(|&byte| byte != 0))
            .collect()
    }

    fn peek_byte(&self, address: u64, lane: usize) -> Option<u8> {
        let offset = address & (WINDOW - 1);
        let host = match window(address) {
            Window::Global => address.wrapping_add(self.table.find(address)?.distance),
            Window::Shared if offset < u64::from(self.shared_bytes) => self.shared as u64 + offset,
            Window::Local if offset < u64::from(self.local_bytes) => {
                self.local as u64 + (offset >> 2) * 128 + 4 * lane as u64 + (offset & 3)
            }
            Window::Param if offset < u64::from(self.param_bytes) => self.params as u64 + offset,
            _ => return None,
        };
        // SAFETY: the byte lies inside of what was just found.
        Some(unsafe { std::ptr::with_exposed_provenance::<u8>(host as usize).read() })
    }
}
