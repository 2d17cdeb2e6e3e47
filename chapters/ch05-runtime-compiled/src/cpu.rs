//! The same on the CPU, to hold the device against.

/// `a + b`, element by element.
pub fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(a, b)| a + b).collect()
}

/// A polynomial by Horner's rule, with one rounding a step as `fmaf` has it.
pub fn polynomial(coefficients: &[f32], x: f32) -> f32 {
    coefficients
        .iter()
        .rev()
        .copied()
        .reduce(|sum, coefficient| sum.mul_add(x, coefficient))
        .unwrap_or(0.0)
}

/// The first coefficients of the exponential function, 1/k!, from the constant up.
pub fn exponential(degree: usize) -> Vec<f32> {
    let factorials = std::iter::successors(Some((0, 1.0f64)), |&(k, last)| {
        Some((k + 1, last / f64::from(k + 1)))
    });
    factorials.take(degree + 1).map(|(_, coefficient)| coefficient as f32).collect()
}

/// `len` numbers between 0 and 1, the same for the same seed.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    // SplitMix64, by Sebastiano Vigna: https://prng.di.unimi.it/splitmix64.c
    let mut state = seed;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    };
    (0..len).map(|_| (next() >> 40) as f32 / (1u32 << 24) as f32).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_polynomial_is_the_exponential_function() {
        let coefficients = exponential(24);
        assert_eq!(coefficients[..4], [1.0, 1.0, 0.5, 1.0 / 6.0]);
        for x in numbers(1000, 3) {
            let (found, expected) = (f64::from(polynomial(&coefficients, x)), f64::from(x).exp());
            assert!((found / expected - 1.0).abs() < 2e-7, "{x}: {found}, {expected}");
        }
        assert_eq!(polynomial(&[], 2.0), 0.0);
        assert_eq!(polynomial(&[5.0], 2.0), 5.0);
    }
}
