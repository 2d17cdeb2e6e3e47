//! Frames: the rows, predicates and local memory of functions, and calls between them.

use super::{
    Context, Row, Threads, Warp,
    context::FULL,
    lanes_of,
    strand::{Entry, Frame, Strand},
};
use crate::{
    fault::Cause,
    module::program::{Argument, Builtin, Call, Callee, End, Fill, Function, NONE, Program, Special},
    printf,
};

impl Warp {
    /// Points the context to a frame.
    pub(super) fn enter(&mut self, context: &mut Context, frame: &Frame, function: &Function) {
        context.rows = self.rows.as_mut_ptr().cast::<u8>().wrapping_add(frame.rows as usize);
        context.predicates = self.predicates.as_mut_ptr().wrapping_add(frame.predicates as usize);
        context.local = self.local.as_mut_ptr().cast();
        context.own_end = frame.local + function.local_bytes;
        context.local_bytes = context.own_end + self.stack_of(function);
        context.frame = frame.local;
    }

    /// Bytes that a function may take from the stack while it runs.
    fn stack_of(&self, function: &Function) -> u32 {
        if function.taken.is_some() { self.stack } else { 0 }
    }

    /// Bytes that lanes have taken from the stack in a frame, the most of any.
    fn taken(&self, function: &Function, frame: &Frame, mask: u32) -> u32 {
        let Some(variable) = function.taken else { return 0 };
        let taken = self.local[((frame.local + variable) / 4) as usize].0;
        lanes_of(mask).map(|lane| taken[lane]).max().unwrap_or(0)
    }

    /// Makes room for a frame.
    pub(super) fn reserve(&mut self, function: &Function, frame: &Frame) {
        let rows = ((frame.rows + function.row_bytes) / 128) as usize;
        if self.rows.len() < rows {
            self.rows.resize(rows, Row([0; 32]));
        }
        let predicates = (frame.predicates + function.predicates) as usize;
        if self.predicates.len() < predicates {
            self.predicates.resize(predicates, 0);
        }
        let local = (frame.local + function.local_bytes + self.stack_of(function)).div_ceil(4) as usize;
        if self.local.len() < local {
            self.local.resize(local, Row([0; 32]));
        }
    }

    /// Fills the constants and special registers of a frame.
    pub(super) fn fill(
        &mut self,
        function: &Function,
        frame: &Frame,
        mask: u32,
        threads: &Threads,
        constants: bool,
    ) {
        for &(slot, fill) in &function.fills {
            if !constants && !matches!(fill, Fill::Special(special) if special.is_blocks()) {
                continue;
            }
            let row = ((frame.rows + slot) / 128) as usize;
            match fill {
                Fill::Word(value) if mask == FULL => self.rows[row].0 = [value; 32],
                Fill::Word(value) => set(&mut self.rows[row].0, mask, |_| value),
                Fill::Long(value) => {
                    for lane in lanes_of(mask) {
                        // A row of 64-bit values is two of 32 bits, each with 16 lanes.
                        let word = 2 * lane;
                        self.rows[row + word / 32].0[word % 32] = value as u32;
                        self.rows[row + (word + 1) / 32].0[(word + 1) % 32] = (value >> 32) as u32;
                    }
                }
                Fill::Special(special) if mask == FULL && special.is_blocks() => {
                    self.rows[row].0 = [value_of(special, threads, 0, 0); 32];
                }
                Fill::Special(special) => {
                    let first = self.number * 32;
                    set(&mut self.rows[row].0, mask, |lane| value_of(special, threads, first, lane));
                }
            }
        }
    }

