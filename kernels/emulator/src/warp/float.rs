//! Single and double precision.
//!
//! Rounded operations are the GPU's bit for bit. Single-precision NaN results are 0x7fffffff, as on a GPU; in double
//! precision a NaN operand is the result, and [`propagate`] says which one. Approximations are computed in double precision and rounded, so each is within one unit
//! in the last place of the exact value, closer than PTX promises (`ex2` 2 ulp, `rcp` and `rsqrt` 1 ulp and 2^-22.4,
//! `lg2` 2^-22, `sin` and `cos` 2^-20.5 absolute, `tanh` 2^-11), and their last bits differ from a GPU's.

use super::{
    has, last_type,
    soft::{self, F32, F64, Rounding},
};
use crate::{
    module::{Decoded, Decoder},
    ptx::ast::Instruction,
};

/// Subnormal numbers become zero.
#[inline(always)]
pub(crate) fn flush(a: f32) -> f32 {
    let bits = a.to_bits();
    if bits & 0x7F80_0000 == 0 { f32::from_bits(bits & 0x8000_0000) } else { a }
}

/// NaN has one form. On bits, since to the compiler every NaN is as good as another: it drops a choice between two of them.
#[inline(always)]
pub(crate) fn canonical(a: f32) -> f32 {
    let bits = a.to_bits();
    f32::from_bits(if bits & 0x7FFF_FFFF > 0x7F80_0000 { 0x7FFF_FFFF } else { bits })
}

/// Between 0 and 1; NaN becomes 0.
#[inline(always)]
pub(crate) fn saturate(a: f32) -> f32 {
    if a > 0.0 { if a < 1.0 { a } else { 1.0 } } else { 0.0 }
}

/// A result of double precision, where NaN is the first one of the operands that is, made quiet. A GPU's order is not the
/// host's.
#[inline(always)]
fn propagate<const N: usize>(value: f64, operands: [f64; N]) -> f64 {
    const QUIET: u64 = 1 << 51;
    let is_nan = |bits: u64| bits & (u64::MAX >> 1) > 0x7FF0_0000_0000_0000;
    let mut nan = 0xFFF8_0000_0000_0000;
    for operand in operands.into_iter().rev() {
        let bits = operand.to_bits();
        nan = if is_nan(bits) { bits | QUIET } else { nan };
    }
    let bits = value.to_bits();
    f64::from_bits(if is_nan(bits) { nan } else { bits })
}

/// A result with subnormal numbers made zero. Whether it is one is decided as if exponents had no end: `scaled` is the
/// result times 2^24.
#[inline(always)]
fn flush_result(result: f32, scaled: f32) -> f32 {
    let zero = f32::from_bits(result.to_bits() & 0x8000_0000);
    // 2^-102 is the least normal number times 2^24.
    if scaled.abs() < f32::from_bits((127 - 102) << 23) { zero } else { result }
}

/// 2^24
const SCALE: f32 = 16_777_216.0;

/// The same of double precision.
pub(crate) fn saturate_f64(a: f64) -> f64 {
    if a > 0.0 { if a < 1.0 { a } else { 1.0 } } else { 0.0 }
}

/// `a * b + c` rounded once, without the host's instruction for it.
///
/// The product is exact in double precision. The sum is rounded to odd there, which keeps what the second rounding needs.
#[inline(always)]
fn fused(a: f32, b: f32, c: f32) -> f32 {
    odd_sum(f64::from(a) * f64::from(b), c.into()) as f32
}

/// The sum of two doubles, with its last bit set if it is not exact.
#[inline(always)]
pub(super) fn odd_sum(a: f64, b: f64) -> f64 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    // Away from zero if the error has the sum's sign, else towards it; an odd last bit is right already.
    let away = (error > 0.0) == (sum > 0.0);
    let other = if away { bits + 1 } else { bits.wrapping_sub(1) };
    let inexact = error != 0.0 && sum.is_finite() && error.is_finite();
    f64::from_bits(if inexact && bits & 1 == 0 { other } else { bits })
}

