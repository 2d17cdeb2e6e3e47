//! Chapter 2, threads, blocks and the grid: who runs which element, where, and when.
//!
//! You need chapter 1. You get: index arithmetic in one, two and three dimensions; what a warp is
//! and what divergence costs; how blocks are given to multiprocessors; occupancy, waves and the
//! tail; and the limits of a launch.

pub mod data;
pub mod who;

use std::collections::BTreeMap;
use std::ffi::c_void;
use std::sync::Arc;

use anyhow::{Context, Result, ensure};
use cudarc::driver::sys::{CUdevice_attribute as Attribute, CUfunction_attribute, CUresult};
use cudarc::driver::{
    CudaContext, CudaFunction, CudaSlice, CudaStream, DriverError, LaunchConfig, result,
};
use kernels::{
    divergence_01_by_lane, divergence_02_by_warp, divergence_03_uneven, index_02_plane,
    launch_01_empty, schedule_01_spin, vector_add_01_scalar, vector_add_02_grid_stride,
    vector_add_03_float4,
};
use lab::{
    Axis, Cell, CellSpec, Figure, HeatMap, Lane, Series, Span, Table, Timeline, row, timing,
};

use data::Vectors;
use who::{NOBODY, Who, grid_for};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("line", "Who writes which element of a line", line),
    lab::cell("plane", "Who writes which element of a plane", plane),
    lab::cell("volume", "Who writes which element of a volume", volume),
    lab::cell("odd-sizes", "Hold the arithmetic against the CPU at awkward sizes", odd_sizes),
    lab::cell("shapes", "What the shape of a block does to memory", shapes),
    lab::cell("divergence", "The same work, with and without divergence", divergence),
    lab::cell("uneven", "Unequal work, shuffled and sorted", uneven),
    lab::cell("multiprocessors", "Which multiprocessor ran which block", multiprocessors),
    lab::cell("schedule", "When each block ran", schedule),
    lab::cell("waves", "Waves, and the tail", waves),
    lab::cell("block-size", "Block size, occupancy and time", block_size),
    lab::cell("occupancy", "How much occupancy is enough", occupancy),
    lab::cell("grid-stride", "How few blocks will do", grid_stride),
    lab::cell("limits", "What a launch may not be", limits),
    lab::cell("peers", "The same in CUDA C++ and Python", peers),
];

/// Threads in a warp, on every NVIDIA GPU so far.
const WARP: u32 = 32;

// -------------------------------------------------------------------------------------------------
// Who writes which element?

// ANCHOR: line
fn line(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let (n, threads) = (20, 8);
    let who = ask(&context, [n, 1, 1], [threads, 1, 1])?;

    let mut map = HeatMap::exact(
        "who",
        "Which thread of which block writes which element?",
        "Twenty elements: eight belong to block 0, eight to block 1, four to block 2; in each block \
         the threads are counted from 0.",
    )
    .identities("number")
    .rows("who")
    .columns("element", 0..n);
    map.push("block", who.block.iter().map(|&block| f64::from(block)));
    map.push("thread", who.thread.iter().map(|&thread| f64::from(thread)));
    cell.heat_map(map);
    // ANCHOR_END: line
    let blocks = grid_for([n, 1, 1], [threads, 1, 1]).grid_dim.0;
    cell.value("elements", f64::from(n), "");
    cell.value("blocks", f64::from(blocks), "");
    cell.value("threads", f64::from(blocks * threads), "");
    cell.value("idle", f64::from(blocks * threads - n), "");
    Ok(())
}

fn plane(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let (size, block) = ([20, 10, 1], [8, 8, 1]);
    let who = ask(&context, size, block)?;
    let warps_in_block = (block[0] * block[1]).div_ceil(WARP);
    let warps = who
        .block
        .iter()
        .zip(&who.thread)
        .map(|(&block, &thread)| block * warps_in_block + thread / WARP);

    cell.heat_map(picture(
        "blocks",
        "Which block writes which element?",
        "Six rectangles of eight by eight elements; those on the right and below are cut off.",
        "block",
        size,
        who.block.iter().copied(),
    ));
    cell.heat_map(picture(
        "warps",
        "Which warp writes which element?",
        "Each block falls into two warps, its upper four rows and its lower four.",
        "warp",
        size,
        warps,
    ));
    let (blocks, _, threads, idle) = count(size, block);
    cell.value("blocks", blocks, "");
    cell.value("threads", threads, "");
    cell.value("idle", idle, "");
    Ok(())
}

fn volume(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let (size, block) = ([12, 4, 3], [4, 2, 2]);
    let who = ask(&context, size, block)?;
    cell.heat_map(picture(
        "blocks",
        "Which block writes which element?",
        "Three layers of four rows: the blocks of the first two layers are the same, the third \
         layer has others, and half of their threads have no element.",
        "block",
        size,
        who.block.iter().copied(),
    ));
    let (blocks, _, threads, idle) = count(size, block);
    cell.value("blocks", blocks, "");
    cell.value("threads", threads, "");
    cell.value("idle", idle, "");
    Ok(())
}

/// Asks the kernel, and the CPU whether that is right.
fn ask(context: &Arc<CudaContext>, size: [u32; 3], block: [u32; 3]) -> Result<Who> {
    let who = who::ask(context, size, block)?;
    ensure!(
        who == who::expected(size, block),
        "with {size:?} elements in blocks of {block:?} a thread took another's element"
    );
    Ok(who)
}

