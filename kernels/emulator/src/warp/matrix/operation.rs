//! Decoding `mma` and `wmma.mma` into tiles.

use super::{
    accumulate::Accumulation,
    destinations,
    multiply::{Float, Format, Integer, Multiplication, Multiply, Numbers, Sum, Tile},
    sources,
};
use crate::{
    module::{Decoded, Decoder, program::Ins},
    ptx::ast::Instruction,
    warp::{has, step},
};

/// `m16n8k16`
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub(super) m: u32,
    pub(super) n: u32,
    pub(super) k: u32,
}

/// The shape among the modifiers of an instruction.
pub(super) fn shape(decoder: &Decoder<'_>, instruction: &Instruction) -> Decoded<Shape> {
    let parse = |word: &String| {
        let (m, rest) = word.strip_prefix('m')?.split_once('n')?;
        let (n, k) = rest.split_once('k')?;
        Some(Shape { m: m.parse().ok()?, n: n.parse().ok()?, k: k.parse().ok()? })
    };
    instruction.modifiers.iter().find_map(parse).ok_or_else(|| decoder.not_implemented())
}

/// The types among the modifiers, in order.
pub(super) fn types(instruction: &Instruction) -> Vec<&str> {
    let words = instruction.modifiers.iter().map(String::as_str);
    words.filter(|word| bits(word).is_some()).collect()
}

/// Bits of an element of a type.
pub(super) fn bits(ty: &str) -> Option<u32> {
    Some(match ty {
        "b1" => 1,
        "s4" | "u4" => 4,
        "s8" | "u8" | "e4m3" | "e5m2" => 8,
        "f16" | "bf16" => 16,
        "tf32" | "f32" | "s32" => 32,
        "f64" => 64,
        _ => return None,
    })
}

fn format(ty: &str) -> Option<Format> {
    Some(match ty {
        "f16" => Format::Half,
        "bf16" => Format::Bfloat,
        "tf32" => Format::Tf32,
        "e4m3" => Format::E4m3,
        "e5m2" => Format::E5m2,
        _ => return None,
    })
}

/// What an operation on these types does.
fn numbers(
    d: &Decoder<'_>,
    i: &Instruction,
    k: u32,
    [d_type, a_type, b_type, c_type]: [&str; 4],
) -> Decoded<Numbers> {
    let satfinite = has(i, "satfinite");
    if let (Some(a), Some(b)) = (format(a_type), format(b_type)) {
        let mixed = a != b && (a.bits() != 8 || b.bits() != 8);
        let half = |ty: &str| match ty {
            "f16" => Some(true),
            "f32" => Some(false),
            _ => None,
        };
        let (Some(d_is_half), Some(c_is_half)) = (half(d_type), half(c_type)) else {
            return Err(d.not_implemented());
        };
        let only_single = matches!(a, Format::Bfloat | Format::Tf32) && (d_is_half || c_is_half);
        // Saturation of `f16` results was withdrawn from PTX.
        if mixed || only_single || satfinite {
            return Err(d.not_implemented());
        }
        // sm_90 has no tensor cores for 8-bit numbers in `mma`: they become `f16`.
        let apart = a.bits() == 8 && d.capability() >= (9, 0);
        let mut accumulation = Accumulation::of(d.capability(), if apart { 16 } else { a.bits() });
        if apart {
            accumulation.group = accumulation.group.min(k as usize / 2);
        }
        // Only where both are `f16` are the sums.
        let accumulator = if d_is_half && c_is_half { Sum::Half } else { Sum::Single };
        return Ok(Numbers::Float(Float { a, b, accumulation, accumulator, c_is_half, d_is_half, apart }));
    }
    match (a_type, b_type, d_type, c_type) {
        ("f64", "f64", "f64", "f64") => Ok(Numbers::Double),
        ("b1", "b1", "s32", "s32") if has(i, "popc") && (has(i, "xor") || has(i, "and")) => {
            Ok(Numbers::Bits { xor: has(i, "xor") })
        }
        (a @ ("s8" | "u8"), b @ ("s8" | "u8"), "s32", "s32")
        | (a @ ("s4" | "u4"), b @ ("s4" | "u4"), "s32", "s32") => {
            let integer = |ty: &str| Integer { bits: bits(ty).unwrap_or(8), signed: ty.starts_with('s') };
            Ok(Numbers::Integer { a: integer(a), b: integer(b), saturate: satfinite })
        }
        _ => Err(d.not_implemented()),
    }
}

