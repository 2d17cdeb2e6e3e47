//! Atomics and reductions: `atom`, `red`.
//!
//! Lanes take their turns in ascending order. On global memory each turn is an atomic of the host, so blocks on other host
//! threads see it whole; a block's shared memory is its worker's alone. Each element of a vector is an atomic of its own.

use std::sync::atomic::{AtomicU16, AtomicU32, AtomicU64, Ordering};

use super::{
    Context,
    context::Lane,
    half, has,
    lanes::function,
    lanes_of, last_type,
    memory::{self, Address, Atomic, Target, Window, addresses, place, repeat_active, wait_a_little, window},
};
use crate::{
    fault::Access,
    module::{
        Decoded, Decoder,
        program::{Flow, Ins},
        type_bytes,
    },
    ptx::ast::{AddressBase, Instruction, Operand},
};

/// Decodes an instruction of this chapter.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    let (d, i) = (decoder, instruction);
    let ty = last_type(i);
    let operator = i.modifiers.iter().map(String::as_str).find(|word| {
        matches!(*word, "and" | "or" | "xor" | "exch" | "cas" | "add" | "inc" | "dec" | "min" | "max")
    });
    let Some(operator) = operator else { return Err(d.not_implemented()) };
    if ty == "b128" {
        return super::wide::atomic(d, i, operator);
    }
    match (operator, ty) {
        ("and", "b32") => atomic(d, i, |a: u32, b: u32, _| a & b),
        ("or", "b32") => atomic(d, i, |a: u32, b: u32, _| a | b),
        ("xor", "b32") => atomic(d, i, |a: u32, b: u32, _| a ^ b),
        ("exch", "b32" | "u32" | "s32" | "f32") => atomic(d, i, |_: u32, b: u32, _| b),
        ("cas", "b32" | "u32" | "s32") => atomic(d, i, |a: u32, b: u32, c: u32| if a == b { c } else { a }),
        ("add", "u32" | "s32") => atomic(d, i, |a: u32, b: u32, _| a.wrapping_add(b)),
        ("inc", "u32") => atomic(d, i, |a: u32, b: u32, _| if a >= b { 0 } else { a + 1 }),
        ("dec", "u32") => atomic(d, i, |a: u32, b: u32, _| if a == 0 || a > b { b } else { a - 1 }),
        ("min", "u32") => atomic(d, i, |a: u32, b: u32, _| a.min(b)),
        ("max", "u32") => atomic(d, i, |a: u32, b: u32, _| a.max(b)),
        ("min", "s32") => atomic(d, i, |a: i32, b: i32, _| a.min(b)),
        ("max", "s32") => atomic(d, i, |a: i32, b: i32, _| a.max(b)),
        ("add", "f32") => atomic(d, i, |a: f32, b: f32, _| super::float::canonical(a + b)),
        ("add", "f16") => atomic(d, i, |a: u16, b: u16, _| half::add_half(a, b)),
        ("add", "bf16") => atomic(d, i, |a: u16, b: u16, _| half::add_bfloat(a, b)),
        ("min", "f16") => atomic(d, i, |a: u16, b: u16, _| half::min_half(a, b)),
        ("min", "bf16") => atomic(d, i, |a: u16, b: u16, _| half::min_bfloat(a, b)),
        ("max", "f16") => atomic(d, i, |a: u16, b: u16, _| half::max_half(a, b)),
        ("max", "bf16") => atomic(d, i, |a: u16, b: u16, _| half::max_bfloat(a, b)),
        ("add", "f16x2") => atomic(d, i, |a: u32, b: u32, _| pair(a, b, half::add_half)),
        ("add", "bf16x2") => atomic(d, i, |a: u32, b: u32, _| pair(a, b, half::add_bfloat)),
        ("min", "f16x2") => atomic(d, i, |a: u32, b: u32, _| pair(a, b, half::min_half)),
        ("min", "bf16x2") => atomic(d, i, |a: u32, b: u32, _| pair(a, b, half::min_bfloat)),
        ("max", "f16x2") => atomic(d, i, |a: u32, b: u32, _| pair(a, b, half::max_half)),
        ("max", "bf16x2") => atomic(d, i, |a: u32, b: u32, _| pair(a, b, half::max_bfloat)),
        ("cas", "b16") => atomic(d, i, |a: u16, b: u16, c: u16| if a == b { c } else { a }),
        ("and", "b64") => atomic(d, i, |a: u64, b: u64, _| a & b),
        ("or", "b64") => atomic(d, i, |a: u64, b: u64, _| a | b),
        ("xor", "b64") => atomic(d, i, |a: u64, b: u64, _| a ^ b),
        ("exch", "b64" | "u64" | "s64" | "f64") => atomic(d, i, |_: u64, b: u64, _| b),
        ("cas", "b64" | "u64" | "s64") => atomic(d, i, |a: u64, b: u64, c: u64| if a == b { c } else { a }),
        ("add", "u64" | "s64") => atomic(d, i, |a: u64, b: u64, _| a.wrapping_add(b)),
        ("min", "u64") => atomic(d, i, |a: u64, b: u64, _| a.min(b)),
        ("max", "u64") => atomic(d, i, |a: u64, b: u64, _| a.max(b)),
        ("min", "s64") => atomic(d, i, |a: i64, b: i64, _| a.min(b)),
        ("max", "s64") => atomic(d, i, |a: i64, b: i64, _| a.max(b)),
        ("add", "f64") => atomic(d, i, |a: f64, b: f64, _| a + b),
        _ => Err(d.not_implemented()),
    }
}