    /// Calls a function; `true` if it has already returned.
    pub(super) fn call(
        &mut self,
        strand: &mut Strand,
        context: &mut Context,
        program: &Program,
        threads: &Threads,
        at: u32,
        call: &Call,
        mask: u32,
    ) -> Result<bool, ()> {
        let depth = strand.frames.len() - 1;
        let caller = strand.frames[depth];
        let caller_function = &program.functions[caller.function as usize];
        let callee = match call.callee {
            Callee::Function(callee) => callee,
            Callee::Builtin(builtin) => return self.builtin(builtin, &caller, context, call, mask),
            Callee::Indirect(row) => {
                // SAFETY: the decoder chose a row of 64 bits.
                let targets: [u64; 32] = unsafe { context.row(row) };
                let first = mask.trailing_zeros() as usize;
                let same = lanes_of(mask).filter(|&lane| targets[lane] == targets[first]);
                let same = same.fold(0, |lanes, lane| lanes | 1 << lane);
                let Some(&callee) = program.addresses.get(&targets[first]) else {
                    context.fault(Cause::Target { value: targets[first] }, same);
                    return Err(());
                };
                if same != mask {
                    // Each target has its turn: the lanes execute the call again, one target at a time.
                    strand.part(call.next, &[(at, same), (at, mask & !same)]);
                    return Ok(false);
                }
                callee
            }
        };
        let function = &program.functions[callee as usize];
        let frame = Frame {
            function: callee,
            rows: caller.rows + caller_function.row_bytes,
            predicates: caller.predicates + caller_function.predicates,
            local: (caller.local + caller_function.local_bytes + self.taken(caller_function, &caller, mask))
                .next_multiple_of(16),
            call: at,
            back: call.next,
        };
        // A real frame also holds a return address and saved registers.
        let used = u64::from(frame.local) + u64::from(function.local_bytes) + 16 * (depth as u64 + 1);
        if used > u64::from(program.functions[0].local_bytes) + threads.stack {
            context.fault(Cause::StackOverflow { limit: threads.stack }, mask);
            return Err(());
        }
        self.reserve(function, &frame);
        self.fill(function, &frame, mask, threads, true);
        for (argument, &(offset, bytes)) in call.arguments.iter().zip(&function.params) {
            let to = ((frame.local + offset) / 4) as usize;
            match *argument {
                Argument::Sink => {}
                Argument::Local(from) => {
                    let from = ((caller.local + from) / 4) as usize;
                    for word in 0..bytes.div_ceil(4) as usize {
                        let values = self.local[from + word].0;
                        set(&mut self.local[to + word].0, mask, |lane| values[lane]);
                    }
                }
                Argument::Word(row) => {
                    let values = self.rows[((caller.rows + row) / 128) as usize].0;
                    set(&mut self.local[to].0, mask, |lane| values[lane]);
                    // A constant of 32 bits for a wider parameter.
                    for word in 1..bytes.div_ceil(4) as usize {
                        set(&mut self.local[to + word].0, mask, |_| 0);
                    }
                }
                Argument::Long(row) if bytes <= 4 => {
                    let values = self.long_row(caller.rows + row);
                    set(&mut self.local[to].0, mask, |lane| values[lane] as u32);
                }
                Argument::Long(row) => {
                    let values = self.long_row(caller.rows + row);
                    set(&mut self.local[to].0, mask, |lane| values[lane] as u32);
                    set(&mut self.local[to + 1].0, mask, |lane| (values[lane] >> 32) as u32);
                }
            }
        }
        strand.set_block(call.next);
        strand.frames.push(frame);
        strand.entries.push(Entry { block: 0, join: NONE, mask, frame: depth as u32 + 1 });
        Ok(false)
    }

    /// Copies the results of the function at `depth` to its caller.
    pub(super) fn results(&mut self, frames: &[Frame], depth: usize, program: &Program, mask: u32) {
        let (frame, caller) = (frames[depth], frames[depth - 1]);
        let function = &program.functions[frame.function as usize];
        let End::Call(call) = &program.functions[caller.function as usize].blocks[frame.call as usize].end
        else {
            return;
        };
        for (result, &(offset, bytes)) in call.results.iter().zip(&function.returns) {
            let from = ((frame.local + offset) / 4) as usize;
            match *result {
                Argument::Sink => {}
                Argument::Local(to) => {
                    let to = ((caller.local + to) / 4) as usize;
                    for word in 0..bytes.div_ceil(4) as usize {
                        let values = self.local[from + word].0;
                        set(&mut self.local[to + word].0, mask, |lane| values[lane]);
                    }
                }
                Argument::Word(row) => {
                    let values = self.local[from].0;
                    set(&mut self.rows[((caller.rows + row) / 128) as usize].0, mask, |lane| values[lane]);
                }
                Argument::Long(row) => {
                    let (low, high) = (self.local[from].0, self.local[from + 1].0);
                    let row = ((caller.rows + row) / 128) as usize;
                    for lane in lanes_of(mask) {
                        let word = 2 * lane;
                        self.rows[row + word / 32].0[word % 32] = low[lane];
                        self.rows[row + (word + 1) / 32].0[(word + 1) % 32] = high[lane];
                    }
                }
            }
        }
    }

    fn long_row(&self, offset: u32) -> [u64; 32] {
        let row = (offset / 128) as usize;
        std::array::from_fn(|lane| {
            let word = 2 * lane;
            let low = self.rows[row + word / 32].0[word % 32];
            let high = self.rows[row + (word + 1) / 32].0[(word + 1) % 32];
            u64::from(low) | u64::from(high) << 32
        })
    }

