//! What the threads of a block know of each other.
//!
//! One host thread runs a block, so its events have one order, and times are numbers of one clock, which ticks when
//! something is published. Warp `a` knows what warp `b` did up to a time. What all know is one number, which a barrier of
//! the whole block sets: most kernels need no more.

use std::collections::HashMap;

use crate::warp::lanes_of;

/// Bits of a stamp for the thread that left it.
pub(super) const THREAD: u32 = (1 << 10) - 1;
/// The access was atomic or volatile.
pub(super) const STRONG: u32 = 1 << 10;
const SHIFT: u32 = 11;
/// The time at which the clock starts anew: a stamp has room for more than a warp can add before it is looked at again.
const LAST: u32 = (1 << (32 - SHIFT)) - (1 << 18);

/// Times up to which something is known of each warp.
type Times = [u32; 32];

/// The clocks of a block.
pub(super) struct Clocks {
    now: u32,
    /// Everybody knows everything up to this time.
    met: u32,
    warps: Vec<Knowledge>,
    /// What those who came to a barrier knew.
    barriers: [Times; 16],
    /// What those who wrote an atomic variable knew, by its word in shared memory.
    variables: HashMap<u32, Times>,
    /// The same for all atomics in global memory together.
    global: Times,
}

/// What a warp's lanes know.
#[derive(Clone)]
struct Knowledge {
    /// Of other warps: whatever one lane knows.
    warps: Times,
    /// Of each other, all of them.
    lanes: u32,
    /// Of each other beyond that, after some of them have met.
    pairs: Option<Box<[Times; 32]>>,
    /// The least of all these, as a stamp: whatever is below is known.
    limit: u32,
}

impl Clocks {
    pub(super) fn new(warps: u32) -> Clocks {
        let nothing = Knowledge { warps: [0; 32], lanes: 0, pairs: None, limit: 0 };
        Clocks {
            now: 1,
            met: 0,
            warps: vec![nothing; warps.min(32) as usize],
            barriers: [[0; 32]; 16],
            variables: HashMap::new(),
            global: [0; 32],
        }
    }

    /// A block starts: what was before is over. `true` if the clock has run out and old stamps must go.
    pub(super) fn start(&mut self) -> bool {
        let over = self.now > LAST / 2;
        self.met = if over { 1 } else { self.now + 1 };
        self.now = self.met + 1;
        for warp in &mut self.warps {
            warp.warps = [0; 32];
            warp.lanes = 0;
            warp.pairs = None;
        }
        self.barriers = [[0; 32]; 16];
        self.variables.clear();
        self.global = [0; 32];
        self.set_limits();
        over
    }

    /// What is written before everything that is remembered has this stamp; what is older was never written.
    pub(super) fn fresh(&self) -> u32 {
        self.met << SHIFT
    }

    /// The stamp that a thread leaves now.
    pub(super) fn stamp(&self, thread: u32) -> u32 {
        self.now << SHIFT | thread
    }

    /// Stamps below this one are known to every lane of a warp.
    pub(super) fn limit(&self, warp: u32) -> u32 {
        self.warps[warp as usize].limit
    }

    /// A thread knows of the access that left this stamp, or did it itself.
    pub(super) fn knows(&self, thread: u32, stamp: u32) -> bool {
        let (time, other) = (stamp >> SHIFT, stamp & THREAD);
        let warp = &self.warps[thread as usize / 32];
        if time <= self.met || other == thread {
            true
        } else if other / 32 != thread / 32 {
            time <= warp.warps[other as usize / 32]
        } else {
            let (lane, other) = (thread as usize % 32, other as usize % 32);
            time <= warp.lanes || warp.pairs.as_ref().is_some_and(|pairs| time <= pairs[lane][other])
        }
    }

    /// Lanes of a warp have met, in groups.
    pub(super) fn meet(&mut self, warp: u32, groups: impl Iterator<Item = u32>, live: u32) {
        let now = self.now;
        let own = &mut self.warps[warp as usize];
        for group in groups {
            if group & live == live {
                own.lanes = now;
                continue;
            }
            let pairs = own.pairs.get_or_insert_with(|| Box::new([[0; 32]; 32]));
            let mut all = [0; 32];
            for lane in lanes_of(group) {
                raise(&mut all, &pairs[lane]);
            }
            for lane in lanes_of(group) {
                all[lane] = now;
            }
            for lane in lanes_of(group) {
                pairs[lane] = all;
            }
        }
        self.set_limit(warp);
        self.now += 1;
    }

