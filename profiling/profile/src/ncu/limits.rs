//! How near each kernel came to the hardware's limits, and what its warps waited for.

use record::{Axis, Cell, Entry, Figure, Output, Series, Table};

use super::group::{Group, PERCENT, push};
use super::kernels::{SPEED_OF_LIGHT, STALL_REASONS, cell, text};
use super::metrics::{self, STALLS, stall};
use crate::reading::Reading;

pub(super) fn speed_of_light(groups: &[Group<'_>]) -> Cell {
    let parts = [
        ("compute", "multiprocessors", metrics::SM_PERCENT),
        ("memory", "memory system", metrics::MEMORY_PERCENT),
        ("dram", "DRAM", metrics::DRAM_PERCENT),
        ("l2", "L2", metrics::L2_PERCENT),
        ("l1", "L1", metrics::L1_PERCENT),
    ];
    let mut table = Table::new("speed").measured("kernel", "");
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

pub(super) fn stalls(groups: &[Group<'_>]) -> Cell {
    const SHOWN: usize = 6;
    let mut table = Table::new("stalls").measured("reason", "");
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
