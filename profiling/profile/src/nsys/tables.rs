//! The data of a timeline as tables: by range, by kernel, by direction of copy, by call.

use std::collections::{BTreeMap, HashMap};

use record::{Entry, Series, Table};

use super::export::{By, Trace, What, Work};
use super::nesting::Ranges;
use super::picture::{Window, dimensions};
use crate::reading::{Reading, significant};

/// What the GPU did for each range: NVIDIA calls it the projection of the range.
pub(super) fn ranges(trace: &Trace, ranges: &Ranges<'_>) -> (Table, Vec<Series>) {
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
    let mut row_of_range = Vec::with_capacity(ranges.list.len());
    for (index, range) in ranges.list.iter().enumerate() {
        let path = ranges.path(index);
        let row = *row_of_path.entry(path.clone()).or_insert_with(|| {
            rows.push(Row { path, times: 0, host_ns: 0, spans: Vec::new(), kernels: 0, copies: 0, bytes: 0 });
            rows.len() - 1
        });
        rows[row].times += 1;
        rows[row].host_ns += range.end - range.start;
        row_of_range.push(row);
    }
    for (number, work) in trace.work.iter().enumerate() {
        for range in ranges.of_work(number) {
            let row = &mut rows[row_of_range[range]];
            row.spans.push((work.start, work.end));
            match &work.what {
                What::Kernel(_) => row.kernels += 1,
                What::Copy { bytes, .. } => {
                    row.copies += 1;
                    row.bytes += bytes;
                }
                What::Migration { .. } | What::Set { .. } | What::Graph => {}
            }
        }
    }

    let mut table = Table::new("ranges")
        .measured("range", "")
        .measured("times", "")
        .measured("host", "µs")
        .measured("GPU busy", "µs")
        .measured("kernels", "")
        .measured("copies", "")
        .measured("copied", "MB");
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

pub(super) fn kernels(work: &[&Work]) -> Table {
    let mut groups: BTreeMap<_, Vec<i64>> = BTreeMap::new();
    for work in work {
        if let What::Kernel(kernel) = &work.what {
            let key = (&kernel.name, kernel.grid, kernel.block, kernel.registers, kernel.shared_bytes);
            groups.entry(key).or_default().push(work.end - work.start);
        }
    }
    let mut table = Table::new("kernels")
        .measured("kernel", "")
        .measured("grid", "blocks")
        .measured("block", "threads")
        .measured("launches", "")
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

pub(super) fn copies(work: &[&Work]) -> Table {
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
        .measured("direction", "")
        .measured("copies", "")
        .measured("amount", "MB")
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

/// Page faults of managed memory and the pages that moved, by the range that was open when it happened; nothing where no
/// page moved and none was faulted for.
pub(super) fn migrations(trace: &Trace, ranges: &Ranges<'_>) -> Option<(Table, Vec<Series>)> {
    #[derive(Default)]
    struct Row {
        path: String,
        faults: [i64; 2],
        bytes: [i64; 2],
        moves: [i64; 2],
    }
    let side = |by: By| match by {
        By::Gpu => 0,
        By::Cpu => 1,
    };
    let mut rows: Vec<Row> = Vec::new();
    let mut row_at = |time: i64, change: &mut dyn FnMut(&mut Row)| {
        let path = ranges.at(time).map_or_else(|| "outside of all ranges".into(), |index| ranges.path(index));
        let place = rows.iter().position(|row| row.path == path).unwrap_or_else(|| {
            rows.push(Row { path, ..Row::default() });
            rows.len() - 1
        });
        change(&mut rows[place]);
    };
    for work in &trace.work {
        if let What::Migration { to, bytes } = work.what {
            row_at(work.start, &mut |row| {
                row.bytes[side(to)] += bytes;
                row.moves[side(to)] += 1;
            });
        }
    }
    for fault in &trace.faults {
        row_at(fault.start, &mut |row| row.faults[side(fault.by)] += fault.count);
    }
    if rows.is_empty() {
        return None;
    }
    let recorded = |by: By, count: i64| match trace.faults_recorded[1 - side(by)] {
        true => Reading::Measured(count as f64),
        false => Reading::missing("the session recorded no page fault of this side"),
    };
    let mut table = Table::new("migrations")
        .measured("range", "")
        .measured("faults of the GPU", "")
        .measured("faults of the CPU", "")
        .measured("to the GPU", "MB")
        .measured("pieces to the GPU", "")
        .measured("to the CPU", "MB")
        .measured("pieces to the CPU", "");
    let mut faults = Series::measured("gpu_faults", "").label("faults of the GPU");
    let mut moved = Series::measured("to_gpu_mb", "MB").label("pages to the GPU");
    for row in rows {
        let megabytes = |side: usize| significant(row.bytes[side] as f64 / 1e6);
        let of_gpu = recorded(By::Gpu, row.faults[0]);
        faults.push(row.path.as_str(), of_gpu.point());
        moved.push(row.path.as_str(), megabytes(0));
        table.push([
            Entry::Text(row.path),
            of_gpu.entry(),
            recorded(By::Cpu, row.faults[1]).entry(),
            Entry::Number(megabytes(0)),
            Entry::Number(row.moves[0] as f64),
            Entry::Number(megabytes(1)),
            Entry::Number(row.moves[1] as f64),
        ]);
    }
    Some((table, vec![faults, moved]))
}

pub(super) fn calls(trace: &Trace, window: Window) -> Table {
    let mut groups: HashMap<&str, Vec<i64>> = HashMap::new();
    for call in trace.calls.iter().filter(|call| window.touches(call.start, call.end)) {
        groups.entry(&call.name).or_default().push(call.end - call.start);
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(name, times)| (std::cmp::Reverse(times.iter().sum::<i64>()), *name));
    let mut table = Table::new("calls")
        .measured("call", "")
        .measured("times", "")
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

/// Microseconds during which at least one of the spans was running.
pub(super) fn busy_us(mut spans: Vec<(i64, i64)>) -> f64 {
    spans.sort_unstable();
    let (mut busy, mut until) = (0, i64::MIN);
    for (start, end) in spans {
        busy += (end - start.max(until)).max(0);
        until = until.max(end);
    }
    busy as f64 / 1e3
}

fn us(ns: i64) -> Entry {
    Entry::Number(significant(ns as f64 / 1e3))
}
