//! Running a warp: which lanes execute what, and where they meet again.
//!
//! Lanes that part at a branch are kept on a stack and meet at the branch's immediate post-dominator, as in GPGPU-Sim
//! and on GPUs before Volta. That alone would hang where a lane waits for another lane of its warp, such as at a lock:
//! the waiting lanes run, and the lane that holds the lock waits for them at the join. So a warp is a list of strands,
//! normally one, each with a stack of its own. A strand whose lanes wait for others, at a barrier, a warp-wide
//! operation, or in a loop around an atomic, is torn into one strand for each place where its lanes are; strands run in
//! turn, and merge when they are at the same place.

use super::{
    Context, Copies, Row,
    context::FULL,
    lanes_of,
    strand::{Entry, Frame, Strand, Wait},
};
use crate::{
    fault::{Cause, Place},
    module::program::{Barrier, BarrierKind, End, Flow, Ins, NONE, Program},
};

/// More of a thread's stack than any GPU has, in bytes.
const MAX_STACK: u64 = 512 << 10;

/// A warp of a resident block.
pub(crate) struct Warp {
    /// Its number in the block.
    pub(crate) number: u32,
    /// Lanes that have not exited.
    pub(crate) live: u32,
    pub(crate) strands: Vec<Strand>,
    pub(super) rows: Vec<Row<u32>>,
    pub(super) predicates: Vec<u32>,
    pub(super) local: Vec<Row<u32>>,
    /// Bytes of stack of a thread.
    pub(super) stack: u32,
    /// Rows of the kernel's own constants are filled already.
    constants: bool,
    carry: u32,
    copies: Copies,
    /// Lanes that may leave a barrier of the warp.
    pass: u32,
}

/// Lanes at a barrier.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Arrival {
    pub(crate) index: u32,
    /// The number of threads, if not the whole block.
    pub(crate) count: Option<u32>,
    pub(crate) kind: BarrierKind,
    pub(crate) lanes: u32,
    /// Lanes whose predicate holds.
    pub(crate) votes: u32,
    /// The warp's lanes came together.
    pub(crate) whole: bool,
    /// And they had to.
    pub(crate) aligned: bool,
    /// Lanes of the warp that have something else to do first, or instead. Those with nothing left but to exit do not count.
    pub(crate) missing: u32,
    /// The function and the index of its place.
    pub(crate) at: (u32, u32),
}

/// Why a strand stopped running.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Pause {
    /// It has used up its slice.
    Slice,
    /// It is where another strand is.
    Meet,
    /// It has come to a barrier; if the kind is `Arrive` it goes on.
    Barrier(Arrival),
    /// Lanes of the warp are missing.
    Lanes,
    /// All its lanes have exited.
    Done,
    /// The launch ends; the context says why, and this is where.
    Stop(Place),
}

/// What special registers say.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Threads {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    /// `blockIdx`
    pub(crate) index: [u32; 3],
    pub(crate) dynamic_shared: u32,
    pub(crate) total_shared: u32,
    pub(crate) multiprocessor: u32,
    pub(crate) multiprocessors: u32,
    pub(crate) launch: u32,
    /// Bytes of stack of a thread.
    pub(crate) stack: u64,
}

impl Threads {
    /// Threads of a block.
    pub(crate) fn count(&self) -> u32 {
        self.block.iter().product()
    }

    /// The lanes of a warp that have threads.
    pub(crate) fn lanes(&self, warp: u32) -> u32 {
        match self.count().saturating_sub(32 * warp).min(32) {
            32 => FULL,
            lanes => (1 << lanes) - 1,
        }
    }

    /// `threadIdx` of a thread by its number in the block.
    pub(crate) fn thread(&self, number: u32) -> [u32; 3] {
        let [x, y, _] = self.block;
        [number % x, number / x % y, number / x / y]
    }
}

impl Warp {
    /// A warp before its first block.
    pub(crate) fn new(number: u32) -> Warp {
        Warp {
            number,
            live: 0,
            strands: Vec::new(),
            rows: Vec::new(),
            predicates: Vec::new(),
            local: Vec::new(),
            stack: 0,
            constants: false,
            carry: 0,
            copies: Copies::default(),
            pass: 0,
        }
    }

