//! Chapter 7, streams and graphs: how copies hide behind kernels, and launches behind each other.
//!
//! You need chapters 1 and 2. You get: streams and events, and what the wrong order costs; copies both ways while a kernel
//! runs; memory in the order of a stream; and graphs, which launch thousands of kernels with one call.

pub mod diamond;
pub mod graphs;
pub mod memory;
pub mod overlap;

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use cudarc::driver::result::stream::StreamKind;
use cudarc::driver::sys::CUevent_flags;
use cudarc::driver::{CudaContext, CudaEvent, CudaStream, DriverError, LaunchConfig, result};
use kernels::{chain_01_step, schedule_01_spin};
use lab::timing::{self, Timing};
use lab::{Axis, Cell, CellSpec, Figure, Lane, Series, Span, Table, Timeline, row};

use diamond::{Diamond, Waits};
use graphs::{Chain, Link};
use memory::{Buffer, MIB, Pool, SEQUENCE, Source};
use overlap::{Order, OwnChunks, Pipeline, Stage};

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("stages", "There, work, back: each alone, and two at once", stages),
    lab::cell("one-stream", "One stream, seen over time", one_stream),
    lab::cell("two-streams", "Two streams, seen over time", two_streams),
    lab::cell("four-streams", "Four streams, seen over time", four_streams),
    lab::cell("overlap", "Streams and chunks", overlap),
    lab::cell("order", "In which order the work is enqueued", order),
    lab::cell("pageable", "The same from memory that is not pinned", pageable),
    lab::cell("diamond", "Events, and what waits for what", diamond),
    lab::cell("tracking", "What cudarc does by itself, and what it costs", tracking),
    lab::cell("together", "Which streams wait for each other", together),
    lab::cell("host-function", "A function of the host in a stream", host_function),
    lab::cell("allocation", "Memory in the order of a stream", allocation),
    lab::cell("memory", "When a value is dropped", memory),
    lab::cell("chain", "A chain of small kernels, by hand and as a graph", chain),
    lab::cell("update", "What a graph costs before it is launched", update),
    lab::cell("peers", "The same in CUDA C++ and Python", peers),
    lab::cell("missing-wait", "What a missing wait does", missing_wait),
];

// -------------------------------------------------------------------------------------------------
// There, work, back

/// A context in which the streams alone say what waits for what.
///
/// # Safety
/// As [`CudaContext::disable_event_tracking`]: the caller orders the work of all streams, and waits before memory is freed.
unsafe fn open_untracked() -> Result<Arc<CudaContext>> {
    let context = lab::open_device()?;
    // SAFETY: the caller's promise.
    unsafe { context.disable_event_tracking() };
    Ok(context)
}

/// A pipeline whose streams are ordered by nothing but themselves: each chunk stays in one stream, and no two chunks share
/// memory.
fn pipeline(n: usize, streams: usize, pinned: bool) -> Result<Pipeline> {
    // SAFETY: see above; the pipeline waits for its streams before it frees anything.
    let context = unsafe { open_untracked()? };
    Pipeline::new(&context, n, streams, pinned)
}

/// How long each stage takes for all numbers, with so many rounds that the kernel takes as long as the copy.
struct Stages {
    rounds: u32,
    times: Option<[Timing; 3]>,
}

impl Stages {
    // ANCHOR: calibrate
    /// Measures. Without times the rounds are `otherwise`.
    fn measure(pipeline: &mut Pipeline, otherwise: u32) -> Result<Self> {
        let stream = pipeline.streams()[0].clone();
        let mut time = |stage, rounds| {
            timing::device(stream.cu_stream(), |_| pipeline.enqueue_whole(stage, rounds))
        };
        let there = time(Stage::HostToDevice, 0)?;
        let (few, many) = (time(Stage::Kernel, 256)?, time(Stage::Kernel, 1024)?);
        let rounds = match (there, few, many) {
            (Some(there), Some(few), Some(many)) => {
                let of_one_round = (many.median - few.median) / 768.0;
                256.0 + (there.median - few.median) / of_one_round
            }
            _ => f64::from(otherwise),
        };
        let rounds = rounds.max(1.0) as u32;
        let kernel = time(Stage::Kernel, rounds)?;
        let back = time(Stage::DeviceToHost, 0)?;
        let times = [there, kernel, back].into_iter().collect::<Option<Vec<_>>>();
        Ok(Self { rounds, times: times.and_then(|times| times.try_into().ok()) })
    }
    // ANCHOR_END: calibrate

    /// One after the other.
    fn serial(&self) -> Option<f64> {
        self.times.map(|times| times.iter().map(|time| time.median).sum())
    }
}

/// Floats that go there and back.
fn floats(cell: &Cell) -> Result<usize> {
    Ok(cell.largest(cell.parameter("floats")?))
}

fn otherwise(cell: &Cell) -> Result<u32> {
    Ok(u32::try_from(cell.parameter("rounds")?)?)
}

