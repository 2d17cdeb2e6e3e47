//! Lanes that exchange values: `shfl`, `vote`, `match`, `redux`, `elect`, `activemask`, `bar.warp.sync`.
//!
//! Each lane names the lanes that must execute the operation with it. While some of them are elsewhere, the instruction
//! is not executed: the strand waits. Lanes that execute it together may name different members, in groups.

use super::{Context, has, lanes_of, last_type, matrix::is_matrix, memory::wait_a_little};
use crate::{
    module::{
        Decoded, Decoder,
        program::{Flow, Ins, NONE},
    },
    ptx::ast::{Instruction, Operand},
};

/// The instruction waits for other lanes of the warp.
pub(crate) fn waits(instruction: &Instruction) -> bool {
    matches!(instruction.opcode.as_str(), "shfl" | "vote" | "match" | "redux" | "elect")
        && has(instruction, "sync")
        || instruction.modifiers.first().is_some_and(|word| word == "warp")
        || is_matrix(&instruction.opcode)
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let (d, i) = (decoder, instruction);
    match i.opcode.as_str() {
        "shfl" => shuffle(d, i),
        "vote" => vote(d, i),
        "match" => matching(d, i),
        "redux" => reduce(d, i),
        "elect" => elect(d, i),
        "activemask" => {
            let [dest] = d.operands(i)?;
            let dest = d.dest::<u32>(dest)?;
            Ok(Ins { d: dest, ..d.plain(active_mask) })
        }
        "nanosleep" => Ok(d.plain(sleep)),
        "bar" | "barrier" => {
            let [members] = d.operands(i)?;
            let members = d.source::<u32>(members)?;
            Ok(Ins { f: members, ..d.plain(warp_barrier) })
        }
        _ => Err(d.not_implemented()),
    }
}

/// The last operand, which names the members, and the ones before it. Old forms without `.sync` have none: all bits.
fn members<'i>(d: &mut Decoder<'_>, i: &'i Instruction) -> Decoded<(u32, &'i [Operand])> {
    if !has(i, "sync") {
        return Ok((d.constant(false, 0), &i.operands));
    }
    let [rest @ .., members] = &i.operands[..] else { return Err(d.wrong_count()) };
    Ok((d.source::<u32>(members)?, rest))
}

/// The members that each lane names, if all of them are here.
fn gather(context: &mut Context, ins: &Ins) -> Option<[u32; 32]> {
    // SAFETY: the decoder chose a row of 32 bits.
    let members: [u32; 32] = unsafe { context.row(ins.f) };
    let needed = lanes_of(context.mask).fold(0, |needed, lane| needed | members[lane]);
    if needed & context.live & !context.mask != 0 {
        return None;
    }
    let (mask, live) = (context.mask, context.live);
    if let Some(race) = context.race() {
        race.meet_lanes(&members, mask, live);
    }
    Some(members)
}

const UP: u64 = 0;
const DOWN: u64 = 1;
const BUTTERFLY: u64 = 2;
const INDEX: u64 = 3;

fn shuffle(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (members, rest) = members(d, i)?;
    let [dest, a, b, c] = rest else { return Err(d.wrong_count()) };
    let (dest, p) = match dest {
        Operand::Pair(dest, p) => (&**dest, d.predicate(p)?.0),
        dest => (dest, NONE),
    };
    let mode = match i.modifiers.iter().find_map(|word| match word.as_str() {
        "up" => Some(UP),
        "down" => Some(DOWN),
        "bfly" => Some(BUTTERFLY),
        "idx" => Some(INDEX),
        _ => None,
    }) {
        Some(mode) if last_type(i) == "b32" => mode,
        _ => return Err(d.not_implemented()),
    };
    let dest = d.dest::<u32>(dest)?;
    let (a, b, c) = (d.source::<u32>(a)?, d.source::<u32>(b)?, d.source::<u32>(c)?);
    Ok(Ins { d: dest, a, b, c, e: p, f: members, x: mode, ..d.plain(run_shuffle) })
}

unsafe fn run_shuffle(context: &mut Context, ins: &Ins) -> Flow {
    if gather(context, ins).is_none() {
        return Flow::Wait;
    }
    // SAFETY: the decoder chose rows of 32 bits, and a predicate.
    unsafe {
        let a: [u32; 32] = context.row(ins.a);
        let b: [u32; 32] = context.row(ins.b);
        let c: [u32; 32] = context.row(ins.c);
        let mut values = a;
        let mut inside = 0u32;
        for lane in 0..32u32 {
            let n = lane as usize;
            let (by, clamp, segment) = (b[n] & 31, c[n] & 31, c[n] >> 8 & 31);
            let greatest = (lane & segment) | (clamp & !segment);
            let (from, found) = match ins.x {
                UP => (lane.wrapping_sub(by), lane as i32 - by as i32 >= greatest as i32),
                DOWN => (lane + by, lane + by <= greatest),
                BUTTERFLY => (lane ^ by, lane ^ by <= greatest),
                _ => {
                    let from = (lane & segment) | (by & !segment);
                    (from, from <= greatest)
                }
            };
            if found {
                values[n] = a[(from & 31) as usize];
                inside |= 1 << lane;
            }
        }
        context.set_row(ins.d, values);
        if ins.e != NONE {
            context.set_predicate(ins.e, inside);
        }
    }
    Flow::Next
}

