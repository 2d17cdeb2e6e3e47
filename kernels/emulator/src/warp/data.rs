//! Moving data: `mov`, packing and unpacking, addresses of spaces.

use super::{
    Body, Context, Word, has,
    memory::{GENERIC_LOCAL, GENERIC_PARAM, GENERIC_SHARED, Window, space_of, window},
};
use crate::{
    module::{
        Class, Decoded, Decoder, Symbol,
        program::{Flow, Ins, NONE},
        type_bytes,
    },
    ptx::ast::{Instruction, Operand, Space},
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    match instruction.opcode.as_str() {
        "mov" => move_value(decoder, instruction),
        "cvta" => convert_address(decoder, instruction),
        "isspacep" => is_space(decoder, instruction),
        "createpolicy" => {
            // What a policy says changes nothing here.
            let [policy, ..] = &instruction.operands[..] else { return Err(decoder.wrong_count()) };
            let operands = vec![policy.clone(), Operand::Integer(0)];
            let plain = Instruction { modifiers: vec!["b64".into()], operands, ..instruction.clone() };
            move_value(decoder, &plain)
        }
        _ => in_cluster(decoder, instruction),
    }
}

/// Steps that change nothing.
pub(super) fn nothing(decoder: &mut Decoder<'_>, _: &Instruction) -> Decoded {
    unsafe fn nothing(_: &mut Context, _: &Ins) -> Flow {
        Flow::Next
    }
    Ok(decoder.plain(nothing))
}

/// `mapa` and `getctarank` in a cluster of one block, whose rank is 0.
fn in_cluster(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (dest, value) = match (i.opcode.as_str(), &i.operands[..]) {
        ("mapa", [dest, address, rank]) => {
            d.source::<u32>(rank)?;
            (dest.clone(), address.clone())
        }
        ("getctarank", [dest, _]) => (dest.clone(), Operand::Integer(0)),
        _ => return Err(d.wrong_count()),
    };
    let ty = if i.opcode == "mapa" { i.modifiers.last().map_or("", String::as_str) } else { "u32" };
    let plain = Instruction { modifiers: vec![ty.into()], operands: vec![dest, value], ..i.clone() };
    move_value(d, &plain)
}

fn move_value(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let [dest, source] = d.operands(i)?;
    let ty = i.modifiers.last().map_or("", String::as_str);
    if ty == "pred" {
        return d.predicates(i, |a, _| a);
    }
    let bytes = type_bytes(ty)?;
    if bytes == 16 {
        return super::wide::move_value(d, dest, source);
    }
    match (dest, source) {
        (Operand::Vector(parts), source) => return unpack(d, parts, source, bytes),
        (dest, Operand::Vector(parts)) => return pack(d, dest, parts, bytes),
        _ => {}
    }
    // Addresses that depend on the frame, and registers that change while a block runs.
    let (name, offset) = match source {
        Operand::Name(name) => (name.as_str(), 0),
        Operand::Offset(name, offset) => (name.as_str(), *offset),
        _ => ("", 0),
    };
    if !name.is_empty() && d.find_register(name).is_none() {
        let wide = bytes == 8;
        let dynamic = match name {
            "%clock" | "%clock64" | "%globaltimer" | "%globaltimer_lo" => Some(false),
            "%clock_hi" | "%globaltimer_hi" => Some(true),
            _ => None,
        };
        if let Some(high) = dynamic {
            let ins = if wide { d.rare_ins::<Clock<u64>>() } else { d.rare_ins::<Clock<u32>>() };
            let dest = if wide { d.dest::<u64>(dest)? } else { d.dest::<u32>(dest)? };
            return Ok(Ins { d: dest, x: high.into(), ..ins });
        }
        if wide && d.is_special(name) {
            return d.rare().unary(i, |a: u32| u64::from(a));
        }
        let place = match d.symbol(name) {
            Ok(Symbol::Frame(at)) => Some((u64::from(at), true)),
            Ok(Symbol::Param(at)) => Some((u64::from(at), false)),
            _ => None,
        };
        if let Some((at, frame)) = place {
            let ins = if wide { d.ins::<FrameAddress<u64>>() } else { d.ins::<FrameAddress<u32>>() };
            let dest = if wide { d.dest::<u64>(dest)? } else { d.dest::<u32>(dest)? };
            return Ok(Ins { d: dest, x: at.wrapping_add_signed(offset), f: frame.into(), ..ins });
        }
    }
    match bytes {
        8 => d.unary(i, |a: u64| a),
        1 | 2 | 4 => d.unary(i, |a: u32| a),
        _ => Err(d.not_implemented()),
    }
}

