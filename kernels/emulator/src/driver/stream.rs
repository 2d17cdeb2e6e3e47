//! `cuStream*`: queues of work.
//!
//! A call that gives work returns at once. The work is done in the stream's own order, by threads of the driver, while
//! the program and other streams go on: see `queue`. Streams wait for each other where an event says so, and where the
//! default stream does: the legacy one, which all threads share, waits for the work that blocking streams of its context
//! were given before, and they for its. A stream that was made with `CU_STREAM_NON_BLOCKING` has no part in that.
//!
//! Some calls wait, as the manual says: those without `Async` in their names that concern memory of the host, copies
//! between memory of the host that is not pinned and a device, and whatever frees something.

use std::{
    cell::Cell,
    collections::HashMap,
    ffi::c_void,
    sync::{
        Arc, Mutex,
        atomic::{AtomicU64, Ordering},
    },
};

use super::{
    abi::{In, Out, driver},
    allocations,
    capture::{self, Capture},
    error::{CUresult, Result},
    event::Event,
    handle::{Handle, objects},
    order,
    queue::{self, Job, Lane, Pace},
    state::{CUcontext, CUdevice, Context, current, lock},
    work::{self, HostFunction, Work},
};
use crate::memory::Kind;

/// A stream, as C names it.
pub(crate) type CUstream = Handle<Stream>;

/// A stream.
pub(crate) struct Stream {
    /// Where it belongs.
    pub(crate) context: Arc<Context>,
    /// Its number, unlike that of any other.
    pub(crate) id: u64,
    /// It is the default stream that all threads share.
    pub(crate) legacy: bool,
    /// It waits for the legacy default stream, and that for it.
    pub(crate) blocking: bool,
    flags: u32,
    priority: i32,
    capture: Mutex<Option<Arc<Capture>>>,
    attributes: Mutex<HashMap<u32, [u64; 8]>>,
}

objects!(Stream);

/// The default stream that all threads share.
const LEGACY: usize = 1;
/// The default stream of the calling thread.
const PER_THREAD: usize = 2;
const NON_BLOCKING: u32 = 1;
/// `CU_LAUNCH_ATTRIBUTE_*` of streams; the others are a window of persisting L2 and memory synchronisation domains.
const SYNCHRONIZATION: u32 = 3;
const PRIORITY: u32 = 8;
/// The priorities that streams may have.
pub(crate) const LEAST_PRIORITY: i32 = 0;
/// A smaller number comes first.
pub(crate) const GREATEST_PRIORITY: i32 = -5;

thread_local! {
    /// The function that was called takes stream 0 to be the thread's own.
    pub(crate) static NULL_IS_PER_THREAD: Cell<bool> = const { Cell::new(false) };
}