const ALL: u64 = 0;
const ANY: u64 = 1;
const UNIFORM: u64 = 2;

fn vote(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (members, rest) = members(d, i)?;
    let [dest, a] = rest else { return Err(d.wrong_count()) };
    let (a, negated) = d.predicate(a)?;
    if has(i, "ballot") {
        let dest = d.dest::<u32>(dest)?;
        return Ok(Ins { d: dest, a, e: negated.into(), f: members, ..d.plain(run_ballot) });
    }
    let mode = match i.modifiers.iter().find_map(|word| match word.as_str() {
        "all" => Some(ALL),
        "any" => Some(ANY),
        "uni" => Some(UNIFORM),
        _ => None,
    }) {
        Some(mode) => mode,
        None => return Err(d.not_implemented()),
    };
    let dest = d.predicate(dest)?.0;
    Ok(Ins { d: dest, a, e: negated.into(), f: members, x: mode, ..d.plain(run_vote) })
}

/// The lanes where a vote's predicate holds.
unsafe fn holds(context: &Context, ins: &Ins) -> u32 {
    // SAFETY: the decoder chose a predicate.
    unsafe { context.predicate(ins.a) ^ 0u32.wrapping_sub(ins.e) }
}

/// The lanes that vote with a lane.
fn voters(context: &Context, members: u32) -> u32 {
    if members == 0 { context.mask } else { members & context.mask }
}

unsafe fn run_ballot(context: &mut Context, ins: &Ins) -> Flow {
    let Some(members) = gather(context, ins) else { return Flow::Wait };
    // SAFETY: the decoder chose a row of 32 bits, and a predicate.
    unsafe {
        let holds = holds(context, ins);
        let values = members.map(|members| holds & voters(context, members));
        context.set_row(ins.d, values);
    }
    Flow::Next
}

unsafe fn run_vote(context: &mut Context, ins: &Ins) -> Flow {
    let Some(members) = gather(context, ins) else { return Flow::Wait };
    // SAFETY: the decoder chose predicates.
    unsafe {
        let holds = holds(context, ins);
        let mut result = 0;
        for lane in lanes_of(context.mask) {
            let voters = voters(context, members[lane]);
            let (some, all) = (holds & voters != 0, holds & voters == voters);
            let won = match ins.x {
                ALL => all,
                ANY => some,
                _ => all || !some,
            };
            result |= u32::from(won) << lane;
        }
        context.set_predicate(ins.d, result);
    }
    Flow::Next
}

fn matching(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (members, rest) = members(d, i)?;
    let [dest, a] = rest else { return Err(d.wrong_count()) };
    let (dest, p) = match dest {
        Operand::Pair(dest, p) => (&**dest, d.predicate(p)?.0),
        dest => (dest, NONE),
    };
    let dest = d.dest::<u32>(dest)?;
    let long = last_type(i) == "b64";
    let a = if long { d.source::<u64>(a)? } else { d.source::<u32>(a)? };
    let step = if has(i, "all") { d.plain(match_all) } else { d.plain(match_any) };
    Ok(Ins { d: dest, a, b: long.into(), e: p, f: members, ..step })
}

unsafe fn values(context: &Context, ins: &Ins) -> [u64; 32] {
    // SAFETY: the decoder chose a row of this width.
    unsafe { if ins.b != 0 { context.row::<u64>(ins.a) } else { context.row::<u32>(ins.a).map(u64::from) } }
}

unsafe fn match_any(context: &mut Context, ins: &Ins) -> Flow {
    let Some(members) = gather(context, ins) else { return Flow::Wait };
    // SAFETY: the decoder chose rows of these widths.
    unsafe {
        let values = values(context, ins);
        let mut found = [0u32; 32];
        for lane in lanes_of(context.mask) {
            let same =
                lanes_of(voters(context, members[lane])).filter(|&other| values[other] == values[lane]);
            found[lane] = same.fold(0, |same, other| same | 1 << other);
        }
        context.set_row(ins.d, found);
    }
    Flow::Next
}

