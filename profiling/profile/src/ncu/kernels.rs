//! Two sessions of Nsight Compute, reduced to what a page shows: one row, bar or point for each kernel.

use std::collections::HashMap;

use record::{Axis, Cell, Entry, Figure, Kind, Output, Series, Table, Text, Value};

use super::metrics::{self, FLOATING, OCCUPANCY_LIMITS, STALLS, stall};
use super::raw::{Launch, Report};
use crate::nsys::timeline::dimensions;
use crate::reading::{Reading, significant};

/// The cell with a row for each kernel.
pub const KERNELS: &str = "kernels";
/// The cell that says how near to the hardware's limits each kernel came.
pub const SPEED_OF_LIGHT: &str = "speed-of-light";
/// The cell that says what warps waited for.
pub const STALL_REASONS: &str = "stalls";
/// The cell that sets work against bytes.
pub const ROOFLINE: &str = "roofline";
/// All of them.
pub const CELLS: [&str; 4] = [KERNELS, SPEED_OF_LIGHT, STALL_REASONS, ROOFLINE];

const PERCENT: &[&str] = &["%"];
const BYTES: &[&str] = &["byte"];
const TIMES: &[&str] = &["ns", "nsecond"];
const CLOCKS: &[&str] = &["hz", "cycle/second", "cycle/s"];
const INSTRUCTIONS: &[&str] = &["inst", ""];
const ACCESSES: &[&str] = &["", "request", "sector"];
const DRAM_RATE: &str = "(dram__bytes_read.sum + dram__bytes_write.sum) / gpu__time_duration.sum";
const SECTORS: &str = "sectors / requests";
const OPERATIONS: &str = "additions + multiplications + 2 × fused multiply-adds";
const INTENSITY: &str = "operations / DRAM bytes";
const PERFORMANCE: &str = "operations / gpu__time_duration.sum";
const PEAK_FP32: &str = "2 × FFMA a cycle at peak × clock of the multiprocessors";
const PEAK_DRAM: &str = "DRAM bytes a cycle at peak × clock of the DRAM";

/// Bounds that the chapter's own run has measured, for the roofline.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Ceilings {
    /// DRAM bandwidth in GB/s, and where it stands in the record.
    pub dram_gbps: Option<(f64, String)>,
    /// Single-precision arithmetic in GFLOP/s, and where it stands in the record.
    pub fp32_gflops: Option<(f64, String)>,
}

/// The cells of two sessions. `counted` is why there was no second one, where there was none.
pub fn reduce(timed: &Report, counted: Result<&Report, &str>, ceilings: &Ceilings) -> Vec<Cell> {
    let groups = groups(timed, counted);
    vec![kernels(&groups), speed_of_light(&groups), stalls(&groups), roofline(&groups, ceilings)]
}

/// A kernel with one block size, at its largest problem.
struct Group<'a> {
    label: String,
    launches: Vec<&'a Launch>,
    /// The same launches in the session that counted operations.
    counted: Result<Vec<&'a Launch>, String>,
    /// Launches of smaller problems, which are left out.
    smaller: usize,
}

