//! Chapter 3, the memory hierarchy: where data lives, and what each place costs.
//!
//! You need: chapter 1, and what a warp is. You get: sectors and banks counted, a transpose at the
//! rate of a copy, and a map of the memories of your own GPU.

pub mod addresses;
pub mod cpu;
mod memory;
mod transpose;

use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUdeviceptr, CUstream};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, DevicePtr, DevicePtrMut};
use kernels::{
    advance_01_structs, advance_02_arrays, constant_01_lookup, constant_02_global, copy_01_float4,
    copy_02_scalar, copy_03_float2, copy_04_strided, copy_05_offset, reread_01_l2, reread_02_l1,
    reread_03_shared, spread_01_registers, spread_02_local, spread_03_spilled,
};
use lab::{Axis, Cell, CellSpec, Counts, Figure, HeatMap, Point, Series, Table, row, timing};

use addresses::{BANKS, SECTOR_BYTES, WARP};
use memory::{Chase, Numbers};
pub use transpose::{Step, Transposer, transpose};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("strides", "Load every second, third, … float", strides),
    lab::cell("offsets", "Begin between two sectors", offsets),
    lab::cell("widths", "Move 4, 8 or 16 bytes at a time", widths),
    lab::cell("structs", "An array of structs, or a struct of arrays", structs),
    lab::cell("odd-sizes", "Hold every transpose against the CPU at awkward sizes", odd_sizes),
    lab::cell("banks", "Which bank each lane wants", banks),
    lab::cell("counts", "Count what each transpose asks of memory", counts),
    lab::cell("transpose", "Climb the transpose to the rate of a copy", ladder),
    lab::cell("constant", "Read a table of constants, alike or apart", constant),
    lab::cell("registers", "Run out of registers", registers),
    lab::cell("footprints", "Read the same bytes again, from ever more of them", footprints),
    lab::cell("latency", "Follow a chain, one load after the other", latency),
    lab::cell("levels", "A map of this device's memories", levels),
    lab::cell("peers", "The same in CUDA C++ and Python", peers),
];

/// Opens the device, with its default stream.
fn open() -> Result<(Arc<CudaContext>, Arc<CudaStream>)> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    Ok((context, stream))
}

/// Holds what was computed from the addresses against what the emulated GPU counted. A GPU counts
/// nothing without a profiler, and there is nothing to hold.
fn hold(counts: &[Counts], counter: &str, computed: usize) -> Result<()> {
    for launch in counts {
        let counted = launch.get(counter);
        ensure!(
            counted == Some(computed as f64),
            "{}: {counter} is {counted:?}, and {computed} by the addresses",
            launch.kernel
        );
    }
    Ok(())
}

/// What the emulated GPU counts during a launch.
fn counted(
    cell: &mut Cell,
    stream: &CudaStream,
    launch: impl FnOnce() -> Result<()>,
) -> Result<Vec<Counts>> {
    let ((), counts) = cell.counts(|| {
        launch()?;
        Ok(stream.synchronize()?)
    })?;
    Ok(counts)
}

/// The rate of a copy of floats by 16-byte accesses: the ceiling of what streams.
fn copy_ceiling(
    context: &Arc<CudaContext>,
    stream: &CudaStream,
    a: &dyn DevicePtr<f32>,
    c: &mut dyn DevicePtrMut<f32>,
) -> Result<Option<Point>> {
    let kernel = copy_01_float4::Kernel::load(context)?;
    let n = a.len();
    let time = timing::device(stream.cu_stream(), |_| {
        Ok(kernel.launch(stream, copy_01_float4::Arguments { a, c, n: n as u64 })?)
    })?;
    Ok(time.map(|time| time.gigabytes_per_second(2 * FLOAT * n)))
}

/// Bytes of an `f32`.
const FLOAT: usize = size_of::<f32>();

// -------------------------------------------------------------------------------------------------
// Strides: what a load costs whose neighbours are not neighbours

