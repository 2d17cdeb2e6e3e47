//! Half precision: `f16`, `bf16` and pairs of them.

use super::{
    convert::{to_bfloat, to_half},
    has,
};
use crate::{
    module::{Decoded, Decoder},
    ptx::ast::{Instruction, Operand},
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let _ = instruction;
    Err(decoder.not_implemented())
}

/// `cvt.rn.f16x2.f32 d, a, b`: `a` in the upper half.
pub(crate) fn pack(d: &mut Decoder<'_>, i: &Instruction, to: &str, from: &str) -> Decoded {
    let [_, _, _] = d.operands::<3>(i)?;
    if from != "f32" {
        return Err(d.not_implemented());
    }
    let x = u64::from(has(i, "rz")) | u64::from(has(i, "relu")) << 6 | u64::from(has(i, "sat")) << 4;
    let _: Option<&Operand> = None;
    if to == "f16x2" {
        d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u32::from(to_half(a.into(), x)) << 16 | u32::from(to_half(b.into(), x))
        })
    } else {
        d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u32::from(to_bfloat(a.into(), x)) << 16 | u32::from(to_bfloat(b.into(), x))
        })
    }
}