impl Group<'_> {
    /// The median of a metric over the launches.
    fn timed(&self, name: &str, units: &[&str]) -> Reading {
        median(self.launches.iter().map(|launch| launch.metric(name, units)))
    }

    /// The median of a metric of the counting session.
    fn counted(&self, name: &str, units: &[&str]) -> Reading {
        match &self.counted {
            Ok(launches) => median(launches.iter().map(|launch| launch.metric(name, units))),
            Err(reason) => Reading::missing(reason),
        }
    }

    fn seconds(&self) -> Reading {
        self.timed(metrics::TIME, TIMES).scaled(1e-9)
    }

    fn dram_bytes(&self) -> Reading {
        let read = self.timed(metrics::DRAM_READ, BYTES);
        let written = self.timed(metrics::DRAM_WRITE, BYTES);
        read.with(&written, "read + written", |read, written| read + written)
    }

    fn sectors(&self, (requests, sectors): (&str, &str)) -> Reading {
        let requests = self.timed(requests, ACCESSES);
        if requests.value() == Some(0.0) {
            return Reading::missing("the kernel makes no such request");
        }
        self.timed(sectors, ACCESSES).with(&requests, SECTORS, |sectors, requests| sectors / requests)
    }

    /// What keeps more blocks from being resident, if that keeps the occupancy under 100 %.
    fn limiter(&self) -> Entry {
        let theoretical = self.timed(metrics::THEORETICAL_OCCUPANCY, PERCENT);
        if theoretical.value().is_some_and(|percent| percent >= 100.0) {
            return "none".into();
        }
        let limits: Vec<(&str, f64)> = OCCUPANCY_LIMITS
            .iter()
            // Older versions know no limit by barriers.
            .filter_map(|(what, metric)| Some((*what, self.timed(metric, &["block", ""]).value()?)))
            .collect();
        let Some(least) = limits.iter().map(|(_, blocks)| *blocks).min_by(f64::total_cmp) else {
            return self.timed(OCCUPANCY_LIMITS[0].1, &["block", ""]).entry();
        };
        let least: Vec<&str> =
            limits.iter().filter(|(_, blocks)| *blocks == least).map(|(what, _)| *what).collect();
        Entry::Text(least.join(", "))
    }

    /// Floating-point operations of one precision.
    fn operations(&self, [add, multiply, fused]: [&str; 3]) -> Reading {
        let adds = self.counted(add, INSTRUCTIONS);
        let multiplies = self.counted(multiply, INSTRUCTIONS);
        let fused = self.counted(fused, INSTRUCTIONS);
        adds.with(&multiplies, OPERATIONS, |adds, multiplies| adds + multiplies).with(
            &fused,
            OPERATIONS,
            |others, fused| others + 2.0 * fused,
        )
    }

    fn all_operations(&self) -> Reading {
        FLOATING
            .iter()
            .map(|(_, names)| self.operations(*names))
            .reduce(|sum, more| sum.with(&more, OPERATIONS, |sum, more| sum + more))
            .unwrap_or_else(|| Reading::missing("no operation was asked for"))
    }
}

/// Launches belong together by kernel and block size. A chapter launches a kernel at many problem sizes, of which the largest
/// says the most of the hardware: it stands for all, and the others are counted.
fn groups<'a>(timed: &'a Report, counted: Result<&'a Report, &str>) -> Vec<Group<'a>> {
    let mut kinds: Vec<Vec<usize>> = Vec::new();
    for (index, launch) in timed.launches.iter().enumerate() {
        let same = |kind: &&mut Vec<usize>| {
            let first = &timed.launches[kind[0]];
            (&first.kernel, first.block) == (&launch.kernel, launch.block)
        };
        match kinds.iter_mut().find(same) {
            Some(kind) => kind.push(index),
            None => kinds.push(vec![index]),
        }
    }
    let mut block_sizes: HashMap<&str, usize> = HashMap::new();
    for kind in &kinds {
        *block_sizes.entry(timed.launches[kind[0]].kernel.as_str()).or_default() += 1;
    }
    // Both sessions run the same program: launch by launch, they are the same.
    let counted = match counted {
        Ok(counted) if is_same_program(timed, counted) => Ok(counted),
        Ok(_) => Err("the session that counted operations saw other launches".to_owned()),
        Err(reason) => Err(reason.to_owned()),
    };

    let group = |kind: Vec<usize>| {
        let size = |index: usize| work(&timed.launches[index]);
        let most = kind.iter().map(|&index| size(index)).fold((0, 0.0), |most: (i64, f64), size| {
            if size.0 > most.0 || (size.0 == most.0 && size.1 > most.1) { size } else { most }
        });
        let largest: Vec<usize> = kind
            .iter()
            .copied()
            // Blocks that wait for each other execute a few instructions more or less in each launch.
            .filter(|&index| size(index).0 == most.0 && size(index).1 >= 0.98 * most.1)
            .collect();
        let first = &timed.launches[largest[0]];
        let label = match block_sizes[first.kernel.as_str()] {
            1 => first.kernel.clone(),
            _ => format!("{} ({})", first.kernel, dimensions(first.block)),
        };
        Group {
            label,
            smaller: kind.len() - largest.len(),
            launches: largest.iter().map(|&index| &timed.launches[index]).collect(),
            counted: counted
                .as_ref()
                .map(|counted| largest.iter().map(|&index| &counted.launches[index]).collect())
                .map_err(Clone::clone),
        }
    };
    kinds.into_iter().map(group).collect()
}

