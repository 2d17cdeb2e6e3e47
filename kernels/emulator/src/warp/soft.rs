//! Exact floating-point arithmetic in integers, for the roundings and formats that the host's unit does not have.
//!
//! An operation yields the exact value, with a flag for what is lost below its last bit, and one function rounds it to a
//! format. Slow, and right at subnormal numbers and overflows.

/// A rounding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Towards zero.
    Zero,
    /// Down.
    Down,
    /// Up.
    Up,
    /// To nearest, ties away from zero.
    Away,
}

impl Rounding {
    /// From its number.
    #[inline(always)]
    pub(crate) fn from_bits(bits: u64) -> Rounding {
        match bits & 7 {
            0 => Rounding::Nearest,
            1 => Rounding::Zero,
            2 => Rounding::Down,
            3 => Rounding::Up,
            _ => Rounding::Away,
        }
    }
}

/// An IEEE format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Format {
    /// Bits of the fraction.
    fraction: u32,
    /// Bits of the exponent.
    exponent: u32,
    /// What it writes for NaN.
    nan: u64,
}

pub(crate) const F16: Format = Format { fraction: 10, exponent: 5, nan: 0x7FFF };
pub(crate) const BF16: Format = Format { fraction: 7, exponent: 8, nan: 0x7FFF };
pub(crate) const F32: Format = Format { fraction: 23, exponent: 8, nan: 0x7FFF_FFFF };
pub(crate) const F64: Format = Format { fraction: 52, exponent: 11, nan: 0x7FF8_0000_0000_0000 };

/// `mantissa * 2^exponent`, and a little more if `sticky`.
#[derive(Clone, Copy, Debug)]
struct Exact {
    negative: bool,
    mantissa: u128,
    exponent: i32,
    sticky: bool,
}

impl Exact {
    /// A finite number.
    fn of(value: f64) -> Exact {
        let bits = value.to_bits();
        let field = (bits >> 52 & 0x7FF) as i32;
        let fraction = bits & ((1 << 52) - 1);
        let (mantissa, exponent) =
            if field == 0 { (fraction, -1074) } else { (fraction | 1 << 52, field - 1075) };
        Exact { negative: value.is_sign_negative(), mantissa: mantissa.into(), exponent, sticky: false }
    }

    /// The same with its highest bit at bit 125.
    fn normal(self) -> Exact {
        let shift = self.mantissa.leading_zeros() as i32 - 2;
        if self.mantissa == 0 {
            return self;
        }
        Exact { mantissa: self.mantissa << shift, exponent: self.exponent - shift, ..self }
    }

    fn add(self, other: Exact, rounding: Rounding) -> Exact {
        if self.mantissa == 0 && other.mantissa == 0 {
            let negative =
                if self.negative == other.negative { self.negative } else { rounding == Rounding::Down };
            return Exact { negative, ..self };
        }
        if self.mantissa == 0 {
            return other;
        }
        if other.mantissa == 0 {
            return self;
        }
        let (a, b) = (self.normal(), other.normal());
        let (large, small) =
            if (a.exponent, a.mantissa) >= (b.exponent, b.mantissa) { (a, b) } else { (b, a) };
        let shift = (large.exponent - small.exponent) as u32;
        let kept = small.mantissa.checked_shr(shift).unwrap_or(0);
        let lost = kept.checked_shl(shift).unwrap_or(0) != small.mantissa;
        if large.negative == small.negative {
            return Exact { mantissa: large.mantissa + kept, sticky: lost, ..large };
        }
        // What is lost makes the difference a little smaller.
        let mantissa = large.mantissa - kept - u128::from(lost);
        let negative = if mantissa == 0 && !lost { rounding == Rounding::Down } else { large.negative };
        Exact { negative, mantissa, sticky: lost, ..large }
    }

    fn mul(self, other: Exact) -> Exact {
        Exact {
            negative: self.negative != other.negative,
            mantissa: self.mantissa * other.mantissa,
            exponent: self.exponent + other.exponent,
            sticky: false,
        }
    }

