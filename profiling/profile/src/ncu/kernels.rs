//! Two sessions of Nsight Compute, reduced to what a page shows: one row, bar or point for each kernel.

use record::{Axis, Cell, Entry, Figure, Kind, Output, Series, Table, Text, Value};

use super::group::{ACCESSES, Group, INSTRUCTIONS, PERCENT, SECTORS, groups, push};
use super::limits::{speed_of_light, stalls};
use super::metrics;
use super::raw::Report;
use super::roofline::roofline;
use crate::nsys::dimensions;
use crate::reading::Reading;

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

const DRAM_RATE: &str = "(dram__bytes_read.sum + dram__bytes_write.sum) / gpu__time_duration.sum";

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

fn kernels(groups: &[Group<'_>]) -> Cell {
    let mut table = Table::new("kernels")
        .measured("kernel", "")
        .measured("grid", "blocks")
        .measured("block", "threads")
        .measured("launches", "")
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
        kind: Kind::Measured,
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

pub(super) fn text(note: &str) -> Output {
    Output::Text(Text { kind: Kind::Measured, text: note.to_owned() })
}

pub(super) fn cell(id: &str, title: &str, outputs: Vec<Output>) -> Cell {
    Cell { id: id.into(), title: title.into(), seconds: 0.0, order_dependent: false, outputs }
}
