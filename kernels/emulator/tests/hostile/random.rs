//! Numbers from a seed.

/// Marsaglia's xorshift, of 64 bits.
pub(crate) struct Random(u64);

impl Random {
    /// Numbers of a seed, whatever it is.
    pub(crate) fn new(seed: u64) -> Random {
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Any number.
    pub(crate) fn any(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// A number below another.
    pub(crate) fn below(&mut self, end: usize) -> usize {
        (self.any() >> 11) as usize % end.max(1)
    }

    /// One of several.
    pub(crate) fn pick<'a, T>(&mut self, all: &'a [T]) -> &'a T {
        &all[self.below(all.len())]
    }
}
