//! Every typed handle, launched at awkward sizes on whatever device is there.

use std::sync::Arc;

use anyhow::Result;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use kernels::{
    Error, copy_01_float4, launch_01_empty, machine_01_who_am_i, transpose_01_naive, vector_add_01_scalar,
    vector_add_02_grid_stride, vector_add_03_float4,
};

/// Around nothing, one warp, one block, and more than one round of a grid.
const SIZES: [usize; 8] = [0, 1, 31, 33, 255, 1000, 1023, 65_537];

fn a(i: usize) -> f32 {
    i as f32
}

fn b(i: usize) -> f32 {
    0.5 * i as f32
}

/// Device memory of a length with these values. cudarc allocates nothing for a length of 0, so that is a view of one.
fn filled(stream: &Arc<CudaStream>, n: usize, value: fn(usize) -> f32) -> Result<CudaSlice<f32>> {
    Ok(stream.clone_htod(&(0..n.max(1)).map(value).collect::<Vec<f32>>())?)
}

type Launch<'a> = &'a dyn Fn(
    &dyn DevicePtr<f32>,
    &dyn DevicePtr<f32>,
    &mut dyn DevicePtrMut<f32>,
    u64,
) -> Result<(), Error>;

fn check_vector_add(context: &Arc<CudaContext>, launch: Launch<'_>) -> Result<()> {
    let stream = context.default_stream();
    for n in SIZES {
        let (device_a, device_b) = (filled(&stream, n, a)?, filled(&stream, n, b)?);
        let mut device_c = filled(&stream, n + 1, |_| -1.0)?;
        launch(&device_a.slice(..n), &device_b.slice(..n), &mut device_c.slice_mut(..n), n as u64)?;
        let c = stream.clone_dtoh(&device_c)?;
        let expected: Vec<f32> = (0..n).map(|i| a(i) + b(i)).chain([-1.0]).collect();
        assert_eq!(c, expected, "n = {n}");
    }
    Ok(())
}

#[test]
fn vector_add_01_scalar_adds() -> Result<()> {
    use vector_add_01_scalar::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    check_vector_add(&context, &|a, b, c, n| kernel.launch(&stream, Arguments { a, b, c, n }))
}

#[test]
fn vector_add_02_grid_stride_adds_in_any_grid() -> Result<()> {
    use vector_add_02_grid_stride::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    check_vector_add(&context, &|a, b, c, n| kernel.launch(&stream, Arguments { a, b, c, n }))?;

    let small =
        cudarc::driver::LaunchConfig { grid_dim: (3, 1, 1), block_dim: (96, 1, 1), shared_mem_bytes: 0 };
    check_vector_add(&context, &|a, b, c, n| {
        // SAFETY: the kernel takes any number of blocks of any size.
        unsafe { kernel.launch_with(&stream, small, Arguments { a, b, c, n }) }
    })
}

#[test]
fn vector_add_03_float4_adds_with_its_tail() -> Result<()> {
    use vector_add_03_float4::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    check_vector_add(&context, &|a, b, c, n| kernel.launch(&stream, Arguments { a, b, c, n }))
}

#[test]
fn copy_01_float4_copies_with_its_tail() -> Result<()> {
    use copy_01_float4::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    for n in SIZES {
        let device_a = filled(&stream, n, a)?;
        let mut device_c = filled(&stream, n + 1, |_| -1.0)?;
        let arguments = Arguments { a: &device_a.slice(..n), c: &mut device_c.slice_mut(..n), n: n as u64 };
        kernel.launch(&stream, arguments)?;
        let expected: Vec<f32> = (0..n).map(a).chain([-1.0]).collect();
        assert_eq!(stream.clone_dtoh(&device_c)?, expected, "n = {n}");
    }
    Ok(())
}

#[test]
fn machine_01_who_am_i_answers_for_every_block() -> Result<()> {
    use machine_01_who_am_i::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    let blocks = 33u32;
    let mut answers = stream.alloc_zeros::<u32>(4 * blocks as usize)?;
    kernel.launch(&stream, Arguments { answers: &mut answers, blocks })?;
    for answer in stream.clone_dtoh(&answers)?.chunks(4) {
        // The PTX is compiled for compute_75; warps have 32 threads; a block runs on one of the multiprocessors.
        assert_eq!(answer[..2], [750, 32]);
        assert!(answer[2] < answer[3], "multiprocessor {} of {}", answer[2], answer[3]);
    }
    Ok(())
}

#[test]
fn launch_01_empty_does_nothing() -> Result<()> {
    let context = lab::open_device()?;
    launch_01_empty::Kernel::load(&context)?.launch(&context.default_stream())?;
    Ok(context.synchronize()?)
}

#[test]
fn a_wrong_length_is_an_error_and_no_launch() -> Result<()> {
    use vector_add_01_scalar::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    let (a, b, mut c) =
        (filled(&stream, 1000, a)?, filled(&stream, 999, b)?, filled(&stream, 1000, |_| -1.0)?);
    let error = kernel.launch(&stream, Arguments { a: &a, b: &b, c: &mut c, n: 1000 }).unwrap_err();
    assert_eq!(
        error.to_string(),
        "launching vector_add_01_scalar: `b` has 999 elements and must have n = 1000"
    );
    assert_eq!(stream.clone_dtoh(&c)?, vec![-1.0; 1000]);

    let mut answers = stream.alloc_zeros::<u32>(4)?;
    let kernel = machine_01_who_am_i::Kernel::load(&context)?;
    // 4 * 2^30 is 2^32: a product of 32 bits would be 0.
    let arguments = machine_01_who_am_i::Arguments { answers: &mut answers, blocks: 1 << 30 };
    let error = kernel.launch(&stream, arguments).unwrap_err();
    assert!(error.to_string().ends_with("must have 4 * blocks = 4294967296"), "{error}");
    Ok(())
}

#[test]
fn a_slice_between_16_byte_boundaries_is_an_error_for_wide_loads() -> Result<()> {
    use vector_add_03_float4::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    let (a, b, mut c) = (filled(&stream, 9, a)?, filled(&stream, 9, b)?, filled(&stream, 8, |_| -1.0)?);
    let arguments = Arguments { a: &a.slice(..8), b: &b.slice(1..), c: &mut c, n: 8 };
    let error = kernel.launch(&stream, arguments).unwrap_err();
    assert!(matches!(error, Error::Alignment { argument: "b", elements: 4, .. }), "{error}");
    Ok(())
}

#[test]
fn more_rows_of_blocks_than_a_plane_has_are_an_error() -> Result<()> {
    use transpose_01_naive::{Arguments, Kernel};
    let context = lab::open_device()?;
    let kernel = Kernel::load(&context)?;
    let stream = context.default_stream();
    let most = 32 * 65_535u32;
    let a = stream.alloc_zeros::<f32>(most as usize + 1)?;
    let mut c = stream.alloc_zeros::<f32>(most as usize + 1)?;
    let arguments = Arguments { a: &a, c: &mut c, rows: most + 1, columns: 1 };
    let error = kernel.launch(&stream, arguments).unwrap_err().to_string();
    assert!(error.contains("65536 rows (or layers) of blocks exceed the 65535 of a grid"), "{error}");
    // Along x a grid has room for it.
    kernel.launch(&stream, Arguments { a: &a, c: &mut c, rows: 1, columns: most + 1 })?;
    Ok(stream.synchronize()?)
}