/// Rounds a double to single precision.
#[inline(always)]
fn narrow(a: f64, rounding: Rounding) -> f32 {
    let nearest = a as f32;
    let wide = f64::from(nearest);
    match rounding {
        Rounding::Zero if wide.abs() > a.abs() => f32::from_bits(nearest.to_bits() - 1),
        Rounding::Down if wide > a => nearest.next_down(),
        Rounding::Up if wide < a => nearest.next_up(),
        _ => nearest,
    }
}

/// How an operation differs from the plain one, in an instruction's `x`.
fn options(i: &Instruction) -> u64 {
    let rounding = i.modifiers.iter().find_map(|word| match word.as_str() {
        "rz" => Some(1),
        "rm" => Some(2),
        "rp" => Some(3),
        _ => None,
    });
    rounding.unwrap_or(0) | u64::from(has(i, "ftz")) << 3 | u64::from(has(i, "sat")) << 4
}

#[inline(always)]
fn input(a: f32, x: u64) -> f32 {
    if x & 8 != 0 { flush(a) } else { a }
}

#[inline(always)]
fn output(a: f32, x: u64) -> f32 {
    let a = if x & 8 != 0 { flush(a) } else { a };
    if x & 16 != 0 { saturate(a) } else { canonical(a) }
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    match last_type(instruction) {
        "f32" => single(decoder, instruction),
        "f64" => double(decoder, instruction),
        "f16" | "f16x2" | "bf16" | "bf16x2" => super::half::decode(decoder, instruction),
        _ => Err(decoder.not_implemented()),
    }
}

