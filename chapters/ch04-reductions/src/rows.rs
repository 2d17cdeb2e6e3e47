//! Softmax and layer norm: every row agrees on two numbers before any of it can be written.

use anyhow::{Result, ensure};
use cudarc::driver::{CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use lab::{Axis, Cell, Figure, Series, Table, row, timing};

use crate::cpu;
use crate::device::Device;

/// What is done to every row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// exp(x - max) / sum of exp(x - max).
    Softmax,
    /// (x - mean) / sqrt(variance + epsilon) * weight + bias.
    LayerNorm,
}

/// The steps, the same for both.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// The row is read three times.
    ThreePasses,
    /// The two numbers come out of one pass; the row is read twice.
    Online,
    /// The row is read once, and kept.
    Registers,
    /// The same with a row a warp, for short rows.
    Warp,
}

impl Step {
    /// In the order of the story.
    pub const ALL: [Step; 4] = [Step::ThreePasses, Step::Online, Step::Registers, Step::Warp];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Step::ThreePasses => "three passes",
            Step::Online => "online",
            Step::Registers => "registers",
            Step::Warp => "a row a warp",
        }
    }

    /// The longest row that the step takes.
    pub fn most_columns(self) -> usize {
        match self {
            Step::ThreePasses | Step::Online => usize::MAX,
            Step::Registers => 4096,
            Step::Warp => 1024,
        }
    }
}

/// What keeps the layer norm of a constant row finite; PyTorch's default.
pub const EPSILON: f32 = 1e-5;

/// Rows in device memory, with a weight and a bias for every column.
pub struct Problem {
    /// The elements, row after row.
    pub x: CudaSlice<f32>,
    /// A factor for every column, for layer norm.
    pub weight: CudaSlice<f32>,
    /// A summand for every column, for layer norm.
    pub bias: CudaSlice<f32>,
    /// How many rows.
    pub rows: usize,
    /// How long each is.
    pub columns: usize,
}

impl Problem {
    /// Copies rows to the device.
    pub fn new(device: &Device, x: &[f32], rows: usize, columns: usize) -> Result<Self> {
        ensure!(
            x.len() == rows * columns,
            "{} elements are not {rows} rows of {columns}: pass rows * columns",
            x.len()
        );
        let (weight, bias) = (weight(columns), bias(columns));
        let [x, weight, bias] = [x, &weight, &bias].map(|host| device.copy(host));
        Ok(Self { x: x?, weight: weight?, bias: bias?, rows, columns })
    }
}

fn weight(columns: usize) -> Vec<f32> {
    cpu::numbers(columns, 11)
}

fn bias(columns: usize) -> Vec<f32> {
    cpu::numbers(columns, 12)
}

/// Rows of numbers between -4 and 4, in no order.
pub fn random_rows(rows: usize, columns: usize) -> Vec<f32> {
    cpu::numbers(rows * columns, columns as u64).into_iter().map(|x| 8.0 * x - 4.0).collect()
}

type Launch = Box<
    dyn Fn(
        &CudaStream,
        &Problem,
        &dyn DevicePtr<f32>,
        &mut dyn DevicePtrMut<f32>,
    ) -> Result<(), kernels::Error>,
>;

/// One of the steps of one of the operations, loaded.
pub struct Rows {
    launch: Launch,
}

macro_rules! softmax {
    ($device:ident, $name:ident) => {{
        let kernel = kernels::$name::Kernel::load(&$device.context)?;
        Box::new(
            move |stream: &CudaStream,
                  problem: &Problem,
                  x: &dyn DevicePtr<f32>,
                  y: &mut dyn DevicePtrMut<f32>| {
                let (rows, columns) = (problem.rows as u32, problem.columns as u32);
                kernel.launch(stream, kernels::$name::Arguments { x, y, rows, columns })
            },
        )
    }};
}

