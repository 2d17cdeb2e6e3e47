//! `cvt`: between integers, floats, and both.

use super::{
    float::{canonical, flush, saturate, saturate_f64},
    has, is_type, packed, round,
    soft::{self, BF16, F16, F32, F64, Rounding},
};
use crate::{
    module::{Class, Decoded, Decoder},
    ptx::ast::{Instruction, Operand},
};

/// What a type is, for conversions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Type {
    /// Bits, and whether it is signed.
    Integer(u32, bool),
    Half,
    Bfloat,
    Single,
    Double,
}

impl Type {
    fn of(word: &str) -> Option<Type> {
        Some(match word {
            "u8" | "b8" => Type::Integer(8, false),
            "s8" => Type::Integer(8, true),
            "u16" | "b16" => Type::Integer(16, false),
            "s16" => Type::Integer(16, true),
            "u32" | "b32" => Type::Integer(32, false),
            "s32" => Type::Integer(32, true),
            "u64" | "b64" => Type::Integer(64, false),
            "s64" => Type::Integer(64, true),
            "f16" => Type::Half,
            "bf16" => Type::Bfloat,
            "f32" => Type::Single,
            "f64" => Type::Double,
            _ => return None,
        })
    }
}

/// How a conversion is done, packed into an instruction's `x`.
///
/// Bits 0-2: rounding. 3: subnormals become zero. 4: saturate. 5: round to an integer. 6: negative numbers become zero.
/// 7: infinite results become the greatest finite number.
/// 8-15: bits of the integer that is read, 16: it is signed. 24-31: bits of the integer that is written, 32: it is signed.
/// 33: the source is a double.
type Options = u64;

/// Decodes `cvt`.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let (d, i) = (decoder, instruction);
    if has(i, "pack") {
        return packed::pack_integers(d, i);
    }
    let types: Vec<&str> = i.modifiers.iter().map(String::as_str).filter(|word| is_type(word)).collect();
    let [to, from] = types[..] else { return Err(d.not_implemented()) };
    // Random bits for the rounding are of GPUs after these.
    if has(i, "rs") {
        return Err(d.not_implemented());
    }
    if let ("f16x2" | "bf16x2", "f32") = (to, from) {
        return super::half::pack(d, i, to, options(i));
    }
    if let Some(decoded) = packed::decode(d, i, to, from, options(i)) {
        return decoded;
    }
    let (Some(to), Some(from)) = (Type::of(to), Type::of(from)) else {
        return Err(d.not_implemented());
    };
    let x = options(i);
    match (to, from) {
        (Type::Integer(to_bits, to_signed), Type::Integer(from_bits, from_signed)) => {
            let x = x
                | u64::from(from_bits) << 8
                | u64::from(from_signed) << 16
                | u64::from(to_bits) << 24
                | u64::from(to_signed) << 32;
            integers(d, i, x)
        }
        (Type::Integer(bits, signed), _) => {
            let double = u64::from(from == Type::Double);
            let x = x | u64::from(bits) << 24 | u64::from(signed) << 32 | double << 33;
            to_integer(d, i, from, bits, signed, x)
        }
        (_, Type::Integer(bits, signed)) => {
            let x = x | u64::from(bits) << 8 | u64::from(signed) << 16;
            from_integer(d, i, to, bits, signed, x)
        }
        _ => floats(d, i, to, from, x),
    }
}

fn options(i: &Instruction) -> Options {
    let rounding = i.modifiers.iter().find_map(|word| {
        Some(match word.as_str() {
            "rn" => 0,
            "rz" => 1,
            "rm" => 2,
            "rp" => 3,
            "rna" => 4,
            "rni" => 32,
            "rzi" => 33,
            "rmi" => 34,
            "rpi" => 35,
            _ => return None,
        })
    });
    rounding.unwrap_or(0)
        | u64::from(has(i, "ftz")) << 3
        | u64::from(has(i, "sat")) << 4
        | u64::from(has(i, "relu")) << 6
        | u64::from(has(i, "satfinite")) << 7
}

/// A register of 64 bits is on this side of the conversion.
fn is_long(d: &mut Decoder<'_>, operand: &Operand, bits: u32) -> bool {
    d.register(operand).map_or(bits == 64, |register| register.class == Class::Long)
}

