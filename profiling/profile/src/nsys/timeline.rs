//! A session of Nsight Systems, reduced to what a page shows: lanes of spans, and tables of the same data.

use anyhow::bail;
use record::{Cell, Kind, Output, Text, Value};

use super::export::{Trace, What, Work};
use super::nesting::Ranges;
use super::picture::{Window, picture};
use super::tables;
use crate::reading::Reading;

/// The cell with the whole chapter.
pub const TIMELINE: &str = "timeline";
/// The cell that looks closer at one pass through `setup`, `h2d`, `measure` and `d2h`: the one in which the GPU did most.
pub const PASS: &str = "timeline-pass";
/// The cell that counts page faults of managed memory and the pages that moved.
pub const MIGRATIONS: &str = "migrations";

/// The range within which a chapter times.
const MEASURED: &str = "measure";
/// The range within which it does the same to warm up.
const WARM_UP: &str = "warmup";
/// The order in which the ranges of a pass come.
const ORDER: [&str; 6] = ["setup", "h2d", WARM_UP, MEASURED, "d2h", "check"];

/// The cells of a session: [`TIMELINE`], [`PASS`] where it shows more than the whole does, and [`MIGRATIONS`] where pages
/// moved.
///
/// # Errors
/// A trace without ranges of `domain`: nothing in it can be put into the chapter's words.
pub fn reduce(trace: &Trace, domain: &str) -> anyhow::Result<Vec<Cell>> {
    let ranges = Ranges::new(trace, domain);
    let starts = ranges.list.iter().map(|range| range.start);
    let ends = ranges.list.iter().map(|range| range.end);
    let (Some(first), Some(last)) = (starts.min(), ends.max()) else {
        bail!(
            "the trace has no NVTX range of domain `{domain}` ({} ranges of others): the program was built without \
             ranges. `cargo profile` builds with them wherever libclang is found (`cargo profile doctor`); by hand: \
             cargo build -p CHAPTER -F nvtx",
            trace.ranges.len()
        );
    };
    // Work that was started within the ranges may end after them.
    let last = trace
        .work
        .iter()
        .enumerate()
        .filter(|(index, _)| ranges.of_work(*index).next().is_some())
        .map(|(_, work)| work.end)
        .fold(last, i64::max);
    let whole = Window { start: first, end: last };

    let mut cells = vec![Cell {
        id: TIMELINE.into(),
        title: "Who did what when".into(),
        seconds: 0.0,
        order_dependent: false,
        outputs: outputs(trace, &ranges, whole),
    }];
    if let Some(window) = pass(trace, &ranges)
        && window.length() * 4 < whole.length()
    {
        let (timeline, note) = picture(trace, &ranges, window, "One pass, closer");
        cells.push(Cell {
            id: PASS.into(),
            title: "One pass, closer".into(),
            seconds: 0.0,
            order_dependent: false,
            outputs: vec![Output::Timeline(timeline), text(&note)],
        });
    }
    if let Some((table, series)) = tables::migrations(trace, &ranges) {
        let mut outputs = vec![Output::Table(table)];
        outputs.extend(series.into_iter().map(Output::Series));
        cells.push(Cell {
            id: MIGRATIONS.into(),
            title: "Pages of managed memory that moved".into(),
            seconds: 0.0,
            order_dependent: false,
            outputs,
        });
    }
    Ok(cells)
}

/// From the first to the last range of the pass that holds the measured range in which the GPU did most, with the work
/// that was started in them. What ran to warm up is not measured.
fn pass(trace: &Trace, ranges: &Ranges<'_>) -> Option<Window> {
    let name = |index: usize| ranges.list[index].name.as_str();
    let time = |index: usize| -> i64 {
        let inside = trace.work.iter().enumerate().filter(|(number, _)| ranges.holds(index, *number));
        inside.map(|(_, work)| work.end - work.start).sum()
    };
    let is_measured =
        |&index: &usize| name(index) == MEASURED && !ranges.around(index).any(|outer| name(outer) == WARM_UP);
    let measured = (0..ranges.list.len()).filter(is_measured).max_by_key(|&index| time(index))?;

    // Its neighbours belong to the same pass as long as they are in the order of a pass.
    let siblings: Vec<usize> = (0..ranges.list.len())
        .filter(|&index| {
            ranges.parent(index) == ranges.parent(measured)
                && ranges.list[index].thread == ranges.list[measured].thread
        })
        .collect();
    let place = siblings.iter().position(|&index| index == measured)?;
    let rank = |index: usize| ORDER.iter().position(|known| *known == name(index));
    let (mut first, mut last) = (place, place);
    while first > 0 && rank(siblings[first - 1]).is_some_and(|before| Some(before) < rank(siblings[first])) {
        first -= 1;
    }
    while last + 1 < siblings.len() && rank(siblings[last + 1]) > rank(siblings[last]) {
        last += 1;
    }
    let mut window =
        Window { start: ranges.list[siblings[first]].start, end: ranges.list[siblings[last]].end };
    for (number, work) in trace.work.iter().enumerate() {
        if siblings[first..=last].iter().any(|&index| ranges.holds(index, number)) {
            window.end = window.end.max(work.end);
        }
    }
    Some(window)
}

fn outputs(trace: &Trace, ranges: &Ranges<'_>, window: Window) -> Vec<Output> {
    let work: Vec<&Work> = trace.work.iter().filter(|work| window.touches(work.start, work.end)).collect();
    let (timeline, mut note) = picture(trace, ranges, window, "Who did what when");
    note.push_str(
        "Each timed loop ran once, after one warm-up. Host times include what the tracing itself costs. What came \
         before the first range and after the last is cut off.\n",
    );
    if !trace.absent.is_empty() {
        note.push_str(&format!("Not recorded in this session: {}.\n", trace.absent.join(", ")));
    }

    let busy = |keep: fn(&What) -> bool| {
        tables::busy_us(
            work.iter().filter(|work| keep(&work.what)).map(|work| (work.start, work.end)).collect(),
        )
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
    let (table, series) = tables::ranges(trace, ranges);
    outputs.push(Output::Table(table));
    outputs.extend(series.into_iter().map(Output::Series));
    outputs.push(Output::Table(tables::kernels(&work)));
    outputs.push(Output::Table(tables::copies(&work)));
    outputs.push(Output::Table(tables::calls(trace, window)));
    outputs
}

fn text(note: &str) -> Output {
    Output::Text(Text { kind: Kind::Measured, text: note.to_owned() })
}
