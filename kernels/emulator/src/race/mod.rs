//! Shared memory, watched: races between the threads of a block, and reads of bytes that the block has not written.
//!
//! Two accesses to the same bytes by different threads, one of them a write and not both atomic, are a race unless
//! something orders them, whatever order they happened to have here. This is FastTrack (Flanagan and Freund, "FastTrack:
//! efficient and precise dynamic race detection", PLDI 2009), cut to the shape of a block: each word has the stamp of its
//! last write and of its last two readers, a stamp being a time and a thread, and each warp has a clock of what it knows
//! of the others. A word of which bytes are used by themselves has stamps for each byte. As an interpreter runs a block on
//! one host thread, times can be numbers of one clock for all, so "older than the last barrier" is one comparison.
//!
//! What orders:
//! - `bar` and `barrier`: all threads that it releases have met all that have arrived, `arrive` included.
//! - `bar.warp.sync`: the lanes that it names have met each other. So have the lanes of `shfl.sync`, `vote.sync`,
//!   `match.sync`, `redux.sync` and `elect.sync`, though the manual promises no order of memory there.
//! - Atomics, and volatile, relaxed, acquiring and releasing accesses: they never race with each other; whoever
//!   reads the variable has met all who wrote it. A fence is not asked for. For global memory, all variables are one.
//!
//! What is not seen:
//! - Stores to one address by lanes of one instruction: the manual lets one of them win. A store of what is already
//!   there by another thread is not reported either: flags are set that way.
//! - A warp is taken to know what any of its lanes has learned of other warps; and all its lanes meet when the warp reads
//!   an atomic variable that it wrote itself.
//! - A read before the last two readers of a word, where a barrier of some warps orders those two, but not that one.
//! - A race that this run's branches did not come to, and anything in global memory. A block of two million
//!   synchronisations and atomic writes is watched afresh from there.
//! - The later half of an asynchronous copy: `cp.async` counts as a store where it stands.

mod cells;
mod clock;

use crate::{
    fault::{Access, Cause, Earlier, Near, Place, Space},
    settings::Checks,
    warp::lanes_of,
};
use cells::{Cells, SPLIT};
use clock::{Clocks, STRONG, THREAD};

/// The shadow of a block's shared memory.
pub(crate) struct Race {
    races: bool,
    clocks: Clocks,
    /// The running warp.
    warp: u32,
    /// Stamps below are known to all its lanes.
    limit: u32,
    /// Stamps below are of earlier blocks.
    fresh: u32,
    words: Cells,
    /// Empty until a word is split.
    bytes: Cells,
    /// Bytes of shared memory.
    size: usize,
    shared: *const u8,
    /// Stores over another thread's that are a race unless they change nothing.
    pending: Option<Box<Pending>>,
}

/// A step's access to shared memory.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// Active lanes.
    pub(crate) mask: u32,
    /// What stands for the instruction in reports.
    pub(crate) site: u32,
    /// Load, store or atomic.
    pub(crate) access: Access,
    /// Bytes of a lane, a power of two.
    pub(crate) bytes: u32,
    /// It is atomic, volatile or ordered.
    pub(crate) strong: bool,
}

/// A fault, and the lanes that are at fault.
pub(crate) type Found = Box<(Cause, u32)>;

struct Pending {
    site: u32,
    lanes: u32,
    offsets: [u32; 32],
    bytes: usize,
    before: [[u8; 32]; 32],
    cause: Cause,
}

/// What is wrong with an access to a cell.
enum Wrong {
    Unwritten,
    /// The stamp of the other access, its site, and that it was a write.
    Race(u32, u32, bool),
}

impl Race {
    /// A shadow for blocks of so many warps and bytes, if anything is to be looked for.
    pub(crate) fn new(checks: Checks, warps: u32, bytes: u32) -> Option<Box<Race>> {
        (checks.race || checks.init).then(|| {
            let size = (bytes as usize).next_multiple_of(4);
            Box::new(Race {
                races: checks.race,
                clocks: Clocks::new(warps),
                warp: 0,
                limit: 0,
                fresh: if checks.init { 1 } else { 0 },
                words: Cells::new(size / 4),
                bytes: Cells::default(),
                size,
                shared: std::ptr::null(),
                pending: None,
            })
        })
    }

    /// A block starts.
    pub(crate) fn start(&mut self, shared: *const u8) {
        self.shared = shared;
        self.pending = None;
        if self.clocks.start() {
            self.words.forget(u32::MAX, 0);
            self.bytes.forget(u32::MAX, 0);
        }
        self.set_fresh();
    }