/// The elements of a vector's atomic, as instructions: `None` if it is none.
///
/// # Errors
///
/// A result that a later element would still read is not implemented.
pub(super) fn elements(d: &Decoder<'_>, i: &Instruction) -> Decoded<Option<Vec<Instruction>>> {
    if !matches!(i.opcode.as_str(), "atom" | "red") || !i.modifiers.iter().any(|word| is_vector(word)) {
        return Ok(None);
    }
    let (results, address, values) = match &i.operands[..] {
        [Operand::Vector(results), address, Operand::Vector(values)] => (&results[..], address, values),
        [address, Operand::Vector(values)] => (&[][..], address, values),
        _ => return Err(d.wrong_count()),
    };
    let Operand::Address { base, offset } = address else { return Err(d.wrong_count()) };
    let bytes = type_bytes(last_type(i))? as i64;
    let is_base = |operand: &Operand| matches!((operand, base), (Operand::Name(name), AddressBase::Name(base)) if name == base);
    let read_again = |(index, result): (usize, &Operand)| {
        is_base(result)
            || *result != Operand::Sink && values.iter().skip(index + 1).any(|value| value == result)
    };
    if !results.is_empty() && (results.len() != values.len() || results.iter().enumerate().any(read_again)) {
        return Err(d.not_implemented());
    }
    let modifiers: Vec<String> =
        i.modifiers.iter().filter(|word| !is_vector(word) && *word != "L2::cache_hint").cloned().collect();
    let element = |(index, value): (usize, &Operand)| {
        let address = Operand::Address { base: base.clone(), offset: offset + bytes * index as i64 };
        let mut operands: Vec<Operand> = results.get(index).cloned().into_iter().collect();
        operands.extend([address, value.clone()]);
        Instruction { modifiers: modifiers.clone(), operands, ..i.clone() }
    };
    Ok(Some(values.iter().enumerate().map(element).collect()))
}

fn is_vector(word: &str) -> bool {
    matches!(word, "v2" | "v4" | "v8")
}

fn pair(a: u32, b: u32, f: impl Fn(u16, u16) -> u16) -> u32 {
    half::pair(a, b, 0, |a, b, _| f(a, b))
}

/// An atomic that replaces `a` in memory by `f(a, b, c)` and yields `a`.
fn atomic<T: Cell, F: Fn(T, T, T) -> T + Copy + 'static>(
    d: &mut Decoder<'_>,
    i: &Instruction,
    _: F,
) -> Decoded {
    let (dest, rest) = match (i.opcode.as_str(), &i.operands[..]) {
        ("red", rest) => (&Operand::Sink, rest),
        (_, [dest, rest @ ..]) => (dest, rest),
        _ => return Err(d.wrong_count()),
    };
    let (address, b, c) = match rest {
        [address, b] => (address, b, b),
        [address, b, c] => (address, b, c),
        _ => return Err(d.wrong_count()),
    };
    let place = place(d, i, address)?;
    let dest = d.dest::<T>(dest)?;
    let (b, c) = (d.source::<T>(b)?, d.source::<T>(c)?);
    let target = match place.space {
        Target::Global => GLOBAL,
        Target::Shared => SHARED,
        Target::Generic => GENERIC,
        _ => return Err(d.not_implemented()),
    };
    let cache = d.cache();
    // An exchange needs no value that somebody has written.
    let exchange = if has(i, "exch") { EXCHANGE } else { 0 };
    let ins = if place.long { d.plain(run::<u64, T, F>) } else { d.plain(run::<u32, T, F>) };
    // Sums of single precision have no subnormal numbers in global memory, and have them in shared memory.
    let flushes = if has(i, "add") && last_type(i) == "f32" { FLUSHES } else { 0 };
    let kind = in_shared_memory(i) as u32 | exchange | flushes;
    Ok(Ins { d: dest, a: place.row, b, c, e: target, f: cache << 8 | kind, x: place.offset, ..ins })
}

/// How the hardware executes an atomic on shared memory: 32-bit integers, exchanges and swaps it has, the rest are loops.
fn in_shared_memory(instruction: &Instruction) -> Atomic {
    if has(instruction, "cas") {
        return Atomic::Swap;
    }
    match last_type(instruction) {
        "b32" | "u32" | "s32" => Atomic::Plain,
        _ if has(instruction, "exch") => Atomic::Plain,
        _ => Atomic::Loop,
    }
}