fn single(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let x = options(i);
    let approx = has(i, "approx") || has(i, "full");
    match i.opcode.as_str() {
        "add" if x == 0 => d.binary(i, |a: f32, b: f32| canonical(a + b)),
        "sub" if x == 0 => d.binary(i, |a: f32, b: f32| canonical(a - b)),
        "mul" if x == 0 => d.binary(i, |a: f32, b: f32| canonical(a * b)),
        "add" if x == 8 => d.binary(i, |a: f32, b: f32| canonical(flush(flush(a) + flush(b)))),
        "sub" if x == 8 => d.binary(i, |a: f32, b: f32| canonical(flush(flush(a) - flush(b)))),
        "mul" if x == 8 => d.binary(i, |a: f32, b: f32| {
            let (a, b) = (flush(a), flush(b));
            canonical(flush_result(a * b, a * SCALE * b))
        }),
        "fma" | "mad" if x == 0 && d.level.has_fma() => {
            d.ternary(i, |a: f32, b: f32, c: f32| canonical(a.mul_add(b, c)))
        }
        "fma" | "mad" if x == 0 => d.ternary(i, |a: f32, b: f32, c: f32| canonical(fused(a, b, c))),
        "fma" | "mad" if x == 8 && d.level.has_fma() => d.ternary(i, |a: f32, b: f32, c: f32| {
            let (a, b, c) = (flush(a), flush(b), flush(c));
            canonical(flush_result(a.mul_add(b, c), (a * SCALE).mul_add(b, c * SCALE)))
        }),
        "add" => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            output(sum(input(a, x).into(), input(b, x).into(), x), x)
        }),
        "sub" => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            output(sum(input(a, x).into(), -f64::from(input(b, x)), x), x)
        }),
        "mul" => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            // Exact in double precision.
            output(round(f64::from(input(a, x)) * f64::from(input(b, x)), x), x)
        }),
        "fma" | "mad" => d.with_constant(i, x, |a: f32, b: f32, c: f32, x| {
            output(sum(f64::from(input(a, x)) * f64::from(input(b, x)), input(c, x).into(), x), x)
        }),
        // Both approximate divisions are exact here, but for the range where the GPU's reciprocal is zero.
        "div" if has(i, "approx") => d.with_constant(i, x & 8, |a: f32, b: f32, _: u32, x| {
            let (a, b) = (input(a, x), input(b, x));
            let reciprocal = if b.is_finite() && b.abs() > 2f32.powi(126) { 0f32.copysign(b) } else { 1.0 };
            output(if reciprocal == 0.0 { a * reciprocal } else { a / b }, x)
        }),
        "div" if approx => {
            d.with_constant(i, x & 8, |a: f32, b: f32, _: u32, x| output(input(a, x) / input(b, x), x))
        }
        "div" if x == 0 => d.rare().binary(i, |a: f32, b: f32| canonical(a / b)),
        "div" => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            let (a, b) = (input(a, x), input(b, x));
            let divide = |a: f64| f32::from_bits(soft::div(a, b.into(), Rounding::from_bits(x), F32) as u32);
            let quotient = divide(a.into());
            let scaled = if x & 8 == 0 { 1.0 } else { divide(f64::from(a) * f64::from(SCALE)) };
            output(flush_result(quotient, scaled), x)
        }),
        "rcp" if x == 0 => d.unary(i, |a: f32| canonical(1.0 / a)),
        "rcp" if x & 7 == 0 || approx => {
            d.with_constant(i, x & 8, |a: f32, _: u32, _: u32, x| output(1.0 / input(a, x), x))
        }
        "rcp" => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| {
            output(f32::from_bits(soft::div(1.0, input(a, x).into(), Rounding::from_bits(x), F32) as u32), x)
        }),
        "sqrt" if x == 0 => d.unary(i, |a: f32| canonical(a.sqrt())),
        "sqrt" if x & 7 == 0 || approx => {
            d.with_constant(i, x & 8, |a: f32, _: u32, _: u32, x| output(input(a, x).sqrt(), x))
        }
        "sqrt" => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| {
            output(f32::from_bits(soft::sqrt(input(a, x).into(), Rounding::from_bits(x), F32) as u32), x)
        }),
        "rsqrt" => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| {
            output((1.0 / f64::from(input(a, x)).sqrt()) as f32, x)
        }),
        "sin" => {
            d.with_constant(i, x, |a: f32, _: u32, _: u32, x| output(f64::from(input(a, x)).sin() as f32, x))
        }
        "cos" => {
            d.with_constant(i, x, |a: f32, _: u32, _: u32, x| output(f64::from(input(a, x)).cos() as f32, x))
        }
        "lg2" => {
            d.with_constant(i, x, |a: f32, _: u32, _: u32, x| output(f64::from(input(a, x)).log2() as f32, x))
        }
        "ex2" => {
            d.with_constant(i, x, |a: f32, _: u32, _: u32, x| output(f64::from(input(a, x)).exp2() as f32, x))
        }
        "tanh" => {
            d.with_constant(i, x, |a: f32, _: u32, _: u32, x| output(f64::from(input(a, x)).tanh() as f32, x))
        }
        "abs" if x == 0 => d.unary(i, |a: f32| canonical(a.abs())),
        "neg" if x == 0 => d.unary(i, |a: f32| canonical(-a)),
        "abs" => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| canonical(input(a, x).abs())),
        "neg" => d.with_constant(i, x, |a: f32, _: u32, _: u32, x| canonical(-input(a, x))),
        "min" | "max" => extreme(d, i, x),
        "copysign" => d.rare().binary(i, |a: f32, b: f32| b.copysign(a)),
        "testp" => test(d, i, |word| match word {
            "finite" => Some(0),
            "infinite" => Some(1),
            "number" => Some(2),
            "notanumber" => Some(3),
            "normal" => Some(4),
            "subnormal" => Some(5),
            _ => None,
        }),
        _ => Err(d.not_implemented()),
    }
}

/// The sum of two numbers that single precision or a product of it holds.
#[inline(always)]
fn sum(a: f64, b: f64, x: u64) -> f32 {
    let rounding = Rounding::from_bits(x);
    let sum = odd_sum(a, b);
    if sum == 0.0 && rounding == Rounding::Down && (a.is_sign_negative() || b.is_sign_negative()) {
        return -0.0;
    }
    round(sum, x)
}

/// Rounds to single precision. With `ftz`, what is less than the least normal number when exponents have no end is zero.
#[inline(always)]
fn round(value: f64, x: u64) -> f32 {
    let rounding = Rounding::from_bits(x);
    let result = narrow(value, rounding);
    if x & 8 == 0 { result } else { flush_result(result, narrow(value * f64::from(SCALE), rounding)) }
}

