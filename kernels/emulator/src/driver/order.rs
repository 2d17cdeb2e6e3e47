//! `EMULATED_GPU_CHECK=stream`: operations on the same bytes that nothing orders.
//!
//! Work is done in the order in which a program gives it, so a missing event or synchronisation never shows in the
//! results here; on a GPU it shows sometimes. This finds it always, with vector clocks: each stream counts its
//! operations, and knows how far every other stream had come when it last waited, directly or not.
//!
//! It knows bytes of devices, pinned and managed memory, a copy's from its first to its last, a kernel's in each
//! allocation from the lowest that it touched to the highest. It does not know what the host itself reads and writes, and
//! takes whatever one thread of the host waited for to be waited for by all.

use std::{
    collections::HashMap,
    ops::Range,
    sync::{Mutex, MutexGuard, OnceLock},
};

use super::{allocations, state::lock, stream::Stream};
use crate::settings::settings;

/// How far each stream had come, by the streams' numbers.
#[derive(Clone, Default)]
struct Clock(HashMap<u64, u64>);

/// Use of bytes.
#[derive(Clone)]
pub(crate) struct Use {
    /// From the first byte's address to the one behind the last.
    pub(crate) bytes: Range<u64>,
    /// They are written.
    pub(crate) writes: bool,
}

/// Use of bytes by an operation.
struct Access {
    used: Use,
    /// The stream's number.
    stream: u64,
    /// The stream's count of operations.
    time: u64,
    /// The operation.
    what: String,
}

/// A stream of a context.
#[derive(Clone, Copy, PartialEq)]
struct Member {
    stream: u64,
    legacy: bool,
    blocking: bool,
}

#[derive(Default)]
struct Order {
    /// What each stream has waited for.
    streams: HashMap<u64, Clock>,
    /// The streams of each context that have done something.
    contexts: HashMap<u64, Vec<Member>>,
    /// What each recorded event stands for, by its number.
    events: HashMap<usize, Clock>,
    /// Accesses that somebody may still run into, by allocation: whatever the host waited for is forgotten.
    accesses: HashMap<u64, Vec<Access>>,
}

impl Clock {
    fn join(&mut self, other: &Clock) {
        for (&stream, &time) in &other.0 {
            let own = self.0.entry(stream).or_default();
            *own = time.max(*own);
        }
    }

    fn knows(&self, access: &Access) -> bool {
        self.0.get(&access.stream).is_some_and(|&time| time >= access.time)
    }
}

impl Use {
    fn covers(&self, other: &Use) -> bool {
        self.bytes.start <= other.bytes.start
            && other.bytes.end <= self.bytes.end
            && (self.writes || !other.writes)
    }

    fn clashes(&self, other: &Use) -> bool {
        (self.writes || other.writes)
            && self.bytes.start < other.bytes.end
            && other.bytes.start < self.bytes.end
    }
}

/// Whether anybody wants to know.
pub(crate) fn is_checked() -> bool {
    static CHECKED: OnceLock<bool> = OnceLock::new();
    *CHECKED.get_or_init(|| settings().is_ok_and(|settings| settings.checks.stream))
}

/// Notes an operation of a stream, and answers the report of the first thing that is wrong with it.
pub(crate) fn operation(stream: &Stream, what: &str, uses: &[Use]) -> Option<String> {
    let mut order = order()?;
    let order = &mut *order;
    let context = stream.context.id;
    let mut clock = order.streams.remove(&stream.id).unwrap_or_default();
    let members = order.contexts.entry(context).or_default();
    let own = Member { stream: stream.id, legacy: stream.legacy, blocking: stream.blocking };
    if !members.contains(&own) {
        members.push(own);
    }
    // The legacy default stream and blocking streams wait for each other.
    for member in
        members.iter().filter(|member| own.legacy && member.blocking || own.blocking && member.legacy)
    {
        order.streams.get(&member.stream).inspect(|other| clock.join(other));
    }
    let time = clock.0.entry(stream.id).or_default();
    *time += 1;
    let time = *time;
    let mut report = None;
    for used in uses {
        let Some(allocation) = allocations::find(used.bytes.start) else { continue };
        let accesses = order.accesses.entry(allocation.number).or_default();
        let clash = accesses.iter().find(|access| !clock.knows(access) && access.used.clashes(used));
        if let Some(clash) = clash.filter(|_| report.is_none()) {
            report = Some(describe(clash, stream, what, used, &allocation));
        }
        accesses.retain(|access| !(clock.knows(access) && used.covers(&access.used)));
        accesses.push(Access { used: used.clone(), stream: stream.id, time, what: what.to_owned() });
    }
    order.streams.insert(stream.id, clock);
    report
}