/// Decodes `mma`.
pub(super) fn decode_mma(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let shape = shape(d, i)?;
    let [d_type, a_type, b_type, c_type] = types(i)[..] else { return Err(d.not_implemented()) };
    let layouts = i.modifiers.iter().filter(|word| matches!(word.as_str(), "row" | "col"));
    let special = i.modifiers.iter().any(|word| word.contains("::"));
    if special || !layouts.eq(["row", "col"].iter()) {
        return Err(d.not_implemented());
    }
    let width = bits(a_type).unwrap_or(0);
    let known = match (shape.m, shape.n, width) {
        (16, 8, 64) => [4, 8, 16].contains(&shape.k),
        (8, 8, 64) => shape.k == 4,
        // One register of each lane holds a part of k for 8 rows of A; two parts at most.
        (16, 8, 1..=32) => [128, 256].contains(&(shape.k * width)),
        (8, 8, 1..=8) => shape.k * width == 128,
        _ => false,
    };
    if !known {
        return Err(d.not_implemented());
    }
    let numbers = numbers(d, i, shape.k, [d_type, a_type, b_type, c_type])?;
    let long = width == 64;
    let register = if long { 64 } else { 32 };
    let count = |elements: u32, bits: u32| (elements * bits / register / 32) as usize;
    let [d_operand, a, b, c] = d.operands(i)?;
    let tile = Tile {
        a: sources(d, a, count(shape.m * shape.k, width), long)?,
        b: sources(d, b, count(shape.n * shape.k, width), long)?,
        c: sources(d, c, count(shape.m * shape.n, bits(c_type).unwrap_or(32)), long)?,
        d: destinations(d, d_operand, count(shape.m * shape.n, bits(d_type).unwrap_or(32)), long)?,
    };
    finish(d, shape.m, shape.k, numbers, vec![tile])
}

fn finish(d: &mut Decoder<'_>, rows: u32, k: u32, numbers: Numbers, tiles: Vec<Tile>) -> Decoded {
    // Floating-point tiles took 1.7 times as long with vectors of 16 as with the 8 columns that there are.
    let level = if matches!(numbers, Numbers::Float(_)) { d.level.narrow() } else { d.level };
    let operation = Multiplication { rows: rows as usize, k: k as usize, numbers, tiles };
    let x = d.keep(operation);
    Ok(Ins { x, ..d.plain(step::<Multiply>(level)) })
}

/// Decodes `wmma.mma`: the tiles of a matrix are side by side, or one above the other.
pub(super) fn decode_wmma(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let shape = shape(d, i)?;
    let types = match types(i)[..] {
        // The old form for `f16` only names the types of D and C.
        [d_type, c_type] => [d_type, "f16", "f16", c_type],
        [d_type, a_type, b_type, c_type] => [d_type, a_type, b_type, c_type],
        _ => return Err(d.not_implemented()),
    };
    let [d_type, a_type, b_type, c_type] = types;
    if !is_wmma(shape, a_type)
        || a_type == "f16" && !matches!((d_type, c_type), ("f16" | "f32", "f16" | "f32"))
    {
        return Err(d.not_implemented());
    }
    let long = a_type == "f64";
    let mut numbers = numbers(d, i, shape.k, types)?;
    if let Numbers::Float(Float { a: Format::Tf32, accumulation, .. }) = &mut numbers {
        // It becomes two `mma` of half the k.
        accumulation.group = 4;
    }
    let [d_operand, a, b, c] = d.operands(i)?;
    let a = sources(d, a, fragment_registers(shape, 'a', a_type), long)?;
    let b = sources(d, b, fragment_registers(shape, 'b', b_type), long)?;
    let c = sources(d, c, fragment_registers(shape, 'c', c_type), long)?;
    let d_rows = destinations(d, d_operand, fragment_registers(shape, 'c', d_type), long)?;
    if shape.m == 8 && shape.n == 8 {
        return finish(d, 8, shape.k, numbers, vec![Tile { a, b, c, d: d_rows }]);
    }
    // The larger matrix of 8 x 32 x 16 is B: the product is transposed.
    let (a, b) = if shape.n == 32 { (b, a) } else { (a, b) };
    let width = bits(a_type).unwrap_or(16);
    let a_each = (16 * shape.k * width / 1024) as usize;
    let b_each = (8 * shape.k * width / 1024) as usize;
    let tile = |number: usize| {
        let part = |rows: &[u32]| rows[rows.len() / 2 * number..][..rows.len() / 2].to_vec();
        let (a_start, b_start) = if shape.m == 16 { (0, number * b_each) } else { (number * a_each, 0) };
        Tile {
            a: a[a_start..][..a_each].to_vec(),
            b: b[b_start..][..b_each].to_vec(),
            c: part(&c),
            d: part(&d_rows),
        }
    };
    finish(d, 16, shape.k, numbers, vec![tile(0), tile(1)])
}

/// `wmma` has this shape for A and B of this type.
pub(super) fn is_wmma(shape: Shape, ty: &str) -> bool {
    match (shape.m, shape.n, shape.k) {
        (16, 16, 16) | (32, 8, 16) | (8, 32, 16) => matches!(ty, "f16" | "bf16" | "s8" | "u8"),
        (16, 16, 8) => ty == "tf32",
        (8, 8, 4) => ty == "f64",
        (8, 8, 32) => matches!(ty, "s4" | "u4"),
        (8, 8, 128) => ty == "b1",
        _ => false,
    }
}

/// Registers of a fragment of `wmma`: `a`, `b`, or `c` for the accumulators.
pub(super) fn fragment_registers(shape: Shape, matrix: char, ty: &str) -> usize {
    let elements = match matrix {
        // Whatever they need.
        'a' | 'b' if ty == "f16" => return 8,
        'a' => shape.m * shape.k,
        'b' => shape.n * shape.k,
        _ => shape.m * shape.n,
    };
    let bits = bits(ty).unwrap_or(32);
    (elements * bits / bits.max(32) / 32) as usize
}
