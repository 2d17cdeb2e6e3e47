//! `cvt` to and from pairs of 8-bit floats, to `tf32`, and `cvt.pack` of integers.

use super::{convert::to_half, half::pair, has, soft::from_half};
use crate::{
    module::{Decoded, Decoder, program::Ins},
    ptx::ast::Instruction,
};

/// Negative results become zero.
const RELU: u64 = 1 << 6;
/// Infinite results become the greatest finite number.
const SATFINITE: u64 = 1 << 7;
/// To nearest, ties away from zero; or towards zero.
const AWAY: u64 = 4;
const ZERO: u64 = 1;

/// Decodes a conversion of these types, if the types are these.
pub(super) fn decode(d: &mut Decoder<'_>, i: &Instruction, to: &str, from: &str, x: u64) -> Option<Decoded> {
    Some(match (to, from) {
        ("tf32", "f32") => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| tensor_float(a, x)),
        ("e4m3x2", "f32") => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u16::from(E4M3.write(a.into(), x)) << 8 | u16::from(E4M3.write(b.into(), x))
        }),
        ("e5m2x2", "f32") => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u16::from(E5M2.write(a.into(), x)) << 8 | u16::from(E5M2.write(b.into(), x))
        }),
        ("e4m3x2", "f16x2") => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| halves(a, x, E4M3)),
        ("e5m2x2", "f16x2") => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| halves(a, x, E5M2)),
        ("f16x2", "e4m3x2") => d.with_constant(i, x, |a: u16, _: u32, _: u32, x| E4M3.widen(a, x)),
        ("f16x2", "e5m2x2") => d.with_constant(i, x, |a: u16, _: u32, _: u32, x| E5M2.widen(a, x)),
        _ => return None,
    })
}

/// The 19 upper bits of single precision.
fn tensor_float(a: u32, x: u64) -> u32 {
    let magnitude = a & 0x7FFF_FFFF;
    let is_nan = magnitude > 0x7F80_0000;
    if is_nan && x & 7 != AWAY {
        return 0x7FFF_E000;
    }
    if x & RELU != 0 && a >> 31 != 0 {
        return 0;
    }
    let rounded = match x & 7 {
        _ if is_nan => magnitude,
        ZERO => magnitude,
        AWAY => magnitude + 0x1000,
        _ => magnitude + 0xFFF + (magnitude >> 13 & 1),
    };
    let rounded = rounded & !0x1FFF;
    // Infinity and NaN too become the number before them.
    let rounded = if x & SATFINITE != 0 && rounded >= 0x7F80_0000 { rounded - 0x2000 } else { rounded };
    rounded | (a & 0x8000_0000)
}

fn halves(a: u32, x: u64, format: Eight) -> u16 {
    let one = |bits: u16| u16::from(format.write(from_half(bits).into(), x));
    one((a >> 16) as u16) << 8 | one(a as u16)
}

/// A float of 8 bits.
#[derive(Clone, Copy)]
struct Eight {
    fraction: i32,
    bias: i32,
    /// The greatest finite number, and its bits.
    greatest: f64,
    greatest_bits: u8,
    infinity: bool,
}

/// Without infinities: only all bits are NaN.
const E4M3: Eight = Eight { fraction: 3, bias: 7, greatest: 448.0, greatest_bits: 0x7E, infinity: false };
const E5M2: Eight = Eight { fraction: 2, bias: 15, greatest: 57344.0, greatest_bits: 0x7B, infinity: true };

impl Eight {
    /// The nearest number; those out of range become the greatest one.
    fn write(self, value: f64, x: u64) -> u8 {
        if value.is_nan() {
            return 0x7F;
        }
        if x & RELU != 0 && value.is_sign_negative() {
            return 0;
        }
        let sign = u8::from(value.is_sign_negative()) << 7;
        let magnitude = value.abs();
        if magnitude >= self.greatest {
            return sign | self.greatest_bits;
        }
        let exponent = (magnitude.to_bits() >> 52) as i32 - 1023;
        let exponent = exponent.max(1 - self.bias);
        // Whole units in the last place: the first bit of a normal number adds one to the field of its exponent.
        let units = (magnitude * 2f64.powi(self.fraction - exponent)).round_ties_even() as u8;
        let field = ((exponent + self.bias - 1) as u8) << self.fraction;
        sign | (units + field).min(self.greatest_bits)
    }

    /// Both numbers, as halves.
    fn widen(self, a: u16, x: u64) -> u32 {
        pair(u32::from(a & 0xFF) | u32::from(a >> 8) << 16, 0, 0, |bits, _, _| {
            to_half(self.read(bits as u8), x & RELU)
        })
    }

    fn read(self, bits: u8) -> f64 {
        let magnitude = bits & 0x7F;
        let value = if magnitude > self.greatest_bits {
            if self.infinity && magnitude == self.greatest_bits + 1 { f64::INFINITY } else { f64::NAN }
        } else {
            let field = i32::from(magnitude >> self.fraction);
            let fraction = f64::from(magnitude & ((1 << self.fraction) - 1)) / 2f64.powi(self.fraction);
            if field == 0 {
                fraction * 2f64.powi(1 - self.bias)
            } else {
                (1.0 + fraction) * 2f64.powi(field - self.bias)
            }
        };
        if bits & 0x80 != 0 { -value } else { value }
    }
}

/// `cvt.pack.sat.u8.s32.b32 d, a, b, c`: both saturated, `a` above `b`, and what fits of `c` above them.
pub(super) fn pack_integers(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (bits, signed) = match i.modifiers.get(2).map(String::as_str) {
        Some("u16") => (16, false),
        Some("s16") => (16, true),
        Some("u8") => (8, false),
        Some("s8") => (8, true),
        Some("u4") => (4, false),
        Some("s4") => (4, true),
        Some("u2") => (2, false),
        Some("s2") => (2, true),
        _ => return Err(d.not_implemented()),
    };
    if !has(i, "sat") || i.operands.len() != if bits == 16 { 3 } else { 4 } {
        return Err(d.wrong_count());
    }
    let x = bits | u64::from(signed) << 8;
    let ins: Ins = d.with_constant(i, x, |a: i32, b: i32, c: u32, x| {
        let bits = (x & 255) as u32;
        let (least, greatest) =
            if x >> 8 != 0 { (-(1 << (bits - 1)), (1 << (bits - 1)) - 1) } else { (0, (1 << bits) - 1) };
        let kept = |value: i32| value.clamp(least, greatest) as u32 & ((1 << bits) - 1);
        let above = if bits == 16 { 0 } else { c << (2 * bits) };
        above | kept(a) << bits | kept(b)
    })?;
    Ok(ins)
}
