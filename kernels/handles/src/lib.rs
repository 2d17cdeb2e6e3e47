//! The book's kernels: the PTX of each, and a typed handle to launch it by.
//!
//! A kernel is declared once, with the signature that its CUDA C++ has. From that follow
//! - an [`Image`], such as [`VECTOR_ADD_01_SCALAR`]: name and PTX for who calls the driver himself;
//! - a module, such as [`vector_add_01_scalar`], with a `Kernel` to load and launch, and its `Arguments` by name.
//!
//! ```no_run
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use kernels::vector_add_01_scalar::{Arguments, Kernel};
//!
//! let context = cudarc::driver::CudaContext::new(0)?;
//! let stream = context.default_stream();
//! let a = stream.clone_htod(&[1.0f32, 2.0, 3.0])?;
//! let b = stream.clone_htod(&[10.0f32, 20.0, 30.0])?;
//! let mut c = stream.alloc_zeros::<f32>(3)?;
//!
//! let kernel = Kernel::load(&context)?;
//! kernel.launch(&stream, Arguments { a: &a, b: &b, c: &mut c, n: 3 })?;
//! # Ok(())
//! # }
//! ```
//!
//! A call with a missing argument, one of another type, or an input where the kernel writes, does not compile:
//!
//! ```compile_fail,E0063
//! # use kernels::vector_add_01_scalar::{Arguments, Kernel};
//! # use cudarc::driver::{CudaSlice, CudaStream};
//! fn missing(kernel: &Kernel, stream: &CudaStream, a: CudaSlice<f32>, mut c: CudaSlice<f32>) {
//!     let _ = kernel.launch(stream, Arguments { a: &a, c: &mut c, n: 3 });
//! }
//! ```
//! ```compile_fail,E0277
//! # use kernels::vector_add_01_scalar::{Arguments, Kernel};
//! # use cudarc::driver::{CudaSlice, CudaStream};
//! fn doubles(kernel: &Kernel, stream: &CudaStream, a: CudaSlice<f64>, b: CudaSlice<f32>, mut c: CudaSlice<f32>) {
//!     let _ = kernel.launch(stream, Arguments { a: &a, b: &b, c: &mut c, n: 3 });
//! }
//! ```
//! ```compile_fail,E0308
//! # use kernels::vector_add_01_scalar::{Arguments, Kernel};
//! # use cudarc::driver::{CudaSlice, CudaStream};
//! fn shared(kernel: &Kernel, stream: &CudaStream, a: CudaSlice<f32>, b: CudaSlice<f32>, c: CudaSlice<f32>) {
//!     let _ = kernel.launch(stream, Arguments { a: &a, b: &b, c: &c, n: 3 });
//! }
//! ```
//! ```compile_fail,E0502
//! # use kernels::vector_add_01_scalar::{Arguments, Kernel};
//! # use cudarc::driver::{CudaSlice, CudaStream};
//! fn in_place(kernel: &Kernel, stream: &CudaStream, a: CudaSlice<f32>, mut c: CudaSlice<f32>) {
//!     let _ = kernel.launch(stream, Arguments { a: &a, b: &c, c: &mut c, n: 3 });
//! }
//! ```
//!
//! What the types cannot say is checked at the launch: lengths, alignment, the size of the grid, and that everything
//! belongs to one device. See [`Error`].

#[macro_use]
mod declare;

mod error;
mod handle;
mod image;

pub use error::Error;
pub use handle::{BLOCK, Handle, Shape};
pub use image::{Image, Parameter, loaded};

kernel! {
    /// Several ways through the same work, step 1: neighbouring threads go different ways.
    DIVERGENCE_01_BY_LANE: fn divergence_01_by_lane(
        input: &[f32; n], output: &mut [f32; n], n: u64, ways: u32, rounds: u32
    );
    shape = Shape::blocks_of(n.div_ceil(1024), 1024);
}