    /// Functions of the device runtime.
    fn builtin(
        &mut self,
        builtin: Builtin,
        caller: &Frame,
        context: &mut Context,
        call: &Call,
        mask: u32,
    ) -> Result<bool, ()> {
        let argument = |number: usize, lane: usize, wide: bool| -> u64 {
            match call.arguments.get(number) {
                Some(&Argument::Local(from)) => {
                    let from = ((caller.local + from) / 4) as usize;
                    let low = u64::from(self.local[from].0[lane]);
                    // An argument may be narrower than it should be, and then be the last thing in memory.
                    let high = if wide { self.local.get(from + 1).map_or(0, |word| word.0[lane]) } else { 0 };
                    low | u64::from(high) << 32
                }
                Some(&Argument::Word(row)) => {
                    u64::from(self.rows[((caller.rows + row) / 128) as usize].0[lane])
                }
                Some(&Argument::Long(row)) => self.long_row(caller.rows + row)[lane],
                Some(Argument::Sink) | None => 0,
            }
        };
        match builtin {
            Builtin::Vprintf => {
                let mut written = [0u32; 32];
                let mut text = Vec::new();
                for lane in lanes_of(mask) {
                    let format = context.string(argument(0, lane, true), lane);
                    let arguments = argument(1, lane, true);
                    let read =
                        |offset: u64, bytes: u64| context.peek(arguments.wrapping_add(offset), bytes, lane);
                    written[lane] =
                        printf::format(&format, read, |address| context.string(address, lane), &mut text);
                }
                context.printed.extend_from_slice(&text);
                self.answer(caller, call, mask, &written.map(u64::from), false);
                Ok(true)
            }
            Builtin::Malloc => {
                let mut found = [0u64; 32];
                if let Some(heap) = &context.heap {
                    for lane in lanes_of(mask) {
                        found[lane] = heap.take(argument(0, lane, true));
                    }
                }
                self.answer(caller, call, mask, &found, true);
                Ok(true)
            }
            Builtin::Free => {
                for lane in lanes_of(mask) {
                    let address = argument(0, lane, true);
                    let known = address == 0 || context.heap.as_ref().is_some_and(|heap| heap.give(address));
                    if !known {
                        context.fault(Cause::Free { address }, 1 << lane);
                        return Err(());
                    }
                }
                Ok(true)
            }
            Builtin::Assertfail => {
                let lane = mask.trailing_zeros() as usize;
                let text = |number| {
                    String::from_utf8_lossy(&context.string(argument(number, lane, true), lane)).into_owned()
                };
                let cause = Cause::Assert {
                    message: text(0),
                    file: text(1),
                    line: argument(2, lane, false) as u32,
                    function: text(3),
                };
                context.fault(cause, mask);
                Err(())
            }
        }
    }

    /// Writes the result of a function of the device runtime.
    fn answer(&mut self, caller: &Frame, call: &Call, mask: u32, values: &[u64; 32], wide: bool) {
        match call.results.first() {
            Some(&Argument::Local(to)) => {
                let to = ((caller.local + to) / 4) as usize;
                let halves: [fn(u64) -> u32; 2] = [|value| value as u32, |value| (value >> 32) as u32];
                for (word, half) in self.local[to..].iter_mut().zip(halves).take(1 + usize::from(wide)) {
                    set(&mut word.0, mask, |lane| half(values[lane]));
                }
            }
            Some(&Argument::Word(row)) => {
                let row = ((caller.rows + row) / 128) as usize;
                set(&mut self.rows[row].0, mask, |lane| values[lane] as u32);
            }
            Some(&Argument::Long(row)) => self.set_long_row(caller.rows + row, mask, values),
            Some(Argument::Sink) | None => {}
        }
    }

    fn set_long_row(&mut self, offset: u32, mask: u32, values: &[u64; 32]) {
        let row = (offset / 128) as usize;
        for lane in lanes_of(mask) {
            let word = 2 * lane;
            self.rows[row + word / 32].0[word % 32] = values[lane] as u32;
            self.rows[row + (word + 1) / 32].0[(word + 1) % 32] = (values[lane] >> 32) as u32;
        }
    }
}

fn set(row: &mut [u32; 32], mask: u32, value: impl Fn(usize) -> u32) {
    for lane in lanes_of(mask) {
        row[lane] = value(lane);
    }
}

fn value_of(special: Special, threads: &Threads, first: u32, lane: usize) -> u32 {
    let thread = first + lane as u32;
    let bit = 1u32 << lane;
    match special {
        Special::Tid(axis) => threads.thread(thread)[axis as usize],
        Special::Ntid(axis) => threads.block[axis as usize],
        Special::Ctaid(axis) => threads.index[axis as usize],
        Special::Nctaid(axis) => threads.grid[axis as usize],
        Special::Lane => lane as u32,
        Special::Warp => first / 32,
        Special::Warps => threads.count().div_ceil(32),
        Special::Multiprocessor => threads.multiprocessor,
        Special::Multiprocessors => threads.multiprocessors,
        Special::Grid => threads.launch,
        Special::LaneMaskEq => bit,
        Special::LaneMaskLt => bit - 1,
        Special::LaneMaskLe => bit | (bit - 1),
        Special::LaneMaskGe => !(bit - 1),
        Special::LaneMaskGt => !(bit | (bit - 1)),
        Special::DynamicShared => threads.dynamic_shared,
        Special::TotalShared => threads.total_shared,
        Special::Zero => 0,
        Special::One => 1,
    }
}