// In an instruction's `e`: the space that it names.
const GLOBAL: u32 = 0;
const SHARED: u32 = 1;
const GENERIC: u32 = 2;

// In an instruction's `f`, above the kind of the operation in shared memory and below the cache.
const EXCHANGE: u32 = 1 << 2;
const FLUSHES: u32 = 1 << 7;

/// A number that the host can update atomically.
trait Cell: Lane + PartialEq {
    /// Replaces the number at an address of the host, and yields what was there.
    ///
    /// # Safety
    ///
    /// - The number at `address` is mapped, aligned and writable.
    unsafe fn update(address: u64, f: impl Fn(Self) -> Self) -> Self;

    /// Zero for a subnormal number of single precision.
    fn flushed(self) -> Self {
        self
    }
}

macro_rules! cells {
    ($($number:ty, $bits:ty, $atomic:ty $(, $flush:expr)?;)*) => {$(
        impl Cell for $number {
            #[inline(always)]
            unsafe fn update(address: u64, f: impl Fn($number) -> $number) -> $number {
                // SAFETY: the caller's promise; other threads reach the number through atomics, or their program races.
                let cell = unsafe { <$atomic>::from_ptr(std::ptr::with_exposed_provenance_mut(address as usize)) };
                let mut old = cell.load(Ordering::Relaxed);
                loop {
                    let next = f(<$number>::read(old.into())).write() as $bits;
                    match cell.compare_exchange_weak(old, next, Ordering::SeqCst, Ordering::Relaxed) {
                        Ok(old) => return <$number>::read(old.into()),
                        Err(now) => old = now,
                    }
                }
            }

            $(
                fn flushed(self) -> $number {
                    $flush(self)
                }
            )?
        }
    )*};
}

cells! {
    u16, u16, AtomicU16;
    u32, u32, AtomicU32;
    i32, u32, AtomicU32;
    f32, u32, AtomicU32, super::float::flush;
    u64, u64, AtomicU64;
    i64, u64, AtomicU64;
    f64, u64, AtomicU64;
}

unsafe fn run<A: Address, T: Cell, F: Fn(T, T, T) -> T + Copy>(context: &mut Context, ins: &Ins) -> Flow {
    let f = function::<F>();
    let mask = context.mask;
    if mask == 0 {
        return Flow::Next;
    }
    // SAFETY: the decoder chose rows of these widths; `reach` vouches for each address.
    let changed = unsafe {
        let b: [T::Word; 32] = context.row(ins.b);
        let c: [T::Word; 32] = context.row(ins.c);
        let whole = addresses::<A>(context, ins);
        let mut old = [T::Word::default(); 32];
        let mut changed = false;
        let mut left = mask;
        while left != 0 {
            let first = whole[left.trailing_zeros() as usize];
            let (shared, lanes) = match ins.e {
                GLOBAL => (false, left),
                SHARED => (true, left),
                _ => {
                    let shared = window(first) == Window::Shared;
                    let same = (0..32).filter(|&lane| (window(whole[lane]) == Window::Shared) == shared);
                    (shared, same.fold(0, |lanes, lane| lanes | 1 << lane) & left)
                }
            };
            context.set_mask(lanes);
            let mut host = whole;
            repeat_active(&mut host, lanes);
            if shared {
                host.iter_mut().for_each(|address| *address &= memory::WINDOW - 1);
            }
            let bytes = size_of::<T>() as u64;
            let access = if ins.f & EXCHANGE != 0 { Access::Exchange } else { Access::Atomic };
            let reached = if shared {
                let offsets = host;
                let reached = memory::shared(context, ins, &mut host, bytes, access, true);
                if reached.is_ok() {
                    Atomic::from_code(ins.f).count(context, &offsets, bytes);
                }
                reached
            } else {
                if let Some(race) = context.race() {
                    race.acquire_global();
                    race.release_global();
                }
                memory::global(context, ins.f >> 8, &mut host, bytes, access)
            };
            if let Err(flow) = reached {
                return flow;
            }
            for lane in lanes_of(lanes) {
                let (b, c) = (T::read(b[lane]), T::read(c[lane]));
                let flushes = ins.f & FLUSHES != 0 && !shared;
                let next = |a: T| if flushes { f(a.flushed(), b.flushed(), c).flushed() } else { f(a, b, c) };
                let before = if shared {
                    let cell = std::ptr::with_exposed_provenance_mut::<T>(host[lane] as usize);
                    let before = cell.read();
                    cell.write(next(before));
                    before
                } else {
                    T::update(host[lane], next)
                };
                changed |= next(before).write() != before.write();
                old[lane] = before.write();
            }
            left &= !lanes;
        }
        context.set_mask(mask);
        context.set_row(ins.d, old);
        changed
    };
    // A compare-and-swap that failed, an exchange of a lock's value for itself: the lanes may be waiting.
    if !changed {
        wait_a_little(context);
    }
    Flow::Next
}