/// Numbers at their elements: rows along y, and along z layer below layer.
fn picture(
    name: &str,
    title: &str,
    alt: &str,
    label: &str,
    [width, height, depth]: [u32; 3],
    numbers: impl Iterator<Item = u32>,
) -> HeatMap {
    let rows = if depth > 1 { "z, y" } else { "y" };
    let mut map =
        HeatMap::exact(name, title, alt).identities(label).rows(rows).columns("x", 0..width);
    let numbers: Vec<f64> = numbers.map(f64::from).collect();
    for (row, numbers) in numbers.chunks(width as usize).enumerate() {
        let (z, y) = (row as u32 / height, row as u32 % height);
        let name = if depth > 1 { format!("{z}, {y}") } else { y.to_string() };
        map.push(name, numbers.iter().copied());
    }
    map
}

/// Blocks, elements, threads, and threads without an element.
fn count(size: [u32; 3], block: [u32; 3]) -> (f64, f64, f64, f64) {
    let product =
        |numbers: [u32; 3]| numbers.iter().map(|&number| f64::from(number)).product::<f64>();
    let (blocks, elements) = (product(grid_for(size, block).grid_dim.into()), product(size));
    let threads = blocks * product(block);
    (blocks, elements, threads, threads - elements)
}

fn odd_sizes(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let mut table = Table::new("wrong")
        .exact("elements", "")
        .exact("block", "")
        .exact("blocks", "")
        .exact("threads", "")
        .exact("idle", "%")
        .exact("wrong or unwritten", "");
    let (line, tile, cube) = ([256, 1, 1], [32, 8, 1], [8, 8, 4]);
    for (size, block) in [
        ([0, 1, 1], line),
        ([1, 1, 1], line),
        ([31, 1, 1], line),
        ([33, 1, 1], line),
        ([1000, 1, 1], line),
        ([65_537, 1, 1], line),
        ([1, 1, 1], tile),
        ([33, 9, 1], tile),
        ([1000, 31, 1], tile),
        ([31, 1000, 1], tile),
        ([1, 1, 1], cube),
        ([9, 9, 5], cube),
        ([100, 31, 7], cube),
    ] {
        let (found, expected) = (who::ask(&context, size, block)?, who::expected(size, block));
        let pairs = |who: Who| who.block.into_iter().zip(who.thread).collect::<Vec<_>>();
        let wrong = pairs(found)
            .iter()
            .zip(pairs(expected))
            .filter(|(found, expected)| **found != *expected || found.0 == NOBODY)
            .count();
        let (blocks, _, threads, idle) = count(size, block);
        let share = if threads > 0.0 { 100.0 * idle / threads } else { 0.0 };
        table.push(row![
            dimensions(size),
            dimensions(block),
            blocks,
            threads,
            share.round(),
            wrong
        ]);
        ensure!(wrong == 0, "{wrong} of {size:?} elements are wrong in blocks of {block:?}");
    }
    cell.table(table);
    Ok(())
}

/// `32 × 8`, without dimensions of 1 at the end.
fn dimensions(size: [u32; 3]) -> String {
    let needed = size.iter().rposition(|&along| along != 1).map_or(1, |last| last + 1);
    size[..needed].iter().map(u32::to_string).collect::<Vec<_>>().join(" × ")
}

// -------------------------------------------------------------------------------------------------
// What the shape of a block does to memory

/// Blocks of 256 threads, from wide to narrow.
const SHAPES: [[u32; 3]; 6] =
    [[256, 1, 1], [64, 4, 1], [32, 8, 1], [16, 16, 1], [8, 32, 1], [1, 256, 1]];

fn shapes(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let kernel = index_02_plane::Kernel::load(&context)?;
    // A side of 8192 is 2^26 elements; the square root of what the device can do in time.
    let side = cell.largest(cell.parameter("side")?.pow(2)).isqrt() as u32;
    let elements = (side as usize).pow(2);
    let mut blocks = stream.alloc_zeros::<u32>(elements)?;
    let mut threads = stream.alloc_zeros::<u32>(elements)?;
    let mut table = Table::new("shapes")
        .exact("block", "")
        .exact("a warp covers", "")
        .exact("sectors per store request", "")
        .measured("rate", "GB/s");
    cell.progress(SHAPES.len() as u64);
    for block in SHAPES {
        cell.tick(&dimensions(block));
        let (_, counts) = cell.counts(|| ask(&context, [256, 256, 1], block))?;
        let sectors = counts.first().and_then(|launch| {
            Some(launch.get("global_store_sectors")? / launch.get("global_store_requests")?)
        });
        let config = grid_for([side, side, 1], block);
        let time = timing::device(stream.cu_stream(), |_| {
            let arguments = index_02_plane::Arguments {
                block: &mut blocks,
                thread: &mut threads,
                width: side,
                height: side,
            };
            // SAFETY: this kernel takes any two-dimensional launch.
            Ok(unsafe { kernel.launch_with(&stream, config, arguments) }?)
        })?;
        let width = block[0].min(WARP);
        table.push(row![
            dimensions(block),
            format!("{width} × {}", WARP / width),
            sectors,
            time.map(|time| time.gigabytes_per_second(2 * elements * size_of::<u32>())),
        ]);
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Divergence

/// How a thread finds out which way it goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decides {
    /// Its number in the block: neighbours go different ways.
    Lane,
    /// Its warp's number: all threads of a warp go the same way.
    Warp,
}

impl Decides {
    /// Both, as the story goes.
    pub const ALL: [Decides; 2] = [Decides::Lane, Decides::Warp];

    fn name(self) -> &'static str {
        match self {
            Decides::Lane => "by_lane",
            Decides::Warp => "by_warp",
        }
    }

    fn label(self) -> &'static str {
        match self {
            Decides::Lane => "neighbours differ",
            Decides::Warp => "warps differ",
        }
    }

    fn way(self, thread: u32, ways: u32) -> u32 {
        match self {
            Decides::Lane => thread % ways,
            Decides::Warp => thread / WARP % ways,
        }
    }
}

