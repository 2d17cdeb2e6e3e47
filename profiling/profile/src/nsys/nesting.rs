//! NVTX ranges of one domain: which lies in which, and what the GPU did for each.

use std::collections::HashMap;

use super::export::{Range, Trace};

/// The ranges of a domain, by start.
pub(super) struct Ranges<'a> {
    pub(super) domain: &'a str,
    pub(super) list: Vec<&'a Range>,
    /// The enclosing range, by index into the list.
    parent: Vec<Option<usize>>,
    /// How many ranges enclose it.
    depth: Vec<usize>,
    /// The innermost range around the call that started it, by index of the work.
    range_of_work: Vec<Option<usize>>,
}

impl<'a> Ranges<'a> {
    /// Work belongs to the innermost push/pop range that was open, on the calling thread, when it was started. The call
    /// is found by its correlation number and never by name: there are many ways to launch.
    pub(super) fn new(trace: &'a Trace, domain: &'a str) -> Self {
        let ranges: Vec<&Range> = trace.ranges.iter().filter(|range| range.domain == domain).collect();
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
        Self { domain, list: ranges, parent, depth, range_of_work }
    }

    /// The range that encloses this one.
    pub(super) fn parent(&self, index: usize) -> Option<usize> {
        self.parent[index]
    }

    /// How many ranges enclose this one.
    pub(super) fn depth(&self, index: usize) -> usize {
        self.depth[index]
    }

    /// This range and those around it, from the inside out.
    pub(super) fn around(&self, index: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(Some(index), |&inner| self.parent[inner])
    }

    /// The ranges in which work was started, from the inside out.
    pub(super) fn of_work(&self, work: usize) -> impl Iterator<Item = usize> + '_ {
        std::iter::successors(self.range_of_work[work], |&inner| self.parent[inner])
    }

    /// Whether work was started in this range or in one that it encloses.
    pub(super) fn holds(&self, range: usize, work: usize) -> bool {
        self.of_work(work).any(|outer| outer == range)
    }

    /// The innermost range that was open at a time, for what no call of the program started.
    pub(super) fn at(&self, time: i64) -> Option<usize> {
        let open = (0..self.list.len()).filter(|&index| {
            let range = self.list[index];
            range.nests && range.start <= time && time <= range.end
        });
        open.max_by_key(|&index| self.depth[index])
    }

    /// The names from the outermost range to this one.
    pub(super) fn path(&self, index: usize) -> String {
        match self.parent[index] {
            Some(outer) => format!("{} / {}", self.path(outer), self.list[index].name),
            None => self.list[index].name.clone(),
        }
    }
}
