//! A block: its warps, its shared memory, its barriers.

use crate::{
    fault::{Cause, Place},
    module::program::{BarrierKind, Program},
    race::Race,
    settings::Checks,
    warp::{Arrival, Context, Pause, Row, Threads, Wait, Warp},
};

/// Warp instructions that a strand executes before another has its turn.
const SLICE: i64 = 1 << 16;
/// Rounds over the warps of a block, all waiting in loops, before another block has its turn.
const ROUNDS: u32 = 4;

/// A resident block.
pub(crate) struct Block {
    pub(crate) threads: Threads,
    warps: Vec<Warp>,
    shared: Vec<Row<u32>>,
    barriers: [BarrierState; 16],
    /// The shadow of shared memory, if something is looked for there.
    race: Option<Box<Race>>,
    /// The divergent barrier check is on.
    pub(crate) check_sync: bool,
    /// What it has printed, while others run.
    pub(crate) printed: Vec<u8>,
}

#[derive(Clone, Copy, Debug, Default)]
struct BarrierState {
    arrived: u32,
    votes: u32,
}

/// How a block's turn ended.
pub(crate) enum Turn {
    /// All threads have exited.
    Done,
    /// It may be waiting for other blocks.
    Yield,
    /// The launch ends, at this place, because of this warp.
    Stop(Place, u32),
    /// The program's fault, in this warp's lanes.
    Fault(Box<Cause>, Place, u32, u32),
}

impl Block {
    /// Room for a block.
    pub(crate) fn new(threads: Threads, checks: Checks) -> Block {
        let warps = threads.count().div_ceil(32);
        // One row more than asked for, so that wide reads of the last words stay inside.
        let shared = (threads.total_shared as usize).div_ceil(128) + 1;
        Block {
            threads,
            warps: (0..warps).map(Warp::new).collect(),
            shared: vec![Row([0; 32]); shared],
            barriers: [BarrierState::default(); 16],
            race: Race::new(checks, warps, threads.total_shared),
            check_sync: checks.sync,
            printed: Vec::new(),
        }
    }

    /// Starts the block of an index in this room.
    pub(crate) fn start(&mut self, index: [u32; 3], multiprocessor: u32, program: &Program) {
        self.threads.index = index;
        self.threads.multiprocessor = multiprocessor;
        // The same bytes as fresh device memory: a kernel that relies on zeros goes wrong here too.
        self.shared.fill(Row([0xA0A0_A0A0; 32]));
        self.barriers = [BarrierState::default(); 16];
        if let Some(race) = &mut self.race {
            race.start(self.shared.as_ptr().cast());
        }
        for warp in &mut self.warps {
            warp.start(program, &self.threads);
        }
    }

    /// Runs the warps in turn until all have exited, or until others should run.
    pub(crate) fn run(&mut self, context: &mut Context, program: &Program, fuel: &mut i64) -> Turn {
        context.shared = self.shared.as_mut_ptr().cast();
        context.shared_bytes = self.threads.total_shared;
        context.race = std::ptr::null_mut();
        let mut rounds = 0;
        loop {
            let mut ran = false;
            // All that ran in this round seem to wait for something.
            let mut waiting = true;
            for number in 0..self.warps.len() {
                match self.run_warp(number, context, program, fuel, &mut waiting) {
                    Ok(any) => ran |= any,
                    Err(turn) => return turn,
                }
            }
            if self.warps.iter().all(|warp| warp.live == 0) {
                return Turn::Done;
            }
            if !ran {
                match self.complete_barriers(context, program) {
                    Ok(true) => {}
                    Ok(false) => return self.stuck(program),
                    Err(turn) => return turn,
                }
            }
            rounds = if waiting { rounds + 1 } else { 0 };
            if rounds == ROUNDS {
                return Turn::Yield;
            }
        }
    }

