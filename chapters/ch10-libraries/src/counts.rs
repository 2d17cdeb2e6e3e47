//! Our own kernels at awkward sizes, and what they ask of memory.

use anyhow::{Result, ensure};
use lab::{Cell, Table, row};

use crate::by_hand::{ByHand, DeviceSparse, Images};
use crate::cpu;
use crate::data::Sparse;
use crate::device::Device;
use crate::layout::Sizes;

/// Each kernel against the CPU, and its counts.
pub(crate) fn by_hand(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let mut lines = String::new();
    for (rows, inner, columns) in
        [(1, 1, 1), (31, 33, 7), (33, 1000, 31), (64, 64, 64), (100, 3, 257)]
    {
        let sizes = Sizes { rows, inner, columns };
        let [a, b] = [cpu::numbers(rows * inner, 1), cpu::numbers(inner * columns, 2)];
        let error = cpu::error(
            &matmul(&device, sizes, &a, &b)?,
            &cpu::product(&a, &b, rows, inner, columns),
        );
        ensure!(error < 1e-5, "{sizes:?}: the product is off by {error}");
        lines.push_str(&format!("{rows} × {inner} times {inner} × {columns}: right\n"));
    }
    cell.text(lines);

    let hand = ByHand::load(&device)?;
    let mut table = Table::new("counts")
        .exact("kernel", "")
        .exact("multiply-adds", "")
        .exact("global load requests", "")
        .exact("shared load wavefronts", "")
        .exact("multiply-adds per global load", "");
    let side = 128;
    let sizes = Sizes::square(side);
    let (a, b) =
        (device.copy(&cpu::numbers(side * side, 1))?, device.copy(&cpu::numbers(side * side, 2))?);
    let mut c = device.zeros::<f32>(side * side)?;
    let image = Images { images: 64, height: 8, width: 8, filters: 8 };
    let filters = device.copy(&cpu::numbers(72, 3))?;
    let mut y = device.zeros::<f32>(image.pixels())?;
    let host: Vec<f32> = cpu::numbers(side * side, 4).into_iter().map(|x| x.max(0.0)).collect();
    let sparse = DeviceSparse::copy(&device, &Sparse::compress(&host, side))?;
    let (_, launches) = cell.counts(|| {
        hand.matmul(sizes, &a, &b, &mut c)?;
        hand.convolution(&a, &filters, &mut y, image)?;
        hand.sparse(&sparse, &b, &mut c, side)?;
        Ok(device.stream.synchronize()?)
    })?;
    // A warp does 32 of them at once.
    let work = [side.pow(3), 9 * image.pixels(), sparse.stored * side].map(|all| all as f64 / 32.0);
    for (launch, work) in launches.iter().zip(work) {
        let count = |counter| launch.get(counter).unwrap_or(f64::NAN);
        let loads = count("global_load_requests");
        table.push(row![
            launch.kernel.as_str(),
            32.0 * work,
            loads,
            count("shared_load_wavefronts"),
            (100.0 * work / loads).round() / 100.0,
        ]);
    }
    if !table.rows.is_empty() {
        cell.table(table);
    }
    Ok(())
}

/// The product of two host matrices by the tiled kernel.
fn matmul(device: &Device, sizes: Sizes, a: &[f32], b: &[f32]) -> Result<Vec<f32>> {
    let hand = ByHand::load(device)?;
    let (a, b) = (device.copy(a)?, device.copy(b)?);
    let mut c = device.zeros(sizes.rows * sizes.columns)?;
    hand.matmul(sizes, &a, &b, &mut c)?;
    Ok(device.fetch(&c, sizes.rows * sizes.columns)?)
}