macro_rules! layer_norm {
    ($device:ident, $name:ident) => {{
        let kernel = kernels::$name::Kernel::load(&$device.context)?;
        Box::new(
            move |stream: &CudaStream,
                  problem: &Problem,
                  x: &dyn DevicePtr<f32>,
                  y: &mut dyn DevicePtrMut<f32>| {
                let columns = problem.columns;
                kernel.launch(
                    stream,
                    kernels::$name::Arguments {
                        x,
                        weight: &problem.weight.slice(..columns),
                        bias: &problem.bias.slice(..columns),
                        y,
                        rows: problem.rows as u32,
                        columns: columns as u32,
                        epsilon: EPSILON,
                    },
                )
            },
        )
    }};
}

impl Rows {
    /// Loads a step.
    pub fn load(device: &Device, operation: Operation, step: Step) -> Result<Self> {
        let launch: Launch = match (operation, step) {
            (Operation::Softmax, Step::ThreePasses) => softmax!(device, softmax_01_three_passes),
            (Operation::Softmax, Step::Online) => softmax!(device, softmax_02_online),
            (Operation::Softmax, Step::Registers) => softmax!(device, softmax_03_registers),
            (Operation::Softmax, Step::Warp) => softmax!(device, softmax_04_warp),
            (Operation::LayerNorm, Step::ThreePasses) => {
                layer_norm!(device, layer_norm_01_three_passes)
            }
            (Operation::LayerNorm, Step::Online) => layer_norm!(device, layer_norm_02_online),
            (Operation::LayerNorm, Step::Registers) => {
                layer_norm!(device, layer_norm_03_registers)
            }
            (Operation::LayerNorm, Step::Warp) => layer_norm!(device, layer_norm_04_warp),
        };
        Ok(Self { launch })
    }

    /// Enqueues the operation on all rows.
    pub fn enqueue(
        &self,
        device: &Device,
        problem: &Problem,
        y: &mut CudaSlice<f32>,
    ) -> Result<()> {
        let elements = problem.rows * problem.columns;
        let (x, mut y) = (problem.x.slice(..elements), y.slice_mut(..elements));
        Ok((self.launch)(&device.stream, problem, &x, &mut y)?)
    }
}

/// An operation on rows of a host slice by one of the steps: what the tests call.
pub fn apply(
    device: &Device,
    operation: Operation,
    step: Step,
    x: &[f32],
    rows: usize,
    columns: usize,
) -> Result<Vec<f32>> {
    let kernel = Rows::load(device, operation, step)?;
    let problem = Problem::new(device, x, rows, columns)?;
    let mut y = device.zeros(x.len())?;
    kernel.enqueue(device, &problem, &mut y)?;
    Ok(device.fetch(&y, x.len())?)
}

/// The first element that is too far from the answer in f64.
pub fn first_wrong(operation: Operation, x: &[f32], y: &[f32], columns: usize) -> Option<usize> {
    let mut rows = x.chunks(columns.max(1)).zip(y.chunks(columns.max(1))).enumerate();
    rows.find_map(|(row, (x, y))| {
        let largest = x.iter().fold(0.0f32, |largest, x| largest.max(x.abs()));
        let (expected, allowed): (Vec<f64>, f64) = match operation {
            // The exponential is the hardware's own, with an error that grows with its argument's
            // size; relative to the result, and beside it, nothing below the smallest float counts.
            Operation::Softmax => (cpu::softmax(x), 2e-6 + 2e-7 * f64::from(largest)),
            // The mean is off by some roundings of the largest number, and is then scaled up.
            Operation::LayerNorm => {
                let (y, scale) =
                    cpu::layer_norm(x, &weight(columns), &bias(columns), f64::from(EPSILON));
                (y, 1e-6 * (1.0 + f64::from(largest) * scale))
            }
        };
        let wrong = |(found, expected): (&f32, &f64)| {
            let unit = match operation {
                Operation::Softmax => expected.abs() + f64::from(f32::MIN_POSITIVE),
                Operation::LayerNorm => 1.0 + expected.abs(),
            };
            let close = (f64::from(*found) - expected).abs() <= allowed * unit;
            let both_nan = found.is_nan() && expected.is_nan();
            !(close || both_nan)
        };
        let column = y.iter().zip(&expected).position(wrong)?;
        Some(row * columns + column)
    })
}

