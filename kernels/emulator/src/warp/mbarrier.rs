//! Barriers in shared memory: `mbarrier`.
//!
//! The object is opaque to programs. Here its 64 bits are, from the lowest: 20 of arrivals that its phase still waits for,
//! 20 of arrivals that the next phase will, 21 of bytes that are still to come, the parity of the phase, and two that tell
//! it from other memory. The state that `arrive` returns is the object before the arrival.
//!
//! Waiting never blocks here: `test_wait` and `try_wait` say whether the phase is complete, and a lane that is told no is in
//! a loop, so that others have their turn.

use super::{
    Context, has, lanes_of,
    memory::{self, Target, WINDOW, Window, addresses, place, wait_a_little, window},
};
use crate::{
    fault::{Access, Cause},
    module::{
        Decoded, Decoder, invalid,
        program::{Flow, Ins, NONE, kept},
    },
    ptx::ast::{Instruction, Operand},
};

/// What the object's fields hold.
#[derive(Clone, Copy)]
struct Object {
    pending: u32,
    expected: u32,
    bytes: i32,
    phase: u32,
}

/// The most arrivals, and bytes, that fit.
const MOST: u32 = (1 << 20) - 1;

/// The two highest bits of an object.
const MARK: u64 = 0b01;

impl Object {
    fn read(word: u64) -> Option<Object> {
        (word >> 62 == MARK).then_some(Object {
            pending: word as u32 & MOST,
            expected: (word >> 20) as u32 & MOST,
            // Sign-extended from 21 bits.
            bytes: ((word << 3) as i64 >> 43) as i32,
            phase: (word >> 61) as u32 & 1,
        })
    }

    fn write(self) -> u64 {
        u64::from(self.pending)
            | u64::from(self.expected) << 20
            | (self.bytes as u64 & 0x1F_FFFF) << 40
            | u64::from(self.phase) << 61
            | MARK << 62
    }

    /// Starts the next phase if everything has come.
    fn complete(&mut self) {
        if self.pending == 0 && self.bytes == 0 {
            self.phase ^= 1;
            self.pending = self.expected;
        }
    }
}

/// What an instruction does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operation {
    Init,
    Invalidate,
    /// With the row of bytes to expect first, in `expect`.
    Arrive {
        drop: bool,
        completes: bool,
    },
    Expect,
    Complete,
    /// Whether the phase of a state, or of a parity, is complete.
    Test {
        parity: bool,
    },
    /// The arrival of copies that are complete: nothing changes, unless they count as an arrival.
    Copies {
        counted: bool,
    },
}

struct Barrier {
    operation: Operation,
    address: Ins,
    long: bool,
    /// The row of a count, a state or a parity.
    count: u32,
    /// The row of bytes to expect, or [`NONE`].
    expect: u32,
    /// The row of a state, or the predicate.
    dest: u32,
}

/// Decodes `mbarrier`.
pub(crate) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let operation = match i.modifiers.first().map_or("", String::as_str) {
        "init" => Operation::Init,
        "inval" => Operation::Invalidate,
        "arrive" => Operation::Arrive { drop: false, completes: !has(i, "noComplete") },
        "arrive_drop" => Operation::Arrive { drop: true, completes: !has(i, "noComplete") },
        "expect_tx" => Operation::Expect,
        "complete_tx" => Operation::Complete,
        "test_wait" | "try_wait" => Operation::Test { parity: has(i, "parity") },
        "pending_count" => {
            let [dest, state] = d.operands(i)?;
            let (dest, state) = (d.dest::<u32>(dest)?, d.source::<u64>(state)?);
            return Ok(Ins { d: dest, a: state, ..d.plain(pending_count) });
        }
        _ => return Err(d.not_implemented()),
    };
    let mut barrier = Barrier {
        operation,
        address: d.plain(run),
        long: false,
        count: d.constant(false, 1),
        expect: NONE,
        dest: NONE,
    };
    let expects = has(i, "expect_tx") && operation != Operation::Expect;
    let address = match (operation, &i.operands[..]) {
        (Operation::Init | Operation::Expect | Operation::Complete, [address, count]) => {
            barrier.count = d.source::<u32>(count)?;
            address
        }
        (Operation::Invalidate, [address]) => address,
        (Operation::Arrive { .. }, [dest, address, rest @ ..]) if rest.len() <= 1 => {
            barrier.dest = if *dest == Operand::Sink { NONE } else { d.dest::<u64>(dest)? };
            match rest {
                [bytes] if expects => barrier.expect = d.source::<u32>(bytes)?,
                [count] => barrier.count = d.source::<u32>(count)?,
                _ if expects => return Err(d.wrong_count()),
                _ => {}
            }
            address
        }
        (Operation::Test { parity }, [dest, address, state, hint @ ..]) if hint.len() <= 1 => {
            barrier.dest = d.predicate(dest)?.0;
            barrier.count = if parity { d.source::<u32>(state)? } else { d.source::<u64>(state)? };
            if let [hint] = hint {
                d.source::<u32>(hint)?;
            }
            address
        }
        _ => return Err(d.wrong_count()),
    };
    finish(d, i, address, barrier)
}