/// Threads in a block of the divergent kernels: as many warps as there are ways at most.
const WAYS_BLOCK: u32 = 1024;

/// A divergent kernel with its data.
pub struct Diverging {
    decides: Decides,
    by_lane: divergence_01_by_lane::Kernel,
    by_warp: divergence_02_by_warp::Kernel,
    input: CudaSlice<f32>,
    output: CudaSlice<f32>,
    numbers: Vec<f32>,
    stream: Arc<CudaStream>,
}

impl Diverging {
    /// Puts `n` numbers on the device.
    pub fn new(context: &Arc<CudaContext>, decides: Decides, n: usize) -> Result<Self> {
        let stream = context.default_stream();
        let numbers = data::numbers(n, 3);
        Ok(Self {
            decides,
            by_lane: divergence_01_by_lane::Kernel::load(context)?,
            by_warp: divergence_02_by_warp::Kernel::load(context)?,
            input: stream.clone_htod(&numbers)?,
            output: stream.alloc_zeros(n)?,
            numbers,
            stream,
        })
    }

    /// Enqueues the kernel.
    pub fn launch(&mut self, ways: u32, rounds: u32) -> Result<()> {
        let n = self.numbers.len();
        let config = LaunchConfig {
            grid_dim: (u32::try_from(n.div_ceil(WAYS_BLOCK as usize))?, 1, 1),
            block_dim: (WAYS_BLOCK, 1, 1),
            shared_mem_bytes: 0,
        };
        let (input, output, n) = (&self.input, &mut self.output, n as u64);
        // SAFETY: both kernels take one-dimensional launches with a thread for each element.
        unsafe {
            match self.decides {
                Decides::Lane => {
                    let arguments =
                        divergence_01_by_lane::Arguments { input, output, n, ways, rounds };
                    self.by_lane.launch_with(&self.stream, config, arguments)?;
                }
                Decides::Warp => {
                    let arguments =
                        divergence_02_by_warp::Arguments { input, output, n, ways, rounds };
                    self.by_warp.launch_with(&self.stream, config, arguments)?;
                }
            }
        }
        Ok(())
    }

    /// An error unless every element went its way, bit for bit: `fmaf` rounds once, on both sides. Of
    /// many elements it looks at the first and the last few thousand.
    pub fn check(&self, ways: u32, rounds: u32) -> Result<()> {
        let _check = lab::range("check");
        let found = self.stream.clone_dtoh(&self.output)?;
        const FEW: usize = 4096;
        let elements = found.iter().zip(&self.numbers).enumerate();
        let looked_at = |(i, _): &(usize, _)| *i < FEW || i + FEW >= self.numbers.len();
        for (i, (&found, &number)) in elements.filter(looked_at) {
            let way = self.decides.way(i as u32 % WAYS_BLOCK, ways);
            let step = |x: f32, _| x.mul_add(0.5, 1.0 + way as f32);
            let expected = (0..rounds).fold(number, step);
            ensure!(
                found.to_bits() == expected.to_bits(),
                "element {i} is {found} and must be {expected}, with {ways} ways"
            );
        }
        Ok(())
    }
}

fn divergence(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let n = cell.largest(cell.parameter("divergent")?);
    let rounds = u32::try_from(cell.parameter("rounds")?)?;
    let ways = [1, 2, 4, 8, 16, 32];
    let mut table = Table::new("counts")
        .exact("ways", "")
        .exact("neighbours differ: warp instructions", "")
        .exact("neighbours differ: divergent branches", "")
        .exact("warps differ: warp instructions", "")
        .exact("warps differ: divergent branches", "");
    cell.progress(2 * ways.len() as u64);
    let mut counted: BTreeMap<u32, Vec<Option<f64>>> = BTreeMap::new();
    for decides in Decides::ALL {
        let mut small = Diverging::new(&context, decides, WAYS_BLOCK as usize)?;
        let mut large = Diverging::new(&context, decides, n)?;
        let mut times = Series::measured(decides.name(), "s").label(decides.label());
        for ways in ways {
            cell.tick(&format!("{}, {ways} ways", decides.label()));
            let (_, counts) = cell.counts(|| {
                small.launch(ways, rounds)?;
                small.check(ways, rounds)
            })?;
            let get = |counter| counts.first().and_then(|launch| launch.get(counter));
            let entries = counted.entry(ways).or_default();
            entries.extend([get("warp_instructions"), get("branches_divergent")]);
            let time = timing::device(stream.cu_stream(), |_| large.launch(ways, rounds))?;
            large.check(ways, rounds)?;
            times.push(ways, time.map(timing::Timing::seconds));
        }
        cell.series(times);
    }
    for (ways, counts) in counted {
        table.push(std::iter::once(ways.into()).chain(counts.into_iter().map(lab::Entry::from)));
    }
    cell.table(table);
    cell.figure(
        Figure::new(
            "What do several ways cost?",
            "Where neighbours differ, the time doubles with each doubling of the ways; where whole \
             warps differ, it hardly changes.",
        )
        .x(Axis::log2("ways", ""))
        .y(Axis::log10("time", "s"))
        .series(Decides::ALL.map(Decides::name)),
    );
    Ok(())
}

