//! Every ladder in one picture: how much of its ceiling each step reaches.

use anyhow::Result;
use cudarc::driver::CudaSlice;
use kernels::{copy_01_float4, read_01_float4};
use lab::{Axis, Cell, Figure, Series, timing};

use crate::cpu;
use crate::device::Device;
use crate::histogram::{self, Counter};
use crate::rows::{self, Operation, Rows};
use crate::scan::{self, Scanner};
use crate::sum::{self, Summer};

/// Times every step again, at one size, beside the two ceilings. That the results are right, the
/// other cells have seen.
pub(crate) fn whole(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let n = cell.largest(cell.parameter("largest")? / 4);
    let columns = cell.parameter("columns")?;
    cell.progress(5);
    let a = device.repeat(&cpu::numbers(n.min(1 << 20), 1), n)?;
    let mut c = device.zeros::<f32>(n)?;
    let [read, copy] = ceilings(&device, &a, &mut c)?;
    let mut share = Series::measured("share", "%").label("of the ceiling");
    let of = |time: Option<timing::Timing>, bytes: usize, ceiling: Option<f64>| {
        Some(100.0 * time?.gigabytes_per_second(bytes).value? / ceiling?)
    };

    cell.tick("sum");
    for step in sum::Step::ALL {
        let n = if step == sum::Step::Atomic { n / 16 } else { n };
        let summer = Summer::load(&device, step)?;
        let mut scratch = summer.scratch(&device, n)?;
        let time =
            timing::device(device.raw_stream(), |_| summer.enqueue(&device, &a, n, &mut scratch))?;
        share.push(format!("sum, {}", step.name()), of(time, 4 * n, read));
    }

    cell.tick("histogram");
    let bytes = device.repeat(&cpu::bytes(n.min(1 << 22), 3), n)?;
    let mut bins = device.zeros(256)?;
    for step in histogram::Step::ALL {
        let n = if step == histogram::Step::Global { n / 16 } else { n };
        let counter = Counter::load(&device, step)?;
        let time = timing::device(device.raw_stream(), |_| {
            counter.enqueue(&device, &bytes, n, &mut bins)
        })?;
        share.push(format!("histogram, {}", step.name()), of(time, n, read));
    }

    cell.tick("scan");
    for step in scan::Step::ALL {
        let n = if step == scan::Step::OneBlock { n / 64 } else { n };
        let scanner = Scanner::load(&device, step)?;
        let mut scratch = scanner.scratch(&device, n)?;
        let time = timing::device(device.raw_stream(), |_| {
            scanner.enqueue(&device, &a, &mut c, n, &mut scratch)
        })?;
        share.push(format!("scan, {}", step.name()), of(time, 8 * n, copy));
    }
    drop((a, bytes));

    for (name, operation) in [("softmax", Operation::Softmax), ("layer norm", Operation::LayerNorm)]
    {
        cell.tick(name);
        let problem =
            rows::problem(&device, &rows::random_rows(16, columns), n / columns, columns)?;
        for step in rows::Step::ALL.into_iter().filter(|step| columns <= step.most_columns()) {
            let kernel = Rows::load(&device, operation, step)?;
            let time =
                timing::device(device.raw_stream(), |_| kernel.enqueue(&device, &problem, &mut c))?;
            let elements = n / columns * columns;
            share.push(format!("{name}, {}", step.name()), of(time, 8 * elements, copy));
        }
    }

    cell.series(share);
    cell.value("ceiling", 100.0, "%");
    cell.figure(
        Figure::new(
            "How much of its ceiling does each step reach?",
            "Share of the ceiling for every step of every ladder: each begins low and ends near its ceiling, the scan \
             farthest from it.",
        )
        .x(Axis::labels("operation and step"))
        .y(Axis::linear("share of the rate of reading alone, or of a copy", "%"))
        .series(["share"])
        .limit("ceiling", "reading alone, or a copy"),
    );
    Ok(())
}

/// The rates of reading and of copying, in GB/s.
fn ceilings(
    device: &Device,
    a: &CudaSlice<f32>,
    c: &mut CudaSlice<f32>,
) -> Result<[Option<f64>; 2]> {
    let n = a.len();
    let blocks = 4 * device.multiprocessors;
    let mut kept = device.zeros(1)?;
    let kernel = read_01_float4::Kernel::load(&device.context)?;
    let read = timing::device(device.raw_stream(), |_| {
        let arguments = read_01_float4::Arguments { a, kept: &mut kept, n: n as u64, blocks };
        Ok(kernel.launch(&device.stream, arguments)?)
    })?;
    let kernel = copy_01_float4::Kernel::load(&device.context)?;
    let copy = timing::device(device.raw_stream(), |_| {
        Ok(kernel.launch(&device.stream, copy_01_float4::Arguments { a, c, n: n as u64 })?)
    })?;
    let rate = |time: Option<timing::Timing>, bytes| time?.gigabytes_per_second(bytes).value;
    Ok([rate(read, 4 * n), rate(copy, 8 * n)])
}
