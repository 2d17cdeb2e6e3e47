//! Global memory: an access must lie inside one allocation, and costs the distinct 32-byte sectors that its lanes touch.
//!
//! Each instruction remembers the allocation that it found last.

use super::{
    address::extent,
    init, is_strong,
    space::{Constant, Global, Reach, misaligned},
};
use crate::warp::Context;
use crate::{
    fault::{Access, Cause, Near, Space},
    memory::Range,
    module::program::{Flow, Ins},
};

impl Reach for Global {
    #[inline(always)]
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        if access == Access::Store
            && is_strong(ins)
            && let Some(race) = context.race()
        {
            race.release_global();
        }
        global(context, ins.f >> 8, addresses, bytes, access)
    }

    #[inline(always)]
    fn reach_row(context: &mut Context, ins: &Ins, first: u64, bytes: u64, access: Access) -> Option<u64> {
        if context.race().is_some() { None } else { row(context, ins.f >> 8, first, bytes, access) }
    }
}

/// As [`global`], for 32 lanes whose bytes lie in a row, in the allocation that the instruction found last.
#[inline(always)]
fn row(context: &mut Context, cache: u32, first: u64, bytes: u64, access: Access) -> Option<u64> {
    let range = context.caches[cache as usize];
    let inside = first >= range.start && first < range.end && range.end - first >= 32 * bytes;
    let writes = access != Access::Load;
    if !inside || first & (bytes - 1) != 0 || writes && range.constant || range.shadow | range.marks != 0 {
        return None;
    }
    count(context, access, ((first + 32 * bytes - 1) >> 5) - (first >> 5) + 1);
    Some(first.wrapping_add(range.distance))
}

/// Checks and counts an access to global memory.
#[inline(always)]
pub(crate) fn global(
    context: &mut Context,
    cache: u32,
    addresses: &mut [u64; 32],
    bytes: u64,
    access: Access,
) -> Result<(), Flow> {
    let (least, greatest, bits) = extent(addresses);
    if bits & (bytes - 1) != 0 {
        return Err(misaligned(context, addresses, bytes, access, Space::Global));
    }
    let range = context.caches[cache as usize];
    let inside = least >= range.start && greatest < range.end && range.end - greatest >= bytes;
    let writes = access != Access::Load;
    let range = if inside && !(writes && range.constant) {
        range
    } else {
        match find_range(context, cache, addresses, least, greatest, bytes, access)? {
            Some(range) => range,
            None => return Ok(()),
        }
    };
    if range.shadow != 0 {
        init::one_range(context, &range, addresses, least, greatest, bytes, access)?;
    }
    if range.marks != 0 {
        touch(&range, addresses, writes);
    }
    count(context, access, sectors(addresses, least, greatest));
    for address in addresses {
        *address = address.wrapping_add(range.distance);
    }
    Ok(())
}

/// The allocation of all lanes; or `None` after the addresses of lanes in several were replaced one by one.
#[cold]
#[inline(never)]
fn find_range(
    context: &mut Context,
    cache: u32,
    addresses: &mut [u64; 32],
    least: u64,
    greatest: u64,
    bytes: u64,
    access: Access,
) -> Result<Option<Range>, Flow> {
    let inside = |range: &Range, address: u64| range.end - address >= bytes;
    let writes = access != Access::Load;
    if let Some(range) = context.table.find(least)
        && greatest < range.end
        && inside(&range, greatest)
        && !(writes && range.constant)
    {
        match &context.table.footprint {
            // Without the cache, every access comes here.
            Some(footprint) => footprint.note(range.start, least..greatest + bytes, writes),
            None => context.caches[cache as usize] = range,
        }
        return Ok(Some(range));
    }
    let mut wrong = 0u32;
    let mut constant = false;
    let mut host = [0; 32];
    let mut shadows = [0; 32];
    for lane in 0..32 {
        match context.table.find(addresses[lane]) {
            Some(range) if inside(&range, addresses[lane]) && !(writes && range.constant) => {
                if let Some(footprint) = &context.table.footprint
                    && context.mask >> lane & 1 == 1
                {
                    footprint.note(range.start, addresses[lane]..addresses[lane] + bytes, writes);
                }
                if range.marks != 0 && context.mask >> lane & 1 == 1 {
                    range.touch(addresses[lane], writes);
                }
                host[lane] = addresses[lane].wrapping_add(range.distance);
                if range.shadow != 0 {
                    shadows[lane] = addresses[lane].wrapping_add(range.shadow);
                }
            }
            found => {
                constant |=
                    found.is_some_and(|range| writes && range.constant && inside(&range, addresses[lane]));
                wrong |= 1 << lane;
            }
        }
    }
    wrong &= context.mask;
    if wrong != 0 {
        let address = addresses[wrong.trailing_zeros() as usize];
        let cause = if constant {
            Cause::ReadOnly { address }
        } else {
            Cause::OutOfBounds { access, space: Space::Global, address, bytes, near: Near::Nothing }
        };
        return Err(context.fault(cause, wrong));
    }
    init::each_lane(context, addresses, &shadows, bytes, access)?;
    count(context, access, sectors(addresses, least, greatest));
    *addresses = host;
    Ok(None)
}

/// Marks the pages of managed memory that the lanes touch. No access crosses from one to the next.
#[inline(never)]
fn touch(range: &Range, addresses: &[u64; 32], writes: bool) {
    let mut last = u64::MAX;
    for &address in addresses {
        if address >> 12 != last {
            range.touch(address, writes);
            last = address >> 12;
        }
    }
}

/// Counts a request.
#[inline(always)]
fn count(context: &mut Context, access: Access, sectors: u64) {
    let counter = match access {
        Access::Load => &mut context.counters.global_load,
        Access::Store => &mut context.counters.global_store,
        Access::Atomic | Access::Exchange => &mut context.counters.global_atomic,
    };
    counter.requests += 1;
    counter.sectors += sectors;
}

/// Distinct 32-byte pieces. No access crosses from one to the next, for it is aligned to its size.
#[inline(always)]
fn sectors(addresses: &[u64; 32], least: u64, greatest: u64) -> u64 {
    if least >> 5 == greatest >> 5 {
        return 1;
    }
    let mut changes = 0u64;
    let mut back = 0u64;
    for lane in 1..32 {
        // Signed, for vector units compare signed numbers; the highest bits are zero.
        let (before, after) = ((addresses[lane - 1] >> 5) as i64, (addresses[lane] >> 5) as i64);
        changes += u64::from(before != after);
        back |= u64::from(after < before);
    }
    if back == 0 { changes + 1 } else { distinct(addresses, 5) }
}

/// Distinct pieces of `1 << shift` bytes, in any order.
#[inline(never)]
pub(super) fn distinct(addresses: &[u64; 32], shift: u32) -> u64 {
    let least = addresses.iter().fold(u64::MAX, |least, &address| least.min(address >> shift));
    // Pieces that are near each other are bits of a word.
    let mut bits = 0u64;
    let mut far = false;
    for &address in addresses {
        let piece = (address >> shift) - least;
        far |= piece >= 64;
        bits |= 1u64.wrapping_shl(piece as u32);
    }
    if !far {
        return u64::from(bits.count_ones());
    }
    let mut sorted = addresses.map(|address| address >> shift);
    sorted.sort_unstable();
    1 + sorted.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

impl Reach for Constant {
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        // Constant loads go through a cache of their own, and count as no global traffic.
        let before = context.counters;
        let reached = global(context, ins.f >> 8, addresses, bytes, access);
        context.counters = before;
        reached
    }
}