fn ensure_right(
    operation: Operation,
    step: Step,
    x: &[f32],
    y: &[f32],
    columns: usize,
) -> Result<()> {
    ensure!(x.len() == y.len(), "{} elements came back of {}", y.len(), x.len());
    match first_wrong(operation, x, y, columns) {
        None => Ok(()),
        Some(i) => anyhow::bail!(
            "{operation:?}, {}: with {columns} columns, row {} has {} in column {}",
            step.name(),
            i / columns,
            y[i],
            i % columns
        ),
    }
}

/// Every step of both operations for rows of awkward lengths.
pub fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let mut table = Table::new("wrong")
        .exact("rows", "")
        .exact("columns", "")
        .exact("wrong elements, both operations, all steps", "");
    for (rows, columns) in
        [(0, 7), (1, 1), (3, 31), (9, 32), (5, 33), (7, 1000), (3, 1023), (2, 1025), (2, 4095)]
    {
        let x = random_rows(rows, columns);
        for operation in [Operation::Softmax, Operation::LayerNorm] {
            for step in Step::ALL.into_iter().filter(|step| columns <= step.most_columns()) {
                let y = apply(&device, operation, step, &x, rows, columns)?;
                ensure_right(operation, step, &x, &y, columns)?;
            }
        }
        table.push(row![rows, columns, 0]);
    }
    cell.table(table);
    Ok(())
}

/// What softmax makes of infinities and of what is no number.
pub fn special(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    let mut table = Table::new("rows").exact("row", "").exact("softmax", "");
    for x in [
        [0.0, 0.0, 0.0, 0.0],
        [1000.0, 1000.0, -1000.0, 0.0],
        [-inf, 1.0, -inf, 1.0],
        [-inf, -inf, -inf, -inf],
        [0.0, inf, 0.0, 0.0],
        [0.0, 0.0, nan, 0.0],
    ] {
        let mut answers = Vec::new();
        for step in Step::ALL {
            let y = apply(&device, Operation::Softmax, step, &x, 1, 4)?;
            ensure_right(Operation::Softmax, step, &x, &y, 4)?;
            answers.push(y.iter().map(|y| y.to_string()).collect::<Vec<_>>().join("  "));
        }
        ensure!(answers.iter().all(|answer| *answer == answers[0]), "{x:?} gives {answers:?}");
        table.push(row![x.map(|x| x.to_string()).join("  "), answers.swap_remove(0)]);
    }
    cell.table(table);
    Ok(())
}

/// How often each step reads a row, and what it costs in barriers.
pub fn counts(cell: &mut Cell) -> Result<()> {
    let device = Device::open()?;
    let (rows, columns) = (16, 1024);
    let x = random_rows(rows, columns);
    for (name, operation) in [("softmax", Operation::Softmax), ("layer_norm", Operation::LayerNorm)]
    {
        let mut table = Table::new(name)
            .exact("step", "")
            .exact("bytes read per element", "")
            .exact("bytes written per element", "")
            .exact("load requests", "")
            .exact("barriers", "")
            .exact("warp instructions", "");
        for step in Step::ALL {
            let (_, launches) =
                cell.counts(|| apply(&device, operation, step, &x, rows, columns))?;
            for launch in launches {
                let count = |counter| launch.get(counter).unwrap_or(f64::NAN);
                const SECTOR_BYTES: f64 = 32.0;
                let elements = (rows * columns) as f64;
                table.push(row![
                    step.name(),
                    SECTOR_BYTES * count("global_load_sectors") / elements,
                    SECTOR_BYTES * count("global_store_sectors") / elements,
                    count("global_load_requests"),
                    count("barriers"),
                    count("warp_instructions"),
                ]);
            }
        }
        if !table.rows.is_empty() {
            cell.table(table);
        }
    }
    Ok(())
}

