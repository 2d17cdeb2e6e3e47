//! A session of Nsight Systems, reduced to what a page shows: lanes of spans, and tables of the same data.

use std::collections::{BTreeMap, HashMap};

use anyhow::bail;
use record::{Cell, Entry, Kind, Lane, Output, Series, Span, Table, Text, Timeline, Value};

use super::export::{Range, Trace, What, Work};
use crate::reading::{Reading, significant};

/// The cell with the whole chapter.
pub const TIMELINE: &str = "timeline";
/// The cell that looks closer at one pass through `setup`, `h2d`, `measure` and `d2h`: the one in which the GPU did most.
pub const PASS: &str = "timeline-pass";

/// Spans that a lane may have. More cannot be told apart on a page, and would make a record of megabytes.
const SPANS_PER_LANE: usize = 400;
/// A page is at most so many points wide: what is shorter may be drawn with its neighbours.
const POINTS: f64 = 2000.0;
/// The range within which a chapter times.
const MEASURED: &str = "measure";
/// The range within which it does the same to warm up.
const WARM_UP: &str = "warmup";
/// The order in which the ranges of a pass come.
const ORDER: [&str; 6] = ["setup", "h2d", WARM_UP, MEASURED, "d2h", "check"];

/// The cells of a session: [`TIMELINE`], and [`PASS`] where it shows more than the whole does.
///
/// # Errors
/// A trace without ranges of `domain`: nothing in it can be put into the chapter's words.
pub fn reduce(trace: &Trace, domain: &str) -> anyhow::Result<Vec<Cell>> {
    let ranges: Vec<&Range> = trace.ranges.iter().filter(|range| range.domain == domain).collect();
    let (Some(first), Some(last)) =
        (ranges.iter().map(|range| range.start).min(), ranges.iter().map(|range| range.end).max())
    else {
        bail!(
            "the trace has no NVTX range of domain `{domain}` ({} ranges of others): the program was built without \
             ranges. `cargo profile` builds with them wherever libclang is found (`cargo profile doctor`); by hand: \
             cargo build -p CHAPTER -F nvtx",
            trace.ranges.len()
        );
    };
    let nesting = Nesting::new(trace, &ranges);
    // Work that was started within the ranges may end after them.
    let last = trace
        .work
        .iter()
        .enumerate()
        .filter(|(index, _)| nesting.range_of_work[*index].is_some())
        .map(|(_, work)| work.end)
        .fold(last, i64::max);
    let whole = Window { start: first, end: last };

    let mut cells = vec![Cell {
        id: TIMELINE.into(),
        title: "Who did what when".into(),
        seconds: 0.0,
        order_dependent: false,
        outputs: outputs(trace, domain, &ranges, &nesting, whole),
    }];
    if let Some(window) = pass(trace, &ranges, &nesting)
        && window.length() * 4 < whole.length()
    {
        let (timeline, note) = picture(trace, domain, &ranges, &nesting, window, "One pass, closer");
        cells.push(Cell {
            id: PASS.into(),
            title: "One pass, closer".into(),
            seconds: 0.0,
            order_dependent: false,
            outputs: vec![Output::Timeline(timeline), text(&note)],
        });
    }
    Ok(cells)
}

/// A stretch of time, in the trace's nanoseconds.
#[derive(Clone, Copy)]
struct Window {
    start: i64,
    end: i64,
}

impl Window {
    fn length(self) -> i64 {
        self.end - self.start
    }

    fn touches(self, start: i64, end: i64) -> bool {
        start < self.end && self.start < end
    }

    /// Microseconds from its start, to a nanosecond, and not before it or after its end.
    fn us(self, time: i64) -> f64 {
        (time.clamp(self.start, self.end) - self.start) as f64 / 1e3
    }
}

/// Which range lies in which, and which range each piece of work was started in.
struct Nesting {
    /// The enclosing range, by index into the domain's ranges.
    parent: Vec<Option<usize>>,
    /// How many ranges enclose it.
    depth: Vec<usize>,
    /// The innermost range around the call that started it, by index of the work.
    range_of_work: Vec<Option<usize>>,
}

