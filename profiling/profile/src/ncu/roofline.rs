//! Work against bytes: does the memory or the arithmetic set the limit?

use record::{Axis, Cell, Entry, Figure, Kind, Output, Series, Table, Value};

use super::group::{CLOCKS, Group, OPERATIONS, push};
use super::kernels::{Ceilings, ROOFLINE, cell, text};
use super::metrics::{self, FLOATING};
use crate::reading::{Reading, significant};

const INTENSITY: &str = "operations / DRAM bytes";
const PERFORMANCE: &str = "operations / gpu__time_duration.sum";
const PEAK_FP32: &str = "2 × FFMA a cycle at peak × clock of the multiprocessors";
const PEAK_DRAM: &str = "DRAM bytes a cycle at peak × clock of the DRAM";

pub(super) fn roofline(groups: &[Group<'_>], ceilings: &Ceilings) -> Cell {
    let mut table = Table::new("operations").measured("kernel", "");
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
