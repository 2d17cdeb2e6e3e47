//! Steps that compute each lane by itself, made from a function of one lane.
//!
//! The function is a closure without captures, so its type says all; the loop over the lanes is compiled to vector code.

use std::marker::PhantomData;

use super::{
    Context,
    context::{Lane, Word},
    level::Body,
};
use crate::module::program::{Flow, Ins};

/// The value of a closure type without captures.
#[inline(always)]
pub(super) fn function<F: Copy>() -> F {
    const { assert!(size_of::<F>() == 0, "steps have no captures") };
    // SAFETY: `F` has no bytes, and a value of it existed when its step was chosen.
    unsafe { std::ptr::NonNull::<F>::dangling().read() }
}

macro_rules! row_of {
    (|$lane:ident| $value:expr) => {{
        let mut row = [Default::default(); 32];
        for $lane in 0..32 {
            row[$lane] = $value;
        }
        row
    }};
}

/// `d = f(a)`
pub(crate) struct Unary<A, D, F>(PhantomData<(A, D, F)>);

impl<A: Lane, D: Lane, F: Fn(A) -> D + Copy> Body for Unary<A, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [A::Word; 32] = context.row(ins.a);
            context.set_row::<D::Word>(ins.d, row_of!(|lane| f(A::read(a[lane])).write()));
        }
        Flow::Next
    }
}

/// `d = f(a, b)`
pub(crate) struct Binary<A, B, D, F>(PhantomData<(A, B, D, F)>);

impl<A: Lane, B: Lane, D: Lane, F: Fn(A, B) -> D + Copy> Body for Binary<A, B, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [A::Word; 32] = context.row(ins.a);
            let b: [B::Word; 32] = context.row(ins.b);
            context.set_row::<D::Word>(ins.d, row_of!(|lane| f(A::read(a[lane]), B::read(b[lane])).write()));
        }
        Flow::Next
    }
}

/// `d = f(a, b, c)`
pub(crate) struct Ternary<A, B, C, D, F>(PhantomData<(A, B, C, D, F)>);

impl<A: Lane, B: Lane, C: Lane, D: Lane, F: Fn(A, B, C) -> D + Copy> Body for Ternary<A, B, C, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [A::Word; 32] = context.row(ins.a);
            let b: [B::Word; 32] = context.row(ins.b);
            let c: [C::Word; 32] = context.row(ins.c);
            context.set_row::<D::Word>(
                ins.d,
                row_of!(|lane| f(A::read(a[lane]), B::read(b[lane]), C::read(c[lane])).write()),
            );
        }
        Flow::Next
    }
}

/// `d = f(a, b, c, e)`
pub(crate) struct Quaternary<A, C, D, F>(PhantomData<(A, C, D, F)>);

impl<A: Lane, C: Lane, D: Lane, F: Fn(A, A, C, C) -> D + Copy> Body for Quaternary<A, C, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [A::Word; 32] = context.row(ins.a);
            let b: [A::Word; 32] = context.row(ins.b);
            let c: [C::Word; 32] = context.row(ins.c);
            let e: [C::Word; 32] = context.row(ins.e);
            context.set_row::<D::Word>(
                ins.d,
                row_of!(
                    |lane| f(A::read(a[lane]), A::read(b[lane]), C::read(c[lane]), C::read(e[lane])).write()
                ),
            );
        }
        Flow::Next
    }
}

/// `d = f(a, b)` of predicates, as masks of lanes.
pub(crate) struct Predicates<F>(PhantomData<F>);

impl<F: Fn(u32, u32) -> u32 + Copy> Body for Predicates<F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose predicates. `x` says which of them are negated.
        unsafe {
            let a = context.predicate(ins.a) ^ 0u32.wrapping_sub(ins.x as u32 & 1);
            let b = context.predicate(ins.b) ^ 0u32.wrapping_sub(ins.x as u32 >> 1 & 1);
            context.set_predicate(ins.d, f(a, b));
        }
        Flow::Next
    }
}

/// `d = f(a, b, c, x)`, with a constant of the instruction.
pub(crate) struct Constant<A, B, C, D, F>(PhantomData<(A, B, C, D, F)>);