driver! {
    /// Makes a stream.
    call cuStreamCreate 2000 (answer: Out<CUstream>, flags: u32) {
        create(answer, flags, 0)
    }

    /// Makes a stream with a priority, which changes nothing.
    call cuStreamCreateWithPriority 5050 (answer: Out<CUstream>, flags: u32, priority: i32) {
        create(answer, flags, priority)
    }

    /// Answers the priority.
    call cuStreamGetPriority 5050, cuStreamGetPriority_ptsz 7000 (handle: CUstream, answer: Out<i32>) {
        answer.check()?;
        answer.set(get(handle)?.priority)
    }

    /// Answers the flags.
    call cuStreamGetFlags 5050, cuStreamGetFlags_ptsz 7000 (handle: CUstream, answer: Out<u32>) {
        answer.check()?;
        answer.set(get(handle)?.flags)
    }

    /// Answers a number that no other stream has.
    call cuStreamGetId 12000, cuStreamGetId_ptsz 12000 (handle: CUstream, answer: Out<u64>) {
        answer.check()?;
        answer.set(get(handle)?.id)
    }

    /// Answers the context.
    call cuStreamGetCtx 9020, cuStreamGetCtx_ptsz 9020 (handle: CUstream, answer: Out<CUcontext>) {
        answer.check()?;
        answer.set(get(handle)?.context.handle)
    }

    /// Answers the context; no stream belongs to a green one.
    call cuStreamGetCtx_v2 12050, cuStreamGetCtx_v2_ptsz 12050 (
        handle: CUstream, answer: Out<CUcontext>, green: Out<*mut c_void>,
    ) {
        answer.check()?;
        green.set(std::ptr::null_mut())?;
        answer.set(get(handle)?.context.handle)
    }

    /// Answers the device.
    call cuStreamGetDevice 12080, cuStreamGetDevice_ptsz 12080 (handle: CUstream, answer: Out<CUdevice>) {
        answer.check()?;
        answer.set(get(handle)?.context.device.ordinal as CUdevice)
    }

    /// Makes later work of a stream wait for what an event stands for now.
    call cuStreamWaitEvent 3020, cuStreamWaitEvent_ptsz 7000 (handle: CUstream, event: Handle<Event>, flags: u32) {
        if flags > 1 {
            return Err(CUresult::INVALID_VALUE);
        }
        let stream = get(handle)?;
        let recorded = event.get()?;
        stream.context.check()?;
        capture::wait(&stream, &recorded)?;
        match (stream.capture(), recorded.point()) {
            (None, Some(point)) if !point.is_done() => work::give(&stream, Work::Wait(event)).map(drop),
            _ => {
                order::waited(&stream, event.number());
                Ok(())
            }
        }
    }

    /// Calls a function of the program after the work before.
    call cuStreamAddCallback 5000, cuStreamAddCallback_ptsz 7000 (
        handle: CUstream, callback: Option<extern "C" fn(CUstream, CUresult, *mut c_void)>, data: *mut c_void, flags: u32,
    ) {
        let callback = callback.ok_or(CUresult::INVALID_VALUE)?;
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let stream = get(handle)?;
        stream.refuse_while_capturing()?;
        let (context, data) = (Arc::clone(&stream.context), data as usize);
        // It is called in any case, and told what failed.
        let call = move || callback(handle, context.check().err().unwrap_or(CUresult::SUCCESS), data as *mut c_void);
        queue::give(stream.lane(), vec![Job::new(Pace::Program, call).after(stream.context.gate())]);
        Ok(())
    }

    /// Calls a function of the program after the work before.
    call cuLaunchHostFunc 10000, cuLaunchHostFunc_ptsz 10000 (
        handle: CUstream, function: Option<extern "C" fn(*mut c_void)>, data: *mut c_void,
    ) {
        let function = function.ok_or(CUresult::INVALID_VALUE)?;
        let stream = get(handle)?;
        work::submit(&stream, Work::Host(HostFunction { function, data: data as usize }))
    }

    /// Notes which stream uses managed memory; every stream may here.
    call cuStreamAttachMemAsync 6000, cuStreamAttachMemAsync_ptsz 7000 (
        handle: CUstream, address: u64, bytes: usize, flags: u32,
    ) {
        get(handle)?.context.check()?;
        if !matches!(flags, 1 | 2 | 4) {
            return Err(CUresult::INVALID_VALUE);
        }
        let allocation = allocations::find(address).filter(|found| found.kind == Kind::Managed);
        let allocation = allocation.ok_or(CUresult::INVALID_VALUE)?;
        let whole = bytes == 0 || bytes as u64 == allocation.bytes;
        if allocation.address == address && whole { Ok(()) } else { Err(CUresult::INVALID_VALUE) }
    }

    /// Answers whether the work is done.
    call cuStreamQuery 2000, cuStreamQuery_ptsz 7000 (handle: CUstream) {
        let stream = get(handle)?;
        stream.refuse_while_capturing()?;
        stream.context.check()?;
        if !queue::of_stream(stream.lane()).is_empty() {
            return Err(CUresult::NOT_READY);
        }
        order::host_waited_for_stream(&stream);
        Ok(())
    }

    /// Waits for the work.
    call cuStreamSynchronize 2000, cuStreamSynchronize_ptsz 7000 (handle: CUstream) {
        let stream = get(handle)?;
        stream.refuse_while_capturing()?;
        stream.synchronize()
    }

    /// Destroys the stream. What it was given is done nevertheless.
    call cuStreamDestroy 2000, cuStreamDestroy_v2 4000 (handle: CUstream) {
        if handle.number() <= PER_THREAD {
            return Err(CUresult::INVALID_HANDLE);
        }
        let stream = handle.take()?;
        if let Some(capture) = stream.capture() {
            capture.invalidate();
            stream.leave_capture();
        }
        Ok(())
    }

    /// Copies attributes, which change nothing here.
    call cuStreamCopyAttributes 11000, cuStreamCopyAttributes_ptsz 11000 (to: CUstream, from: CUstream) {
        let (to, from) = (get(to)?, get(from)?);
        let attributes = lock(&from.attributes).clone();
        *lock(&to.attributes) = attributes;
        Ok(())
    }

    /// Answers an attribute.
    call cuStreamGetAttribute 11000, cuStreamGetAttribute_ptsz 11000 (
        handle: CUstream, number: u32, answer: Out<[u64; 8]>,
    ) {
        answer.check()?;
        let stream = get(handle)?;
        check_attribute(number)?;
        let mut value = lock(&stream.attributes).get(&number).copied().unwrap_or_default();
        match number {
            PRIORITY if value == [0; 8] => value[0] = u64::from(stream.priority as u32),
            // An H200 answers -1 where nothing was asked for: the stream waits as its context does.
            SYNCHRONIZATION if value == [0; 8] => value[0] = u64::from(u32::MAX),
            _ => {}
        }
        answer.set(value)
    }

    /// Notes an attribute, which changes nothing here.
    call cuStreamSetAttribute 11000, cuStreamSetAttribute_ptsz 11000 (
        handle: CUstream, number: u32, value: In<[u64; 8]>,
    ) {
        let stream = get(handle)?;
        check_attribute(number)?;
        lock(&stream.attributes).insert(number, value.get()?);
        Ok(())
    }
}