/// A value that only the moment of execution knows. Time is what the worker has executed so far.
struct Clock<W>(std::marker::PhantomData<W>);

/// A row's word from 64 bits.
pub(crate) trait Truncate: Word {
    fn truncate(value: u64) -> Self;
}

impl Truncate for u32 {
    #[inline(always)]
    fn truncate(value: u64) -> u32 {
        value as u32
    }
}

impl Truncate for u64 {
    #[inline(always)]
    fn truncate(value: u64) -> u64 {
        value
    }
}

impl<W: Truncate> Body for Clock<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let now = context.counters.warp_instructions;
        let now = if ins.x != 0 { now >> 32 } else { now };
        // SAFETY: the decoder chose a row of this width.
        unsafe { context.set_row(ins.d, [W::truncate(now); 32]) };
        Flow::Next
    }
}

/// The address of a variable of the running function, or of a parameter.
struct FrameAddress<W>(std::marker::PhantomData<W>);

impl<W: Truncate> Body for FrameAddress<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let start = if ins.f != 0 { u64::from(context.frame) } else { 0 };
        // SAFETY: the decoder chose a row of this width.
        unsafe { context.set_row(ins.d, [W::truncate(start.wrapping_add(ins.x)); 32]) };
        Flow::Next
    }
}

/// `mov.b64 {lo, hi}, a`
fn unpack(d: &mut Decoder<'_>, parts: &[Operand], source: &Operand, bytes: u64) -> Decoded {
    let mut rows = [NONE; 4];
    for (row, part) in rows.iter_mut().zip(parts) {
        if *part != Operand::Sink {
            *row = d.dest::<u32>(part)?;
        }
    }
    let a = if bytes == 8 { d.source::<u64>(source)? } else { d.source::<u32>(source)? };
    let part_bits = bytes * 8 / parts.len() as u64;
    let ins = if bytes == 8 { d.ins::<Unpack<u64>>() } else { d.ins::<Unpack<u32>>() };
    let [first, b, c, e] = rows;
    Ok(Ins { d: first, a, b, c, e, x: part_bits, ..ins })
}

struct Unpack<W>(std::marker::PhantomData<W>);

impl<W: Word + Into<u64>> Body for Unpack<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [W; 32] = context.row(ins.a);
            let keep = (1u64 << ins.x) - 1;
            for (part, row) in [ins.d, ins.b, ins.c, ins.e].into_iter().enumerate() {
                if row == NONE {
                    continue;
                }
                let shift = (ins.x * part as u64) & 63;
                let mut values = [0u32; 32];
                for lane in 0..32 {
                    values[lane] = (a[lane].into() >> shift & keep) as u32;
                }
                context.set_row(row, values);
            }
        }
        Flow::Next
    }
}

/// `mov.b64 d, {lo, hi}`
fn pack(d: &mut Decoder<'_>, dest: &Operand, parts: &[Operand], bytes: u64) -> Decoded {
    if parts.len() > 4 {
        return Err(d.not_implemented());
    }
    let part_bits = bytes * 8 / parts.len().max(1) as u64;
    let mut rows = [NONE; 4];
    for (row, part) in rows.iter_mut().zip(parts) {
        *row = d.source::<u32>(part)?;
    }
    let ins = if bytes == 8 { d.ins::<Pack<u64>>() } else { d.ins::<Pack<u32>>() };
    let dest = if bytes == 8 { d.dest::<u64>(dest)? } else { d.dest::<u32>(dest)? };
    let [a, b, c, e] = rows;
    Ok(Ins { d: dest, a, b, c, e, x: part_bits, ..ins })
}

struct Pack<W>(std::marker::PhantomData<W>);

