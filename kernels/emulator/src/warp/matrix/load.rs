//! `wmma.load` and `wmma.store`: fragments and memory.
//!
//! Each lane moves the elements that its registers hold. Where those are neighbours in memory, it moves a whole register,
//! or both of an accumulator, at once. Otherwise elements of 16 bits are moved as transposed blocks, two at a time, and
//! others one by one. This is what NVIDIA's assembler makes of these instructions, so requests and sectors are the same.

use super::{
    destinations,
    exchange::transpose,
    fragment::{Block, blocks},
    is_incomplete,
    operation::{Shape, bits, fragment_registers, is_wmma, shape, types},
    sources,
};
use crate::{
    fault::Access,
    module::{
        Decoded, Decoder,
        program::{Flow, Ins, kept},
    },
    ptx::ast::Instruction,
    warp::{
        Context, has, lanes_of,
        memory::{self, Target, WINDOW, Window, addresses, place, window},
    },
};

/// What moves.
struct Fragment {
    blocks: Vec<Block>,
    registers: Vec<u32>,
    /// Bits of an element, and how many a lane holds of a block.
    bits: u32,
    each: u32,
    /// The elements of a row of a block are neighbours in memory.
    neighbours: bool,
    access: Access,
    address: Ins,
    long: bool,
    space: Target,
    cache: u32,
    /// The row with the distance of two rows in memory, in elements.
    stride: u32,
}

/// Decodes `wmma.load` and `wmma.store`.
pub(super) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let shape = shape(d, i)?;
    let load = has(i, "load");
    let matrix = ["a", "b", "c", "d"].into_iter().find(|matrix| has(i, matrix));
    let (Some(matrix), [ty]) = (matrix, &types(i)[..]) else { return Err(d.not_implemented()) };
    let row_major = has(i, "row");
    let accumulator = matrix == "c" || matrix == "d";
    let valid = if accumulator {
        // The types that the shape has for accumulators.
        match *ty {
            "f16" => is_wmma(shape, "f16"),
            "f32" => is_wmma(shape, "f16") || is_wmma(shape, "tf32"),
            "s32" => is_wmma(shape, "s8") || is_wmma(shape, "s4") || is_wmma(shape, "b1"),
            "f64" => is_wmma(shape, "f64"),
            _ => false,
        }
    } else {
        // Elements of less than a byte have one layout.
        is_wmma(shape, ty) && (!matches!(*ty, "s4" | "u4" | "b1") || row_major == (matrix == "a"))
    };
    if !valid || row_major == has(i, "col") || load == (matrix == "d") || load == has(i, "store") {
        return Err(d.not_implemented());
    }
    let (first, second, stride) = match &i.operands[..] {
        [first, second] => (first, second, None),
        [first, second, stride] => (first, second, Some(stride)),
        _ => return Err(d.wrong_count()),
    };
    let (address, registers) = if load { (second, first) } else { (first, second) };
    let long = *ty == "f64";
    let count =
        fragment_registers(shape, if accumulator { 'c' } else { matrix.chars().next().unwrap_or('a') }, ty);
    let registers =
        if load { destinations(d, registers, count, long)? } else { sources(d, registers, count, long)? };
    let stride = match stride {
        Some(stride) => d.source::<u32>(stride)?,
        None => {
            let stride = match (matrix, row_major) {
                ("a", true) | ("b", false) => shape.k,
                ("a", false) => shape.m,
                ("b", true) => shape.n,
                (_, true) => shape.n,
                (_, false) => shape.m,
            };
            d.constant(false, stride.into())
        }
    };
    let place = place(d, i, address)?;
    if !matches!(place.space, Target::Shared | Target::Global | Target::Generic) {
        return Err(d.not_implemented());
    }
    let bits = bits(ty).unwrap_or(32);
    // 8 x 32 x 16 is computed transposed: the rows of its accumulators' blocks are columns.
    let transposed = shape.n == 32;
    let each = if accumulator { 2 } else { (32 / bits).max(1) };
    let (blocks, by_row) = layout(shape, matrix, each, transposed);
    let fragment = Fragment {
        blocks,
        registers,
        bits,
        each,
        neighbours: row_major == by_row,
        access: if load { Access::Load } else { Access::Store },
        address: Ins { a: place.row, x: place.offset, ..d.plain(run) },
        long: place.long,
        space: place.space,
        cache: d.cache(),
        stride,
    };
    let x = d.keep(fragment);
    Ok(Ins { x, ..d.plain(run) })
}