// ANCHOR: strides
fn strides(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let kernel = copy_04_strided::Kernel::load(&context)?;
    let n = cell.largest(cell.parameter("gathered")?);
    let a = Numbers::new(&stream, n * STRIDES[STRIDES.len() - 1], 1)?;
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let mut sectors = Series::exact("sectors_per_request", "").label("one load");
    let mut useful = Series::measured("useful", "GB/s").label("4 bytes in, 4 bytes out");
    let mut fetched = Series::measured("fetched", "GB/s").label("the sectors in, 4 bytes out");
    cell.progress(STRIDES.len() as u64 + 1);

    for stride in STRIDES {
        cell.tick(&format!("stride {stride}"));
        // Neighbouring lanes read addresses that lie 4 * stride bytes apart.
        let each = addresses::sectors((0..WARP).map(|lane| FLOAT * lane * stride), FLOAT);
        let places = a.len() / (n * stride); // take turns, so that no cache keeps what comes again
        let mut launch = |turn: usize| {
            let place = turn % places * n * stride;
            let a = &a.memory.slice(place..place + n * stride);
            let (n, stride) = (n as u64, stride as u64);
            let arguments = copy_04_strided::Arguments { a, c: &mut c, n, stride };
            Ok(kernel.launch(&stream, arguments)?)
        };
        let counts = counted(cell, &stream, || launch(0))?;
        hold(&counts, "global_load_sectors", each * n / WARP)?;
        let time = timing::device(stream.cu_stream(), &mut launch)?;
        // ANCHOR_END: strides
        launch(0)?;
        let copied = stream.clone_dtoh(&c)?;
        ensure!(
            copied.iter().enumerate().all(|(i, &value)| value == a.at(i * stride)),
            "gathering every {stride}th float of {n} gives a wrong one"
        );
        let bytes_in = SECTOR_BYTES * each * n / WARP;
        sectors.push(stride, each as f64);
        useful.push(stride, time.map(|time| time.gigabytes_per_second(2 * FLOAT * n)));
        fetched.push(stride, time.map(|time| time.gigabytes_per_second(bytes_in + FLOAT * n)));
    }

    cell.tick("the copy ceiling");
    let half = a.len() / 2;
    let mut copied = stream.alloc_zeros::<f32>(half)?;
    let copy = copy_ceiling(&context, &stream, &a.memory.slice(..half), &mut copied)?;
    cell.measured("copy", copy, "GB/s");
    cell.series(sectors);
    cell.series(useful);
    cell.series(fetched);
    cell.figure(
        Figure::new(
            "How many sectors does a warp's load touch?",
            "Sectors over stride: 4 at stride 1, 8 at stride 2, 32 from stride 8 on.",
        )
        .name("sectors")
        .x(Axis::log2("stride", "floats"))
        .y(Axis::linear("sectors a request", ""))
        .series(["sectors_per_request"]),
    );
    cell.figure(
        Figure::new(
            "What is left of the memory's rate?",
            "Rate over stride. Counted in useful bytes it falls all the way; counted in sectors it stays up to stride 8 and \
             falls after it.",
        )
        .name("rates")
        .x(Axis::log2("stride", "floats"))
        .y(Axis::linear("rate", "GB/s"))
        .series(["useful", "fetched"])
        .limit("copy", "copy kernel, measured"),
    );
    Ok(())
}

/// The last is the largest.
const STRIDES: [usize; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];

// -------------------------------------------------------------------------------------------------
// Offsets: neighbours again, but not where a sector begins

fn offsets(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let kernel = copy_05_offset::Kernel::load(&context)?;
    let n = cell.largest(cell.parameter("elements")?);
    let a = Numbers::new(&stream, n + OFFSETS[OFFSETS.len() - 1], 1)?;
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let mut sectors = Series::exact("sectors_per_request", "");
    let mut rate = Series::measured("rate", "GB/s").label("copy from an offset");
    cell.progress(OFFSETS.len() as u64);

    for offset in OFFSETS {
        cell.tick(&format!("offset {offset}"));
        let each = addresses::sectors((0..WARP).map(|lane| FLOAT * (lane + offset)), FLOAT);
        let mut launch = |_| {
            let a = &a.memory.slice(..n + offset);
            let (n, offset) = (n as u64, offset as u64);
            let arguments = copy_05_offset::Arguments { a, c: &mut c, n, offset };
            Ok(kernel.launch(&stream, arguments)?)
        };
        let counts = counted(cell, &stream, || launch(0))?;
        hold(&counts, "global_load_sectors", each * n / WARP)?;
        let time = timing::device(stream.cu_stream(), launch)?;
        a.hold_copy(&stream, &c, offset)?;
        sectors.push(offset, each as f64);
        rate.push(offset, time.map(|time| time.gigabytes_per_second(2 * FLOAT * n)));
    }
    cell.series(sectors);
    cell.series(rate);
    cell.figure(
        Figure::new(
            "What does a start between two sectors cost?",
            "Rate over offset: nearly a straight line, whatever the offset.",
        )
        .x(Axis::linear("offset", "floats"))
        .y(Axis::linear("rate", "GB/s"))
        .series(["rate"]),
    );
    Ok(())
}

/// The last is the largest.
const OFFSETS: [usize; 13] = [0, 1, 2, 4, 7, 8, 12, 16, 20, 24, 28, 31, 32];

// -------------------------------------------------------------------------------------------------
// Widths: the same bytes by fewer instructions