    /// Runs each strand of a warp that is ready once.
    fn run_warp(
        &mut self,
        number: usize,
        context: &mut Context,
        program: &Program,
        fuel: &mut i64,
        waiting: &mut bool,
    ) -> Result<bool, Turn> {
        // A warp that has exited does nothing, and does not keep the others from being stuck.
        if self.warps[number].live == 0 {
            return Ok(false);
        }
        let mut ran = false;
        let mut index = 0;
        let mut strands = self.warps[number].strands.len();
        while index < strands {
            if self.warps[number].strands[index].wait != Wait::Ready {
                index += 1;
                continue;
            }
            context.slice = SLICE.min(*fuel + 1);
            context.polls = 0;
            let before = context.counters.warp_instructions;
            let live = self.warps[number].live;
            if let Some(race) = &mut self.race {
                race.enter(number as u32);
                context.race = &raw mut **race;
            }
            let pause = self.warps[number].run(index, context, program, &self.threads);
            let executed = context.counters.warp_instructions - before;
            *fuel -= executed as i64;
            // A strand that still waits for lanes has done nothing.
            ran |= executed > 0 || pause != Pause::Lanes;
            match pause {
                Pause::Slice => *waiting &= context.polls > 0,
                Pause::Barrier(arrival) => {
                    *waiting = false;
                    self.arrive(number, &arrival);
                }
                Pause::Stop(place) => return Err(Turn::Stop(place, number as u32)),
                Pause::Meet | Pause::Done => *waiting = false,
                Pause::Lanes => {}
            }
            if *fuel < 0 {
                let place = self.warps[number].place(index, program);
                let lanes = self.warps[number].lanes(index);
                return Err(Turn::Fault(Box::new(Cause::Budget { limit: 0 }), place, number as u32, lanes));
            }
            if self.warps[number].live != live {
                self.complete_barriers(context, program)?;
            }
            index += 1;
            // A strand that only waits for a barrier or exited leaves the others as they are.
            strands = strands.min(self.warps[number].strands.len());
        }
        let warp = &mut self.warps[number];
        if warp.strands.len() > 1 {
            warp.merge();
        }
        // After others have run, lanes that waited for them may be complete.
        if ran && warp.retry_lanes() {
            warp.merge();
        }
        Ok(ran)
    }

    fn arrive(&mut self, number: usize, arrival: &Arrival) {
        if let Some(race) = &mut self.race {
            let goes_on = !arrival.whole || arrival.kind == BarrierKind::Arrive;
            race.arrive(arrival.index, number as u32, goes_on);
        }
        let barrier = &mut self.barriers[arrival.index as usize];
        // A whole warp counts as 32 threads where threads are counted, even if it has fewer.
        barrier.arrived += match arrival.count {
            Some(_) if arrival.whole => 32,
            _ => arrival.lanes.count_ones(),
        };
        barrier.votes += arrival.votes.count_ones();
    }

    /// Warps whose lanes do not all come to a barrier where all must. While lanes only come one by one, as after one of
    /// them has waited for a lock, nothing is wrong.
    fn divergent(&self, index: u32, program: &Program) -> Option<Turn> {
        for (number, warp) in self.warps.iter().enumerate() {
            let mut arrivals = warp.strands.iter().filter_map(|strand| match &strand.wait {
                Wait::Barrier(arrival) if arrival.index == index && arrival.aligned => Some(arrival),
                _ => None,
            });
            let Some(first) = arrivals.next() else { continue };
            let (mut here, mut missing, mut elsewhere) = (first.lanes, first.missing, None);
            for arrival in arrivals {
                missing |= arrival.missing;
                if arrival.at == first.at {
                    here |= arrival.lanes;
                } else {
                    elsewhere = Some(place_of(arrival, program));
                }
            }
            missing &= !here;
            if missing == 0 {
                continue;
            }
            let others = match elsewhere {
                Some(place) => format!("{missing:#010x} wait at it elsewhere: PTX line {}", place.ptx_line),
                None if missing & warp.live == 0 => format!("{missing:#010x} have passed by it and exited"),
                None => format!("{missing:#010x} have passed by it"),
            };
            let started = here | missing;
            let cause = Cause::DivergentBarrier { barrier: index, active: here, warp: started, others };
            return Some(Turn::Fault(Box::new(cause), place_of(first, program), number as u32, here));
        }
        None
    }