fn uneven(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let kernel = divergence_03_uneven::Kernel::load(&context)?;
    let most = cell.parameter("rounds")? as u64;
    let n = cell.largest(cell.parameter("divergent")?);
    let amounts = data::random(5).map(|number| (number % (2 * most)) as u32);
    const FEW: usize = 1 << 14; // to be counted
    let shuffled: Vec<u32> = amounts.take(n.max(FEW)).collect();
    let mut table = Table::new("orders")
        .exact("order", "")
        .exact("rounds in all", "")
        .exact("warp instructions", "")
        .exact("threads at work per instruction", "")
        .measured("time", "s");
    cell.progress(2);
    let mut times = Vec::new();
    for (order, sorts) in [("shuffled", false), ("sorted", true)] {
        cell.tick(order);
        let (mut few, mut rounds) = (shuffled[..FEW].to_vec(), shuffled[..n].to_vec());
        if sorts {
            few.sort_unstable();
            rounds.sort_unstable();
        }
        let (_, counts) = cell.counts(|| run_uneven(&kernel, &stream, &few))?;
        let get = |counter| counts.first().and_then(|launch| launch.get(counter));
        let device_rounds = stream.clone_htod(&rounds)?;
        let mut output = stream.alloc_zeros::<f32>(n)?;
        let time = timing::device(stream.cu_stream(), |_| {
            let arguments = divergence_03_uneven::Arguments {
                rounds: &device_rounds,
                output: &mut output,
                n: n as u64,
            };
            Ok(kernel.launch(&stream, arguments)?)
        })?;
        table.push(row![
            order,
            few.iter().map(|&rounds| u64::from(rounds)).sum::<u64>(),
            get("warp_instructions"),
            get("thread_instructions")
                .zip(get("warp_instructions"))
                .map(|(threads, warps)| threads / warps),
            time.map(timing::Timing::seconds),
        ]);
        times.push(time);
    }
    cell.table(table);
    if let [Some(shuffled), Some(sorted)] = times[..] {
        cell.measured("gain", shuffled.median / sorted.median, "");
    }
    Ok(())
}

/// The uneven kernel, once, held against the CPU.
pub fn run_uneven(
    kernel: &divergence_03_uneven::Kernel,
    stream: &Arc<CudaStream>,
    rounds: &[u32],
) -> Result<Vec<f32>> {
    let n = rounds.len();
    let device_rounds = stream.clone_htod(if n == 0 { &[0][..] } else { rounds })?;
    let mut output = stream.alloc_zeros::<f32>(n.max(1))?;
    let arguments = divergence_03_uneven::Arguments {
        rounds: &device_rounds.slice(..n),
        output: &mut output.slice_mut(..n),
        n: n as u64,
    };
    kernel.launch(stream, arguments)?;
    let mut found = stream.clone_dtoh(&output)?;
    found.truncate(n);
    for (i, (found, &rounds)) in found.iter().zip(rounds).enumerate() {
        let expected = (0..rounds).fold(0.0_f32, |x, _| x.mul_add(0.5, 1.0));
        ensure!(*found == expected, "element {i} is {found} and must be {expected}");
    }
    Ok(found)
}

// -------------------------------------------------------------------------------------------------
// Where and when blocks run

/// What the blocks of one launch wrote down.
pub struct Report {
    /// The multiprocessor that each block ran on.
    pub multiprocessor: Vec<u32>,
    /// Nanoseconds at which each began and ended; nothing where there is no such clock.
    pub times: Option<Vec<[u64; 2]>>,
}

/// Launches blocks that take their time, and reads what they wrote down.
pub struct Spinner {
    kernel: schedule_01_spin::Kernel,
    context: Arc<CudaContext>,
    stream: Arc<CudaStream>,
}

/// Threads in a block that spins: two such blocks fill a multiprocessor that holds 2048 threads.
const SPIN_BLOCK: u32 = 1024;

impl Spinner {
    /// Loads the kernel.
    pub fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let kernel = schedule_01_spin::Kernel::load(context)?;
        Ok(Self { kernel, context: context.clone(), stream: context.default_stream() })
    }

    /// Multiprocessors of the device, and blocks that it holds at once.
    fn places(&self) -> Result<(u32, u32)> {
        let multiprocessors =
            attribute(&self.context, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let function = self.kernel.handle().function();
        let each = function.occupancy_max_active_blocks_per_multiprocessor(SPIN_BLOCK, 0, None)?;
        Ok((multiprocessors, multiprocessors * each))
    }

    /// Runs `blocks` blocks for `cycles` each, some up to `unequal` times as long.
    pub fn run(&self, blocks: u32, cycles: u32, unequal: u32) -> Result<Report> {
        let mut multiprocessor = self.stream.clone_htod(&vec![u32::MAX; blocks as usize])?;
        let mut begin = self.stream.alloc_zeros::<u64>(blocks as usize)?;
        let mut end = self.stream.alloc_zeros::<u64>(blocks as usize)?;
        self.launch(&mut multiprocessor, [&mut begin, &mut end], blocks, cycles, unequal)?;
        let multiprocessor = self.stream.clone_dtoh(&multiprocessor)?;
        ensure!(
            multiprocessor.iter().all(|&number| number != u32::MAX),
            "a block did not say where it ran"
        );
        let (begin, end) = (self.stream.clone_dtoh(&begin)?, self.stream.clone_dtoh(&end)?);
        let pairs = begin.into_iter().zip(end).map(|(begin, end)| [begin, end]).collect();
        Ok(Report { multiprocessor, times: lab::device_clock(pairs) })
    }

    fn launch(
        &self,
        multiprocessor: &mut CudaSlice<u32>,
        [begin, end]: [&mut CudaSlice<u64>; 2],
        blocks: u32,
        cycles: u32,
        unequal: u32,
    ) -> Result<()> {
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (SPIN_BLOCK, 1, 1),
            shared_mem_bytes: 0,
        };
        let arguments =
            schedule_01_spin::Arguments { multiprocessor, begin, end, blocks, cycles, unequal };
        // SAFETY: this kernel takes any one-dimensional launch of `blocks` blocks.
        Ok(unsafe { self.kernel.launch_with(&self.stream, config, arguments) }?)
    }
}

