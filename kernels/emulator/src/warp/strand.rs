//! Strands: lanes that share a stack of where they are, and meet where they parted.

use super::Arrival;
use crate::module::program::NONE;

/// Lanes that share a stack.
#[derive(Clone, Debug)]
pub(crate) struct Strand {
    pub(super) entries: Vec<Entry>,
    pub(super) frames: Vec<Frame>,
    pub(crate) wait: Wait,
}

/// Lanes that are at one place, or will be when those above them have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    /// The block to execute next.
    pub(super) block: u32,
    /// Where they meet the lanes of the entry below.
    pub(super) join: u32,
    pub(super) mask: u32,
    pub(super) frame: u32,
}

/// A function that is being executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Frame {
    pub(super) function: u32,
    /// Where its rows, predicates and local memory start.
    pub(super) rows: u32,
    pub(super) predicates: u32,
    pub(super) local: u32,
    /// The block of the caller that ended in the call, and the one to return to.
    pub(super) call: u32,
    pub(super) back: u32,
}

/// What a strand waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Wait {
    /// Nothing.
    Ready,
    /// The block's barrier of this number.
    Barrier(Arrival),
    /// Lanes of its warp, at a barrier of the warp or at another operation.
    Lanes { barrier: bool },
}

impl Strand {
    /// Without lanes.
    pub(super) const EMPTY: Strand = Strand { entries: Vec::new(), frames: Vec::new(), wait: Wait::Ready };

    pub(super) fn top(&self) -> Entry {
        self.entries.last().copied().unwrap_or(Entry { block: 0, join: NONE, mask: 0, frame: 0 })
    }

    pub(super) fn set_block(&mut self, block: u32) {
        if let Some(top) = self.entries.last_mut() {
            top.block = block;
        }
    }

    pub(super) fn lanes(&self) -> u32 {
        self.entries.iter().fold(0, |lanes, entry| lanes | entry.mask)
    }

    /// All its lanes are at one place of each frame.
    pub(super) fn is_simple(&self) -> bool {
        self.entries.len() == self.frames.len() && self.entries.iter().all(|entry| entry.join == NONE)
    }

    /// The top lanes go different ways and meet at `join`.
    pub(super) fn part(&mut self, join: u32, ways: &[(u32, u32)]) {
        let Some(top) = self.entries.last_mut() else { return };
        let frame = top.frame;
        // Without a join of their own, for example because one way exits, they meet where the others wait.
        let join = if join == NONE || join == top.join {
            let join = top.join;
            self.entries.pop();
            join
        } else {
            top.block = join;
            join
        };
        for &(block, mask) in ways {
            if block != join {
                self.entries.push(Entry { block, join, mask, frame });
            }
        }
    }

    /// A strand of some lanes of an entry: they return to their callers by themselves.
    pub(super) fn part_of(&self, entry: &Entry, lanes: u32) -> Strand {
        let frames = self.frames[..=entry.frame as usize].to_vec();
        let mut entries: Vec<Entry> = Vec::with_capacity(frames.len());
        for (depth, next) in frames.iter().skip(1).enumerate() {
            entries.push(Entry { block: next.back, join: NONE, mask: lanes, frame: depth as u32 });
        }
        entries.push(Entry { block: entry.block, join: NONE, mask: lanes, frame: entry.frame });
        Strand { entries, frames, wait: Wait::Ready }
    }
}
