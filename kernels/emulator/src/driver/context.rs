//! `cuCtx*`: contexts, their stack, their limits, and which devices they may reach.

use std::{
    ffi::c_void,
    sync::{Arc, atomic::Ordering},
};

use super::{
    abi::{In, Out, driver},
    error::{CUresult, Result},
    event::{Event, Moment},
    handle::Handle,
    order,
    queue::{self, Job, Lane, Pace},
    state::{self, CUcontext, CUdevice, Context, current, device, lock},
    stream,
};

/// `CUctxCreateParams`
#[repr(C)]
#[derive(Clone, Copy)]
struct CreateParams {
    affinity: *const c_void,
    affinities: i32,
    graphics: *const c_void,
}

/// `CU_LIMIT_*`
const LIMIT_STACK: u32 = 0;
const LIMIT_SYNC_DEPTH: u32 = 3;
const LIMIT_FETCH_GRANULARITY: u32 = 5;
const LIMITS: u32 = 10;

driver! {
    /// Makes a context and makes it current.
    call cuCtxCreate 2000, cuCtxCreate_v2 3020 (answer: Out<CUcontext>, flags: u32, ordinal: CUdevice) {
        create(answer, flags, ordinal)
    }

    /// The same; a share of the multiprocessors cannot be asked for.
    call cuCtxCreate_v3 11040 (
        answer: Out<CUcontext>, _affinity: In<c_void>, affinities: i32, flags: u32, ordinal: CUdevice,
    ) {
        if affinities != 0 {
            return Err(CUresult::UNSUPPORTED_EXEC_AFFINITY);
        }
        create(answer, flags, ordinal)
    }

    /// The same; neither a share of the multiprocessors nor a graphics client can be asked for.
    call cuCtxCreate_v4 12050 (answer: Out<CUcontext>, params: In<CreateParams>, flags: u32, ordinal: CUdevice) {
        if let Some(params) = params.given() {
            if params.affinities != 0 && !params.affinity.is_null() {
                return Err(CUresult::UNSUPPORTED_EXEC_AFFINITY);
            }
            if !params.graphics.is_null() {
                return Err(CUresult::NOT_SUPPORTED);
            }
        }
        create(answer, flags, ordinal)
    }

    /// Destroys a context with all that it holds.
    call cuCtxDestroy 2000, cuCtxDestroy_v2 4000 (handle: CUcontext) {
        let context = handle.get()?;
        if context.primary {
            return Err(CUresult::INVALID_CONTEXT);
        }
        handle.take()?.destroy();
        if state::current_handle() == handle {
            state::pop()?;
        }
        Ok(())
    }

    /// Answers the current context, and counts one more user of it.
    call cuCtxAttach 2000 (answer: Out<CUcontext>, flags: u32) {
        answer.check()?;
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let context = current()?;
        context.users.fetch_add(1, Ordering::Relaxed);
        answer.set(context.handle)
    }

    /// Counts one user less of the current context, which goes with the last.
    call cuCtxDetach 2000 (handle: CUcontext) {
        let context = handle.get()?;
        if state::current_handle() != handle || context.primary {
            return Err(CUresult::INVALID_CONTEXT);
        }
        if context.users.fetch_sub(1, Ordering::Relaxed) == 1 {
            handle.take()?.destroy();
            state::pop()?;
        }
        Ok(())
    }

    /// Makes a context current above the others of this thread.
    call cuCtxPushCurrent 2000, cuCtxPushCurrent_v2 4000 (handle: CUcontext) {
        if handle.is_null() {
            return Err(CUresult::INVALID_VALUE);
        }
        handle.get()?;
        state::push(handle);
        Ok(())
    }

    /// Takes the current context from this thread, which goes back to the one before.
    call cuCtxPopCurrent 2000, cuCtxPopCurrent_v2 4000 (answer: Out<CUcontext>) {
        let popped = state::pop()?;
        answer.set_if_wanted(popped);
        Ok(())
    }

    /// Puts a context in the place of the current one; null takes that away.
    call cuCtxSetCurrent 4000 (handle: CUcontext) {
        if !handle.is_null() {
            handle.get()?;
        }
        state::replace_current(handle);
        Ok(())
    }

    /// Answers the current context, or null.
    call cuCtxGetCurrent 4000 (answer: Out<CUcontext>) {
        answer.set(state::current_handle())
    }

    /// Answers the device of the current context.
    call cuCtxGetDevice 2000 (answer: Out<CUdevice>) {
        answer.check()?;
        answer.set(state::current_even_if_failed()?.device.ordinal as CUdevice)
    }

    /// Answers the device of a context.
    call cuCtxGetDevice_v2 13000 (answer: Out<CUdevice>, handle: CUcontext) {
        answer.check()?;
        answer.set(given_or_current(handle)?.device.ordinal as CUdevice)
    }

    /// Answers the flags of the current context.
    call cuCtxGetFlags 7000 (answer: Out<u32>) {
        answer.check()?;
        answer.set(current()?.flags.load(Ordering::Relaxed))
    }

    /// Sets the flags of the current context.
    call cuCtxSetFlags 12010 (flags: u32) {
        check_flags(flags)?;
        current()?.flags.store(flags, Ordering::Relaxed);
        Ok(())
    }

    /// Answers a number that no other context has.
    call cuCtxGetId 12000 (handle: CUcontext, answer: Out<u64>) {
        answer.check()?;
        answer.set(given_or_current(handle)?.id)
    }

    /// Answers the version of the interface that the context was made with.
    call cuCtxGetApiVersion 3020 (handle: CUcontext, answer: Out<u32>) {
        answer.check()?;
        given_or_current(handle)?;
        answer.set(3020)
    }

    /// Waits for all work of the current context.
    call cuCtxSynchronize 2000 () {
        wait_for(&*current()?)
    }

    /// Waits for all work of a context.
    call cuCtxSynchronize_v2 13000 (handle: CUcontext) {
        wait_for(&*given_or_current(handle)?)
    }

    /// Answers a limit.
    call cuCtxGetLimit 3010 (answer: Out<usize>, limit: u32) {
        answer.check()?;
        let context = current()?;
        answer.set(context.limit(limit)?)
    }

    /// Sets a limit.
    call cuCtxSetLimit 3010 (limit: u32, value: usize) {
        let context = current()?;
        context.limit(limit)?;
        let value = match limit {
            LIMIT_STACK => value.checked_next_multiple_of(16).ok_or(CUresult::INVALID_VALUE)?,
            LIMIT_FETCH_GRANULARITY => value.min(128),
            _ => value,
        };
        lock(&context.limits).insert(limit, value);
        Ok(())
    }

    /// Answers the preferred division between L1 and shared memory.
    call cuCtxGetCacheConfig 3020 (answer: Out<u32>) {
        answer.check()?;
        answer.set(current()?.cache_config.load(Ordering::Relaxed))
    }

    /// Notes the preferred division between L1 and shared memory, which changes nothing.
    call cuCtxSetCacheConfig 3020 (config: u32) {
        if config > 3 {
            return Err(CUresult::INVALID_VALUE);
        }
        current()?.cache_config.store(config, Ordering::Relaxed);
        Ok(())
    }

    /// Answers the width of shared-memory banks: 4 bytes.
    call cuCtxGetSharedMemConfig 4020 (answer: Out<u32>) {
        answer.check()?;
        answer.set(current()?.shared_config.load(Ordering::Relaxed))
    }

    /// Accepts a width of shared-memory banks, which no card since Kepler can change.
    call cuCtxSetSharedMemConfig 4020 (config: u32) {
        if config > 2 {
            return Err(CUresult::INVALID_VALUE);
        }
        current().map(drop)
    }

    /// Answers the priorities that streams may have.
    call cuCtxGetStreamPriorityRange 5050 (least: Out<i32>, greatest: Out<i32>) {
        current()?;
        least.set_if_wanted(stream::LEAST_PRIORITY);
        greatest.set_if_wanted(stream::GREATEST_PRIORITY);
        Ok(())
    }

    /// Does nothing: no cache is emulated.
    call cuCtxResetPersistingL2Cache 11000 () {
        current().map(drop)
    }

    /// Lets kernels of the current context use the memory of another's device.
    call cuCtxEnablePeerAccess 4000 (peer: CUcontext, flags: u32) {
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let context = current()?;
        let peer = peer.get()?;
        if std::ptr::eq(peer.device, context.device) {
            return Err(CUresult::INVALID_DEVICE);
        }
        match lock(&context.peers).insert(peer.device.ordinal) {
            true => Ok(()),
            false => Err(CUresult::PEER_ACCESS_ALREADY_ENABLED),
        }
    }

    /// Ends that.
    call cuCtxDisablePeerAccess 4000 (peer: CUcontext) {
        let context = current()?;
        let peer = peer.get()?;
        match lock(&context.peers).remove(&peer.device.ordinal) {
            true => Ok(()),
            false => Err(CUresult::PEER_ACCESS_NOT_ENABLED),
        }
    }

    /// Records an event after all work of a context.
    call cuCtxRecordEvent 12050 (handle: CUcontext, event: Handle<Event>) {
        let context = handle.get()?;
        context.check()?;
        let event = event.get()?;
        let moment = Arc::<Moment>::default();
        let told = Arc::clone(&moment);
        let job = Job::new(Pace::Quick, move || told.is_now()).after(queue::of_context(context.id));
        // It is in no stream, so it has a queue of its own.
        let lane = Lane { id: stream::fresh_id(), context: context.id, legacy: false, blocking: false };
        event.record(queue::give(lane, vec![job]), moment);
        Ok(())
    }

    /// Makes later work of a context wait for an event.
    call cuCtxWaitEvent 12050 (handle: CUcontext, event: Handle<Event>) {
        let context = handle.get()?;
        context.check()?;
        event.get()?.point().into_iter().for_each(|point| context.close_gate(point));
        Ok(())
    }
}

