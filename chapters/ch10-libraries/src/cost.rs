//! What a call costs the CPU.

use anyhow::{Context, Result};
use cudarc::cublaslt::{Activation, CudaBlasLT, Matmul, MatmulConfig};
use half::bf16;
use lab::timing::{self, Timing};
use lab::{Axis, Cell, Figure, Point, Series};

use crate::blas::{Blas, Factors};
use crate::by_hand::ByHand;
use crate::device::Device;
use crate::layer::{Epilogue, Layer, Problem};
use crate::layout::Sizes;

/// Calls in a row, fewer than what the driver queues.
const CALLS: usize = 200;
/// The side of matrices so small that the device is not waited for.
pub const SIDE: usize = 32;

/// CPU time of one call among [`CALLS`], which are not waited for.
pub fn enqueue(device: &Device, mut call: impl FnMut() -> Result<()>) -> Result<Option<Timing>> {
    let times = timing::laps(2, |clock| {
        (0..CALLS).try_for_each(|_| call())?;
        clock.lap();
        device.stream.synchronize()?;
        clock.lap();
        Ok(())
    })?;
    Ok(times.map(|times| times[0]))
}

fn each(time: Option<Timing>) -> Point {
    time.map(|time| {
        let point = time.each(CALLS);
        let micro = |seconds: Option<f64>| seconds.map(|seconds| 1e6 * seconds);
        Point {
            value: micro(point.value),
            low: micro(point.low),
            high: micro(point.high),
            samples: point.samples,
        }
    })
    .into()
}

/// A launch of our own, and calls of several kinds.
pub fn cost(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let hand = ByHand::load(&device)?;
    let sizes = Sizes::square(SIDE);
    let factors = Factors::new(&device, sizes)?;
    let mut c = device.zeros::<f32>(SIDE * SIDE)?;
    let mut series = Series::measured("call", "us").label("CPU time");
    let launch = enqueue(&device, || hand.matmul(sizes, &factors.a, &factors.b, &mut c))?;
    series.push("our kernel", each(launch));
    let sgemm = match Blas::open(&device)? {
        Err(missing) => {
            cell.measured_text(format!("{missing}."));
            None
        }
        Ok(blas) => {
            let handle = timing::host_call(|| Blas::open(&device).map(drop))?;
            let micro = handle.map(|time| 1e6 * time.median);
            cell.measured("handle", micro, "us");
            enqueue(&device, || blas.product(sizes, &factors.a, &factors.b, &mut c))?
        }
    };
    series.push("cuBLAS", each(sgemm));
    let (mut kept, mut asked) = (None, None);
    match Layer::prepare::<bf16>(&device, sizes, true, Epilogue::BiasGelu)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(layer) => {
            let mut p = Problem::<bf16>::new(&device, sizes)?;
            kept = enqueue(&device, || layer.enqueue(0, &p.on_x, &p.on_w, &p.on_b, &mut p.y))?;
            let lt = CudaBlasLT::new(device.stream.clone()).context("opening cuBLASLt")?;
            let side = SIDE as u64;
            let config = MatmulConfig {
                transa: true,
                transb: false,
                transc: false,
                m: side,
                n: side,
                k: side,
                alpha: 1.0,
                lda: SIDE as i64,
                ldb: SIDE as i64,
                beta: 0.0,
                ldc: SIDE as i64,
                stride_a: None,
                stride_b: None,
                stride_c: None,
                stride_bias: None,
                batch_size: None,
            };
            asked = enqueue(&device, || {
                // SAFETY: all matrices hold 32 × 32 elements, and the bias 32.
                unsafe {
                    lt.matmul(
                        config,
                        &p.on_w,
                        &p.on_x,
                        &mut p.y,
                        Some(&p.on_b),
                        Some(&Activation::Gelu),
                    )
                }
                .context("calling cublasLtMatmul")
            })?;
        }
    }
    series.push("cuBLASLt kept", each(kept));
    series.push("cuBLASLt asked", each(asked));
    cell.series(series);
    cell.figure(
        Figure::new(
            "What does a call cost the CPU?",
            "CPU time of one call for matrices of 32 x 32: a call of cuBLAS costs as much as three or four launches of a kernel, a \
             call of cuBLASLt about two.",
        )
        .x(Axis::labels("call"))
        .y(Axis::linear("CPU time of a call", "us"))
        .series(["call"]),
    );
    Ok(())
}
