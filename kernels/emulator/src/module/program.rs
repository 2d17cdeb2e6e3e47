//! The form that executes: instructions with resolved operands, in basic blocks.
//!
//! A function's registers lie in a file of rows, one row of 32 lanes for each register. Operands are offsets of rows, so
//! immediates and special registers are rows as well, filled before the function starts. Predicates are masks of lanes.

use std::{any::Any, collections::HashMap, sync::Arc};

use crate::{fault::Place, warp::Context};

/// What executes an instruction.
pub(crate) type Step = unsafe fn(&mut Context, &Ins) -> Flow;

/// What a step says about the instruction behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Flow {
    /// It comes next.
    Next,
    /// It has no active lane.
    Skip,
    /// Lanes of this warp are missing; execute the same instruction again later.
    Wait,
    /// Context holds the reason why the launch ends.
    Stop,
}

/// An instruction. `d`, `a`, `b`, `c`, `e` are rows or predicates, `f` and `x` whatever else the step needs.
#[derive(Clone, Copy)]
pub(crate) struct Ins {
    pub(crate) step: Step,
    pub(crate) d: u32,
    pub(crate) a: u32,
    pub(crate) b: u32,
    pub(crate) c: u32,
    pub(crate) e: u32,
    pub(crate) f: u32,
    pub(crate) x: u64,
}

/// A kernel and every function that it may call.
#[derive(Default)]
pub(crate) struct Program {
    /// The kernel first.
    pub(crate) functions: Vec<Function>,
    /// Functions by the value that stands for them in a register.
    pub(crate) addresses: HashMap<u64, u32>,
    /// It may take memory from the heap.
    pub(crate) allocates: bool,
    /// How many rows of the cache of allocations it uses.
    pub(crate) caches: u32,
}

/// A function.
#[derive(Default)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) code: Vec<Ins>,
    /// Where each instruction of `code` comes from, and after those, each block's end.
    pub(crate) places: Vec<Place>,
    pub(crate) blocks: Vec<Block>,
    /// What instructions refer to that has no room in them: their `x` is its address.
    pub(crate) kept: Vec<Arc<dyn Any + Send + Sync>>,
    /// Rows to fill before it starts.
    pub(crate) fills: Vec<(u32, Fill)>,
    /// Bytes of its rows.
    pub(crate) row_bytes: u32,
    /// How many predicates it has.
    pub(crate) predicates: u32,
    /// Bytes of local memory a thread: variables, parameters, and arguments of its calls.
    pub(crate) local_bytes: u32,
    /// Where the variable lies that says what it has taken from the stack while it runs, if it ever does.
    pub(crate) taken: Option<u32>,
    /// Where its parameters and results lie in local memory, with their sizes. Empty for kernels.
    pub(crate) params: Vec<(u32, u32)>,
    pub(crate) returns: Vec<(u32, u32)>,
}

/// What a row holds before its function starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Fill {
    /// A 32-bit constant in each lane.
    Word(u32),
    /// A 64-bit constant in each lane.
    Long(u64),
    /// A special register.
    Special(Special),
}

/// A special register that does not change while a block runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Special {
    Tid(u8),
    Ntid(u8),
    Ctaid(u8),
    Nctaid(u8),
    Lane,
    Warp,
    Warps,
    Multiprocessor,
    Multiprocessors,
    Grid,
    LaneMaskEq,
    LaneMaskLe,
    LaneMaskLt,
    LaneMaskGe,
    LaneMaskGt,
    DynamicShared,
    TotalShared,
    Zero,
    One,
}

/// Instructions that one warp executes from the first to the last.
#[derive(Debug)]
pub(crate) struct Block {
    /// The first instruction.
    pub(crate) start: u32,
    /// Behind the last one.
    pub(crate) stop: u32,
    /// How many PTX instructions it is, its end included.
    pub(crate) count: u32,
    /// Index into `places` of its end.
    pub(crate) place: u32,
    pub(crate) end: End,
}

/// No block.
pub(crate) const NONE: u32 = u32::MAX;

/// How a block ends. Targets are blocks.
#[derive(Clone, Debug)]
pub(crate) enum End {
    Jump(u32),
    /// To `target` where the predicate holds (or does not, when `negated`), else to `next`. All meet again at `join`.
    Branch {
        predicate: u32,
        negated: bool,
        target: u32,
        next: u32,
        join: u32,
        /// It is a `bra`, not a guard.
        counted: bool,
    },
    /// To the target that the row says.
    Switch {
        index: u32,
        targets: Vec<u32>,
        join: u32,
    },
    Exit,
    Return,
    Call(Box<Call>),
    Barrier(Box<Barrier>),
    Trap,
}

/// A call.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) arguments: Vec<Argument>,
    pub(crate) results: Vec<Argument>,
    pub(crate) next: u32,
}

/// What is called.
#[derive(Clone, Debug)]
pub(crate) enum Callee {
    Function(u32),
    /// The function whose address is in this 64-bit row.
    Indirect(u32),
    Builtin(Builtin),
}

/// A function of the device runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Builtin {
    Vprintf,
    Assertfail,
    Malloc,
    Free,
}

/// Where an argument or result lies in the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Argument {
    /// In local memory, relative to the frame.
    Local(u32),
    /// In a 32-bit row.
    Word(u32),
    /// In a 64-bit row.
    Long(u32),
    /// Not wanted.
    Sink,
}

/// `bar` and `barrier`.
#[derive(Clone, Debug)]
pub(crate) struct Barrier {
    /// The row with its number.
    pub(crate) index: u32,
    /// The row with the number of threads, if it is not the whole block.
    pub(crate) count: Option<u32>,
    pub(crate) kind: BarrierKind,
    /// All lanes of a warp must execute it together.
    pub(crate) aligned: bool,
    pub(crate) next: u32,
}

/// What a barrier does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BarrierKind {
    /// Wait for the others.
    Sync,
    /// Only let them know.
    Arrive,
    /// Wait, and get the number of threads whose predicate holds in a row.
    Count { predicate: u32, negated: bool, row: u32 },
    /// Wait, and get whether all or any predicates hold in a predicate.
    Vote { predicate: u32, negated: bool, all: bool, result: u32 },
}

/// What an instruction's `x` refers to.
///
/// # Safety
///
/// - `x` is from `Decoder::keep` of a value of this type, for a function that still exists.
pub(crate) unsafe fn kept<'a, T>(x: u64) -> &'a T {
    // SAFETY: the caller's promise; the function holds the value and never changes it.
    unsafe { &*std::ptr::with_exposed_provenance(x as usize) }
}

impl Special {
    /// It is not the same for all blocks of a launch.
    pub(crate) fn is_blocks(self) -> bool {
        matches!(self, Special::Ctaid(_) | Special::Multiprocessor)
    }
}

impl Ins {
    /// A number that stands for the instruction while its program lives.
    pub(crate) fn site(&self) -> u32 {
        (std::ptr::from_ref(self).addr() / align_of::<Ins>()) as u32
    }
}

impl Program {
    /// Where the instruction that a site stands for comes from.
    pub(crate) fn find(&self, site: u32) -> Option<Place> {
        self.functions.iter().find_map(|function| {
            let index = function.code.iter().position(|ins| ins.site() == site)?;
            Some(function.place(index as u32))
        })
    }
}

impl Function {
    /// Where the instruction at `index` of the code comes from.
    pub(crate) fn place(&self, index: u32) -> Place {
        self.places.get(index as usize).cloned().unwrap_or_default()
    }
}
