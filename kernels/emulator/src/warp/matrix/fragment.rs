//! How the lanes of a warp hold a matrix.
//!
//! A fragment is a list of blocks of 8 rows. Lane `l` holds some neighbouring elements of row `l / 4` of each block, those
//! at `l % 4` times their number: one element of 32 or more bits, two of 16, four of 8, in one register; two in the
//! accumulators. The rows of a block are those of A, C and D, and the columns of B, so that neighbours have consecutive `k`
//! where there is one.
//!
//! The manual documents this for `mma`, and leaves fragments of `wmma` open. Those here are what NVIDIA's assembler makes
//! of `wmma` for sm_75 to sm_90: the fragments of the `mma` that it becomes. The 16-bit A and B of 16 x 16 matrices are
//! there twice, and 8 x 32 x 16 is computed as 32 x 8 x 16 of transposed matrices.

/// The rows of a matrix that a block holds, and the elements of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    /// The first row.
    pub(super) outer: u32,
    /// The first element of each row.
    pub(super) inner: u32,
}

/// Blocks of a matrix of some rows, `inner` elements each, `step` of them in a block. Two blocks of rows go together, as
/// in the A of `mma`, if `pairs`.
pub(super) fn blocks(outer: u32, inner: u32, step: u32, pairs: bool) -> Vec<Block> {
    let mut blocks = Vec::new();
    let height = if pairs { outer.min(16) } else { 8 };
    for top in (0..outer).step_by(height as usize) {
        for inner in (0..inner).step_by(step as usize) {
            for outer in (top..top + height).step_by(8) {
                blocks.push(Block { outer, inner });
            }
        }
    }
    blocks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(found: Vec<Block>, expected: &[(u32, u32)]) {
        let found: Vec<_> = found.iter().map(|block| (block.outer, block.inner)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn blocks_of_a_and_b() {
        check(blocks(16, 16, 8, true), &[(0, 0), (8, 0), (0, 8), (8, 8)]);
        check(blocks(8, 16, 8, false), &[(0, 0), (0, 8)]);
        check(blocks(16, 16, 8, false), &[(0, 0), (0, 8), (8, 0), (8, 8)]);
        check(blocks(32, 16, 16, true), &[(0, 0), (8, 0), (16, 0), (24, 0)]);
    }
}