/// How much a launch does: its threads, and its instructions where a grid of fixed size loops over the problem.
fn work(launch: &Launch) -> (i64, f64) {
    let threads = launch.grid.iter().chain(&launch.block).product();
    (threads, launch.metric(metrics::WARP_INSTRUCTIONS, INSTRUCTIONS).value().unwrap_or(0.0))
}

fn is_same_program(timed: &Report, counted: &Report) -> bool {
    let same = |(a, b): (&Launch, &Launch)| (&a.kernel, a.grid, a.block) == (&b.kernel, b.grid, b.block);
    timed.launches.len() == counted.launches.len() && timed.launches.iter().zip(&counted.launches).all(same)
}

fn kernels(groups: &[Group<'_>]) -> Cell {
    let mut table = Table::new("kernels")
        .exact("kernel", "")
        .exact("grid", "blocks")
        .exact("block", "threads")
        .exact("launches", "")
        .measured("time", "µs")
        .measured("DRAM rate", "GB/s")
        .measured("DRAM share", "% of peak")
        .measured("L1 hits", "%")
        .measured("L2 hits", "%")
        .measured("achieved occupancy", "%")
        .measured("theoretical occupancy", "%")
        .measured("limited by", "")
        .measured("registers", "a thread")
        .measured("sectors a load", "")
        .measured("sectors a store", "")
        .measured("bank conflicts", "");
    let mut series = [
        Series::measured("time_us", "µs").label("time"),
        Series::measured("dram_gbps", "GB/s").label("DRAM"),
        Series::measured("dram_percent", "%").label("DRAM, of peak"),
        Series::measured("l1_hits", "%").label("L1 hits"),
        Series::measured("l2_hits", "%").label("L2 hits"),
        Series::measured("achieved_occupancy", "%").label("achieved"),
        Series::measured("theoretical_occupancy", "%").label("theoretical"),
        Series::measured("registers", "").label("registers a thread"),
        Series::measured("load_sectors", "").label("sectors a load"),
        Series::measured("store_sectors", "").label("sectors a store"),
        Series::measured("bank_conflicts", "").label("bank conflicts"),
        Series::measured("warp_instructions", "").label("warp instructions"),
    ];
    for group in groups {
        let seconds = group.seconds();
        let readings = [
            seconds.clone().scaled(1e6),
            group.dram_bytes().with(&seconds, DRAM_RATE, |bytes, seconds| bytes / seconds).scaled(1e-9),
            group.timed(metrics::DRAM_PERCENT, PERCENT),
            group.timed(metrics::L1_HITS, PERCENT),
            group.timed(metrics::L2_HITS, PERCENT),
            group.timed(metrics::ACHIEVED_OCCUPANCY, PERCENT),
            group.timed(metrics::THEORETICAL_OCCUPANCY, PERCENT),
            group.timed(metrics::REGISTERS, &["register/thread", ""]),
            group.sectors(metrics::LOADS),
            group.sectors(metrics::STORES),
            group.timed(metrics::BANK_CONFLICTS, ACCESSES),
            group.timed(metrics::WARP_INSTRUCTIONS, INSTRUCTIONS),
        ];
        let mut row = vec![
            Entry::Text(group.label.clone()),
            Entry::Text(dimensions(group.launches[0].grid)),
            Entry::Text(dimensions(group.launches[0].block)),
            Entry::Number(group.launches.len() as f64),
        ];
        row.extend(readings[..readings.len() - 1].iter().map(Reading::entry));
        row.insert(11, group.limiter());
        table.push(row);
        for (series, reading) in series.iter_mut().zip(&readings) {
            push(series, &group.label, reading);
        }
    }

    let occupancy = Figure::new(
        "How many of the warps that fit were resident?",
        "For each kernel two bars: the share of warps that its launch allows, and the share that was resident on average.",
    )
    .name("occupancy")
    .x(Axis::labels("kernel"))
    .y(Axis::linear("warps of those that fit", "%"))
    .series(["theoretical_occupancy", "achieved_occupancy"]);
    let sectors = Figure::new(
        "How many sectors does a request need?",
        "For each kernel the 32-byte sectors that a warp's load and store of global memory needed.",
    )
    .name("sectors")
    .x(Axis::labels("kernel"))
    .y(Axis::linear("sectors a request", ""))
    .series(["load_sectors", "store_sectors"])
    .limit("whole_sectors", "4: 32 neighbouring 4-byte words");
    let whole = Value {
        name: "whole_sectors".into(),
        kind: Kind::Exact,
        unit: String::new(),
        point: 4.0.into(),
        note: "derived (32 threads × 4 bytes / 32 bytes a sector)".into(),
    };

    let mut note = format!(
        "Under Nsight Compute each kernel is run again and again, alone, with caches flushed before each pass and \
         with clocks as the GPU chose them (--cache-control all, --clock-control none). Its times are not those of \
         a free run: compare them with each other. Several launches: the median.\n\
         DRAM GB/s: derived, {DRAM_RATE}. Sectors a load, a store: derived, {SECTORS} of global memory; 4 is what 32 \
         neighbouring 4-byte words need. Bank conflicts: of all the launch's accesses to shared memory.\n"
    );
    for group in groups {
        match group.smaller {
            0 => {}
            1 => note.push_str(&format!("1 launch of a smaller size is left out: {}.\n", group.label)),
            many => {
                note.push_str(&format!("{many} launches of smaller sizes are left out: {}.\n", group.label))
            }
        }
    }
    let mut outputs = vec![text(&note), Output::Table(table), Output::Value(whole)];
    outputs.extend(series.map(Output::Series));
    outputs.push(Output::Figure(occupancy));
    outputs.push(Output::Figure(sectors));
    cell(KERNELS, "What each kernel did with the hardware", outputs)
}

fn speed_of_light(groups: &[Group<'_>]) -> Cell {
    let parts = [
        ("compute", "multiprocessors", metrics::SM_PERCENT),
        ("memory", "memory system", metrics::MEMORY_PERCENT),
        ("dram", "DRAM", metrics::DRAM_PERCENT),
        ("l2", "L2", metrics::L2_PERCENT),
        ("l1", "L1", metrics::L1_PERCENT),
    ];
    let mut table = Table::new("speed").exact("kernel", "");
    for (_, label, _) in parts {
        table = table.measured(label, "%");
    }
    for group in groups {
        let row = parts.iter().map(|(_, _, metric)| group.timed(metric, PERCENT).entry());
        table.push(std::iter::once(Entry::Text(group.label.clone())).chain(row));
    }
    let series = parts.map(|(name, label, metric)| {
        let mut series = Series::measured(name, "%").label(label);
        for group in groups {
            push(&mut series, &group.label, &group.timed(metric, PERCENT));
        }
        series
    });
    let figure = Figure::new(
        "Which part of the GPU comes nearest to its limit?",
        "For each kernel a bar a part of the GPU: the share of what the part could do at most.",
    )
    .x(Axis::labels("kernel"))
    .y(Axis::linear("of the peak", "%"))
    .series(parts.map(|(name, _, _)| name));
    let mut outputs = vec![
        text(
            "Share of each part's peak, sustained over the kernel's time. The memory system is as busy as its busiest \
             part. Under 60 % everywhere, a kernel waits: the stalls say for what.\n",
        ),
        Output::Table(table),
    ];
    outputs.extend(series.map(Output::Series));
    outputs.push(Output::Figure(figure));
    cell(SPEED_OF_LIGHT, "How near to the limits", outputs)
}

fn stalls(groups: &[Group<'_>]) -> Cell {
    const SHOWN: usize = 6;
    let mut table = Table::new("stalls").exact("reason", "");
    for group in groups {
        table = table.measured(group.label.as_str(), "warps");
    }
    let mut series: Vec<(f64, Series)> = Vec::new();
    for reason in STALLS {
        let readings: Vec<Reading> =
            groups.iter().map(|group| group.timed(&stall(reason), &["inst", "warp", ""])).collect();
        let label = reason.replace('_', " ");
        table.push(std::iter::once(Entry::Text(label.clone())).chain(readings.iter().map(Reading::entry)));
        let mut one = Series::measured(reason, "warps").label(label);
        for (group, reading) in groups.iter().zip(&readings) {
            push(&mut one, &group.label, reading);
        }
        series.push((readings.iter().filter_map(Reading::value).fold(0.0, f64::max), one));
    }
    // The reasons that matter, longest first; the table has them all.
    let mut shown: Vec<_> =
        series.iter().filter(|(most, one)| *most > 0.0 && one.name != "selected").collect();
    shown.sort_by(|(a, _), (b, _)| b.total_cmp(a));
    let figure = Figure::new(
        "What do warps wait for?",
        "For each kernel a bar a reason: how many warps, on average, waited for it while one instruction was issued.",
    )
    .x(Axis::labels("kernel"))
    .y(Axis::linear("warps that wait at each issue", ""))
    .series(shown.iter().take(SHOWN).map(|(_, one)| one.name.clone()));
    let mut outputs = vec![
        text(
            "Resident warps of a scheduler by what they were waiting for, on average at each issue of an \
             instruction. `long scoreboard` is global or local memory, `short scoreboard` shared memory and special \
             functions, `wait` a fixed latency, `barrier` __syncthreads. `selected` is no stall: it is the warp that \
             issued; `not selected` was ready and had to let it go first.\n",
        ),
        Output::Table(table),
    ];
    outputs.extend(series.into_iter().map(|(_, one)| Output::Series(one)));
    outputs.push(Output::Figure(figure));
    cell(STALL_REASONS, "What warps waited for", outputs)
}

fn roofline(groups: &[Group<'_>], ceilings: &Ceilings) -> Cell {
    let mut table = Table::new("operations").exact("kernel", "");
    for (precision, _) in FLOATING {
        table = table.measured(precision, "FLOP");
    }
    table = table
        .measured("DRAM bytes", "")
        .measured("intensity", "FLOP/byte")
        .measured("performance", "GFLOP/s");
    let mut points: Vec<(f64, Series)> = Vec::new();
    let mut intensities = Series::measured("intensity", "FLOP/byte");
    let mut performances = Series::measured("performance", "GFLOP/s");
    let mut note = format!(
        "Operations: derived, {OPERATIONS}, counted in a session of their own; those of tensor cores are not \
         included. Intensity: derived, {INTENSITY}. Performance: derived, {PERFORMANCE}. The roof: derived, \
         {PEAK_FP32}; {PEAK_DRAM}.\n"
    );
    for (index, group) in groups.iter().enumerate() {
        let operations = group.all_operations();
        let bytes = group.dram_bytes();
        let intensity = operations.with(&bytes, INTENSITY, |operations, bytes| operations / bytes);
        let performance = operations
            .with(&group.seconds(), PERFORMANCE, |operations, seconds| operations / seconds)
            .scaled(1e-9);
        let mut row = vec![Entry::Text(group.label.clone())];
        row.extend(FLOATING.iter().map(|(_, names)| group.operations(*names).entry()));
        row.extend([bytes.entry(), intensity.entry(), performance.entry()]);
        table.push(row);
        push(&mut intensities, &group.label, &intensity);
        push(&mut performances, &group.label, &performance);
        match (intensity.value(), performance.value()) {
            (Some(x), Some(y)) if x > 0.0 && y > 0.0 => {
                let name = format!("kernel_{}", index + 1);
                let series = Series::measured(name, "GFLOP/s").label(group.label.as_str());
                points.push((x, series.point(significant(x), significant(y))));
            }
            (Some(_), _) => note.push_str(&format!(
                "{} does no floating-point operation, so it has no place in the figure.\n",
                group.label
            )),
            (None, _) => {}
        }
    }

    // Of a roof, the highest that any launch saw: clocks move.
    let highest = |readings: Vec<Reading>| {
        let best = readings.iter().filter(|reading| reading.value().is_some());
        let best = best.max_by(|a, b| a.value().unwrap_or(0.0).total_cmp(&b.value().unwrap_or(0.0)));
        best.or(readings.first()).cloned().unwrap_or_else(|| Reading::missing("no kernel was profiled"))
    };
    let compute = highest(
        groups
            .iter()
            .map(|group| {
                let peak = group.counted(metrics::FFMA_PEAK, &["inst/cycle"]);
                let clock = group.timed(metrics::SM_CLOCK, CLOCKS);
                peak.with(&clock, PEAK_FP32, |peak, clock| 2.0 * peak * clock).scaled(1e-9)
            })
            .collect(),
    );
    let memory = highest(
        groups
            .iter()
            .map(|group| {
                let peak = group.timed(metrics::DRAM_PEAK, &["byte/cycle"]);
                let clock = group.timed(metrics::DRAM_CLOCK, CLOCKS);
                peak.with(&clock, PEAK_DRAM, |peak, clock| peak * clock).scaled(1e-9)
            })
            .collect(),
    );

    let span = points
        .iter()
        .fold((0.01, 1000.0), |(low, high): (f64, f64), (x, _)| (low.min(x / 2.0), high.max(x * 2.0)));
    let mut roofs: Vec<Series> = Vec::new();
    roofs.extend(roof("roof", "theoretical roof", memory.value(), compute.value(), span));
    let measured = |ceiling: &Option<(f64, String)>| ceiling.as_ref().map(|(value, _)| *value);
    if ceilings.dram_gbps.is_some() || ceilings.fp32_gflops.is_some() {
        let bandwidth = measured(&ceilings.dram_gbps);
        let arithmetic = measured(&ceilings.fp32_gflops).or(compute.value());
        roofs.extend(roof("measured_roof", "roof as measured by this chapter", bandwidth, arithmetic, span));
    }

    let mut values = vec![("fp32_peak", "GFLOP/s", compute), ("dram_peak", "GB/s", memory)];
    let mut limits = vec![("fp32_peak", "fp32 peak at the clock of the run".to_owned())];
    if let Some((value, place)) = &ceilings.fp32_gflops {
        values.push(("fp32_ceiling", "GFLOP/s", Reading::Measured(*value)));
        limits.push(("fp32_ceiling", format!("fp32, measured ({place})")));
    }
    if let Some((value, _)) = &ceilings.dram_gbps {
        values.push(("dram_ceiling", "GB/s", Reading::Measured(*value)));
    }
    // A limit without a number cannot be drawn.
    limits.retain(|(name, _)| {
        values.iter().any(|(value, _, reading)| value == name && reading.value().is_some())
    });

    let mut figure = Figure::new(
        "Does the memory or the arithmetic set the limit?",
        "Performance over arithmetic intensity on logarithmic axes: a roof that rises with DRAM bandwidth and ends \
         flat at the fp32 peak, and a point for each kernel below it.",
    )
    .x(Axis::log10("arithmetic intensity", "FLOP/byte"))
    .y(Axis::log10("performance", "GFLOP/s"))
    .series(roofs.iter().map(|series| series.name.clone()))
    .series(points.iter().map(|(_, series)| series.name.clone()));
    for (value, label) in limits {
        figure = figure.limit(value, label);
    }

    let mut outputs = vec![text(&note), Output::Table(table)];
    outputs.extend(values.into_iter().map(|(name, unit, reading)| {
        Output::Value(Value {
            name: name.into(),
            kind: Kind::Measured,
            unit: unit.into(),
            point: reading.point(),
            note: reading.note(),
        })
    }));
    outputs.extend([intensities, performances].map(Output::Series));
    outputs.extend(roofs.into_iter().map(Output::Series));
    outputs.extend(points.into_iter().map(|(_, series)| Output::Series(series)));
    outputs.push(Output::Figure(figure));
    cell(ROOFLINE, "Memory or arithmetic", outputs)
}

/// A roof over the intensities of `span`: rising with the bandwidth, then flat.
fn roof(
    name: &str,
    label: &str,
    dram_gbps: Option<f64>,
    fp32_gflops: Option<f64>,
    (low, high): (f64, f64),
) -> Option<Series> {
    let (dram, fp32) = (dram_gbps?, fp32_gflops?);
    let ridge = fp32 / dram;
    let series = Series::measured(name, "GFLOP/s").label(label);
    let at = |x: f64| significant((x * dram).min(fp32));
    let mut x = vec![low, ridge, high];
    x.retain(|x| (low..=high).contains(x));
    Some(x.into_iter().fold(series, |series, x| series.point(significant(x), at(x))))
}

/// The middle of the figures; missing if one of them is.
fn median(readings: impl Iterator<Item = Reading>) -> Reading {
    let mut values = Vec::new();
    for reading in readings {
        match reading.value() {
            Some(value) => values.push(value),
            None => return reading,
        }
    }
    values.sort_by(f64::total_cmp);
    match values.get(values.len() / 2) {
        Some(value) => Reading::Measured(*value),
        None => Reading::missing("no launch was profiled"),
    }
}

/// A figure that is not there leaves its abscissa out: a page that refers to it is then refused.
fn push(series: &mut Series, label: &str, reading: &Reading) {
    if reading.value().is_some() {
        series.push(label, reading.point());
    }
}

fn text(note: &str) -> Output {
    Output::Text(Text { kind: Kind::Measured, text: note.to_owned() })
}

fn cell(id: &str, title: &str, outputs: Vec<Output>) -> Cell {
    Cell { id: id.into(), title: title.into(), seconds: 0.0, order_dependent: false, outputs }
}
