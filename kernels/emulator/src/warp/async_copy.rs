//! Asynchronous copies from global to shared memory: `cp.async`.
//!
//! A copy is checked and counted where it is issued, so that a fault names its line, and its bytes move when the program
//! waits for it: who reads before that sees the old bytes, as may happen on a GPU, and not by luck the new ones. Copies that
//! nobody waits for end when their thread exits. Those that an mbarrier tracks end at once, for their thread will not wait
//! for them; a GPU may be so fast.

use super::{
    Context, has, lanes_of, mbarrier,
    memory::{self, Place, Target, addresses, place, repeat_active},
};
use crate::{
    fault::{Access, Cause, Space},
    module::{
        Class, Decoded, Decoder, Register, invalid,
        program::{Flow, Ins, NONE, kept},
    },
    ptx::ast::{Instruction, Operand},
};

/// Copies of a warp.
#[derive(Clone, Debug, Default)]
pub(crate) struct Copies {
    issued: Vec<Copy>,
    /// How many groups each lane has committed: the number of the group that its next copy belongs to.
    groups: [u32; 32],
}

/// Copies of one instruction.
#[derive(Clone, Debug)]
struct Copy {
    /// Lanes whose copy has not ended.
    lanes: u32,
    groups: [u32; 32],
    /// Where the bytes are on the host, and where they go.
    from: [u64; 32],
    to: [u64; 32],
    /// Bytes that are written.
    bytes: u32,
    /// Bytes that are read; zeros follow.
    read: [u8; 32],
}

impl Copies {
    /// Forgets everything.
    pub(crate) fn clear(&mut self) {
        self.issued.clear();
        self.groups = [0; 32];
    }

    /// Ends every copy of some lanes.
    pub(crate) fn end(&mut self, lanes: u32) {
        if !self.issued.is_empty() {
            self.end_where(lanes, |_, _| true);
        }
    }

    /// Ends the copies of all but the last groups that lanes have committed.
    fn end_groups(&mut self, lanes: u32, except: u32) {
        let committed = self.groups;
        self.end_where(lanes, |lane, group| group.saturating_add(except) < committed[lane]);
    }

    fn commit(&mut self, lanes: u32) {
        for lane in lanes_of(lanes) {
            self.groups[lane] = self.groups[lane].wrapping_add(1);
        }
    }

    fn end_where(&mut self, lanes: u32, due: impl Fn(usize, u32) -> bool) {
        self.issued.retain_mut(|copy| {
            let there = copy.lanes & lanes;
            for lane in lanes_of(there) {
                if !due(lane, copy.groups[lane]) {
                    continue;
                }
                copy.lanes &= !(1 << lane);
                let read = usize::from(copy.read[lane]);
                // SAFETY: both ranges were found to be inside when the copy was issued. The allocation lives as long as
                // the launch, and shared memory as long as the block.
                unsafe {
                    let to = std::ptr::with_exposed_provenance_mut::<u8>(copy.to[lane] as usize);
                    let from = std::ptr::with_exposed_provenance::<u8>(copy.from[lane] as usize);
                    if read > 0 {
                        std::ptr::copy_nonoverlapping(from, to, read);
                    }
                    to.add(read).write_bytes(0, copy.bytes as usize - read);
                }
            }
            copy.lanes != 0
        });
    }
}

/// Decodes an instruction of this chapter.
pub(crate) fn decode(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let words: Vec<&str> = i.modifiers.iter().map(String::as_str).collect();
    match words[..] {
        ["async", "commit_group"] => Ok(d.plain(commit)),
        ["async", "wait_all"] => Ok(d.plain(wait_all)),
        ["async", "wait_group"] => match d.operands(i)? {
            &[Operand::Integer(groups)] if groups >= 0 => {
                Ok(Ins { f: groups.min(u32::MAX.into()) as u32, ..d.plain(wait) })
            }
            _ => Err(invalid(&format!("`{}` needs a constant number of groups", d.word()))),
        },
        ["async", "mbarrier", "arrive", ..] => {
            let [address] = d.operands(i)?;
            mbarrier::decode_copies(d, i, address)
        }
        ["async", "ca" | "cg", ..] => copy(d, i),
        _ => Err(d.not_implemented()),
    }
}

/// What a copy instruction says.
struct Issue {
    to: Ins,
    to_long: bool,
    from: Ins,
    from_long: bool,
    cache: u32,
    bytes: u32,
    read: Read,
}

/// How much a lane reads.
enum Read {
    All,
    /// As many bytes as this row says.
    Bytes(u32),
    /// Nothing where the predicate holds, or does not.
    Unless {
        predicate: u32,
        negated: bool,
    },
}

