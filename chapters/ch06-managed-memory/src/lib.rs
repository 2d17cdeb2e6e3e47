//! Chapter 6, managed memory: one address for the CPU and the device, and a driver that moves the
//! pages to whoever touches them.
//!
//! You need chapter 1, and the sectors of chapter 3. You get: a vector add without a copy; what it
//! costs to let pages follow faults, and what prefetches and advice change; and when to use it.

pub mod cpu;
pub mod managed;
pub mod ways;

use std::sync::Arc;

use anyhow::{Result, ensure};
use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUdeviceptr, CUstream};
use cudarc::driver::{CudaContext, CudaStream, DevicePtr, DriverError, UnifiedSlice, result};
use kernels::{managed_01_sparse, vector_add_03_float4};
use lab::{Axis, Cell, CellSpec, Counts, Figure, Series, Table, row, timing};

use cpu::PAGE;
use managed::{Advice, Mapped, Place};
use timing::Timing;
use ways::{Trip, Way};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("one-address", "Add two vectors without a copy", one_address),
    lab::cell("attributes", "What this device promises about managed memory", attributes),
    lab::cell("odd-sizes", "Hold every way against the CPU at awkward sizes", odd_sizes),
    lab::cell("ways", "Seven ways there and back", ways),
    lab::cell("pages", "Count the pages that kernels touch", pages),
    lab::cell("sparse", "Touch four bytes of each page, or of every 2 MiB", sparse),
    lab::cell("shared", "CPU and device take turns with the same inputs", shared),
    lab::cell("peers", "The same in CUDA C++ and Python", peers),
    lab::cell("unsynchronised", "Look before the kernel is done", unsynchronised),
    lab::cell("checked", "What a checker says to two streams without an event", checked),
    lab::cell("two-streams", "Two streams without an event", two_streams),
];

/// Opens the device, with its default stream.
fn open() -> Result<(Arc<CudaContext>, Arc<CudaStream>)> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    Ok((context, stream))
}

/// Bytes of an `f32`.
const FLOAT: usize = size_of::<f32>();

// -------------------------------------------------------------------------------------------------
// One address for both

// ANCHOR: one_address
fn one_address(cell: &mut Cell) -> Result<()> {
    let n = 1000;
    let (context, stream) = open()?;
    let kernel = vector_add_03_float4::Kernel::load(&context)?;

    // 1. Memory for both.
    let mut a = managed::allocate(&context, n)?;
    let mut b = managed::allocate(&context, n)?;
    let mut c = managed::allocate(&context, n)?;
    // 2. The inputs, written in place by the CPU.
    for (i, (a, b)) in a.as_mut_slice()?.iter_mut().zip(b.as_mut_slice()?).enumerate() {
        (*a, *b) = (i as f32, 2.0 * i as f32);
    }
    // 3. The kernel.
    let arguments = vector_add_03_float4::Arguments { a: &a, b: &b, c: &mut c, n: n as u64 };
    kernel.launch(&stream, arguments)?;
    stream.synchronize()?; // without a copy, nothing else waits for the kernel
    // 4. The result, read in place by the CPU.
    let [a, b, c] = [a.as_slice()?, b.as_slice()?, c.as_slice()?];

    cell.text(format!("{} + {} = {}", a[1], b[1], c[1]));
    cell.text(format!("{} + {} = {}", a[n - 1], b[n - 1], c[n - 1]));
    ensure!(c == cpu::sum(a, b), "the device's sum differs from the CPU's");
    Ok(())
}
// ANCHOR_END: one_address

// -------------------------------------------------------------------------------------------------
// What the device promises

fn attributes(cell: &mut Cell) -> Result<()> {
    let (context, _) = open()?;
    let mut table = Table::new("attributes")
        .exact("CU_DEVICE_ATTRIBUTE_…", "")
        .measured("value", "")
        .measured("so, here", "");
    for (name, attribute, no, yes) in ATTRIBUTES {
        let value = context.attribute(attribute)?;
        table.push(row![name, value, if value == 0 { no } else { yes }]);
    }
    cell.table(table);
    Ok(())
}

