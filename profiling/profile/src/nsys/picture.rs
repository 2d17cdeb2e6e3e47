//! Lanes of spans within a stretch of time, small enough for a page.

use std::collections::{BTreeMap, HashMap};

use record::{Lane, Span, Timeline};

use super::export::{By, Trace, What};
use super::nesting::Ranges;
use crate::reading::significant;

/// Spans that a lane may have. More cannot be told apart on a page, and would make a record of megabytes.
const SPANS_PER_LANE: usize = 400;
/// A page is at most so many points wide: what is shorter may be drawn with its neighbours.
const POINTS: f64 = 2000.0;

/// A stretch of time, in the trace's nanoseconds.
#[derive(Clone, Copy)]
pub(super) struct Window {
    pub(super) start: i64,
    pub(super) end: i64,
}

impl Window {
    pub(super) fn length(self) -> i64 {
        self.end - self.start
    }

    pub(super) fn touches(self, start: i64, end: i64) -> bool {
        start < self.end && self.start < end
    }

    /// Microseconds from its start, to a nanosecond, and not before it or after its end.
    pub(super) fn us(self, time: i64) -> f64 {
        (time.clamp(self.start, self.end) - self.start) as f64 / 1e3
    }
}

/// The lanes within `window`, and a note on what was drawn together.
pub(super) fn picture(trace: &Trace, ranges: &Ranges<'_>, window: Window, title: &str) -> (Timeline, String) {
    // By a key that puts host above GPU, outer ranges above inner ones, and first threads and streams first.
    let mut lanes: BTreeMap<(u8, i64, i64), (String, Vec<Span>)> = BTreeMap::new();
    let mut add = |key, name: &dyn Fn() -> String, what: String, start: i64, end: i64| {
        if window.touches(start, end) {
            let (_, spans) = lanes.entry(key).or_insert_with(|| (name(), Vec::new()));
            spans.push(Span { name: what, start_us: window.us(start), end_us: window.us(end) });
        }
    };
    let threads = numbered(
        ranges.list.iter().map(|range| range.thread).chain(trace.calls.iter().map(|call| call.thread)),
    );
    let thread = |id: i64| {
        if threads[&id] == 0 { String::new() } else { format!(", thread {}", threads[&id] + 1) }
    };
    for (index, range) in ranges.list.iter().enumerate() {
        let depth = if range.nests { ranges.depth(index) as i64 } else { i64::MAX };
        let name = || {
            let level = match depth {
                0 => String::new(),
                i64::MAX => ", start/end".into(),
                depth => format!(", level {}", depth + 1),
            };
            format!("NVTX {}{level}{}", ranges.domain, thread(range.thread))
        };
        add((0, threads[&range.thread], depth), &name, range.name.clone(), range.start, range.end);
    }
    for call in &trace.calls {
        let name = || format!("CUDA API{}", thread(call.thread));
        add((1, threads[&call.thread], 0), &name, call.name.clone(), call.start, call.end);
    }
    let devices = trace.work.iter().map(|work| work.device).max().unwrap_or(0);
    for work in &trace.work {
        let name = || match (devices, &work.what) {
            (0, What::Migration { .. }) => "managed memory".into(),
            (0, _) => format!("stream {}", work.stream),
            (_, What::Migration { .. }) => format!("GPU {}, managed memory", work.device),
            (_, _) => format!("GPU {}, stream {}", work.device, work.stream),
        };
        // The driver moves pages in no stream of the program's.
        let lane = if let What::Migration { .. } = work.what { i64::MAX } else { work.stream };
        add((2, work.device, lane), &name, what(&work.what), work.start, work.end);
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

/// What a span says for a piece of work.
pub(super) fn what(what: &What) -> String {
    match what {
        What::Kernel(kernel) => kernel.name.clone(),
        What::Copy { direction, bytes } => format!("{direction} {}", amount(*bytes)),
        What::Migration { to: By::Gpu, bytes } => format!("pages to the GPU {}", amount(*bytes)),
        What::Migration { to: By::Cpu, bytes } => format!("pages to the CPU {}", amount(*bytes)),
        What::Set { bytes } => format!("fill {}", amount(*bytes)),
        What::Graph => "graph".into(),
    }
}

/// `(2, 3, 1)` as `2 × 3`.
pub(crate) fn dimensions(dimensions: [i64; 3]) -> String {
    let used = dimensions.iter().rposition(|&extent| extent != 1).map_or(1, |last| last + 1);
    dimensions[..used].iter().map(i64::to_string).collect::<Vec<_>>().join(" × ")
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

fn amount(bytes: i64) -> String {
    match bytes {
        1_000_000.. => format!("{} MB", significant((bytes as f64 / 1e5).round() / 10.0)),
        1_000.. => format!("{} kB", significant((bytes as f64 / 1e2).round() / 10.0)),
        _ => format!("{bytes} bytes"),
    }
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