fn stages(cell: &mut Cell) -> Result<()> {
    let n = floats(cell)?;
    let mut work = pipeline(n, 2, true)?;
    let measured = Stages::measure(&mut work, otherwise(cell)?)?;
    work.there_and_back(Order::DepthFirst, 1, 1, measured.rounds)?;
    work.check(measured.rounds)?;

    let mut table =
        Table::new("alone").exact("stage", "").measured("time", "s").measured("rate", "GB/s");
    let bytes = n * size_of::<f32>();
    for (i, stage) in Stage::ALL.into_iter().enumerate() {
        let time = measured.times.map(|times| times[i]);
        // A kernel reads and writes, a copy only crosses the cable.
        let moved = if stage == Stage::Kernel { 2 * bytes } else { bytes };
        let rate = time.map(|time| time.gigabytes_per_second(moved));
        table.push(row![stage.name(), time.map(Timing::seconds), rate]);
    }
    // The kernel has numbers of its own: it may not read what the copy is just writing.
    let mut other = pipeline(n, 1, true)?;
    // ANCHOR: at_once
    let both_ways = timing::host_call(|| {
        work.enqueue_on(0, Stage::HostToDevice, measured.rounds)?;
        work.enqueue_on(1, Stage::DeviceToHost, measured.rounds)?;
        work.wait()
    })?;
    let copy_and_kernel = timing::host_call(|| {
        work.enqueue_on(0, Stage::HostToDevice, measured.rounds)?;
        other.enqueue_on(0, Stage::Kernel, measured.rounds)?;
        work.wait()
    })?;
    // ANCHOR_END: at_once
    for (name, time, copied) in
        [("h2d and d2h at once", both_ways, 2), ("h2d and kernel at once", copy_and_kernel, 1)]
    {
        let rate = time.map(|time| time.gigabytes_per_second(copied * bytes));
        table.push(row![name, time.map(Timing::seconds), rate]);
    }
    cell.table(table);
    cell.measured("mebibytes", (bytes / MIB) as f64, "MiB");
    cell.measured("rounds", f64::from(measured.rounds), "");
    cell.measured("serial", measured.serial(), "s");
    counts(cell)
}