    fn set_fresh(&mut self) {
        if self.fresh != 0 {
            self.fresh = self.clocks.fresh();
        }
    }

    /// A warp starts to run.
    pub(crate) fn enter(&mut self, warp: u32) {
        self.warp = warp;
        if self.clocks.is_late() {
            let fresh = self.fresh;
            self.clocks.restart();
            let written = self.clocks.fresh();
            self.words.forget(fresh, written);
            self.bytes.forget(fresh, written);
            self.set_fresh();
        }
        self.set_limit();
    }

    fn set_limit(&mut self) {
        self.limit = if self.races { self.clocks.limit(self.warp) } else { u32::MAX };
    }

    /// Lanes that name these members have met.
    pub(crate) fn meet_lanes(&mut self, members: &[u32; 32], mask: u32, live: u32) {
        if !self.races {
            return;
        }
        let first = members[mask.trailing_zeros() as usize % 32];
        if lanes_of(mask).all(|lane| members[lane] == first) {
            self.clocks.meet(self.warp, std::iter::once(first & mask), live);
        } else {
            let mut groups: Vec<u32> = lanes_of(mask).map(|lane| members[lane] & mask).collect();
            groups.dedup();
            self.clocks.meet(self.warp, groups.into_iter(), live);
        }
        self.set_limit();
    }

    /// Lanes of a warp come to a barrier of the block; `goes_on` if some lanes of the warp do not wait there.
    pub(crate) fn arrive(&mut self, barrier: u32, warp: u32, goes_on: bool) {
        if self.races {
            self.clocks.arrive(barrier, warp, goes_on);
        }
    }

    /// A barrier lets these lanes of each warp go, of all that have not exited. One that `counts` threads has nothing to say
    /// of those who have exited.
    pub(crate) fn complete(&mut self, barrier: u32, released: &[u32; 32], live: &[u32; 32], counts: bool) {
        if self.races {
            self.clocks.complete(barrier, released, live, counts);
            self.set_limit();
        }
    }

    /// An atomic variable in global memory is read.
    #[cold]
    pub(crate) fn acquire_global(&mut self) {
        if self.races {
            self.clocks.acquire_global(self.warp);
            self.set_limit();
        }
    }

    /// And written.
    #[cold]
    pub(crate) fn release_global(&mut self) {
        if self.races {
            self.clocks.release_global(self.warp);
        }
    }

    /// An access at these offsets, which are inside. Inactive lanes have the offset of an active one.
    #[inline(always)]
    pub(crate) fn access(&mut self, step: Step, offsets: &[u64; 32]) -> Result<(), Found> {
        if step.bytes < 4 || step.strong {
            return self.any_access(step, offsets);
        }
        let mut words = [0; 32];
        for lane in 0..32 {
            words[lane] = (offsets[lane] >> 2) as u32;
        }
        let count = step.bytes / 4;
        if step.access == Access::Load {
            if !self.load(&words, count, step.mask, step.site) {
                return self.any_access(step, offsets);
            }
        } else {
            if self.words.stores(&words, count) >= self.limit {
                return self.any_access(step, offsets);
            }
            let stamp = self.clocks.stamp(self.warp * 32);
            self.words.stamp_stores(&words, count, step.mask, stamp, step.site);
        }
        Ok(())
    }

    /// A load of words by all lanes; `false` if it must be looked at closely.
    #[inline(always)]
    pub(crate) fn quick_load(&mut self, offsets: &[u32; 32], count: u32, site: u32) -> bool {
        let mut words = [0; 32];
        for lane in 0..32 {
            words[lane] = offsets[lane] >> 2;
        }
        self.load(&words, count, u32::MAX, site)
    }

    #[inline(always)]
    fn load(&mut self, words: &[u32; 32], count: u32, mask: u32, site: u32) -> bool {
        let (most, least, other) = self.words.loads(words, count);
        if most >= self.limit || least < self.fresh {
            return false;
        }
        // Two threads that have read the words at this time stand for all.
        if self.races && other < self.clocks.stamp(0) {
            self.words.stamp_loads(words, count, mask, self.clocks.stamp(self.warp * 32), site);
        }
        true
    }

