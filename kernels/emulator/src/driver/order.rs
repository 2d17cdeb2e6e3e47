//! `EMULATED_GPU_CHECK=stream`: operations on the same bytes that nothing orders.
//!
//! A missing event or synchronisation shows in the results sometimes. This finds it always, with vector clocks: each
//! stream counts its operations, and knows how far every other stream had come when it last waited, directly or not.
//!
//! Clocks are those of the moment at which the program gives an operation. What a kernel uses is known when it has run,
//! and kernels of several streams end in any order; so operations, and the waits of the host between them, stand in a log
//! and are looked at in the order in which they were given. What is found does not depend on how fast anything ran. The
//! calls that wait give the log a second to come up to them, because what runs in other streams may wait for the host.
//!
//! It knows bytes of devices, pinned and managed memory, a copy's from its first to its last, a kernel's in each
//! allocation from the lowest that it touched to the highest. It does not know what the host itself reads and writes, and
//! takes whatever one thread of the host waited for to be waited for by all.

use std::{
    collections::{HashMap, VecDeque},
    ops::Range,
    sync::{Arc, Condvar, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Duration,
};

use super::{
    allocations::{self, Owned},
    error::CUresult,
    state::{Context, lock},
    stream::Stream,
};
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

/// What the program gave, or waited for.
enum Entry {
    /// An operation, with what it uses once that is known.
    Operation(Operation, Option<Vec<(Use, Owned)>>),
    /// The host waited.
    HostWaited(Clock),
}

/// An operation of a stream.
struct Operation {
    context: Arc<Context>,
    /// The stream's number.
    stream: u64,
    /// The stream's count of operations.
    time: u64,
    /// What comes before it.
    clock: Clock,
    what: String,
}

/// An operation whose uses are not known yet; none, if it is dropped.
pub(crate) struct Ticket(u64);

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
    /// What has not been looked at.
    log: VecDeque<Entry>,
    /// Entries that have been.
    looked_at: u64,
}

/// The log has moved.
static MOVED: Condvar = Condvar::new();
/// How long those who wait give it.
const PATIENCE: Duration = Duration::from_secs(1);

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

/// Notes that a stream is given an operation, where that is checked.
pub(crate) fn begin(stream: &Stream, what: impl FnOnce() -> String) -> Option<Ticket> {
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
    order.streams.insert(stream.id, clock.clone());
    let context = Arc::clone(&stream.context);
    let operation = Operation { context, stream: stream.id, time, clock, what: what() };
    order.log.push_back(Entry::Operation(operation, None));
    Some(Ticket(order.end() - 1))
}

/// Notes an operation whose uses are known.
pub(crate) fn operation(stream: &Stream, what: &str, uses: impl FnOnce() -> Vec<Use>) {
    if let Some(ticket) = begin(stream, || what.to_owned()) {
        ticket.finish(uses());
    }
}

/// Waits until everything that was given has been looked at, or for a while.
pub(crate) fn settle() {
    let Some(order) = order() else { return };
    let end = order.end();
    let _looked_at = MOVED
        .wait_timeout_while(order, PATIENCE, |order| order.looked_at < end)
        .unwrap_or_else(PoisonError::into_inner);
}

impl Ticket {
    /// Notes what the operation used. What nothing orders is a fault.
    pub(crate) fn finish(self, uses: Vec<Use>) {
        self.note(uses);
    }

    fn note(&self, uses: Vec<Use>) {
        let uses = uses.into_iter().filter_map(|used| {
            let allocation = allocations::find(used.bytes.start)?;
            Some((used, allocation))
        });
        let uses: Vec<_> = uses.collect();
        let Some(mut order) = order() else { return };
        let index = self.0.checked_sub(order.looked_at).map(|index| index as usize);
        if let Some(Entry::Operation(_, known @ None)) = index.and_then(|index| order.log.get_mut(index)) {
            *known = Some(uses);
        }
        order.go_on();
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        // Nothing, where it is known already.
        self.note(Vec::new());
    }
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
        order.host_waited(clock);
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
        order.host_waited(clock);
    }
}

/// Notes that the host waited for a context.
pub(crate) fn host_waited_for_context(context: u64) {
    if let Some(mut order) = order() {
        let mut clock = Clock::default();
        for member in order.contexts.get(&context).into_iter().flatten() {
            order.streams.get(&member.stream).inspect(|stream| clock.join(stream));
        }
        order.host_waited(clock);
    }
}

impl Order {
    /// The number of the entry that comes next.
    fn end(&self) -> u64 {
        self.looked_at + self.log.len() as u64
    }

    fn host_waited(&mut self, clock: Clock) {
        self.log.push_back(Entry::HostWaited(clock));
        self.go_on();
    }

    /// Looks at entries up to the first operation that has not ended.
    fn go_on(&mut self) {
        while !matches!(self.log.front(), None | Some(Entry::Operation(_, None))) {
            match self.log.pop_front() {
                Some(Entry::Operation(operation, uses)) => {
                    self.look_at(&operation, &uses.unwrap_or_default())
                }
                Some(Entry::HostWaited(clock)) => self.accesses.retain(|_, accesses| {
                    // Whatever comes now comes after these.
                    accesses.retain(|access| !clock.knows(access));
                    !accesses.is_empty()
                }),
                None => {}
            }
            self.looked_at += 1;
        }
        MOVED.notify_all();
    }

    fn look_at(&mut self, operation: &Operation, uses: &[(Use, Owned)]) {
        let Operation { context, stream, time, clock, what } = operation;
        let mut report = None;
        for (used, allocation) in uses {
            let accesses = self.accesses.entry(allocation.number).or_default();
            let clash = accesses.iter().find(|access| !clock.knows(access) && access.used.clashes(used));
            if let Some(clash) = clash.filter(|_| report.is_none()) {
                report = Some(describe(clash, *stream, what, used, allocation));
            }
            accesses.retain(|access| !(clock.knows(access) && used.covers(&access.used)));
            accesses.push(Access { used: used.clone(), stream: *stream, time: *time, what: what.clone() });
        }
        if let Some(report) = report {
            context.print();
            eprint!("{report}");
            context.fail(CUresult::LAUNCH_FAILED);
        }
    }
}

fn order() -> Option<MutexGuard<'static, Order>> {
    static ORDER: OnceLock<Mutex<Order>> = OnceLock::new();
    is_checked().then(|| lock(ORDER.get_or_init(Mutex::default)))
}

/// The report, in the form of a fault's.
fn describe(first: &Access, stream: u64, what: &str, used: &Use, allocation: &Owned) -> String {
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
        stream,
        offset(bytes.start),
        offset(bytes.end) - 1,
        allocation.bytes,
        allocation.kind,
        allocation.address,
        stream,
    )
}