impl Nesting {
    /// Work belongs to the innermost push/pop range that was open, on the calling thread, when it was started. The call
    /// is found by its correlation number and never by name: there are many ways to launch.
    fn new(trace: &Trace, ranges: &[&Range]) -> Self {
        let mut parent = vec![None; ranges.len()];
        let mut depth = vec![0; ranges.len()];
        let mut range_of_call: HashMap<i64, usize> = HashMap::new();
        let mut threads: Vec<i64> = ranges.iter().map(|range| range.thread).collect();
        threads.sort_unstable();
        threads.dedup();
        for thread in threads {
            let mut open: Vec<usize> = Vec::new();
            let mut calls = trace.calls.iter().filter(|call| call.thread == thread).peekable();
            let mut assign = |open: &mut Vec<usize>, until: i64| {
                while let Some(call) = calls.next_if(|call| call.start < until) {
                    open.retain(|&range| ranges[range].end >= call.start);
                    if let Some(&range) = open.last() {
                        range_of_call.insert(call.correlation, range);
                    }
                }
            };
            // Both are sorted by start, and an outer range comes before an inner one that starts with it.
            for (index, range) in ranges.iter().enumerate() {
                if range.thread != thread || !range.nests {
                    continue;
                }
                assign(&mut open, range.start);
                open.retain(|&outer| ranges[outer].end >= range.end);
                parent[index] = open.last().copied();
                depth[index] = open.len();
                open.push(index);
            }
            assign(&mut open, i64::MAX);
        }
        let range_of_work =
            trace.work.iter().map(|work| range_of_call.get(&work.correlation).copied()).collect();
        Self { parent, depth, range_of_work }
    }

    /// The names from the outermost range to this one.
    fn path(&self, ranges: &[&Range], index: usize) -> String {
        match self.parent[index] {
            Some(outer) => format!("{} / {}", self.path(ranges, outer), ranges[index].name),
            None => ranges[index].name.clone(),
        }
    }

    /// Whether work was started in this range or in one that it encloses.
    fn holds(&self, range: usize, work: usize) -> bool {
        std::iter::successors(self.range_of_work[work], |&inner| self.parent[inner])
            .any(|outer| outer == range)
    }
}

/// From the first to the last range of the pass that holds the measured range in which the GPU did most, with the work
/// that was started in them. What ran to warm up is not measured.
fn pass(trace: &Trace, ranges: &[&Range], nesting: &Nesting) -> Option<Window> {
    let time = |index: usize| -> i64 {
        let inside = trace.work.iter().enumerate().filter(|(number, _)| nesting.holds(index, *number));
        inside.map(|(_, work)| work.end - work.start).sum()
    };
    let is_measured = |&index: &usize| {
        let mut around = std::iter::successors(Some(index), |&inner| nesting.parent[inner]);
        ranges[index].name == MEASURED && !around.any(|outer| ranges[outer].name == WARM_UP)
    };
    let measured = (0..ranges.len()).filter(is_measured).max_by_key(|&index| time(index))?;

    // Its neighbours belong to the same pass as long as they are in the order of a pass.
    let siblings: Vec<usize> = (0..ranges.len())
        .filter(|&index| {
            nesting.parent[index] == nesting.parent[measured]
                && ranges[index].thread == ranges[measured].thread
        })
        .collect();
    let place = siblings.iter().position(|&index| index == measured)?;
    let rank = |index: usize| ORDER.iter().position(|name| *name == ranges[index].name);
    let (mut first, mut last) = (place, place);
    while first > 0 && rank(siblings[first - 1]).is_some_and(|before| Some(before) < rank(siblings[first])) {
        first -= 1;
    }
    while last + 1 < siblings.len() && rank(siblings[last + 1]) > rank(siblings[last]) {
        last += 1;
    }
    let mut window = Window { start: ranges[siblings[first]].start, end: ranges[siblings[last]].end };
    for (number, work) in trace.work.iter().enumerate() {
        if siblings[first..=last].iter().any(|&index| nesting.holds(index, number)) {
            window.end = window.end.max(work.end);
        }
    }
    Some(window)
}

