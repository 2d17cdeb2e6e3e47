//! Rounding to the 16-bit formats, to nearest and without branches, so that loops over lanes become vector code.
//!
//! Why single precision is enough for sums and products of halves: it has 24 bits of significand, at least twice those of
//! either format (11, 8) and two more, and then rounding twice gives what rounding once does (Figueroa, "When is double
//! rounding innocuous?"). A product of two halves is exact besides. Where results are subnormal: sums are exact there, for
//! they are multiples of the least subnormal; a product of two `bf16` that single precision cannot hold is less than half of
//! the least one, and zero either way. A sum of three numbers is rounded to odd first, which keeps what the second rounding
//! needs.

/// `f16`: bits of its fraction, and its bias.
const HALF: (u32, u64) = (10, 15);

/// `bf16`
const BFLOAT: (u32, u64) = (7, 127);

/// The one NaN of both.
const NAN: u16 = 0x7FFF;

/// The nearest `f16`.
#[inline(always)]
pub(super) fn half_from_single(a: f32) -> u16 {
    let bits = a.to_bits();
    let magnitude = bits & 0x7FFF_FFFF;
    // The exponent moves by the difference of the biases, and the half of a last bit rounds, less if that is even.
    let odd = magnitude >> 13 & 1;
    let normal = (magnitude.wrapping_sub((127 - 15) << 23).wrapping_add(0xFFF + odd)) >> 13;
    // Below the least normal number: 0.5 has its last bit where a subnormal's is, so the sum is rounded there.
    let subnormal = (f32::from_bits(magnitude) + 0.5).to_bits().wrapping_sub(0.5f32.to_bits());
    let finite = if magnitude < (127 - 14) << 23 { subnormal } else { normal };
    // From 2^16 on all is infinite; what rounds up to there is so by itself.
    let value = if magnitude >= (127 + 16) << 23 { 0x7C00 } else { finite };
    let value = if magnitude > 0x7F80_0000 { NAN.into() } else { value | (bits >> 16 & 0x8000) };
    value as u16
}

/// The nearest `bf16`.
#[inline(always)]
pub(super) fn bfloat_from_single(a: f32) -> u16 {
    let bits = a.to_bits();
    let odd = bits >> 16 & 1;
    let rounded = bits.wrapping_add(0x7FFF + odd) >> 16;
    let value = if bits & 0x7FFF_FFFF > 0x7F80_0000 { NAN.into() } else { rounded };
    value as u16
}

/// The nearest `f16`.
#[inline(always)]
pub(super) fn half_from_double(a: f64) -> u16 {
    // 2^28 has its last bit where a subnormal's is, 2^-24.
    from_double(a, HALF, f64::from_bits((1023 + 28) << 52))
}

/// The nearest `bf16`.
#[inline(always)]
pub(super) fn bfloat_from_double(a: f64) -> u16 {
    // 2^-81 has its last bit at 2^-133.
    from_double(a, BFLOAT, f64::from_bits((1023 - 81) << 52))
}

#[inline(always)]
fn from_double(a: f64, (fraction, bias): (u32, u64), magic: f64) -> u16 {
    let bits = a.to_bits();
    let magnitude = bits & (u64::MAX >> 1);
    let shift = 52 - fraction;
    let odd = magnitude >> shift & 1;
    let normal =
        (magnitude.wrapping_sub((1023 - bias) << 52).wrapping_add((1 << (shift - 1)) - 1 + odd)) >> shift;
    let subnormal = (f64::from_bits(magnitude) + magic).to_bits().wrapping_sub(magic.to_bits());
    let infinity = (2 * bias + 1) << fraction;
    let finite = if magnitude < (1024 - bias) << 52 { subnormal } else { normal.min(infinity) };
    let value = if magnitude > 0x7FF0_0000_0000_0000 { NAN.into() } else { finite | (bits >> 48 & 0x8000) };
    value as u16
}

/// The sum of two numbers, with its last bit set if it is not exact, where no sum or part of it is subnormal.
#[inline(always)]
pub(super) fn odd_sum(a: f32, b: f32) -> f32 {
    let sum = a + b;
    let part = sum - a;
    let error = (a - (sum - part)) + (b - part);
    let bits = sum.to_bits();
    // Away from zero if the error has the sum's sign, else towards it; an odd last bit is right already.
    let away = (error > 0.0) == (sum > 0.0);
    let other = if away { bits.wrapping_add(1) } else { bits.wrapping_sub(1) };
    let inexact = error != 0.0 && sum.is_finite() && error.is_finite();
    f32::from_bits(if inexact && bits & 1 == 0 { other } else { bits })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warp::soft::{self, BF16, F16, Rounding, from_bfloat, from_half};
    use proptest::prelude::*;

    fn odd() -> impl Strategy<Value = u16> {
        prop_oneof![
            any::<u16>(),
            prop::sample::select(vec![
                0, 1, 0x8001, 0x03FF, 0x0400, 0x7BFF, 0x7F7F, 0x0080, 0x3C00, 0xBC01, 0x7C00
            ]),
            // Near one, where products and sums are ties.
            (0x3B00u16..0x4080),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(20_000))]

        #[test]
        fn doubles_and_singles_round_as_integers_do(bits in any::<u64>(), exponent in -160i32..140, few in 0u32..52) {
            let mantissa = f64::from_bits((bits & (u64::MAX >> 12)) >> few << few | 1023 << 52);
            for value in [f64::from_bits(bits), mantissa * 2f64.powi(exponent), -mantissa * 2f64.powi(exponent)] {
                let exact = |format| soft::convert(value, Rounding::Nearest, format) as u16;
                prop_assert_eq!(half_from_double(value), exact(F16), "{}", value);
                prop_assert_eq!(bfloat_from_double(value), exact(BF16), "{}", value);
                let value = value as f32;
                let exact = |format| soft::convert(value.into(), Rounding::Nearest, format) as u16;
                prop_assert_eq!(half_from_single(value), exact(F16), "{}", value);
                prop_assert_eq!(bfloat_from_single(value), exact(BF16), "{}", value);
            }
        }

        #[test]
        fn single_precision_is_enough_for_halves(a in odd(), b in odd(), c in odd()) {
            let [x, y, z] = [a, b, c].map(from_half);
            let exact = |bits: u64| bits as u16;
            let [dx, dy, dz] = [x, y, z].map(f64::from);
            let nearest = Rounding::Nearest;
            prop_assert_eq!(half_from_single(x + y), exact(soft::add(dx, dy, nearest, F16)));
            prop_assert_eq!(half_from_single(x * y), exact(soft::mul(dx, dy, nearest, F16)));
            prop_assert_eq!(half_from_single(odd_sum(x * y, z)), exact(soft::fma(dx, dy, dz, nearest, F16)));
            let [x, y, z] = [a, b, c].map(from_bfloat);
            let [dx, dy, dz] = [x, y, z].map(f64::from);
            prop_assert_eq!(bfloat_from_single(x + y), exact(soft::add(dx, dy, nearest, BF16)));
            prop_assert_eq!(bfloat_from_single(x * y), exact(soft::mul(dx, dy, nearest, BF16)));
            let sum = crate::warp::float::odd_sum(dx * dy, dz);
            prop_assert_eq!(bfloat_from_double(sum), exact(soft::fma(dx, dy, dz, nearest, BF16)));
        }
    }
}