/// An attribute, and what it means if it is 0 and if it is 1.
const ATTRIBUTES: [(&str, Attribute, &str, &str); 6] = [
    (
        "MANAGED_MEMORY",
        Attribute::CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY,
        "there is no managed memory",
        "there is managed memory",
    ),
    (
        "CONCURRENT_MANAGED_ACCESS",
        Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS,
        "no faults; the CPU must keep out while kernels run",
        "pages follow faults, even while kernels run",
    ),
    (
        "PAGEABLE_MEMORY_ACCESS",
        Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS,
        "a Vec's memory is out of reach for kernels",
        "kernels reach a Vec's memory too",
    ),
    (
        "PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES",
        Attribute::CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
        "the device has page tables of its own",
        "the device walks the CPU's page tables",
    ),
    (
        "DIRECT_MANAGED_MEM_ACCESS_FROM_HOST",
        Attribute::CU_DEVICE_ATTRIBUTE_DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        "pages come back before the CPU reads them",
        "the CPU reads pages on the device, in place",
    ),
    (
        "CAN_MAP_HOST_MEMORY",
        Attribute::CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY,
        "kernels cannot reach pinned memory",
        "kernels reach pinned memory in place",
    ),
];

// -------------------------------------------------------------------------------------------------
// Is it right, at every size?

fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let (context, _) = open()?;
    let mut table = Table::new("wrong").exact("n", "");
    for way in Way::ALL {
        table = table.exact(format!("{}: wrong", way.name()), "");
    }
    for n in [0, 1, 31, 32, 33, 1000, 1023, 1025, 65_537] {
        let (a, b) = (cpu::numbers(n, 1), cpu::numbers(n, 2));
        let expected = cpu::sum(&a, &b);
        let mut entries = vec![lab::Entry::from(n)];
        for way in Way::ALL {
            let c = ways::add(way, &context, &a, &b)?;
            let differs = |(c, expected): &(&f32, &f32)| c.to_bits() != expected.to_bits();
            let wrong = c.iter().zip(&expected).filter(differs).count();
            ensure!(wrong == 0 && c.len() == n, "{}: {wrong} of {n} sums are wrong", way.name());
            entries.push(wrong.into());
        }
        table.push(entries);
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Seven ways there and back

/// The parts of a trip that are timed, after the one that is not.
const PARTS: usize = 3;

// ANCHOR: time_trip
/// The times of the three parts of a trip: in, kernel, back.
fn time_trip(trip: &mut dyn Trip) -> Result<Option<[Timing; PARTS]>> {
    let times = timing::laps(1 + PARTS, |clock| {
        let setup = lab::range("setup");
        trip.prepare()?;
        clock.lap();
        drop(setup);

        let h2d = lab::range("h2d");
        trip.bring()?;
        clock.lap();
        drop(h2d);

        let measure = lab::range("measure");
        trip.add()?;
        clock.lap();
        drop(measure);

        let _d2h = lab::range("d2h");
        trip.fetch()?;
        clock.lap();
        Ok(())
    })?;
    Ok(times.map(|times| [times[1], times[2], times[3]]))
}
// ANCHOR_END: time_trip

fn ways(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let sizes = powers_of_two(1 << 12, cell.largest(cell.parameter("largest")?));
    let largest = sizes.last().copied().unwrap_or(1 << 12);
    let (a, b) = (cpu::numbers(largest, 1), cpu::numbers(largest, 2));
    cell.progress(1 + (Way::ALL.len() * sizes.len()) as u64);

    cell.tick("the link");
    let link = link_rate(&context, &stream, largest)?;
    let floor = |n: usize| Some((3 * FLOAT * n) as f64 / (link?.value? * 1e9));
    let mut floors = Series::measured("floor", "s").label("12 bytes an element over the link");
    sizes.iter().for_each(|&n| floors.push(n, floor(n)));
    let mut totals = Series::measured("total", "s").label("in, kernel and back");
    let mut kernels = Series::measured("kernel", "s").label("kernel");
    let mut table = Table::new("ways")
        .exact("way", "")
        .measured("in", "s")
        .measured("kernel", "s")
        .measured("back", "s")
        .measured("total", "s")
        .measured("12 bytes an element", "GB/s")
        .measured("times the floor", "");

    for way in Way::ALL {
        let mut by_size = Series::measured(way.name(), "s").label(way.name());
        for &n in &sizes {
            cell.tick(&format!("{}, n = {n}", way.name()));
            // So that a profiler tells the ways apart, at the size that the table is about.
            let _way = (n == largest).then(|| lab::range(way.name()));
            let mut trip = way.open(&context, n)?;
            ways::fill(&mut *trip, &a[..n], &b[..n])?;
            let times = time_trip(&mut *trip)?;
            holds_sum(&mut *trip, way)?;
            let total = times.map(|parts| parts.iter().map(|part| part.median).sum::<f64>());
            by_size.push(n, total);
            if n == largest {
                totals.push(way.name(), total);
                kernels.push(way.name(), times.map(|times| times[1].seconds()));
                let part = |i: usize| times.map(|times| times[i].seconds());
                table.push(row![
                    way.name(),
                    part(0),
                    part(1),
                    part(2),
                    total,
                    total.map(|total| (3 * FLOAT * n) as f64 / total / 1e9),
                    total.zip(floor(n)).map(|(total, floor)| total / floor),
                ]);
            }
        }
        cell.series(by_size);
    }

    cell.measured("link", link, "GB/s");
    cell.measured("least", floor(largest), "s");
    cell.measured("least_both_ways", floor(largest).map(|floor| floor * 2.0 / 3.0), "s");
    cell.table(table);
    cell.series(floors);
    cell.series(totals);
    cell.series(kernels);
    cell.figure(
        Figure::new(
            "How long do the seven ways take, there and back?",
            "Bars of total time: zero-copy and pinned copies lie at the floor, managed memory that is \
             prefetched lies above them, pageable copies and cold managed memory far above.",
        )
        .name("totals")
        .x(Axis::labels("way"))
        .y(Axis::linear("time of all parts", "s"))
        .series(["total"])
        .limit("least", "12 bytes an element over the link"),
    );
    // Resident memory has no way in.
    let whole_trips = Way::ALL.into_iter().filter(|&way| way != Way::Resident);
    cell.figure(
        Figure::new(
            "Which way is the best, at which size?",
            "Total time over size: all ways have a cost that does not depend on the size, and grow \
             with the number of bytes from about a hundred thousand elements on.",
        )
        .name("sizes")
        .x(Axis::log2("elements", ""))
        .y(Axis::log10("time of all parts", "s"))
        .series(whole_trips.map(Way::name).chain(["floor"])),
    );
    Ok(())
}

/// What a copy of pinned memory to the device gives.
fn link_rate(
    context: &Arc<CudaContext>,
    stream: &Arc<CudaStream>,
    n: usize,
) -> Result<Option<lab::Point>> {
    let host = ways::pinned(context, n)?;
    let mut device = stream.alloc_zeros::<f32>(n)?;
    let time = timing::device(stream.cu_stream(), |_| Ok(stream.memcpy_htod(&host, &mut device)?))?;
    Ok(time.map(|time| time.gigabytes_per_second(FLOAT * n)))
}

fn holds_sum(trip: &mut dyn Trip, way: Way) -> Result<()> {
    let _check = lab::range("check");
    let mut right = false;
    trip.with(&mut |a, b, c| right = c == cpu::sum(a, b))?;
    ensure!(right, "the sum is wrong by way of {}", way.name());
    Ok(())
}

fn powers_of_two(from: usize, to: usize) -> Vec<usize> {
    // From the largest down, so that it is among them.
    let mut sizes: Vec<usize> =
        std::iter::successors(Some(to), |n| Some(n / 4)).take_while(|&n| n >= from).collect();
    sizes.reverse();
    sizes
}

// -------------------------------------------------------------------------------------------------
// Pages: counts, the same on every GPU

fn pages(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let n = 1 << 22; // 16 MiB, eight pieces of 2 MiB
    let mut table = Table::new("pages")
        .exact("kernel", "")
        .exact("floats touched", "")
        .exact("pages", "")
        .exact("pages written", "")
        .exact("pieces of 2 MiB", "")
        .exact("bytes of pages for each byte touched", "");
    let mut push = |name: String, floats: usize, expected: [usize; 3], counts: &[Counts]| {
        hold(counts, "managed_pages", expected[0])?;
        hold(counts, "managed_pages_written", expected[1])?;
        hold(counts, "managed_blocks", expected[2])?;
        let of_pages = (PAGE * expected[0]) as f64 / floats as f64;
        table.push(row![name, floats, expected[0], expected[1], expected[2], of_pages]);
        Ok::<_, anyhow::Error>(())
    };

    // ANCHOR: count_pages
    let add = vector_add_03_float4::Kernel::load(&context)?;
    let mut vectors = Vectors::new(&context, n)?;
    let ((), counts) = cell.counts(|| {
        let _measure = lab::range("measure");
        let Vectors { a, b, c } = &mut vectors;
        add.launch(&stream, vector_add_03_float4::Arguments { a, b, c, n: n as u64 })?;
        Ok(stream.synchronize()?)
    })?;
    let each = [PAGE, BLOCK].map(|size| distinct((0..n).map(|i| i / size)));
    push("vector add".into(), 3 * n, [3 * each[0], each[0], 3 * each[1]], &counts)?;
    // ANCHOR_END: count_pages

    let touch = managed_01_sparse::Kernel::load(&context)?;
    for stride in [2, 32, PAGE, 16 * PAGE, BLOCK] {
        let touched = n / stride;
        let before = vectors.a.as_slice()?.to_vec();
        let ((), counts) = cell.counts(|| {
            let _kernel = lab::range(&format!("kernel.every_{stride}"));
            let _measure = lab::range("measure");
            let (a, touched, stride) = (&mut vectors.a, touched as u64, stride as u64);
            touch.launch(&stream, managed_01_sparse::Arguments { a, touched, stride })?;
            Ok(stream.synchronize()?)
        })?;
        holds_touch(&before, vectors.a.as_slice()?, stride)?;
        let each = [PAGE, BLOCK].map(|size| distinct((0..touched).map(|i| i * stride / size)));
        let name = format!("one float in {stride}");
        push(name, touched, [each[0], each[0], each[1]], &counts)?;
    }
    cell.table(table);
    cell.value("page", (FLOAT * PAGE) as f64, "B");
    Ok(())
}

/// Floats in 2 MiB, the largest piece that the driver moves at once.
const BLOCK: usize = (2 << 20) / FLOAT;

/// How many different values come, of values that never fall.
fn distinct(values: impl Iterator<Item = usize>) -> usize {
    let mut last = None;
    values.filter(|&value| last.replace(value) != Some(value)).count()
}

/// Holds what was computed from the addresses against what was counted, where something was.
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

/// Every `stride`-th float is one more than it was, and no other changed.
fn holds_touch(before: &[f32], after: &[f32], stride: usize) -> Result<()> {
    let expected = |i: usize, value: f32| match i % stride {
        0 => (f64::from(value) + 1.0) as f32,
        _ => value,
    };
    let wrong = (0..before.len()).find(|&i| after[i] != expected(i, before[i]));
    ensure!(wrong.is_none(), "touching every {stride}th float, the element {wrong:?} is wrong");
    Ok(())
}

/// Three managed vectors, the inputs with numbers in them.
struct Vectors {
    a: UnifiedSlice<f32>,
    b: UnifiedSlice<f32>,
    c: UnifiedSlice<f32>,
}

impl Vectors {
    fn new(context: &Arc<CudaContext>, n: usize) -> Result<Self> {
        let allocate = || managed::allocate(context, n);
        let (mut a, mut b, mut c) = (allocate()?, allocate()?, allocate()?);
        a.as_mut_slice()?.copy_from_slice(&cpu::numbers(n, 1));
        b.as_mut_slice()?.copy_from_slice(&cpu::numbers(n, 2));
        c.as_mut_slice()?.fill(0.0);
        Ok(Self { a, b, c })
    }

    fn hold_sum(&self) -> Result<()> {
        let [a, b, c] = [self.a.as_slice()?, self.b.as_slice()?, self.c.as_slice()?];
        ensure!(c == cpu::sum(a, b), "the sum of {} managed floats is wrong", c.len());
        Ok(())
    }
}

// -------------------------------------------------------------------------------------------------
// A little of each page

fn sparse(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let n = cell.largest(cell.parameter("sparse")?).max(2 * BLOCK);
    let kernel = managed_01_sparse::Kernel::load(&context)?;
    let numbers = cpu::numbers(n, 1);
    let mut memory = managed::allocate(&context, n)?;
    let mut pinned = Mapped::allocate(&stream, n)?;
    memory.as_mut_slice()?.copy_from_slice(&numbers);
    pinned.as_mut_slice()?.copy_from_slice(&numbers);
    let mut series = [
        Series::measured("cold", "s").label("managed, cold"),
        Series::measured("prefetched", "s").label("managed, all of it prefetched"),
        Series::measured("zero_copy", "s").label("zero-copy"),
    ];
    let mut each_page = Series::measured("each", "s").label("a page, cold");
    cell.progress(STRIDES.len() as u64);

    for stride in STRIDES {
        cell.tick(&format!("one float in {stride}"));
        let touched = (n / stride) as u64;
        let apart = stride as u64;
        let mut managed_touch = |prefetched: bool| {
            let times = timing::laps(2, |clock| {
                // The CPU has every page.
                cpu::write_pages(memory.as_mut_slice()?);
                clock.lap();
                if prefetched {
                    managed::prefetch(&memory, Place::Device, &stream)?;
                }
                let a = &mut memory;
                let arguments = managed_01_sparse::Arguments { a, touched, stride: apart };
                kernel.launch(&stream, arguments)?;
                stream.synchronize()?;
                clock.lap();
                Ok(())
            })?;
            Ok::<_, anyhow::Error>(times.map(|times| times[1]))
        };
        let cold = managed_touch(false)?;
        let all = managed_touch(true)?;
        let in_place = timing::host_call(|| {
            let a = &mut *pinned;
            kernel.launch(&stream, managed_01_sparse::Arguments { a, touched, stride: apart })?;
            Ok(stream.synchronize()?)
        })?;
        for (series, time) in series.iter_mut().zip([cold, all, in_place]) {
            series.push(FLOAT * stride, time.map(Timing::seconds));
        }
        each_page.push(FLOAT * stride, cold.map(|time| time.each(touched as usize)));

        // Is it right? Once more, from numbers that are known.
        let before = memory.as_slice()?.to_vec();
        let arguments = managed_01_sparse::Arguments { a: &mut memory, touched, stride: apart };
        kernel.launch(&stream, arguments)?;
        stream.synchronize()?;
        holds_touch(&before, memory.as_slice()?, stride)?;
    }
    series.into_iter().for_each(|series| cell.series(series));
    cell.series(each_page);
    cell.figure(
        Figure::new(
            "What does it cost to touch four bytes here and there?",
            "Time over the distance of the touched floats: cold managed memory gets faster the \
             farther they lie apart, prefetching everything costs the same whatever is touched, \
             and zero-copy is fastest wherever little is touched.",
        )
        .x(Axis::log2("bytes from one touched float to the next", "B"))
        .y(Axis::log10("time", "s"))
        .series(["cold", "prefetched", "zero_copy"]),
    );
    Ok(())
}

/// Floats from a touched one to the next: 4 KiB to 2 MiB.
const STRIDES: [usize; 6] = [PAGE, 4 * PAGE, 16 * PAGE, 64 * PAGE, 256 * PAGE, 512 * PAGE];

// -------------------------------------------------------------------------------------------------
// Taking turns

// ANCHOR: advices
/// What the driver is told of the two inputs.
const ADVICES: [(&str, &[Advice]); 4] = [
    ("nothing", &[]),
    ("read-mostly", &[Advice::ReadMostly]),
    ("preferred on the device", &[Advice::Preferred(Place::Device)]),
    ("preferred on the host", &[Advice::Preferred(Place::Host), Advice::AccessedBy(Place::Device)]),
];
// ANCHOR_END: advices

fn shared(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let n = cell.largest(cell.parameter("shared")?);
    let kernel = vector_add_03_float4::Kernel::load(&context)?;
    let mut table = Table::new("shared")
        .exact("advice", "")
        .measured("CPU reads", "s")
        .measured("kernel then", "s")
        .measured("CPU writes", "s")
        .measured("kernel afterwards", "s");
    let mut after_read = Series::measured("after_read", "s").label("the CPU has read the inputs");
    let mut after_write =
        Series::measured("after_write", "s").label("the CPU has written to the inputs");
    cell.progress(2 * ADVICES.len() as u64);

    for (name, advices) in ADVICES {
        let mut vectors = Vectors::new(&context, n)?;
        for &advice in advices {
            managed::advise(&vectors.a, advice, &stream)?;
            managed::advise(&vectors.b, advice, &stream)?;
        }
        let mut turns = |writes: bool| {
            // ANCHOR: turns
            timing::laps(2, |clock| {
                let Vectors { a, b, c } = &mut vectors;
                if writes {
                    cpu::write_pages(a.as_mut_slice()?);
                    cpu::write_pages(b.as_mut_slice()?);
                } else {
                    let read = cpu::read_pages(a.as_slice()?) + cpu::read_pages(b.as_slice()?);
                    std::hint::black_box(read);
                }
                clock.lap();
                let arguments = vector_add_03_float4::Arguments { a, b, c, n: n as u64 };
                kernel.launch(&stream, arguments)?;
                stream.synchronize()?;
                clock.lap();
                Ok(())
            })
            // ANCHOR_END: turns
        };
        cell.tick(&format!("{name}: the CPU reads"));
        let reading = turns(false)?;
        cell.tick(&format!("{name}: the CPU writes"));
        let writing = turns(true)?;
        vectors.hold_sum()?;
        let lap = |times: &Option<Vec<Timing>>, i: usize| {
            times.as_ref().map(|times: &Vec<Timing>| times[i].seconds())
        };
        table.push(row![
            name,
            lap(&reading, 0),
            lap(&reading, 1),
            lap(&writing, 0),
            lap(&writing, 1)
        ]);
        after_read.push(name, lap(&reading, 1));
        after_write.push(name, lap(&writing, 1));
    }
    cell.table(table);
    cell.series(after_read);
    cell.series(after_write);
    cell.figure(
        Figure::new(
            "How long does the kernel take after the CPU's turn?",
            "Bars: after the CPU has read, only inputs that are read-mostly are still there for the \
             kernel; after it has written, they have to come again whatever was advised.",
        )
        .x(Axis::labels("advice"))
        .y(Axis::log10("time of the kernel", "s"))
        .series(["after_read", "after_write"]),
    );
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// The same elsewhere: CUDA C++ in this process, Python beside it

fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(2 + PYTHON_PEERS.len() as u64);
    let mut table = Table::new("peers")
        .measured("written in", "")
        .measured("version", "")
        .measured("first kernel", "s")
        .measured("second kernel", "s")
        .measured("pageable copies", "s")
        .measured("pinned copies", "s");
    let mut unmeasured = Vec::new();
    match lab::peers::cuda_library("ch06_cuda.cu") {
        Ok(library) => against_cuda(cell, &library, &mut table)?,
        Err(missing) => unmeasured.push(format!("CUDA C++ was not measured: {missing}.")),
    }
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python(script) {
            Ok(peer) => {
                // Nobody copies managed memory, and PyTorch has none.
                let seconds = |name| match peer.number(name) {
                    Some(milliseconds) => lab::Entry::from(milliseconds / 1e3),
                    None => lab::Entry::from("–"),
                };
                table.push(row![
                    peer.word("peer"),
                    peer.word("version"),
                    seconds("cold_ms"),
                    seconds("resident_ms"),
                    seconds("pageable_ms"),
                    seconds("pinned_ms"),
                ]);
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

/// The programs in `tests/peers`.
const PYTHON_PEERS: [&str; 4] =
    ["ch06_pycuda.py", "ch06_numba.py", "ch06_cupy.py", "ch06_torch.py"];

/// Rust and C++ in turn, on the same managed memory, which the CPU takes back before each turn.
fn against_cuda(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    type Add = unsafe extern "C" fn(CUdeviceptr, CUdeviceptr, CUdeviceptr, usize, CUstream) -> i32;
    type Prefetched =
        unsafe extern "C" fn(CUdeviceptr, CUdeviceptr, CUdeviceptr, usize, i32, CUstream) -> i32;
    // SAFETY: tests/peers/ch06_cuda.cu defines these functions with these parameters.
    let (add, prefetched) = unsafe {
        (library.function::<Add>("peer_add")?, library.function::<Prefetched>("peer_prefetched")?)
    };
    let succeeded = |code: i32| {
        ensure!(code == 0, "the C++ peer returned the CUDA runtime's error {code}");
        Ok(())
    };
    let (context, stream) = open()?;
    let n = cell.largest(cell.parameter("largest")?);
    let kernel = vector_add_03_float4::Kernel::load(&context)?;
    let vectors = std::cell::RefCell::new(Vectors::new(&context, n)?);
    let [a, b, c] = {
        let vectors = vectors.borrow();
        [&vectors.a, &vectors.b, &vectors.c].map(|vector| vector.device_ptr(&stream).0)
    };
    let ours = || {
        let Vectors { a, b, c } = &mut *vectors.borrow_mut();
        kernel.launch(&stream, vector_add_03_float4::Arguments { a, b, c, n: n as u64 })?;
        Ok(stream.synchronize()?)
    };
    // SAFETY: three managed vectors of `n` floats, and a stream of this context; it waits.
    let theirs = || succeeded(unsafe { add(a, b, c, n, stream.cu_stream()) });
    let take_back = || {
        let Vectors { a, b, c } = &mut *vectors.borrow_mut();
        cpu::write_pages(a.as_mut_slice()?);
        cpu::write_pages(b.as_mut_slice()?);
        cpu::write_pages(c.as_mut_slice()?);
        Ok(())
    };
    cell.tick("cold");
    let cold = timing::host_pairs(ours, theirs, take_back)?;
    let resident = timing::host_pairs(ours, theirs, || Ok(()))?;
    cell.tick("prefetched");
    let trips = timing::host_pairs(
        || {
            let Vectors { a, b, c } = &mut *vectors.borrow_mut();
            for vector in [&*a, &*b, &*c] {
                managed::prefetch(vector, Place::Device, &stream)?;
            }
            let arguments = vector_add_03_float4::Arguments { a, b, c, n: n as u64 };
            kernel.launch(&stream, arguments)?;
            managed::prefetch(c, Place::Host, &stream)?;
            Ok(stream.synchronize()?)
        },
        || {
            let device = context.ordinal() as i32;
            // SAFETY: as above.
            succeeded(unsafe { prefetched(a, b, c, n, device, stream.cu_stream()) })
        },
        take_back,
    )?;
    vectors.borrow().hold_sum()?;

    cell.measured("cold_ratio", cold.map(|pairs| pairs.speed), "");
    cell.measured("prefetched_ratio", trips.map(|pairs| pairs.speed), "");
    if let (Some(cold), Some(resident)) = (cold, resident) {
        for (language, version, cold, resident) in [
            ("Rust, this chapter", "", cold.ours, resident.ours),
            ("CUDA C++", library.version(), cold.theirs, resident.theirs),
        ] {
            table.push(row![language, version, cold.seconds(), resident.seconds(), "–", "–"]);
        }
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Without waiting

fn unsynchronised(cell: &mut Cell) -> Result<()> {
    let (context, stream) = open()?;
    let concurrent =
        context.attribute(Attribute::CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS)? != 0;
    if !concurrent {
        // There the look would end this program.
        cell.measured_text("not collected: this device has no CONCURRENT_MANAGED_ACCESS");
        return Ok(());
    }
    let n = cell.largest(cell.parameter("shared")?);
    let mut vectors = Vectors::new(&context, n)?;
    let expected = cpu::sum(vectors.a.as_slice()?, vectors.b.as_slice()?);
    let kernel = vector_add_03_float4::Kernel::load(&context)?;

    // ANCHOR: look
    let look: *const f32 = vectors.c.as_slice()?.as_ptr(); // a pointer knows no borrow
    let Vectors { a, b, c } = &mut vectors;
    kernel.launch(&stream, vector_add_03_float4::Arguments { a, b, c, n: n as u64 })?;
    let at_once = right_pages(look, &expected);
    stream.synchronize()?;
    let after_waiting = right_pages(look, &expected);
    // ANCHOR_END: look

    let pages = n.div_ceil(PAGE);
    cell.measured("pages", pages as f64, "");
    cell.measured("at_once", at_once as f64, "");
    cell.measured("after_waiting", after_waiting as f64, "");
    ensure!(after_waiting == pages, "after waiting, {after_waiting} of {pages} pages are right");
    vectors.hold_sum()
}

/// How many pages begin with the sum that they should.
fn right_pages(look: *const f32, expected: &[f32]) -> usize {
    let is_right = |&page: &usize| {
        // SAFETY: it points to as many managed floats as are expected. A kernel may be writing them,
        // which is the lesson: the load is volatile, so that what it finds is at least some float.
        let found = unsafe { look.add(page * PAGE).read_volatile() };
        found == expected[page * PAGE]
    };
    (0..expected.len().div_ceil(PAGE)).filter(is_right).count()
}

fn checked(cell: &mut Cell) -> Result<()> {
    match lab::reports("two-streams", "stream") {
        Ok(reports) => cell.measured_text(reports),
        Err(missing) => cell.measured_text(format!("not collected: {missing:#}")),
    }
    Ok(())
}

/// Stands last: a checker that finds the mistake ends all work in this process.
fn two_streams(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let n = 1000;
    let kernel = vector_add_03_float4::Kernel::load(&context)?;
    let (adding, copying) = (context.new_stream()?, context.new_stream()?);
    let mut vectors = Vectors::new(&context, n)?;
    let mut copied = vec![0.0f32; n];
    let mut table = Table::new("calls").measured("call", "").measured("answer", "");
    let mut say = |what: &str, answer: Result<(), DriverError>| {
        let answer = answer.map_or_else(|error| format!("{:?}", error.0), |()| "success".into());
        table.push(row![what, answer]);
    };

    // ANCHOR: two_streams
    let (source, _) = vectors.c.device_ptr(&copying);
    let Vectors { a, b, c } = &mut vectors;
    kernel.launch(&adding, vector_add_03_float4::Arguments { a, b, c, n: n as u64 })?;
    // SAFETY: the sizes are right and all lives on. Nothing says that the kernel comes first: that is
    // the mistake.
    let copy = unsafe { result::memcpy_dtoh_async(&mut copied, source, copying.cu_stream()) };
    // ANCHOR_END: two_streams
    say("copy c in another stream than the kernel's", copy);
    say("wait for both", adding.synchronize().and_then(|()| copying.synchronize()));
    let right = copied.iter().zip(cpu::sum(&cpu::numbers(n, 1), &cpu::numbers(n, 2)));
    let right = right.filter(|(copied, expected)| **copied == *expected).count();
    table.push(row![format!("… {right} of {n} sums are right"), "–"]);
    cell.table(table);
    Ok(())
}
