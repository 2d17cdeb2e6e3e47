//! Memory that a function takes from the stack while it runs: `alloca`, `stacksave`, `stackrestore`.
//!
//! It lies behind the function's own local variables. How much each lane has taken is in a hidden one of them.

use super::{Context, Row, data::Truncate, lanes_of, last_type, level::Body};
use crate::{
    fault::Cause,
    module::{
        Decoded, Decoder, invalid,
        program::{Flow, Ins},
    },
    ptx::ast::{Instruction, Operand},
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let taken = d.taken();
    let long = match last_type(i) {
        "u64" => true,
        "u32" => false,
        _ => return Err(d.not_implemented()),
    };
    match (i.opcode.as_str(), &i.operands[..]) {
        ("alloca", [dest, size, align @ ..]) => {
            let align = match align {
                [] => 8,
                [Operand::Integer(align)] => *align,
                _ => return Err(d.wrong_count()),
            };
            let Some(align) = u64::try_from(align).ok().filter(|align| align.is_power_of_two()) else {
                return Err(invalid("the alignment of `alloca` must be a power of two"));
            };
            let (dest, size, ins) = if long {
                (d.dest::<u64>(dest)?, d.source::<u64>(size)?, d.rare_ins::<Take<u64>>())
            } else {
                (d.dest::<u32>(dest)?, d.source::<u32>(size)?, d.rare_ins::<Take<u32>>())
            };
            Ok(Ins { d: dest, a: size, f: taken, x: align.max(8), ..ins })
        }
        ("stacksave", [dest]) => {
            let (dest, ins) = if long {
                (d.dest::<u64>(dest)?, d.rare_ins::<Save<u64>>())
            } else {
                (d.dest::<u32>(dest)?, d.rare_ins::<Save<u32>>())
            };
            Ok(Ins { d: dest, f: taken, ..ins })
        }
        ("stackrestore", [saved]) => {
            let (saved, ins) = if long {
                (d.source::<u64>(saved)?, d.rare_ins::<Restore<u64>>())
            } else {
                (d.source::<u32>(saved)?, d.rare_ins::<Restore<u32>>())
            };
            Ok(Ins { a: saved, f: taken, ..ins })
        }
        _ => Err(d.wrong_count()),
    }
}

/// The hidden variable: how many bytes each lane has taken.
///
/// # Safety
///
/// - `ins.f` is that variable's place in the running function's local memory.
unsafe fn taken<'c>(context: &'c mut Context, ins: &Ins) -> &'c mut [u32; 32] {
    let word = (context.frame + ins.f) / 4;
    // SAFETY: the variable is one word of each lane, inside the function's part of the warp's rows.
    unsafe { &mut (*context.local.cast::<Row<u32>>().add(word as usize)).0 }
}

/// Nothing is taken when a function starts.
pub(crate) struct Start;

impl Body for Start {
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let mask = context.mask;
        // SAFETY: the decoder chose the variable.
        let taken = unsafe { taken(context, ins) };
        for lane in lanes_of(mask) {
            taken[lane] = 0;
        }
        Flow::Next
    }
}

struct Take<W>(std::marker::PhantomData<W>);

impl<W: Truncate + Into<u64>> Body for Take<W> {
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let (mask, start, limit) = (context.mask, u64::from(context.own_end), context.local_bytes);
        let mut found = [W::default(); 32];
        // SAFETY: the decoder chose a row of this width, and the variable.
        unsafe {
            let sizes: [W; 32] = context.row(ins.a);
            let taken = taken(context, ins);
            for lane in lanes_of(mask) {
                let at = (start + u64::from(taken[lane])).next_multiple_of(ins.x);
                let end = at.saturating_add(sizes[lane].into());
                if end > limit.into() {
                    let limit = u64::from(limit) - start;
                    return context.fault(Cause::StackOverflow { limit }, 1 << lane);
                }
                taken[lane] = (end - start) as u32;
                found[lane] = W::truncate(at);
            }
            context.set_row(ins.d, found);
        }
        Flow::Next
    }
}

struct Save<W>(std::marker::PhantomData<W>);

impl<W: Truncate> Body for Save<W> {
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let start = context.own_end;
        // SAFETY: the decoder chose a row of this width, and the variable.
        unsafe {
            let taken = *taken(context, ins);
            context.set_row(ins.d, taken.map(|taken| W::truncate(u64::from(start + taken))));
        }
        Flow::Next
    }
}

struct Restore<W>(std::marker::PhantomData<W>);

impl<W: Truncate + Into<u64>> Body for Restore<W> {
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let (mask, start) = (context.mask, u64::from(context.own_end));
        // SAFETY: the decoder chose a row of this width, and the variable.
        unsafe {
            let saved: [W; 32] = context.row(ins.a);
            let taken = taken(context, ins);
            for lane in lanes_of(mask) {
                // A value that `stacksave` did not give leaves all as it is.
                let back = saved[lane].into().wrapping_sub(start);
                taken[lane] = taken[lane].min(u32::try_from(back).unwrap_or(u32::MAX));
            }
        }
        Flow::Next
    }
}