fn extreme(d: &mut Decoder<'_>, i: &Instruction, x: u64) -> Decoded {
    if i.operands.len() != 3 {
        return Err(d.not_implemented());
    }
    let max = i.opcode == "max";
    // Bit 5: the greater one; bit 6: NaN wins; bit 7: magnitudes, with the sign of the product.
    let x = x | u64::from(max) << 5 | u64::from(has(i, "NaN")) << 6 | u64::from(has(i, "xorsign")) << 7;
    match x {
        0 => d.binary(i, |a: f32, b: f32| least(a, b)),
        32 => d.binary(i, |a: f32, b: f32| greatest(a, b)),
        _ => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            let (a, b) = (input(a, x), input(b, x));
            let sign = (a.to_bits() ^ b.to_bits()) & 0x8000_0000;
            let (first, second) = if x & 128 != 0 { (a.abs(), b.abs()) } else { (a, b) };
            if x & 64 != 0 && (a.is_nan() || b.is_nan()) || a.is_nan() && b.is_nan() {
                return f32::from_bits(0x7FFF_FFFF);
            }
            let found = if x & 32 != 0 { greatest(first, second) } else { least(first, second) };
            if x & 128 != 0 { f32::from_bits(found.to_bits() | sign) } else { found }
        }),
    }
}

/// A number wins over NaN, and negative zero is less than zero.
#[inline(always)]
pub(super) fn least(a: f32, b: f32) -> f32 {
    let a_is_less = a < b || (a == b && a.is_sign_negative());
    canonical(if b.is_nan() || a_is_less { a } else { b })
}

#[inline(always)]
pub(super) fn greatest(a: f32, b: f32) -> f32 {
    let a_is_more = a > b || (a == b && b.is_sign_negative());
    canonical(if b.is_nan() || a_is_more { a } else { b })
}

/// `testp`: a predicate from one number. Zero is normal.
fn test(d: &mut Decoder<'_>, i: &Instruction, property: impl Fn(&str) -> Option<u32>) -> Decoded {
    let [p, a] = d.operands(i)?;
    let twice = Instruction { operands: vec![p.clone(), a.clone(), a.clone()], ..i.clone() };
    let property = i.modifiers.iter().find_map(|word| property(word));
    match (property, last_type(i)) {
        (Some(0), "f32") => d.rare().compare(&twice, None, |a: f32, _| a.is_finite()),
        (Some(1), "f32") => d.rare().compare(&twice, None, |a: f32, _| a.is_infinite()),
        (Some(2), "f32") => d.rare().compare(&twice, None, |a: f32, _| !a.is_nan()),
        (Some(3), "f32") => d.rare().compare(&twice, None, |a: f32, _| a.is_nan()),
        (Some(4), "f32") => d.rare().compare(&twice, None, |a: f32, _| a.is_normal() || a == 0.0),
        (Some(5), "f32") => d.rare().compare(&twice, None, |a: f32, _| a.is_subnormal()),
        (Some(0), _) => d.rare().compare(&twice, None, |a: f64, _| a.is_finite()),
        (Some(1), _) => d.rare().compare(&twice, None, |a: f64, _| a.is_infinite()),
        (Some(2), _) => d.rare().compare(&twice, None, |a: f64, _| !a.is_nan()),
        (Some(3), _) => d.rare().compare(&twice, None, |a: f64, _| a.is_nan()),
        (Some(4), _) => d.rare().compare(&twice, None, |a: f64, _| a.is_normal() || a == 0.0),
        (Some(5), _) => d.rare().compare(&twice, None, |a: f64, _| a.is_subnormal()),
        _ => Err(d.not_implemented()),
    }
}

