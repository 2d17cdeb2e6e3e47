//! Half precision: `f16`, `bf16` and pairs of them.
//!
//! What is rounded to nearest and nothing else goes through single precision, as `round` explains. The rest is computed
//! in double precision, which holds every product exactly and every sum up to its odd rounding, so each result is
//! rounded once.

use super::{
    convert::{to_bfloat, to_half},
    float::odd_sum,
    has, is_type, last_type,
    round::{self, bfloat_from_double, bfloat_from_single, half_from_single},
    soft::{from_bfloat, from_half},
};
use crate::{
    module::{Decoded, Decoder},
    ptx::ast::Instruction,
};

/// Subnormals become zero.
const FTZ: u64 = 8;
/// Results are between 0 and 1.
const SAT: u64 = 1 << 4;
/// Negative results become zero.
const RELU: u64 = 1 << 6;
/// NaN wins.
const NAN: u64 = 1 << 8;
/// The greater one.
const MAX: u64 = 1 << 9;
/// Magnitudes, with the sign of the product.
const XOR_SIGN: u64 = 1 << 10;
/// A factor from outside of a tensor makes the result zero.
const OOB: u64 = 1 << 11;
/// What stands for such a value, without its sign: an H200 takes this one NaN of all that there are, in f16 and in bf16.
const OUTSIDE: u16 = 0x7FF7;

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let (d, i) = (decoder, instruction);
    // Sums of single precision with halves are of GPUs after these.
    if i.modifiers.iter().filter(|word| is_type(word)).count() != 1 {
        return Err(d.not_implemented());
    }
    let flag = |word: &str, flag: u64| if has(i, word) { flag } else { 0 };
    let x = flag("ftz", FTZ)
        | flag("sat", SAT)
        | flag("relu", RELU)
        | flag("NaN", NAN)
        | flag("xorsign", XOR_SIGN)
        | flag("oob", OOB);
    if x == 0
        && let Some(decoded) = plain(d, i)
    {
        return decoded;
    }
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
        "add" => each!(|a, b, _| a + b),
        "sub" => each!(|a, b, _| a - b),
        "mul" => each!(|a, b, _| a * b),
        "fma" => each!(|a, b, c| odd_sum(a * b, c)),
        "ex2" => each!(|a, _, _| a.exp2()),
        "tanh" => each!(|a, _, _| a.tanh()),
        "min" | "max" if i.operands.len() == 3 => {
            let x = x | if i.opcode == "max" { MAX } else { 0 };
            match last_type(i) {
                "f16" => d.with_constant(i, x, |a: u16, b: u16, _: u32, x| extreme::<Half>(a, b, x)),
                "bf16" => d.with_constant(i, x, |a: u16, b: u16, _: u32, x| extreme::<Bfloat>(a, b, x)),
                "f16x2" => d.with_constant(i, x, |a: u32, b: u32, _: u32, x| {
                    pair(a, b, 0, |a, b, _| extreme::<Half>(a, b, x))
                }),
                _ => d.with_constant(i, x, |a: u32, b: u32, _: u32, x| {
                    pair(a, b, 0, |a, b, _| extreme::<Bfloat>(a, b, x))
                }),
            }
        }
        "abs" => match last_type(i) {
            "f16" => d.with_constant(i, x, |a: u16, _: u32, _: u32, x| {
                sign::<Half>(flush::<Half>(a, x), 0x7FFF, 0)
            }),
            _ => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| {
                pair(a, 0, 0, |a, _, _| sign::<Half>(flush::<Half>(a, x), 0x7FFF, 0))
            }),
        },
        "neg" => match last_type(i) {
            "f16" => d.with_constant(i, x, |a: u16, _: u32, _: u32, x| {
                sign::<Half>(flush::<Half>(a, x), 0xFFFF, 0x8000)
            }),
            _ => d.with_constant(i, x, |a: u32, _: u32, _: u32, x| {
                pair(a, 0, 0, |a, _, _| sign::<Half>(flush::<Half>(a, x), 0xFFFF, 0x8000))
            }),
        },
        _ => Err(d.not_implemented()),
    }
}

