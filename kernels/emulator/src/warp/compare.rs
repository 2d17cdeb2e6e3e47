//! Comparison and selection: `setp`, `set`, `selp`, `slct`.

use super::{Context, float::flush, has, is_type, last_type, soft};
use crate::{
    module::{
        Decoded, Decoder,
        program::{Ins, NONE},
    },
    ptx::ast::Instruction,
};

/// How a comparison's result is combined with a predicate, in an instruction's `x`.
const AND: u64 = 1;
const OR: u64 = 2;
const XOR: u64 = 3;

/// The word that combines, as a number.
pub(super) fn combination(i: &Instruction) -> Option<u64> {
    i.modifiers.iter().find_map(|word| match word.as_str() {
        "and" => Some(AND),
        "or" => Some(OR),
        "xor" => Some(XOR),
        _ => None,
    })
}

/// Combines the lanes where a comparison holds with predicate `c`.
///
/// # Safety
///
/// - `ins.c` is a predicate of the running function, if `x` says to combine.
#[inline(always)]
pub(super) unsafe fn combine(context: &Context, ins: &Ins, found: u32) -> u32 {
    if ins.x == 0 {
        return found;
    }
    // SAFETY: the caller's promise.
    let other = unsafe { context.predicate(ins.c) } ^ 0u32.wrapping_sub((ins.x >> 8) as u32);
    match ins.x & 255 {
        AND => found & other,
        OR => found | other,
        _ => found ^ other,
    }
}

/// Sets predicate `d`, and `e` to the comparison's opposite.
///
/// # Safety
///
/// - The instruction's predicates are the running function's.
#[inline(always)]
pub(super) unsafe fn set_results(context: &mut Context, ins: &Ins, found: u32) {
    // SAFETY: the caller's promise.
    unsafe {
        let first = combine(context, ins, found);
        if ins.e != NONE {
            let second = combine(context, ins, !found);
            context.set_predicate(ins.e, second);
        }
        context.set_predicate(ins.d, first);
    }
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let (d, i) = (decoder, instruction);
    match i.opcode.as_str() {
        "selp" => match i.modifiers.last().map(String::as_str) {
            Some(
                "b16" | "u16" | "s16" | "f16" | "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16" | "bf16x2",
            ) => d.select::<u32>(i),
            Some("b64" | "u64" | "s64" | "f64") => d.select::<u64>(i),
            _ => Err(d.not_implemented()),
        },
        "slct" => {
            let types: Vec<&str> =
                i.modifiers.iter().map(String::as_str).filter(|word| is_type(word)).collect();
            match types[..] {
                [ty, "s32"] if !ty.ends_with("64") => {
                    d.ternary(i, |a: u32, b: u32, c: i32| if c >= 0 { a } else { b })
                }
                [_, "s32"] => d.rare().ternary(i, |a: u64, b: u64, c: i32| if c >= 0 { a } else { b }),
                // Negative zero counts as zero, NaN as negative.
                [ty, "f32"] => match (ty.ends_with("64"), has(i, "ftz")) {
                    (false, false) => d.ternary(i, |a: u32, b: u32, c: f32| if c >= 0.0 { a } else { b }),
                    (false, true) => {
                        d.rare().ternary(i, |a: u32, b: u32, c: f32| if flush(c) >= 0.0 { a } else { b })
                    }
                    (true, false) => {
                        d.rare().ternary(i, |a: u64, b: u64, c: f32| if c >= 0.0 { a } else { b })
                    }
                    (true, true) => {
                        d.rare().ternary(i, |a: u64, b: u64, c: f32| if flush(c) >= 0.0 { a } else { b })
                    }
                },
                _ => Err(d.not_implemented()),
            }
        }
        _ if last_type(i).ends_with("16x2") => super::pairs::decode(d, i),
        "setp" => compare(d, i, None),
        _ => {
            let types: Vec<&str> =
                i.modifiers.iter().map(String::as_str).filter(|word| is_type(word)).collect();
            match types.first() {
                Some(&("u32" | "s32" | "b32")) => compare(d, i, Some(!0)),
                Some(&"f32") => compare(d, i, Some(1f32.to_bits())),
                Some(&"f16") => compare(d, i, Some(0x3C00)),
                Some(&"bf16") => compare(d, i, Some(0x3F80)),
                Some(&("u16" | "s16")) => compare(d, i, Some(0xFFFF)),
                _ => Err(d.not_implemented()),
            }
        }
    }
}

