//! `cuEvent*`: points in the work of a stream.
//!
//! An event happens when its stream comes to where it was recorded. The time between two is time of the host, not the time
//! that a GPU would take.

use std::{
    sync::{Arc, Mutex, OnceLock},
    time::Instant,
};

use super::{
    abi::{Out, driver},
    capture::Point,
    error::{CUresult, Result},
    handle::{Handle, objects},
    order,
    queue::Point as QueuePoint,
    state::{Context, current, lock},
    stream::{self, CUstream},
    work::{self, Work},
};

/// An event.
pub(crate) struct Event {
    /// Where it belongs.
    pub(crate) context: Arc<Context>,
    timed: bool,
    recorded: Mutex<Recorded>,
}

/// What an event was last recorded in.
#[derive(Clone, Default)]
pub(crate) enum Recorded {
    /// Nothing.
    #[default]
    Never,
    /// A stream, at this point; somebody tells when it comes there.
    Given(QueuePoint, Arc<Moment>),
    /// A capture, behind these nodes.
    Captured(Point),
}

/// The moment at which something happened, once it has.
#[derive(Default)]
pub(crate) struct Moment(OnceLock<Instant>);

objects!(Event);

const BLOCKING: u32 = 1;
const DISABLE_TIMING: u32 = 2;
const INTERPROCESS: u32 = 4;

driver! {
    /// Makes an event.
    call cuEventCreate 2000 (answer: Out<Handle<Event>>, flags: u32) {
        answer.check()?;
        if flags & !(BLOCKING | DISABLE_TIMING | INTERPROCESS) != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        if flags & INTERPROCESS != 0 {
            // Without DISABLE_TIMING it is wrong on every device; with it, this one cannot do it.
            return Err(if flags & DISABLE_TIMING == 0 { CUresult::INVALID_VALUE } else { CUresult::NOT_SUPPORTED });
        }
        let event = Event { context: current()?, timed: flags & DISABLE_TIMING == 0, recorded: Mutex::default() };
        answer.set(Handle::new(event))
    }

    /// Records the work that the stream was given so far.
    call cuEventRecord 2000, cuEventRecord_ptsz 7000 (handle: Handle<Event>, stream: CUstream) {
        record(handle, stream)
    }

    /// The same; external events become nodes of a captured graph, as all do here.
    call cuEventRecordWithFlags 11010, cuEventRecordWithFlags_ptsz 11010 (
        handle: Handle<Event>, stream: CUstream, flags: u32,
    ) {
        if flags > 1 {
            return Err(CUresult::INVALID_VALUE);
        }
        record(handle, stream)
    }

    /// Answers whether that work is done.
    call cuEventQuery 2000 (handle: Handle<Event>) {
        let event = handle.get()?;
        event.refuse_captured()?;
        event.context.check()?;
        if event.point().is_some_and(|point| !point.is_done()) {
            return Err(CUresult::NOT_READY);
        }
        order::host_waited_for_event(handle.number());
        Ok(())
    }

    /// Waits until that work is done.
    call cuEventSynchronize 2000 (handle: Handle<Event>) {
        let event = handle.get()?;
        event.refuse_captured()?;
        event.context.wait(event.point().as_slice())?;
        order::host_waited_for_event(handle.number());
        Ok(())
    }

    /// Destroys the event.
    call cuEventDestroy 2000, cuEventDestroy_v2 4000 (handle: Handle<Event>) {
        handle.take().map(drop)
    }

    /// Answers the milliseconds between two events: time of the host, not of a GPU.
    call cuEventElapsedTime 2000, cuEventElapsedTime_v2 12080 (
        answer: Out<f32>, start: Handle<Event>, end: Handle<Event>,
    ) {
        answer.check()?;
        let (start, end) = (start.get()?, end.get()?);
        start.context.check()?;
        if !start.timed || !end.timed || start.context.id != end.context.id {
            return Err(CUresult::INVALID_HANDLE);
        }
        start.refuse_captured()?;
        end.refuse_captured()?;
        let (start, end) = match (start.recorded(), end.recorded()) {
            (Recorded::Given(_, start), Recorded::Given(_, end)) => match (start.0.get(), end.0.get()) {
                (Some(&start), Some(&end)) => (start, end),
                _ => return Err(CUresult::NOT_READY),
            },
            _ => return Err(CUresult::INVALID_HANDLE),
        };
        let seconds = match end.checked_duration_since(start) {
            Some(time) => time.as_secs_f64(),
            None => -start.duration_since(end).as_secs_f64(),
        };
        answer.set((seconds * 1e3) as f32)
    }
}

impl Event {
    /// What it was last recorded in.
    pub(crate) fn recorded(&self) -> Recorded {
        lock(&self.recorded).clone()
    }

    /// Notes where in a capture it is.
    pub(crate) fn record_captured(&self, point: Point) {
        *lock(&self.recorded) = Recorded::Captured(point);
    }

    /// Notes where in a stream it is.
    pub(crate) fn record(&self, point: QueuePoint, moment: Arc<Moment>) {
        *lock(&self.recorded) = Recorded::Given(point, moment);
    }

    /// Where in a stream it is.
    pub(crate) fn point(&self) -> Option<QueuePoint> {
        match self.recorded() {
            Recorded::Given(point, _) => Some(point),
            Recorded::Never | Recorded::Captured(_) => None,
        }
    }

    fn refuse_captured(&self) -> Result {
        match self.recorded() {
            Recorded::Captured(_) => Err(CUresult::CAPTURED_EVENT),
            _ => Ok(()),
        }
    }
}

impl Moment {
    /// It happens.
    pub(crate) fn is_now(&self) {
        self.0.get_or_init(Instant::now);
    }
}

fn record(handle: Handle<Event>, stream: CUstream) -> Result {
    let event = handle.get()?;
    let stream = stream::get(stream)?;
    if event.context.id != stream.context.id {
        return Err(CUresult::INVALID_HANDLE);
    }
    if let Some(capture) = stream.capture() {
        event.record_captured(capture.point(&stream)?);
        return Ok(());
    }
    work::submit(&stream, Work::Record(handle))
}