fn integers(d: &mut Decoder<'_>, i: &Instruction, x: Options) -> Decoded {
    let [to, from] = d.operands(i)?;
    let (from_bits, to_bits) = ((x >> 8 & 255) as u32, (x >> 24 & 255) as u32);
    let long = (is_long(d, to, to_bits), is_long(d, from, from_bits));
    let from_signed = x >> 16 & 1 != 0;
    // What is above the result in its register is zero, also for a signed one if the register ends there.
    let class = d.register(to).map_or(Class::Word(32), |register| register.class);
    let narrow = x >> 32 & 1 == 0 || class == Class::Word(to_bits as u8);
    if x & 16 == 0 {
        // The frequent ones.
        match (long, from_bits, to_bits, from_signed) {
            ((true, false), 32, 64, false) => return d.unary(i, |a: u32| u64::from(a)),
            ((true, false), 32, 64, true) => return d.unary(i, |a: i32| i64::from(a)),
            ((false, true), 64, 32, _) => return d.unary(i, |a: u64| a as u32),
            ((false, false), 16, 32, false) => return d.unary(i, |a: u16| u32::from(a)),
            ((false, false), 16, 32, true) => return d.unary(i, |a: i16| i32::from(a)),
            ((false, false), 8, 32, false) => return d.rare().unary(i, |a: u8| u32::from(a)),
            ((false, false), 8, 32, true) => return d.rare().unary(i, |a: i8| i32::from(a)),
            ((false, false), 32, 16, _) if narrow => return d.unary(i, |a: u16| a),
            ((false, false), 32, 8, _) if narrow => return d.rare().unary(i, |a: u8| a),
            _ => {}
        }
    }
    match long {
        (false, false) => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| between(a.into(), x) as u32),
        (false, true) => d.with_constant(i, x, |a: u64, _: u32, _: u32, x| between(a, x) as u32),
        (true, false) => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| between(a.into(), x)),
        (true, true) => d.with_constant(i, x, |a: u64, _: u32, _: u32, x| between(a, x)),
    }
}

/// An integer of the source type, in the register of the destination's.
fn between(a: u64, x: Options) -> u64 {
    let (from_bits, from_signed) = ((x >> 8 & 255) as u32, x >> 16 & 1 != 0);
    let (to_bits, to_signed) = ((x >> 24 & 255) as u32, x >> 32 & 1 != 0);
    let shift = 64 - from_bits;
    let value: i128 =
        if from_signed { ((a << shift) as i64 >> shift).into() } else { (a << shift >> shift).into() };
    let value = if x & 16 != 0 {
        let (least, greatest) = if to_signed {
            (-(1i128 << (to_bits - 1)), (1 << (to_bits - 1)) - 1)
        } else {
            (0, (1i128 << to_bits) - 1)
        };
        value.clamp(least, greatest)
    } else {
        value
    };
    // What a wider register holds above the destination's bits is its extension.
    let shift = 64 - to_bits;
    let value = (value as u64) << shift;
    if to_signed { (value as i64 >> shift) as u64 } else { value >> shift }
}

fn to_integer(
    d: &mut Decoder<'_>,
    i: &Instruction,
    from: Type,
    bits: u32,
    signed: bool,
    x: Options,
) -> Decoded {
    let [to, _] = d.operands(i)?;
    let long = is_long(d, to, bits);
    match (from, bits, signed, x & 0x3F) {
        (Type::Single, 32, true, 33) if !long => return d.unary(i, |a: f32| a as i32),
        (Type::Single, 32, false, 33) if !long => return d.unary(i, |a: f32| a as u32),
        (Type::Single, 32, true, 32) if !long => {
            return d.unary(i, |a: f32| a.round_ties_even() as i32);
        }
        _ => {}
    }
    match (from, long) {
        (Type::Single, false) => {
            d.with_constant(i, x, |a: f32, _: u32, _: u32, x| integer(single(a, x), x) as u32)
        }
        (Type::Single, true) => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| integer(single(a, x), x)),
        (Type::Double, false) => d.with_constant(i, x, |a: f64, _: u32, _: u32, x| integer(a, x) as u32),
        (Type::Double, true) => d.with_constant(i, x, |a: f64, _: u32, _: u32, x| integer(a, x)),
        (Type::Half, false) => {
            d.with_constant(i, x, |a: u16, _: u32, _: u32, x| integer(soft::from_half(a).into(), x) as u32)
        }
        (Type::Half, true) => {
            d.with_constant(i, x, |a: u16, _: u32, _: u32, x| integer(soft::from_half(a).into(), x))
        }
        (Type::Bfloat, false) => {
            d.with_constant(i, x, |a: u16, _: u32, _: u32, x| integer(soft::from_bfloat(a).into(), x) as u32)
        }
        (Type::Bfloat, true) => {
            d.with_constant(i, x, |a: u16, _: u32, _: u32, x| integer(soft::from_bfloat(a).into(), x))
        }
        _ => Err(d.not_implemented()),
    }
}

#[inline(always)]
fn single(a: f32, x: Options) -> f64 {
    if x & 8 != 0 { flush(canonical(a)).into() } else { a.into() }
}

