//! Atomics and reductions: `atom`, `red`.

use crate::{
    module::{Decoded, Decoder},
    ptx::ast::Instruction,
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let _ = instruction;
    Err(decoder.not_implemented())
}
