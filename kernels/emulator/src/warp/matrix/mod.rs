//! Tensor cores: `mma`, `wmma`, `ldmatrix`, `stmatrix`, `movmatrix`.
//!
//! A warp holds a matrix in fragments, a few registers of each lane (`fragment`). All of `mma` and `wmma` comes down to
//! tiles of 16 x 8 x k or 8 x 8 x k (`multiply`), as on the hardware; `accumulate` is the arithmetic of the tensor cores,
//! `load` moves fragments between registers and memory, `exchange` the 8 x 8 matrices of `ldmatrix`.

mod accumulate;
mod exchange;
mod fragment;
mod load;
mod multiply;
mod operation;

use super::{Context, has};
use crate::{
    module::{Decoded, Decoder, invalid},
    ptx::ast::{Instruction, Operand},
};

/// The instruction is one of this chapter, which all lanes of a warp execute together.
pub(crate) fn is_matrix(opcode: &str) -> bool {
    matches!(opcode, "mma" | "wmma" | "ldmatrix" | "stmatrix" | "movmatrix")
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    if !has(instruction, "sync") || has(instruction, "sp") || !has(instruction, "aligned") {
        return Err(decoder.not_implemented());
    }
    match instruction.opcode.as_str() {
        "mma" => operation::decode_mma(decoder, instruction),
        "wmma" if has(instruction, "mma") => operation::decode_wmma(decoder, instruction),
        "wmma" => load::decode(decoder, instruction),
        _ => exchange::decode(decoder, instruction),
    }
}

/// Some lanes of the warp are still elsewhere.
fn is_incomplete(context: &Context) -> bool {
    context.live & !context.mask != 0
}

/// The registers of a fragment: a list in braces, or a single one without.
fn registers(operand: &Operand) -> &[Operand] {
    match operand {
        Operand::Vector(registers) => registers,
        single => std::slice::from_ref(single),
    }
}

/// The row of each register of a fragment that is read.
fn sources(decoder: &mut Decoder<'_>, operand: &Operand, count: usize, long: bool) -> Decoded<Vec<u32>> {
    rows(decoder, operand, count, |decoder, register| {
        if long { decoder.source::<u64>(register) } else { decoder.source::<u32>(register) }
    })
}

/// The row of each register of a fragment that is written.
fn destinations(decoder: &mut Decoder<'_>, operand: &Operand, count: usize, long: bool) -> Decoded<Vec<u32>> {
    rows(decoder, operand, count, |decoder, register| {
        if long { decoder.dest::<u64>(register) } else { decoder.dest::<u32>(register) }
    })
}

fn rows(
    decoder: &mut Decoder<'_>,
    operand: &Operand,
    count: usize,
    mut row: impl FnMut(&mut Decoder<'_>, &Operand) -> Decoded<u32>,
) -> Decoded<Vec<u32>> {
    let registers = registers(operand);
    if registers.len() != count {
        return Err(invalid(&format!(
            "a fragment of `{}` has {count} registers, not {}",
            decoder.word(),
            registers.len()
        )));
    }
    registers.iter().map(|register| row(decoder, register)).collect()
}
