//! cuFFT: how long is the cycle of the sun?

use anyhow::{Context, Result, ensure};
use cudarc::cufft::{CudaFft, sys};
use cudarc::driver::CudaSlice;
use lab::libraries::{Missing, ask};
use lab::timing::{self, Timing};
use lab::{Axis, Cell, Figure, Series, Table, row};

use crate::cpu;
use crate::data;
use crate::device::Device;
use crate::outcome::{Call, Outcome};

const FUNCTIONS: [&str; 3] = ["cufftPlan1d", "cufftSetStream", "cufftExecR2C"];

// ANCHOR: plan
/// A plan for transforms of `n` real numbers: the library chooses its kernels, and their workspace,
/// when the plan is made.
pub fn plan(device: &Device, n: usize) -> Result<Result<CudaFft, Missing>> {
    if let Err(missing) = ask("cuFFT", &FUNCTIONS) {
        return Ok(Err(missing));
    }
    let kind = sys::cufftType::CUFFT_R2C;
    let plan = CudaFft::plan_1d(n as i32, kind, 1, device.stream.clone());
    Ok(Ok(plan.with_context(|| format!("planning a transform of {n} numbers"))?))
}
// ANCHOR_END: plan

/// The lengths of coefficients.
fn lengths(device: &Device, y: &CudaSlice<sys::float2>, count: usize) -> Result<Vec<f32>> {
    let mut host = vec![sys::float2 { x: 0.0, y: 0.0 }; count];
    device.stream.memcpy_dtoh(&y.slice(..count), &mut host)?;
    device.stream.synchronize()?;
    Ok(host.iter().map(|z| f32::hypot(z.x, z.y)).collect())
}

/// The sunspots of every year, less their mean: what stays the same has no period.
fn swings() -> Vec<f32> {
    let spots = data::sunspots();
    let mean = spots.iter().sum::<f32>() / spots.len() as f32;
    spots.iter().map(|spots| spots - mean).collect()
}

/// The spectrum of the sunspots.
pub fn sunspots(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let x = swings();
    let n = x.len();
    let by_definition = cpu::spectrum(&x);
    let strongest = |spectrum: &[f64]| {
        let place = (1..spectrum.len()).max_by(|&a, &b| spectrum[a].total_cmp(&spectrum[b]));
        n as f64 / place.unwrap_or(1) as f64
    };
    cell.value("years", n as f64, "");
    cell.value("period", strongest(&by_definition), "years");
    let mut series = Series::exact("spectrum", "").label("length of the coefficient");
    for (k, length) in by_definition.iter().enumerate().skip(1).take_while(|(k, _)| *k <= 80) {
        series.push(k as f64, (length * 10.0).round() / 10.0);
    }
    cell.series(series);

    let mut table =
        Table::new("ways").measured("way", "").measured("time", "s").measured("error", "");
    let definition = timing::host(|| {
        std::hint::black_box(cpu::spectrum(&x));
    });
    table.push(row!["one core by the definition", definition.seconds(), 0.0]);
    match plan(&device, n)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(plan) => {
            let on_x = device.copy(&x)?;
            let zero = sys::float2 { x: 0.0, y: 0.0 };
            let mut y = device.copy(&vec![zero; n / 2 + 1])?;
            let time = timing::device(device.raw_stream(), |_| {
                plan.exec_r2c(&on_x, &mut y).context("calling cufftExecR2C")
            })?;
            let found = lengths(&device, &y, n / 2 + 1)?;
            let error = cpu::error(&found, &by_definition);
            ensure!(error < 1e-5, "the spectrum of the sunspots is off by {error}");
            let found: Vec<f64> = found.into_iter().map(f64::from).collect();
            cell.measured("period_by_cufft", strongest(&found), "years");
            table.push(row!["cuFFT", time.map(Timing::seconds), error]);
        }
    }
    cell.table(table);
    cell.figure(
        Figure::new(
            "How long is the cycle of the sun?",
            "Length of the Fourier coefficients of 309 years of sunspots over the number of cycles: the highest peak is at 28 \
             cycles, which are some 11 years each.",
        )
        .x(Axis::linear("cycles in 309 years", ""))
        .y(Axis::linear("length of the coefficient", ""))
        .series(["spectrum"]),
    );
    Ok(())
}

/// A transform of 4096 numbers, by its definition on the CPU and by cuFFT.
pub fn outcome(device: &Device) -> Result<Outcome> {
    let n = 4096;
    let x = cpu::numbers(n, 9);
    let expected = cpu::spectrum(&x);
    let hand = timing::host(|| {
        std::hint::black_box(cpu::spectrum(&x));
    });
    // Shown on a GPU alone, like every time that a library is compared with.
    let hand = lab::device_clock(hand);
    let call = match plan(device, n)? {
        Err(missing) => Err(missing),
        Ok(plan) => {
            let on_x = device.copy(&x)?;
            let zero = sys::float2 { x: 0.0, y: 0.0 };
            let mut y = device.copy(&vec![zero; n / 2 + 1])?;
            let time = timing::device(device.raw_stream(), |_| {
                plan.exec_r2c(&on_x, &mut y).context("calling cufftExecR2C")
            })?;
            let error = cpu::error(&lengths(device, &y, n / 2 + 1)?, &expected);
            ensure!(error < 1e-5, "a transform by cuFFT is off by {error}");
            Ok(Call { time, error })
        }
    };
    Ok(Outcome {
        what: "Fourier transform",
        library: "cuFFT",
        by_hand: "one core by the definition",
        hand,
        hand_error: 0.0,
        call,
    })
}