fn attribute(context: &CudaContext, attribute: Attribute) -> Result<u32> {
    Ok(context.attribute(attribute)?.unsigned_abs())
}

fn multiprocessors(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let spinner = Spinner::new(&context)?;
    let (multiprocessors, places) = spinner.places()?;
    let cycles = u32::try_from(cell.largest(cell.parameter("cycles")?))?;
    cell.measured("multiprocessors", f64::from(multiprocessors), "");
    cell.measured("places", f64::from(places), "");

    let mut table = Table::new("spread")
        .measured("grid", "")
        .measured("blocks", "")
        .measured("multiprocessors used", "")
        .measured("most blocks on one", "");
    for (grid, blocks) in [
        ("one block", 1),
        ("half as many as multiprocessors", multiprocessors.div_ceil(2)),
        ("as many as multiprocessors", multiprocessors),
        ("one more", multiprocessors + 1),
        ("as many as the device holds", places),
        ("four times that", 4 * places),
    ] {
        let mut count = BTreeMap::<u32, u32>::new();
        for number in spinner.run(blocks, cycles, 1)?.multiprocessor {
            *count.entry(number).or_default() += 1;
        }
        table.push(row![grid, blocks, count.len(), count.values().copied().max().unwrap_or(0)]);
    }
    cell.table(table);

    // The same launch three times, with blocks of unequal length.
    let blocks = 4 * places;
    let runs = (0..3)
        .map(|_| Ok(spinner.run(blocks, cycles, 4)?.multiprocessor))
        .collect::<Result<Vec<_>>>()?;
    let first_later = places as usize;
    let shown = 16.min(places as usize);
    let mut map = HeatMap::measured(
        "again",
        "Which multiprocessor ran which block, three times",
        "Three rows of numbers: the first blocks are on the same multiprocessors each time or \
         nearly so, the later ones are not.",
    )
    .identities("multiprocessor")
    .rows("run")
    .columns("block", (0..shown / 2).chain(first_later..first_later + shown / 2));
    for (run, numbers) in runs.iter().enumerate() {
        let both =
            numbers[..shown / 2].iter().chain(&numbers[first_later..first_later + shown / 2]);
        map.push(["first", "second", "third"][run], both.map(|&number| f64::from(number)));
    }
    cell.heat_map(map);
    let moved = |range: std::ops::Range<usize>| {
        let len = range.len() as f64;
        let moved = range.filter(|&block| runs[0][block] != runs[1][block]).count();
        100.0 * moved as f64 / len
    };
    cell.measured("moved_at_first", moved(0..first_later), "%");
    cell.measured("moved_later", moved(first_later..blocks as usize), "%");
    Ok(())
}

fn schedule(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let spinner = Spinner::new(&context)?;
    let (multiprocessors, places) = spinner.places()?;
    let cycles = u32::try_from(cell.largest(cell.parameter("cycles")?))?;
    let unequal = 4;
    let blocks = 4 * places;
    let report = spinner.run(blocks, cycles, unequal)?;

    let mut work = vec![(0, 0); multiprocessors as usize];
    for (block, &number) in report.multiprocessor.iter().enumerate() {
        // Numbers need not be without gaps: %smid is below %nsmid, no more is promised.
        if let Some((blocks, turns)) = work.get_mut(number as usize) {
            *blocks += 1;
            *turns += 1 + block as u32 % unequal;
        }
    }
    let fewest_and_most = |of: fn(&(u32, u32)) -> u32| {
        let numbers = || work.iter().map(of).filter(|&number| number > 0);
        (numbers().min().unwrap_or(0), numbers().max().unwrap_or(0))
    };
    let mut table = Table::new("balance")
        .measured("on one multiprocessor", "")
        .measured("fewest", "")
        .measured("most", "");
    let (fewest, most) = fewest_and_most(|(blocks, _)| *blocks);
    table.push(row!["blocks", fewest, most]);
    let (fewest, most) = fewest_and_most(|(_, turns)| *turns);
    table.push(row!["their lengths together", fewest, most]);
    cell.table(table);

    if let Some(times) = &report.times {
        let start = times.iter().map(|[begin, _]| *begin).min().unwrap_or(0);
        let microseconds = |time: u64| (time - start) as f64 / 1e3;
        let lanes = (0..4).map(|number| Lane {
            name: format!("multiprocessor {number}"),
            spans: report
                .multiprocessor
                .iter()
                .zip(times)
                .enumerate()
                .filter(|(_, (on, _))| **on == number)
                .map(|(block, (_, [begin, end]))| Span {
                    name: format!("block {block}"),
                    start_us: microseconds(*begin),
                    end_us: microseconds(*end),
                })
                .collect(),
        });
        cell.timeline(Timeline {
            title: "A place that becomes free is given to the next block".into(),
            alt: "Four lanes, one a multiprocessor, each with rows of blocks of four lengths. Where a \
                  block ends the next begins at once."
                .into(),
            lanes: lanes.collect(),
        });
    }
    Ok(())
}