/// Notes that an event stands for what a stream has done.
pub(crate) fn recorded(event: usize, stream: &Stream) {
    if let Some(mut order) = order() {
        let clock = order.streams.get(&stream.id).cloned().unwrap_or_default();
        order.events.insert(event, clock);
    }
}

/// Notes that a stream waits for an event.
pub(crate) fn waited(stream: &Stream, event: usize) {
    if let Some(mut order) = order()
        && let Some(clock) = order.events.get(&event).cloned()
    {
        order.streams.entry(stream.id).or_default().join(&clock);
    }
}

/// Notes that the host waited for an event.
pub(crate) fn host_waited_for_event(event: usize) {
    if let Some(mut order) = order()
        && let Some(clock) = order.events.get(&event).cloned()
    {
        order.host_waited(&clock);
    }
}

/// Notes that the host waited for a stream.
pub(crate) fn host_waited_for_stream(stream: &Stream) {
    if let Some(mut order) = order() {
        let mut clock = order.streams.get(&stream.id).cloned().unwrap_or_default();
        // The legacy default stream is done when the streams that it waits for are.
        let members = order.contexts.get(&stream.context.id).map_or(&[][..], Vec::as_slice);
        for member in members.iter().filter(|member| stream.legacy && member.blocking) {
            order.streams.get(&member.stream).inspect(|other| clock.join(other));
        }
        order.host_waited(&clock);
    }
}

/// Notes that the host waited for a context.
pub(crate) fn host_waited_for_context(context: u64) {
    if let Some(mut order) = order() {
        let mut clock = Clock::default();
        for member in order.contexts.get(&context).into_iter().flatten() {
            order.streams.get(&member.stream).inspect(|stream| clock.join(stream));
        }
        order.host_waited(&clock);
    }
}

impl Order {
    fn host_waited(&mut self, clock: &Clock) {
        // Whatever comes now comes after these.
        self.accesses.retain(|_, accesses| {
            accesses.retain(|access| !clock.knows(access));
            !accesses.is_empty()
        });
    }
}

fn order() -> Option<MutexGuard<'static, Order>> {
    static ORDER: OnceLock<Mutex<Order>> = OnceLock::new();
    is_checked().then(|| lock(ORDER.get_or_init(Mutex::default)))
}

/// The report, in the form of a fault's.
fn describe(
    first: &Access,
    stream: &Stream,
    what: &str,
    used: &Use,
    allocation: &allocations::Owned,
) -> String {
    let verb = |used: &Use| if used.writes { "writes" } else { "reads" };
    let bytes = first.used.bytes.start.max(used.bytes.start)..first.used.bytes.end.min(used.bytes.end);
    let offset = |address: u64| address - allocation.address;
    format!(
        "emulated GPU: the program's fault: two operations on the same bytes are not ordered\n  \
         first    {} {}, in stream {}\n  \
         then     {what} {}, in stream {}\n  \
         bytes    {} to {} of an allocation of {} bytes, {}, at {:#x}\n  \
         rule     work of two streams is ordered by events, by synchronisation, or not at all\n  \
         do       record an event behind the first, and let stream {} wait for it before the other\n",
        first.what,
        verb(&first.used),
        first.stream,
        verb(used),
        stream.id,
        offset(bytes.start),
        offset(bytes.end) - 1,
        allocation.bytes,
        allocation.kind,
        allocation.address,
        stream.id,
    )
}
