//! Lanes that exchange values: `shfl`, `vote`, `match`, `redux`, `activemask`, `bar.warp.sync`.

use crate::{
    module::{Decoded, Decoder},
    ptx::ast::Instruction,
};

/// The instruction waits for other lanes of the warp.
pub(crate) fn waits(instruction: &Instruction) -> bool {
    let _ = instruction;
    false
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let _ = instruction;
    Err(decoder.not_implemented())
}