    /// Starts a block's kernel in this warp.
    pub(crate) fn start(&mut self, program: &Program, threads: &Threads) {
        let main = &program.functions[0];
        self.live = threads.lanes(self.number);
        let frame = Frame { function: 0, rows: 0, predicates: 0, local: 0, call: NONE, back: NONE };
        let entry = Entry { block: 0, join: NONE, mask: self.live, frame: 0 };
        // The room of the last block's strand serves again.
        self.strands.truncate(1);
        let mut strand = self.strands.pop().unwrap_or(Strand::EMPTY);
        strand.entries.clear();
        strand.entries.push(entry);
        strand.frames.clear();
        strand.frames.push(frame);
        strand.wait = Wait::Ready;
        self.strands.push(strand);
        self.stack = threads.stack.min(MAX_STACK) as u32;
        self.reserve(main, &frame);
        self.local.fill(Row([0; 32]));
        self.predicates.fill(0);
        self.carry = 0;
        self.copies.clear();
        self.pass = 0;
        let constants = !std::mem::replace(&mut self.constants, true);
        self.fill(main, &frame, FULL, threads, constants);
    }

    /// Runs a strand until it pauses. Strands that it is torn into come behind the others.
    pub(crate) fn run(
        &mut self,
        index: usize,
        context: &mut Context,
        program: &Program,
        threads: &Threads,
    ) -> Pause {
        let meets = self.meets(index);
        let mut strand = std::mem::replace(&mut self.strands[index], Strand::EMPTY);
        context.live = self.live;
        context.carry = self.carry;
        std::mem::swap(&mut context.copies, &mut self.copies);
        context.pass = self.pass;
        context.at_warp_barrier = false;
        context.arrived = if self.strands.len() == 1 { 0 } else { self.at_warp_barrier() };
        let pause = self.run_strand(&mut strand, context, program, threads, &meets);
        self.carry = context.carry;
        std::mem::swap(&mut context.copies, &mut self.copies);
        self.pass = context.pass;
        let waits = match &pause {
            Pause::Barrier(arrival) => arrival.kind != BarrierKind::Arrive,
            Pause::Lanes => true,
            // It may be waiting for its own lanes.
            Pause::Slice => context.polls > 0,
            _ => false,
        };
        if waits {
            self.tear(&mut strand);
        }
        match &pause {
            Pause::Barrier(arrival) if waits => strand.wait = Wait::Barrier(arrival.clone()),
            Pause::Lanes => strand.wait = Wait::Lanes { barrier: context.at_warp_barrier },
            _ => {}
        }
        self.strands[index] = strand;
        pause
    }

    /// Takes away strands without lanes, and joins those that are at the same place.
    pub(crate) fn merge(&mut self) {
        self.strands.retain(|strand| !strand.entries.is_empty());
        let mut index = 0;
        while index + 1 < self.strands.len() {
            let (left, right) = self.strands.split_at_mut(index + 1);
            let strand = &mut left[index];
            let same = right.iter().position(|other| {
                strand.wait == Wait::Ready
                    && other.wait == Wait::Ready
                    && strand.is_simple()
                    && other.is_simple()
                    && strand.frames == other.frames
                    && strand.top().block == other.top().block
            });
            match same {
                Some(other) => {
                    for (entry, more) in strand.entries.iter_mut().zip(&right[other].entries) {
                        entry.mask |= more.mask;
                    }
                    self.strands.remove(index + 1 + other);
                }
                None => index += 1,
            }
        }
        // Those furthest behind run first, to catch up.
        if self.strands.len() > 1 {
            self.strands.sort_by_key(|strand| (strand.frames.len(), strand.top().block));
        }
    }

    /// Lets strands that wait for lanes of the warp try again, those at the same place together.
    pub(crate) fn retry_lanes(&mut self) -> bool {
        let mut any = false;
        for strand in &mut self.strands {
            if matches!(strand.wait, Wait::Lanes { .. }) {
                strand.wait = Wait::Ready;
                any = true;
            }
        }
        any
    }

    /// Lanes that wait at a barrier of the warp.
    fn at_warp_barrier(&self) -> u32 {
        let waiting = self.strands.iter().filter(|strand| strand.wait == Wait::Lanes { barrier: true });
        waiting.fold(0, |lanes, strand| lanes | strand.lanes())
    }

    /// Lanes of a strand.
    pub(crate) fn lanes(&self, strand: usize) -> u32 {
        self.strands[strand].lanes()
    }

    /// Where a strand is, for reports.
    pub(crate) fn place(&self, strand: usize, program: &Program) -> Place {
        let strand = &self.strands[strand];
        let Some(entry) = strand.entries.last() else { return Place::default() };
        let function = &program.functions[strand.frames[entry.frame as usize].function as usize];
        let block = &function.blocks[entry.block as usize];
        if block.start < block.stop { function.place(block.start) } else { function.place(block.place) }
    }