fn outputs(trace: &Trace, domain: &str, ranges: &[&Range], nesting: &Nesting, window: Window) -> Vec<Output> {
    let work: Vec<&Work> = trace.work.iter().filter(|work| window.touches(work.start, work.end)).collect();
    let (timeline, mut note) = picture(trace, domain, ranges, nesting, window, "Who did what when");
    note.push_str(
        "Each timed loop ran once, after one warm-up. Host times include what the tracing itself costs. What came \
         before the first range and after the last is cut off.\n",
    );
    if !trace.absent.is_empty() {
        note.push_str(&format!("Not recorded in this session: {}.\n", trace.absent.join(", ")));
    }

    let busy = |keep: fn(&What) -> bool| {
        busy_us(work.iter().filter(|work| keep(&work.what)).map(|work| (work.start, work.end)).collect())
    };
    let gpu = if trace.calls.is_empty() && trace.work.is_empty() {
        |_| Reading::missing("the session recorded no CUDA call")
    } else {
        Reading::Measured as fn(f64) -> Reading
    };
    let length = Reading::Measured(window.us(window.end));
    let busy_all = gpu(busy(|_| true));
    let share = busy_all.with(&length, "GPU busy time / length", |busy, length| 100.0 * busy / length);
    let values = [
        ("length_us", "µs", length),
        ("gpu_busy_us", "µs", busy_all),
        ("gpu_busy_percent", "%", share),
        ("kernels_us", "µs", gpu(busy(|what| matches!(what, What::Kernel(_))))),
        ("copies_us", "µs", gpu(busy(|what| matches!(what, What::Copy { .. })))),
    ];

    let mut outputs = vec![Output::Timeline(timeline), text(&note)];
    outputs.extend(values.map(|(name, unit, reading)| {
        Output::Value(Value {
            name: name.into(),
            kind: Kind::Measured,
            unit: unit.into(),
            point: reading.point(),
            note: reading.note(),
        })
    }));
    let (table, series) = ranges_table(trace, ranges, nesting);
    outputs.push(Output::Table(table));
    outputs.extend(series.into_iter().map(Output::Series));
    outputs.push(Output::Table(kernels_table(&work)));
    outputs.push(Output::Table(copies_table(&work)));
    outputs.push(Output::Table(calls_table(trace, window)));
    outputs
}

/// What the GPU did for each range: NVIDIA calls it the projection of the range.
fn ranges_table(trace: &Trace, ranges: &[&Range], nesting: &Nesting) -> (Table, Vec<Series>) {
    struct Row {
        path: String,
        times: usize,
        host_ns: i64,
        spans: Vec<(i64, i64)>,
        kernels: usize,
        copies: usize,
        bytes: i64,
    }
    let mut rows: Vec<Row> = Vec::new();
    let mut row_of_path: HashMap<String, usize> = HashMap::new();
    let mut row_of_range = Vec::with_capacity(ranges.len());
    for (index, range) in ranges.iter().enumerate() {
        let path = nesting.path(ranges, index);
        let row = *row_of_path.entry(path.clone()).or_insert_with(|| {
            rows.push(Row { path, times: 0, host_ns: 0, spans: Vec::new(), kernels: 0, copies: 0, bytes: 0 });
            rows.len() - 1
        });
        rows[row].times += 1;
        rows[row].host_ns += range.end - range.start;
        row_of_range.push(row);
    }
    for (number, work) in trace.work.iter().enumerate() {
        let enclosing = std::iter::successors(nesting.range_of_work[number], |&inner| nesting.parent[inner]);
        for range in enclosing {
            let row = &mut rows[row_of_range[range]];
            row.spans.push((work.start, work.end));
            match &work.what {
                What::Kernel(_) => row.kernels += 1,
                What::Copy { bytes, .. } => {
                    row.copies += 1;
                    row.bytes += bytes;
                }
                What::Set { .. } | What::Graph => {}
            }
        }
    }

    let mut table = Table::new("ranges")
        .measured("range", "")
        .exact("times", "")
        .measured("host", "µs")
        .measured("GPU busy", "µs")
        .exact("kernels", "")
        .exact("copies", "")
        .exact("copied", "MB");
    let mut host = Series::measured("host_us", "µs").label("host time");
    let mut gpu = Series::measured("gpu_us", "µs").label("GPU busy");
    for row in rows {
        let host_us = significant(row.host_ns as f64 / 1e3);
        let gpu_us = significant(busy_us(row.spans));
        host.push(row.path.as_str(), host_us);
        gpu.push(row.path.as_str(), gpu_us);
        table.push([
            Entry::Text(row.path),
            Entry::Number(row.times as f64),
            Entry::Number(host_us),
            Entry::Number(gpu_us),
            Entry::Number(row.kernels as f64),
            Entry::Number(row.copies as f64),
            Entry::Number(significant(row.bytes as f64 / 1e6)),
        ]);
    }
    (table, vec![host, gpu])
}

fn kernels_table(work: &[&Work]) -> Table {
    let mut groups: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for work in work {
        if let What::Kernel(kernel) = &work.what {
            let key = (&kernel.name, kernel.grid, kernel.block, kernel.registers, kernel.shared_bytes);
            groups.entry(key).or_default().push(work.end - work.start);
        }
    }
    let mut table = Table::new("kernels")
        .exact("kernel", "")
        .exact("grid", "blocks")
        .exact("block", "threads")
        .exact("launches", "")
        .measured("total", "µs")
        .measured("median", "µs")
        .measured("shortest", "µs")
        .measured("longest", "µs")
        .measured("registers", "a thread")
        .measured("shared", "bytes");
    for ((name, grid, block, registers, shared_bytes), mut times) in groups {
        times.sort_unstable();
        table.push([
            Entry::Text(name.clone()),
            Entry::Text(dimensions(grid)),
            Entry::Text(dimensions(block)),
            Entry::Number(times.len() as f64),
            us(times.iter().sum()),
            us(times[times.len() / 2]),
            us(times[0]),
            us(times[times.len() - 1]),
            Entry::Number(registers as f64),
            Entry::Number(shared_bytes as f64),
        ]);
    }
    table
}

