//! What a program did wrong, and the report that tells its author.
//!
//! A fault is a value: it ends the launch and becomes the context's sticky error, as on a real GPU. What the emulator
//! cannot do is never a fault.

use std::fmt;

use crate::memory::Allocation;

/// A program's fault.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    /// The rule that was broken, and by what.
    pub cause: Cause,
    /// The kernel.
    pub kernel: String,
    /// `gridDim`.
    pub grid: [u32; 3],
    /// `blockDim`.
    pub block_shape: [u32; 3],
    /// `blockIdx`.
    pub block: [u32; 3],
    /// `threadIdx` of the first thread that broke it.
    pub thread: [u32; 3],
    /// How many threads of the same warp broke it with the same instruction.
    pub threads: u32,
    /// Where.
    pub place: Place,
}

/// An instruction's place.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Place {
    /// The function that holds it.
    pub function: String,
    /// Its line in the PTX, from 1.
    pub ptx_line: u32,
    /// Its text: opcode and modifiers.
    pub instruction: String,
    /// File, line and column in the source, if the PTX names them.
    pub source: Option<(String, u32, u32)>,
}

/// How memory is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// `ld`
    Load,
    /// `st`
    Store,
    /// `atom`, `red`
    Atomic,
    /// `atom.exch`, which needs no value to be there before.
    Exchange,
}

/// A state space, as reports name it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Space {
    /// Device, managed and pinned memory.
    Global,
    /// A block's own.
    Shared,
    /// A thread's own.
    Local,
    /// Read-only variables.
    Constant,
    /// A kernel's parameters.
    Parameter,
}

/// The rule that was broken.
#[derive(Clone, Debug, PartialEq)]
pub enum Cause {
    /// An access outside of every allocation.
    OutOfBounds {
        /// Load, store or atomic.
        access: Access,
        /// The space.
        space: Space,
        /// The first byte.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// What is around.
        near: Near,
    },
    /// An address that is not a multiple of the access's size.
    Misaligned {
        /// Load, store or atomic.
        access: Access,
        /// The space.
        space: Space,
        /// The first byte.
        address: u64,
        /// How many bytes, and so the multiple.
        bytes: u64,
    },
    /// A store to constant memory.
    ReadOnly {
        /// The first byte.
        address: u64,
    },
    /// A read of bytes that nothing has written.
    Uninitialised {
        /// Load or atomic.
        access: Access,
        /// Global or shared.
        space: Space,
        /// The first byte.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// How many of them nothing has written.
        unwritten: u64,
        /// Where they are.
        near: Near,
    },
    /// Two threads of a block use the same bytes of shared memory, one of them to write, and nothing orders them.
    Race {
        /// The later access.
        access: Access,
        /// The first byte of it.
        address: u64,
        /// How many bytes.
        bytes: u64,
        /// The earlier one.
        earlier: Box<Earlier>,
    },
    /// Threads wait at a barrier that others will never reach.
    Barrier {
        /// The barrier's number.
        barrier: u32,
        /// Threads that wait there.
        waiting: u32,
        /// Threads that it needs.
        expected: u32,
        /// Where the others are.
        others: String,
    },
    /// Not all threads of a warp execute a barrier together.
    DivergentBarrier {
        /// The barrier's number.
        barrier: u32,
        /// Lanes that execute it.
        active: u32,
        /// These, and those that should have.
        warp: u32,
        /// Where the others are.
        others: String,
    },
    /// Lanes of a warp wait for others that will never come.
    WarpSync {
        /// The lanes that were asked for.
        members: u32,
        /// The lanes that came.
        arrived: u32,
    },
    /// An mbarrier was misused.
    Mbarrier {
        /// Its address in shared memory.
        address: u64,
        /// "an mbarrier …": what was done with it.
        what: &'static str,
    },
    /// The launch executed more instructions than it may.
    Budget {
        /// Warp instructions.
        limit: u64,
    },
    /// `trap`
    Trap,
    /// `assert(…)` in device code.
    Assert {
        /// The expression.
        message: String,
        /// The file.
        file: String,
        /// The line.
        line: u32,
        /// The function.
        function: String,
    },
    /// Calls nest deeper than the stack.
    StackOverflow {
        /// Bytes of the stack of a thread.
        limit: u64,
    },
    /// `free` of what `malloc` has not given, or has got back.
    Free {
        /// What was to be freed.
        address: u64,
    },
    /// A call or branch through a register that holds no such target.
    Target {
        /// What the register held.
        value: u64,
    },
}

