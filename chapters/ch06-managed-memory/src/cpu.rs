//! The same on the CPU: the answers that every result is held against, and touches of pages.

/// `a + b` in f64, rounded once to f32. The sum of two floats is exact in f64 or rounds the same way,
/// so the GPU's sum must equal it bit for bit.
pub fn sum(a: &[f32], b: &[f32]) -> Vec<f32> {
    a.iter().zip(b).map(|(&a, &b)| (f64::from(a) + f64::from(b)) as f32).collect()
}

/// `len` floats between 0 and 1 in no order: a computation on zeros may be faster than on real
/// data.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    // SplitMix64, by Sebastiano Vigna: <https://prng.di.unimi.it/splitmix64.c>
    let mut state = seed;
    let next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((z ^ (z >> 31)) >> 40) as f32 / (1u32 << 24) as f32
    };
    std::iter::repeat_with(next).take(len).collect()
}

/// Floats in a page of 4096 bytes.
pub const PAGE: usize = 4096 / size_of::<f32>();

// ANCHOR: touch
/// Reads one float of each page, which is enough to bring the page here.
pub fn read_pages(memory: &[f32]) -> f32 {
    memory.iter().step_by(PAGE).sum()
}

/// Writes one float of each page, and changes nothing.
pub fn write_pages(memory: &mut [f32]) {
    for float in memory.iter_mut().step_by(PAGE) {
        let value = *float;
        // Without `black_box`, a store of what is there already would be left out.
        *float = std::hint::black_box(value);
    }
}
// ANCHOR_END: touch

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touches_reach_each_page_once() {
        let mut memory = vec![1.0; 3 * PAGE + 1];
        assert_eq!(read_pages(&memory), 4.0);
        write_pages(&mut memory);
        assert!(memory.iter().all(|&float| float == 1.0));
    }

    #[test]
    fn numbers_are_neither_alike_nor_out_of_range() {
        let numbers = numbers(1000, 1);
        assert!(numbers.iter().all(|number| (0.0..1.0).contains(number)));
        assert_ne!(numbers[0], numbers[1]);
        assert_eq!(sum(&[1.0, 0.5], &[2.0, 0.25]), [3.0, 0.75]);
    }
}
