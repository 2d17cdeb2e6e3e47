//! Every operation in one picture, and each library once for a profiler.

use anyhow::{Context, Result};
use lab::{Axis, Cell, Figure, Series, Table, row, timing};

use crate::blas::{self, Blas, Factors};
use crate::by_hand::{ByHand, DeviceSparse, Images};
use crate::convolution::{Dnn, FILTERS};
use crate::data::{Digits, PIXELS, SIDE, Sparse};
use crate::device::Device;
use crate::layer::{Epilogue, Layer, Problem};
use crate::layout::Sizes;
use crate::outcome::Outcome;
use crate::solver::Solver;
use crate::{convolution, cpu, layer, random, sparse, spectrum};

/// When is one call better?
pub(crate) fn whole(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let hand = ByHand::load(&device)?;
    cell.progress(7);
    let mut outcomes: Vec<Outcome> = Vec::new();
    cell.tick("product");
    outcomes.push(blas::outcome(cell, &device, &hand)?);
    cell.tick("layer");
    outcomes.push(layer::outcome(cell, &device)?);
    cell.tick("sparse");
    outcomes.push(sparse::outcome(&device, &hand)?);
    cell.tick("convolution");
    outcomes.push(convolution::outcome(&device, &hand)?);
    cell.tick("softmax");
    outcomes.push(convolution::softmax_outcome(cell, &device, &hand)?);
    cell.tick("random");
    outcomes.push(random::outcome(cell, &device, &hand)?);
    cell.tick("transform");
    outcomes.push(spectrum::outcome(&device)?);

    let mut gain = Series::measured("gain", "").label("time by hand over time of the call");
    let mut table = Table::new("operations")
        .exact("operation", "")
        .exact("library", "")
        .exact("by hand", "")
        .measured("by hand", "s")
        .measured("call", "s");
    for outcome in &outcomes {
        gain.push(outcome.what, outcome.gain());
        let call = outcome.call.as_ref().ok().and_then(|call| call.time);
        table.push(row![
            outcome.what,
            outcome.library,
            outcome.by_hand,
            outcome.hand.map(timing::Timing::seconds),
            call.map(timing::Timing::seconds),
        ]);
    }
    cell.series(gain);
    cell.value("even", 1.0, "");
    cell.table(table);
    cell.figure(
        Figure::new(
            "When is one call better?",
            "Time by hand over time of the library's call for seven operations: far above 1 for products and the transform, \
             near 1 for what is bound by memory.",
        )
        .x(Axis::labels("operation"))
        .y(Axis::log10("time by hand over time of the call", ""))
        .series(["gain"])
        .limit("even", "both take as long"),
    );
    Ok(())
}

/// Every library once, for `cargo profile`: which kernels are under the call?
pub(crate) fn profiled(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let hand = ByHand::load(&device)?;
    let mut called = Vec::new();
    let mut missing = Vec::new();
    let side = (cell.largest(2048 * 2048) as f64).sqrt() as usize;
    let sizes = Sizes::square(side);
    let factors = Factors::new(&device, sizes)?;
    let mut c = device.zeros::<f32>(side * side)?;
    let stream = device.raw_stream();

    timing::device(stream, |_| hand.matmul(sizes, &factors.a, &factors.b, &mut c))?;
    match Blas::open(&device)? {
        Err(reason) => missing.push(reason),
        Ok(blas) => {
            blas::Precision::ALL.into_iter().try_for_each(|precision| {
                blas::timed(&device, &blas, &factors, precision).map(drop)
            })?;
            called.push("cuBLAS");
        }
    }
    match Layer::prepare::<half::bf16>(&device, sizes, true, Epilogue::BiasGelu)? {
        Err(reason) => missing.push(reason),
        Ok(layer) => {
            let mut p = Problem::<half::bf16>::new(&device, sizes)?;
            timing::device(stream, |_| layer.enqueue(0, &p.on_x, &p.on_w, &p.on_b, &mut p.y))?;
            called.push("cuBLASLt");
        }
    }
    match random::open(&device, 1)? {
        Err(reason) => missing.push(reason),
        Ok(random) => {
            timing::device(stream, |_| {
                random.fill_with_uniform(&mut c).context("calling curandGenerateUniform")
            })?;
            called.push("cuRAND");
        }
    }
    match spectrum::plan(&device, 4096)? {
        Err(reason) => missing.push(reason),
        Ok(plan) => {
            let x = device.copy(&cpu::numbers(4096, 9))?;
            let mut y = device.copy(&vec![cudarc::cufft::sys::float2 { x: 0.0, y: 0.0 }; 2049])?;
            timing::device(stream, |_| plan.exec_r2c(&x, &mut y).context("calling cufftExecR2C"))?;
            called.push("cuFFT");
        }
    }
    let digits = Digits::read();
    let a = DeviceSparse::copy(&device, &Sparse::compress(&digits.pixels, PIXELS))?;
    let b = device.copy(&cpu::numbers(PIXELS * 256, 7))?;
    let mut y = device.zeros::<f32>(digits.len() * 512)?;
    match sparse::Product::prepare(&device, &a, &b, &mut y, 256)? {
        Err(reason) => missing.push(reason),
        Ok(product) => {
            // SAFETY: a, b and y live until the end of this function, and the work is awaited.
            timing::device(stream, |_| unsafe { product.enqueue(&device) })?;
            called.push("cuSPARSE");
        }
    }
    match Solver::open(&device)? {
        Err(reason) => missing.push(reason),
        Ok(mut solver) => {
            let mut ones = vec![0.0f32; 256 * 256];
            (0..256).for_each(|i| ones[i * 257] = 1.0);
            let (mut a, mut b) = (device.copy(&ones)?, device.copy(&cpu::numbers(2560, 1))?);
            timing::device(stream, |_| solver.solve(&device, &mut a, &mut b, 256, 10))?;
            called.push("cuSOLVER");
        }
    }
    match Dnn::open(&device)? {
        Err(reason) => missing.push(reason),
        Ok(dnn) => {
            let shape = Images { images: digits.len(), height: SIDE, width: SIDE, filters: 8 };
            let (x, filters) = (device.copy(&digits.pixels)?, device.copy(&FILTERS.concat())?);
            dnn.convolution(&device, shape, |enqueue| {
                timing::device(stream, |_| enqueue(&x, &filters, &mut y))
            })?;
            timing::device(stream, |_| dnn.softmax(&x, &mut y, digits.len(), PIXELS))?;
            called.push("cuDNN");
        }
    }
    cell.measured("called", called.len() as f64, "");
    let mut lines: Vec<String> = missing.iter().map(|reason| format!("{reason}.")).collect();
    if !called.is_empty() {
        lines.insert(0, format!("called: {}", called.join(", ")));
    }
    cell.measured_text(lines.join("\n"));
    Ok(())
}
