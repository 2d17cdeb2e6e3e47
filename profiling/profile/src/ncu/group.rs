//! Launches that belong together, and their metrics.

use std::collections::HashMap;

use record::{Entry, Series};

use super::metrics::{self, FLOATING, OCCUPANCY_LIMITS};
use super::raw::{Launch, Report};
use crate::nsys::dimensions;
use crate::reading::Reading;

pub(super) const PERCENT: &[&str] = &["%"];
pub(super) const BYTES: &[&str] = &["byte"];
pub(super) const CLOCKS: &[&str] = &["hz", "cycle/second", "cycle/s"];
pub(super) const INSTRUCTIONS: &[&str] = &["inst", ""];
pub(super) const ACCESSES: &[&str] = &["", "request", "sector"];
const TIMES: &[&str] = &["ns", "nsecond"];

/// How sectors a request are derived.
pub(super) const SECTORS: &str = "sectors / requests";
/// How floating-point operations are derived.
pub(super) const OPERATIONS: &str = "additions + multiplications + 2 × fused multiply-adds";

/// A kernel with one block size, at its largest problem.
pub(super) struct Group<'a> {
    pub(super) label: String,
    pub(super) launches: Vec<&'a Launch>,
    /// The same launches in the session that counted operations.
    counted: Result<Vec<&'a Launch>, String>,
    /// Launches of smaller problems, which are left out.
    pub(super) smaller: usize,
}

impl Group<'_> {
    /// The median of a metric over the launches.
    pub(super) fn timed(&self, name: &str, units: &[&str]) -> Reading {
        median(self.launches.iter().map(|launch| launch.metric(name, units)))
    }

    /// The median of a metric of the counting session.
    pub(super) fn counted(&self, name: &str, units: &[&str]) -> Reading {
        match &self.counted {
            Ok(launches) => median(launches.iter().map(|launch| launch.metric(name, units))),
            Err(reason) => Reading::missing(reason),
        }
    }

    pub(super) fn seconds(&self) -> Reading {
        self.timed(metrics::TIME, TIMES).scaled(1e-9)
    }

    pub(super) fn dram_bytes(&self) -> Reading {
        let read = self.timed(metrics::DRAM_READ, BYTES);
        let written = self.timed(metrics::DRAM_WRITE, BYTES);
        read.with(&written, "read + written", |read, written| read + written)
    }

    pub(super) fn sectors(&self, (requests, sectors): (&str, &str)) -> Reading {
        let requests = self.timed(requests, ACCESSES);
        if requests.value() == Some(0.0) {
            return Reading::missing("the kernel makes no such request");
        }
        self.timed(sectors, ACCESSES).with(&requests, SECTORS, |sectors, requests| sectors / requests)
    }

    /// What keeps more blocks from being resident, if that keeps the occupancy under 100 %.
    pub(super) fn limiter(&self) -> Entry {
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
    pub(super) fn operations(&self, [add, multiply, fused]: [&str; 3]) -> Reading {
        let adds = self.counted(add, INSTRUCTIONS);
        let multiplies = self.counted(multiply, INSTRUCTIONS);
        let fused = self.counted(fused, INSTRUCTIONS);
        adds.with(&multiplies, OPERATIONS, |adds, multiplies| adds + multiplies).with(
            &fused,
            OPERATIONS,
            |others, fused| others + 2.0 * fused,
        )
    }

    pub(super) fn all_operations(&self) -> Reading {
        FLOATING
            .iter()
            .map(|(_, names)| self.operations(*names))
            .reduce(|sum, more| sum.with(&more, OPERATIONS, |sum, more| sum + more))
            .unwrap_or_else(|| Reading::missing("no operation was asked for"))
    }
}

/// Launches belong together by kernel and block size. A chapter launches a kernel at many problem sizes, of which the largest
/// says the most of the hardware: it stands for all, and the others are counted.
pub(super) fn groups<'a>(timed: &'a Report, counted: Result<&'a Report, &str>) -> Vec<Group<'a>> {
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
pub(super) fn push(series: &mut Series, label: &str, reading: &Reading) {
    if reading.value().is_some() {
        series.push(label, reading.point());
    }
}