    fn round(self, rounding: Rounding, format: Format) -> u64 {
        let sign = u64::from(self.negative) << (format.fraction + format.exponent);
        if self.mantissa == 0 {
            return sign;
        }
        let bias = (1 << (format.exponent - 1)) - 1;
        let least = 1 - bias - format.fraction as i32;
        // The weight of the last bit that is kept.
        let top = self.exponent + 127 - self.mantissa.leading_zeros() as i32;
        let mut last = (top - format.fraction as i32).max(least);
        let shift = last - self.exponent;
        let (mut kept, half, rest) = if shift <= 0 {
            (self.mantissa << (-shift).min(127), false, self.sticky)
        } else if shift > 127 {
            (0, false, true)
        } else {
            let below = self.mantissa & ((1 << shift) - 1);
            let half = 1u128 << (shift - 1);
            (self.mantissa >> shift, below & half != 0, below & (half - 1) != 0 || self.sticky)
        };
        let inexact = half || rest;
        kept += u128::from(match rounding {
            Rounding::Nearest => half && (rest || kept & 1 != 0),
            Rounding::Away => half,
            Rounding::Zero => false,
            Rounding::Down => inexact && self.negative,
            Rounding::Up => inexact && !self.negative,
        });
        if kept >> (format.fraction + 1) != 0 {
            kept >>= 1;
            last += 1;
        }
        let normal = kept >> format.fraction != 0;
        let field = if normal { (last - least + 1) as u64 } else { 0 };
        let infinite = (1 << format.exponent) - 1;
        if field >= infinite {
            let to_largest = match rounding {
                Rounding::Zero => true,
                Rounding::Down => !self.negative,
                Rounding::Up => self.negative,
                Rounding::Nearest | Rounding::Away => false,
            };
            return sign | ((infinite << format.fraction) - u64::from(to_largest));
        }
        let fraction = kept as u64 & ((1 << format.fraction) - 1);
        sign | field << format.fraction | fraction
    }
}

fn infinity(negative: bool, format: Format) -> u64 {
    let magnitude = ((1 << format.exponent) - 1) << format.fraction;
    magnitude | u64::from(negative) << (format.fraction + format.exponent)
}

/// `a + b`
pub(crate) fn add(a: f64, b: f64, rounding: Rounding, format: Format) -> u64 {
    if !(a.is_finite() && b.is_finite()) {
        return special(a + b, format);
    }
    Exact::of(a).add(Exact::of(b), rounding).round(rounding, format)
}

/// `a * b`
pub(crate) fn mul(a: f64, b: f64, rounding: Rounding, format: Format) -> u64 {
    if !(a.is_finite() && b.is_finite()) {
        return special(a * b, format);
    }
    Exact::of(a).mul(Exact::of(b)).round(rounding, format)
}

/// `a * b + c`, rounded once
pub(crate) fn fma(a: f64, b: f64, c: f64, rounding: Rounding, format: Format) -> u64 {
    if !(a.is_finite() && b.is_finite()) {
        return special(a * b + c, format);
    }
    // The product of two finite numbers is finite here, also where a double could not hold it.
    if !c.is_finite() {
        return special(c, format);
    }
    Exact::of(a).mul(Exact::of(b)).add(Exact::of(c), rounding).round(rounding, format)
}

/// `a / b`
pub(crate) fn div(a: f64, b: f64, rounding: Rounding, format: Format) -> u64 {
    if !(a.is_finite() && b.is_finite()) || b == 0.0 || a == 0.0 {
        return special(a / b, format);
    }
    let (a, b) = (Exact::of(a).normal(), Exact::of(b));
    // 126 bits over at most 53: at least 73 bits of quotient.
    let quotient = a.mantissa / b.mantissa;
    let exact = Exact {
        negative: a.negative != b.negative,
        mantissa: quotient,
        exponent: a.exponent - b.exponent,
        sticky: quotient * b.mantissa != a.mantissa,
    };
    exact.round(rounding, format)
}

/// `sqrt(a)`
pub(crate) fn sqrt(a: f64, rounding: Rounding, format: Format) -> u64 {
    if !a.is_finite() || a <= 0.0 {
        return special(a.sqrt(), format);
    }
    let mut a = Exact::of(a).normal();
    if a.exponent & 1 != 0 {
        a.mantissa <<= 1;
        a.exponent -= 1;
    }
    let root = a.mantissa.isqrt();
    let exact = Exact {
        negative: false,
        mantissa: root,
        exponent: a.exponent / 2,
        sticky: root * root != a.mantissa,
    };
    exact.round(rounding, format)
}

/// A value in another format.
pub(crate) fn convert(a: f64, rounding: Rounding, format: Format) -> u64 {
    if !a.is_finite() {
        return special(a, format);
    }
    Exact::of(a).round(rounding, format)
}

/// An integer in a format.
pub(crate) fn from_integer(negative: bool, magnitude: u64, rounding: Rounding, format: Format) -> u64 {
    Exact { negative, mantissa: magnitude.into(), exponent: 0, sticky: false }.round(rounding, format)
}

