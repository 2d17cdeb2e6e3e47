//! The same on the CPU, in f64: the answers that every result is held against.

use std::f64::consts::PI;

/// `len` floats between -1 and 1 in no order.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    (0..len as u64).map(|i| 2.0 * mixed(seed, i) - 1.0).collect()
}

/// The number in [0, 1) that `random_01_mix` makes of a seed and an index, bit for bit.
/// SplitMix64, by Sebastiano Vigna: <https://prng.di.unimi.it/splitmix64.c>.
pub fn mixed(seed: u64, i: u64) -> f32 {
    let mut z = seed.wrapping_add((i + 1).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^= z >> 31;
    (z >> 40) as f32 / (1u32 << 24) as f32
}

/// One element of the product of two matrices that lie row by row.
pub fn product_at(
    a: &[f32],
    b: &[f32],
    inner: usize,
    columns: usize,
    row: usize,
    column: usize,
) -> f64 {
    let along = &a[row * inner..][..inner];
    along.iter().enumerate().map(|(k, &a)| f64::from(a) * f64::from(b[k * columns + column])).sum()
}

/// The product of two matrices that lie row by row.
pub fn product(a: &[f32], b: &[f32], rows: usize, inner: usize, columns: usize) -> Vec<f64> {
    let places = (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)));
    places.map(|(row, column)| product_at(a, b, inner, columns, row, column)).collect()
}

/// GELU with tanh, as `gelu_01_bias` and cuBLASLt compute it.
pub fn gelu(z: f64) -> f64 {
    0.5 * z * (1.0 + ((2.0 / PI).sqrt() * (z + 0.044_715 * z * z * z)).tanh())
}

/// Softmax of one row.
pub fn softmax(row: &[f32]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = row.iter().map(|&x| (f64::from(x) - f64::from(largest)).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// Every image with every filter of 3 × 3, without a border.
pub fn convolution(x: &[f32], filters: &[f32], height: usize, width: usize) -> Vec<f64> {
    let (rows, columns) = (height.saturating_sub(2), width.saturating_sub(2));
    let mut y = Vec::new();
    for image in x.chunks_exact((height * width).max(1)) {
        for filter in filters.chunks_exact(9) {
            for (row, column) in
                (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column)))
            {
                let taps = (0..9).map(|k| {
                    let pixel = image[(row + k / 3) * width + column + k % 3];
                    f64::from(pixel) * f64::from(filter[k])
                });
                y.push(taps.sum());
            }
        }
    }
    y
}

// ANCHOR: cholesky
/// Solves `a x = b` for a symmetric positive definite `a` of `n` × `n` and `b` of `n` × `count`, row
/// by row, by Cholesky's method: a = L Lᵀ, then L y = b, then Lᵀ x = y. `None` when a pivot is not
/// positive.
pub fn solve(a: &[f64], b: &[f64], n: usize, count: usize) -> Option<Vec<f64>> {
    let mut l = a.to_vec();
    for j in 0..n {
        let squares: f64 = (0..j).map(|k| l[j * n + k].powi(2)).sum();
        let pivot = (l[j * n + j] - squares).sqrt();
        if pivot.is_nan() || pivot <= 0.0 {
            return None;
        }
        l[j * n + j] = pivot;
        for i in j + 1..n {
            let sum: f64 = (0..j).map(|k| l[i * n + k] * l[j * n + k]).sum();
            l[i * n + j] = (l[i * n + j] - sum) / pivot;
        }
    }
    let mut x = b.to_vec();
    for c in 0..count {
        for i in 0..n {
            let sum: f64 = (0..i).map(|k| l[i * n + k] * x[k * count + c]).sum();
            x[i * count + c] = (x[i * count + c] - sum) / l[i * n + i];
        }
        for i in (0..n).rev() {
            let sum: f64 = (i + 1..n).map(|k| l[k * n + i] * x[k * count + c]).sum();
            x[i * count + c] = (x[i * count + c] - sum) / l[i * n + i];
        }
    }
    Some(x)
}
// ANCHOR_END: cholesky

// ANCHOR: transform
/// The lengths of the Fourier coefficients 0 to n / 2 by their definition: n additions for each.
pub fn spectrum(x: &[f32]) -> Vec<f64> {
    let n = x.len();
    let coefficient = |k: usize| {
        let (mut re, mut im) = (0.0, 0.0);
        for (i, &x) in x.iter().enumerate() {
            let (sin, cos) = (-2.0 * PI * ((i * k) % n) as f64 / n as f64).sin_cos();
            re += f64::from(x) * cos;
            im += f64::from(x) * sin;
        }
        f64::hypot(re, im)
    };
    (0..=n / 2).map(coefficient).collect()
}
// ANCHOR_END: transform

/// How far floats are off: the root of the summed squares of the differences, over that of the
/// answers. NaN when a float is NaN.
pub fn error(found: &[f32], expected: &[f64]) -> f64 {
    let squares =
        |differences: &mut dyn Iterator<Item = f64>| differences.map(|d| d * d).sum::<f64>().sqrt();
    let differences = squares(
        &mut found.iter().zip(expected).map(|(&found, expected)| f64::from(found) - expected),
    );
    let size = squares(&mut expected.iter().copied());
    if found.len() != expected.len() {
        return f64::NAN;
    }
    if size == 0.0 { differences } else { differences / size }
}