/// Instructions that round to nearest, and nothing else: they are the frequent ones.
fn plain(d: &mut Decoder<'_>, i: &Instruction) -> Option<Decoded> {
    macro_rules! two {
        ($half:ident, $bfloat:ident) => {
            match last_type(i) {
                "f16" => d.binary(i, $half),
                "bf16" => d.binary(i, $bfloat),
                "f16x2" => d.binary(i, |a: u32, b: u32| pair(a, b, 0, |a, b, _| $half(a, b))),
                _ => d.binary(i, |a: u32, b: u32| pair(a, b, 0, |a, b, _| $bfloat(a, b))),
            }
        };
    }
    Some(match i.opcode.as_str() {
        "add" => two!(add_half, add_bfloat),
        "sub" => two!(sub_half, sub_bfloat),
        "mul" => two!(mul_half, mul_bfloat),
        "min" if i.operands.len() == 3 => two!(min_half, min_bfloat),
        "max" if i.operands.len() == 3 => two!(max_half, max_bfloat),
        "fma" => match last_type(i) {
            "f16" => d.ternary(i, fma_half),
            "bf16" => d.ternary(i, fma_bfloat),
            "f16x2" => d.ternary(i, |a: u32, b: u32, c: u32| pair(a, b, c, fma_half)),
            _ => d.ternary(i, |a: u32, b: u32, c: u32| pair(a, b, c, fma_bfloat)),
        },
        "abs" => match last_type(i) {
            "f16" => d.unary(i, |a: u16| sign::<Half>(a, 0x7FFF, 0)),
            "bf16" => d.unary(i, |a: u16| sign::<Bfloat>(a, 0x7FFF, 0)),
            "f16x2" => d.unary(i, |a: u32| pair(a, 0, 0, |a, _, _| sign::<Half>(a, 0x7FFF, 0))),
            _ => d.unary(i, |a: u32| pair(a, 0, 0, |a, _, _| sign::<Bfloat>(a, 0x7FFF, 0))),
        },
        "neg" => match last_type(i) {
            "f16" => d.unary(i, |a: u16| sign::<Half>(a, 0xFFFF, 0x8000)),
            "bf16" => d.unary(i, |a: u16| sign::<Bfloat>(a, 0xFFFF, 0x8000)),
            "f16x2" => d.unary(i, |a: u32| pair(a, 0, 0, |a, _, _| sign::<Half>(a, 0xFFFF, 0x8000))),
            _ => d.unary(i, |a: u32| pair(a, 0, 0, |a, _, _| sign::<Bfloat>(a, 0xFFFF, 0x8000))),
        },
        _ => return None,
    })
}

macro_rules! plain {
    ($($half:ident, $bfloat:ident, |$a:ident, $b:ident| $value:expr;)*) => {$(
        #[inline(always)]
        pub(super) fn $half(a: u16, b: u16) -> u16 {
            let ($a, $b) = (from_half(a), from_half(b));
            half_from_single($value)
        }

        #[inline(always)]
        pub(super) fn $bfloat(a: u16, b: u16) -> u16 {
            let ($a, $b) = (from_bfloat(a), from_bfloat(b));
            bfloat_from_single($value)
        }
    )*};
}

plain! {
    add_half, add_bfloat, |a, b| a + b;
    sub_half, sub_bfloat, |a, b| a - b;
    mul_half, mul_bfloat, |a, b| a * b;
    min_half, min_bfloat, |a, b| super::float::least(a, b);
    max_half, max_bfloat, |a, b| super::float::greatest(a, b);
}

#[inline(always)]
fn fma_half(a: u16, b: u16, c: u16) -> u16 {
    half_from_single(round::odd_sum(from_half(a) * from_half(b), from_half(c)))
}

#[inline(always)]
fn fma_bfloat(a: u16, b: u16, c: u16) -> u16 {
    let product = f64::from(from_bfloat(a)) * f64::from(from_bfloat(b));
    bfloat_from_double(odd_sum(product, from_bfloat(c).into()))
}

/// A format of 16 bits.
trait Format {
    /// Bits of the exponent.
    const EXPONENT: u16;
    /// The least normal number.
    const LEAST: f64;
    fn read(bits: u16) -> f32;
    fn write(value: f64, x: u64) -> u16;
}

struct Half;
struct Bfloat;

impl Format for Half {
    const EXPONENT: u16 = 0x7C00;
    const LEAST: f64 = 6.103515625e-5;

    #[inline(always)]
    fn read(bits: u16) -> f32 {
        from_half(bits)
    }

    fn write(value: f64, x: u64) -> u16 {
        to_half(value, x & (SAT | RELU))
    }
}

