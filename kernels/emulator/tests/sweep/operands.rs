//! Operands: all pairs or triples of values at the edges, and random ones.

use super::forms::Form;
use crate::common::random::Random;

/// Rows of the longest list.
pub(crate) const MOST: usize = 1 << 16;

/// The operands of a form, always the same ones.
pub(crate) fn rows(form: &Form) -> Vec<[u64; 3]> {
    let mut random = Random(form.text.bytes().fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    }));
    let types: Vec<&str> = form.sources.iter().map(String::as_str).collect();
    let mut rows = match types[..] {
        [ty] if super::kernels::register(ty) == 16 && form.bound.is_none() => {
            (0..MOST as u64).map(|bits| [bits, 0, 0]).collect()
        }
        [ty] => edges(ty).into_iter().map(|a| [a, 0, 0]).collect(),
        [a, b] => {
            let others = edges(b);
            edges(a).into_iter().flat_map(|a| others.iter().map(move |&b| [a, b, 0])).collect()
        }
        [a, b, c] => {
            let mut rows = Vec::new();
            for a in few(a) {
                for b in few(b) {
                    rows.extend(few(c).into_iter().map(|c| [a, b, c]));
                }
            }
            rows
        }
        _ => vec![[0; 3]],
    };
    // All values have been there.
    let more = if rows.len() == MOST { 0 } else { 1500 };
    for number in 0..more {
        let mut row = [0; 3];
        let mut exponent = 0;
        for (index, ty) in types.iter().enumerate() {
            row[index] = match number % 3 {
                0 => random.next(),
                1 => nearby(ty, index, &mut exponent, &mut random),
                _ => {
                    let edges = edges(ty);
                    let edge = edges[random.below(edges.len() as u64) as usize];
                    if random.below(3) == 0 { nearby(ty, index, &mut exponent, &mut random) } else { edge }
                }
            };
        }
        rows.push(row);
    }
    for row in &mut rows {
        form.restrict(row);
    }
    rows
}

/// Every third of the edges, for triples.
fn few(ty: &str) -> Vec<u64> {
    let edges = edges(ty);
    let step = edges.len().div_ceil(13);
    edges.into_iter().step_by(step).collect()
}

/// A number whose exponent is near that of the operand before it, or a short integer.
fn nearby(ty: &str, index: usize, exponent: &mut i64, random: &mut Random) -> u64 {
    let (fraction, bits, bias) = match ty {
        "f64" => (52, 64, 1023),
        "f32" | "tf32" => (23, 32, 127),
        "f16" => (10, 16, 15),
        "bf16" => (7, 16, 127),
        "f16x2" | "bf16x2" => {
            let ty = ty.trim_end_matches("x2");
            let low = nearby(ty, index, exponent, random);
            return low | nearby(ty, index, exponent, random) << 16;
        }
        _ => {
            let value = random.next() >> random.below(64);
            return if random.below(2) == 0 { value } else { value.wrapping_neg() };
        }
    };
    let range = if fraction > 10 { 30 } else { 9 };
    *exponent = if index == 0 {
        random.below(4 * range) as i64 - 2 * range as i64
    } else {
        *exponent + random.below(2 * range) as i64 - range as i64
    };
    let field = (*exponent + bias).clamp(0, 2 * bias + 1) as u64;
    // Few bits make exact results and ties likely.
    let mut mantissa = random.next() & ((1 << fraction) - 1);
    if random.below(2) == 0 {
        mantissa &= !0 << random.below(fraction);
        mantissa &= (1 << fraction) - 1;
    }
    random.below(2) << (bits - 1) | field << fraction | mantissa
}

/// Values at the edges of a type.
fn edges(ty: &str) -> Vec<u64> {
    match ty {
        "f64" => floats(52, 11)
            .into_iter()
            .chain(
                [
                    2147483647.5,
                    -2147483648.5,
                    4294967295.5,
                    9.223372036854776e18,
                    1.8446744073709552e19,
                    3.4028235677973366e38,
                    1e-45,
                    65519.99,
                    65520.0,
                    -128.5,
                    255.5,
                ]
                .map(f64::to_bits),
            )
            .collect(),
        "f32" | "tf32" => floats(23, 8)
            .into_iter()
            .chain(
                [
                    2147483520.0f32,
                    -2147483648.0,
                    4294967296.0,
                    9.223372e18,
                    1.8446744e19,
                    65504.0,
                    65520.0,
                    6.1035156e-5,
                    2.9802322e-8,
                    32767.5,
                    -128.5,
                    255.5,
                    448.0,
                    480.0,
                    57344.0,
                    61440.0,
                    0.001953125,
                    std::f32::consts::PI,
                    -126.5,
                    8388609.0,
                    16777217.0,
                ]
                .map(|value| u64::from(value.to_bits())),
            )
            .collect(),
        "f16" => floats(10, 5),
        "bf16" => floats(7, 8),
        "f16x2" | "bf16x2" => {
            let halves = edges(ty.trim_end_matches("x2"));
            let other = |index: usize| halves[(index * 7 + 3) % halves.len()];
            halves.iter().enumerate().map(|(index, &low)| low | other(index) << 16).collect()
        }
        "u64" | "s64" | "b64" => short()
            .into_iter()
            .chain([
                0xFFFF_FFFF,
                1 << 32,
                i64::MAX as u64,
                1 << 63,
                !0,
                !1,
                0x0123_4567_89AB_CDEF,
                0x8000_0000_0000_0001,
                0xFFFF_FFFF_0000_0000,
            ])
            .collect(),
        _ => short(),
    }
}

/// Integers of up to 32 bits.
fn short() -> Vec<u64> {
    vec![
        0,
        1,
        2,
        3,
        7,
        8,
        15,
        16,
        31,
        32,
        33,
        63,
        64,
        127,
        128,
        255,
        256,
        0x7FFF,
        0x8000,
        0xFFFF,
        0x1_0000,
        0x7F_FFFF,
        0xFF_FFFF,
        0x7FFF_FFFF,
        0x8000_0000,
        0x8000_0001,
        0xFFFF_FFFF,
        0xFFFF_FFFE,
        0x5555_5555,
        0xAAAA_AAAA,
        0x1234_5678,
        0x80FF_7F01,
        0xDEAD_BEEF,
    ]
}

/// Zeros, subnormals, limits, infinities, NaN, ones and their neighbours.
fn floats(fraction: u32, exponent: u32) -> Vec<u64> {
    let sign = 1u64 << (fraction + exponent);
    let one = ((1u64 << (exponent - 1)) - 1) << fraction;
    let infinity = ((1u64 << exponent) - 1) << fraction;
    let unit = 1u64 << fraction;
    let quiet = unit >> 1;
    vec![
        0,
        sign,
        1,
        sign | 1,
        quiet,
        unit - 1,
        sign | (unit - 1),
        unit,
        sign | unit,
        unit + 1,
        one,
        sign | one,
        one + 1,
        one - 1,
        one + quiet,
        one + unit,
        sign | (one + unit + quiet),
        one - unit,
        one + 3 * unit + 1,
        infinity - 1,
        sign | (infinity - 1),
        infinity - unit,
        infinity,
        sign | infinity,
        infinity | quiet,
        infinity | (unit - 1),
        infinity | 1,
        // All bits: the operand that stands for what is outside of a tensor.
        sign | infinity | (unit - 1),
        sign | infinity | quiet | 1,
    ]
}