fn copies_table(work: &[&Work]) -> Table {
    let mut groups: BTreeMap<&str, (usize, i64, i64)> = BTreeMap::new();
    for work in work {
        if let What::Copy { direction, bytes } = &work.what {
            let (copies, total, time) = groups.entry(direction).or_default();
            *copies += 1;
            *total += bytes;
            *time += work.end - work.start;
        }
    }
    let mut table = Table::new("copies")
        .exact("direction", "")
        .exact("copies", "")
        .exact("amount", "MB")
        .measured("total", "µs")
        .measured("rate", "GB/s");
    for (direction, (copies, bytes, time)) in groups {
        // A byte a nanosecond is a gigabyte a second.
        let rate = Reading::Measured(bytes as f64).with(
            &Reading::Measured(time as f64),
            "bytes / time",
            |bytes, time| bytes / time,
        );
        table.push([
            Entry::Text(direction.to_owned()),
            Entry::Number(copies as f64),
            Entry::Number(significant(bytes as f64 / 1e6)),
            us(time),
            rate.entry(),
        ]);
    }
    table
}

fn calls_table(trace: &Trace, window: Window) -> Table {
    let mut groups: HashMap<&str, Vec<i64>> = HashMap::new();
    for call in trace.calls.iter().filter(|call| window.touches(call.start, call.end)) {
        groups.entry(&call.name).or_default().push(call.end - call.start);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(name, times)| (std::cmp::Reverse(times.iter().sum::<i64>()), *name));
    let mut table = Table::new("calls")
        .measured("call", "")
        .exact("times", "")
        .measured("total", "µs")
        .measured("median", "µs")
        .measured("longest", "µs");
    for (name, mut times) in groups {
        times.sort_unstable();
        table.push([
            Entry::Text(name.to_owned()),
            Entry::Number(times.len() as f64),
            us(times.iter().sum()),
            us(times[times.len() / 2]),
            us(times[times.len() - 1]),
        ]);
    }
    table
}

/// The lanes within `window`, and a note on what was drawn together.
fn picture(
    trace: &Trace,
    domain: &str,
    ranges: &[&Range],
    nesting: &Nesting,
    window: Window,
    title: &str,
) -> (Timeline, String) {
    // By a key that puts host above GPU, outer ranges above inner ones, and first threads and streams first.
    let mut lanes: BTreeMap<(u8, i64, i64), (String, Vec<Span>)> = BTreeMap::new();
    let mut add = |key, name: &dyn Fn() -> String, what: String, start: i64, end: i64| {
        if window.touches(start, end) {
            let (_, spans) = lanes.entry(key).or_insert_with(|| (name(), Vec::new()));
            spans.push(Span { name: what, start_us: window.us(start), end_us: window.us(end) });
        }
    };
    let threads =
        numbered(ranges.iter().map(|range| range.thread).chain(trace.calls.iter().map(|call| call.thread)));
    let thread =
        |id: i64| if threads[&id] == 0 { String::new() } else { format!(", thread {}", threads[&id] + 1) };
    for (index, range) in ranges.iter().enumerate() {
        let depth = if range.nests { nesting.depth[index] as i64 } else { i64::MAX };
        let name = || {
            let level = match depth {
                0 => String::new(),
                i64::MAX => ", start/end".into(),
                depth => format!(", level {}", depth + 1),
            };
            format!("NVTX {domain}{level}{}", thread(range.thread))
        };
        add((0, threads[&range.thread], depth), &name, range.name.clone(), range.start, range.end);
    }
    for call in &trace.calls {
        let name = || format!("CUDA API{}", thread(call.thread));
        add((1, threads[&call.thread], 0), &name, call.name.clone(), call.start, call.end);
    }
    let devices = trace.work.iter().map(|work| work.device).max().unwrap_or(0);
    for work in &trace.work {
        let name = || match devices {
            0 => format!("stream {}", work.stream),
            _ => format!("GPU {}, stream {}", work.device, work.stream),
        };
        add((2, work.device, work.stream), &name, what(&work.what), work.start, work.end);
    }

    let mut note = String::new();
    let lanes: Vec<Lane> = lanes
        .into_values()
        .map(|(name, spans)| {
            let before = spans.len();
            let spans = fit(spans, window.us(window.end));
            if spans.len() < before {
                note.push_str(&format!(
                    "Lane {name}: {before} spans, drawn as {}: neighbours that are too short to be told apart are one.\n",
                    spans.len()
                ));
            }
            Lane { name, spans }
        })
        .collect();
    let names: Vec<&str> = lanes.iter().map(|lane| lane.name.as_str()).collect();
    let alt = format!(
        "{} lanes over {} ms: {}.",
        lanes.len(),
        significant(window.us(window.end) / 1e3),
        names.join("; ")
    );
    (Timeline { title: title.into(), alt, lanes }, note)
}