impl Context {
    /// The value of a limit.
    pub(crate) fn limit(&self, limit: u32) -> Result<usize> {
        let value = match limit {
            LIMIT_STACK => 1024,
            1 => 1 << 20, // printf
            2 => 8 << 20, // malloc
            // Kernels that wait for kernels of their own ended with compute capability 9.0.
            LIMIT_SYNC_DEPTH if self.device.model.compute_capability < (9, 0) => 2,
            4 => 2048, // launches by kernels
            LIMIT_FETCH_GRANULARITY => 64,
            6 => 0, // persisting L2
            _ if limit < LIMITS => return Err(CUresult::UNSUPPORTED_LIMIT),
            _ => return Err(CUresult::INVALID_VALUE),
        };
        Ok(lock(&self.limits).get(&limit).copied().unwrap_or(value))
    }
}

/// Fails for flags that are none, or contradict each other.
pub(crate) fn check_flags(flags: u32) -> Result {
    const SCHEDULES: [u32; 4] = [0, 1, 2, 4];
    let known = flags & !0xff == 0 && SCHEDULES.contains(&(flags & 7));
    if known { Ok(()) } else { Err(CUresult::INVALID_VALUE) }
}

/// The context that is meant: the current one for null.
pub(crate) fn given_or_current(handle: CUcontext) -> Result<Arc<Context>> {
    if handle.is_null() {
        return current();
    }
    let context = handle.get()?;
    context.check()?;
    Ok(context)
}

fn create(answer: Out<CUcontext>, flags: u32, ordinal: CUdevice) -> Result {
    answer.check()?;
    let device = device(ordinal)?;
    check_flags(flags)?;
    let handle = Handle::fresh();
    Context::make(device, handle, false, flags)?;
    state::push(handle);
    answer.set(handle)
}

fn wait_for(context: &Context) -> Result {
    stream::refuse_while_capturing(context)?;
    context.synchronize()?;
    order::host_waited_for_context(context.id);
    Ok(())
}