/// `setp` or, with the value of truth, `set`.
#[expect(
    clippy::neg_cmp_op_on_partial_ord,
    reason = "unordered comparisons hold for NaN, which is just that"
)]
fn compare(d: &mut Decoder<'_>, i: &Instruction, truth: Option<u32>) -> Decoded {
    let combine = combination(i);
    let ty = i.modifiers.last().map_or("", String::as_str);
    let Some(operator) = i.modifiers.first().map(String::as_str) else {
        return Err(d.not_implemented());
    };
    // `a` and `b` are closures without captures, and each type of them is a step of its own.
    macro_rules! step {
        ($lane:ty, $f:expr) => {
            match truth {
                None => d.compare::<$lane, _>(i, combine, $f),
                Some(truth) => d.compare_set::<$lane, u32, _>(i, combine, truth, $f),
            }
        };
    }
    // Of types that are compared seldom.
    macro_rules! rare_step {
        ($lane:ty, $f:expr) => {
            match truth {
                None => d.rare().compare::<$lane, _>(i, combine, $f),
                Some(truth) => d.compare_set::<$lane, u32, _>(i, combine, truth, $f),
            }
        };
    }
    macro_rules! ordered {
        ($step:ident, $lane:ty) => {
            match operator {
                "eq" => $step!($lane, |a, b| a == b),
                "ne" => $step!($lane, |a, b| a != b),
                "lt" | "lo" => $step!($lane, |a, b| a < b),
                "le" | "ls" => $step!($lane, |a, b| a <= b),
                "gt" | "hi" => $step!($lane, |a, b| a > b),
                "ge" | "hs" => $step!($lane, |a, b| a >= b),
                _ => Err(d.not_implemented()),
            }
        };
    }
    macro_rules! floats {
        ($step:ident, $lane:ty, $flush:expr) => {{
            match operator {
                // Rust's `!=` holds for NaN; PTX's ordered `ne` does not.
                "eq" => $step!($lane, |a, b| $flush(a) == $flush(b)),
                "ne" => $step!($lane, |a, b| $flush(a) < $flush(b) || $flush(a) > $flush(b)),
                "lt" => $step!($lane, |a, b| $flush(a) < $flush(b)),
                "le" => $step!($lane, |a, b| $flush(a) <= $flush(b)),
                "gt" => $step!($lane, |a, b| $flush(a) > $flush(b)),
                "ge" => $step!($lane, |a, b| $flush(a) >= $flush(b)),
                "equ" => $step!($lane, |a, b| !($flush(a) < $flush(b) || $flush(a) > $flush(b))),
                "neu" => $step!($lane, |a, b| $flush(a) != $flush(b)),
                "ltu" => $step!($lane, |a, b| !($flush(a) >= $flush(b))),
                "leu" => $step!($lane, |a, b| !($flush(a) > $flush(b))),
                "gtu" => $step!($lane, |a, b| !($flush(a) <= $flush(b))),
                "geu" => $step!($lane, |a, b| !($flush(a) < $flush(b))),
                "num" => $step!($lane, |a, b| !$flush(a).is_nan() && !$flush(b).is_nan()),
                "nan" => $step!($lane, |a, b| $flush(a).is_nan() || $flush(b).is_nan()),
                _ => Err(d.not_implemented()),
            }
        }};
    }
    match ty {
        "b16" | "u16" => ordered!(rare_step, u16),
        "s16" => ordered!(rare_step, i16),
        "b32" | "u32" => ordered!(step, u32),
        "s32" => ordered!(step, i32),
        "b64" | "u64" => ordered!(rare_step, u64),
        "s64" => ordered!(step, i64),
        "f32" if has(i, "ftz") => floats!(rare_step, f32, flush),
        "f32" => floats!(step, f32, std::convert::identity),
        "f64" => floats!(rare_step, f64, std::convert::identity),
        "f16" if has(i, "ftz") => floats!(rare_step, u16, soft::from_half_flushed),
        "f16" => floats!(rare_step, u16, soft::from_half),
        "bf16" => floats!(rare_step, u16, soft::from_bfloat),
        _ => Err(d.not_implemented()),
    }
}