fn waves(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let spinner = Spinner::new(&context)?;
    let (_, places) = spinner.places()?;
    let cycles = u32::try_from(cell.largest(cell.parameter("cycles")?))?;
    let most = 3 * places as usize;
    let mut multiprocessor = spinner.stream.alloc_zeros(most)?;
    let (mut begin, mut end) =
        (spinner.stream.alloc_zeros(most)?, spinner.stream.alloc_zeros(most)?);
    let mut run = |blocks: u32| -> Result<Option<lab::Point>> {
        let len = blocks as usize;
        // The kernel's signature wants slices of exactly as many elements as there are blocks.
        let config = LaunchConfig {
            grid_dim: (blocks, 1, 1),
            block_dim: (SPIN_BLOCK, 1, 1),
            shared_mem_bytes: 0,
        };
        let time = timing::device(spinner.stream.cu_stream(), |_| {
            let arguments = schedule_01_spin::Arguments {
                multiprocessor: &mut multiprocessor.slice_mut(..len),
                begin: &mut begin.slice_mut(..len),
                end: &mut end.slice_mut(..len),
                blocks,
                cycles,
                unequal: 1,
            };
            // SAFETY: this kernel takes any one-dimensional launch of `blocks` blocks.
            Ok(unsafe { spinner.kernel.launch_with(&spinner.stream, config, arguments) }?)
        })?;
        Ok(time.map(timing::Timing::seconds))
    };
    cell.progress(13);
    let mut times = Series::measured("time", "s").label("time");
    for quarter in 1..=12 {
        let waves = f64::from(quarter) / 4.0;
        cell.tick(&format!("{waves} waves"));
        times.push(waves, run(places * quarter / 4)?);
    }
    cell.tick("one block more");
    let (full, one_more) = (run(places)?, run(places + 1)?);
    cell.series(times);
    cell.measured("full", full, "s");
    cell.measured("one_more", one_more, "s");
    cell.measured("places", f64::from(places), "");
    cell.figure(
        Figure::new(
            "Time goes up in steps: a wave is full, or it is not",
            "The time is flat up to one wave, doubles just above it, and is flat again up to two.",
        )
        .x(Axis::linear("blocks, in waves", ""))
        .y(Axis::linear("time", "s"))
        .series(["time"])
        .limit("full", "one full wave"),
    );
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Occupancy

/// What the device has to give to blocks, on one multiprocessor.
struct Multiprocessor {
    warps: u32,
    blocks: u32,
    shared_bytes: u32,
}

impl Multiprocessor {
    fn of(context: &CudaContext) -> Result<Self> {
        Ok(Self {
            warps: attribute(
                context,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR,
            )? / WARP,
            blocks: attribute(
                context,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR,
            )?,
            shared_bytes: attribute(
                context,
                Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
            )?,
        })
    }

    // ANCHOR: limiter
    /// What keeps a further block of `threads` threads out, where the driver says that `resident`
    /// fit.
    fn limiter(&self, threads: u32, resident: u32) -> &'static str {
        let by_warps = self.warps / threads.div_ceil(WARP);
        match resident {
            _ if resident == self.blocks && resident == by_warps => "blocks and warps",
            _ if resident == self.blocks => "blocks",
            _ if resident == by_warps => "warps",
            _ => "registers",
        }
    }
    // ANCHOR_END: limiter
}

fn block_size(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let device = Multiprocessor::of(&context)?;
    let kernel = vector_add_01_scalar::Kernel::load(&context)?;
    let n = cell.largest(cell.parameter("largest_kernel")?);
    let mut vectors = Vectors::new(&stream, n)?;
    let mut table = Table::new("sizes")
        .exact("threads in a block", "")
        .exact("warps in a block", "")
        .measured("blocks per multiprocessor", "")
        .measured("occupancy", "%")
        .measured("limited by", "")
        .measured("rate", "GB/s");
    let mut rates = Series::measured("rate", "GB/s").label("vector add, a float a thread");
    let sizes = [32, 33, 64, 96, 128, 192, 256, 384, 512, 768, 1024];
    cell.progress(sizes.len() as u64);
    for threads in sizes {
        cell.tick(&format!("{threads} threads"));
        let resident = blocks_per_multiprocessor(kernel.handle().function(), threads, 0)?;
        let warps = threads.div_ceil(WARP);
        let config = LaunchConfig {
            grid_dim: (u32::try_from(n.div_ceil(threads as usize))?, 1, 1),
            block_dim: (threads, 1, 1),
            shared_mem_bytes: 0,
        };
        let time = timing::device(stream.cu_stream(), |_| {
            let Vectors { a, b, c, .. } = &mut vectors;
            let arguments = vector_add_01_scalar::Arguments { a, b, c, n: n as u64 };
            // SAFETY: this kernel takes blocks of any size.
            Ok(unsafe { kernel.launch_with(&stream, config, arguments) }?)
        })?;
        vectors.check(n)?;
        let rate = time.map(|time| time.gigabytes_per_second(3 * n * size_of::<f32>()));
        rates.push(threads, rate);
        table.push(row![
            threads,
            warps,
            resident,
            100.0 * f64::from(resident * warps) / f64::from(device.warps),
            device.limiter(threads, resident),
            rate,
        ]);
    }
    cell.table(table);
    cell.series(rates);
    cell.figure(
        Figure::new(
            "Which block size is fast?",
            "The rate is lowest for blocks of 32 threads, rises with the size, and rises little from 128 on.",
        )
        .x(Axis::log2("threads in a block", ""))
        .y(Axis::linear("rate, 12 bytes an element", "GB/s"))
        .series(["rate"]),
    );
    Ok(())
}