impl Stream {
    /// Makes a stream.
    pub(crate) fn make(context: Arc<Context>, legacy: bool, flags: u32, priority: i32) -> Stream {
        Stream {
            context,
            id: fresh_id(),
            legacy,
            blocking: flags & NON_BLOCKING == 0,
            flags,
            priority: priority.clamp(GREATEST_PRIORITY, LEAST_PRIORITY),
            capture: Mutex::default(),
            attributes: Mutex::default(),
        }
    }

    /// Its queue.
    pub(crate) fn lane(&self) -> Lane {
        Lane { id: self.id, context: self.context.id, legacy: self.legacy, blocking: self.blocking }
    }

    /// Waits for all work that it was given.
    pub(crate) fn synchronize(&self) -> Result {
        self.context.wait(&queue::of_stream(self.lane()))?;
        order::host_waited_for_stream(self);
        Ok(())
    }

    /// The capture that the stream's work goes to.
    pub(crate) fn capture(&self) -> Option<Arc<Capture>> {
        lock(&self.capture).clone()
    }

    /// Sends the stream's work to a capture.
    pub(crate) fn join_capture(&self, capture: Arc<Capture>) {
        *lock(&self.capture) = Some(capture);
    }

    /// Ends that.
    pub(crate) fn leave_capture(&self) {
        *lock(&self.capture) = None;
    }

    /// Fails, and spoils the capture, for what cannot be part of one.
    pub(crate) fn refuse_while_capturing(&self) -> Result {
        match self.capture() {
            None => Ok(()),
            Some(capture) => {
                capture.invalidate();
                Err(CUresult::STREAM_CAPTURE_UNSUPPORTED)
            }
        }
    }
}

/// A number that no stream has.
pub(crate) fn fresh_id() -> u64 {
    static STREAMS: AtomicU64 = AtomicU64::new(1);
    STREAMS.fetch_add(1, Ordering::Relaxed)
}

/// The stream of a handle; null and two other numbers mean default streams of the current context.
pub(crate) fn get(handle: CUstream) -> Result<Arc<Stream>> {
    match handle.number() {
        0 if !NULL_IS_PER_THREAD.get() => legacy(current()?),
        LEGACY => legacy(current()?),
        0 | PER_THREAD => {
            let context = current()?;
            let mut streams = lock(&context.per_thread);
            let stream = streams
                .entry(std::thread::current().id())
                .or_insert_with(|| Arc::new(Stream::make(Arc::clone(&context), false, 0, 0)));
            Ok(Arc::clone(stream))
        }
        _ => handle.get(),
    }
}

/// The stream of a function that has none as an argument.
pub(crate) fn default() -> Result<Arc<Stream>> {
    get(Handle::NULL)
}

/// Fails, and spoils the captures, when a stream of the context is capturing.
pub(crate) fn refuse_while_capturing(context: &Context) -> Result {
    capture::refuse_in(context)
}

fn legacy(context: Arc<Context>) -> Result<Arc<Stream>> {
    let mut legacy = lock(&context.legacy);
    let stream = legacy.get_or_insert_with(|| Arc::new(Stream::make(Arc::clone(&context), true, 0, 0)));
    Ok(Arc::clone(stream))
}

/// Fails for attributes that streams do not have.
fn check_attribute(number: u32) -> Result {
    if matches!(number, 1 | SYNCHRONIZATION | PRIORITY | 9 | 10) {
        Ok(())
    } else {
        Err(CUresult::INVALID_VALUE)
    }
}

fn create(answer: Out<CUstream>, flags: u32, priority: i32) -> Result {
    answer.check()?;
    if flags & !NON_BLOCKING != 0 {
        return Err(CUresult::INVALID_VALUE);
    }
    answer.set(Handle::new(Stream::make(current()?, false, flags, priority)))
}
