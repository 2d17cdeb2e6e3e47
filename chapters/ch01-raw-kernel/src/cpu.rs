//! The same addition on the CPU: the answer that every result is held against, and the time to
//! beat.

use std::thread;

/// The sum in f64, rounded once to f32: what a correct kernel must give, bit for bit.
pub fn reference(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(&x, &y)| (f64::from(x) + f64::from(y)) as f32).collect()
}

// ANCHOR: one_thread
/// `c = a + b` on one thread. The compiler turns the loop into vector instructions.
pub fn add(a: &[f32], b: &[f32], c: &mut [f32]) {
    for ((x, y), sum) in a.iter().zip(b).zip(c) {
        *sum = x + y;
    }
}
// ANCHOR_END: one_thread

// ANCHOR: all_cores
/// `c = a + b` on `threads` threads, each with its own stretch of the vectors.
pub fn add_in_parallel(a: &[f32], b: &[f32], c: &mut [f32], threads: usize) {
    let stretch = a.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        for ((a, b), c) in a.chunks(stretch).zip(b.chunks(stretch)).zip(c.chunks_mut(stretch)) {
            scope.spawn(|| add(a, b, c));
        }
    });
}
// ANCHOR_END: all_cores

/// `len` floats between 0 and 1 in no order: a computation on zeros may be faster than on real
/// data.
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