impl<W: Truncate> Body for Pack<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let keep = (1u64 << ins.x) - 1;
            let mut values = [0u64; 32];
            for (part, row) in [ins.a, ins.b, ins.c, ins.e].into_iter().enumerate() {
                if row == NONE {
                    continue;
                }
                let shift = (ins.x * part as u64) & 63;
                let words: [u32; 32] = context.row(row);
                for lane in 0..32 {
                    values[lane] |= (u64::from(words[lane]) & keep) << shift;
                }
            }
            let mut row = [W::default(); 32];
            for lane in 0..32 {
                row[lane] = W::truncate(values[lane]);
            }
            context.set_row(ins.d, row);
        }
        Flow::Next
    }
}

fn base_of(space: Space) -> u64 {
    match space {
        Space::Shared => GENERIC_SHARED,
        Space::Local => GENERIC_LOCAL,
        Space::Param => GENERIC_PARAM,
        // Global and constant addresses are generic ones.
        _ => 0,
    }
}

fn convert_address(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let Some(space) = space_of(i) else { return Err(d.not_implemented()) };
    let base = base_of(space);
    let [dest, source] = d.operands(i)?;
    let wide = i.modifiers.last().is_some_and(|ty| ty == "u64");
    // The address of a frame's variable needs the frame first.
    if let Operand::Name(name) | Operand::Offset(name, _) = source
        && d.find_register(name).is_none()
        && let Ok(Symbol::Frame(at) | Symbol::Param(at)) = d.symbol(name)
    {
        let frame = matches!(d.symbol(name), Ok(Symbol::Frame(_)));
        let offset = if let Operand::Offset(_, offset) = source { *offset } else { 0 };
        let x = (base + u64::from(at)).wrapping_add_signed(offset);
        let dest = d.dest::<u64>(dest)?;
        return Ok(Ins { d: dest, x, f: frame.into(), ..d.ins::<FrameAddress<u64>>() });
    }
    match (wide, has(i, "to"), base) {
        (true, _, 0) => d.unary(i, |a: u64| a),
        (true, true, base) => d.with_constant(i, base, |a: u64, _: u32, _: u32, base| a.wrapping_sub(base)),
        (true, false, base) => d.with_constant(i, base, |a: u64, _: u32, _: u32, base| a.wrapping_add(base)),
        (false, ..) => Err(d.not_implemented()),
    }
}

fn is_space(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let [p, a] = d.operands(i)?;
    let twice = Instruction { operands: vec![p.clone(), a.clone(), a.clone()], ..i.clone() };
    if let Operand::Name(name) = a
        && d.find_register(name).is_some_and(|register| register.class != Class::Long)
    {
        return Err(d.not_implemented());
    }
    match space_of(i) {
        Some(Space::Shared) => d.rare().compare(&twice, None, |a: u64, _| window(a) == Window::Shared),
        Some(Space::Local) => d.rare().compare(&twice, None, |a: u64, _| window(a) == Window::Local),
        Some(Space::Param) => d.rare().compare(&twice, None, |a: u64, _| window(a) == Window::Param),
        Some(space @ (Space::Global | Space::Const)) => {
            let ins = d.rare_ins::<IsGlobal>();
            d.compare_operands::<u64>(&twice, None, Ins { f: (space == Space::Const).into(), ..ins })
        }
        _ => Err(d.not_implemented()),
    }
}

/// Whether addresses are global, or those of constants. They share a window, and so do the kernel's parameters with global
/// memory.
struct IsGlobal;

impl Body for IsGlobal {
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose a row of 64 bits, and predicates.
        unsafe {
            let addresses: [u64; 32] = context.row(ins.a);
            let mut found = 0;
            for (lane, &address) in addresses.iter().enumerate() {
                let constant = || context.table.find(address).is_some_and(|range| range.constant);
                let holds = match window(address) {
                    Window::Global => constant() == (ins.f != 0),
                    Window::Param => ins.f == 0,
                    Window::Shared | Window::Local => false,
                };
                found |= u32::from(holds) << lane;
            }
            super::compare::set_results(context, ins, found);
        }
        Flow::Next
    }
}