/// Rounds, and clamps to the destination's range.
fn integer(a: f64, x: Options) -> u64 {
    let (bits, signed) = ((x >> 24 & 255) as u32, x >> 32 & 1 != 0);
    if a.is_nan() {
        // Zero, unless one side has 64 bits: then only the highest bit.
        let wide = bits == 64 || x >> 33 & 1 != 0;
        let highest = 1u64 << (bits - 1);
        return if !wide {
            0
        } else if signed {
            extend(highest, bits)
        } else {
            highest
        };
    }
    let a = whole(a, x);
    if signed {
        let (least, greatest) = (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1);
        (a as i128).clamp(least, greatest) as u64
    } else {
        (a as u128).min((1u128 << bits) - 1) as u64
    }
}

fn extend(a: u64, bits: u32) -> u64 {
    ((a << (64 - bits)) as i64 >> (64 - bits)) as u64
}

#[inline(always)]
fn whole(a: f64, x: Options) -> f64 {
    match x & 7 {
        0 => a.round_ties_even(),
        1 => a.trunc(),
        2 => a.floor(),
        _ => a.ceil(),
    }
}

fn from_integer(
    d: &mut Decoder<'_>,
    i: &Instruction,
    to: Type,
    bits: u32,
    signed: bool,
    x: Options,
) -> Decoded {
    let [_, from] = d.operands(i)?;
    let long = is_long(d, from, bits);
    match (to, bits, signed, x & 0x7F) {
        (Type::Single, 32, true, 0) if !long => return d.unary(i, |a: i32| a as f32),
        (Type::Single, 32, false, 0) if !long => return d.unary(i, |a: u32| a as f32),
        (Type::Single, 64, true, 0) if long => return d.unary(i, |a: i64| a as f32),
        (Type::Single, 64, false, 0) if long => return d.rare().unary(i, |a: u64| a as f32),
        (Type::Double, 32, true, 0) if !long => return d.unary(i, |a: i32| f64::from(a)),
        (Type::Double, 32, false, 0) if !long => return d.unary(i, |a: u32| f64::from(a)),
        (Type::Double, 64, true, 0) if long => return d.unary(i, |a: i64| a as f64),
        (Type::Double, 64, false, 0) if long => return d.rare().unary(i, |a: u64| a as f64),
        _ => {}
    }
    match (to, long) {
        (Type::Single, false) => {
            d.with_constant(i, x, |a: u32, _: u32, _: u32, x| f32::from_bits(number(a.into(), x, F32) as u32))
        }
        (Type::Single, true) => {
            d.with_constant(i, x, |a: u64, _: u32, _: u32, x| f32::from_bits(number(a, x, F32) as u32))
        }
        (Type::Double, false) => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| number(a.into(), x, F64)),
        (Type::Double, true) => d.with_constant(i, x, |a: u64, _: u32, _: u32, x| number(a, x, F64)),
        (Type::Half, false) => {
            d.with_constant(i, x, |a: u32, _: u32, _: u32, x| number(a.into(), x, F16) as u16)
        }
        (Type::Half, true) => d.with_constant(i, x, |a: u64, _: u32, _: u32, x| number(a, x, F16) as u16),
        (Type::Bfloat, false) => {
            d.with_constant(i, x, |a: u32, _: u32, _: u32, x| number(a.into(), x, BF16) as u16)
        }
        (Type::Bfloat, true) => d.with_constant(i, x, |a: u64, _: u32, _: u32, x| number(a, x, BF16) as u16),
        (Type::Integer(..), _) => Err(d.not_implemented()),
    }
}

fn number(a: u64, x: Options, format: soft::Format) -> u64 {
    let (bits, signed) = ((x >> 8 & 255) as u32, x >> 16 & 1 != 0);
    let shift = 64 - bits;
    let (negative, magnitude) = if signed {
        let value = (a << shift) as i64 >> shift;
        (value < 0, value.unsigned_abs())
    } else {
        (false, a << shift >> shift)
    };
    if x & 16 != 0 {
        // Saturated to between 0 and 1.
        return soft::from_integer(
            false,
            if negative { 0 } else { magnitude.min(1) },
            Rounding::Nearest,
            format,
        );
    }
    soft::from_integer(negative, magnitude, Rounding::from_bits(x), format)
}

