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
    /// Copy with 16-byte loads and stores: the ceiling for every kernel that streams through memory.
    COPY_01_FLOAT4: fn copy_01_float4(a: &[f32; n], c: &mut [f32; n], n: u64);
    shape = Shape::threads(n.div_ceil(4));
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

/// Every kernel of `kernels/cuda`, by name.
pub static ALL: [&Image; 14] = [
    &COPY_01_FLOAT4,
    &DIVERGENCE_01_BY_LANE,
    &DIVERGENCE_02_BY_WARP,
    &DIVERGENCE_03_UNEVEN,
    &INDEX_01_LINE,
    &INDEX_02_PLANE,
    &INDEX_03_VOLUME,
    &LAUNCH_01_EMPTY,
    &MACHINE_01_WHO_AM_I,
    &SCHEDULE_01_SPIN,
    &VECTOR_ADD_01_SCALAR,
    &VECTOR_ADD_02_GRID_STRIDE,
    &VECTOR_ADD_03_FLOAT4,
    &VECTOR_ADD_04_NO_GUARD,
];

#[cfg(test)]
mod signatures;