    /// Writes a barrier's result to the lanes that waited there.
    pub(crate) fn release(&mut self, strand: usize, count: u32, threads: u32) {
        let Wait::Barrier(arrival) = std::mem::replace(&mut self.strands[strand].wait, Wait::Ready) else {
            return;
        };
        let strand = &self.strands[strand];
        let frame = strand.frames[strand.top().frame as usize];
        match arrival.kind {
            BarrierKind::Sync | BarrierKind::Arrive => {}
            BarrierKind::Count { row, .. } => {
                let row = &mut self.rows[((frame.rows + row) / 128) as usize];
                for lane in lanes_of(arrival.lanes) {
                    row.0[lane] = count;
                }
            }
            BarrierKind::Vote { all, result, .. } => {
                let holds = if all { count == threads } else { count > 0 };
                let predicate = &mut self.predicates[(frame.predicates + result) as usize];
                *predicate = (*predicate & !arrival.lanes) | if holds { arrival.lanes } else { 0 };
            }
        }
    }

    fn run_strand(
        &mut self,
        strand: &mut Strand,
        context: &mut Context,
        program: &Program,
        threads: &Threads,
        meets: &[(u32, u32)],
    ) -> Pause {
        loop {
            let Some(&Entry { block: mut at, join, mask, frame: depth }) = strand.entries.last() else {
                return Pause::Done;
            };
            if mask == 0 || at == join {
                strand.entries.pop();
                strand.frames.truncate(strand.entries.last().map_or(0, |entry| entry.frame as usize + 1));
                continue;
            }
            let frame = strand.frames[depth as usize];
            let function = &program.functions[frame.function as usize];
            self.enter(context, &frame, function);
            context.set_mask(mask);
            let lanes = u64::from(mask.count_ones());
            // Blocks in a row by the same lanes of the same function.
            loop {
                let block = &function.blocks[at as usize];
                if !meets.is_empty() && strand.is_simple() && meets.contains(&(depth, at)) {
                    strand.set_block(at);
                    return Pause::Meet;
                }
                if context.slice <= 0 {
                    strand.set_block(at);
                    return Pause::Slice;
                }
                context.slice -= i64::from(block.count);
                context.counters.warp_instructions += u64::from(block.count);
                context.counters.thread_instructions += u64::from(block.count) * lanes;
                match execute(context, &function.code[block.start as usize..block.stop as usize]) {
                    Ok(()) => {}
                    Err((Flow::Wait, _)) => {
                        context.counters.warp_instructions -= u64::from(block.count);
                        context.counters.thread_instructions -= u64::from(block.count) * lanes;
                        strand.set_block(at);
                        return Pause::Lanes;
                    }
                    Err((_, offset)) => {
                        strand.set_block(at);
                        return Pause::Stop(function.place(block.start + offset));
                    }
                }
                match &block.end {
                    End::Jump(target) => at = *target,
                    End::Branch { predicate, negated, target, next, join: meet, counted } => {
                        // SAFETY: the decoder chose a predicate of this function.
                        let holds =
                            unsafe { context.predicate(*predicate) } ^ if *negated { FULL } else { 0 };
                        let taken = holds & mask;
                        context.counters.branches += u64::from(*counted);
                        if taken == mask {
                            at = *target;
                        } else if taken == 0 {
                            at = *next;
                        } else {
                            context.counters.branches_divergent += u64::from(*counted);
                            strand.part(*meet, &[(*target, taken), (*next, mask & !taken)]);
                            break;
                        }
                    }
                    End::Switch { index, targets, join: meet } => {
                        // SAFETY: the decoder chose a row of 32 bits.
                        let index: [u32; 32] = unsafe { context.row(*index) };
                        let mut ways: Vec<(u32, u32)> = Vec::new();
                        for lane in lanes_of(mask) {
                            let Some(&target) = targets.get(index[lane] as usize) else {
                                let cause = Cause::Target { value: index[lane].into() };
                                context.fault(cause, 1 << lane);
                                strand.set_block(at);
                                return Pause::Stop(function.place(block.place));
                            };
                            match ways.iter_mut().find(|(way, _)| *way == target) {
                                Some((_, lanes)) => *lanes |= 1 << lane,
                                None => ways.push((target, 1 << lane)),
                            }
                        }
                        context.counters.branches += 1;
                        if let [(target, _)] = ways[..] {
                            at = target;
                        } else {
                            context.counters.branches_divergent += 1;
                            strand.part(*meet, &ways);
                            break;
                        }
                    }
                    End::Exit => {
                        self.live &= !mask;
                        context.copies.end(mask);
                        context.live = self.live;
                        for entry in &mut strand.entries {
                            entry.mask &= !mask;
                        }
                        break;
                    }
                    End::Return => {
                        self.results(&strand.frames, depth as usize, program, mask);
                        for entry in &mut strand.entries {
                            if entry.frame == depth {
                                entry.mask &= !mask;
                            }
                        }
                        break;
                    }
                    End::Call(call) => match self.call(strand, context, program, threads, at, call, mask) {
                        Ok(true) => at = call.next,
                        Ok(false) => break,
                        Err(()) => {
                            strand.set_block(at);
                            return Pause::Stop(function.place(block.place));
                        }
                    },
                    End::Barrier(barrier) => {
                        strand.set_block(barrier.next);
                        match arrival(context, barrier, mask) {
                            Some(mut arrival) => {
                                arrival.whole = mask == self.live;
                                if !arrival.whole {
                                    arrival.missing = self.busy(strand, program) & !mask;
                                }
                                arrival.at = (frame.function, block.place);
                                return Pause::Barrier(arrival);
                            }
                            None => return Pause::Stop(function.place(block.place)),
                        }
                    }
                    End::Trap => {
                        context.fault(Cause::Trap, mask);
                        strand.set_block(at);
                        return Pause::Stop(function.place(block.place));
                    }
                }
                if at == join {
                    strand.set_block(at);
                    break;
                }
            }
        }
    }

