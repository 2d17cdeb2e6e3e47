//! Instructions of one lane, from a function of its values.
//!
//! Operands are the instruction's, destination first.

use super::{
    Decoded,
    decode::Decoder,
    program::{Ins, NONE},
};
use crate::{
    ptx::ast::{Instruction, Operand},
    warp::{
        Binary, Carrying, Compare, CompareSet, Constant, Lane, Predicates, Quaternary, Select, Ternary,
        Unary, Word,
    },
};

impl<'a> Decoder<'a> {
    /// Makes instructions that are executed seldom: their steps are compiled for the baseline alone.
    pub(crate) fn rare<'d>(&'d mut self) -> Rare<'d, 'a> {
        Rare(self)
    }

    /// `d = f(a)`
    pub(crate) fn unary<A: Lane, D: Lane, F: Fn(A) -> D + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let [d, a] = self.operands(instruction)?;
        let (d, a) = (self.dest::<D>(d)?, self.source::<A>(a)?);
        Ok(Ins { d, a, ..self.ins::<Unary<A, D, F>>() })
    }

    /// `d = f(a, b)`
    pub(crate) fn binary<A: Lane, B: Lane, D: Lane, F: Fn(A, B) -> D + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let [d, a, b] = self.operands(instruction)?;
        let (d, a, b) = (self.dest::<D>(d)?, self.source::<A>(a)?, self.source::<B>(b)?);
        Ok(Ins { d, a, b, ..self.ins::<Binary<A, B, D, F>>() })
    }

    /// `d = f(a, b, c)`
    pub(crate) fn ternary<A: Lane, B: Lane, C: Lane, D: Lane, F: Fn(A, B, C) -> D + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let [d, a, b, c] = self.operands(instruction)?;
        let (d, a) = (self.dest::<D>(d)?, self.source::<A>(a)?);
        let (b, c) = (self.source::<B>(b)?, self.source::<C>(c)?);
        Ok(Ins { d, a, b, c, ..self.ins::<Ternary<A, B, C, D, F>>() })
    }

    /// `d = f(a, b, c, x)`; operands that the instruction does not have are zero.
    pub(crate) fn with_constant<
        A: Lane,
        B: Lane,
        C: Lane,
        D: Lane,
        F: Fn(A, B, C, u64) -> D + Copy + 'static,
    >(
        &mut self,
        instruction: &Instruction,
        x: u64,
        _: F,
    ) -> Decoded {
        let zero = Operand::Integer(0);
        let operand = |index: usize| instruction.operands.get(index).unwrap_or(&zero);
        let (d, a) = (self.dest::<D>(operand(0))?, self.source::<A>(operand(1))?);
        let (b, c) = (self.source::<B>(operand(2))?, self.source::<C>(operand(3))?);
        Ok(Ins { d, a, b, c, x, ..self.rare_ins::<Constant<A, B, C, D, F>>() })
    }

    /// `(d, carry) = f(a, b, c, carry)`
    pub(crate) fn carrying<A: Lane, D: Lane, F: Fn(A, A, A, bool) -> (D, bool) + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        reads: bool,
        writes: bool,
        _: F,
    ) -> Decoded {
        let zero = Operand::Integer(0);
        let operand = |index: usize| instruction.operands.get(index).unwrap_or(&zero);
        let (d, a) = (self.dest::<D>(operand(0))?, self.source::<A>(operand(1))?);
        let (b, c) = (self.source::<A>(operand(2))?, self.source::<A>(operand(3))?);
        let x = u64::from(reads) | u64::from(writes) << 1;
        Ok(Ins { d, a, b, c, x, ..self.rare_ins::<Carrying<A, D, F>>() })
    }

    /// `d = f(a, b, c, e)`, for whoever fills in the operands.
    pub(crate) fn four<A: Lane, C: Lane, D: Lane, F: Fn(A, A, C, C) -> D + Copy + 'static>(
        &self,
        _: F,
    ) -> Ins {
        self.rare_ins::<Quaternary<A, C, D, F>>()
    }

    /// `d = f(a, b)` of predicates; `b` may be absent.
    pub(crate) fn predicates<F: Fn(u32, u32) -> u32 + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let (d, a, b) = match &instruction.operands[..] {
            [d, a] => (d, a, a),
            [d, a, b] => (d, a, b),
            _ => return Err(self.wrong_count()),
        };
        let (d, (a, not_a), (b, not_b)) = (self.predicate(d)?.0, self.predicate(a)?, self.predicate(b)?);
        let x = u64::from(not_a) | u64::from(not_b) << 1;
        Ok(Ins { d, a, b, x, ..self.rare_ins::<Predicates<F>>() })
    }

    /// A comparison of two sources into predicates.
    pub(crate) fn compare<A: Lane, F: Fn(A, A) -> bool + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        combine: Option<u64>,
        _: F,
    ) -> Decoded {
        let ins = self.ins::<Compare<A, F>>();
        self.compare_operands::<A>(instruction, combine, ins)
    }

    /// A comparison of two sources into a row of `truth` and zero.
    pub(crate) fn compare_set<A: Lane, D: Lane<Word = u32>, F: Fn(A, A) -> bool + Copy + 'static>(
        &mut self,
        instruction: &Instruction,
        combine: Option<u64>,
        truth: u32,
        _: F,
    ) -> Decoded {
        let [d, rest @ ..] = &instruction.operands[..] else { return Err(self.wrong_count()) };
        let d = self.dest::<D>(d)?;
        let ins = Ins { d, f: truth, ..self.rare_ins::<CompareSet<A, D, F>>() };
        self.compare_sources::<A>(rest, combine, ins)
    }

    /// The operands of a comparison, for an instruction whose step is chosen already.
    pub(crate) fn compare_operands<A: Lane>(
        &mut self,
        instruction: &Instruction,
        combine: Option<u64>,
        ins: Ins,
    ) -> Decoded {
        let [d, rest @ ..] = &instruction.operands[..] else { return Err(self.wrong_count()) };
        let (d, e) = match d {
            Operand::Pair(p, q) => {
                let e = if **q == Operand::Sink { NONE } else { self.predicate(q)?.0 };
                (self.predicate(p)?.0, e)
            }
            d => (self.predicate(d)?.0, NONE),
        };
        self.compare_sources::<A>(rest, combine, Ins { d, e, ..ins })
    }

    fn compare_sources<A: Lane>(&mut self, sources: &[Operand], combine: Option<u64>, ins: Ins) -> Decoded {
        let (a, b, third) = match sources {
            [a, b] if combine.is_none() => (a, b, None),
            [a, b, c] if combine.is_some() => (a, b, Some(c)),
            _ => return Err(self.wrong_count()),
        };
        let (a, b) = (self.source::<A>(a)?, self.source::<A>(b)?);
        let (c, negated) = third.map_or(Ok((0, false)), |c| self.predicate(c))?;
        let x = combine.map_or(0, |combine| combine | u64::from(negated) << 8);
        Ok(Ins { a, b, c, x, ..ins })
    }

    /// `d = c ? a : b`
    pub(crate) fn select<W: Word + Lane<Word = W>>(&mut self, instruction: &Instruction) -> Decoded {
        let [d, a, b, c] = self.operands(instruction)?;
        let (d, mut a, mut b) = (self.dest::<W>(d)?, self.source::<W>(a)?, self.source::<W>(b)?);
        let (c, negated) = self.predicate(c)?;
        if negated {
            std::mem::swap(&mut a, &mut b);
        }
        Ok(Ins { d, a, b, c, ..self.ins::<Select<W>>() })
    }
}

