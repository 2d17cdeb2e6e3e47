//! `cuDevicePrimaryCtx*`: the context that every user of a device shares.

use super::{
    abi::{Out, driver},
    context::check_flags,
    error::CUresult,
    state::{CUcontext, CUdevice, device, lock},
};
use std::sync::atomic::Ordering;

driver! {
    /// Answers the primary context, which exists until it was released as often as it was retained.
    call cuDevicePrimaryCtxRetain 7000 (answer: Out<CUcontext>, ordinal: CUdevice) {
        answer.check()?;
        let device = device(ordinal)?;
        let mut primary = lock(&device.primary);
        device.primary_context(&mut primary)?;
        primary.retained += 1;
        answer.set(primary.handle)
    }

    /// Gives it back.
    call cuDevicePrimaryCtxRelease 7000, cuDevicePrimaryCtxRelease_v2 11000 (ordinal: CUdevice) {
        let device = device(ordinal)?;
        if lock(&device.primary).retained == 1 {
            device.wait_for_primary();
        }
        let mut primary = lock(&device.primary);
        primary.retained = primary.retained.checked_sub(1).ok_or(CUresult::INVALID_CONTEXT)?;
        if primary.retained == 0 {
            device.destroy_primary_context(&mut primary);
        }
        Ok(())
    }

    /// Destroys it whoever has it; the next to retain it gets a new one.
    call cuDevicePrimaryCtxReset 7000, cuDevicePrimaryCtxReset_v2 11000 (ordinal: CUdevice) {
        let device = device(ordinal)?;
        device.wait_for_primary();
        let mut primary = lock(&device.primary);
        device.destroy_primary_context(&mut primary);
        Ok(())
    }

    /// Sets its flags.
    call cuDevicePrimaryCtxSetFlags 7000, cuDevicePrimaryCtxSetFlags_v2 11000 (ordinal: CUdevice, flags: u32) {
        let device = device(ordinal)?;
        check_flags(flags)?;
        let mut primary = lock(&device.primary);
        primary.flags = flags;
        if let Ok(context) = primary.handle.get() {
            context.flags.store(flags, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Answers its flags and whether it exists.
    call cuDevicePrimaryCtxGetState 7000 (ordinal: CUdevice, flags: Out<u32>, active: Out<i32>) {
        let device = device(ordinal)?;
        flags.check()?;
        active.check()?;
        let primary = lock(&device.primary);
        flags.set(primary.flags)?;
        active.set(i32::from(primary.active))
    }
}