unsafe fn match_all(context: &mut Context, ins: &Ins) -> Flow {
    let Some(members) = gather(context, ins) else { return Flow::Wait };
    // SAFETY: the decoder chose rows of these widths, and a predicate.
    unsafe {
        let values = values(context, ins);
        let mut found = [0u32; 32];
        let mut all = 0;
        for lane in lanes_of(context.mask) {
            let voters = voters(context, members[lane]);
            if lanes_of(voters).all(|other| values[other] == values[lane]) {
                found[lane] = voters;
                all |= 1 << lane;
            }
        }
        context.set_row(ins.d, found);
        if ins.e != NONE {
            context.set_predicate(ins.e, all);
        }
    }
    Flow::Next
}

fn reduce(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (members, rest) = members(d, i)?;
    let [dest, a] = rest else { return Err(d.wrong_count()) };
    let (dest, a) = (d.dest::<u32>(dest)?, d.source::<u32>(a)?);
    let operator = i.modifiers.iter().find_map(|word| match word.as_str() {
        "add" => Some(0),
        "min" => Some(1),
        "max" => Some(2),
        "and" => Some(3),
        "or" => Some(4),
        "xor" => Some(5),
        _ => None,
    });
    match (operator, last_type(i)) {
        (Some(operator), "u32" | "b32") => {
            Ok(Ins { d: dest, a, f: members, x: operator, ..d.plain(run_reduce) })
        }
        (Some(operator), "s32") => Ok(Ins { d: dest, a, f: members, x: operator | 8, ..d.plain(run_reduce) }),
        _ => Err(d.not_implemented()),
    }
}

unsafe fn run_reduce(context: &mut Context, ins: &Ins) -> Flow {
    let Some(members) = gather(context, ins) else { return Flow::Wait };
    // SAFETY: the decoder chose rows of 32 bits.
    unsafe {
        let a: [u32; 32] = context.row(ins.a);
        let combine = |a: u32, b: u32| match ins.x {
            0 | 8 => a.wrapping_add(b),
            1 => a.min(b),
            2 => a.max(b),
            9 => (a as i32).min(b as i32) as u32,
            10 => (a as i32).max(b as i32) as u32,
            3 | 11 => a & b,
            4 | 12 => a | b,
            _ => a ^ b,
        };
        let mut found = [0u32; 32];
        for lane in lanes_of(context.mask) {
            let voters = voters(context, members[lane]);
            found[lane] = lanes_of(voters).map(|other| a[other]).reduce(combine).unwrap_or(0);
        }
        context.set_row(ins.d, found);
    }
    Flow::Next
}

fn elect(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (members, rest) = members(d, i)?;
    let [Operand::Pair(dest, p)] = rest else { return Err(d.wrong_count()) };
    let dest = d.dest::<u32>(dest)?;
    let p = d.predicate(p)?.0;
    Ok(Ins { d: dest, e: p, f: members, ..d.plain(run_elect) })
}

unsafe fn run_elect(context: &mut Context, ins: &Ins) -> Flow {
    let Some(members) = gather(context, ins) else { return Flow::Wait };
    // SAFETY: the decoder chose a row of 32 bits, and a predicate.
    unsafe {
        let leaders = members.map(|members| voters(context, members).trailing_zeros());
        let leads = lanes_of(context.mask).filter(|&lane| leaders[lane] as usize == lane);
        let leads = leads.fold(0, |leads, lane| leads | 1 << lane);
        context.set_row(ins.d, leaders);
        context.set_predicate(ins.e, leads);
    }
    Flow::Next
}

unsafe fn active_mask(context: &mut Context, ins: &Ins) -> Flow {
    // SAFETY: the decoder chose a row of 32 bits.
    unsafe { context.set_row(ins.d, [context.mask; 32]) };
    Flow::Next
}

unsafe fn sleep(context: &mut Context, _: &Ins) -> Flow {
    wait_a_little(context);
    Flow::Next
}

/// `bar.warp.sync`: unlike the others, lanes may come to different ones.
unsafe fn warp_barrier(context: &mut Context, ins: &Ins) -> Flow {
    let mask = context.mask;
    if context.pass & mask == mask {
        // Others have met these lanes here already.
        context.pass &= !mask;
        return Flow::Next;
    }
    // SAFETY: the decoder chose a row of 32 bits.
    let members: [u32; 32] = unsafe { context.row(ins.f) };
    let needed = lanes_of(mask).fold(0, |needed, lane| needed | members[lane]) & context.live & !mask;
    if needed & !context.arrived == 0 {
        let live = context.live;
        if let Some(race) = context.race() {
            // Those who wait elsewhere named these lanes as well.
            let first = members[mask.trailing_zeros() as usize % 32];
            let all = std::array::from_fn(|lane| if mask >> lane & 1 != 0 { members[lane] } else { first });
            race.meet_lanes(&all, mask | needed, live);
        }
        context.pass |= needed;
        return Flow::Next;
    }
    context.at_warp_barrier = true;
    Flow::Wait
}
