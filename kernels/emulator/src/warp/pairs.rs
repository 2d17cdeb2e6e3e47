//! Comparisons of pairs of halves: `setp` into two predicates, `set` into a pair.

use std::marker::PhantomData;

use super::{
    Context, compare,
    half::pair,
    has, is_type,
    lanes::function,
    last_type,
    level::Body,
    soft::{from_bfloat, from_half, from_half_flushed},
};
use crate::{
    module::{
        Decoded, Decoder,
        program::{Flow, Ins, NONE},
    },
    ptx::ast::{Instruction, Operand},
};

/// Decodes `setp` and `set` whose operands are pairs.
pub(super) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let Some(operator) = i.modifiers.first().and_then(|word| holds(word)) else {
        return Err(d.not_implemented());
    };
    let combine = compare::combination(i);
    let [dest, a, b, third @ ..] = &i.operands[..] else { return Err(d.wrong_count()) };
    let (c, negated) = match (third, combine) {
        ([], None) => (0, false),
        ([c], Some(_)) => d.predicate(c)?,
        _ => return Err(d.wrong_count()),
    };
    let (a, b) = (d.source::<u32>(a)?, d.source::<u32>(b)?);
    let x = combine.map_or(0, |combine| combine | u64::from(negated) << 8);
    // The orders for which the comparison holds, and above them what is compared.
    let format = match (last_type(i), has(i, "ftz")) {
        ("f16x2", false) => 0,
        ("f16x2", true) => 1,
        _ => 2,
    };
    if i.opcode == "setp" {
        let (p, q) = match dest {
            Operand::Pair(p, q) => (&**p, &**q),
            p => (p, &Operand::Sink),
        };
        let predicate = |d: &mut Decoder<'_>, operand: &Operand| {
            if *operand == Operand::Sink { Ok(NONE) } else { Ok(d.predicate(operand)?.0) }
        };
        let (p, q) = (predicate(d, p)?, predicate(d, q)?);
        let ins = match format {
            0 => step(d, from_half),
            1 => step(d, from_half_flushed),
            _ => step(d, from_bfloat),
        };
        return Ok(Ins { d: p, a, b, c, e: q, f: operator, x, ..ins });
    }
    let truth = match i.modifiers.iter().find(|word| is_type(word)).map(String::as_str) {
        Some("u32" | "s32") => !0,
        Some("f16x2") => 0x3C00_3C00,
        Some("bf16x2") => 0x3F80_3F80,
        _ => return Err(d.not_implemented()),
    };
    let dest = d.dest::<u32>(dest)?;
    let ins = match format {
        0 => set_step(d, from_half),
        1 => set_step(d, from_half_flushed),
        _ => set_step(d, from_bfloat),
    };
    Ok(Ins { d: dest, a, b, c, e: operator, f: truth, x, ..ins })
}

const LESS: u32 = 1;
const EQUAL: u32 = 2;
const GREATER: u32 = 4;
const UNORDERED: u32 = 8;

/// The orders of two numbers for which a comparison holds.
fn holds(word: &str) -> Option<u32> {
    let (word, unordered) = match word {
        "num" => return Some(LESS | EQUAL | GREATER),
        "nan" => return Some(UNORDERED),
        word => match word.strip_suffix('u') {
            Some(word) => (word, UNORDERED),
            None => (word, 0),
        },
    };
    let ordered = match word {
        "eq" => EQUAL,
        "ne" => LESS | GREATER,
        "lt" => LESS,
        "le" => LESS | EQUAL,
        "gt" => GREATER,
        "ge" => GREATER | EQUAL,
        _ => return None,
    };
    Some(ordered | unordered)
}

fn step<F: Fn(u16) -> f32 + Copy + 'static>(d: &Decoder<'_>, _: F) -> Ins {
    d.rare_ins::<Compare<F>>()
}

fn set_step<F: Fn(u16) -> f32 + Copy + 'static>(d: &Decoder<'_>, _: F) -> Ins {
    d.rare_ins::<Set<F>>()
}

/// The lanes where a comparison holds for the lower halves, and those where it does for the upper ones.
#[inline(always)]
unsafe fn found<F: Fn(u16) -> f32 + Copy>(context: &Context, ins: &Ins, orders: u32) -> (u32, u32) {
    let read = function::<F>();
    // SAFETY: the decoder chose rows of 32 bits, and predicates.
    unsafe {
        let (a, b): ([u32; 32], [u32; 32]) = (context.row(ins.a), context.row(ins.b));
        let (mut low, mut high) = (0, 0);
        for lane in 0..32 {
            let both = pair(a[lane], b[lane], 0, |a, b, _| {
                let order = match read(a).partial_cmp(&read(b)) {
                    Some(std::cmp::Ordering::Less) => LESS,
                    Some(std::cmp::Ordering::Equal) => EQUAL,
                    Some(std::cmp::Ordering::Greater) => GREATER,
                    None => UNORDERED,
                };
                u16::from(order & orders != 0)
            });
            low |= (both & 1) << lane;
            high |= (both >> 16) << lane;
        }
        (compare::combine(context, ins, low), compare::combine(context, ins, high))
    }
}

/// Predicate `d` from the lower halves, `e` from the upper ones.
struct Compare<F>(PhantomData<F>);

impl<F: Fn(u16) -> f32 + Copy> Body for Compare<F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose predicates.
        unsafe {
            let (low, high) = found::<F>(context, ins, ins.f);
            for (predicate, value) in [(ins.d, low), (ins.e, high)] {
                if predicate != NONE {
                    context.set_predicate(predicate, value);
                }
            }
        }
        Flow::Next
    }
}

/// A pair of truths and zeros.
struct Set<F>(PhantomData<F>);

impl<F: Fn(u16) -> f32 + Copy> Body for Set<F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose a row of 32 bits.
        unsafe {
            let (low, high) = found::<F>(context, ins, ins.e);
            let values = std::array::from_fn(|lane| {
                let low = 0u32.wrapping_sub(low >> lane & 1) & 0xFFFF;
                let high = 0u32.wrapping_sub(high >> lane & 1) << 16;
                ins.f & (low | high)
            });
            context.set_row::<u32>(ins.d, values);
        }
        Flow::Next
    }
}
