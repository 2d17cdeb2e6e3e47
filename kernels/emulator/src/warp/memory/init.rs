//! `EMULATED_GPU_CHECK=init`: kernels read no byte of device memory that nothing has written.
//!
//! A byte is known once a kernel, a copy or a fill has written it. Every read of others is reported, also where a kernel
//! loads more than it uses: the padding of a structure, the end of a vector. compute-sanitizer's initcheck does the same.

use crate::warp::{Context, lanes_of};
use crate::{
    fault::{Access, Cause, Near, Space},
    memory::{DEFINED, Range},
    module::program::Flow,
};

/// An access of all lanes in one tracked allocation, from `least` to `greatest`.
#[inline(never)]
pub(super) fn one_range(
    context: &mut Context,
    range: &Range,
    addresses: &[u64; 32],
    least: u64,
    greatest: u64,
    bytes: u64,
    access: Access,
) -> Result<(), Flow> {
    // Lanes that leave no gap can be seen as one, as most do.
    let span = greatest - least + bytes;
    let dense = span <= 32 * bytes;
    if matches!(access, Access::Load | Access::Atomic) {
        // SAFETY: the access is inside of an allocation, whose shadow is as large.
        let known = dense && unsafe { all_known(least.wrapping_add(range.shadow), span) };
        if !known {
            each_load(context, addresses, bytes, access, |lane| addresses[lane].wrapping_add(range.shadow))?;
        }
    }
    if access != Access::Load {
        if dense && are_neighbours(addresses, bytes) {
            // SAFETY: as above.
            unsafe { know(least.wrapping_add(range.shadow), span) };
        } else {
            for address in addresses {
                // SAFETY: as above.
                unsafe { know(address.wrapping_add(range.shadow), bytes) };
            }
        }
    }
    Ok(())
}

/// An access of lanes in several allocations, each with its shadow's address, or 0 where nothing is tracked.
pub(super) fn each_lane(
    context: &mut Context,
    addresses: &[u64; 32],
    shadows: &[u64; 32],
    bytes: u64,
    access: Access,
) -> Result<(), Flow> {
    if matches!(access, Access::Load | Access::Atomic) {
        each_load(context, addresses, bytes, access, |lane| shadows[lane])?;
    }
    if access != Access::Load {
        for &shadow in shadows.iter().filter(|&&shadow| shadow != 0) {
            // SAFETY: the access of this lane is inside of an allocation, whose shadow is as large.
            unsafe { know(shadow, bytes) };
        }
    }
    Ok(())
}

/// Looks at each lane by itself.
fn each_load(
    context: &mut Context,
    addresses: &[u64; 32],
    bytes: u64,
    access: Access,
    shadow: impl Fn(usize) -> u64,
) -> Result<(), Flow> {
    // SAFETY: the caller has found each address inside of an allocation, whose shadow is as large.
    let is_known = |lane: usize, byte: u64, bytes: u64| unsafe {
        shadow(lane) == 0 || all_known(shadow(lane) + byte, bytes)
    };
    let mask = context.mask;
    let wrong = lanes_of(mask).filter(|&lane| !is_known(lane, 0, bytes));
    let wrong = wrong.fold(0u32, |wrong, lane| wrong | 1 << lane);
    if wrong == 0 {
        return Ok(());
    }
    let first = wrong.trailing_zeros() as usize;
    let address = addresses[first];
    let unwritten = (0..bytes).filter(|&byte| !is_known(first, byte, 1)).count() as u64;
    let cause =
        Cause::Uninitialised { access, space: Space::Global, address, bytes, unwritten, near: Near::Nothing };
    Err(context.fault(cause, wrong))
}

/// All bytes are known.
///
/// # Safety
///
/// - That many bytes of a shadow are at this address of the host.
#[inline(always)]
unsafe fn all_known(shadow: u64, bytes: u64) -> bool {
    let pointer = std::ptr::with_exposed_provenance::<u8>(shadow as usize);
    // SAFETY: the caller's promise. Whoever writes there meanwhile writes what ends up there in any case.
    unsafe {
        match bytes {
            4 => pointer.cast::<u32>().read_unaligned() == u32::MAX,
            128 => {
                pointer.cast::<[u64; 16]>().read_unaligned().iter().fold(u64::MAX, |all, part| all & part)
                    == u64::MAX
            }
            8 => pointer.cast::<u64>().read_unaligned() == u64::MAX,
            _ => {
                let mut all = DEFINED;
                for byte in 0..bytes as usize {
                    all &= pointer.add(byte).read();
                }
                all == DEFINED
            }
        }
    }
}

/// Notes that bytes are written.
///
/// # Safety
///
/// - As for `all_known`.
#[inline(always)]
unsafe fn know(shadow: u64, bytes: u64) {
    let pointer = std::ptr::with_exposed_provenance_mut::<u8>(shadow as usize);
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            4 => pointer.cast::<u32>().write_unaligned(u32::MAX),
            8 => pointer.cast::<u64>().write_unaligned(u64::MAX),
            128 => pointer.cast::<[u64; 16]>().write_unaligned([u64::MAX; 16]),
            _ => pointer.write_bytes(DEFINED, bytes as usize),
        }
    }
}

/// Each lane's bytes lie right behind those of the lane before it.
fn are_neighbours(addresses: &[u64; 32], bytes: u64) -> bool {
    (0..32).fold(true, |all, lane| all & (addresses[lane as usize] == addresses[0] + lane * bytes))
}