fn copy(d: &mut Decoder<'_>, i: &Instruction) -> Decoded {
    let (to, from, size, read) = match &i.operands[..] {
        [to, from, size] => (to, from, size, None),
        [to, from, size, read] => (to, from, size, Some(read)),
        _ => return Err(d.wrong_count()),
    };
    let bytes = match size {
        Operand::Integer(bytes @ (4 | 8 | 16)) if *bytes == 16 || has(i, "ca") => *bytes as u32,
        _ => return Err(invalid(&format!("`{}` copies 4, 8 or 16 bytes, and 16 with .cg", d.word()))),
    };
    let read = match read {
        None => Read::All,
        Some(operand) => match d.register(operand) {
            Ok(Register { class: Class::Predicate, .. }) => {
                let (predicate, negated) = d.predicate(operand)?;
                Read::Unless { predicate, negated }
            }
            _ if matches!(operand, Operand::Not(_)) => {
                let (predicate, negated) = d.predicate(operand)?;
                Read::Unless { predicate, negated }
            }
            _ => Read::Bytes(d.source::<u32>(operand)?),
        },
    };
    // The first space that the instruction names is the destination's.
    let (to, from) = (place(d, i, to)?, place(d, i, from)?);
    let from_is_global = from.row != NONE && matches!(from.space, Target::Shared | Target::Global);
    if to.space != Target::Shared || !has(i, "global") || !from_is_global {
        return Err(d.not_implemented());
    }
    let address = |d: &Decoder<'_>, place: &Place| Ins { a: place.row, x: place.offset, ..d.plain(issue) };
    let issue_ = Issue {
        to: address(d, &to),
        to_long: to.long,
        from: address(d, &from),
        from_long: from.long,
        cache: d.cache(),
        bytes,
        read,
    };
    let x = d.keep(issue_);
    Ok(Ins { x, ..d.plain(issue) })
}

/// Counts as a load from global and a store to shared memory. Which of Nsight Compute's metrics count such copies, and how,
/// has to be measured: `smsp__sass_l1tex_t_sectors_pipe_lsu_mem_global_op_ldgsts` and the wavefronts of `op_st`.
unsafe fn issue(context: &mut Context, ins: &Ins) -> Flow {
    let mask = context.mask;
    if mask == 0 {
        return Flow::Next;
    }
    // SAFETY: the decoder keeps the description as long as the code, and chose its rows and predicates.
    let (issue, mut to, mut from, sizes, ignored) = unsafe {
        let issue = kept::<Issue>(ins.x);
        let find = |ins: &Ins, long: bool| {
            if long { addresses::<u64>(context, ins) } else { addresses::<u32>(context, ins) }
        };
        let sizes = match issue.read {
            Read::Bytes(row) => context.row::<u32>(row).map(|size| size.min(issue.bytes) as u8),
            _ => [issue.bytes as u8; 32],
        };
        let ignored = match issue.read {
            Read::Unless { predicate, negated } => {
                context.predicate(predicate) ^ 0u32.wrapping_sub(negated.into())
            }
            _ => 0,
        };
        (issue, find(&issue.to, issue.to_long), find(&issue.from, issue.from_long), sizes, ignored)
    };
    let bytes = u64::from(issue.bytes);
    if let Err(flow) = memory::shared(context, ins, &mut to, bytes, Access::Store, false) {
        return flow;
    }
    let read: [u8; 32] = std::array::from_fn(|lane| if ignored >> lane & 1 != 0 { 0 } else { sizes[lane] });
    if let Err(flow) = reach_source(context, issue, &mut from, &read) {
        return flow;
    }
    let groups = context.copies.groups;
    context.copies.issued.push(Copy { lanes: mask, groups, from, to, bytes: issue.bytes, read });
    Flow::Next
}

/// Finds what lanes read on the host. Bytes that are not read need not exist.
fn reach_source(
    context: &mut Context,
    issue: &Issue,
    from: &mut [u64; 32],
    read: &[u8; 32],
) -> Result<(), Flow> {
    let mask = context.mask;
    let bytes = u64::from(issue.bytes);
    let lanes = |wanted: &dyn Fn(usize) -> bool| {
        lanes_of(mask).filter(|&lane| wanted(lane)).fold(0u32, |lanes, lane| lanes | 1 << lane)
    };
    let misaligned = lanes(&|lane| from[lane] & (bytes - 1) != 0);
    if misaligned != 0 {
        let address = from[misaligned.trailing_zeros() as usize];
        let cause = Cause::Misaligned { access: Access::Load, space: Space::Global, address, bytes };
        return Err(context.fault(cause, misaligned));
    }
    let whole = lanes(&|lane| u32::from(read[lane]) == issue.bytes);
    let parts = lanes(&|lane| read[lane] != 0 && u32::from(read[lane]) != issue.bytes);
    let mut host = [0; 32];
    if whole != 0 {
        context.set_mask(whole);
        host = *from;
        repeat_active(&mut host, whole);
        memory::global(context, issue.cache, &mut host, bytes, Access::Load)?;
    }
    if parts != 0 {
        // The first byte and the last one.
        context.set_mask(parts);
        let mut last: [u64; 32] =
            std::array::from_fn(|lane| from[lane].wrapping_add(u64::from(read[lane]).wrapping_sub(1)));
        let mut first = *from;
        repeat_active(&mut last, parts);
        repeat_active(&mut first, parts);
        memory::global(context, issue.cache, &mut first, 1, Access::Load)?;
        let counters = context.counters;
        memory::global(context, issue.cache, &mut last, 1, Access::Load)?;
        context.counters = counters;
        for lane in lanes_of(parts) {
            host[lane] = first[lane];
        }
    }
    context.set_mask(mask);
    *from = host;
    Ok(())
}

unsafe fn commit(context: &mut Context, _: &Ins) -> Flow {
    context.copies.commit(context.mask);
    Flow::Next
}

unsafe fn wait(context: &mut Context, ins: &Ins) -> Flow {
    context.copies.end_groups(context.mask, ins.f);
    Flow::Next
}

/// Commits what is open, and waits for everything.
unsafe fn wait_all(context: &mut Context, _: &Ins) -> Flow {
    context.copies.commit(context.mask);
    context.copies.end(context.mask);
    Flow::Next
}