/// Decodes `cp.async.mbarrier.arrive`.
pub(crate) fn decode_copies(d: &mut Decoder<'_>, i: &Instruction, address: &Operand) -> Decoded {
    let operation = Operation::Copies { counted: has(i, "noinc") };
    let count = d.constant(false, 1);
    let barrier = Barrier { operation, address: d.plain(run), long: false, count, expect: NONE, dest: NONE };
    finish(d, i, address, barrier)
}

fn finish(d: &mut Decoder<'_>, i: &Instruction, address: &Operand, mut barrier: Barrier) -> Decoded {
    if !has(i, "b64") && !matches!(barrier.operation, Operation::Expect | Operation::Complete) {
        return Err(invalid(&format!("`{}` needs the type .b64", d.word())));
    }
    // A block without a cluster is a cluster of its own, so `.shared::cluster` is its own shared memory.
    let place = place(d, i, address)?;
    if !matches!(place.space, Target::Shared | Target::Generic) {
        return Err(d.not_implemented());
    }
    barrier.address = Ins { a: place.row, x: place.offset, ..d.plain(run) };
    barrier.long = place.long;
    let x = d.keep(barrier);
    Ok(Ins { x, ..d.plain(run) })
}

unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
    let mask = context.mask;
    if mask == 0 {
        return Flow::Next;
    }
    // SAFETY: the decoder keeps the description as long as the code, and chose its rows and predicates.
    unsafe {
        let barrier = kept::<Barrier>(ins.x);
        let mut found = if barrier.long {
            addresses::<u64>(context, &barrier.address)
        } else {
            addresses::<u32>(context, &barrier.address)
        };
        if window(found[0]) == Window::Shared {
            found.iter_mut().for_each(|address| *address &= WINDOW - 1);
        }
        let offsets = found;
        let access = match barrier.operation {
            Operation::Init | Operation::Invalidate => Access::Store,
            Operation::Test { .. } => Access::Load,
            _ => Access::Atomic,
        };
        if let Err(flow) = memory::shared(context, ins, &mut found, 8, access, true) {
            return flow;
        }
        let parities = barrier.operation == Operation::Test { parity: true };
        let counts: [u64; 32] = match barrier.operation {
            Operation::Test { parity: false } => context.row(barrier.count),
            _ => context.row::<u32>(barrier.count).map(u64::from),
        };
        let bytes = if barrier.expect == NONE { [0; 32] } else { context.row::<u32>(barrier.expect) };
        let mut states = [0u64; 32];
        let mut complete = 0u32;
        for lane in lanes_of(mask) {
            let word = std::ptr::with_exposed_provenance_mut::<u64>(found[lane] as usize);
            let fault = |context: &mut Context, what| {
                context.fault(Cause::Mbarrier { address: offsets[lane], what }, 1 << lane)
            };
            let count = counts[lane];
            if barrier.operation == Operation::Init {
                if count == 0 || count > u64::from(MOST) {
                    return fault(context, "initialised with a count that is not from 1 to 1048575");
                }
                let count = count as u32;
                word.write(Object { pending: count, expected: count, bytes: 0, phase: 0 }.write());
                continue;
            }
            states[lane] = word.read();
            let Some(mut object) = Object::read(states[lane]) else {
                return fault(context, "used where none was initialised");
            };
            match barrier.operation {
                Operation::Test { .. } => {
                    let phase = if parities { count as u32 & 1 } else { (count >> 61) as u32 & 1 };
                    complete |= u32::from(phase != object.phase) << lane;
                    continue;
                }
                Operation::Invalidate => {
                    word.write(0);
                    continue;
                }
                Operation::Arrive { drop, completes } => {
                    object.bytes = object.bytes.wrapping_add(bytes[lane] as i32);
                    if count > u64::from(object.pending) {
                        return fault(context, "that more threads arrive at than it counts");
                    }
                    object.pending -= count as u32;
                    if drop {
                        object.expected = object.expected.saturating_sub(count as u32);
                    }
                    if completes {
                        object.complete();
                    }
                }
                Operation::Expect => object.bytes = object.bytes.wrapping_add(count as i32),
                Operation::Complete => {
                    object.bytes = object.bytes.wrapping_sub(count as i32);
                    object.complete();
                }
                Operation::Copies { counted } => {
                    context.copies.end(1 << lane);
                    if counted {
                        if object.pending == 0 {
                            return fault(context, "that more threads arrive at than it counts");
                        }
                        object.pending -= 1;
                        object.complete();
                    }
                }
                Operation::Init => {}
            }
            word.write(object.write());
        }
        match barrier.operation {
            Operation::Test { .. } => {
                context.set_predicate(barrier.dest, complete);
                if complete != mask {
                    wait_a_little(context);
                }
            }
            _ if barrier.dest != NONE => context.set_row(barrier.dest, states),
            _ => {}
        }
    }
    Flow::Next
}

unsafe fn pending_count(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the decoder chose rows of these widths.
    unsafe {
        let states: [u64; 32] = context.row(ins.a);
        context.set_row(ins.d, states.map(|state| state as u32 & MOST));
    }
    Flow::Next
}
