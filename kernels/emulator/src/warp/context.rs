//! What a step sees: the running warp's registers and active lanes, its block's memory, and the worker's counters.

use std::sync::Arc;

use crate::{
    counters::Counters,
    fault::Cause,
    heap::Heap,
    memory::{Range, Table},
    race::Race,
};

/// The state of one worker while it runs a warp. Pointers are set whenever another warp or function starts to run.
pub(crate) struct Context {
    /// Row file of the running function.
    pub(crate) rows: *mut u8,
    /// Its predicates.
    pub(crate) predicates: *mut u32,
    /// Active lanes.
    pub(crate) mask: u32,
    /// The active lanes as a row: all bits or none. Meaningful only if some lane is inactive.
    pub(crate) lanes: Row<u32>,
    /// The mask to return to behind a guarded instruction.
    pub(crate) unguarded: u32,
    /// Lanes of the warp that have not exited.
    pub(crate) live: u32,
    /// Lanes of other strands that wait at a warp's barrier.
    pub(crate) arrived: u32,
    /// Lanes that may leave a warp's barrier, for others have met them there.
    pub(crate) pass: u32,
    /// The step that waits is a warp's barrier.
    pub(crate) at_warp_barrier: bool,
    /// Asynchronous copies of the running warp.
    pub(crate) copies: super::Copies,
    /// Carry flags of extended-precision arithmetic, one bit a lane.
    pub(crate) carry: u32,

    /// Local memory of the warp: 32-bit words, the lanes' side by side.
    pub(crate) local: *mut u8,
    /// Bytes of it that a thread may use.
    pub(crate) local_bytes: u32,
    /// Where the running function's part starts.
    pub(crate) frame: u32,
    /// Where its own variables end, and what it takes from the stack starts.
    pub(crate) own_end: u32,
    /// The block's shared memory.
    pub(crate) shared: *mut u8,
    /// Its size.
    pub(crate) shared_bytes: u32,
    /// Its shadow, if something is looked for there; or null.
    pub(crate) race: *mut Race,
    /// The launch's parameters.
    pub(crate) params: *const u8,
    /// Their size.
    pub(crate) param_bytes: u32,

    /// The heap of device code, if the kernel may use it.
    pub(crate) heap: Option<Arc<Heap>>,
    /// Live allocations.
    pub(crate) table: Arc<Table>,
    /// For each instruction that accesses global memory, the allocation that it found last.
    pub(crate) caches: Vec<Range>,

    pub(crate) counters: Counters,
    /// Warp instructions until the warp has to let others run.
    pub(crate) slice: i64,
    /// Operations in this slice that may wait for another thread: volatile and acquiring loads, atomics without effect.
    pub(crate) polls: u32,
    /// What the block has printed.
    pub(crate) printed: Vec<u8>,
    /// Why the launch ends.
    pub(crate) stop: Option<Stopped>,
}

/// Why a step said [`crate::module::program::Flow::Stop`].
#[derive(Clone, Debug)]
pub(crate) enum Stopped {
    /// The program's fault, by these lanes.
    Fault(Box<Cause>, u32),
    /// The emulator's limit.
    Unsupported(String),
}

/// A row of the file: one value for each lane.
#[derive(Clone, Copy)]
#[repr(C, align(128))]
pub(crate) struct Row<T>(pub(crate) [T; 32]);

/// All lanes.
pub(crate) const FULL: u32 = !0;

impl Context {
    /// Changes the active lanes.
    #[inline]
    pub(crate) fn set_mask(&mut self, mask: u32) {
        self.mask = mask;
        if mask != FULL {
            for lane in 0..32 {
                self.lanes.0[lane] = 0u32.wrapping_sub(mask >> lane & 1);
            }
        }
    }

    /// The row at `offset`.
    ///
    /// # Safety
    ///
    /// - `offset` is a row of the running function of this width.
    #[inline(always)]
    pub(crate) unsafe fn row<W: Word>(&self, offset: u32) -> [W; 32] {
        // SAFETY: the file is aligned to 128 bytes, and `offset` is a row of it.
        unsafe { *self.rows.add(offset as usize).cast::<[W; 32]>() }
    }

