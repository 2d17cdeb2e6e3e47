//! A warp: 32 lanes that execute one instruction at a time.
//!
//! `decode` chooses the step of an instruction, chapter by chapter of the PTX manual; `run` executes them and follows
//! the lanes when they part.

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
mod integer;
mod lanes;
mod level;
mod logic;
mod memory;
mod packed;
mod pairs;
mod round;
mod run;
mod soft;
mod strand;
mod video;

pub(crate) use context::{Context, Lane, Row, Stopped, Word};
pub(crate) use lanes::{
    Binary, Carrying, Compare, CompareSet, Constant, Predicates, Quaternary, Select, Ternary, Unary,
};
pub use level::Level;
pub(crate) use level::{Body, rare_step, step};
pub(crate) use run::{Arrival, Pause, Threads, Warp};
pub(crate) use strand::Wait;

use crate::{
    module::{
        Decoded, Decoder, invalid,
        program::{Flow, Ins},
    },
    ptx::ast::Instruction,
};

/// Chooses the step of an instruction.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    match instruction.opcode.as_str() {
        "add" | "sub" | "mul" | "mad" | "fma" | "div" | "abs" | "neg" | "min" | "max" => {
            match last_type(instruction) {
                "f32" | "f64" => float::decode(decoder, instruction),
                "f16" | "f16x2" | "bf16" | "bf16x2" => half::decode(decoder, instruction),
                _ => integer::decode(decoder, instruction),
            }
        }
        "addc" | "subc" | "madc" | "mul24" | "mad24" | "sad" | "rem" | "popc" | "clz" | "bfind" | "fns"
        | "brev" | "bfe" | "bfi" | "bmsk" | "szext" | "dp4a" | "dp2a" | "and" | "or" | "xor" | "not"
        | "cnot" | "lop3" | "shl" | "shr" | "shf" | "prmt" => integer::decode(decoder, instruction),
        "rcp" | "sqrt" | "rsqrt" | "sin" | "cos" | "lg2" | "ex2" | "tanh" | "testp" | "copysign" => {
            float::decode(decoder, instruction)
        }
        "setp" | "set" | "selp" | "slct" => compare::decode(decoder, instruction),
        "cvt" => convert::decode(decoder, instruction),
        "mov" | "cvta" | "isspacep" | "mapa" => data::decode(decoder, instruction),
        "ld" | "ldu" | "st" | "prefetch" | "prefetchu" | "membar" | "fence" | "discard" | "applypriority" => {
            memory::decode(decoder, instruction)
        }
        "atom" | "red" => atomic::decode(decoder, instruction),
        "shfl" | "vote" | "match" | "activemask" | "redux" | "elect" | "bar" | "barrier" | "nanosleep" => {
            exchange::decode(decoder, instruction)
        }
        "vadd" | "vsub" | "vabsdiff" | "vmin" | "vmax" | "vshl" | "vshr" | "vmad" | "vset" | "vadd2"
        | "vsub2" | "vavrg2" | "vabsdiff2" | "vmin2" | "vmax2" | "vset2" | "vadd4" | "vsub4" | "vavrg4"
        | "vabsdiff4" | "vmin4" | "vmax4" | "vset4" => video::decode(decoder, instruction),
        opcode if OPCODES.contains(&opcode) => Err(decoder.not_implemented()),
        opcode => Err(invalid(&format!("PTX has no instruction `{opcode}`"))),
    }
}

/// What PTX ISA 9.0 has and the arms above do not: valid programs that are not executed yet. Every other word is an error of
/// the program.
const OPCODES: [&str; 29] = [
    "alloca",
    "clmad",
    "clusterlaunchcontrol",
    "cp",
    "createpolicy",
    "getctarank",
    "griddepcontrol",
    "istypep",
    "ldmatrix",
    "mbarrier",
    "mma",
    "movmatrix",
    "multimem",
    "pmevent",
    "setmaxnreg",
    "stackrestore",
    "stacksave",
    "stmatrix",
    "suld",
    "suq",
    "sured",
    "sust",
    "tcgen05",
    "tensormap",
    "tex",
    "tld4",
    "txq",
    "wgmma",
    "wmma",
];

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
