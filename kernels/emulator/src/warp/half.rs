//! Half precision: `f16`, `bf16` and pairs of them.
//!
//! A double holds every product exactly and every sum up to its odd rounding, so each result is rounded once.

use super::{
    convert::{to_bfloat, to_half},
    float::odd_sum,
    has, last_type,
    soft::{from_bfloat, from_half},
};
use crate::{
    module::{Decoded, Decoder},
    ptx::ast::Instruction,
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let (d, i) = (decoder, instruction);
    // Bit 3: subnormals become zero; bit 4: saturate; bit 6: negative results become zero; bit 7: NaN wins.
    let x = u64::from(has(i, "ftz")) << 3
        | u64::from(has(i, "sat")) << 4
        | u64::from(has(i, "relu")) << 6
        | u64::from(has(i, "NaN")) << 7;
    macro_rules! each {
        ($f:expr) => {
            match last_type(i) {
                "f16" => d.with_constant(i, x, |a: u16, b: u16, c: u16, x| one::<Half>(a, b, c, x, $f)),
                "bf16" => d.with_constant(i, x, |a: u16, b: u16, c: u16, x| one::<Bfloat>(a, b, c, x, $f)),
                "f16x2" => d.with_constant(i, x, |a: u32, b: u32, c: u32, x| two::<Half>(a, b, c, x, $f)),
                "bf16x2" => d.with_constant(i, x, |a: u32, b: u32, c: u32, x| two::<Bfloat>(a, b, c, x, $f)),
                _ => Err(d.not_implemented()),
            }
        };
    }
    match i.opcode.as_str() {
        "add" => each!(|a, b, _, _| a + b),
        "sub" => each!(|a, b, _, _| a - b),
        "mul" => each!(|a, b, _, _| a * b),
        "fma" => each!(|a, b, c, _| odd_sum(a * b, c)),
        "min" => each!(|a, b, _, x| least(a, b, x)),
        "max" => each!(|a, b, _, x| -least(-a, -b, x)),
        "ex2" => each!(|a, _, _, _| a.exp2()),
        "tanh" => each!(|a, _, _, _| a.tanh()),
        // Signs alone, so NaN keeps its bits.
        "abs" => match last_type(i) {
            "f16" | "bf16" => d.rare().unary(i, |a: u16| a & 0x7FFF),
            _ => d.rare().unary(i, |a: u32| a & 0x7FFF_7FFF),
        },
        "neg" => match last_type(i) {
            "f16" | "bf16" => d.rare().unary(i, |a: u16| a ^ 0x8000),
            _ => d.rare().unary(i, |a: u32| a ^ 0x8000_8000),
        },
        _ => Err(d.not_implemented()),
    }
}

/// A format of 16 bits.
trait Format {
    fn read(bits: u16) -> f64;
    fn write(value: f64, x: u64) -> u16;
}

struct Half;
struct Bfloat;

impl Format for Half {
    fn read(bits: u16) -> f64 {
        from_half(bits).into()
    }

    fn write(value: f64, x: u64) -> u16 {
        to_half(value, x & 0x50)
    }
}

impl Format for Bfloat {
    fn read(bits: u16) -> f64 {
        from_bfloat(bits).into()
    }

    fn write(value: f64, x: u64) -> u16 {
        to_bfloat(value, x & 0x50)
    }
}

fn one<T: Format>(a: u16, b: u16, c: u16, x: u64, f: impl Fn(f64, f64, f64, u64) -> f64) -> u16 {
    let flush = |bits: u16| if x & 8 != 0 && bits & 0x7C00 == 0 { bits & 0x8000 } else { bits };
    flush(T::write(f(T::read(flush(a)), T::read(flush(b)), T::read(flush(c)), x), x))
}

fn two<T: Format>(a: u32, b: u32, c: u32, x: u64, f: impl Fn(f64, f64, f64, u64) -> f64) -> u32 {
    let low = one::<T>(a as u16, b as u16, c as u16, x, &f);
    let high = one::<T>((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16, x, &f);
    u32::from(high) << 16 | u32::from(low)
}

/// A number wins over NaN unless bit 7 says otherwise; negative zero is less than zero.
fn least(a: f64, b: f64, x: u64) -> f64 {
    if x & 0x80 != 0 && (a.is_nan() || b.is_nan()) {
        return f64::NAN;
    }
    if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b }
}

/// `cvt.rn.f16x2.f32 d, a, b`: `a` in the upper half.
pub(crate) fn pack(d: &mut Decoder<'_>, i: &Instruction, to: &str, from: &str) -> Decoded {
    if from != "f32" || i.operands.len() != 3 {
        return Err(d.not_implemented());
    }
    let x = u64::from(has(i, "rz")) | u64::from(has(i, "relu")) << 6 | u64::from(has(i, "sat")) << 4;
    if to == "f16x2" {
        d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u32::from(to_half(a.into(), x)) << 16 | u32::from(to_half(b.into(), x))
        })
    } else {
        d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u32::from(to_bfloat(a.into(), x)) << 16 | u32::from(to_bfloat(b.into(), x))
        })
    }
}
