//! A warp: 32 lanes that execute one instruction at a time.
//!
//! `decode` chooses the step of an instruction, chapter by chapter of the PTX manual; `run` executes them and follows
//! the lanes when they part.

mod async_copy;
mod atomic;
pub(crate) mod compare;
mod context;
pub(crate) mod control;
mod convert;
mod data;
pub(crate) mod exchange;
mod float;
mod frame;
mod half;
pub(crate) mod instructions;
mod integer;
mod lanes;
mod level;
mod logic;
mod matrix;
mod mbarrier;
mod memory;
mod packed;
mod pairs;
mod round;
mod run;
mod soft;
mod stack;
mod strand;
mod video;
mod wide;

use instructions::How;

pub(crate) use async_copy::Copies;
pub(crate) use context::{Context, Lane, Row, Stopped, Word};
pub(crate) use lanes::{
    Binary, Carrying, Compare, CompareSet, Constant, Predicates, Quaternary, Select, Ternary, Unary,
};
pub use level::Level;
pub(crate) use level::{Body, rare_step, step};
pub(crate) use run::{Arrival, Pause, Threads, Warp};
pub(crate) use stack::Start as StackStart;
pub(crate) use strand::Wait;

use crate::{
    module::{
        Decoded, Decoder, invalid,
        program::{Flow, Ins},
    },
    ptx::ast::Instruction,
};

/// The instructions that stand for one, if it is executed piece by piece.
///
/// # Errors
///
/// It cannot be.
pub(crate) fn elements(
    decoder: &Decoder<'_>,
    instruction: &Instruction,
) -> Decoded<Option<Vec<Instruction>>> {
    match instruction.operands.split_last() {
        Some((_, others)) if has(instruction, "L2::cache_hint") => {
            atomic::elements(decoder, &Instruction { operands: others.to_vec(), ..instruction.clone() })
        }
        _ => atomic::elements(decoder, instruction),
    }
}

/// Chooses the step of an instruction.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    if has(instruction, "L2::cache_hint") {
        return without_policy(decoder, instruction);
    }
    match instructions::find(instruction).map(|entry| entry.how) {
        Some(How::Step(decode)) => decode(decoder, instruction),
        // `bar.warp.sync`, the one that does not end a block.
        Some(How::Control) => exchange::decode(decoder, instruction),
        Some(How::Nobody) => Err(decoder.not_implemented()),
        None => Err(invalid(&format!("PTX has no instruction `{}`", instruction.opcode))),
    }
}

/// An access with a policy of the cache, which changes nothing here.
fn without_policy(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let mut plain = instruction.clone();
    plain.modifiers.retain(|word| word != "L2::cache_hint");
    let policy = plain.operands.pop().ok_or_else(|| decoder.wrong_count())?;
    decoder.source::<u64>(&policy)?;
    decode(decoder, &plain)
}

/// The last type among the modifiers, or an empty word.
pub(crate) fn last_type(instruction: &Instruction) -> &str {
    instruction.modifiers.iter().rev().map(String::as_str).find(|word| is_type(word)).unwrap_or("")
}

/// A modifier is a type.
pub(crate) fn is_type(word: &str) -> bool {
    word == "pred" || crate::module::type_bytes(word).is_ok()
}

/// A modifier is there.
pub(crate) fn has(instruction: &Instruction, word: &str) -> bool {
    instruction.modifiers.iter().any(|modifier| modifier == word)
}

/// `@p` or `@!p` in front of an instruction that is executed in place.
pub(crate) struct Guard {
    pub(crate) predicate: u32,
    pub(crate) negated: bool,
}

impl Guard {
    /// Leaves only the lanes where the guard holds.
    pub(crate) fn begin(&self) -> Ins {
        let step = if self.negated { guard_not } else { guard };
        Ins { step, d: 0, a: self.predicate, b: 0, c: 0, e: 0, f: 0, x: 0 }
    }

    /// Brings the others back.
    pub(crate) fn end(&self) -> Ins {
        Ins { step: unguard, d: 0, a: 0, b: 0, c: 0, e: 0, f: 0, x: 0 }
    }
}

unsafe fn guard(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the decoder chose a predicate.
    let holds = unsafe { context.predicate(ins.a) };
    restrict(context, holds)
}

unsafe fn guard_not(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the decoder chose a predicate.
    let holds = unsafe { context.predicate(ins.a) };
    restrict(context, !holds)
}

fn restrict(context: &mut Context, holds: u32) -> Flow {
    context.unguarded = context.mask;
    let mask = context.mask & holds;
    context.set_mask(mask);
    if mask == 0 { Flow::Skip } else { Flow::Next }
}

unsafe fn unguard(context: &mut Context, _: &Ins) -> Flow {
    context.set_mask(context.unguarded);
    Flow::Next
}

/// The lanes of a mask, in ascending order.
pub(crate) fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..32).filter(move |lane| mask >> lane & 1 != 0)
}