/// How fast each step of softmax is, against a copy.
pub fn softmax_rates(cell: &mut Cell) -> Result<()> {
    rates(cell, Operation::Softmax, "softmax")
}

/// How fast each step of layer norm is, against a copy.
pub fn layer_norm_rates(cell: &mut Cell) -> Result<()> {
    rates(cell, Operation::LayerNorm, "layer norm")
}

fn rates(cell: &mut Cell, operation: Operation, name: &str) -> Result<()> {
    let device = Device::open()?;
    let long = cell.parameter("columns")?;
    let short = cell.parameter("short_columns")?;
    let elements = cell.largest(cell.parameter("rows")? * long);
    cell.progress(2 * Step::ALL.len() as u64 + 1);
    let x = device.repeat(&random_rows(16, long), elements)?;
    let mut y = device.zeros::<f32>(elements)?;
    let floor = crate::scan::copy_ceiling(cell, &device, &x, &mut y)?;

    let mut table = Table::new("steps")
        .exact("step", "")
        .exact("columns", "")
        .measured("time", "s")
        .measured("rate", "GB/s")
        .measured("of the copy", "%");
    for (series, columns) in [("long", long), ("short", short)] {
        let rows = elements / columns;
        let mut rate = Series::measured(series, "GB/s").label(format!("rows of {columns} columns"));
        let host = random_rows(16, columns);
        // Two sets take turns, so that no row is still in the L2 cache.
        let sets = [0, 1].map(|_| -> Result<_> {
            Ok((problem(&device, &host, rows, columns)?, device.zeros::<f32>(elements)?))
        });
        let mut sets = sets.into_iter().collect::<Result<Vec<_>>>()?;
        for step in Step::ALL {
            cell.tick(&format!("{}, {columns} columns", step.name()));
            if columns > step.most_columns() {
                continue;
            }
            let kernel = Rows::load(&device, operation, step)?;
            let time = timing::device(device.raw_stream(), |turn| {
                let (problem, y) = &mut sets[turn % 2];
                kernel.enqueue(&device, problem, y)
            })?;
            let some = host.len().min(elements);
            let y = device.fetch(&sets[0].1, some)?;
            ensure_right(operation, step, &host[..some], &y, columns)?;
            let bytes = 2 * size_of::<f32>() * rows * columns;
            let gbps = time.map(|time| time.gigabytes_per_second(bytes));
            let share = gbps.and_then(|gbps| Some(100.0 * gbps.value? / floor?));
            let seconds = time.map(timing::Timing::seconds);
            table.push(row![step.name(), columns, seconds, gbps, share]);
            rate.push(step.name(), gbps);
        }
        cell.series(rate);
    }
    cell.table(table);
    cell.figure(
        Figure::new(
            format!("How fast is each step of {name}?"),
            "Rate of the steps for long and for short rows: with long rows the step that keeps the row in registers comes \
             near a copy; with short rows it takes a row a warp to do so.",
        )
        .x(Axis::labels("step"))
        .y(Axis::linear("rate, 8 bytes an element", "GB/s"))
        .series(["long", "short"])
        .limit("copy", "copy kernel, measured"),
    );
    Ok(())
}

/// `rows` rows that repeat those of `host`.
pub fn problem(device: &Device, host: &[f32], rows: usize, columns: usize) -> Result<Problem> {
    Ok(Problem {
        x: device.repeat(host, rows * columns)?,
        weight: device.copy(&weight(columns))?,
        bias: device.copy(&bias(columns))?,
        rows,
        columns,
    })
}
