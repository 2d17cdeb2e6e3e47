//! The same on the CPU: the answers that every result is held against.

/// `c[j][i] = a[i][j]`, for a matrix of `rows` × `columns` floats.
// ANCHOR: transpose
pub fn transpose(a: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    (0..columns).flat_map(|j| (0..rows).map(move |i| a[i * columns + j])).collect()
}
// ANCHOR_END: transpose

/// For each of `n` columns of `a`, the sum of (maximum − value)² in f64.
pub fn spread(a: &[f32], n: usize) -> Vec<f64> {
    let column = |i: usize| a[i..].iter().step_by(n).map(|&value| f64::from(value));
    let maximum = |i: usize| column(i).fold(f64::NEG_INFINITY, f64::max);
    (0..n).map(|i| column(i).map(|value| (maximum(i) - value).powi(2)).sum()).collect()
}

/// Where a thread stands after `steps` steps through the table of the constant-memory kernels.
pub fn lookup(thread: u32, distinct: u32, steps: u32) -> u32 {
    (thread % 32 % distinct + 32 * (steps % 8)) % 256
}

/// A chain that visits each of `nodes` nodes once, in no order, and begins anew: node k is the
/// element `k * distance`, and holds the element that comes next.
pub fn chain(nodes: usize, distance: usize) -> Vec<u32> {
    // Sattolo's algorithm gives one cycle, where a plain shuffle may give several.
    let mut order: Vec<u32> = (0..nodes as u32).collect();
    let mut random = Random(nodes as u64);
    for last in (1..nodes).rev() {
        order.swap(last, random.below(last));
    }
    let mut chain = vec![0; nodes * distance];
    for (node, next) in order.into_iter().enumerate() {
        chain[node * distance] = next * distance as u32;
    }
    chain
}

/// The element at which `steps` steps along a chain end.
pub fn follow(chain: &[u32], start: u32, steps: usize) -> u32 {
    (0..steps).fold(start, |element, _| chain[element as usize])
}

/// `len` floats between 0 and 1 in no order: a computation on zeros may be faster than on real
/// data.
pub fn numbers(len: usize, seed: u64) -> Vec<f32> {
    let mut random = Random(seed);
    (0..len).map(|_| (random.next() >> 40) as f32 / (1u32 << 24) as f32).collect()
}

/// SplitMix64, by Sebastiano Vigna: <https://prng.di.unimi.it/splitmix64.c>
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `end`; `end` is far below 2^64, so that hardly any number comes more often.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chain_visits_every_node_before_it_begins_anew() {
        for (nodes, distance) in [(1, 1), (2, 32), (1000, 1), (257, 32)] {
            let chain = chain(nodes, distance);
            let ends: Vec<u32> = (1..=nodes).map(|steps| follow(&chain, 0, steps)).collect();
            assert_eq!(ends.iter().position(|&end| end == 0), Some(nodes - 1));
        }
    }

    #[test]
    fn the_table_is_followed() {
        let table: Vec<u32> = (0..256).map(|entry| (entry + 32) % 256).collect();
        for (thread, distinct, steps) in [(0, 1, 0), (37, 4, 3), (63, 32, 1025)] {
            let end = follow(&table, thread % 32 % distinct, steps as usize);
            assert_eq!(lookup(thread, distinct, steps), end);
        }
    }

    #[test]
    fn columns_become_rows() {
        assert_eq!(
            transpose(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0], 2, 3),
            [1.0, 4.0, 2.0, 5.0, 3.0, 6.0]
        );
        assert_eq!(spread(&[1.0, 5.0, 3.0, 5.0], 2), [4.0, 0.0]);
    }
}
