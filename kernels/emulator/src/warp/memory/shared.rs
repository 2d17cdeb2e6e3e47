//! Shared memory: 32 banks of 4 bytes.

use super::{
    address::{extent, repeat_active},
    is_strong,
    space::{Reach, Shared, misaligned, outside},
};
use crate::warp::Context;
use crate::{
    fault::{Access, Space},
    module::program::{Flow, Ins},
    race::Step,
};

impl Reach for Shared {
    #[inline(always)]
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        shared(context, ins, addresses, bytes, access, is_strong(ins))
    }

    const WATCHED: bool = true;
}

/// Checks and counts an access to shared memory. A `strong` one is atomic, volatile or ordered. Atomics are counted by
/// [`Atomic::count`], which knows what they do.
#[inline(always)]
pub(crate) fn shared(
    context: &mut Context,
    ins: &Ins,
    addresses: &mut [u64; 32],
    bytes: u64,
    access: Access,
    strong: bool,
) -> Result<(), Flow> {
    let (least, greatest, bits) = extent(addresses);
    if bits & (bytes - 1) != 0 {
        return Err(misaligned(context, addresses, bytes, access, Space::Shared));
    }
    let size = u64::from(context.shared_bytes);
    if greatest >= size || size - greatest < bytes {
        let size = u64::from(context.shared_bytes);
        return Err(outside(context, addresses, bytes, access, Space::Shared, size));
    }
    if matches!(access, Access::Load | Access::Store) {
        // 32 neighbouring words are in 32 banks.
        let (wavefronts, least_wavefronts) = if bytes <= 4 && greatest - least < 128 {
            (1, 1)
        } else {
            wavefronts(addresses, bytes, context.mask, access)
        };
        let counter = match access {
            Access::Load => &mut context.counters.shared_load,
            _ => &mut context.counters.shared_store,
        };
        counter.instructions += 1;
        counter.wavefronts += wavefronts;
        counter.bank_conflicts += wavefronts - least_wavefronts;
    }
    let mask = context.mask;
    if let Some(race) = context.race() {
        let step = Step { mask, site: ins.site(), access, bytes: bytes as u32, strong };
        if let Err(found) = race.access(step, addresses) {
            return Err(context.fault(found.0, found.1));
        }
    }
    let base = context.shared as u64;
    for address in addresses {
        *address += base;
    }
    Ok(())
}

/// Behind a store to shared memory: another thread's store of the same value was no race.
#[inline(always)]
pub(super) fn settle(context: &mut Context, ins: &Ins) -> Flow {
    let Some(race) = context.race().filter(|race| race.is_pending()) else { return Flow::Next };
    match race.settle(ins.site()) {
        Ok(()) => Flow::Next,
        Err(found) => context.fault(found.0, found.1),
    }
}

/// Passes that an access to shared memory takes, and those that its width needs without conflicts.
///
/// A pass serves 32 lanes with up to 4 bytes each, 16 with 8 or 8 with 16. Lanes that want the same word share it. Two
/// neighbouring groups of wide loads share a pass where each lane's neighbour, by bit 0 or by bit 1 of its number, is
/// off or wants the same address; stores never do.
///
/// The rules were found with the cases of `tests/counters.rs` on an H200. One is not known whole: where lanes are off, some
/// loads of 16 bytes take one pass more or fewer.
#[inline(never)]
fn wavefronts(addresses: &[u64; 32], bytes: u64, mask: u32, access: Access) -> (u64, u64) {
    if bytes <= 4 {
        return (passes(addresses.iter().map(|address| address >> 2)), 1);
    }
    if bytes == 16
        && access == Access::Load
        && mask.count_ones() <= 16
        && extent(addresses).0 == extent(addresses).1
    {
        return (1, 1);
    }
    let words = bytes / 4;
    let group = 32 / words as usize;
    let pairs = |lanes: std::ops::Range<usize>, bit: usize| {
        lanes.clone().all(|lane| {
            mask >> (lane ^ bit) & 1 == 0 || mask >> lane & 1 == 0 || addresses[lane] == addresses[lane ^ bit]
        })
    };
    let mut total = 0;
    let mut least = 0;
    // Groups that may share: both halves of the warp for 8 bytes, the quarters of each half for 16.
    for first in (0..32).step_by(2 * group) {
        let lanes = first..first + 2 * group;
        let shares = access == Access::Load && (pairs(lanes.clone(), 1) || pairs(lanes.clone(), 2));
        let step = if shares { 2 * group } else { group };
        for start in lanes.step_by(step) {
            let active = (start..start + step).filter(|lane| mask >> lane & 1 != 0);
            let wanted = active.flat_map(|lane| (0..words).map(move |word| (addresses[lane] >> 2) + word));
            let found = passes(wanted);
            total += found;
            least += u64::from(found > 0);
        }
    }
    (total.max(1), least.max(1))
}