    /// Releases the threads at every complete barrier.
    fn complete_barriers(&mut self, context: &mut Context, program: &Program) -> Result<bool, Turn> {
        let live: u32 = self.warps.iter().map(|warp| warp.live.count_ones()).sum();
        let mut any = false;
        for index in 0..16 {
            let state = self.barriers[index as usize];
            if state.arrived == 0 {
                continue;
            }
            let mut waiting = self.at_barrier(index);
            let Some(count) = waiting.next().map(|(_, _, arrival)| arrival.count) else { continue };
            let expected = count.unwrap_or(live);
            drop(waiting);
            if state.arrived < expected {
                continue;
            }
            if self.check_sync
                && let Some(turn) = self.divergent(index, program)
            {
                return Err(turn);
            }
            let there: Vec<_> = self.at_barrier(index).map(|(warp, strand, _)| (warp, strand)).collect();
            if let Some(race) = &mut self.race {
                let (mut released, mut live) = ([0; 32], [0; 32]);
                for (number, warp) in self.warps.iter().enumerate().take(32) {
                    live[number] = warp.live;
                }
                for &(warp, strand) in &there {
                    released[warp % 32] |= self.warps[warp].lanes(strand);
                }
                race.complete(index, &released, &live, count.is_some());
            }
            for (warp, strand) in there {
                self.warps[warp].release(strand, state.votes, state.arrived);
            }
            self.barriers[index as usize] = BarrierState::default();
            context.counters.barriers += 1;
            any = true;
        }
        if any {
            self.warps.iter_mut().filter(|warp| warp.strands.len() > 1).for_each(Warp::merge);
        }
        Ok(any)
    }

    fn at_barrier(&self, index: u32) -> impl Iterator<Item = (usize, usize, &Arrival)> {
        self.warps.iter().enumerate().flat_map(move |(warp, state)| {
            state.strands.iter().enumerate().filter_map(move |(strand, state)| match &state.wait {
                Wait::Barrier(arrival) if arrival.index == index => Some((warp, strand, arrival)),
                _ => None,
            })
        })
    }

    /// Nothing can run: says why.
    fn stuck(&mut self, program: &Program) -> Turn {
        let live: u32 = self.warps.iter().map(|warp| warp.live.count_ones()).sum();
        // Lanes that wait for lanes which wait elsewhere.
        for (number, warp) in self.warps.iter().enumerate() {
            if let Some(strand) =
                warp.strands.iter().position(|strand| matches!(strand.wait, Wait::Lanes { .. }))
            {
                let lanes = warp.lanes(strand);
                let cause = Cause::WarpSync { members: warp.live, arrived: lanes };
                return Turn::Fault(Box::new(cause), warp.place(strand, program), number as u32, lanes);
            }
        }
        for index in 0..16 {
            let Some((warp, _, arrival)) = self.at_barrier(index).next() else { continue };
            let waiting = self.barriers[index as usize].arrived;
            let expected = arrival.count.unwrap_or(live);
            let mut elsewhere = Vec::new();
            for other in (0..16).filter(|&other| other != index) {
                let threads: u32 =
                    self.at_barrier(other).map(|(_, _, arrival)| arrival.lanes.count_ones()).sum();
                if threads > 0 {
                    elsewhere.push(format!("{threads} wait at barrier {other}"));
                }
            }
            let exited = self.threads.count() - live;
            if exited > 0 {
                elsewhere.push(format!("{exited} have exited"));
            }
            let others =
                if elsewhere.is_empty() { "there are no more threads".into() } else { elsewhere.join(", ") };
            let lanes = arrival.lanes;
            let cause = Cause::Barrier { barrier: index, waiting, expected, others };
            return Turn::Fault(Box::new(cause), place_of(arrival, program), warp as u32, lanes);
        }
        let cause = Cause::WarpSync { members: live, arrived: 0 };
        Turn::Fault(Box::new(cause), Place::default(), 0, 1)
    }
}

/// Where lanes wait at a barrier.
fn place_of(arrival: &Arrival, program: &Program) -> Place {
    let (function, place) = arrival.at;
    program.functions[function as usize].place(place)
}