impl<A: Lane, B: Lane, C: Lane, D: Lane, F: Fn(A, B, C, u64) -> D + Copy> Body for Constant<A, B, C, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [A::Word; 32] = context.row(ins.a);
            let b: [B::Word; 32] = context.row(ins.b);
            let c: [C::Word; 32] = context.row(ins.c);
            context.set_row::<D::Word>(
                ins.d,
                row_of!(|lane| f(A::read(a[lane]), B::read(b[lane]), C::read(c[lane]), ins.x).write()),
            );
        }
        Flow::Next
    }
}

/// `d = f(a, b, c, carry)`, where `f` also says the next carry; the instruction's `x` bit 0 asks to read it, bit 1 to
/// write it.
pub(crate) struct Carrying<A, D, F>(PhantomData<(A, D, F)>);

impl<A: Lane, D: Lane, F: Fn(A, A, A, bool) -> (D, bool) + Copy> Body for Carrying<A, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let f = function::<F>();
        // SAFETY: the decoder chose rows of these widths.
        unsafe {
            let a: [A::Word; 32] = context.row(ins.a);
            let b: [A::Word; 32] = context.row(ins.b);
            let c: [A::Word; 32] = context.row(ins.c);
            let carry = if ins.x & 1 != 0 { context.carry } else { 0 };
            let mut row = [D::Word::default(); 32];
            let mut next = 0;
            for lane in 0..32 {
                let (value, out) =
                    f(A::read(a[lane]), A::read(b[lane]), A::read(c[lane]), carry >> lane & 1 != 0);
                row[lane] = value.write();
                next |= u32::from(out) << lane;
            }
            context.set_row::<D::Word>(ins.d, row);
            if ins.x & 2 != 0 {
                context.carry = (context.carry & !context.mask) | (next & context.mask);
            }
        }
        Flow::Next
    }
}

/// Predicate `d`, and its complement in predicate `e` unless that is [`crate::module::program::NONE`]:
/// `f(a, b)`, combined with predicate `c` as `x` says.
pub(crate) struct Compare<A, F>(PhantomData<(A, F)>);

impl<A: Lane, F: Fn(A, A) -> bool + Copy> Body for Compare<A, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of this width, and predicates.
        unsafe {
            let found = compare::<A, F>(context, ins);
            super::compare::set_results(context, ins, found);
        }
        Flow::Next
    }
}

/// Row `d`: all bits or 1.0 where `f(a, b)`, combined with predicate `c` as `x` says; else 0.
pub(crate) struct CompareSet<A, D, F>(PhantomData<(A, D, F)>);

impl<A: Lane, D: Lane<Word = u32>, F: Fn(A, A) -> bool + Copy> Body for CompareSet<A, D, F> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of this width, and predicates.
        unsafe {
            let found = compare::<A, F>(context, ins);
            let found = super::compare::combine(context, ins, found);
            let truth = ins.f;
            context.set_row::<u32>(ins.d, row_of!(|lane| if found >> lane & 1 != 0 { truth } else { 0 }));
        }
        Flow::Next
    }
}

#[inline(always)]
unsafe fn compare<A: Lane, F: Fn(A, A) -> bool + Copy>(context: &Context, ins: &Ins) -> u32 {
    let f = function::<F>();
    // SAFETY: the caller's promise.
    let (a, b): ([A::Word; 32], [A::Word; 32]) = unsafe { (context.row(ins.a), context.row(ins.b)) };
    let mut found = 0;
    for lane in 0..32 {
        found |= u32::from(f(A::read(a[lane]), A::read(b[lane]))) << lane;
    }
    found
}

/// `d = c ? a : b`, with predicate `c`.
pub(crate) struct Select<W>(PhantomData<W>);

impl<W: Word> Body for Select<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of this width, and a predicate.
        unsafe {
            let a: [W; 32] = context.row(ins.a);
            let b: [W; 32] = context.row(ins.b);
            let chosen = context.predicate(ins.c);
            context.set_row::<W>(
                ins.d,
                row_of!(|lane| W::blend(0u32.wrapping_sub(chosen >> lane & 1), a[lane], b[lane])),
            );
        }
        Flow::Next
    }
}