/// How the hardware executes an atomic on shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Atomic {
    /// By the memory itself.
    Plain,
    /// The same, with a value to compare: in twice as many passes.
    Swap,
    /// It has no such instruction: a loop loads, computes, and swaps if nothing has changed.
    Loop,
}

impl Atomic {
    /// The kind in the lowest bits of an instruction's `f`.
    pub(crate) fn from_code(code: u32) -> Atomic {
        [Atomic::Plain, Atomic::Swap, Atomic::Loop][(code & 3).min(2) as usize]
    }

    /// Counts an atomic of the active lanes, at these addresses in shared memory.
    ///
    /// Unlike a load, two lanes never share a word: each bank serves its lanes one after the other. 64-bit operations take
    /// the halves of the warp in turn. In a loop, one lane of each bank gets through at a time.
    ///
    /// The rules were found with the cases of `tests/counters.rs` on an H200, which they give exactly, but for 3 of 48
    /// loops of 64 bits.
    #[inline(never)]
    pub(crate) fn count(self, context: &mut Context, addresses: &[u64; 32], bytes: u64) {
        let group = 128 / bytes.max(4) as usize;
        let mask = context.mask;
        match self {
            Atomic::Plain | Atomic::Swap => {
                let passes = if self == Atomic::Swap { 2 } else { 1 };
                let (mut total, mut least) = (0, 0);
                for first in (0..32).step_by(group) {
                    let mut lanes = [0u64; 32];
                    for lane in (first..first + group).filter(|lane| mask >> lane & 1 != 0) {
                        lanes[bank(addresses[lane], bytes)] += 1;
                    }
                    let most = lanes.iter().fold(0, |most, &lanes| most.max(lanes));
                    total += passes * most;
                    least += passes * u64::from(most > 0);
                }
                let counter = &mut context.counters.shared_atomic;
                counter.instructions += 1;
                counter.wavefronts += total;
                counter.bank_conflicts += total - least;
            }
            Atomic::Loop => {
                let mut left = mask;
                while left != 0 {
                    let (load, least_load) =
                        wavefronts(&repeated(addresses, left), bytes, left, Access::Load);
                    let (mut through, mut swap) = (0u32, 0);
                    let mut taken = Vec::with_capacity(32);
                    for first in (0..32).step_by(group) {
                        let mut busy = 0u32;
                        for lane in (first..first + group).filter(|lane| left >> lane & 1 != 0) {
                            let bank = bank(addresses[lane], bytes);
                            if busy >> bank & 1 == 0 && !taken.contains(&addresses[lane]) {
                                busy |= 1 << bank;
                                taken.push(addresses[lane]);
                                through |= 1 << lane;
                            }
                        }
                        swap += 2 * u64::from(left >> first & (u32::MAX >> (32 - group)) != 0);
                    }
                    let counters = &mut context.counters;
                    counters.shared_load.instructions += 1;
                    counters.shared_load.wavefronts += load;
                    counters.shared_load.bank_conflicts += load - least_load;
                    counters.shared_atomic.instructions += 1;
                    counters.shared_atomic.wavefronts += swap;
                    if left != mask {
                        counters.shared_atomic.bank_conflicts += swap;
                    }
                    left &= !through;
                }
            }
        }
    }
}

/// The bank that serves an atomic: 32 of 4 bytes, or 16 of 8.
fn bank(address: u64, bytes: u64) -> usize {
    (address / bytes.max(4) % (128 / bytes.max(4))) as usize
}

/// The addresses, with one of a lane of `mask` in place of the others'.
fn repeated(addresses: &[u64; 32], mask: u32) -> [u64; 32] {
    let mut repeated = *addresses;
    repeat_active(&mut repeated, mask);
    repeated
}

/// Passes that rows of 16 bytes at these addresses take together.
pub(crate) fn row_passes(addresses: &[u64]) -> u64 {
    passes(addresses.iter().flat_map(|&address| (0..4).map(move |word| (address >> 2) + word)))
}

/// The most distinct words that one bank has to serve.
fn passes(words: impl Iterator<Item = u64>) -> u64 {
    let mut banks = [[0u64; 32]; 32];
    let mut counts = [0usize; 32];
    let mut most = 0;
    for word in words {
        let bank = (word & 31) as usize;
        let count = counts[bank];
        if banks[bank][..count].contains(&word) {
            continue;
        }
        // At most 32 lanes' words or, for wide accesses, as many in one pass of fewer lanes.
        if let Some(slot) = banks[bank].get_mut(count) {
            *slot = word;
            counts[bank] += 1;
            most = most.max(counts[bank]);
        }
    }
    most as u64
}