    /// Lanes that have more to do than to exit; `strand` is the one that runs.
    fn busy(&self, strand: &Strand, program: &Program) -> u32 {
        let mut busy = 0;
        for strand in self.strands.iter().chain(std::iter::once(strand)) {
            let mut above = 0;
            for entry in strand.entries.iter().rev() {
                let own = entry.mask & !above;
                above |= entry.mask;
                let function = &program.functions[strand.frames[entry.frame as usize].function as usize];
                let exits = function
                    .blocks
                    .get(entry.block as usize)
                    .is_some_and(|block| block.start == block.stop && matches!(block.end, End::Exit));
                if !exits {
                    busy |= own;
                }
            }
        }
        busy
    }

    /// Gives each group of lanes that waits for others of its strand a strand of its own.
    fn tear(&mut self, strand: &mut Strand) {
        let Some(&top) = strand.entries.last() else { return };
        if top.mask == strand.lanes() {
            return;
        }
        let mut above = 0;
        let mut parts = Vec::new();
        for entry in strand.entries.iter().rev() {
            let own = entry.mask & !above;
            above |= entry.mask;
            if own != 0 {
                parts.push(strand.part_of(entry, own));
            }
        }
        let mut parts = parts.into_iter();
        if let Some(first) = parts.next() {
            *strand = first;
        }
        self.strands.extend(parts);
    }

    /// Places of other strands that this one could join.
    fn meets(&self, index: usize) -> Vec<(u32, u32)> {
        if self.strands.len() == 1 {
            return Vec::new();
        }
        let own = &self.strands[index];
        let others = self.strands.iter().enumerate();
        others
            .filter(|(other, strand)| *other != index && strand.is_simple())
            .filter(|(_, strand)| !matches!(strand.wait, Wait::Barrier(_)) && strand.frames == own.frames)
            .map(|(_, strand)| (strand.top().frame, strand.top().block))
            .filter(|place| *place != (own.top().frame, own.top().block))
            .collect()
    }
}

/// Executes the instructions of a block. On an error, which and why.
#[inline]
fn execute(context: &mut Context, code: &[Ins]) -> Result<(), (Flow, u32)> {
    let mut index = 0;
    while let Some(ins) = code.get(index) {
        // SAFETY: the decoder made the instruction for this function, whose rows and predicates the context points to.
        match unsafe { (ins.step)(context, ins) } {
            Flow::Next => index += 1,
            Flow::Skip => index += 2,
            flow => return Err((flow, index as u32)),
        }
    }
    Ok(())
}

fn arrival(context: &mut Context, barrier: &Barrier, mask: u32) -> Option<Arrival> {
    // SAFETY: the decoder chose rows of 32 bits and predicates.
    let (index, count, votes) = unsafe {
        let index: [u32; 32] = context.row(barrier.index);
        let count: Option<[u32; 32]> = barrier.count.map(|row| context.row(row));
        let votes = match barrier.kind {
            BarrierKind::Count { predicate, negated, .. } | BarrierKind::Vote { predicate, negated, .. } => {
                context.predicate(predicate) ^ if negated { FULL } else { 0 }
            }
            BarrierKind::Sync | BarrierKind::Arrive => 0,
        };
        (index, count, votes)
    };
    let first = mask.trailing_zeros() as usize;
    let same = (0..32).all(|lane| {
        mask >> lane & 1 == 0
            || index[lane] == index[first] && count.is_none_or(|count| count[lane] == count[first])
    });
    if !same || index[first] > 15 {
        context.unsupported(if same {
            format!("barrier {} does not exist: there are 0 to 15", index[first])
        } else {
            "a barrier whose number differs within a warp is not implemented".into()
        });
        return None;
    }
    Some(Arrival {
        index: index[first],
        count: count.map(|count| count[first]),
        kind: barrier.kind,
        lanes: mask,
        votes: votes & mask,
        whole: true,
        aligned: barrier.aligned,
        missing: 0,
        at: (0, 0),
    })
}