/// The same work in one launch and in several, counted.
fn counts(cell: &mut Cell) -> Result<()> {
    let n = 100_003;
    let mut table = Table::new("counts")
        .exact("chunks", "")
        .exact("launches", "")
        .exact("load requests", "")
        .exact("load sectors", "")
        .exact("store sectors", "");
    for chunks in [1, 4, 16] {
        let mut work = pipeline(n, 4, true)?;
        let (_, counts) = cell.counts(|| {
            work.there_and_back(Order::DepthFirst, 4, chunks, 3)?;
            work.check(3)
        })?;
        let sum = |counter: &str| -> Option<f64> {
            let numbers =
                counts.iter().map(|launch| launch.get(counter)).collect::<Option<Vec<_>>>()?;
            (!numbers.is_empty()).then(|| numbers.iter().sum())
        };
        let launches = (!counts.is_empty()).then_some(counts.len() as f64);
        table.push(row![
            chunks,
            launches,
            sum("global_load_requests"),
            sum("global_load_sectors"),
            sum("global_store_sectors")
        ]);
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Seen over time

fn one_stream(cell: &mut Cell) -> Result<()> {
    seen(
        cell,
        1,
        "In one stream, everything waits for everything",
        "One lane: copy, kernel and copy back take turns.",
    )
}

fn two_streams(cell: &mut Cell) -> Result<()> {
    let alt = "Two lanes of four chunks each. While one stream copies, the other computes; at no time do all three stages run.";
    seen(cell, 2, "Two streams keep two of the three busy", alt)
}

fn four_streams(cell: &mut Cell) -> Result<()> {
    let alt = "Four lanes of two chunks each. In the middle a copy there, a kernel and a copy back run at the same time.";
    seen(cell, 4, "With four streams, all three are busy", alt)
}

/// A stage of a chunk that was enqueued in a stream, between two events.
type Seen = (Arc<CudaStream>, (Stage, usize), [CudaEvent; 2]);

/// One run with an event before and after each stage of each chunk.
fn seen(cell: &mut Cell, streams: usize, title: &str, alt: &str) -> Result<()> {
    let chunks = 8;
    let mut work = pipeline(floats(cell)?, streams, true)?;
    let Stages { rounds, .. } = Stages::measure(&mut work, otherwise(cell)?)?;
    work.there_and_back(Order::DepthFirst, streams, chunks, rounds)?; // once to warm up
    // ANCHOR: events
    let with_time = Some(CUevent_flags::CU_EVENT_DEFAULT);
    let start = work.streams()[0].record_event(with_time)?;
    let mut begun: Option<CudaEvent> = None;
    let mut stages: Vec<Seen> = Vec::new();
    work.observed(streams, chunks, rounds, |stream, ended| {
        let now = stream.record_event(with_time)?;
        match (ended, begun.take()) {
            (Some(stage), Some(begin)) => stages.push((stream.clone(), stage, [begin, now])),
            _ => begun = Some(now),
        }
        Ok(())
    })?;
    // ANCHOR_END: events
    work.wait()?;
    let mut lanes: Vec<Lane> =
        (0..streams).map(|i| Lane { name: format!("stream {i}"), spans: Vec::new() }).collect();
    for (stream, (stage, chunk), [begin, end]) in &stages {
        let since_start = |event| anyhow::Ok(1e3 * f64::from(start.elapsed_ms(event)?));
        let place = work.streams().iter().position(|other| other == stream).unwrap_or(0);
        lanes[place].spans.push(Span {
            name: format!("{} {chunk}", stage.name()),
            start_us: since_start(begin)?,
            end_us: since_start(end)?,
        });
    }
    work.check(rounds)?;
    if let Some(lanes) = lab::device_clock(lanes) {
        let end =
            lanes.iter().flat_map(|lane| &lane.spans).map(|span| span.end_us).fold(0.0, f64::max);
        cell.measured("whole", end / 1e6, "s");
        cell.timeline(Timeline { title: title.into(), alt: alt.into(), lanes });
    } else {
        cell.measured("whole", None::<f64>, "s");
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// How many streams, how many chunks

/// A run in this way, timed from the first call to the end of the last copy.
fn timed(
    work: &mut Pipeline,
    order: Order,
    streams: usize,
    chunks: usize,
    rounds: u32,
) -> Result<Option<Timing>> {
    let time = timing::host_call(|| work.there_and_back(order, streams, chunks, rounds))?;
    work.check(rounds)?;
    Ok(time)
}

fn overlap(cell: &mut Cell) -> Result<()> {
    let mut work = pipeline(floats(cell)?, 4, true)?;
    let measured = Stages::measure(&mut work, otherwise(cell)?)?;
    let rounds = measured.rounds;
    let both_ways = timing::host_call(|| {
        work.enqueue_on(0, Stage::HostToDevice, rounds)?;
        work.enqueue_on(1, Stage::DeviceToHost, rounds)?;
        work.wait()
    })?;
    let serial = timed(&mut work, Order::DepthFirst, 1, 1, rounds)?;

    // ANCHOR: predict
    let predict = |streams: usize, chunks: usize| {
        let [there, kernel, back] = measured.times?.map(|time| time.median);
        let whole = there + kernel + back;
        let busy = match streams {
            1 => whole,
            2 => whole / 2.0,
            _ => both_ways?.median.max(kernel) + (kernel + back) / chunks as f64,
        };
        // Fewer chunks than streams is as good as no more streams.
        Some(if chunks == 1 { whole } else { busy })
    };
    // ANCHOR_END: predict
    let chunk_counts = [1, 4, 16, 32, 64];
    let mut table = Table::new("ways")
        .exact("way", "")
        .measured("time", "s")
        .measured("predicted", "s")
        .measured("gain", "");
    let mut best: Option<(f64, usize, usize)> = None;
    cell.progress((4 * chunk_counts.len()) as u64);
    for (streams, label) in
        [(1, "one stream"), (2, "two streams"), (3, "three streams"), (4, "four streams")]
    {
        let mut times = Series::measured(format!("streams_{streams}"), "s").label(label);
        for chunks in chunk_counts {
            let way = format!("{streams} × {chunks}");
            cell.tick(&way);
            let time = timed(&mut work, Order::DepthFirst, streams, chunks, rounds)?;
            times.push(chunks, time.map(Timing::seconds));
            let gain = serial.zip(time).map(|(serial, time)| serial.median / time.median);
            table.push(row![way, time.map(Timing::seconds), predict(streams, chunks), gain]);
            if let Some(gain) = gain.filter(|gain| best.is_none_or(|(most, ..)| *gain > most)) {
                best = Some((gain, streams, chunks));
            }
        }
        cell.series(times);
    }
    cell.table(table);
    let longest =
        measured.times.map(|times| times.map(|time| time.median).into_iter().fold(0.0, f64::max));
    cell.measured("serial", serial.map(Timing::seconds), "s");
    cell.measured("longest", longest, "s");
    cell.measured("both_ways", both_ways.map(Timing::seconds), "s");
    cell.measured(
        "limit",
        serial.zip(both_ways).map(|(serial, both)| serial.median / both.median),
        "",
    );
    cell.measured("gain", best.map(|(gain, ..)| gain), "");
    cell.measured("best_streams", best.map(|(_, streams, _)| streams as f64), "");
    cell.measured("best_chunks", best.map(|(.., chunks)| chunks as f64), "");
    cell.figure(
        Figure::new(
            "How many streams, how many chunks?",
            "One stream stays at the serial time and rises with many chunks. Two streams come to a little more than half, three \
             and four to a little more than the time of both copies at once, with 16 to 64 chunks.",
        )
        .x(Axis::log2("chunks", ""))
        .y(Axis::linear("time, there and back", "s"))
        .series(["streams_1", "streams_2", "streams_3", "streams_4"])
        .limit("both_ways", "both copies at once")
        .limit("longest", "the longest stage alone"),
    );
    Ok(())
}

fn order(cell: &mut Cell) -> Result<()> {
    let mut work = pipeline(floats(cell)?, 4, true)?;
    let Stages { rounds, .. } = Stages::measure(&mut work, otherwise(cell)?)?;
    let mut table = Table::new("orders")
        .exact("order", "")
        .measured("16 chunks", "s")
        .measured("32 chunks", "s")
        .measured("64 chunks", "s");
    cell.progress(9);
    let chunk_counts = [16, 32, 64];
    for (name, order) in [
        ("depth first", Some(Order::DepthFirst)),
        ("breadth first", Some(Order::BreadthFirst)),
        ("a stream a stage", None),
    ] {
        let mut row = vec![lab::Entry::from(name)];
        for chunks in chunk_counts {
            cell.tick(&format!("{name}, {chunks} chunks"));
            let time = match order {
                Some(order) => timed(&mut work, order, 4, chunks, rounds)?,
                None => {
                    let time = timing::host_call(|| work.by_stage(chunks, rounds))?;
                    work.check(rounds)?;
                    time
                }
            };
            row.push(time.map(Timing::seconds).into());
        }
        table.push(row);
    }
    cell.table(table);
    Ok(())
}

fn pageable(cell: &mut Cell) -> Result<()> {
    let n = floats(cell)?;
    let mut table = Table::new("memory")
        .exact("host memory", "")
        .measured("one stream", "s")
        .measured("four streams", "s")
        .measured("gain", "");
    cell.progress(2);
    let mut rounds = None;
    for (name, pinned) in [("pinned", true), ("pageable", false)] {
        cell.tick(name);
        let mut work = pipeline(n, 4, pinned)?;
        // The kernel is as long as the copy from pinned memory, both times.
        let rounds = match rounds {
            Some(rounds) => rounds,
            None => *rounds.insert(Stages::measure(&mut work, otherwise(cell)?)?.rounds),
        };
        let whole = timed(&mut work, Order::DepthFirst, 1, 1, rounds)?;
        let overlapped = timed(&mut work, Order::DepthFirst, 4, 16, rounds)?;
        let gain =
            whole.zip(overlapped).map(|(whole, overlapped)| whole.median / overlapped.median);
        table.push(row![name, whole.map(Timing::seconds), overlapped.map(Timing::seconds), gain]);
    }
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// What waits for what

fn diamond(cell: &mut Cell) -> Result<()> {
    let mut table = Table::new("ways").exact("who waits", "").exact("sums", "").exact("wrong", "");
    for (who, waits) in [
        ("cudarc by its own events", Waits::Tracked),
        ("we by events", Waits::Events),
        ("we by fork and join", Waits::ForkAndJoin),
    ] {
        let (n, rounds) = (1000, 3000);
        let mut diamond = Diamond::new(&lab::open_device()?, waits, n)?;
        let mut wrong = 0;
        for _ in 0..5 {
            diamond.run(waits, rounds)?;
            wrong += diamond.wrong(rounds)?;
        }
        table.push(row![who, 5 * n, wrong]);
        ensure!(wrong == 0, "{wrong} sums are wrong although {who} waited");
    }
    cell.table(table);
    Ok(())
}

/// Launches that follow each other without a pause.
const LAUNCHES: usize = 200;

fn tracking(cell: &mut Cell) -> Result<()> {
    cell.progress(4);
    cell.tick("launches");
    let (tracked, untracked) = (lab::open_device()?, lab::open_device()?);
    // SAFETY: one stream, and the slice is dropped after the last wait.
    unsafe { untracked.disable_event_tracking() };
    let (mut tracked, mut untracked) = (Launches::new(&tracked)?, Launches::new(&untracked)?);
    let context = untracked.stream.context().clone();
    let pairs = timing::host_pairs(
        || untracked.launch(),
        || tracked.launch(),
        || Ok(context.synchronize()?),
    )?;
    let each = |timing: Timing| timing.each(LAUNCHES);
    cell.measured("untracked_launch", pairs.map(|pairs| each(pairs.ours)), "s");
    cell.measured("tracked_launch", pairs.map(|pairs| each(pairs.theirs)), "s");

    let n = floats(cell)?;
    let (streams, chunks) = (4, 32);
    let mut table =
        Table::new("ways").exact("who orders", "").measured("time", "s").measured("gain", "");
    cell.tick("nobody but the streams");
    let mut work = pipeline(n, streams, true)?;
    let Stages { rounds, .. } = Stages::measure(&mut work, otherwise(cell)?)?;
    let serial = timed(&mut work, Order::DepthFirst, 1, 1, rounds)?;
    let by_hand = timed(&mut work, Order::DepthFirst, streams, chunks, rounds)?;
    drop(work);
    cell.tick("cudarc, one slice");
    let mut work = Pipeline::new(&lab::open_device()?, n, streams, true)?;
    let one_slice = timed(&mut work, Order::DepthFirst, streams, chunks, rounds)?;
    drop(work);
    cell.tick("cudarc, a slice a chunk");
    let mut work = OwnChunks::new(&lab::open_device()?, n, streams, chunks)?;
    let own = timing::host_call(|| work.there_and_back(rounds))?;
    work.check(rounds)?;
    for (name, time) in [
        ("nobody but the streams", by_hand),
        ("cudarc: one slice for all chunks", one_slice),
        ("cudarc: a slice for each chunk", own),
    ] {
        let gain = serial.zip(time).map(|(serial, time)| serial.median / time.median);
        table.push(row![name, time.map(Timing::seconds), gain]);
    }
    cell.table(table);
    Ok(())
}

/// A small kernel, again and again.
struct Launches {
    kernel: chain_01_step::Kernel,
    numbers: cudarc::driver::CudaSlice<u32>,
    stream: Arc<CudaStream>,
}

impl Launches {
    fn new(context: &Arc<CudaContext>) -> Result<Self> {
        let stream = context.new_stream()?;
        let kernel = chain_01_step::Kernel::load(context)?;
        Ok(Self { kernel, numbers: stream.alloc_zeros(32)?, stream })
    }

    fn launch(&mut self) -> Result<()> {
        for _ in 0..LAUNCHES {
            let arguments =
                chain_01_step::Arguments { numbers: &mut self.numbers, amount: 1, n: 32 };
            self.kernel.launch(&self.stream, arguments)?;
        }
        Ok(())
    }
}

impl Drop for Launches {
    fn drop(&mut self) {
        let context = self.stream.context();
        context.record_err(self.stream.synchronize());
    }
}

fn together(cell: &mut Cell) -> Result<()> {
    // SAFETY: the two launches use different memory, which is freed after the last wait.
    let context = unsafe { open_untracked()? };
    let kernel = schedule_01_spin::Kernel::load(&context)?;
    let default = context.default_stream();
    let (one, other) = (context.new_stream()?, context.new_stream()?);
    // ANCHOR: blocking
    // cudarc's own streams are all of the other kind.
    let blocking = result::stream::create(StreamKind::Default)?;
    // SAFETY: the stream is this context's, and is destroyed below, after the last use.
    let waits_for_default = unsafe { context.wrap_borrowed_stream(blocking) };
    // ANCHOR_END: blocking
    let mut words = [(); 2].map(|()| {
        Ok::<_, anyhow::Error>((
            default.alloc_zeros(1)?,
            default.alloc_zeros(1)?,
            default.alloc_zeros(1)?,
        ))
    });
    context.synchronize()?;
    let cycles = u32::try_from(cell.largest(400_000))?;
    let mut launch = |which: usize, stream: &CudaStream| -> Result<()> {
        let Ok((multiprocessor, begin, end)) = &mut words[which] else {
            anyhow::bail!("there is no memory for three numbers");
        };
        let config =
            LaunchConfig { grid_dim: (1, 1, 1), block_dim: (32, 1, 1), shared_mem_bytes: 0 };
        let arguments = schedule_01_spin::Arguments {
            multiprocessor,
            begin,
            end,
            blocks: 1,
            cycles,
            unequal: 1,
        };
        // SAFETY: this kernel takes any one-dimensional launch of `blocks` blocks.
        Ok(unsafe { kernel.launch_with(stream, config, arguments) }?)
    };
    let alone = timing::host_call(|| {
        launch(0, &one)?;
        Ok(context.synchronize()?)
    })?;
    let mut table = Table::new("pairs").exact("two kernels in", "").measured("time in kernels", "");
    for (name, first, second) in [
        ("one stream", &one, &one),
        ("two streams", &one, &other),
        ("the default stream and another", &default, &one),
        ("the default stream and a blocking one", &default, &waits_for_default),
    ] {
        let both = timing::host_call(|| {
            launch(0, first)?;
            launch(1, second)?;
            Ok(context.synchronize()?)
        })?;
        table.push(row![name, both.zip(alone).map(|(both, alone)| both.median / alone.median)]);
    }
    cell.table(table);
    drop(waits_for_default);
    // SAFETY: the last work in it has ended, and nobody has it any more.
    unsafe { result::stream::destroy(blocking) }.context("destroying the blocking stream")?;
    let (least, greatest) = result::stream::get_priority_range()?;
    cell.measured("least_priority", f64::from(least), "");
    cell.measured("greatest_priority", f64::from(greatest), "");
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// A function of the host

fn host_function(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.new_stream()?;
    let kernel = chain_01_step::Kernel::load(&context)?;
    let mut numbers = stream.alloc_zeros::<u32>(1)?;
    let links = 5;
    // ANCHOR: host_function
    static DONE: AtomicUsize = AtomicUsize::new(0);
    unsafe extern "C" fn count(_: *mut c_void) {
        DONE.fetch_add(1, Ordering::Relaxed);
    }

    let before = DONE.load(Ordering::Relaxed);
    for _ in 0..links {
        let arguments = chain_01_step::Arguments { numbers: &mut numbers, amount: 1, n: 1 };
        kernel.launch(&stream, arguments)?;
        // SAFETY: the stream lives, and the function needs nothing.
        unsafe {
            result::stream::launch_host_function(stream.cu_stream(), count, std::ptr::null_mut())
        }?;
    }
    stream.synchronize()?;
    let done = DONE.load(Ordering::Relaxed) - before;
    // ANCHOR_END: host_function
    ensure!(done == links, "{done} of {links} functions were called");
    cell.value("links", links as f64, "");
    cell.value("called", done as f64, "");
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// Memory in the order of a stream

fn allocation(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.new_stream()?;
    let largest = cell.parameter("largest_allocation")?;
    let ways = [
        ("driver", Source::Driver(context.clone())),
        (
            "pool that keeps nothing",
            Source::Pool(Arc::new(Pool::new(&context, 0)?), stream.clone()),
        ),
        (
            "pool that keeps all",
            Source::Pool(Arc::new(Pool::new(&context, u64::MAX)?), stream.clone()),
        ),
    ];
    let mut table = Table::new("ways")
        .exact("from whom", "")
        .measured("allocate", "s")
        .measured("free", "s")
        .measured("wait", "s");
    let sizes = [MIB, largest / 4, largest];
    cell.progress((ways.len() * sizes.len()) as u64);
    for (name, source) in &ways {
        for bytes in sizes {
            cell.tick(&format!("{name}, {} MiB", bytes / MIB));
            // ANCHOR: allocation
            let times = timing::laps(3, |clock| {
                let buffer = Buffer::new(source, bytes)?;
                clock.lap();
                drop(buffer);
                clock.lap();
                stream.synchronize()?;
                clock.lap();
                Ok(())
            })?;
            // ANCHOR_END: allocation
            let lap = |i: usize| times.as_ref().map(|times| times[i].seconds());
            table.push(row![format!("{name}: {} MiB", bytes / MIB), lap(0), lap(1), lap(2)]);
        }
    }
    cell.table(table);
    context.check_err().context("freeing memory")?;
    Ok(())
}

fn memory(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let stream = context.new_stream()?;
    context.synchronize()?;
    let steps: Vec<String> = steps();
    let in_mib = |bytes: u64| bytes as f64 / MIB as f64;

    let before = context.mem_get_info()?.0;
    let mut driver = Vec::new();
    let look = || {
        driver.push((before as f64 - context.mem_get_info()?.0 as f64) / MIB as f64);
        Ok(())
    };
    memory::take_steps(&Source::Driver(context.clone()), look, || Ok(()))?;

    let pool = Arc::new(Pool::new(&context, u64::MAX)?);
    let (mut used, mut reserved) = (Vec::new(), Vec::new());
    let look = || {
        stream.synchronize()?; // a buffer is free when the stream comes to it
        let [now_used, now_reserved] = pool.used_and_reserved()?;
        used.push(in_mib(now_used));
        reserved.push(in_mib(now_reserved));
        Ok(())
    };
    memory::take_steps(&Source::Pool(pool.clone(), stream.clone()), look, || pool.trim())?;
    context.check_err().context("freeing memory")?;

    let series = |series: Series, numbers: &[f64]| {
        steps
            .iter()
            .zip(numbers)
            .fold(series, |series, (step, number)| series.point(step.clone(), *number))
    };
    cell.series(series(Series::exact("used", "MiB").label("what the values need"), &used));
    cell.series(series(Series::measured("drop", "MiB").label("cuMemFree when dropped"), &driver));
    cell.series(series(
        Series::measured("reserved", "MiB").label("a pool that keeps everything"),
        &reserved,
    ));
    let mut shown = vec!["used", "drop", "reserved"];
    let mut unmeasured = Vec::new();
    for (script, lines) in [
        (
            "ch07_memory_torch.py",
            &[
                ("torch", "reserved", "PyTorch's cache"),
                ("cycles", "cycles", "PyTorch, tensors in cycles"),
            ][..],
        ),
        ("ch07_memory_cupy.py", &[("cupy", "total", "CuPy's pool")][..]),
    ] {
        match lab::peers::python(script) {
            Ok(peer) => {
                for (name, list, label) in lines {
                    let numbers = peer.numbers(list);
                    ensure!(
                        numbers.len() == steps.len(),
                        "{script} took other steps than this chapter"
                    );
                    cell.series(series(Series::measured(*name, "MiB").label(*label), &numbers));
                    shown.push(name);
                }
            }
            Err(missing) => unmeasured.push(format!("{script} was not measured: {missing}.")),
        }
    }
    cell.figure(
        Figure::new(
            "Who holds how much, while values come and go?",
            "Memory that is freed when dropped follows what the values need, up and down. The pools rise to the highest need and \
             stay there until they are told to give back. Tensors in cycles are never freed before the garbage collector runs.",
        )
        .x(Axis::labels("step"))
        .y(Axis::linear("device memory", "MiB"))
        .series(shown),
    );
    if !unmeasured.is_empty() {
        cell.measured_text(unmeasured.join("\n"));
    }
    Ok(())
}

/// What the steps of [`SEQUENCE`] are called: `a 64` allocates, `free a` frees.
fn steps() -> Vec<String> {
    let name = |(letter, mebibytes): &(&str, usize)| match mebibytes {
        0 => format!("free {letter}"),
        mebibytes => format!("{letter} {mebibytes}"),
    };
    SEQUENCE.iter().map(name).chain(["give back".to_owned()]).collect()
}

// -------------------------------------------------------------------------------------------------
// Graphs

fn chain(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let mut chain = Chain::new(&context)?;
    let stream = chain.stream().clone();
    let longest = cell.parameter("chain")?;
    let lengths = [1, 10, 100, longest / 4, longest / 2, longest];
    let amount = 7;
    let name = |name: &str, label: &str| Series::measured(name, "s").label(label);
    let mut by_hand = name("by_hand", "launched one by one");
    let mut graph = name("graph", "a graph");
    let mut early = name("early", "a graph of early launches");
    let mut host = name("host", "the host's part of a graph");
    let mut links_run = 0;
    cell.progress(3 * lengths.len() as u64);
    for links in lengths {
        for link in [Link::Ordinary, Link::Early] {
            cell.tick(&format!("{links} links, {link:?}"));
            if !chain.has(link) {
                early.push(links, None::<f64>);
                continue;
            }
            let captured = chain.capture(link, links, amount)?;
            captured.launch()?;
            chain.check(links, amount)?;
            let time = timing::device(stream.cu_stream(), |_| Ok(captured.launch()?))?;
            let each = time.map(|time| time.each(links));
            if link == Link::Early {
                early.push(links, each);
            } else {
                graph.push(links, each);
                let call = timing::laps(2, |clock| {
                    captured.launch()?;
                    clock.lap();
                    stream.synchronize()?;
                    clock.lap();
                    Ok(())
                })?;
                host.push(links, call.map(|times| times[0].each(links)));
            }
            chain.restart()?;
        }
        cell.tick(&format!("{links} links by hand"));
        chain.by_hand(Link::Ordinary, links, amount)?;
        chain.check(links, amount)?;
        links_run += links;
        let time =
            timing::device(stream.cu_stream(), |_| chain.by_hand(Link::Ordinary, links, amount))?;
        by_hand.push(links, time.map(|time| time.each(links)));
        chain.restart()?;
    }
    let empty = chain.capture(Link::Empty, longest, 0)?;
    let empty = timing::device(stream.cu_stream(), |_| Ok(empty.launch()?))?;
    cell.series(by_hand);
    cell.series(graph);
    cell.series(early);
    cell.series(host);
    cell.measured("empty", empty.map(|time| time.each(longest)), "s");
    cell.value("links_checked", links_run as f64, "");
    cell.figure(
        Figure::new(
            "What does a kernel of a chain cost?",
            "Launched one by one, each kernel takes the time of a launch, however long the chain is. In a graph the time falls \
             with the length and becomes flat at a fraction of that; early launches are a third below. The host's part falls on.",
        )
        .x(Axis::log10("kernels in the chain", ""))
        .y(Axis::log10("time for each kernel", "s"))
        .series(["by_hand", "graph", "early", "host"])
        .limit("empty", "kernels that do nothing, in a graph"),
    );
    Ok(())
}

fn update(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let mut chain = Chain::new(&context)?;
    let links = cell.parameter("chain")?;
    cell.value("links", links as f64, "");

    // ANCHOR: update
    let built = chain.build(links, 7)?;
    built.launch()?;
    chain.check(links, 7)?;

    built.set_amount(9)?; // kernel by kernel
    built.launch()?;
    chain.check(links, 9)?;

    let other = chain.capture(Link::Ordinary, links, 11)?;
    built.update_from(&other)?; // all at once, from another graph
    built.launch()?;
    chain.check(links, 11)?;
    // ANCHOR_END: update

    let mut table = Table::new("costs")
        .exact("what", "")
        .measured("host time", "s")
        .measured("each kernel", "s");
    let mut push = |what: &str, time: Option<Timing>| {
        table.push(row![what, time.map(Timing::seconds), time.map(|time| time.each(links))]);
    };
    cell.progress(6);
    cell.tick("by hand");
    let by_hand = timing::laps(2, |clock| {
        chain.by_hand(Link::Ordinary, links, 7)?;
        clock.lap();
        chain.stream().synchronize()?;
        clock.lap();
        Ok(())
    })?;
    push("launch the kernels one by one", by_hand.map(|times| times[0]));
    cell.tick("capture");
    push(
        "capture and instantiate",
        timing::host_call(|| chain.capture(Link::Ordinary, links, 7).map(drop))?,
    );
    cell.tick("build");
    push("build and instantiate", timing::host_call(|| chain.build(links, 7).map(drop))?);
    cell.tick("set arguments");
    push("new arguments kernel by kernel", timing::host_call(|| built.set_amount(7))?);
    cell.tick("update");
    push("new arguments from another graph", timing::host_call(|| built.update_from(&other))?);
    cell.tick("launch");
    let launch = timing::laps(2, |clock| {
        built.launch()?;
        clock.lap();
        chain.stream().synchronize()?;
        clock.lap();
        Ok(())
    })?;
    push("launch the graph", launch.map(|times| times[0]));
    cell.table(table);
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// A missing wait

/// Runs of the diamond with the mistake.
const RUNS: usize = 20;

/// In how many of them a sum was wrong.
fn wrong_runs(diamond: &mut Diamond, rounds: u32) -> Result<usize> {
    let mut wrong_runs = 0;
    for _ in 0..RUNS {
        diamond.run(Waits::Forgotten, rounds)?;
        wrong_runs += usize::from(diamond.wrong(rounds)? > 0);
    }
    Ok(wrong_runs)
}

/// Stands last: where somebody checks the order of streams, nothing more can be done on this device afterwards.
fn missing_wait(cell: &mut Cell) -> Result<()> {
    let context = lab::open_device()?;
    let mut table = Table::new("runs")
        .exact("rounds of the right side", "")
        .measured("runs with a wrong sum", "")
        .measured("answer", "");
    let ((), messages) = lab::driver_messages(|| {
        let mut diamond = Diamond::new(&context, Waits::Forgotten, 1000)?;
        for rounds in [0, 300, 3000] {
            match wrong_runs(&mut diamond, rounds) {
                Ok(wrong) => table.push(row![rounds, wrong, "CUDA_SUCCESS"]),
                Err(error) => {
                    let code = error.chain().find_map(|cause| cause.downcast_ref::<DriverError>());
                    let answer =
                        code.map_or_else(|| format!("{error:#}"), |error| format!("{:?}", error.0));
                    table.push(row![rounds, "not looked at", answer]);
                }
            }
        }
        Ok(())
    })?;
    // What the guards of the slices met has been said above.
    let _ = context.check_err();
    cell.table(table);
    cell.value("tries", RUNS as f64, "");
    if !messages.is_empty() {
        cell.measured_text(messages);
    }
    Ok(())
}

// -------------------------------------------------------------------------------------------------
// The same elsewhere: CUDA C++ in this process, Python beside it

fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(1 + PYTHON_PEERS.len() as u64);
    let mut table = Table::new("peers")
        .measured("written in", "")
        .measured("version", "")
        .measured("one stream", "ms")
        .measured("four streams", "ms")
        .measured("gain", "")
        .measured("a kernel by hand", "µs")
        .measured("a kernel in a graph", "µs");
    let mut unmeasured = Vec::new();
    cell.tick("CUDA C++");
    match lab::peers::cuda_library("ch07_cuda.cu") {
        Ok(library) => against_cuda(cell, &library, &mut table)?,
        Err(missing) => unmeasured.push(format!("CUDA C++ was not measured: {missing}.")),
    }
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python(script) {
            Ok(peer) => {
                // Numba has no graphs.
                let number =
                    |name| peer.number(name).map_or(lab::Entry::from("–"), lab::Entry::from);
                table.push(row![
                    peer.word("peer"),
                    peer.word("version"),
                    number("serial_ms"),
                    number("overlapped_ms"),
                    number("gain"),
                    number("by_hand_us"),
                    number("graph_us"),
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
    ["ch07_pycuda.py", "ch07_numba.py", "ch07_cupy.py", "ch07_torch.py"];

/// Streams and chunks of the peers.
const PEERS: (usize, usize) = (4, 32);

/// Rust and C++ in turn, so that both meet the same clocks and the same neighbours.
fn against_cuda(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    type Overlap =
        unsafe extern "C" fn(u64, u64, u64, u64, usize, u32, i32, *const *mut c_void, i32) -> i32;
    type Launch = unsafe extern "C" fn(u64, u32, i32, *mut c_void) -> i32;
    type Capture = unsafe extern "C" fn(u64, u32, i32, *mut c_void, *mut *mut c_void) -> i32;
    type Exec = unsafe extern "C" fn(*mut c_void, *mut c_void) -> i32;
    type Destroy = unsafe extern "C" fn(*mut c_void) -> i32;
    // SAFETY: tests/peers/ch07_cuda.cu defines these functions with these parameters.
    let (overlap, by_hand, capture, launch, destroy) = unsafe {
        (
            library.function::<Overlap>("peer_overlap")?,
            library.function::<Launch>("peer_chain")?,
            library.function::<Capture>("peer_capture")?,
            library.function::<Exec>("peer_launch")?,
            library.function::<Destroy>("peer_destroy")?,
        )
    };
    let n = floats(cell)?;
    let mut work = pipeline(n, PEERS.0, true)?;
    let Stages { rounds, .. } = Stages::measure(&mut work, otherwise(cell)?)?;
    let [host_in, host_out, device_in, device_out] = work.addresses()?;
    let streams: Vec<*mut c_void> =
        work.streams().iter().map(|stream| stream.cu_stream().cast()).collect();
    let theirs = |chunks: usize| {
        // SAFETY: `n` floats on each side, and streams of this context; the call returns when the last copy has ended.
        let code = unsafe {
            overlap(
                host_in,
                host_out,
                device_in,
                device_out,
                n,
                rounds,
                chunks as i32,
                streams.as_ptr(),
                streams.len() as i32,
            )
        };
        succeeded("overlap", code)
    };
    theirs(PEERS.1)?;
    work.check(rounds)?;
    let mut both = |chunks: usize| {
        timing::host_pairs(
            || work.there_and_back(Order::DepthFirst, PEERS.0, chunks, rounds),
            || theirs(chunks),
            || Ok(()),
        )
    };
    let (serial, overlapped) = (both(1)?, both(PEERS.1)?);
    work.check(rounds)?;

    let context = lab::open_device()?;
    let mut chain = Chain::new(&context)?;
    let links = cell.parameter("chain")?;
    let (numbers, stream) = (chain.address(), chain.stream().clone());
    let raw = stream.cu_stream().cast::<c_void>();
    // By hand first: a kernel may be loaded at its first launch, and not while a stream captures.
    // SAFETY: 32 numbers on the device, and a stream of this context.
    succeeded("chain", unsafe { by_hand(numbers, graphs::NUMBERS as u32, links as i32, raw) })?;
    chain.check(links, 1)?;
    let mut exec = std::ptr::null_mut();
    // SAFETY: 32 numbers on the device, a stream of this context, and a place for the graph.
    succeeded("capture", unsafe {
        capture(numbers, graphs::NUMBERS as u32, links as i32, raw, &mut exec)
    })?;
    // SAFETY: the graph was made above, and its memory lives.
    succeeded("graph", unsafe { launch(exec, raw) })?;
    chain.check(links, 1)?;
    let ours = chain.capture(Link::Ordinary, links, 1)?;
    let graph = timing::device_pairs(
        stream.cu_stream(),
        |_| Ok(ours.launch()?),
        // SAFETY: as above.
        |_| succeeded("graph", unsafe { launch(exec, raw) }),
    )?;
    let their_chain = || {
        // SAFETY: 32 numbers on the device, and a stream of this context.
        unsafe { by_hand(numbers, graphs::NUMBERS as u32, links as i32, raw) }
    };
    let one_by_one = timing::device_pairs(
        stream.cu_stream(),
        |_| chain.by_hand(Link::Ordinary, links, 1),
        |_| succeeded("chain", their_chain()),
    )?;
    stream.synchronize()?;
    // SAFETY: its last launch has ended.
    succeeded("destroy", unsafe { destroy(exec) })?;

    cell.measured("overlap_ratio", overlapped.map(|pairs| pairs.speed), "");
    cell.measured("graph_ratio", graph.map(|pairs| pairs.speed), "");
    cell.measured("launch_ratio", one_by_one.map(|pairs| pairs.speed), "");
    if let (Some(serial), Some(overlapped), Some(graph), Some(hand)) =
        (serial, overlapped, graph, one_by_one)
    {
        for (language, version, serial, overlapped, hand, graph) in [
            ("Rust, this chapter", "", serial.ours, overlapped.ours, hand.ours, graph.ours),
            (
                "CUDA C++",
                library.version(),
                serial.theirs,
                overlapped.theirs,
                hand.theirs,
                graph.theirs,
            ),
        ] {
            let microseconds = |time: Timing| 1e6 * time.median / links as f64;
            table.push(row![
                language,
                version,
                1e3 * serial.median,
                1e3 * overlapped.median,
                serial.median / overlapped.median,
                microseconds(hand),
                microseconds(graph)
            ]);
        }
    }
    Ok(())
}

fn succeeded(what: &str, code: i32) -> Result<()> {
    ensure!(code == 0, "the C++ peer's {what} returned the CUDA runtime's error {code}");
    Ok(())
}