/// Joins short neighbours until the lane is small enough, at the finest grain that does it.
fn fit(mut spans: Vec<Span>, length_us: f64) -> Vec<Span> {
    spans.sort_by(|a, b| a.start_us.total_cmp(&b.start_us));
    let mut grain = length_us / POINTS;
    while spans.len() > SPANS_PER_LANE && grain < length_us {
        spans = join(spans, grain);
        grain *= 2.0;
    }
    spans
}

fn join(spans: Vec<Span>, grain: f64) -> Vec<Span> {
    struct Group {
        span: Span,
        count: usize,
        same: bool,
    }
    let mut groups: Vec<Group> = Vec::new();
    for span in spans {
        let short = |span: &Span| span.end_us - span.start_us < grain;
        match groups.last_mut() {
            Some(group)
                if short(&span) && short(&group.span) && span.start_us - group.span.end_us < grain =>
            {
                group.same &= base(&group.span.name) == base(&span.name);
                group.count += count(&span.name);
                group.span.end_us = group.span.end_us.max(span.end_us);
            }
            _ => groups.push(Group { count: count(&span.name), same: true, span }),
        }
    }
    let joined = groups.into_iter().map(|Group { mut span, count, same }| {
        if count > 1 {
            let name = base(&span.name).to_owned();
            span.name =
                if same { format!("{count} × {name}") } else { format!("{count} × {name} and others") };
        }
        span
    });
    joined.collect()
}

/// How many spans a span's name stands for.
fn count(name: &str) -> usize {
    name.split_once(" × ").and_then(|(count, _)| count.parse().ok()).unwrap_or(1)
}

/// A span's name without how many it stands for.
fn base(name: &str) -> &str {
    let name = name.split_once(" × ").map_or(name, |(_, name)| name);
    name.strip_suffix(" and others").unwrap_or(name)
}

/// What a span says for a piece of work.
pub(crate) fn what(what: &What) -> String {
    match what {
        What::Kernel(kernel) => kernel.name.clone(),
        What::Copy { direction, bytes } => format!("{direction} {}", amount(*bytes)),
        What::Set { bytes } => format!("fill {}", amount(*bytes)),
        What::Graph => "graph".into(),
    }
}

fn amount(bytes: i64) -> String {
    match bytes {
        1_000_000.. => format!("{} MB", significant((bytes as f64 / 1e5).round() / 10.0)),
        1_000.. => format!("{} kB", significant((bytes as f64 / 1e2).round() / 10.0)),
        _ => format!("{bytes} bytes"),
    }
}

/// `(2, 3, 1)` as `2 × 3`.
pub(crate) fn dimensions(dimensions: [i64; 3]) -> String {
    let used = dimensions.iter().rposition(|&extent| extent != 1).map_or(1, |last| last + 1);
    dimensions[..used].iter().map(i64::to_string).collect::<Vec<_>>().join(" × ")
}

/// Microseconds during which at least one of the spans was running.
fn busy_us(mut spans: Vec<(i64, i64)>) -> f64 {
    spans.sort_unstable();
    let (mut busy, mut until) = (0, i64::MIN);
    for (start, end) in spans {
        busy += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    busy as f64 / 1e3
}

/// Small numbers for ids, in order of appearance.
fn numbered(ids: impl Iterator<Item = i64>) -> HashMap<i64, i64> {
    let mut numbers = HashMap::new();
    for id in ids {
        let next = numbers.len() as i64;
        numbers.entry(id).or_insert(next);
    }
    numbers
}

fn us(ns: i64) -> Entry {
    Entry::Number(significant(ns as f64 / 1e3))
}

fn text(note: &str) -> Output {
    Output::Text(Text { kind: Kind::Measured, text: note.to_owned() })
}