/// The earlier side of a race.
#[derive(Clone, Debug, PartialEq)]
pub struct Earlier {
    /// Load, store or atomic.
    pub access: Access,
    /// `threadIdx` of the thread that did it.
    pub thread: [u32; 3],
    /// The later side is in the same warp.
    pub same_warp: bool,
    /// Where.
    pub place: Place,
    /// The thread's number in its block, from which the launch finds `thread`.
    pub(crate) number: u32,
    /// What stands for the instruction, from which the launch finds `place`.
    pub(crate) site: u32,
}

/// What is around an address that belongs to nothing.
#[derive(Clone, Debug, PartialEq)]
pub enum Near {
    /// Nothing at all.
    Nothing,
    /// The null pointer, or a small offset to it.
    Null,
    /// An allocation that was freed.
    Freed(Allocation),
    /// The nearest live allocation.
    Live(Allocation),
    /// A space of this size, such as a block's shared memory.
    Space(u64),
}

impl Fault {
    /// The code that CUDA calls return for it.
    pub fn cuda_error(&self) -> i32 {
        match &self.cause {
            Cause::Misaligned { .. } => 716,
            // A stack ends where the memory behind it is nobody's.
            Cause::OutOfBounds { .. } | Cause::ReadOnly { .. } | Cause::StackOverflow { .. } => 700,
            Cause::Budget { .. } => 702,
            Cause::Assert { .. } => 710,
            Cause::Target { .. } => 718,
            Cause::Trap
            | Cause::Free { .. }
            | Cause::Uninitialised { .. }
            | Cause::Race { .. }
            | Cause::Barrier { .. }
            | Cause::DivergentBarrier { .. }
            | Cause::Mbarrier { .. }
            | Cause::WarpSync { .. } => 719,
        }
    }
}

impl fmt::Display for Fault {
    /// The report.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "emulated GPU: the program's fault: {}", self.cause.summary())?;
        let [x, y, z] = self.block;
        write!(f, "  kernel   {}, block ({x}, {y}, {z})", self.kernel)?;
        let [x, y, z] = self.thread;
        write!(f, ", thread ({x}, {y}, {z})")?;
        match self.threads {
            0 | 1 => {}
            2 => write!(f, " and 1 more of its warp")?,
            more => write!(f, " and {} more of its warp", more - 1)?,
        }
        let shape = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
        writeln!(f, "\n  launch   grid {}, blocks of {}", shape(self.grid), shape(self.block_shape))?;
        if let Some((file, line, column)) = &self.place.source {
            writeln!(f, "  source   {file}:{line}:{column}")?;
        }
        writeln!(
            f,
            "  PTX      line {}: {}, in {}",
            self.place.ptx_line, self.place.instruction, self.place.function
        )?;
        for (name, text) in self.cause.details() {
            writeln!(f, "  {name:<8} {text}")?;
        }
        Ok(())
    }
}

impl Cause {
    fn summary(&self) -> String {
        match self {
            Cause::OutOfBounds { near: Near::Null, access, .. } => {
                format!("{access} through a null pointer")
            }
            Cause::OutOfBounds { near: Near::Freed(_), access, .. } => {
                format!("{access} of memory after it was freed")
            }
            Cause::OutOfBounds { access, space, bytes, .. } => {
                format!("{access} of {} out of bounds in {space} memory", count(*bytes, "byte"))
            }
            Cause::Misaligned { access, space, bytes, .. } => {
                format!("{access} of {} at a misaligned address in {space} memory", count(*bytes, "byte"))
            }
            Cause::ReadOnly { .. } => "store to constant memory".into(),
            Cause::Uninitialised { access, space, bytes, .. } => {
                format!("{access} of {} of {space} memory that nothing has written", count(*bytes, "byte"))
            }
            Cause::Race { access, bytes, earlier, .. } => {
                let reads = |access| access == Access::Load;
                let kind = match (reads(*access), reads(earlier.access)) {
                    (true, _) => "read after write",
                    (false, true) => "write after read",
                    (false, false) => "write after write",
                };
                format!("race in shared memory, {kind}: {access} of {}", count(*bytes, "byte"))
            }
            Cause::Barrier { barrier, waiting, expected, .. } => format!(
                "barrier {barrier} is never complete: {} of {} wait at it",
                waiting,
                count(u64::from(*expected), "thread")
            ),
            Cause::DivergentBarrier { barrier, .. } => {
                format!("barrier {barrier} in divergent code")
            }
            Cause::WarpSync { .. } => "lanes of a warp wait for lanes that never come".into(),
            Cause::Mbarrier { what, .. } => format!("an mbarrier {what}"),
            Cause::Budget { limit } => format!("more than {limit} warp instructions in one launch"),
            Cause::Trap => "trap".into(),
            Cause::Assert { message, .. } => format!("assertion `{message}` failed"),
            Cause::StackOverflow { limit } => {
                format!("calls need more than {limit} bytes of stack a thread")
            }
            Cause::Free { address } => format!("free of {address:#x}, which is no piece of the heap"),
            Cause::Target { value } => {
                format!("call or branch through {value:#x}, which is no target")
            }
        }
    }