    /// Every other access: looks at each cell of each lane.
    #[inline(never)]
    fn any_access(&mut self, step: Step, offsets: &[u64; 32]) -> Result<(), Found> {
        let learns = step.strong && self.races;
        let reads = matches!(step.access, Access::Load | Access::Atomic | Access::Exchange);
        if learns && reads {
            self.each_variable(step, offsets, |race, word| race.clocks.acquire(race.warp, word));
            self.set_limit();
        }
        if step.bytes < 4 {
            self.split(step.mask, offsets);
        }
        let first = self.clocks.stamp(self.warp * 32);
        let mut found: Option<(u32, Cause)> = None;
        let mut wrong = 0;
        let mut pending: Option<Box<Pending>> = None;
        for lane in lanes_of(step.mask) {
            let stamp = first + lane as u32;
            let offset = offsets[lane] as u32;
            let mut worst = None;
            self.each_cell(offset, step.bytes, |race, bytes, at| {
                if worst.is_none() {
                    worst = race.look(bytes, at, step, stamp);
                }
                if step.access == Access::Load {
                    race.cells(bytes).stamp_read(at, mark(stamp, step), step.site);
                }
            });
            let Some(worst) = worst else { continue };
            let cause = self.cause(&worst, offset, step, stamp & THREAD);
            // Another thread's store of the same value does no harm; it is known when this one is done.
            if let Wrong::Race(other, _, true) = worst
                && step.access == Access::Store
                && !step.strong
                && other & STRONG == 0
            {
                let pending = pending.get_or_insert_with(|| {
                    Box::new(Pending {
                        site: step.site,
                        lanes: 0,
                        offsets: [0; 32],
                        bytes: step.bytes as usize,
                        before: [[0; 32]; 32],
                        cause,
                    })
                });
                pending.lanes |= 1 << lane;
                pending.offsets[lane] = offset;
                pending.before[lane][..step.bytes as usize].copy_from_slice(self.now(offset, step.bytes));
                continue;
            }
            wrong |= 1 << lane;
            found.get_or_insert((1 << lane, cause));
        }
        if let Some((_, cause)) = found {
            return Err(Box::new((cause, wrong)));
        }
        self.pending = pending;
        if step.access != Access::Load {
            for lane in lanes_of(step.mask) {
                let stamp = mark(first + lane as u32, step);
                self.each_cell(offsets[lane] as u32, step.bytes, |race, bytes, at| {
                    let cells = race.cells(bytes);
                    cells.write[at] = stamp;
                    cells.write_site[at] = step.site;
                });
            }
            if learns {
                self.each_variable(step, offsets, |race, word| race.clocks.release(race.warp, word));
                self.clocks.tick();
            }
        }
        Ok(())
    }

    /// Behind a store: a value that it changed is one that two threads have stored.
    pub(crate) fn settle(&mut self, site: u32) -> Result<(), Found> {
        // Not every instruction that stores settles; what one of those left is not this one's.
        let Some(pending) = self.pending.take().filter(|pending| pending.site == site) else { return Ok(()) };
        let changed = lanes_of(pending.lanes).filter(|&lane| {
            let now = self.now(pending.offsets[lane], pending.bytes as u32);
            *now != pending.before[lane][..pending.bytes]
        });
        let changed = changed.fold(0, |changed, lane| changed | 1 << lane);
        if changed == 0 { Ok(()) } else { Err(Box::new((pending.cause, changed))) }
    }

    /// There is something to settle.
    #[inline(always)]
    pub(crate) fn is_pending(&self) -> bool {
        self.pending.is_some()
    }

    fn now(&self, offset: u32, bytes: u32) -> &[u8] {
        // SAFETY: the access was found to be inside of shared memory, which the block keeps while it runs.
        unsafe { std::slice::from_raw_parts(self.shared.add(offset as usize), bytes as usize) }
    }

    fn cells(&mut self, bytes: bool) -> &mut Cells {
        if bytes { &mut self.bytes } else { &mut self.words }
    }

    /// The cells of an access: words, or bytes where words are split.
    fn each_cell(&mut self, offset: u32, bytes: u32, mut visit: impl FnMut(&mut Race, bool, usize)) {
        let end = offset + bytes;
        let mut at = offset;
        while at < end {
            let word = at as usize / 4;
            if self.words.write[word] == SPLIT {
                let stop = end.min((word as u32 + 1) * 4);
                for byte in at..stop {
                    visit(self, true, byte as usize);
                }
                at = stop;
            } else {
                visit(self, false, word);
                at = (word as u32 + 1) * 4;
            }
        }
    }

    /// The words of an access's lanes, each once if neighbours use the same.
    fn each_variable(&mut self, step: Step, offsets: &[u64; 32], mut visit: impl FnMut(&mut Race, u32)) {
        let mut last = u32::MAX;
        for lane in lanes_of(step.mask) {
            let word = offsets[lane] as u32 / 4;
            if word != last {
                visit(self, word);
            }
            last = word;
        }
    }