kernel! {
    /// Several ways through the same work, step 2: all threads of a warp go the same way.
    DIVERGENCE_02_BY_WARP: fn divergence_02_by_warp(
        input: &[f32; n], output: &mut [f32; n], n: u64, ways: u32, rounds: u32
    );
    shape = Shape::blocks_of(n.div_ceil(1024), 1024);
}

kernel! {
    /// Threads with unequal amounts of work.
    DIVERGENCE_03_UNEVEN: fn divergence_03_uneven(rounds: &[u32; n], output: &mut [f32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Who writes which element, in one dimension.
    INDEX_01_LINE: fn index_01_line(block: &mut [u32; n], thread: &mut [u32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Who writes which element, in two dimensions.
    INDEX_02_PLANE: fn index_02_plane(
        block: &mut [u32; width * height], thread: &mut [u32; width * height], width: u32, height: u32
    );
    shape = Shape::plane((width.div_ceil(32), height.div_ceil(8)), (32, 8));
}

kernel! {
    /// Who writes which element, in three dimensions.
    INDEX_03_VOLUME: fn index_03_volume(
        block: &mut [u32; width * height * depth], thread: &mut [u32; width * height * depth],
        width: u32, height: u32, depth: u32
    );
    shape = Shape::volume((width.div_ceil(32), height.div_ceil(4), depth.div_ceil(2)), (32, 4, 2));
}

kernel! {
    /// Blocks that take their time, and say where and when they ran.
    SCHEDULE_01_SPIN: fn schedule_01_spin(
        multiprocessor: &mut [u32; blocks], begin: &mut [u64; blocks], end: &mut [u64; blocks],
        blocks: u32, cycles: u32, unequal: u32
    );
    shape = Shape::blocks(blocks);
}

kernel! {
    /// Does nothing: what a launch costs.
    LAUNCH_01_EMPTY: fn launch_01_empty();
    shape = Shape::blocks(1);
}

kernel! {
    /// Every block says what it was compiled for and where it ran, in four words: `__CUDA_ARCH__`, the warp size, the
    /// multiprocessor that it ran on, and the number of multiprocessors.
    MACHINE_01_WHO_AM_I: fn machine_01_who_am_i(answers: &mut [u32; 4 * blocks], blocks: u32);
    shape = Shape::blocks(blocks);
}

kernel! {
    /// Every image with every filter of 3 × 3, without a border: `y[image][filter][row][column]`.
    CONVOLUTION_01_DIRECT: fn convolution_01_direct(x: &[f32; images * height * width], filters: &[f32; count * 9], y: &mut [f32; images * count * height.saturating_sub(2) * width.saturating_sub(2)], images: u32, height: u32, width: u32, count: u32);
    shape = Shape::threads(images * count * height.saturating_sub(2) * width.saturating_sub(2));
}

kernel! {
    /// GELU of every element of a matrix plus its column's bias.
    GELU_01_BIAS: fn gelu_01_bias(x: &[f32; rows * columns], bias: &[f32; columns], y: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::threads(rows * columns);
}

kernel! {
    /// The product of two matrices, by tiles in shared memory; all three lie row by row.
    MATMUL_01_TILED: fn matmul_01_tiled(a: &[f32; rows * inner], b: &[f32; inner * columns], c: &mut [f32; rows * columns], rows: u32, inner: u32, columns: u32);
    shape = Shape::plane((columns.div_ceil(32), rows.div_ceil(32)), (32, 32));
}

kernel! {
    /// Random floats in [0, 1), each from the seed and its index.
    RANDOM_01_MIX: fn random_01_mix(c: &mut [f32; n], n: u64, seed: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// A sparse matrix, its rows compressed (CSR), times a dense one.
    SPARSE_01_ROW: fn sparse_01_row(offsets: &[u32; rows + 1], indices: &[u32; stored], values: &[f32; stored], b: &[f32; inner * columns], c: &mut [f32; rows * columns], stored: u32, rows: u32, inner: u32, columns: u32);
    shape = Shape::threads(rows * columns);
}

kernel! {
    /// Copy with 16-byte loads and stores: the ceiling for every kernel that streams through memory.
    COPY_01_FLOAT4: fn copy_01_float4(a: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n.div_ceil(4));
    alignment = 16;
}

kernel! {
    /// Histogram, step 1: every thread counts its byte in global memory. Adds to `bins`.
    HISTOGRAM_01_GLOBAL: fn histogram_01_global(a: &[u8; n], bins: &mut [u32; 256], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Histogram, step 2: a block counts in shared memory. Adds to `bins`.
    HISTOGRAM_02_SHARED: fn histogram_02_shared(a: &[u8; n], bins: &mut [u32; 256], n: u64, blocks: u32);
    shape = Shape::blocks_of(blocks, 512);
}

kernel! {
    /// Histogram, step 3: 16 bytes a load. Adds to `bins`.
    HISTOGRAM_03_UINT4: fn histogram_03_uint4(a: &[u8; n], bins: &mut [u32; 256], n: u64, blocks: u32);
    shape = Shape::blocks_of(blocks, 512);
    alignment = 16;
}

kernel! {
    /// Histogram, step 4: a copy of the counters for every lane, each in its own bank. Adds to `bins`.
    HISTOGRAM_04_COPIES: fn histogram_04_copies(a: &[u8; n], bins: &mut [u32; 256], n: u64, blocks: u32);
    shape = Shape::blocks_of(blocks, 512);
    alignment = 16;
}

kernel! {
    /// Histogram, step 5: sixteen equal bytes are counted at once. Adds to `bins`.
    HISTOGRAM_05_RUNS: fn histogram_05_runs(a: &[u8; n], bins: &mut [u32; 256], n: u64, blocks: u32);
    shape = Shape::blocks_of(blocks, 512);
    alignment = 16;
}

kernel! {
    /// Layer norm of every row, step 1: three passes over the row.
    LAYER_NORM_01_THREE_PASSES: fn layer_norm_01_three_passes(x: &[f32; rows * columns], weight: &[f32; columns], bias: &[f32; columns], y: &mut [f32; rows * columns], rows: u32, columns: u32, epsilon: f32);
    shape = Shape::blocks_of(rows, 256);
}

kernel! {
    /// Layer norm of every row, step 2: mean and variance in one pass.
    LAYER_NORM_02_ONLINE: fn layer_norm_02_online(x: &[f32; rows * columns], weight: &[f32; columns], bias: &[f32; columns], y: &mut [f32; rows * columns], rows: u32, columns: u32, epsilon: f32);
    shape = Shape::blocks_of(rows, 256);
}

kernel! {
    /// Layer norm of every row, step 3: the row stays in registers.
    LAYER_NORM_03_REGISTERS: fn layer_norm_03_registers(x: &[f32; rows * columns], weight: &[f32; columns], bias: &[f32; columns], y: &mut [f32; rows * columns], rows: u32, columns: u32, epsilon: f32);
    shape = Shape::blocks_of(rows, 512).limited("columns", columns, 4096);
    alignment = 16;
}

kernel! {
    /// Layer norm of every row, step 4: a row a warp, for short rows.
    LAYER_NORM_04_WARP: fn layer_norm_04_warp(x: &[f32; rows * columns], weight: &[f32; columns], bias: &[f32; columns], y: &mut [f32; rows * columns], rows: u32, columns: u32, epsilon: f32);
    shape = Shape::blocks_of(rows.div_ceil(8), 256).limited("columns", columns, 1024);
    alignment = 16;
}

kernel! {
    /// Inclusive scan, step 1: one block walks through all elements.
    SCAN_01_ONE_BLOCK: fn scan_01_one_block(a: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::blocks_of(1, 1024);
}

kernel! {
    /// Inclusive scan, step 2: the sum of every tile of 4096 elements.
    SCAN_02_TILE_SUMS: fn scan_02_tile_sums(a: &[f32; n], sums: &mut [f32; n.div_ceil(4096)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(4096), 256);
    alignment = 16;
}

kernel! {
    /// Inclusive scan, step 3: every block scans its tile of 4096 elements, after the scanned sums of the tiles before it.
    SCAN_03_DOWNSWEEP: fn scan_03_downsweep(a: &[f32; n], sums: &[f32; n.div_ceil(4096)], c: &mut [f32; n], n: u64);
    shape = Shape::blocks_of(n.div_ceil(4096), 256);
    alignment = 16;
}

kernel! {
    /// Inclusive scan, step 4: one pass, in tiles of 8192 elements; every block looks back at those before it. `state` must be 0.
    SCAN_04_LOOK_BACK: fn scan_04_look_back(a: &[f32; n], c: &mut [f32; n], state: &mut [u64; n.div_ceil(8192) + 1], n: u64);
    shape = Shape::blocks_of(n.div_ceil(8192), 128);
    alignment = 16;
}

kernel! {
    /// Inclusive scan, step 5: as step 4, and the sum of a tile is published before the tile is scanned. `state` must be 0.
    SCAN_05_PUBLISH_FIRST: fn scan_05_publish_first(a: &[f32; n], c: &mut [f32; n], state: &mut [u64; n.div_ceil(8192) + 1], n: u64);
    shape = Shape::blocks_of(n.div_ceil(8192), 128);
    alignment = 16;
}

kernel! {
    /// Read with 16-byte loads and keep nothing: the ceiling for every kernel that reads much and writes little.
    READ_01_FLOAT4: fn read_01_float4(a: &[f32; n], kept: &mut [u32; 1], n: u64, blocks: u32);
    shape = Shape::blocks_of(blocks, 512);
    alignment = 16;
}

kernel! {
    /// Softmax of every row, step 1: three passes over the row.
    SOFTMAX_01_THREE_PASSES: fn softmax_01_three_passes(x: &[f32; rows * columns], y: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::blocks_of(rows, 256);
}

kernel! {
    /// Softmax of every row, step 2: maximum and sum in one pass.
    SOFTMAX_02_ONLINE: fn softmax_02_online(x: &[f32; rows * columns], y: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::blocks_of(rows, 256);
}

kernel! {
    /// Softmax of every row, step 3: the row stays in registers.
    SOFTMAX_03_REGISTERS: fn softmax_03_registers(x: &[f32; rows * columns], y: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::blocks_of(rows, 128).limited("columns", columns, 4096);
    alignment = 16;
}

kernel! {
    /// Softmax of every row, step 4: a row a warp, for short rows.
    SOFTMAX_04_WARP: fn softmax_04_warp(x: &[f32; rows * columns], y: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::blocks_of(rows.div_ceil(8), 256).limited("columns", columns, 1024);
    alignment = 16;
}

kernel! {
    /// Sum, step 1: every thread adds its element to one number. Adds to `sum`.
    SUM_01_ATOMIC: fn sum_01_atomic(a: &[f32; n], sum: &mut [f32; 1], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Sum, step 2: a tree in shared memory. One number for every 256 elements.
    SUM_02_TREE: fn sum_02_tree(a: &[f32; n], partials: &mut [f32; n.div_ceil(256).max(1)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(256).max(1), 256);
}

kernel! {
    /// Sum, step 3: the tree, by whole warps. One number for every 256 elements.
    SUM_03_NO_DIVERGENCE: fn sum_03_no_divergence(a: &[f32; n], partials: &mut [f32; n.div_ceil(256).max(1)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(256).max(1), 256);
}

kernel! {
    /// Sum, step 4: the tree, with neighbours side by side. One number for every 256 elements.
    SUM_04_NO_CONFLICTS: fn sum_04_no_conflicts(a: &[f32; n], partials: &mut [f32; n.div_ceil(256).max(1)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(256).max(1), 256);
}

kernel! {
    /// Sum, step 5: the tree, with the first addition on the way in. One number for every 512 elements.
    SUM_05_FIRST_ADD: fn sum_05_first_add(a: &[f32; n], partials: &mut [f32; n.div_ceil(512).max(1)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(512).max(1), 256);
}

kernel! {
    /// Sum, step 6: the threads of a warp exchange registers. One number for every 512 elements.
    SUM_06_SHUFFLE: fn sum_06_shuffle(a: &[f32; n], partials: &mut [f32; n.div_ceil(512).max(1)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(512).max(1), 256);
}

kernel! {
    /// Sum, step 7: 16-byte loads. One number for every 4096 elements.
    SUM_07_FLOAT4: fn sum_07_float4(a: &[f32; n], partials: &mut [f32; n.div_ceil(4096).max(1)], n: u64);
    shape = Shape::blocks_of(n.div_ceil(4096).max(1), 256);
    alignment = 16;
}

kernel! {
    /// Sum, step 8: one launch; the block that finishes last adds up what the others left. `finished` must be 0, and is again.
    SUM_08_ONE_PASS: fn sum_08_one_pass(a: &[f32; n], sum: &mut [f32; 1], partials: &mut [f32; blocks], finished: &mut [u32; 1], n: u64, blocks: u32);
    shape = Shape::blocks_of(blocks, 512);
    alignment = 16;
}

kernel! {
    /// Vector add, step 1: one thread adds one element.
    VECTOR_ADD_01_SCALAR: fn vector_add_01_scalar(a: &[f32; n], b: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Vector add, step 2: the threads stride through the elements by the size of the grid.
    VECTOR_ADD_02_GRID_STRIDE: fn vector_add_02_grid_stride(a: &[f32; n], b: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::resident(n);
}

kernel! {
    /// Vector add, step 3: one thread adds four neighbouring elements, with 16-byte loads and stores.
    VECTOR_ADD_03_FLOAT4: fn vector_add_03_float4(a: &[f32; n], b: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n.div_ceil(4));
    alignment = 16;
}

image! {
    /// Vector add with a mistake, on purpose: step 1 without its guard. There is no typed handle: whoever launches it
    /// answers for what it overwrites.
    VECTOR_ADD_04_NO_GUARD: vector_add_04_no_guard;
}

kernel! {
    /// Copy with 4-byte loads and stores.
    COPY_02_SCALAR: fn copy_02_scalar(a: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Copy with 8-byte loads and stores.
    COPY_03_FLOAT2: fn copy_03_float2(a: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n.div_ceil(2));
    alignment = 8;
}

kernel! {
    /// Gathers every `stride`-th float.
    COPY_04_STRIDED: fn copy_04_strided(a: &[f32; n * stride], c: &mut [f32; n], n: u64, stride: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Copies floats that begin at element `offset`.
    COPY_05_OFFSET: fn copy_05_offset(a: &[f32; n + offset], c: &mut [f32; n], n: u64, offset: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Moves particles along x, from an array of structs of 8 floats.
    ADVANCE_01_STRUCTS: fn advance_01_structs(particles: &[f32; 8 * n], moved: &mut [f32; n], dt: f32, n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Moves particles along x, from a struct of arrays.
    ADVANCE_02_ARRAYS: fn advance_02_arrays(x: &[f32; n], vx: &[f32; n], moved: &mut [f32; n], dt: f32, n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Transpose, step 1: read along the rows, write along the columns.
    TRANSPOSE_01_NAIVE: fn transpose_01_naive(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((columns.div_ceil(32), rows.div_ceil(32)), (32, 8));
}

kernel! {
    /// Transpose, step 2: a tile of shared memory between reading and writing.
    TRANSPOSE_02_TILED: fn transpose_02_tiled(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((columns.div_ceil(32), rows.div_ceil(32)), (32, 8));
}

kernel! {
    /// Transpose, step 3: the tile has a column more than it needs, against bank conflicts.
    TRANSPOSE_03_PADDED: fn transpose_03_padded(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((columns.div_ceil(32), rows.div_ceil(32)), (32, 8));
}

kernel! {
    /// Transpose, step 4: the columns of the tile are exchanged, against bank conflicts.
    TRANSPOSE_04_SWIZZLED: fn transpose_04_swizzled(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((columns.div_ceil(32), rows.div_ceil(32)), (32, 8));
}

kernel! {
    /// Transpose, step 5: 16 bytes at a time, 16 elements a thread.
    TRANSPOSE_05_WIDE: fn transpose_05_wide(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((columns.div_ceil(64), rows.div_ceil(64)), (16, 16));
    alignment = 16;
}

kernel! {
    /// Transpose, step 6: the blocks go along the rows of the result.
    TRANSPOSE_06_ORDER: fn transpose_06_order(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((rows.div_ceil(64), columns.div_ceil(64)), (16, 16));
    alignment = 16;
}

kernel! {
    /// Transpose, a failure: without shared memory.
    TRANSPOSE_07_REGISTERS: fn transpose_07_registers(a: &[f32; rows * columns], c: &mut [f32; rows * columns], rows: u32, columns: u32);
    shape = Shape::plane((rows.div_ceil(64), columns.div_ceil(32)), (8, 8));
    alignment = 16;
}

kernel! {
    /// Follows a table in constant memory, with `distinct` different addresses in a warp.
    CONSTANT_01_LOOKUP: fn constant_01_lookup(c: &mut [u32; n], distinct: u32, steps: u32, n: u32);
    shape = Shape::threads(n);
}

kernel! {
    /// Follows the same table in global memory.
    CONSTANT_02_GLOBAL: fn constant_02_global(table: &[u32; 256], c: &mut [u32; n], distinct: u32, steps: u32, n: u32);
    shape = Shape::threads(n);
}

kernel! {
    /// How far the 64 values of a column lie below their maximum, with the values in registers.
    SPREAD_01_REGISTERS: fn spread_01_registers(a: &[f32; 64 * n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// The same with the values in local memory.
    SPREAD_02_LOCAL: fn spread_02_local(a: &[f32; 64 * n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// The same with too few registers, so that some of the values are spilled.
    SPREAD_03_SPILLED: fn spread_03_spilled(a: &[f32; 64 * n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n);
}

kernel! {
    /// Reads the same floats `rounds` times, past the L1 cache. `n` is a power of two.
    REREAD_01_L2: fn reread_01_l2(a: &[f32; n], sums: &mut [f32; threads], n: u64, rounds: u32, threads: u32);
    shape = Shape::threads(threads);
    alignment = 16;
}

kernel! {
    /// Every block reads the same 16 KB `rounds` times, by the L1 cache.
    REREAD_02_L1: fn reread_02_l1(a: &[f32; 4096], sums: &mut [f32; 1024 * blocks], rounds: u32, blocks: u32);
    shape = Shape::blocks_of(blocks, 1024);
    alignment = 16;
}

kernel! {
    /// Every block reads the same 16 KB `rounds` times, from its shared memory.
    REREAD_03_SHARED: fn reread_03_shared(a: &[f32; 4096], sums: &mut [f32; 1024 * blocks], rounds: u32, blocks: u32);
    shape = Shape::blocks_of(blocks, 1024);
    alignment = 16;
}

image! {
    /// One thread follows a chain through global memory. There is no typed handle: whoever launches it answers for where
    /// the chain leads.
    CHASE_01_GLOBAL: chase_01_global;
}

image! {
    /// One thread follows a chain through shared memory. There is no typed handle, as above.
    CHASE_02_SHARED: chase_02_shared;
}

kernel! {
    /// Touches one float in every `stride`.
    MANAGED_01_SPARSE: fn managed_01_sparse(a: &mut [f32; touched * stride], touched: u64, stride: u64);
    shape = Shape::threads(touched);
}

kernel! {
    /// So many rounds of one fused multiply-add on every element: work of any length.
    WORK_01_ROUNDS: fn work_01_rounds(input: &[f32; n], output: &mut [f32; n], n: u64, rounds: u32);
    shape = Shape::threads(n);
}

kernel! {
    /// A link of a chain: makes `3 x + amount` of each of at most 1024 numbers.
    CHAIN_01_STEP: fn chain_01_step(numbers: &mut [u32; n], amount: u32, n: u32);
    shape = Shape::blocks_of(1, n.next_multiple_of(32).max(32) as u32);
}

kernel! {
    /// The same link for a launch that may start before the link before it has ended.
    CHAIN_02_EARLY: fn chain_02_early(numbers: &mut [u32; n], amount: u32, n: u32);
    shape = Shape::blocks_of(1, n.next_multiple_of(32).max(32) as u32);
}

/// Every kernel of `kernels/cuda`, by name.
pub static ALL: [&Image; 73] = [
    &ADVANCE_01_STRUCTS,
    &ADVANCE_02_ARRAYS,
    &CHAIN_01_STEP,
    &CHAIN_02_EARLY,
    &CHASE_01_GLOBAL,
    &CHASE_02_SHARED,
    &CONSTANT_01_LOOKUP,
    &CONSTANT_02_GLOBAL,
    &CONVOLUTION_01_DIRECT,
    &COPY_01_FLOAT4,
    &COPY_02_SCALAR,
    &COPY_03_FLOAT2,
    &COPY_04_STRIDED,
    &COPY_05_OFFSET,
    &DIVERGENCE_01_BY_LANE,
    &DIVERGENCE_02_BY_WARP,
    &DIVERGENCE_03_UNEVEN,
    &GELU_01_BIAS,
    &HISTOGRAM_01_GLOBAL,
    &HISTOGRAM_02_SHARED,
    &HISTOGRAM_03_UINT4,
    &HISTOGRAM_04_COPIES,
    &HISTOGRAM_05_RUNS,
    &INDEX_01_LINE,
    &INDEX_02_PLANE,
    &INDEX_03_VOLUME,
    &LAUNCH_01_EMPTY,
    &LAYER_NORM_01_THREE_PASSES,
    &LAYER_NORM_02_ONLINE,
    &LAYER_NORM_03_REGISTERS,
    &LAYER_NORM_04_WARP,
    &MACHINE_01_WHO_AM_I,
    &MANAGED_01_SPARSE,
    &MATMUL_01_TILED,
    &RANDOM_01_MIX,
    &READ_01_FLOAT4,
    &REREAD_01_L2,
    &REREAD_02_L1,
    &REREAD_03_SHARED,
    &SCAN_01_ONE_BLOCK,
    &SCAN_02_TILE_SUMS,
    &SCAN_03_DOWNSWEEP,
    &SCAN_04_LOOK_BACK,
    &SCAN_05_PUBLISH_FIRST,
    &SCHEDULE_01_SPIN,
    &SOFTMAX_01_THREE_PASSES,
    &SOFTMAX_02_ONLINE,
    &SOFTMAX_03_REGISTERS,
    &SOFTMAX_04_WARP,
    &SPARSE_01_ROW,
    &SPREAD_01_REGISTERS,
    &SPREAD_02_LOCAL,
    &SPREAD_03_SPILLED,
    &SUM_01_ATOMIC,
    &SUM_02_TREE,
    &SUM_03_NO_DIVERGENCE,
    &SUM_04_NO_CONFLICTS,
    &SUM_05_FIRST_ADD,
    &SUM_06_SHUFFLE,
    &SUM_07_FLOAT4,
    &SUM_08_ONE_PASS,
    &TRANSPOSE_01_NAIVE,
    &TRANSPOSE_02_TILED,
    &TRANSPOSE_03_PADDED,
    &TRANSPOSE_04_SWIZZLED,
    &TRANSPOSE_05_WIDE,
    &TRANSPOSE_06_ORDER,
    &TRANSPOSE_07_REGISTERS,
    &VECTOR_ADD_01_SCALAR,
    &VECTOR_ADD_02_GRID_STRIDE,
    &VECTOR_ADD_03_FLOAT4,
    &VECTOR_ADD_04_NO_GUARD,
    &WORK_01_ROUNDS,
];

#[cfg(test)]
mod signatures;