    /// Writes the active lanes of the row at `offset`.
    ///
    /// # Safety
    ///
    /// - As for [`Context::row`].
    #[inline(always)]
    pub(crate) unsafe fn set_row<W: Word>(&mut self, offset: u32, values: [W; 32]) {
        // SAFETY: as in `row`; `self.lanes` is no row.
        let row = unsafe { &mut *self.rows.add(offset as usize).cast::<[W; 32]>() };
        if self.mask == FULL {
            *row = values;
        } else {
            for lane in 0..32 {
                row[lane] = W::blend(self.lanes.0[lane], values[lane], row[lane]);
            }
        }
    }

    /// The lanes where a predicate holds, active or not.
    ///
    /// # Safety
    ///
    /// - `index` is a predicate of the running function.
    #[inline(always)]
    pub(crate) unsafe fn predicate(&self, index: u32) -> u32 {
        // SAFETY: the caller's promise.
        unsafe { *self.predicates.add(index as usize) }
    }

    /// Sets a predicate in the active lanes.
    ///
    /// # Safety
    ///
    /// - As for [`Context::predicate`].
    #[inline(always)]
    pub(crate) unsafe fn set_predicate(&mut self, index: u32, value: u32) {
        // SAFETY: the caller's promise.
        let predicate = unsafe { &mut *self.predicates.add(index as usize) };
        *predicate = (*predicate & !self.mask) | (value & self.mask);
    }

    /// The shadow of the block's shared memory, if something is looked for there.
    #[inline(always)]
    pub(crate) fn race(&mut self) -> Option<&mut Race> {
        // SAFETY: the running block owns it, and uses it only while none of its warps runs.
        unsafe { self.race.as_mut() }
    }

    /// Ends the launch with a fault of `lanes`.
    #[cold]
    pub(crate) fn fault(&mut self, cause: Cause, lanes: u32) -> crate::module::program::Flow {
        self.stop = Some(Stopped::Fault(Box::new(cause), lanes));
        crate::module::program::Flow::Stop
    }

    /// Ends the launch with a limit of the emulator.
    #[cold]
    pub(crate) fn unsupported(&mut self, what: String) -> crate::module::program::Flow {
        self.stop = Some(Stopped::Unsupported(what));
        crate::module::program::Flow::Stop
    }
}

/// What a row is made of.
pub(crate) trait Word: Copy + Default + PartialEq + 'static {
    /// Bytes of a row.
    const ROW: u32;
    /// `new` where `lane` has all bits, `old` where it has none.
    fn blend(lane: u32, new: Self, old: Self) -> Self;
}

impl Word for u32 {
    const ROW: u32 = 128;

    #[inline(always)]
    fn blend(lane: u32, new: u32, old: u32) -> u32 {
        (new & lane) | (old & !lane)
    }
}

impl Word for u64 {
    const ROW: u32 = 256;

    #[inline(always)]
    fn blend(lane: u32, new: u64, old: u64) -> u64 {
        let lane = lane as i32 as i64 as u64;
        (new & lane) | (old & !lane)
    }
}

/// The type of a value in a register.
pub(crate) trait Lane: Copy + 'static {
    /// What holds it; types narrower than 32 bits have a word of their own.
    type Word: Word;
    /// Reads it.
    fn read(word: Self::Word) -> Self;
    /// Writes it. Bits above its width are zero.
    fn write(self) -> Self::Word;
}

macro_rules! lanes {
    ($($type:ty, $word:ty, |$word_in:ident| $read:expr, |$value:ident| $write:expr;)*) => {$(
        impl Lane for $type {
            type Word = $word;
            #[inline(always)]
            fn read($word_in: $word) -> $type { $read }
            #[inline(always)]
            fn write(self) -> $word { let $value = self; $write }
        }
    )*};
}

lanes! {
    u8, u32, |word| word as u8, |value| value.into();
    i8, u32, |word| word as i8, |value| (value as u8).into();
    u16, u32, |word| word as u16, |value| value.into();
    i16, u32, |word| word as i16, |value| (value as u16).into();
    u32, u32, |word| word, |value| value;
    i32, u32, |word| word as i32, |value| value as u32;
    f32, u32, |word| f32::from_bits(word), |value| value.to_bits();
    u64, u64, |word| word, |value| value;
    i64, u64, |word| word as i64, |value| value as u64;
    f64, u64, |word| f64::from_bits(word), |value| value.to_bits();
}