    fn details(&self) -> Vec<(&'static str, String)> {
        match self {
            Cause::OutOfBounds { address, bytes, near, space, .. } => {
                let mut details = vec![("address", format!("{address:#x}"))];
                match near {
                    Near::Nothing => details.push(("nearest", "no allocation is live".into())),
                    Near::Null => {}
                    Near::Freed(allocation) => {
                        details.push(("was", describe(allocation)));
                        details.push((
                            "rule",
                            "an allocation ends when it is freed, whatever still points to it".into(),
                        ));
                        details.push(("do", "free it after the last launch that uses it".into()));
                        return details;
                    }
                    Near::Live(allocation) => {
                        details.push(("nearest", describe(allocation)));
                        details
                            .push(("missed", missed(*address, *bytes, allocation.address, allocation.end())));
                    }
                    Near::Space(size) => {
                        details.push(("has", format!("{} of {space} memory", count(*size, "byte"))));
                        details.push(("missed", missed(*address, *bytes, 0, *size)));
                    }
                }
                details.push((
                    "rule",
                    match near {
                        Near::Space(_) => {
                            format!("an access must lie inside the {space} memory that there is")
                        }
                        _ => "an access must lie inside one allocation".into(),
                    },
                ));
                details.push((
                    "do",
                    match (near, space) {
                        (Near::Null, _) => "pass the pointer, and check that its allocation succeeded".into(),
                        (_, Space::Shared) => {
                            "check the index, and the launch's dynamic shared memory".to_owned()
                        }
                        _ => "guard the index, as in `if (i < n)`, and check the size that was allocated"
                            .into(),
                    },
                ));
                details
            }
            Cause::Misaligned { address, bytes, .. } => vec![
                ("address", format!("{address:#x}, {} above a multiple of {bytes}", address % bytes)),
                ("rule", format!("an access of {bytes} bytes needs an address that {bytes} divides")),
                ("do", "keep vector types on their own alignment; odd offsets need narrower accesses".into()),
            ],
            Cause::ReadOnly { address } => vec![
                ("address", format!("{address:#x}")),
                ("rule", "kernels read constant memory, and the host writes it".into()),
                ("do", "use `__device__` instead of `__constant__`".into()),
            ],
            Cause::Uninitialised { space, address, bytes, unwritten, near, .. } => {
                let mut details = vec![("address", format!("{address:#x}"))];
                if let Near::Live(allocation) = near {
                    let offset = count(address - allocation.address, "byte");
                    details.push(("in", format!("{}, {offset} from its start", describe(allocation))));
                }
                if unwritten < bytes {
                    details.push(("written", format!("{} of the {bytes} bytes", bytes - unwritten)));
                }
                if *space == Space::Shared {
                    details.push(("rule", "shared memory holds nothing defined when a block starts".into()));
                    let barrier =
                        "write it first, and put a barrier between the write and reads by other threads";
                    details.push(("do", barrier.into()));
                } else {
                    details
                        .push(("rule", "allocated memory holds nothing defined until it is written".into()));
                    let copy = "copy or set all of it before the launch, or check which index is read";
                    details.push(("do", copy.into()));
                }
                details
            }
            Cause::Race { access, address, earlier, .. } => {
                let [x, y, z] = earlier.thread;
                let whose = if earlier.same_warp { "of the same warp" } else { "of another warp" };
                let mut details = vec![
                    ("address", format!("{address:#x}")),
                    ("earlier", format!("{} by thread ({x}, {y}, {z}), {whose}", earlier.access)),
                ];
                let place = &earlier.place;
                if let Some((file, line, column)) = &place.source {
                    details.push(("", format!("source {file}:{line}:{column}")));
                }
                let (line, instruction, function) = (place.ptx_line, &place.instruction, &place.function);
                details.push(("", format!("PTX line {line}: {instruction}, in {function}")));
                details.push((
                    "rule",
                    "two threads may use the same bytes, one of them to write, only with a barrier between"
                        .into(),
                ));
                details.push((
                    "do",
                    if *access != Access::Load && earlier.access != Access::Load {
                        "let one thread write it, use an atomic, or put a barrier between"
                    } else if earlier.same_warp {
                        "put `__syncwarp()` or `__syncthreads()` between the two lines"
                    } else {
                        "put `__syncthreads()` between the two lines"
                    }
                    .into(),
                ));
                details
            }
            Cause::Barrier { others, .. } => vec![
                ("others", others.clone()),
                ("rule", "a barrier completes when all threads that it counts have arrived".into()),
                ("do", "move the barrier out of code that only some threads reach".into()),
            ],
            Cause::DivergentBarrier { active, warp, others, .. } => vec![
                ("lanes", format!("{active:#010x} of {warp:#010x}")),
                ("others", others.clone()),
                (
                    "rule",
                    "`__syncthreads()` may stand in conditional code only if all threads of the block agree"
                        .into(),
                ),
                ("do", "move the barrier out of the condition, or let every thread reach it".into()),
            ],
            Cause::WarpSync { members, arrived } => vec![
                ("lanes", format!("{arrived:#010x} came of {members:#010x}")),
                ("rule", "every lane that the mask names must execute the operation".into()),
                ("do", "pass the mask of the lanes that are there, computed before the branch".into()),
            ],
            Cause::Mbarrier { address, .. } => vec![
                ("address", format!("{address:#x} of shared memory")),
                (
                    "rule",
                    "one thread initialises an mbarrier with the number of arrivals that a phase takes"
                        .into(),
                ),
                ("do", "initialise it before a barrier of the block, and use it behind that".into()),
            ],
            Cause::Budget { .. } => vec![
                ("rule", "the emulated GPU stops launches that seem endless".into()),
                ("do", "check the loop's end; raise EMULATED_GPU_BUDGET if it is only long".into()),
            ],
            Cause::Trap => vec![("do", "look for what the program checks before this instruction".into())],
            Cause::Assert { file, line, function, .. } => {
                vec![("assert", format!("{file}:{line}, {function}"))]
            }
            Cause::StackOverflow { .. } => vec![
                ("rule", "each thread has a stack of fixed size".into()),
                (
                    "do",
                    "bound the recursion, or raise the limit with cuCtxSetLimit(CU_LIMIT_STACK_SIZE)".into(),
                ),
            ],
            Cause::Free { .. } => vec![
                ("rule", "a piece that malloc gave in device code is freed once, in device code".into()),
                ("do", "check for a second free, and for pointers of cuMemAlloc".into()),
            ],
            Cause::Target { .. } => {
                vec![(
                    "do",
                    "check the function pointer; the host's pointers mean nothing on the device".into(),
                )]
            }
        }
    }
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Access::Load => "load",
            Access::Store => "store",
            Access::Atomic | Access::Exchange => "atomic",
        })
    }
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Space::Global => "global",
            Space::Shared => "shared",
            Space::Local => "local",
            Space::Constant => "constant",
            Space::Parameter => "parameter",
        })
    }
}

fn describe(allocation: &Allocation) -> String {
    format!(
        "allocation {} of {}, {}, at {:#x}",
        allocation.number,
        count(allocation.bytes, "byte"),
        allocation.kind,
        allocation.address
    )
}

fn missed(address: u64, bytes: u64, start: u64, end: u64) -> String {
    if address < start {
        format!("starts {} before it", count(start - address, "byte"))
    } else if address >= end {
        match address - end {
            0 => "starts right behind its last byte".into(),
            beyond => format!("starts {} behind its end", count(beyond, "byte")),
        }
    } else {
        format!("starts inside, ends {} behind its end", count(address + bytes - end, "byte"))
    }
}

fn count(number: u64, noun: &str) -> String {
    format!("{number} {noun}{}", if number == 1 { "" } else { "s" })
}