fn floats(d: &mut Decoder<'_>, i: &Instruction, to: Type, from: Type, x: Options) -> Decoded {
    // Here a GPU keeps subnormal operands.
    let x = if (to, from) == (Type::Half, Type::Single) { x & !8 } else { x };
    match (to, from, x) {
        // Without rounding there is nothing to do, and nothing is done.
        (Type::Single, Type::Single, 0) => return d.unary(i, |a: u32| a),
        (Type::Double, Type::Double, 0) => return d.rare().unary(i, |a: u64| a),
        (Type::Double, Type::Single, 0) => return d.unary(i, |a: f32| f64::from(a)),
        (Type::Single, Type::Double, 0) => {
            return d.unary(i, |a: f64| {
                let nan = nan(a.to_bits(), 23, 8) as u32;
                f32::from_bits(if a.is_nan() { nan } else { (a as f32).to_bits() })
            });
        }
        (Type::Single, Type::Half, 0) => return d.unary(i, |a: u16| canonical(soft::from_half(a))),
        (Type::Single, Type::Bfloat, 0) => return d.unary(i, |a: u16| u32::from(a) << 16),
        (Type::Half, Type::Single, 0) => return d.unary(i, round::half_from_single),
        (Type::Bfloat, Type::Single, 0) => return d.unary(i, round::bfloat_from_single),
        _ => {}
    }
    macro_rules! from {
        ($to:ident, $fraction:expr, $exponent:expr, |$bits:ident| $number:expr) => {
            match from {
                // NaN keeps what fits of it.
                Type::Double if x & 16 == 0 => d.with_constant(i, x, |a: f64, _: u32, _: u32, x| {
                    let $bits = nan(a.to_bits(), $fraction, $exponent);
                    if a.is_nan() { $number } else { $to(a, x) }
                }),
                Type::Single => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| $to(single(a, x), x)),
                Type::Double => d.with_constant(i, x, |a: f64, _: u32, _: u32, x| $to(a, x)),
                Type::Half => {
                    d.with_constant(i, x, |a: u16, _: u32, _: u32, x| $to(soft::from_half(a).into(), x))
                }
                Type::Bfloat => {
                    d.with_constant(i, x, |a: u16, _: u32, _: u32, x| $to(soft::from_bfloat(a).into(), x))
                }
                Type::Integer(..) => Err(d.not_implemented()),
            }
        };
    }
    match to {
        Type::Single => from!(to_single, 23, 8, |bits| f32::from_bits(bits as u32)),
        Type::Double => from!(to_double, 52, 11, |bits| f64::from_bits(bits)),
        Type::Half => from!(to_half, 10, 5, |bits| bits as u16),
        Type::Bfloat => from!(to_bfloat, 7, 8, |bits| bits as u16),
        Type::Integer(..) => Err(d.not_implemented()),
    }
}

/// A NaN of double precision in a narrower format: its sign and its upper bits, made quiet.
#[inline(always)]
fn nan(bits: u64, fraction: u32, exponent: u32) -> u64 {
    let sign = bits >> 63 << (fraction + exponent);
    let payload = (bits & ((1 << 52) - 1)) >> (52 - fraction);
    sign | ((1 << exponent) - 1) << fraction | 1 << (fraction - 1) | payload
}

#[inline(always)]
fn before(a: f64, x: Options) -> f64 {
    let a = if x & 32 != 0 { whole(a, x) } else { a };
    let a = if x & 16 != 0 { saturate_f64(a) } else { a };
    if x & 64 != 0 && a <= 0.0 { 0.0 } else { a }
}

#[inline(always)]
fn to_single(a: f64, x: Options) -> f32 {
    let a = before(a, x);
    let rounded = if x & 32 != 0 || x & 7 == 0 {
        a as f32
    } else {
        f32::from_bits(soft::convert(a, Rounding::from_bits(x), F32) as u32)
    };
    let rounded = if x & 8 != 0 { flush(rounded) } else { rounded };
    if x & 16 != 0 { saturate(rounded) } else { canonical(rounded) }
}

#[inline(always)]
fn to_double(a: f64, x: Options) -> f64 {
    before(a, x)
}

pub(super) fn to_half(a: f64, x: Options) -> u16 {
    let a = before(a, x);
    let rounded = match nearest(x) {
        true => round::half_from_double(a),
        false => soft::convert(a, Rounding::from_bits(x), F16) as u16,
    };
    finite(rounded, 0x7BFF, x)
}

pub(super) fn to_bfloat(a: f64, x: Options) -> u16 {
    let a = before(a, x);
    let rounded = match nearest(x) {
        true => round::bfloat_from_double(a),
        false => soft::convert(a, Rounding::from_bits(x), BF16) as u16,
    };
    finite(rounded, 0x7F7F, x)
}

/// The conversion rounds to nearest; integers need no rounding.
fn nearest(x: Options) -> bool {
    x & 32 != 0 || x & 7 == 0
}

/// With `satfinite`, the greatest finite number instead of infinity.
fn finite(bits: u16, greatest: u16, x: Options) -> u16 {
    if x & 128 != 0 && bits & 0x7FFF == greatest + 1 { (bits & 0x8000) | greatest } else { bits }
}
