//! `cuOccupancy*`: how many blocks a multiprocessor holds, by the rules of NVIDIA's `cuda_occupancy.h`.
//!
//! Registers are those that ptxas gave, where the PTX says so, and else an estimate.

use super::{
    abi::{Out, driver},
    error::{CUresult, Result},
    function::{self, CUfunction, Function},
};
use crate::model::Limits;

/// `CUoccupancyB2DSize`: bytes of dynamic shared memory for a size of blocks.
type SharedOfBlock = Option<extern "C" fn(i32) -> usize>;

/// Registers are given to warps in units of this many.
const REGISTER_UNIT: u32 = 256;
/// A multiprocessor's parts, each with a quarter of the registers; blocks take warps in such groups.
const PARTS: u32 = 4;
/// Shared memory is given to blocks in units of this many bytes.
const SHARED_UNIT: u32 = 128;

driver! {
    /// Answers how many blocks a multiprocessor holds.
    call cuOccupancyMaxActiveBlocksPerMultiprocessor 6050 (
        answer: Out<i32>, function: CUfunction, block: i32, shared: usize,
    ) {
        max_blocks(answer, function, block, shared, 0)
    }

    /// Answers how many blocks a multiprocessor holds.
    call cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags 7000 (
        answer: Out<i32>, function: CUfunction, block: i32, shared: usize, flags: u32,
    ) {
        max_blocks(answer, function, block, shared, flags)
    }

    /// Answers a block size that fills a multiprocessor best, and how many blocks fill the device.
    call cuOccupancyMaxPotentialBlockSize 6050 (
        grid: Out<i32>, block: Out<i32>, function: CUfunction, shared_of: SharedOfBlock, shared: usize, limit: i32,
    ) {
        best_block(grid, block, function, shared_of, shared, limit, 0)
    }

    /// Answers a block size that fills a multiprocessor best, and how many blocks fill the device.
    call cuOccupancyMaxPotentialBlockSizeWithFlags 7000 (
        grid: Out<i32>, block: Out<i32>, function: CUfunction, shared_of: SharedOfBlock, shared: usize, limit: i32,
        flags: u32,
    ) {
        best_block(grid, block, function, shared_of, shared, limit, flags)
    }

    /// Answers the dynamic shared memory that leaves room for so many blocks.
    call cuOccupancyAvailableDynamicSMemPerBlock 10020 (
        answer: Out<usize>, function: CUfunction, blocks: i32, block: i32,
    ) {
        answer.check()?;
        let function = function::find(function)?;
        let blocks = u32::try_from(blocks).ok().filter(|&blocks| blocks > 0).ok_or(CUresult::INVALID_VALUE)?;
        let threads = u32::try_from(block).ok().filter(|&block| block > 0).ok_or(CUresult::INVALID_VALUE)?;
        let limits = function.context.device.model.limits;
        if blocks > blocks_per_multiprocessor(&function, threads, 0) {
            return Err(CUresult::INVALID_VALUE);
        }
        let share = (limits.shared_per_multiprocessor / blocks) / SHARED_UNIT * SHARED_UNIT;
        let room = share.saturating_sub(limits.shared_reserved_per_block).min(limits.shared_per_block_optin);
        answer.set(room.saturating_sub(function.kernel.static_shared_bytes) as usize)
    }
}

/// How many blocks of so many threads a multiprocessor holds.
pub(crate) fn blocks_per_multiprocessor(function: &Function, threads: u32, dynamic_shared_bytes: u32) -> u32 {
    let limits = function.context.device.model.limits;
    let kernel = &function.kernel;
    if threads == 0 || threads > function.max_threads() {
        return 0;
    }
    let warps = threads.div_ceil(Limits::WARP);
    let by_warps = limits.threads_per_multiprocessor / Limits::WARP / warps;

    let registers_per_warp = (function.registers() * Limits::WARP).next_multiple_of(REGISTER_UNIT);
    let grouped_warps = warps.next_multiple_of(PARTS);
    let by_registers = match registers_per_warp {
        0 => u32::MAX,
        needed if needed * grouped_warps > Limits::REGISTERS_PER_BLOCK => 0,
        needed => limits.registers_per_multiprocessor / PARTS / needed * PARTS / grouped_warps,
    };

    let shared = u64::from(kernel.static_shared_bytes) + u64::from(dynamic_shared_bytes);
    let by_shared = match shared + u64::from(limits.shared_reserved_per_block) {
        _ if shared > u64::from(limits.shared_per_block_optin) => 0,
        0 => u32::MAX,
        needed => {
            (u64::from(limits.shared_per_multiprocessor) / needed.next_multiple_of(u64::from(SHARED_UNIT)))
                as u32
        }
    };
    limits.blocks_per_multiprocessor.min(by_warps).min(by_registers).min(by_shared)
}

fn max_blocks(answer: Out<i32>, function: CUfunction, block: i32, shared: usize, flags: u32) -> Result {
    answer.check()?;
    check_flags(flags)?;
    let function = function::find(function)?;
    let threads = u32::try_from(block).ok().filter(|&block| block > 0).ok_or(CUresult::INVALID_VALUE)?;
    let shared = u32::try_from(shared).unwrap_or(u32::MAX);
    answer.set(blocks_per_multiprocessor(&function, threads, shared) as i32)
}

/// Tries every block size that is a multiple of a warp, the largest first; the first with the most threads wins.
fn best_block(
    grid: Out<i32>,
    block: Out<i32>,
    function: CUfunction,
    shared_of: SharedOfBlock,
    shared: usize,
    limit: i32,
    flags: u32,
) -> Result {
    grid.check()?;
    block.check()?;
    check_flags(flags)?;
    let function = function::find(function)?;
    let model = function.context.device.model;
    let limit = match u32::try_from(limit).map_err(|_| CUresult::INVALID_VALUE)? {
        0 => function.max_threads(),
        limit => limit.min(function.max_threads()),
    };
    let (mut best_threads, mut best, mut blocks) = (0, 0, 0);
    let mut aligned = limit.next_multiple_of(Limits::WARP);
    while aligned > 0 {
        let threads = aligned.min(limit);
        let shared = shared_of.map_or(shared, |shared_of| shared_of(threads as i32));
        let held = blocks_per_multiprocessor(&function, threads, u32::try_from(shared).unwrap_or(u32::MAX));
        if held * threads > best_threads {
            (best_threads, best, blocks) = (held * threads, threads, held);
        }
        if best_threads == model.limits.threads_per_multiprocessor {
            break;
        }
        aligned -= Limits::WARP;
    }
    grid.set((blocks * model.multiprocessors) as i32)?;
    block.set(best as i32)
}

fn check_flags(flags: u32) -> Result {
    if flags > 1 { Err(CUresult::INVALID_VALUE) } else { Ok(()) }
}
