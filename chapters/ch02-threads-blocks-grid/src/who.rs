//! Who writes which element: the three index kernels, and the same arithmetic on the CPU.

use std::sync::Arc;

use anyhow::Result;
use cudarc::driver::{CudaContext, LaunchConfig};
use kernels::{index_01_line, index_02_plane, index_03_volume};

/// For each element, in the order of memory, who wrote it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Who {
    /// The block's number in the grid, counted along x, then y, then z.
    pub block: Vec<u32>,
    /// The thread's number in its block, counted the same way.
    pub thread: Vec<u32>,
}

/// What stands where no thread has written.
pub const NOBODY: u32 = u32::MAX;

// ANCHOR: grid_for
/// The launch that has a thread for each element of `size`, in blocks of `block` threads: whole
/// blocks, rounded up along each dimension.
pub fn grid_for(size: [u32; 3], block: [u32; 3]) -> LaunchConfig {
    let [x, y, z] = [0, 1, 2].map(|along| size[along].div_ceil(block[along]));
    LaunchConfig { grid_dim: (x, y, z), block_dim: block.into(), shared_mem_bytes: 0 }
}
// ANCHOR_END: grid_for

/// Lets the kernel for as many dimensions as `size` has write down who is who. Dimensions that are
/// not needed have size 1, in the block too.
pub fn ask(context: &Arc<CudaContext>, size: [u32; 3], block: [u32; 3]) -> Result<Who> {
    let stream = context.default_stream();
    let [width, height, depth] = size;
    let elements = size.iter().map(|&along| along as usize).product();
    // There is no memory of no bytes.
    let nobody = vec![NOBODY; usize::max(elements, 1)];
    let mut blocks = stream.clone_htod(&nobody)?;
    let mut threads = stream.clone_htod(&nobody)?;
    {
        let mut blocks = blocks.slice_mut(..elements);
        let mut threads = threads.slice_mut(..elements);
        let config = grid_for(size, block);
        if depth > 1 || block[2] > 1 {
            let kernel = index_03_volume::Kernel::load(context)?;
            let arguments = index_03_volume::Arguments {
                block: &mut blocks,
                thread: &mut threads,
                width,
                height,
                depth,
            };
            // SAFETY: this kernel takes any three-dimensional launch.
            unsafe { kernel.launch_with(&stream, config, arguments)? };
        } else if height > 1 || block[1] > 1 {
            let kernel = index_02_plane::Kernel::load(context)?;
            // ANCHOR: plane
            let arguments = index_02_plane::Arguments {
                block: &mut blocks,
                thread: &mut threads,
                width,
                height,
            };
            // SAFETY: this kernel takes any two-dimensional launch.
            unsafe { kernel.launch_with(&stream, config, arguments)? };
            // ANCHOR_END: plane
        } else {
            let kernel = index_01_line::Kernel::load(context)?;
            let arguments = index_01_line::Arguments {
                block: &mut blocks,
                thread: &mut threads,
                n: u64::from(width),
            };
            // SAFETY: this kernel takes any one-dimensional launch.
            unsafe { kernel.launch_with(&stream, config, arguments)? };
        }
    }
    let mut who = Who { block: stream.clone_dtoh(&blocks)?, thread: stream.clone_dtoh(&threads)? };
    who.block.truncate(elements);
    who.thread.truncate(elements);
    Ok(who)
}

/// What [`ask`] must answer, worked out element by element on the CPU.
pub fn expected(size: [u32; 3], block: [u32; 3]) -> Who {
    let grid = grid_for(size, block).grid_dim;
    let mut who = Who { block: Vec::new(), thread: Vec::new() };
    for z in 0..size[2] {
        for y in 0..size[1] {
            for x in 0..size[0] {
                let [bx, by, bz] = [x / block[0], y / block[1], z / block[2]];
                let [tx, ty, tz] = [x % block[0], y % block[1], z % block[2]];
                who.block.push((bz * grid.1 + by) * grid.0 + bx);
                who.thread.push((tz * block[1] + ty) * block[0] + tx);
            }
        }
    }
    who
}