fn widths(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let n = cell.largest(cell.parameter("elements")?);
    let a = Numbers::new(&stream, n, 1)?;
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let mut table = Table::new("widths")
        .exact("kernel", "")
        .exact("bytes a thread", "")
        .exact("requests for 1024 floats", "")
        .exact("sectors a request", "");
    let mut rate = Series::measured("rate", "GB/s").label("copy");
    let (scalar, float2, float4) = (
        copy_02_scalar::Kernel::load(&context)?,
        copy_03_float2::Kernel::load(&context)?,
        copy_01_float4::Kernel::load(&context)?,
    );
    cell.progress(3);

    for (name, width) in [("scalar", 1), ("float2", 2), ("float4", 4)] {
        cell.tick(name);
        let len = n as u64;
        let mut launch = |_| {
            let (a, c) = (&a.memory.slice(..n), &mut c);
            match width {
                1 => scalar.launch(&stream, copy_02_scalar::Arguments { a, c, n: len })?,
                2 => float2.launch(&stream, copy_03_float2::Arguments { a, c, n: len })?,
                _ => float4.launch(&stream, copy_01_float4::Arguments { a, c, n: len })?,
            }
            Ok(())
        };
        let bytes = FLOAT * width;
        let each = addresses::sectors((0..WARP).map(|lane| bytes * lane), bytes);
        let requests = |floats: usize| floats / (WARP * width);
        let counts = counted(cell, &stream, || launch(0))?;
        hold(&counts, "global_load_requests", requests(n))?;
        hold(&counts, "global_load_sectors", each * requests(n))?;
        let time = timing::device(stream.cu_stream(), launch)?;
        a.hold_copy(&stream, &c, 0)?;
        table.push(row![name, bytes, requests(1024), each]);
        rate.push(name, time.map(|time| time.gigabytes_per_second(2 * FLOAT * n)));
    }
    cell.table(table);
    cell.series(rate);
    cell.figure(
        Figure::new(
            "How fast is a copy, 4, 8 or 16 bytes at a time?",
            "Bars: the rate grows with the width of the access.",
        )
        .x(Axis::labels("a thread's access"))
        .y(Axis::linear("rate, 8 bytes a float", "GB/s"))
        .series(["rate"]),
    );
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Structs: which neighbours does the data have?

fn structs(cell: &mut Cell) -> Result<()> {
    const FIELDS: usize = 8;
    const DT: f32 = 0.125;
    let (context, stream) = open()?;
    let n = cell.largest(cell.parameter("elements")?) / 4;
    let particles = Numbers::new(&stream, FIELDS * n, 1)?;
    let mut moved = stream.alloc_zeros::<f32>(n)?;
    let of_structs = advance_01_structs::Kernel::load(&context)?;
    let of_arrays = advance_02_arrays::Kernel::load(&context)?;
    let mut table = Table::new("structs")
        .exact("layout", "")
        .exact("sectors a request", "")
        .exact("bytes fetched a particle", "")
        .exact("bytes wanted", "");
    let mut rate = Series::measured("rate", "GB/s").label("bytes wanted and written");
    cell.progress(2);

    // The struct's fields x and vx are its floats 0 and 3. As arrays, they are the first n floats of
    // the same memory and the n after them.
    for (name, apart, x_at, vx_at) in
        [("array of structs", FIELDS, 0, 3), ("struct of arrays", 1, 0, n)]
    {
        cell.tick(name);
        let mut launch = |_| {
            let (dt, len, moved) = (DT, n as u64, &mut moved);
            if apart == FIELDS {
                let particles = &particles.memory;
                let arguments = advance_01_structs::Arguments { particles, moved, dt, n: len };
                of_structs.launch(&stream, arguments)?;
            } else {
                let (x, vx) = (&particles.memory.slice(..n), &particles.memory.slice(n..2 * n));
                let arguments = advance_02_arrays::Arguments { x, vx, moved, dt, n: len };
                of_arrays.launch(&stream, arguments)?;
            }
            Ok(())
        };
        let addresses = |at: usize| (0..WARP).map(move |lane| FLOAT * (lane * apart + at % FIELDS));
        let each = addresses::sectors(addresses(x_at), FLOAT);
        let together = addresses::sectors(addresses(x_at).chain(addresses(vx_at)), FLOAT);
        // Arrays that lie far apart share no sector.
        let fetched = if vx_at < FIELDS { together } else { 2 * each };
        let counts = counted(cell, &stream, || launch(0))?;
        hold(&counts, "global_load_sectors", 2 * each * n / WARP)?;
        let time = timing::device(stream.cu_stream(), launch)?;

        let result = stream.clone_dtoh(&moved)?;
        let expected = |i: usize| {
            let (x, vx) = (particles.at(i * apart + x_at), particles.at(i * apart + vx_at));
            (f64::from(x) + f64::from(vx) * f64::from(DT)) as f32
        };
        ensure!(
            result.iter().enumerate().all(|(i, &value)| value == expected(i)),
            "a particle of {n} ends in the wrong place, from the {name}"
        );
        table.push(row![name, each, fetched * SECTOR_BYTES / WARP, 2 * FLOAT]);
        rate.push(name, time.map(|time| time.gigabytes_per_second(3 * FLOAT * n)));
    }
    cell.table(table);
    cell.series(rate);
    cell.figure(
        Figure::new(
            "What does the layout cost?",
            "Bars: the struct of arrays moves more than twice as many useful bytes a second.",
        )
        .x(Axis::labels("layout"))
        .y(Axis::linear("rate, 12 bytes a particle", "GB/s"))
        .series(["rate"]),
    );
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// The transpose: is it right, at every size?

fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let mut kernels = Vec::new();
    let mut table = Table::new("wrong").exact("rows × columns", "");
    for step in Step::ALL {
        table = table.exact(step.name(), "");
        kernels.push(Transposer::load(step, &context)?);
    }
    for (rows, columns) in [
        (1, 1),
        (1, 33),
        (31, 1),
        (31, 33),
        (33, 31),
        (64, 64),
        (100, 68),
        (257, 1023),
        (1000, 1000),
    ] {
        let a = cpu::numbers(rows * columns, 1);
        let expected = cpu::transpose(&a, rows, columns);
        let mut wrong = Vec::new();
        for kernel in &kernels {
            let c = kernel.transpose(&stream, &a, rows, columns)?;
            let differ = |(c, expected): (&f32, &f32)| c.to_bits() != expected.to_bits();
            wrong.push(c.iter().zip(&expected).filter(|&pair| differ(pair)).count());
        }
        ensure!(
            wrong.iter().all(|&wrong| wrong == 0),
            "transposing {rows} × {columns} gives {wrong:?} wrong elements"
        );
        let numbers = wrong.into_iter().map(lab::Entry::from);
        table.push([lab::Entry::from(format!("{rows} × {columns}"))].into_iter().chain(numbers));
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Banks: who wants which?

// ANCHOR: bank_map
fn banks(cell: &mut Cell) -> Result<()> {
    let mut table = Table::new("conflicts")
        .exact("step", "")
        .exact("passes to store a row", "")
        .exact("passes to load a column", "")
        .exact("conflicts a load", "");
    for (step, title) in [
        (Step::Tiled, "A column of a 32 × 32 tile lies in one bank"),
        (Step::Padded, "With rows of 33 words it lies in all of them"),
        (Step::Swizzled, "So it does with exchanged columns"),
    ] {
        let alt = format!(
            "A grid of 32 column reads by 32 banks for the {} tile: how many lanes want each bank.",
            step.name()
        );
        let mut map = HeatMap::exact(step.name(), title, alt)
            .amounts("lanes that want the bank", "")
            .rows("column")
            .columns("bank", 0..BANKS as u32);
        for column in 0..32 {
            let lanes = addresses::lanes_per_bank(step.loaded(column));
            map.push(column.to_string(), lanes.map(|lanes| lanes as f64));
        }
        // ANCHOR_END: bank_map
        cell.heat_map(map);

        let passes = |words: &dyn Fn(usize) -> usize| (0..32).map(words).sum::<usize>();
        let stores = passes(&|row| addresses::wavefronts(step.stored(row)));
        let loads = passes(&|column| addresses::wavefronts(step.loaded(column)));
        // One whole tile, so that every access has its 32 lanes.
        let a = cpu::numbers(32 * 32, 1);
        let (_, counts) = cell.counts(|| transpose(step, &a, 32, 32))?;
        hold(&counts, "shared_store_wavefronts", stores)?;
        hold(&counts, "shared_load_wavefronts", loads)?;
        hold(&counts, "shared_load_bank_conflicts", loads - 32)?;
        table.push(row![step.name(), stores / 32, loads / 32, (loads - 32) / 32]);
    }
    cell.table(table);

    let mut layout = HeatMap::exact(
        "layout",
        "Where the swizzled tile keeps its columns",
        "A grid of 32 rows by 32 banks: column 0 of the tile runs down the diagonal, and every other column along a broken \
         one, so that no column meets a bank twice.",
    )
    .identities("column of the tile")
    .rows("row")
    .columns("bank", 0..BANKS as u32);
    for row in 0..32 {
        let mut columns = [0.0; BANKS];
        for (column, word) in Step::Swizzled.stored(row).enumerate() {
            columns[word % BANKS] = column as f64;
        }
        layout.push(row, columns);
    }
    cell.heat_map(layout);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// What the transposes ask of memory: counts, the same on every GPU

fn counts(cell: &mut Cell) -> Result<()> {
    let (rows, columns) = (256, 512);
    let a = cpu::numbers(rows * columns, 1);
    let mut table = Table::new("requests")
        .exact("step", "")
        .exact("sectors a load", "")
        .exact("sectors a store", "")
        .exact("sectors a float", "")
        .exact("passes a shared load", "")
        .exact("conflicts a shared load", "")
        .exact("warp instructions a float", "");
    for step in Step::ALL {
        let (_, counts) = cell.counts(|| transpose(step, &a, rows, columns))?;
        for launch in counts {
            let count = |counter: &str| launch.get(counter).unwrap_or(f64::NAN);
            let each = |of: &str, per: &str| match count(per) {
                0.0 => lab::Entry::from("–"),
                per => lab::Entry::from(count(of) / per),
            };
            let sectors = count("global_load_sectors") + count("global_store_sectors");
            table.push(row![
                step.name(),
                each("global_load_sectors", "global_load_requests"),
                each("global_store_sectors", "global_store_requests"),
                sectors / (rows * columns) as f64,
                each("shared_load_wavefronts", "shared_load_instructions"),
                each("shared_load_bank_conflicts", "shared_load_instructions"),
                count("warp_instructions") / (rows * columns) as f64,
            ]);
        }
    }
    if !table.rows.is_empty() {
        cell.table(table);
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// How fast are they?

// ANCHOR: ladder
fn ladder(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let side = matrix_side(cell)?;
    let n = side * side;
    let a = Numbers::new(&stream, n, 1)?;
    let (mut c, mut copied) = (stream.alloc_zeros::<f32>(n)?, stream.alloc_zeros::<f32>(n)?);
    let copy = copy_01_float4::Kernel::load(&context)?;
    let bytes = 2 * n * FLOAT; // each float is read once and written once: the floor
    let mut rate = Series::measured("rate", "GB/s").label("transpose");
    let mut time = Series::measured("time", "s");
    let mut of_copy = Series::measured("of_copy", "%");
    let (mut ceiling, mut floor) = (None, None);
    cell.progress(Step::ALL.len() as u64);

    for step in Step::ALL {
        cell.tick(step.name());
        let kernel = Transposer::load(step, &context)?;
        let (rows, columns) = (u32::try_from(side)?, u32::try_from(side)?);
        let pairs = timing::device_pairs(
            stream.cu_stream(),
            |_| Ok(kernel.launch(&stream, &a.memory, &mut c, rows, columns)?),
            |_| {
                let (a, c, n) = (&a.memory, &mut copied, n as u64);
                Ok(copy.launch(&stream, copy_01_float4::Arguments { a, c, n })?)
            },
        )?;
        holds_transpose(&stream, &a, &c, side)?;
        rate.push(step.name(), pairs.map(|pairs| pairs.ours.gigabytes_per_second(bytes)));
        time.push(step.name(), pairs.map(|pairs| pairs.ours.seconds()));
        of_copy.push(step.name(), pairs.map(|pairs| percent(pairs.speed)));
        ceiling = pairs.map(|pairs| pairs.theirs.gigabytes_per_second(bytes));
        floor = pairs.map(|pairs| pairs.theirs.seconds());
    }
    // ANCHOR_END: ladder
    cell.measured("side", side as f64, "");
    cell.measured("bytes", bytes as f64, "B");
    cell.measured("floor", floor, "s");
    cell.measured("copy", ceiling, "GB/s");
    cell.series(rate);
    cell.series(time);
    cell.series(of_copy);
    cell.figure(
        Figure::new(
            "How near does a transpose come to a copy?",
            "Bars, one a step: from an eighth of the copy's rate up to nearly all of it, and the failure back at two thirds.",
        )
        .x(Axis::labels("step"))
        .y(Axis::linear("rate, 8 bytes a float", "GB/s"))
        .series(["rate"])
        .limit("copy", "copy kernel, measured in turn"),
    );
    Ok(())
}

/// A ratio in hundredths.
fn percent(Point { value, low, high, samples }: Point) -> Point {
    let [value, low, high] = [value, low, high].map(|ratio| ratio.map(|ratio| 100.0 * ratio));
    Point { value, low, high, samples }
}

/// The side of the matrix that is timed.
fn matrix_side(cell: &Cell) -> Result<usize> {
    let side = cell.parameter("transpose_side")?;
    Ok(cell.largest(side * side).isqrt())
}

/// Compares every element of `c` with its place in `a`.
fn holds_transpose(
    stream: &Arc<CudaStream>,
    a: &Numbers,
    c: &CudaSlice<f32>,
    side: usize,
) -> Result<()> {
    let _check = lab::range("check");
    let c = stream.clone_dtoh(c)?;
    let wrong = (0..side * side).find(|&i| c[i] != a.at(i % side * side + i / side));
    match wrong {
        None => Ok(()),
        Some(i) => anyhow::bail!("element ({}, {}) of the transpose is wrong", i / side, i % side),
    }
}

// -------------------------------------------------------------------------------------------------
// Constant memory: made for one address at a time

fn constant(cell: &mut Cell) -> Result<()> {
    const STEPS: u32 = 1024;
    let (context, stream) = open()?;
    let lookup = constant_01_lookup::Kernel::load(&context)?;
    let global = constant_02_global::Kernel::load(&context)?;
    let full = threads_at_once(&context)? as usize;
    let n = u32::try_from(cell.largest(full))?;
    let table: Vec<u32> = (0..256).map(|entry| (entry + 32) % 256).collect();
    let table = stream.clone_htod(&table)?;
    let mut c = stream.alloc_zeros::<u32>(n as usize)?;
    let mut series = [
        Series::measured("constant", "s").label("constant memory"),
        Series::measured("global", "s").label("global memory, by L1"),
    ];
    cell.progress(12);

    for distinct in [1, 2, 4, 8, 16, 32] {
        for (place, series) in series.iter_mut().enumerate() {
            cell.tick(&format!("{distinct} addresses"));
            let time = timing::device(stream.cu_stream(), |_| {
                let (table, c, steps) = (&table, &mut c, STEPS);
                if place == 0 {
                    let arguments = constant_01_lookup::Arguments { c, distinct, steps, n };
                    lookup.launch(&stream, arguments)?;
                } else {
                    let arguments = constant_02_global::Arguments { table, c, distinct, steps, n };
                    global.launch(&stream, arguments)?;
                }
                Ok(())
            })?;
            let right = |(i, end): (usize, &u32)| *end == cpu::lookup(i as u32, distinct, STEPS);
            ensure!(
                stream.clone_dtoh(&c)?.iter().enumerate().all(right),
                "a thread went astray in the table, with {distinct} addresses in a warp"
            );
            series.push(distinct, time.map(timing::Timing::seconds));
        }
    }
    cell.value("lookups", f64::from(STEPS), "");
    series.into_iter().for_each(|series| cell.series(series));
    cell.figure(
        Figure::new(
            "What if the threads of a warp want different constants?",
            "Time over different addresses in a warp: from constant memory it doubles with each doubling, from global memory \
             it stays the same.",
        )
        .x(Axis::log2("different addresses in a warp", ""))
        .y(Axis::log10("time", "s"))
        .series(["constant", "global"]),
    );
    Ok(())
}

/// As many threads as the device holds at once.
fn threads_at_once(context: &CudaContext) -> Result<u32> {
    let attribute =
        |attribute| Ok::<_, anyhow::Error>(context.attribute(attribute)?.unsigned_abs());
    let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let threads = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)?;
    Ok(multiprocessors * threads)
}

// -------------------------------------------------------------------------------------------------
// Registers, and what happens when there are too few

fn registers(cell: &mut Cell) -> Result<()> {
    const DEPTH: usize = 64;
    /// 64 additions, each off by at most 2^-24 of the sum, and as many subtractions and squares.
    const TOLERANCE: f64 = 1e-5;
    let (context, stream) = open()?;
    let n = cell.largest(cell.parameter("elements")?) / DEPTH;
    let a = Numbers::new(&stream, DEPTH * n, 1)?;
    let mut c = stream.alloc_zeros::<f32>(n)?;
    let (in_registers, in_local, spilled) = (
        spread_01_registers::Kernel::load(&context)?,
        spread_02_local::Kernel::load(&context)?,
        spread_03_spilled::Kernel::load(&context)?,
    );
    let mut table = Table::new("spread")
        .exact("values", "")
        .measured("registers a thread", "")
        .measured("local bytes a thread", "")
        .measured("time", "s")
        .measured("rate", "GB/s");
    let mut traffic = Table::new("traffic")
        .exact("values", "")
        .exact("local loads a thread", "")
        .exact("local stores a thread", "")
        .exact("sectors a local load", "");
    cell.progress(3);

    for (name, handle) in [
        ("in registers", in_registers.handle()),
        ("in local memory", in_local.handle()),
        ("spilled", spilled.handle()),
    ] {
        cell.tick(name);
        let mut launch = |_| {
            let (a, c, n) = (&a.memory, &mut c, n as u64);
            match name {
                "in registers" => {
                    in_registers.launch(&stream, spread_01_registers::Arguments { a, c, n })?;
                }
                "in local memory" => {
                    in_local.launch(&stream, spread_02_local::Arguments { a, c, n })?;
                }
                _ => spilled.launch(&stream, spread_03_spilled::Arguments { a, c, n })?,
            }
            Ok(())
        };
        let counts = counted(cell, &stream, || launch(0))?;
        let time = timing::device(stream.cu_stream(), launch)?;
        let (result, some) = (stream.clone_dtoh(&c)?, n.min(4096));
        let values: Vec<f32> = (0..DEPTH * some).map(|i| a.at(i / some * n + i % some)).collect();
        for (i, expected) in cpu::spread(&values, some).into_iter().enumerate() {
            ensure!(
                (f64::from(result[i]) - expected).abs() <= TOLERANCE * expected,
                "column {i} {name}: {} is not {expected}",
                result[i]
            );
        }
        let function = handle.function();
        table.push(row![
            name,
            function.num_regs()?,
            function.local_size_bytes()?,
            time.map(timing::Timing::seconds),
            time.map(|time| time.gigabytes_per_second((DEPTH + 1) * n * FLOAT)),
        ]);
        for launch in counts {
            let count = |counter| launch.get(counter).unwrap_or(f64::NAN);
            let warps = (n / WARP) as f64;
            let loads = count("local_load_requests");
            let sectors = match loads {
                0.0 => lab::Entry::from("–"),
                loads => lab::Entry::from(count("local_load_sectors") / loads),
            };
            traffic.push(row![name, loads / warps, count("local_store_requests") / warps, sectors]);
        }
    }
    cell.table(table);
    if !traffic.rows.is_empty() {
        cell.table(traffic);
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// L2: read the same bytes again, from ever more of them

// ANCHOR: footprints
fn footprints(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let largest = cell.largest(cell.parameter("largest_footprint")?);
    let a = Numbers::new(&stream, largest, 1)?;
    let mut reader = Reader::new(&context, &stream)?;
    let mut rate = Series::measured("rate", "GB/s").label("read again and again");
    let sizes: Vec<usize> = std::iter::successors(Some(1 << 18), |n| Some(2 * n))
        .take_while(|&n| n <= largest)
        .collect();
    cell.progress(sizes.len() as u64);

    for n in sizes {
        cell.tick(&format!("{} MB", (FLOAT * n) >> 20));
        let rounds = largest / n; // the same number of bytes each time
        rate.push(FLOAT * n, reader.l2(&a, n, rounds)?);
    }
    // ANCHOR_END: footprints
    cell.measured(
        "l2_size",
        f64::from(context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?),
        "B",
    );
    cell.series(rate);
    cell.figure(
        Figure::new(
            "How fast is a read, if the data fits into L2?",
            "Rate over footprint: high while the bytes fit into the L2 cache, then down to the rate of memory.",
        )
        .x(Axis::log2("footprint", "B"))
        .y(Axis::linear("rate", "GB/s"))
        .series(["rate"]),
    );
    Ok(())
}

/// Reads memory over and over, from each level of it, and checks what it read.
struct Reader<'a> {
    context: &'a CudaContext,
    stream: &'a Arc<CudaStream>,
    l2: reread_01_l2::Kernel,
    l1: reread_02_l1::Kernel,
    shared: reread_03_shared::Kernel,
    sums: CudaSlice<f32>,
}

impl<'a> Reader<'a> {
    fn new(context: &'a Arc<CudaContext>, stream: &'a Arc<CudaStream>) -> Result<Self> {
        Ok(Self {
            context,
            stream,
            l2: reread_01_l2::Kernel::load(context)?,
            l1: reread_02_l1::Kernel::load(context)?,
            shared: reread_03_shared::Kernel::load(context)?,
            sums: stream.alloc_zeros(threads_at_once(context)? as usize)?,
        })
    }

    /// The rate at which the first `n` floats are read `rounds` times, past the L1 caches.
    fn l2(&mut self, a: &Numbers, n: usize, rounds: usize) -> Result<Option<Point>> {
        let threads = self.sums.len() as u32;
        let a_n = a.memory.slice(..n);
        let time = timing::device(self.stream.cu_stream(), |_| {
            let (n, rounds, sums) = (n as u64, rounds as u32, &mut self.sums);
            let arguments = reread_01_l2::Arguments { a: &a_n, sums, n, rounds, threads };
            Ok(self.l2.launch(self.stream, arguments)?)
        })?;
        self.check(self.sums.len(), a.sum(n) * rounds as f64)?;
        Ok(time.map(|time| time.gigabytes_per_second(FLOAT * n * rounds)))
    }

    /// The rate at which every block reads the same 16 KB, by the L1 caches or from shared memory.
    fn block(&mut self, a: &Numbers, shared: bool, rounds: u32) -> Result<Option<Point>> {
        const LEN: usize = 4096;
        let threads = 1024;
        let multiprocessors =
            self.context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let blocks = multiprocessors.unsigned_abs();
        let len = blocks as usize * threads;
        let a_block = a.memory.slice(..LEN);
        let time = timing::device(self.stream.cu_stream(), |_| {
            let (a, sums) = (&a_block, &mut self.sums.slice_mut(..len));
            if shared {
                let arguments = reread_03_shared::Arguments { a, sums, rounds, blocks };
                self.shared.launch(self.stream, arguments)?;
            } else {
                let arguments = reread_02_l1::Arguments { a, sums, rounds, blocks };
                self.l1.launch(self.stream, arguments)?;
            }
            Ok(())
        })?;
        self.check(len, a.sum(LEN) * f64::from(rounds * blocks))?;
        let bytes = len * 4 * FLOAT * rounds as usize;
        Ok(time.map(|time| time.gigabytes_per_second(bytes)))
    }

    /// Compares the threads' sums, added in f64, with what they should be.
    fn check(&self, threads: usize, expected: f64) -> Result<()> {
        // A thread adds some ten thousand numbers, each time off by at most 2^-24 of its sum.
        const TOLERANCE: f64 = 1e-3;
        let sums = self.stream.clone_dtoh(&self.sums.slice(..threads))?;
        let sum: f64 = sums.into_iter().map(f64::from).sum();
        ensure!(
            (sum - expected).abs() <= TOLERANCE * expected,
            "reading gives the sum {sum}, which should be {expected}"
        );
        Ok(())
    }
}

// -------------------------------------------------------------------------------------------------
// Latency: one load after the other

fn latency(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let largest = FLOAT * cell.largest(cell.parameter("longest_chain")?);
    let mut time = Series::measured("time", "s").label("one step");
    let mut cycles = Series::measured("cycles", "").label("one step");
    let sizes: Vec<usize> =
        std::iter::successors(Some(4096), |n| Some(2 * n)).take_while(|&n| n <= largest).collect();
    cell.progress(sizes.len() as u64 + 1);

    for bytes in sizes {
        cell.tick(&format!("{} KB", bytes >> 10));
        let step = Chase::global(&context, &stream, bytes)?.step()?;
        time.push(bytes, step.map(|step| step.time));
        cycles.push(bytes, step.map(|step| step.cycles));
    }
    cell.tick("shared memory");
    let shared = Chase::shared(&context, &stream)?.step()?;
    cell.measured("shared", shared.map(|step| step.time), "s");
    cell.measured("shared_cycles", shared.map(|step| step.cycles), "");
    cell.series(time);
    cell.series(cycles);
    cell.figure(
        Figure::new(
            "How long does one load take?",
            "Time of a load over the length of the chain: a step up where it no longer fits into L1, and another where it no \
             longer fits into L2.",
        )
        .x(Axis::log2("length of the chain", "B"))
        .y(Axis::log10("time of a load", "s"))
        .series(["time"])
        .limit("shared", "shared memory"),
    );
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// The map

fn levels(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let attribute = |attribute| Ok::<_, anyhow::Error>(f64::from(context.attribute(attribute)?));
    let multiprocessors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let registers = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)?;
    let shared = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)?;
    let l2 = attribute(Attribute::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)?;
    cell.progress(4);

    // An eighth of the cache surely fits into it, and a chain or a vector that is many times as large
    // surely does not.
    let fits = floor_power_of_two(l2 as usize / 8);
    let memory_floats = cell.largest(cell.parameter("largest_footprint")?);
    let memory_chain = FLOAT * cell.largest(cell.parameter("longest_chain")?);
    let a = Numbers::new(&stream, memory_floats, 1)?;
    let l2_floats = (fits / FLOAT).min(memory_floats);
    let mut reader = Reader::new(&context, &stream)?;
    let rounds = u32::try_from(cell.largest(1 << 20) / 128)?;

    cell.tick("shared memory");
    let shared_rate = reader.block(&a, true, rounds)?;
    let shared_step = Chase::shared(&context, &stream)?.step()?;
    cell.tick("L1");
    let l1_rate = reader.block(&a, false, rounds)?;
    let l1_step = Chase::global(&context, &stream, 16 << 10)?.step()?;
    cell.tick("L2");
    let l2_rate = reader.l2(&a, l2_floats, memory_floats / l2_floats)?;
    let l2_step = Chase::global(&context, &stream, fits.min(memory_chain))?.step()?;
    cell.tick("memory");
    let memory_rate = reader.l2(&a, memory_floats, 1)?;
    let memory_step = Chase::global(&context, &stream, memory_chain)?.step()?;

    let mut table = Table::new("levels")
        .exact("place", "")
        .measured("in a multiprocessor", "B")
        .measured("in all", "B")
        .measured("rate", "GB/s")
        .measured("latency", "s")
        .measured("latency in cycles", "");
    let mut rate = Series::measured("rate", "GB/s").label("read");
    let mut time = Series::measured("latency", "s").label("one load");
    // By Little's law: what arrives in a second, times the seconds that it is under way.
    let rate_of_memory = memory_rate.and_then(|rate| rate.value);
    let under_way = rate_of_memory.zip(memory_step.and_then(|step| step.time.value));
    let under_way = under_way.map(|(rate, seconds)| rate * 1e9 * seconds);
    cell.measured("under_way", under_way, "B");
    let threads = f64::from(threads_at_once(&context)?);
    cell.measured("under_way_a_thread", under_way.map(|bytes| bytes / threads), "B");
    let kept = registers * FLOAT as f64;
    table.push(row!["registers", kept, kept * multiprocessors, "–", "–", "–"]);
    let total = context.total_mem()? as f64;
    for (place, own, all, place_rate, step) in [
        ("shared", Some(shared), shared * multiprocessors, shared_rate, shared_step),
        ("L1", Some(shared), shared * multiprocessors, l1_rate, l1_step),
        ("L2", None, l2, l2_rate, l2_step),
        ("memory", None, total, memory_rate, memory_step),
    ] {
        table.push(row![
            place,
            own.map_or_else(|| lab::Entry::from("–"), lab::Entry::from),
            all,
            place_rate,
            step.map(|step| step.time),
            step.map(|step| step.cycles),
        ]);
        rate.push(place, place_rate);
        time.push(place, step.map(|step| step.time));
    }
    cell.table(table);
    cell.series(rate);
    cell.series(time);
    cell.figure(
        Figure::new(
            "How many bytes a second does each level give?",
            "Bars on a logarithmic scale: shared memory and L1 give most, memory least.",
        )
        .name("rates")
        .x(Axis::labels("place"))
        .y(Axis::log10("rate", "GB/s"))
        .series(["rate"]),
    );
    cell.figure(
        Figure::new(
            "How long does one load take from each level?",
            "Bars: the farther away, the longer.",
        )
        .name("latencies")
        .x(Axis::labels("place"))
        .y(Axis::log10("latency", "s"))
        .series(["latency"]),
    );
    Ok(())
}

fn floor_power_of_two(n: usize) -> usize {
    1 << n.max(1).ilog2()
}

// -------------------------------------------------------------------------------------------------
// The same elsewhere: CUDA C++ in this process, Python beside it

fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(1 + PYTHON_PEERS.len() as u64);
    let mut table = Table::new("peers")
        .measured("written in", "")
        .measured("version", "")
        .measured("transpose", "GB/s");
    let mut unmeasured = Vec::new();
    cell.tick("CUDA C++");
    match lab::peers::cuda_library("ch03_cuda.cu") {
        Ok(library) => against_cuda(cell, &library, &mut table)?,
        Err(missing) => unmeasured.push(format!("CUDA C++ was not measured: {missing}.")),
    }
    let ptx = tempfile::NamedTempFile::new().context("making a file for the peers")?;
    std::fs::write(ptx.path(), kernels::TRANSPOSE_06_ORDER.ptx_text())
        .context("writing our kernel for the peers")?;
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python_with(script, &[ptx.path().as_os_str()]) {
            Ok(peer) => {
                table.push(row![peer.word("peer"), peer.word("version"), peer.number("gbps")]);
                if let Some(ratio) = peer.number("ours_over_theirs") {
                    let point = Point {
                        value: Some(ratio),
                        low: peer.number("low"),
                        high: peer.number("high"),
                        samples: peer.number("pairs").map(|pairs| pairs as usize),
                    };
                    cell.measured("triton_ratio", point, "");
                }
            }
            Err(missing) => unmeasured.push(format!("{script} was not measured: {missing}.")),
        }
    }
    if !table.rows.is_empty() {
        cell.table(table);
    }
    if !unmeasured.is_empty() {
        cell.measured_text(unmeasured.join("\n"));
    }
    Ok(())
}

/// The programs in `tests/peers`. The first alternates its own kernel with ours in its process.
const PYTHON_PEERS: [&str; 5] =
    ["ch03_triton.py", "ch03_numba.py", "ch03_cupy.py", "ch03_torch.py", "ch03_jax.py"];

/// Rust and C++ in turn, so that both meet the same clocks and the same neighbours.
fn against_cuda(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    type Transpose = unsafe extern "C" fn(CUdeviceptr, CUdeviceptr, u32, u32, CUstream) -> i32;
    // SAFETY: tests/peers/ch03_cuda.cu defines this function with these parameters.
    let theirs = unsafe { library.function::<Transpose>("peer_transpose")? };
    let (context, stream) = open()?;
    let side = matrix_side(cell)?;
    let a = Numbers::new(&stream, side * side, 1)?;
    let mut c = stream.alloc_zeros::<f32>(side * side)?;
    let kernel = Transposer::load(Step::Order, &context)?;
    let side_32 = u32::try_from(side)?;
    let (device_a, device_c) = {
        let (device_a, _read) = a.memory.device_ptr(&stream);
        let (device_c, _written) = c.device_ptr_mut(&stream);
        (device_a, device_c)
    };
    let pairs = timing::device_pairs(
        stream.cu_stream(),
        |_| Ok(kernel.launch(&stream, &a.memory, &mut c, side_32, side_32)?),
        |_| {
            // SAFETY: two matrices of `side` × `side` floats of this context, and its stream.
            let code = unsafe { theirs(device_a, device_c, side_32, side_32, stream.cu_stream()) };
            ensure!(code == 0, "the C++ peer returned the CUDA runtime's error {code}");
            Ok(())
        },
    )?;
    holds_transpose(&stream, &a, &c, side)?;
    cell.measured("cuda_ratio", pairs.map(|pairs| pairs.speed), "");
    if let Some(pairs) = pairs {
        let bytes = 2 * FLOAT * side * side;
        for (language, version, time) in
            [("Rust, this chapter", "", pairs.ours), ("CUDA C++", library.version(), pairs.theirs)]
        {
            table.push(row![language, version, time.gigabytes_per_second(bytes)]);
        }
    }
    Ok(())
}