/// The blocks of a fragment, and whether their rows are the matrix's: otherwise they are its columns.
fn layout(shape: Shape, matrix: &str, each: u32, transposed: bool) -> (Vec<Block>, bool) {
    let Shape { m, n, k } = shape;
    match matrix {
        "a" => (blocks(m, k, 4 * each, !transposed), true),
        "b" => (blocks(n, k, 4 * each, transposed), false),
        _ if transposed => (blocks(n, m, 8, true), false),
        _ => (blocks(m, n, 8, true), true),
    }
}

unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
    if is_incomplete(context) {
        return Flow::Wait;
    }
    // SAFETY: the decoder keeps the fragment as long as the code, and chose its rows.
    let (fragment, start, stride) = unsafe {
        let fragment = kept::<Fragment>(ins.x);
        let start = if fragment.long {
            addresses::<u64>(context, &fragment.address)
        } else {
            addresses::<u32>(context, &fragment.address)
        };
        (fragment, start, context.row::<u32>(fragment.stride))
    };
    let registers_each = (fragment.each * fragment.bits / fragment.bits.max(32)) as usize;
    for (number, block) in fragment.blocks.iter().enumerate() {
        let registers = &fragment.registers[number * registers_each..][..registers_each];
        // SAFETY: as above.
        if let Err(flow) = unsafe { move_block(context, ins, fragment, *block, registers, &start, &stride) } {
            return flow;
        }
    }
    // The 16-bit A and B of 16 x 16 matrices are there twice. What other fragments do not use keeps its value.
    let used = fragment.blocks.len() * registers_each;
    if fragment.access == Access::Load && fragment.registers.len() == 2 * used {
        for (&from, &to) in fragment.registers.iter().zip(&fragment.registers[used..]) {
            // SAFETY: as above.
            unsafe {
                let values: [u32; 32] = context.row(from);
                context.set_row(to, values);
            }
        }
    }
    Flow::Next
}

