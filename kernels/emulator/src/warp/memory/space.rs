//! Spaces: from addresses to the host's pointers, with checks and counts.
//!
//! Local memory lies word by word, the lanes side by side, as on a GPU, so that a warp's accesses to one variable are
//! neighbours.

use super::{
    address::{WINDOW, Window, extent, repeat_active, window},
    global::distinct,
};
use crate::warp::{Context, context::FULL, lanes_of};
use crate::{
    fault::{Access, Cause, Near, Space},
    module::program::{Flow, Ins},
};

/// A space: from addresses to the host's pointers, with checks and counts.
pub(crate) trait Reach: 'static {
    /// Replaces the addresses with those of the bytes on the host.
    ///
    /// # Safety
    ///
    /// - The context points to the running block and warp.
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow>;

    /// The host's address of a whole warp's bytes, which lie in a row from `first` on, lane after lane, checked and counted.
    /// `None` when that takes a closer look, by [`Reach::reach`].
    #[inline(always)]
    fn reach_row(_: &mut Context, _: &Ins, _first: u64, _bytes: u64, _: Access) -> Option<u64> {
        None
    }

    /// Words of 4 bytes of one lane are this far from each other on the host.
    const STRIDE: u64 = 4;

    /// Stores may be races, which is known when they are done.
    const WATCHED: bool = false;
}

/// Device, managed and pinned memory.
pub(crate) struct Global;

/// Read-only variables.
pub(super) struct Constant;

/// A block's own memory.
pub(crate) struct Shared;

/// A thread's own memory, by address.
pub(super) struct Local;

/// The running function's own, at a fixed offset.
pub(super) struct Frame;

/// The kernel's parameters, at a fixed offset.
pub(super) struct Params;

/// The kernel's parameters, by address.
pub(super) struct Param;

/// Whatever the address says.
pub(super) struct Generic;

impl Reach for Local {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        local(context, addresses, bytes, access)
    }

    const STRIDE: u64 = 128;
}

fn local(context: &mut Context, addresses: &mut [u64; 32], bytes: u64, access: Access) -> Result<(), Flow> {
    let (_, greatest, bits) = extent(addresses);
    if bits & (bytes - 1) != 0 {
        return Err(misaligned(context, addresses, bytes, access, Space::Local));
    }
    let size = u64::from(context.local_bytes);
    if greatest >= size || size - greatest < bytes {
        return Err(outside(context, addresses, bytes, access, Space::Local, size));
    }
    // The lanes' words are side by side: 8 lanes share a sector.
    let mut pieces = 0;
    for word in 0..bytes.div_ceil(4) {
        let mut places = [0; 32];
        for lane in 0..32 {
            places[lane] = ((addresses[lane] >> 2) + word) * 128 + 4 * lane as u64;
        }
        if context.mask != FULL {
            repeat_active(&mut places, context.mask);
        }
        pieces += distinct(&places, 5);
    }
    let counter = if access == Access::Load {
        &mut context.counters.local_load
    } else {
        &mut context.counters.local_store
    };
    counter.requests += 1;
    counter.sectors += pieces;
    place_local(context, addresses);
    Ok(())
}

fn place_local(context: &Context, addresses: &mut [u64; 32]) {
    let base = context.local as u64;
    for (lane, address) in addresses.iter_mut().enumerate() {
        *address = base + (*address >> 2) * 128 + 4 * lane as u64 + (*address & 3);
    }
}

impl Reach for Frame {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        for address in addresses.iter_mut() {
            *address = address.wrapping_add(u64::from(context.frame));
        }
        let size = u64::from(context.local_bytes);
        let address = addresses[0];
        if address & (bytes.min(4) - 1) != 0 {
            return Err(misaligned(context, addresses, bytes, access, Space::Local));
        }
        if address >= size || size - address < bytes {
            return Err(outside(context, addresses, bytes, access, Space::Local, size));
        }
        place_local(context, addresses);
        Ok(())
    }

    const STRIDE: u64 = 128;
}

impl Reach for Params {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        let size = u64::from(context.param_bytes);
        let address = addresses[0];
        if address >= size || size - address < bytes {
            return Err(outside(context, addresses, bytes, access, Space::Parameter, size));
        }
        *addresses = [context.params as u64 + address; 32];
        Ok(())
    }
}

impl Reach for Param {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        let size = u64::from(context.param_bytes);
        let base = context.params as u64;
        for address in addresses.iter_mut() {
            *address &= WINDOW - 1;
        }
        let (_, greatest, _) = extent(addresses);
        if greatest >= size || size - greatest < bytes {
            return Err(outside(context, addresses, bytes, access, Space::Parameter, size));
        }
        for address in addresses.iter_mut() {
            *address += base;
        }
        Ok(())
    }
}

impl Generic {
    /// The space of the first active lane, and the active lanes that are in it.
    pub(super) fn split(context: &Context, addresses: &[u64; 32]) -> (Window, u32) {
        let first = window(addresses[context.mask.trailing_zeros().min(31) as usize]);
        let same = (0..32).filter(|&lane| window(addresses[lane]) == first);
        (first, same.fold(0, |lanes, lane| lanes | 1 << lane) & context.mask)
    }
}

impl Reach for Generic {
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        // SAFETY: as for the spaces themselves. `LoadAny` and `StoreAny` have split the lanes by space.
        unsafe {
            match window(addresses[0]) {
                Window::Global => Global::reach(context, ins, addresses, bytes, access),
                other => {
                    for address in addresses.iter_mut() {
                        *address &= WINDOW - 1;
                    }
                    match other {
                        Window::Shared => Shared::reach(context, ins, addresses, bytes, access),
                        Window::Local => local(context, addresses, bytes, access),
                        _ => Param::reach(context, ins, addresses, bytes, access),
                    }
                }
            }
        }
    }

    // Known only when it executes.
    const STRIDE: u64 = 0;

    const WATCHED: bool = true;
}

#[cold]
#[inline(never)]
pub(super) fn misaligned(
    context: &mut Context,
    addresses: &[u64; 32],
    bytes: u64,
    access: Access,
    space: Space,
) -> Flow {
    let wrong = wrong_lanes(context, addresses, |address| address & (bytes - 1) != 0);
    let address = addresses[wrong.trailing_zeros().min(31) as usize];
    context.fault(Cause::Misaligned { access, space, address, bytes }, wrong)
}

#[cold]
#[inline(never)]
pub(super) fn outside(
    context: &mut Context,
    addresses: &[u64; 32],
    bytes: u64,
    access: Access,
    space: Space,
    size: u64,
) -> Flow {
    let wrong = wrong_lanes(context, addresses, |address| address >= size || size - address < bytes);
    let address = addresses[wrong.trailing_zeros().min(31) as usize];
    context.fault(Cause::OutOfBounds { access, space, address, bytes, near: Near::Space(size) }, wrong)
}

fn wrong_lanes(context: &Context, addresses: &[u64; 32], wrong: impl Fn(u64) -> bool) -> u32 {
    lanes_of(context.mask).filter(|&lane| wrong(addresses[lane])).fold(0, |lanes, lane| lanes | 1 << lane)
}