impl Format for Bfloat {
    const EXPONENT: u16 = 0x7F80;
    const LEAST: f64 = f32::MIN_POSITIVE as f64;

    #[inline(always)]
    fn read(bits: u16) -> f32 {
        from_bfloat(bits)
    }

    fn write(value: f64, x: u64) -> u16 {
        to_bfloat(value, x & (SAT | RELU))
    }
}

#[inline(always)]
fn flush<T: Format>(bits: u16, x: u64) -> u16 {
    if x & FTZ != 0 && bits & T::EXPONENT == 0 { bits & 0x8000 } else { bits }
}

/// A number with some bits cleared and others flipped; NaN has one form.
#[inline(always)]
fn sign<T: Format>(bits: u16, keep: u16, flip: u16) -> u16 {
    if bits & 0x7FFF > T::EXPONENT { 0x7FFF } else { (bits & keep) ^ flip }
}

fn one<T: Format>(a: u16, b: u16, c: u16, x: u64, f: impl Fn(f64, f64, f64) -> f64) -> u16 {
    if x & OOB != 0 && (a & 0x7FFF == OUTSIDE || b & 0x7FFF == OUTSIDE) {
        return 0;
    }
    let read = |bits| f64::from(T::read(flush::<T>(bits, x)));
    let value = f(read(a), read(b), read(c));
    // What is subnormal when exponents have no end is zero, also where it would be rounded up to a normal number.
    if x & FTZ != 0 && value.abs() < T::LEAST {
        let scaled = T::read(T::write(value / T::LEAST, 0));
        if scaled.abs() < 1.0 {
            return T::write(0f64.copysign(value), x);
        }
    }
    flush::<T>(T::write(value, x), x)
}

fn two<T: Format>(a: u32, b: u32, c: u32, x: u64, f: impl Fn(f64, f64, f64) -> f64) -> u32 {
    pair(a, b, c, |a, b, c| one::<T>(a, b, c, x, &f))
}

/// Both halves of words.
#[inline(always)]
pub(super) fn pair(a: u32, b: u32, c: u32, f: impl Fn(u16, u16, u16) -> u16) -> u32 {
    let low = f(a as u16, b as u16, c as u16);
    let high = f((a >> 16) as u16, (b >> 16) as u16, (c >> 16) as u16);
    u32::from(high) << 16 | u32::from(low)
}

/// A number wins over NaN unless the instruction says otherwise; negative zero is less than zero.
#[inline(always)]
fn extreme<T: Format>(a: u16, b: u16, x: u64) -> u16 {
    let (a, b) = (flush::<T>(a, x), flush::<T>(b, x));
    let sign = if x & XOR_SIGN != 0 { (a ^ b) & 0x8000 } else { 0 };
    let (a, b) = if x & XOR_SIGN != 0 { (a & 0x7FFF, b & 0x7FFF) } else { (a, b) };
    let (first, second) = (T::read(a), T::read(b));
    if first.is_nan() && second.is_nan() || x & NAN != 0 && (first.is_nan() || second.is_nan()) {
        return 0x7FFF;
    }
    let less = first < second || first == second && a & 0x8000 != 0;
    let chosen = if second.is_nan() || !first.is_nan() && less != (x & MAX != 0) { a } else { b };
    chosen | sign
}

/// `cvt.rn.f16x2.f32 d, a, b`: `a` in the upper half.
pub(crate) fn pack(d: &mut Decoder<'_>, i: &Instruction, to: &str, x: u64) -> Decoded {
    if i.operands.len() != 3 {
        return Err(d.not_implemented());
    }
    match (to, x) {
        ("f16x2", 0) => d.binary(i, |a: f32, b: f32| {
            u32::from(half_from_single(a)) << 16 | u32::from(half_from_single(b))
        }),
        (_, 0) => d.binary(i, |a: f32, b: f32| {
            u32::from(bfloat_from_single(a)) << 16 | u32::from(bfloat_from_single(b))
        }),
        ("f16x2", _) => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u32::from(to_half(a.into(), x)) << 16 | u32::from(to_half(b.into(), x))
        }),
        _ => d.with_constant(i, x, |a: f32, b: f32, _: u32, x| {
            u32::from(to_bfloat(a.into(), x)) << 16 | u32::from(to_bfloat(b.into(), x))
        }),
    }
}