/// Moves the registers of one block.
unsafe fn move_block(
    context: &mut Context,
    ins: &Ins,
    fragment: &Fragment,
    block: Block,
    registers: &[u32],
    start: &[u64; 32],
    stride: &[u32; 32],
) -> Result<(), Flow> {
    let lanes_elements = |lane: usize, element: u32| {
        let (outer, inner) =
            (block.outer + lane as u32 / 4, block.inner + lane as u32 % 4 * fragment.each + element);
        (u64::from(outer), u64::from(inner))
    };
    let address = |lane: usize, line: u64, element: u64| {
        let elements = line.wrapping_mul(stride[lane].into()).wrapping_add(element);
        start[lane].wrapping_add(elements.wrapping_mul(fragment.bits.into()) / 8)
    };
    let bytes = u64::from(fragment.each * fragment.bits / 8);
    // SAFETY: the caller's promise.
    unsafe {
        if fragment.neighbours {
            let places = std::array::from_fn(|lane| {
                let (outer, inner) = lanes_elements(lane, 0);
                address(lane, outer, inner)
            });
            return move_words(context, ins, fragment, registers, places, bytes);
        }
        if fragment.bits == 16 {
            // The transposed block: its rows are this one's columns.
            let places = std::array::from_fn(|lane| {
                let (line, element) = (block.inner + lane as u32 / 4, block.outer + lane as u32 % 4 * 2);
                address(lane, line.into(), element.into())
            });
            let register = registers[0];
            if fragment.access == Access::Load {
                move_words(context, ins, fragment, registers, places, bytes)?;
                let matrix = context.row(register);
                context.set_row(register, transpose(matrix));
                return Ok(());
            }
            let matrix: [u32; 32] = context.row(register);
            let host = reach(context, ins, fragment, places, bytes)?;
            let words = transpose(matrix);
            for lane in lanes_of(context.mask) {
                std::ptr::with_exposed_provenance_mut::<u32>(host[lane] as usize).write(words[lane]);
            }
            return Ok(());
        }
        let size = u64::from(fragment.bits / 8);
        let mut packed = [0u32; 32];
        for element in 0..fragment.each {
            let places = std::array::from_fn(|lane| {
                let (outer, inner) = lanes_elements(lane, element);
                address(lane, inner, outer)
            });
            if fragment.bits >= 32 {
                move_words(context, ins, fragment, &registers[element as usize..][..1], places, size)?;
                continue;
            }
            // Bytes, which only A and B have: they are loaded.
            let host = reach(context, ins, fragment, places, 1)?;
            for lane in 0..32 {
                let byte = std::ptr::with_exposed_provenance::<u8>(host[lane] as usize).read();
                packed[lane] |= u32::from(byte) << (8 * element);
            }
        }
        if fragment.bits < 32 {
            context.set_row(registers[0], packed);
        }
    }
    Ok(())
}

/// Moves whole registers, which lie one behind the other in memory.
unsafe fn move_words(
    context: &mut Context,
    ins: &Ins,
    fragment: &Fragment,
    registers: &[u32],
    places: [u64; 32],
    bytes: u64,
) -> Result<(), Flow> {
    let host = reach(context, ins, fragment, places, bytes)?;
    for (number, &register) in registers.iter().enumerate() {
        // SAFETY: `reach` vouches for the bytes; the decoder chose the rows.
        unsafe {
            if fragment.bits == 64 {
                move_row::<u64>(context, fragment.access, register, &host, number);
            } else {
                move_row::<u32>(context, fragment.access, register, &host, number);
            }
        }
    }
    Ok(())
}

unsafe fn move_row<W: crate::warp::Word>(
    context: &mut Context,
    access: Access,
    register: u32,
    host: &[u64; 32],
    number: usize,
) {
    let word =
        |lane: usize| std::ptr::with_exposed_provenance_mut::<W>(host[lane] as usize).wrapping_add(number);
    // SAFETY: the caller's promise.
    unsafe {
        if access == Access::Load {
            context.set_row::<W>(register, std::array::from_fn(|lane| word(lane).read()));
        } else {
            let values = context.row::<W>(register);
            for lane in lanes_of(context.mask) {
                word(lane).write(values[lane]);
            }
        }
    }
}

/// Checks and counts an access of each lane, and finds its bytes on the host.
fn reach(
    context: &mut Context,
    ins: &Ins,
    fragment: &Fragment,
    mut places: [u64; 32],
    bytes: u64,
) -> Result<[u64; 32], Flow> {
    memory::repeat_active(&mut places, context.mask);
    let shared = match fragment.space {
        Target::Shared => true,
        Target::Global => false,
        _ => {
            let first = window(places[0]);
            if places.iter().any(|&place| window(place) != first)
                || !matches!(first, Window::Shared | Window::Global)
            {
                return Err(context.unsupported("a matrix in local memory, or in several spaces".into()));
            }
            places.iter_mut().for_each(|place| {
                if first == Window::Shared {
                    *place &= WINDOW - 1;
                }
            });
            first == Window::Shared
        }
    };
    if shared {
        memory::shared(context, ins, &mut places, bytes, fragment.access, false)?;
    } else {
        memory::global(context, fragment.cache, &mut places, bytes, fragment.access)?;
    }
    Ok(places)
}
