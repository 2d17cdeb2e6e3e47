//! How tensor cores add products of floating-point numbers.
//!
//! No manual says it; this is the model that Fasi, Higham, Mikaitis and Pranesh (2021), Khattak and Mikaitis (2025) and Xie
//! and others (MMA-Sim, 2025) measured. Products are exact. A group of them and the accumulator are aligned to the greatest
//! of their exponents, cut off below a fixed number of bits, and added without another error. The sum is rounded once:
//! towards zero to `f32`, to nearest to `f16`. It is the accumulator of the next group.
//!
//! Exponents are those of the operands' fields, so the product of two significands in \[1, 2) may be up to 4, and a
//! subnormal number has the exponent of the least normal one. The accumulator takes part even if it is zero: no exponent is
//! below that of the least `f32`.

/// Columns that are computed side by side.
pub(super) const COLUMNS: usize = 8;

/// Bits of a significand behind its point, after [`split`].
const SIGNIFICAND: u32 = 10;

/// Bits behind the point of the greatest exponent, in the widest model.
const WIDEST: u32 = 25;

/// The exponent of zero: below every other, also after adding two.
const ZERO: i32 = -(1 << 16);

/// What differs between tensor cores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Accumulation {
    /// Bits that are kept behind the point of the greatest exponent, at most 25.
    pub(super) fraction: u32,
    /// Products that are added at once, at most 16.
    pub(super) group: usize,
    /// Bits of the fraction of an `f32` result.
    pub(super) result: u32,
}

impl Accumulation {
    /// The tensor cores of a compute capability, for operands of this many bits.
    ///
    /// Those of 9.0 were compared with an H200, bit for bit; the others are as published.
    pub(super) fn of(capability: (u32, u32), bits: usize) -> Accumulation {
        let (fraction, bytes) = match capability {
            (9.., _) => (25, 32),
            (8, 9) if bits == 8 => return Accumulation { fraction: 13, group: 16, result: 13 },
            _ => (24, 16),
        };
        Accumulation { fraction, group: (bytes * 8 / bits).min(16), result: 23 }
    }
}

/// Numbers as signed significands, `2^-10` each, and exponents.
#[derive(Clone, Copy)]
pub(super) struct Split<const N: usize> {
    pub(super) significand: [i32; N],
    pub(super) exponent: [i32; N],
}

/// Splits numbers of a format. `true` if some are infinite or NaN.
#[inline(always)]
pub(super) fn split<const N: usize, const FRACTION: u32, const EXPONENT: u32>(
    bits: &[u32; N],
    to: &mut Split<N>,
) -> bool {
    let last = (1 << EXPONENT) - 1;
    let bias = last as i32 / 2;
    let mut special = false;
    let numbers = bits.iter().zip(&mut to.significand).zip(&mut to.exponent);
    for ((&bits, significand), exponent) in numbers {
        let field = bits >> FRACTION & last;
        let whole = u32::from(field != 0) << FRACTION | bits & ((1 << FRACTION) - 1);
        let sign = 0i32.wrapping_sub((bits >> (FRACTION + EXPONENT) & 1) as i32);
        *significand = ((whole << (SIGNIFICAND - FRACTION)) as i32 ^ sign) - sign;
        *exponent = if whole == 0 { ZERO } else { field.max(1) as i32 - bias };
        special |= field == last;
    }
    special
}

/// Adds a group of products in each column to an accumulator. The sums are exact, but for what alignment has cut off.
///
/// `a` is a row, and `b` has a row of columns for each of its elements.
#[inline(always)]
pub(super) fn add_products(
    rule: Accumulation,
    a_significand: &[i32],
    a_exponent: &[i32],
    b: &[Split<COLUMNS>],
    accumulator: [f32; COLUMNS],
) -> [f64; COLUMNS] {
    let mut c_significand = [0u32; COLUMNS];
    let mut c_sign = [0i32; COLUMNS];
    let mut c_exponent = [0i32; COLUMNS];
    for column in 0..COLUMNS {
        let bits = accumulator[column].to_bits();
        let field = bits >> 23 & 0xFF;
        c_significand[column] = u32::from(field != 0) << 23 | bits & 0x7F_FFFF;
        c_sign[column] = bits as i32 >> 31;
        c_exponent[column] = field.max(1) as i32 - 127;
    }
    let mut most = c_exponent;
    for (&a, b) in a_exponent.iter().zip(b) {
        for (most, b) in most.iter_mut().zip(b.exponent) {
            *most = (*most).max(a + b);
        }
    }
    let cut = (WIDEST - rule.fraction) as i32;
    let mut sum = [0i32; COLUMNS];
    for ((&a, &a_exponent), b) in a_significand.iter().zip(a_exponent).zip(b) {
        for column in 0..COLUMNS {
            // 16 products of at most 2047 * 2047 * 2^5 are just below 2^31.
            let product = a * b.significand[column];
            let shift = (most[column] + cut - a_exponent - b.exponent[column]).min(31);
            let magnitude = product.unsigned_abs() << (WIDEST - 2 * SIGNIFICAND) >> shift as u32;
            let sign = product >> 31;
            sum[column] = sum[column].wrapping_add((magnitude as i32 ^ sign) - sign);
        }
    }
    let mut sums = [0f64; COLUMNS];
    for column in 0..COLUMNS {
        let shift = (most[column] + cut - c_exponent[column]).min(31);
        let magnitude = c_significand[column] << (WIDEST - 23) >> shift as u32;
        let c = (magnitude as i32 ^ c_sign[column]) - c_sign[column];
        let scale = f64::from_bits(((most[column] - rule.fraction as i32 + 1023) as u64) << 52);
        sums[column] = (f64::from(sum[column]) + f64::from(c)) * scale;
    }
    sums
}