/// Zero, infinity or NaN, in a format.
fn special(value: f64, format: Format) -> u64 {
    if value.is_nan() {
        format.nan
    } else if value.is_infinite() {
        infinity(value.is_sign_negative(), format)
    } else {
        u64::from(value.is_sign_negative()) << (format.fraction + format.exponent)
    }
}

/// A number of a 16-bit format.
#[inline(always)]
pub(crate) fn from_half(bits: u16) -> f32 {
    let sign = u32::from(bits & 0x8000) << 16;
    let magnitude = u32::from(bits & 0x7FFF);
    // The exponent is moved to its place, and what lies below the range of normal numbers is scaled by arithmetic.
    let moved = f32::from_bits((magnitude << 13) + ((127 - 15) << 23));
    let value = if magnitude >= 0x7C00 {
        f32::from_bits((magnitude << 13) | 0x7F80_0000)
    } else if magnitude < 0x0400 {
        f32::from_bits((magnitude << 13) | ((127 - 14) << 23)) - f32::from_bits((127 - 14) << 23)
    } else {
        moved
    };
    f32::from_bits(value.to_bits() | sign)
}

/// The same, and zero for subnormal numbers.
#[inline(always)]
pub(crate) fn from_half_flushed(bits: u16) -> f32 {
    from_half(if bits & 0x7C00 == 0 { bits & 0x8000 } else { bits })
}

/// A number of the other 16-bit format.
#[inline(always)]
pub(crate) fn from_bfloat(bits: u16) -> f32 {
    f32::from_bits(u32::from(bits) << 16)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Bits near the edges of formats, as well as any.
    fn odd_f64() -> impl Strategy<Value = f64> {
        let edges = prop::sample::select(vec![
            0.0,
            -0.0,
            1.0,
            -1.0,
            f64::MIN_POSITIVE,
            f64::MAX,
            5e-324,
            -5e-324,
            1.5e-310,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            2f64.powi(-126),
            2f64.powi(-149),
            2f64.powi(-150),
            65504.0,
            65520.0,
            3.4028235677973366e38,
        ]);
        prop_oneof![
            any::<u64>().prop_map(f64::from_bits),
            edges,
            (-60i32..60, any::<u32>())
                .prop_map(|(exponent, mantissa)| f64::from(mantissa) * 2f64.powi(exponent)),
        ]
    }

    fn same(bits: u64, value: f64) -> bool {
        f64::from_bits(bits).to_bits() == value.to_bits() || f64::from_bits(bits).is_nan() && value.is_nan()
    }

    proptest! {
        #[test]
        fn rounding_to_nearest_is_the_hosts(a in odd_f64(), b in odd_f64(), c in odd_f64()) {
            let nearest = Rounding::Nearest;
            prop_assert!(same(add(a, b, nearest, F64), a + b));
            prop_assert!(same(mul(a, b, nearest, F64), a * b));
            prop_assert!(same(div(a, b, nearest, F64), a / b));
            prop_assert!(same(sqrt(a, nearest, F64), a.sqrt()));
            prop_assert!(same(fma(a, b, c, nearest, F64), a.mul_add(b, c)));
            let single = f32::from_bits(convert(a, nearest, F32) as u32);
            prop_assert!(single.to_bits() == (a as f32).to_bits() || single.is_nan() && a.is_nan());
        }

        #[test]
        fn directed_roundings_are_neighbours(a in odd_f64(), b in odd_f64(), c in odd_f64()) {
            let at = |rounding| f64::from_bits(fma(a, b, c, rounding, F64));
            let (down, up, zero) = (at(Rounding::Down), at(Rounding::Up), at(Rounding::Zero));
            let nearest = a.mul_add(b, c);
            if !nearest.is_nan() {
                prop_assert!(down <= nearest && nearest <= up);
                prop_assert!(down == up || down.next_up() == up);
                let towards_zero = if nearest > 0.0 { down } else { up };
                prop_assert!(zero == towards_zero || nearest == 0.0);
            }
        }

        #[test]
        fn halves_go_there_and_back(bits in any::<u16>()) {
            let value = from_half(bits);
            let back = convert(value.into(), Rounding::Nearest, F16) as u16;
            prop_assert!(back == bits || value.is_nan() && bits & 0x7C00 == 0x7C00);
        }
    }

    #[test]
    fn a_product_that_no_double_holds_is_finite_still() {
        for rounding in [Rounding::Nearest, Rounding::Zero, Rounding::Down, Rounding::Up] {
            let sum = f64::from_bits(fma(f64::MAX, 2.0, f64::NEG_INFINITY, rounding, F64));
            assert_eq!(sum, f64::NEG_INFINITY);
        }
    }
}