    /// Lanes of a warp come to a barrier; they go on at once, or other lanes of the warp do, unless all of them wait.
    pub(super) fn arrive(&mut self, barrier: u32, warp: u32, goes_on: bool) {
        let times = &mut self.barriers[barrier as usize];
        raise(times, &self.warps[warp as usize].warps);
        times[warp as usize] = self.now;
        self.now += u32::from(goes_on);
    }

    /// A barrier lets these lanes of each warp go, of all that have not exited.
    pub(super) fn complete(&mut self, barrier: u32, released: &[u32; 32], live: &[u32; 32], counts: bool) {
        let all_live = live.iter().take(self.warps.len()).all(|&live| live != 0);
        if released == live && (all_live || !counts) {
            self.met = self.now;
            self.set_limits();
        } else {
            let mut times = self.barriers[barrier as usize];
            let warps = 0..self.warps.len() as u32;
            for warp in warps.clone().map(|warp| warp as usize) {
                if released[warp] != 0 && released[warp] == live[warp] {
                    // All its lanes have waited, so nothing of it is newer.
                    times[warp] = self.now;
                }
            }
            for warp in warps {
                let group = released[warp as usize];
                if group != 0 {
                    raise(&mut self.warps[warp as usize].warps, &times);
                    self.meet(warp, std::iter::once(group), live[warp as usize]);
                }
            }
        }
        self.barriers[barrier as usize] = [0; 32];
        self.now += 1;
    }

    /// A warp reads a variable that others wrote atomically: it learns what they knew.
    pub(super) fn acquire(&mut self, warp: u32, word: u32) {
        if let Some(times) = self.variables.get(&word) {
            self.warps[warp as usize].learn(warp, times);
            self.set_limit(warp);
        }
    }

    /// A warp writes a variable atomically.
    pub(super) fn release(&mut self, warp: u32, word: u32) {
        let times = self.variables.entry(word).or_insert([0; 32]);
        raise(times, &self.warps[warp as usize].warps);
        times[warp as usize] = self.now;
    }

    /// As `acquire`, for global memory.
    pub(super) fn acquire_global(&mut self, warp: u32) {
        self.warps[warp as usize].learn(warp, &self.global);
        self.set_limit(warp);
    }

    /// As `release`, for global memory.
    pub(super) fn release_global(&mut self, warp: u32) {
        raise(&mut self.global, &self.warps[warp as usize].warps);
        self.global[warp as usize] = self.now;
        self.tick();
    }

    /// What comes now is newer than all that was published.
    pub(super) fn tick(&mut self) {
        self.now += 1;
    }

    /// The clock has nearly run out, so that no stamp would have room for the time.
    pub(super) fn is_late(&self) -> bool {
        self.now > LAST
    }

    /// Forgets everything but who was there: all that was done counts as known to all.
    pub(super) fn restart(&mut self) {
        self.now = LAST;
        self.start();
    }

    fn set_limits(&mut self) {
        for warp in 0..self.warps.len() as u32 {
            self.set_limit(warp);
        }
    }

    fn set_limit(&mut self, warp: u32) {
        let count = self.warps.len();
        let own = &mut self.warps[warp as usize];
        let others = own.warps[..count].iter().enumerate().filter(|(other, _)| *other != warp as usize);
        let least = others.fold(own.lanes, |least, (_, &time)| least.min(time));
        own.limit = (least.max(self.met) + 1) << SHIFT;
    }
}

impl Knowledge {
    /// Learns what was published. If the warp itself published, all its lanes learn what all of them did before.
    fn learn(&mut self, warp: u32, times: &Times) {
        raise(&mut self.warps, times);
        self.lanes = self.lanes.max(times[warp as usize]);
    }
}

fn raise(times: &mut Times, others: &Times) {
    for (time, other) in times.iter_mut().zip(others) {
        *time = (*time).max(*other);
    }
}
