//! What a typed handle costs the CPU, beside the driver's own call and cudarc's builder: `cargo bench -p kernels`.
//!
//! The kernel adds one element, so that the driver's queue is never what is waited for. On the emulated GPU a launch runs
//! at once, so there only the differences mean something.

use std::ffi::c_void;
use std::time::{Duration, Instant};

use anyhow::{Result, anyhow};
use criterion::{Criterion, criterion_group, criterion_main};
use cudarc::driver::sys::{CUdeviceptr, cuLaunchKernel};
use cudarc::driver::{CudaStream, DevicePtr, DevicePtrMut, LaunchConfig, PushKernelArg};
use kernels::vector_add_01_scalar::{Arguments, Kernel};

/// Launches between two synchronisations: fewer than a stream's queue holds.
const BATCH: u64 = 256;

fn launch(criterion: &mut Criterion) {
    if let Err(error) = ways(criterion) {
        eprintln!("launch: {error:#}");
        std::process::exit(1);
    }
}

fn ways(criterion: &mut Criterion) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let kernel = Kernel::load(&context)?;
    let (a, b) = (stream.clone_htod(&[1.0f32])?, stream.clone_htod(&[2.0f32])?);
    let mut c = stream.alloc_zeros::<f32>(1)?;
    let mut group = criterion.benchmark_group("launch");
    // The first launches load the code.
    kernel.launch(&stream, Arguments { a: &a, b: &b, c: &mut c, n: 1 })?;

    group.bench_function("cuLaunchKernel", |bencher| {
        let function = kernel.handle().cu_function();
        let address = |(address, _): (CUdeviceptr, _)| address;
        let (mut a, mut b) = (address(a.device_ptr(&stream)), address(b.device_ptr(&stream)));
        let mut c = c.device_ptr_mut(&stream).0;
        let mut n = 1u64;
        bencher.iter_custom(|times| {
            in_batches(times, &stream, || {
                let mut parameters: [*mut c_void; 4] =
                    [(&raw mut a).cast(), (&raw mut b).cast(), (&raw mut c).cast(), (&raw mut n).cast()];
                // SAFETY: the parameters are the kernel's, for arrays of one element.
                let code = unsafe {
                    cuLaunchKernel(
                        function,
                        1,
                        1,
                        1,
                        256,
                        1,
                        1,
                        0,
                        stream.cu_stream(),
                        parameters.as_mut_ptr(),
                        std::ptr::null_mut(),
                    )
                };
                code.result().map_err(|error| anyhow!("{error}"))
            })
        });
    });
    group.bench_function("typed handle", |bencher| {
        bencher.iter_custom(|times| {
            in_batches(times, &stream, || {
                Ok(kernel.launch(&stream, Arguments { a: &a, b: &b, c: &mut c, n: 1 })?)
            })
        });
    });
    // A launch of nothing never reaches the driver: what is left is the handle's own work, on any device.
    group.bench_function("typed handle, no elements", |bencher| {
        let (a, b, mut c) = (a.slice(..0), b.slice(..0), c.slice_mut(..0));
        bencher.iter(|| kernel.launch(&stream, Arguments { a: &a, b: &b, c: &mut c, n: 0 }));
    });
    group.bench_function("cudarc's builder", |bencher| {
        let config = LaunchConfig { grid_dim: (1, 1, 1), block_dim: (256, 1, 1), shared_mem_bytes: 0 };
        bencher.iter_custom(|times| {
            in_batches(times, &stream, || {
                let mut builder = stream.launch_builder(kernel.handle().function());
                builder.arg(&a).arg(&b).arg(&mut c).arg(&1u64);
                // SAFETY: the parameters are the kernel's, for arrays of one element.
                unsafe { builder.launch(config) }?;
                Ok(())
            })
        });
    });
    group.finish();
    Ok(())
}

/// The time of so many launches, without the waiting between batches.
fn in_batches(times: u64, stream: &CudaStream, mut launch: impl FnMut() -> Result<()>) -> Duration {
    let mut spent = Duration::ZERO;
    let mut left = times;
    while left > 0 {
        let batch = left.min(BATCH);
        let start = Instant::now();
        for _ in 0..batch {
            if let Err(error) = launch() {
                panic!("{error:#}");
            }
        }
        spent += start.elapsed();
        if let Err(error) = stream.synchronize() {
            panic!("{error:#}");
        }
        left -= batch;
    }
    spent
}

criterion_group!(benches, launch);
criterion_main!(benches);