/// Cuts sums off to `f32` with this many bits of fraction. What is too large becomes infinite.
#[inline(always)]
pub(super) fn towards_zero(sums: [f64; COLUMNS], fraction: u32) -> [f32; COLUMNS] {
    let mut kept = [0f32; COLUMNS];
    let mut small = false;
    for column in 0..COLUMNS {
        let bits = sums[column].to_bits() & !((1u64 << (52 - fraction)) - 1);
        kept[column] = f64::from_bits(bits) as f32;
        small |= sums[column].abs() < f64::from(f32::MIN_POSITIVE) && sums[column] != 0.0;
    }
    if small { subnormal(sums, kept) } else { kept }
}

/// Subnormal numbers are multiples of the least one.
#[cold]
#[inline(never)]
fn subnormal(sums: [f64; COLUMNS], kept: [f32; COLUMNS]) -> [f32; COLUMNS] {
    let least = f64::from_bits((1023 - 149) << 52);
    std::array::from_fn(|column| {
        let sum = sums[column];
        if sum.abs() < f64::from(f32::MIN_POSITIVE) {
            ((sum / least).trunc() * least) as f32
        } else {
            kept[column]
        }
    })
}

/// Rounds a sum to the nearest number that an `f16` holds, ties to even.
#[inline(always)]
pub(super) fn to_nearest_half(sum: f64) -> f32 {
    let magnitude = sum.abs();
    let field = (magnitude.to_bits() >> 52) as i32;
    // Adding so large a number leaves just the bits that are kept.
    let weight = f64::from_bits(((field.clamp(1023 - 14, 1023 + 16) + 42) as u64) << 52) * 1.5;
    let rounded = ((magnitude + weight) - weight) as f32;
    let rounded = if magnitude >= 65_520.0 { f32::INFINITY } else { rounded };
    rounded.copysign(sum as f32)
}

/// The `f16` of a number that one holds, infinity or NaN.
#[inline(always)]
pub(super) fn half_bits(value: f32) -> u16 {
    // Multiplying moves the exponent to its place, with subnormal numbers where they belong.
    let moved = value.abs() * f32::from_bits((127 - 112) << 23);
    let bits = if value.is_nan() { 0x7FFF } else { (moved.to_bits() >> 13).min(0x7C00) };
    (value.to_bits() >> 16 & 0x8000 & !(u32::from(value.is_nan()) << 15) | bits) as u16
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::warp::soft::{F16, F32, Rounding, convert};
    use proptest::prelude::*;

    fn sums() -> impl Strategy<Value = f64> {
        (any::<i32>(), -180i32..130)
            .prop_map(|(significand, exponent)| f64::from(significand) * 2f64.powi(exponent - 31))
    }

    proptest! {
        #[test]
        fn a_sum_is_rounded_once(sum in sums()) {
            let half = convert(sum, Rounding::Nearest, F16) as u16;
            prop_assert_eq!(half_bits(to_nearest_half(sum)), half);
            let single = convert(sum, Rounding::Zero, F32) as u32;
            if sum.abs() < f64::from(f32::MAX) {
                prop_assert_eq!(towards_zero([sum; 8], 23)[0].to_bits(), single);
            }
        }
    }

    #[test]
    fn halves_keep_their_bits() {
        for bits in 0..=u16::MAX {
            let value = crate::warp::soft::from_half(bits);
            assert_eq!(half_bits(value), if value.is_nan() { 0x7FFF } else { bits });
            assert!(value.is_nan() || to_nearest_half(value.into()) == value);
        }
    }

    #[test]
    fn alignment_cuts_bits_off() {
        let rule = Accumulation { fraction: 25, group: 2, result: 23 };
        let sum = |a: [(i32, i32); 2], c: f32| {
            let ones = [Split { significand: [1024; 8], exponent: [0; 8] }; 2];
            add_products(rule, &a.map(|a| a.0), &a.map(|a| a.1), &ones, [c; 8])[0]
        };
        assert_eq!(sum([(1024, 0), (1024, -25)], -1.0), 2f64.powi(-25));
        assert_eq!(sum([(1024, 0), (1024, -26)], -1.0), 0.0);
        assert_eq!(sum([(-1024, 0), (-1024, -26)], 1.0), 0.0);
        assert_eq!(sum([(1024, -24), (1024, -25)], 1.0), 1.0 + 2f64.powi(-24) + 2f64.powi(-25));
    }
}
