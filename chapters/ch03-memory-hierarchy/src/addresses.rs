//! What a warp's addresses cost, by arithmetic alone. The chapter holds every count that is made
//! here against the counters of the emulated GPU.

/// A *sector* is what the memory system moves at least: 32 bytes that start at a multiple of 32.
pub const SECTOR_BYTES: usize = 32;

/// Threads that execute one instruction together.
pub const WARP: usize = 32;

/// Shared memory has this many *banks*, each of which serves one 4-byte word at a time.
pub const BANKS: usize = 32;

// ANCHOR: sectors
/// How many sectors a warp touches that accesses `bytes` bytes at each of these byte addresses.
pub fn sectors(addresses: impl Iterator<Item = usize>, bytes: usize) -> usize {
    let mut sectors: Vec<usize> = addresses
        .flat_map(|address| address / SECTOR_BYTES..=(address + bytes - 1) / SECTOR_BYTES)
        .collect();
    sectors.sort_unstable();
    sectors.dedup();
    sectors.len()
}
// ANCHOR_END: sectors

// ANCHOR: banks
/// How many lanes of a warp want each bank, each lane the 4-byte word of this number.
pub fn lanes_per_bank(words: impl Iterator<Item = usize>) -> [usize; BANKS] {
    let mut lanes = [0; BANKS];
    words.for_each(|word| lanes[word % BANKS] += 1);
    lanes
}

/// How many passes through the banks it takes, if no two lanes want the same word.
pub fn wavefronts(words: impl Iterator<Item = usize>) -> usize {
    lanes_per_bank(words).into_iter().max().unwrap_or(0)
}
// ANCHOR_END: banks

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sectors_are_counted_once() {
        assert_eq!(sectors((0..32).map(|lane| 4 * lane), 4), 4);
        assert_eq!(sectors((0..32).map(|lane| 16 * lane), 16), 16);
        assert_eq!(sectors((0..32).map(|lane| 4 * lane + 4), 4), 5);
        assert_eq!(sectors((0..32).map(|lane| 256 * lane), 4), 32);
        assert_eq!(sectors((0..32).map(|_| 30), 4), 2);
    }

    #[test]
    fn the_busiest_bank_decides() {
        assert_eq!(wavefronts(0..32), 1);
        assert_eq!(wavefronts((0..32).map(|lane| 32 * lane)), 32);
        assert_eq!(wavefronts((0..32).map(|lane| 2 * lane)), 2);
        assert_eq!(lanes_per_bank((0..32).map(|lane| 33 * lane)), [1; BANKS]);
    }
}
