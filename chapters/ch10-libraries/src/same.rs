//! Does a library give the same answer twice?

use std::collections::HashSet;

use anyhow::{Context, Result, ensure};
use lab::{Cell, Table, row};

use crate::blas::{Blas, Factors};
use crate::by_hand::ByHand;
use crate::device::Device;
use crate::layout::Sizes;
use crate::random;

/// How often each is asked.
const RUNS: usize = 20;

/// How many different results there are, bit by bit, in [`RUNS`] runs.
fn different(mut run: impl FnMut() -> Result<Vec<f32>>) -> Result<f64> {
    let mut seen = HashSet::new();
    for _ in 0..RUNS {
        seen.insert(run()?.into_iter().map(f32::to_bits).collect::<Vec<u32>>());
    }
    Ok(seen.len() as f64)
}

/// Runs each way twenty times.
pub(crate) fn same_twice(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let hand = ByHand::load(&device)?;
    let side = if cell.largest(1 << 20) < 1 << 20 { 64 } else { 1024 };
    let sizes = Sizes::square(side);
    let factors = Factors::new(&device, sizes)?;
    let mut c = device.zeros::<f32>(side * side)?;
    let mut table =
        Table::new("results").measured("way", "").measured("different results in 20 runs", "");
    let by_hand = different(|| {
        hand.matmul(sizes, &factors.a, &factors.b, &mut c)?;
        Ok(device.fetch(&c, side * side)?)
    })?;
    ensure!(by_hand == 1.0, "the tiled kernel gives {by_hand} different products");
    table.push(row!["tiled kernel", by_hand]);
    let ours = device.fetch(&c, side * side)?;
    match Blas::open(&device)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(blas) => {
            let products = different(|| {
                blas.product(sizes, &factors.a, &factors.b, &mut c)?;
                Ok(device.fetch(&c, side * side)?)
            })?;
            table.push(row!["cuBLAS fp32", products]);
            let theirs = device.fetch(&c, side * side)?;
            let unequal =
                ours.iter().zip(&theirs).filter(|(a, b)| a.to_bits() != b.to_bits()).count();
            let share = 100.0 * unequal as f64 / ours.len() as f64;
            cell.measured("unequal_to_ours", share, "%");
        }
    }
    match random::open(&device, 1)? {
        Err(missing) => cell.measured_text(format!("{missing}.")),
        Ok(mut generator) => {
            let mut numbers = device.zeros::<f32>(10_007)?;
            let with_seed = different(|| {
                generator.set_seed(1).context("seeding cuRAND")?;
                generator.set_offset(0).context("rewinding cuRAND")?;
                generator
                    .fill_with_uniform(&mut numbers)
                    .context("calling curandGenerateUniform")?;
                Ok(device.fetch(&numbers, 10_007)?)
            })?;
            table.push(row!["cuRAND from seed 1 each time", with_seed]);
            let going_on = different(|| {
                generator
                    .fill_with_uniform(&mut numbers)
                    .context("calling curandGenerateUniform")?;
                Ok(device.fetch(&numbers, 10_007)?)
            })?;
            table.push(row!["cuRAND going on", going_on]);
        }
    }
    cell.table(table);
    Ok(())
}