fn blocks_per_multiprocessor(function: &CudaFunction, threads: u32, shared: usize) -> Result<u32> {
    Ok(function.occupancy_max_active_blocks_per_multiprocessor(threads, shared, None)?)
}

fn occupancy(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let device = Multiprocessor::of(&context)?;
    let n = cell.largest(cell.parameter("largest_kernel")?);
    let mut vectors = Vectors::new(&stream, n)?;
    let scalar = vector_add_01_scalar::Kernel::load(&context)?;
    let float4 = vector_add_03_float4::Kernel::load(&context)?;
    let threads = 256;
    let warps = threads / WARP;
    let wanted: Vec<u32> =
        [1, 2, 3, 4, 6, 8].into_iter().filter(|&blocks| blocks * warps <= device.warps).collect();
    cell.progress(2 * wanted.len() as u64);

    for (name, label, function, elements) in [
        ("scalar", "a float a thread", scalar.handle().function(), 1),
        ("float4", "four floats a thread", float4.handle().function(), 4),
    ] {
        let mut rates = Series::measured(name, "GB/s").label(label);
        for &blocks in &wanted {
            cell.tick(&format!("{name}, {blocks} blocks"));
            // ANCHOR: occupancy
            // Ask for so much shared memory that only `blocks` blocks fit. Nobody uses it.
            let shared = device.shared_bytes / blocks - RESERVED_SHARED_BYTES;
            let shared = shared.min(largest_shared(&context)?);
            function.set_attribute(
                CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                shared as i32,
            )?;
            let resident = blocks_per_multiprocessor(function, threads, shared as usize)?;
            // ANCHOR_END: occupancy
            let config = LaunchConfig {
                grid_dim: (u32::try_from(n.div_ceil(elements * threads as usize))?, 1, 1),
                block_dim: (threads, 1, 1),
                shared_mem_bytes: shared,
            };
            let time = timing::device(stream.cu_stream(), |_| {
                let Vectors { a, b, c, .. } = &mut vectors;
                let n = n as u64;
                // SAFETY: both kernels take blocks of any size, and any dynamic shared memory.
                unsafe {
                    match elements {
                        1 => scalar.launch_with(
                            &stream,
                            config,
                            vector_add_01_scalar::Arguments { a, b, c, n },
                        )?,
                        _ => float4.launch_with(
                            &stream,
                            config,
                            vector_add_03_float4::Arguments { a, b, c, n },
                        )?,
                    }
                }
                Ok(())
            })?;
            vectors.check(n)?;
            rates.push(
                resident * warps,
                time.map(|time| time.gigabytes_per_second(3 * n * size_of::<f32>())),
            );
        }
        cell.series(rates);
    }
    cell.measured("most_warps", f64::from(device.warps), "");
    cell.figure(
        Figure::new(
            "How many warps does it take to keep memory busy?",
            "Both curves rise with the warps. The one for four floats a thread is above the other \
             everywhere and flattens with far fewer warps.",
        )
        .x(Axis::linear("warps on a multiprocessor", ""))
        .y(Axis::linear("rate, 12 bytes an element", "GB/s"))
        .series(["scalar", "float4"]),
    );
    Ok(())
}

/// Shared memory that the driver takes for itself in each block, on the GPUs that do (8.0 and later).
const RESERVED_SHARED_BYTES: u32 = 1024;

/// The most shared memory that a block may ask for, when it asks.
fn largest_shared(context: &CudaContext) -> Result<u32> {
    attribute(context, Attribute::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)
}