/// Makes instructions whose steps are compiled for the baseline alone.
pub(crate) struct Rare<'d, 'a>(&'d mut Decoder<'a>);

impl Rare<'_, '_> {
    /// `d = f(a)`
    pub(crate) fn unary<A: Lane, D: Lane, F: Fn(A) -> D + Copy + 'static>(
        self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let [d, a] = self.0.operands(instruction)?;
        let (d, a) = (self.0.dest::<D>(d)?, self.0.source::<A>(a)?);
        Ok(Ins { d, a, ..self.0.rare_ins::<Unary<A, D, F>>() })
    }

    /// `d = f(a, b)`
    pub(crate) fn binary<A: Lane, B: Lane, D: Lane, F: Fn(A, B) -> D + Copy + 'static>(
        self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let [d, a, b] = self.0.operands(instruction)?;
        let (d, a, b) = (self.0.dest::<D>(d)?, self.0.source::<A>(a)?, self.0.source::<B>(b)?);
        Ok(Ins { d, a, b, ..self.0.rare_ins::<Binary<A, B, D, F>>() })
    }

    /// `d = f(a, b, c)`
    pub(crate) fn ternary<A: Lane, B: Lane, C: Lane, D: Lane, F: Fn(A, B, C) -> D + Copy + 'static>(
        self,
        instruction: &Instruction,
        _: F,
    ) -> Decoded {
        let [d, a, b, c] = self.0.operands(instruction)?;
        let (d, a) = (self.0.dest::<D>(d)?, self.0.source::<A>(a)?);
        let (b, c) = (self.0.source::<B>(b)?, self.0.source::<C>(c)?);
        Ok(Ins { d, a, b, c, ..self.0.rare_ins::<Ternary<A, B, C, D, F>>() })
    }

    /// A comparison of two sources into predicates.
    pub(crate) fn compare<A: Lane, F: Fn(A, A) -> bool + Copy + 'static>(
        self,
        instruction: &Instruction,
        combine: Option<u64>,
        _: F,
    ) -> Decoded {
        let ins = self.0.rare_ins::<Compare<A, F>>();
        self.0.compare_operands::<A>(instruction, combine, ins)
    }
}
