//! Shared memory: 32 banks of 4 bytes.

use super::{
    address::extent,
    space::{Reach, Shared, misaligned, outside},
};
use crate::warp::Context;
use crate::{
    fault::{Access, Space},
    module::program::{Flow, Ins},
};

impl Reach for Shared {
    #[inline(always)]
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        shared(context, addresses, bytes, access)
    }
}

/// Checks and counts an access to shared memory.
#[inline(always)]
pub(crate) fn shared(
    context: &mut Context,
    addresses: &mut [u64; 32],
    bytes: u64,
    access: Access,
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
    // 32 neighbouring words are in 32 banks.
    let (wavefronts, least_wavefronts) = if bytes <= 4 && greatest - least < 128 {
        (1, 1)
    } else {
        wavefronts(addresses, bytes, context.mask)
    };
    let counter = match access {
        Access::Load => &mut context.counters.shared_load,
        Access::Store => &mut context.counters.shared_store,
        Access::Atomic => &mut context.counters.shared_atomic,
    };
    counter.instructions += 1;
    counter.wavefronts += wavefronts;
    counter.bank_conflicts += wavefronts - least_wavefronts;
    let base = context.shared as u64;
    for address in addresses {
        *address += base;
    }
    Ok(())
}

/// Passes that an access to shared memory takes, and those that its width needs without conflicts.
///
/// A pass serves 32 lanes with up to 4 bytes each, 16 with 8 or 8 with 16. Lanes that want the same word share it. Two
/// neighbouring groups of wide accesses share a pass where each lane's neighbour, by bit 0 or by bit 1 of its number, is
/// off or wants the same address.
#[inline(never)]
pub(crate) fn wavefronts(addresses: &[u64; 32], bytes: u64, mask: u32) -> (u64, u64) {
    if bytes <= 4 {
        return (passes(addresses.iter().map(|address| address >> 2)), 1);
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
        let shares = pairs(lanes.clone(), 1) || pairs(lanes.clone(), 2);
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
