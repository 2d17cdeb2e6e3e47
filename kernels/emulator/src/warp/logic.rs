//! `lop3`: any function of three bits, and whether any bit of the result is set.

use super::{Context, has, level::Body};
use crate::{
    module::{
        Decoded, Decoder,
        program::{Flow, Ins, NONE},
    },
    ptx::ast::{Instruction, Operand},
};

/// The table says the result for each of the eight cases of one bit of a, b and c.
#[inline(always)]
fn look_up(a: u32, b: u32, c: u32, table: u64) -> u32 {
    let mut result = 0;
    for case in 0..8u32 {
        let pick = |value: u32, bit: u32| if case >> bit & 1 != 0 { value } else { !value };
        let wanted = 0u32.wrapping_sub((table >> case & 1) as u32);
        result |= pick(a, 2) & pick(b, 1) & pick(c, 0) & wanted;
    }
    result
}

/// Decodes `lop3.b32 d, a, b, c, table` and `lop3.or.b32 d|p, a, b, c, table, q`.
pub(crate) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    if let [dest, a, b, c, Operand::Integer(table)] = &i.operands[..] {
        let shorter =
            Instruction { operands: vec![dest.clone(), a.clone(), b.clone(), c.clone()], ..i.clone() };
        return d.with_constant(&shorter, *table as u64, look_up);
    }
    let [Operand::Pair(dest, p), a, b, c, Operand::Integer(table), q] = &i.operands[..] else {
        return Err(d.wrong_count());
    };
    let p = if **p == Operand::Sink { NONE } else { d.predicate(p)?.0 };
    let (q, negated) = d.predicate(q)?;
    let (a, b, c) = (d.source::<u32>(a)?, d.source::<u32>(b)?, d.source::<u32>(c)?);
    let dest = d.dest::<u32>(dest)?;
    // Above the table: the predicate is combined by `and`, and it is negated.
    let x = *table as u64 & 255 | u64::from(has(i, "and")) << 8 | u64::from(negated) << 9;
    Ok(Ins { d: dest, a, b, c, e: p, f: q, x, ..d.rare_ins::<WithPredicate>() })
}

struct WithPredicate;

impl Body for WithPredicate {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of 32 bits, and predicates.
        unsafe {
            let (a, b, c): ([u32; 32], [u32; 32], [u32; 32]) =
                (context.row(ins.a), context.row(ins.b), context.row(ins.c));
            let q = context.predicate(ins.f) ^ 0u32.wrapping_sub((ins.x >> 9) as u32 & 1);
            let mut values = [0; 32];
            let mut some = 0;
            for lane in 0..32 {
                values[lane] = look_up(a[lane], b[lane], c[lane], ins.x);
                some |= u32::from(values[lane] != 0) << lane;
            }
            context.set_row(ins.d, values);
            if ins.e != NONE {
                context.set_predicate(ins.e, if ins.x >> 8 & 1 != 0 { some & q } else { some | q });
            }
        }
        Flow::Next
    }
}
