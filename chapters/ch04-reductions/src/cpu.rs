//! The same on the CPU: the answers in f64 that every result is held against, and sums of floats in
//! several orders.

/// `len` floats between 0 and 1 in no order.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    random(len, seed).map(|bits| (bits >> 40) as f32 / (1u32 << 24) as f32).collect()
}

/// `len` bytes in no order, all equally likely.
pub fn bytes(len: usize, seed: u64) -> Vec<u8> {
    random(len, seed).map(|bits| (bits >> 56) as u8).collect()
}

/// SplitMix64, by Sebastiano Vigna: <https://prng.di.unimi.it/splitmix64.c>.
fn random(len: usize, seed: u64) -> impl Iterator<Item = u64> {
    let mut state = seed;
    (0..len).map(move |_| {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = state;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    })
}

/// The sum in f64. Its own error is some 10⁻¹³ of it, far below what f32 can show.
pub fn sum(a: &[f32]) -> f64 {
    a.iter().copied().map(f64::from).sum()
}

/// The inclusive scan in f64.
pub fn scan(a: &[f32]) -> Vec<f64> {
    let running = a.iter().scan(0.0, |sum, &x| {
        *sum += f64::from(x);
        Some(*sum)
    });
    running.collect()
}

/// How often each byte occurs.
pub fn histogram(a: &[u8]) -> [u32; 256] {
    let mut bins = [0; 256];
    a.iter().for_each(|&byte| bins[usize::from(byte)] += 1);
    bins
}

/// Softmax of one row in f64. A NaN or an infinity in the row makes all of it NaN, and so does a
/// row of nothing but -∞; a single -∞ gives 0. PyTorch, JAX and NumPy's formula do the same.
pub fn softmax(row: &[f32]) -> Vec<f64> {
    let largest = row.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let powers: Vec<f64> = row.iter().map(|&x| (f64::from(x) - f64::from(largest)).exp()).collect();
    let sum: f64 = powers.iter().sum();
    powers.iter().map(|power| power / sum).collect()
}

/// Layer norm of one row in f64, and by how much its differences from the mean were scaled.
pub fn layer_norm(row: &[f32], weight: &[f32], bias: &[f32], epsilon: f64) -> (Vec<f64>, f64) {
    let n = row.len() as f64;
    let mean = sum(row) / n;
    let variance = row.iter().map(|&x| (f64::from(x) - mean).powi(2)).sum::<f64>() / n;
    let scale = 1.0 / (variance + epsilon).sqrt();
    let scaled = row.iter().zip(weight.iter().zip(bias)).map(|(&x, (&weight, &bias))| {
        (f64::from(x) - mean) * scale * f64::from(weight) + f64::from(bias)
    });
    (scaled.collect(), scale)
}

// ANCHOR: orders
/// One after the other, as a loop does it.
pub fn serial(a: &[f32]) -> f32 {
    a.iter().fold(0.0, |sum, x| sum + x)
}

/// In blocks of 256, one after the other, and the blocks' sums one after the other.
pub fn blocked(a: &[f32]) -> f32 {
    a.chunks(256).map(serial).fold(0.0, |sum, x| sum + x)
}

/// As a tree: the sum of the left half and the sum of the right half.
pub fn tree(a: &[f32]) -> f32 {
    match a {
        [] => 0.0,
        [x] => *x,
        _ => {
            let (left, right) = a.split_at(a.len() / 2);
            tree(left) + tree(right)
        }
    }
}

/// One after the other, with what was rounded away carried along.
/// W. Kahan, Communications of the ACM 8 (1965).
pub fn compensated(a: &[f32]) -> f32 {
    let (mut sum, mut lost) = (0.0f32, 0.0f32);
    for &x in a {
        let x = x - lost;
        let next = sum + x;
        lost = (next - sum) - x;
        sum = next;
    }
    sum
}
// ANCHOR_END: orders
