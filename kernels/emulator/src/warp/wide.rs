//! Registers of 128 bits: two rows of 64 bits, the lower half first.

use std::sync::Mutex;

use super::{
    Context,
    context::Lane,
    lanes_of,
    level::Body,
    memory::{self, Address, Target, WINDOW, Window, addresses, place, repeat_active, wait_a_little, window},
};
use crate::{
    fault::Access,
    module::{
        Class, Decoded, Decoder, Register, invalid,
        program::{Flow, Ins, NONE},
    },
    ptx::ast::{Instruction, Operand},
};

/// Bytes from the row of the lower half to that of the upper one.
pub(crate) const UPPER: u32 = 256;

/// The row of the lower half.
pub(super) fn register(d: &mut Decoder<'_>, operand: &Operand) -> Decoded<u32> {
    if *operand == Operand::Sink {
        return Ok(d.scratch(Class::Quad));
    }
    match d.register(operand)? {
        Register { class: Class::Quad, slot } => Ok(slot),
        _ => Err(invalid("a register of 128 bits is needed here")),
    }
}

/// `mov.b128 d, {low, high}`, `mov.b128 {low, high}, a` and `mov.b128 d, a`.
pub(super) fn move_value(d: &mut Decoder<'_>, dest: &Operand, source: &Operand) -> Decoded {
    let halves = |d: &mut Decoder<'_>, operand: &Operand, reads: bool| -> Decoded<[u32; 2]> {
        match operand {
            Operand::Vector(halves) => {
                let [low, high] = &halves[..] else { return Err(d.not_implemented()) };
                let mut half =
                    |operand: &Operand| if reads { d.source::<u64>(operand) } else { d.dest::<u64>(operand) };
                Ok([half(low)?, half(high)?])
            }
            operand => register(d, operand).map(|slot| [slot, slot + UPPER]),
        }
    };
    let [a, b] = halves(d, source, true)?;
    let [dest, e] = halves(d, dest, false)?;
    Ok(Ins { d: dest, e, a, b, ..d.rare_ins::<Halves>() })
}

/// `d = a` and `e = b`, of 64 bits each.
struct Halves;

impl Body for Halves {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of 64 bits.
        unsafe {
            let (low, high): ([u64; 32], [u64; 32]) = (context.row(ins.a), context.row(ins.b));
            context.set_row(ins.d, low);
            context.set_row(ins.e, high);
        }
        Flow::Next
    }
}

/// One atomic at a time: no host has these for sure.
static TURN: Mutex<()> = Mutex::new(());

/// `atom.exch.b128 d, [a], b` and `atom.cas.b128 d, [a], b, c`
pub(super) fn atomic(d: &mut Decoder<'_>, i: &Instruction, operator: &str) -> Decoded {
    let (dest, address, b, c) = match (&i.operands[..], operator) {
        ([dest, address, b], "exch") => (dest, address, b, NONE),
        ([dest, address, b, c], "cas") => (dest, address, b, register(d, c)?),
        _ => return Err(d.not_implemented()),
    };
    let (dest, b) = (register(d, dest)?, register(d, b)?);
    let place = place(d, i, address)?;
    let space = match place.space {
        Target::Global | Target::Shared | Target::Generic => place.space,
        _ => return Err(d.not_implemented()),
    };
    let cache = d.cache();
    let ins = match (place.long, space) {
        (true, _) => d.plain(run::<u64>),
        (false, Target::Shared) => d.plain(run::<u32>),
        _ => return Err(d.not_implemented()),
    };
    let e = u32::from(space == Target::Shared);
    Ok(Ins { d: dest, a: place.row, b, c, e, f: cache << 8, x: place.offset, ..ins })
}

unsafe fn run<A: Address>(context: &mut Context, ins: &Ins) -> Flow {
    let mask = context.mask;
    if mask == 0 {
        return Flow::Next;
    }
    let mut changed = false;
    // SAFETY: the decoder chose rows of these widths; `memory` vouches for 16 bytes at each address.
    unsafe {
        let read = |context: &Context, row: u32| -> [u128; 32] {
            let (low, high): ([u64; 32], [u64; 32]) = (context.row(row), context.row(row + UPPER));
            std::array::from_fn(|lane| u128::from(low[lane]) | u128::from(high[lane]) << 64)
        };
        let new = read(context, ins.b);
        let (new, expected) = if ins.c == NONE { (new, None) } else { (read(context, ins.c), Some(new)) };
        let whole = addresses::<A>(context, ins);
        let mut old = [0u128; 32];
        // Each lane by itself: lanes may be in different spaces, and this is seldom.
        for lane in lanes_of(mask) {
            context.set_mask(1 << lane);
            let shared = ins.e != 0 || window(whole[lane]) == Window::Shared;
            let mut host = whole;
            if shared {
                host.iter_mut().for_each(|address| *address &= WINDOW - 1);
            }
            repeat_active(&mut host, 1 << lane);
            let access = if expected.is_none() { Access::Exchange } else { Access::Atomic };
            let reached = if shared {
                memory::shared(context, ins, &mut host, 16, access, true)
            } else {
                if let Some(race) = context.race() {
                    race.acquire_global();
                    race.release_global();
                }
                memory::global(context, ins.f >> 8, &mut host, 16, access)
            };
            if let Err(flow) = reached {
                return flow;
            }
            let cell = std::ptr::with_exposed_provenance_mut::<[u64; 2]>(host[lane] as usize);
            let _turn = TURN.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            let [low, high] = cell.read();
            old[lane] = u128::from(low) | u128::from(high) << 64;
            if expected.is_none_or(|expected| expected[lane] == old[lane]) {
                changed |= new[lane] != old[lane];
                cell.write([new[lane] as u64, (new[lane] >> 64) as u64]);
            }
        }
        context.set_mask(mask);
        context.set_row::<u64>(ins.d, old.map(|value| (value as u64).write()));
        context.set_row::<u64>(ins.d + UPPER, old.map(|value| ((value >> 64) as u64).write()));
    }
    if !changed {
        wait_a_little(context);
    }
    Flow::Next
}