// ANCHOR: grid_stride
fn grid_stride(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let kernel = vector_add_02_grid_stride::Kernel::load(&context)?;
    let multiprocessors = attribute(&context, Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
    let n = cell.largest(cell.parameter("largest_kernel")?);
    let mut vectors = Vectors::new(&stream, n)?;
    let mut rates = Series::measured("rate", "GB/s").label("256 threads a block");

    for blocks in [1, 2, 4, 8, 16, 32, 64] {
        let config = LaunchConfig {
            grid_dim: (blocks * multiprocessors, 1, 1),
            block_dim: (256, 1, 1),
            shared_mem_bytes: 0,
        };
        let time = timing::device(stream.cu_stream(), |_| {
            let Vectors { a, b, c, .. } = &mut vectors;
            let arguments = vector_add_02_grid_stride::Arguments { a, b, c, n: n as u64 };
            // SAFETY: this kernel takes any number of blocks of any size.
            Ok(unsafe { kernel.launch_with(&stream, config, arguments) }?)
        })?;
        vectors.check(n)?;
        rates.push(blocks, time.map(|time| time.gigabytes_per_second(3 * n * size_of::<f32>())));
    }
    cell.series(rates);
    // ANCHOR_END: grid_stride
    cell.figure(
        Figure::new(
            "How few blocks will do, if each thread goes on?",
            "The rate rises with the blocks on each multiprocessor up to about eight and then changes little.",
        )
        .x(Axis::log2("blocks per multiprocessor", ""))
        .y(Axis::linear("rate, 12 bytes an element", "GB/s"))
        .series(["rate"]),
    );
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// What a launch may not be

fn limits(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let empty = launch_01_empty::Kernel::load(&context)?;
    let mut table =
        Table::new("launches").exact("launch", "").exact("answer", "").exact("number", "");
    let (launches, messages) = lab::driver_messages(|| {
        // ANCHOR: limits
        let launch = |grid: (u32, u32, u32), block: (u32, u32, u32), shared_bytes: u32| {
            // SAFETY: the kernel has no parameters, and the function is loaded in this context.
            unsafe {
                let function = empty.handle().cu_function();
                let none: &mut [*mut c_void] = &mut [];
                result::launch_kernel(function, grid, block, shared_bytes, stream.cu_stream(), none)
            }
        };
        Ok([
            ("1024 threads in a block", launch((1, 1, 1), (1024, 1, 1), 0)),
            ("1025 threads in a block", launch((1, 1, 1), (1025, 1, 1), 0)),
            ("a block of 32 × 33", launch((1, 1, 1), (32, 33, 1), 0)),
            ("a block of 1 × 1 × 65", launch((1, 1, 1), (1, 1, 65), 0)),
            ("no threads", launch((1, 1, 1), (0, 1, 1), 0)),
            ("no blocks", launch((0, 1, 1), (32, 1, 1), 0)),
            ("2^31 blocks along x", launch((1 << 31, 1, 1), (32, 1, 1), 0)),
            ("65 535 blocks along y", launch((1, 65_535, 1), (32, 1, 1), 0)),
            ("65 536 blocks along y", launch((1, 65_536, 1), (32, 1, 1), 0)),
            ("a megabyte of shared memory", launch((1, 1, 1), (32, 1, 1), 1 << 20)),
        ])
        // ANCHOR_END: limits
    })?;
    stream.synchronize().context("running the launches that the driver accepted")?;
    for (launch, answer) in launches {
        let code = answer.err().map_or(CUresult::CUDA_SUCCESS, |DriverError(code)| code);
        table.push(row![launch, format!("{code:?}"), code as u32]);
    }
    cell.table(table);
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// The same elsewhere: CUDA C++ in this process, Python beside it

fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(1 + PYTHON_PEERS.len() as u64);
    cell.value("side", cell.parameter("side")? as f64, "");
    let mut table = Table::new("peers")
        .measured("written in", "")
        .measured("version", "")
        .measured("rate", "GB/s");
    let mut unmeasured = Vec::new();
    cell.tick("CUDA C++");
    match lab::peers::cuda_library("ch02_cuda.cu") {
        Ok(library) => against_cuda(cell, &library, &mut table)?,
        Err(missing) => unmeasured.push(format!("CUDA C++ was not measured: {missing}.")),
    }
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python(script) {
            Ok(peer) => {
                table.push(row![peer.word("peer"), peer.word("version"), peer.number("gbps")]);
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

/// The programs in `tests/peers`. PyTorch is not among them: it has no way to say who runs what.
const PYTHON_PEERS: [&str; 4] =
    ["ch02_pycuda.py", "ch02_numba.py", "ch02_cupy.py", "ch02_triton.py"];

/// Rust and C++ in turn, so that both meet the same clocks and the same neighbours.
fn against_cuda(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    use cudarc::driver::DevicePtrMut;
    use cudarc::driver::sys::{CUdeviceptr, CUstream};
    type Plane = unsafe extern "C" fn(CUdeviceptr, CUdeviceptr, u32, u32, CUstream) -> i32;
    // SAFETY: tests/peers/ch02_cuda.cu defines this function with these parameters.
    let plane = unsafe { library.function::<Plane>("peer_plane")? };
    let context = lab::open_device()?;
    let stream = context.default_stream();
    let kernel = index_02_plane::Kernel::load(&context)?;
    let side = cell.largest(cell.parameter("side")?.pow(2)).isqrt() as u32;
    let elements = (side as usize).pow(2);
    let mut ours = [stream.alloc_zeros::<u32>(elements)?, stream.alloc_zeros::<u32>(elements)?];
    let mut theirs = [stream.alloc_zeros::<u32>(elements)?, stream.alloc_zeros::<u32>(elements)?];
    let config = grid_for([side, side, 1], [32, 8, 1]);
    let pairs = timing::device_pairs(
        stream.cu_stream(),
        |_| {
            let [block, thread] = &mut ours;
            let arguments = index_02_plane::Arguments { block, thread, width: side, height: side };
            // SAFETY: this kernel takes any two-dimensional launch.
            Ok(unsafe { kernel.launch_with(&stream, config, arguments) }?)
        },
        |_| {
            let [block, thread] = &mut theirs;
            let (block, _block) = block.device_ptr_mut(&stream);
            let (thread, _thread) = thread.device_ptr_mut(&stream);
            // SAFETY: two vectors of side × side words, and a stream of this context.
            let code = unsafe { plane(block, thread, side, side, stream.cu_stream()) };
            ensure!(code == 0, "the C++ peer returned the CUDA runtime's error {code}");
            Ok(())
        },
    )?;
    for (ours, theirs) in ours.iter().zip(&theirs) {
        ensure!(stream.clone_dtoh(ours)? == stream.clone_dtoh(theirs)?, "C++ and Rust disagree");
    }
    cell.measured("ratio", pairs.map(|pairs| pairs.speed), "");
    if let Some(pairs) = pairs {
        let bytes = 2 * elements * size_of::<u32>();
        table.push(row!["Rust, this chapter", "", pairs.ours.gigabytes_per_second(bytes)]);
        table.push(row!["CUDA C++", library.version(), pairs.theirs.gigabytes_per_second(bytes)]);
    }
    Ok(())
}