    /// Gives the bytes of words that are used in parts stamps of their own.
    fn split(&mut self, mask: u32, offsets: &[u64; 32]) {
        if self.bytes.write.is_empty() {
            self.bytes = Cells::new(self.size);
        }
        for lane in lanes_of(mask) {
            let word = offsets[lane] as usize / 4;
            let (words, bytes) = (&mut self.words, &mut self.bytes);
            if words.write[word] == SPLIT {
                continue;
            }
            let all = 4 * word..4 * word + 4;
            bytes.write[all.clone()].fill(words.write[word]);
            bytes.read[all.clone()].fill(words.read[word]);
            bytes.other[all.clone()].fill(words.other[word]);
            bytes.write_site[all.clone()].fill(words.write_site[word]);
            bytes.read_site[all.clone()].fill(words.read_site[word]);
            bytes.other_site[all].fill(words.other_site[word]);
            words.write[word] = SPLIT;
        }
    }

    /// What is wrong with an access to a cell.
    fn look(&mut self, bytes: bool, at: usize, step: Step, stamp: u32) -> Option<Wrong> {
        let (fresh, limit) = (self.fresh, self.limit);
        let cells = if bytes { &self.bytes } else { &self.words };
        let write = cells.write[at];
        if write < fresh && matches!(step.access, Access::Load | Access::Atomic) {
            return Some(Wrong::Unwritten);
        }
        if !self.races {
            return None;
        }
        let races = |other: u32| {
            other >= limit
                && !(step.strong && other & STRONG != 0)
                && !self.clocks.knows(stamp & THREAD, other)
        };
        if step.access != Access::Load {
            for (read, site) in
                [(cells.read[at], cells.read_site[at]), (cells.other[at], cells.other_site[at])]
            {
                if races(read) {
                    return Some(Wrong::Race(read, site, false));
                }
            }
        }
        races(write).then(|| Wrong::Race(write, cells.write_site[at], true))
    }

    fn cause(&self, wrong: &Wrong, offset: u32, step: Step, thread: u32) -> Cause {
        let (access, address, bytes) = (step.access, u64::from(offset), u64::from(step.bytes));
        match *wrong {
            Wrong::Unwritten => {
                let written = |at: u32| {
                    let word = self.words.write[at as usize / 4];
                    let stamp = if word == SPLIT { self.bytes.write[at as usize] } else { word };
                    stamp >= self.fresh
                };
                let unwritten = (offset..offset + step.bytes).filter(|&at| !written(at)).count() as u64;
                let near = Near::Space(self.size as u64);
                Cause::Uninitialised { access, space: Space::Shared, address, bytes, unwritten, near }
            }
            Wrong::Race(stamp, site, write) => {
                let number = stamp & THREAD;
                let earlier = Earlier {
                    access: match (write, stamp & STRONG != 0) {
                        (false, _) => Access::Load,
                        (true, false) => Access::Store,
                        (true, true) => Access::Atomic,
                    },
                    thread: [0; 3],
                    same_warp: number / 32 == thread / 32,
                    place: Place::default(),
                    number,
                    site,
                };
                Cause::Race { access, address, bytes, earlier: Box::new(earlier) }
            }
        }
    }
}

fn mark(stamp: u32, step: Step) -> u32 {
    if step.strong { stamp | STRONG } else { stamp }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// An access of the first lane of a warp to a word.
    fn access(race: &mut Race, warp: u32, access: Access, offset: u64) -> Result<(), Cause> {
        race.enter(warp);
        let step = Step { mask: 1, site: 1, access, bytes: 4, strong: false };
        race.access(step, &[offset; 32]).map_err(|found| found.0)
    }

    #[test]
    fn a_clock_that_runs_out_starts_anew_and_knows_what_is_written() {
        let shared = [0u8; 64];
        let mut race = Race::new(Checks::ALL, 2, 64).unwrap();
        race.start(shared.as_ptr());
        access(&mut race, 0, Access::Store, 0).unwrap();
        assert!(matches!(access(&mut race, 1, Access::Load, 0), Err(Cause::Race { .. })));
        while !race.clocks.is_late() {
            race.clocks.tick();
        }
        access(&mut race, 1, Access::Load, 0).unwrap();
        assert!(!race.clocks.is_late());
        assert!(matches!(access(&mut race, 1, Access::Load, 4), Err(Cause::Uninitialised { .. })));
        access(&mut race, 1, Access::Store, 4).unwrap();
        assert!(matches!(access(&mut race, 0, Access::Load, 4), Err(Cause::Race { .. })));
        // The next block has written nothing yet.
        race.start(shared.as_ptr());
        assert!(matches!(access(&mut race, 0, Access::Load, 4), Err(Cause::Uninitialised { .. })));
    }
}