fn double(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let x = options(i);
    let rounding = x & 7;
    match i.opcode.as_str() {
        "add" if rounding == 0 => d.binary(i, |a: f64, b: f64| propagate(a + b, [b, a])),
        "sub" if rounding == 0 => d.binary(i, |a: f64, b: f64| propagate(a - b, [b, a])),
        "mul" if rounding == 0 => d.binary(i, |a: f64, b: f64| propagate(a * b, [b, a])),
        // Without the host's instruction this is a library call: slow, and exact all the same.
        "fma" | "mad" if rounding == 0 => {
            d.ternary(i, |a: f64, b: f64, c: f64| propagate(a.mul_add(b, c), [b, c, a]))
        }
        "div" if rounding == 0 => d.binary(i, |a: f64, b: f64| propagate(a / b, [a, b])),
        "sqrt" if rounding == 0 => d.unary(i, |a: f64| propagate(a.sqrt(), [a])),
        "rcp" if has(i, "approx") => d.rare().unary(i, |a: f64| coarse(1.0 / upper(a))),
        "rsqrt" if has(i, "ftz") => d.rare().unary(i, |a: f64| coarse(1.0 / upper(a).sqrt())),
        "rsqrt" => d.rare().unary(i, |a: f64| propagate(1.0 / a.sqrt(), [a])),
        "rcp" if rounding == 0 => d.rare().unary(i, |a: f64| propagate(1.0 / a, [a])),
        "add" => d.with_constant(i, x, |a: f64, b: f64, _: u32, x| {
            propagate(f64::from_bits(soft::add(a, b, Rounding::from_bits(x), F64)), [b, a])
        }),
        "sub" => d.with_constant(i, x, |a: f64, b: f64, _: u32, x| {
            propagate(f64::from_bits(soft::add(a, -b, Rounding::from_bits(x), F64)), [b, a])
        }),
        "mul" => d.with_constant(i, x, |a: f64, b: f64, _: u32, x| {
            propagate(f64::from_bits(soft::mul(a, b, Rounding::from_bits(x), F64)), [b, a])
        }),
        "fma" | "mad" => d.with_constant(i, x, |a: f64, b: f64, c: f64, x| {
            propagate(f64::from_bits(soft::fma(a, b, c, Rounding::from_bits(x), F64)), [b, c, a])
        }),
        "div" => d.with_constant(i, x, |a: f64, b: f64, _: u32, x| {
            propagate(f64::from_bits(soft::div(a, b, Rounding::from_bits(x), F64)), [a, b])
        }),
        "rcp" => d.with_constant(i, x, |a: f64, _: u32, _: u32, x| {
            propagate(f64::from_bits(soft::div(1.0, a, Rounding::from_bits(x), F64)), [a])
        }),
        "sqrt" => d.with_constant(i, x, |a: f64, _: u32, _: u32, x| {
            propagate(f64::from_bits(soft::sqrt(a, Rounding::from_bits(x), F64)), [a])
        }),
        // The sign of NaN stays.
        "abs" => d.unary(i, |a: f64| propagate(a.abs(), [a])),
        "neg" => d.unary(i, |a: f64| propagate(-a, [a])),
        "min" => d.binary(i, |a: f64, b: f64| {
            let found = if b.is_nan() || a < b || (a == b && a.is_sign_negative()) { a } else { b };
            propagate(found, [b])
        }),
        "max" => d.binary(i, |a: f64, b: f64| {
            let found = if b.is_nan() || a > b || (a == b && b.is_sign_negative()) { a } else { b };
            propagate(found, [b])
        }),
        "copysign" => d.rare().binary(i, |a: f64, b: f64| b.copysign(a)),
        "testp" => single(d, i),
        _ => Err(d.not_implemented()),
    }
}

/// The approximation of double precision gives the upper half of the result.
fn coarse(a: f64) -> f64 {
    let upper = a.to_bits() & !0xFFFF_FFFF;
    f64::from_bits(if a.is_nan() { 0x7FFF_FFFF_0000_0000 } else { upper })
}

/// And it sees the upper half of the operand, of which subnormal numbers are zero.
fn upper(a: f64) -> f64 {
    let a = f64::from_bits(a.to_bits() & !0xFFFF_FFFF);
    if a.is_subnormal() { 0f64.copysign(a) } else { a }
}
