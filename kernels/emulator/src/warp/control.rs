//! Control flow: `bra`, `brx.idx`, `call`, `ret`, `exit`, `trap`, `bar`.

use super::{How, has, last_type};
use crate::{
    module::{
        Class, Decoded, Decoder, Symbol, builtin, invalid,
        program::{Argument, Barrier, BarrierKind, Call, Callee, End, NONE},
        undefined,
    },
    ptx::ast::{Instruction, Operand},
};

/// The instruction ends a block.
pub(crate) fn is_control(instruction: &Instruction) -> bool {
    let how = super::instructions::find(instruction).map(|entry| entry.how);
    matches!(how, Some(How::Control))
}

/// Ends the current block with a control instruction, behind its guard.
pub(crate) fn decode(
    decoder: &mut Decoder<'_>,
    instruction: &Instruction,
    guard: Option<(u32, bool)>,
) -> Decoded<()> {
    let line = instruction.line;
    if instruction.opcode == "bra" {
        let [Operand::Name(target)] = &instruction.operands[..] else {
            return Err(decoder.wrong_count());
        };
        let target = decoder.label(target)?;
        let end = match guard {
            None => End::Jump(target),
            Some((predicate, negated)) => {
                let next = decoder.next_label();
                End::Branch { predicate, negated, target, next, join: NONE, counted: true }
            }
        };
        decoder.end_block(end, line);
        return Ok(());
    }
    // `bar.warp.sync` waits for lanes of its warp only.
    if instruction.modifiers.first().is_some_and(|word| word == "warp") {
        return decoder.in_place(instruction, guard);
    }
    let after = guard.map(|guard| decoder.skip(guard));
    match instruction.opcode.as_str() {
        "brx" => {
            let [index, Operand::Name(table)] = &instruction.operands[..] else {
                return Err(decoder.wrong_count());
            };
            let index = decoder.source::<u32>(index)?;
            let targets = decoder.targets(table)?;
            decoder.end_block(End::Switch { index, targets, join: NONE }, line);
        }
        "ret" if !decoder.is_entry() => {
            decoder.store_results()?;
            decoder.end_block(End::Return, line);
        }
        "ret" | "exit" => decoder.end_block(End::Exit, line),
        "trap" | "brkpt" => decoder.end_block(End::Trap, line),
        "call" => {
            let call = call(decoder, instruction)?;
            decoder.end_block(End::Call(Box::new(call)), line);
        }
        "bar" | "barrier" => {
            let barrier = barrier(decoder, instruction)?;
            decoder.end_block(End::Barrier(Box::new(barrier)), line);
        }
        _ => return Err(decoder.not_implemented()),
    }
    if let Some(after) = after {
        decoder.bind(after);
    }
    Ok(())
}

fn call(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded<Call> {
    let (results, rest) = match &instruction.operands[..] {
        [Operand::List(results), rest @ ..] => (&results[..], rest),
        rest => (&[][..], rest),
    };
    let (callee, arguments) = match rest {
        [Operand::Name(callee), Operand::List(arguments), ..] => (callee, &arguments[..]),
        [Operand::Name(callee), ..] => (callee, &[][..]),
        _ => return Err(decoder.wrong_count()),
    };
    let arguments = arguments.iter().map(|operand| argument(decoder, operand)).collect::<Decoded<_>>()?;
    let results = results.iter().map(|operand| argument(decoder, operand)).collect::<Decoded<_>>()?;
    let callee = if let Some(register) = decoder.find_register(callee) {
        if register.class != Class::Long {
            return Err(invalid("an indirect call needs a 64-bit register"));
        }
        Callee::Indirect(register.slot)
    } else if let Some(function) = decoder.kernelwide.function(callee) {
        Callee::Function(function)
    } else if let Some(builtin) = builtin(callee) {
        Callee::Builtin(builtin)
    } else {
        return Err(undefined(callee));
    };
    Ok(Call { callee, arguments, results, next: decoder.next_label() })
}

fn argument(decoder: &mut Decoder<'_>, operand: &Operand) -> Decoded<Argument> {
    match operand {
        Operand::Sink => Ok(Argument::Sink),
        Operand::Name(name) => {
            if let Some(register) = decoder.find_register(name) {
                return match register.class {
                    Class::Word(_) => Ok(Argument::Word(register.slot)),
                    Class::Long => Ok(Argument::Long(register.slot)),
                    Class::Predicate => Err(invalid("a predicate cannot be an argument")),
                    Class::Quad => Err(decoder.not_implemented()),
                };
            }
            match decoder.symbol(name)? {
                Symbol::Frame(offset) => Ok(Argument::Local(offset)),
                _ => Err(invalid(&format!("`{name}` cannot be an argument"))),
            }
        }
        // A constant in place of a .param variable: only 32 bits can be meant.
        operand => Ok(Argument::Word(decoder.source::<u32>(operand)?)),
    }
}

fn barrier(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded<Barrier> {
    let mut operands = &instruction.operands[..];
    let reduces = has(instruction, "red");
    let mut kind = BarrierKind::Sync;
    if has(instruction, "arrive") {
        kind = BarrierKind::Arrive;
    } else if reduces {
        let [result, between @ .., predicate] = operands else { return Err(decoder.wrong_count()) };
        operands = between;
        let (predicate, negated) = decoder.predicate(predicate)?;
        kind = if last_type(instruction) == "pred" || has(instruction, "pred") {
            let result = decoder.predicate(result)?.0;
            BarrierKind::Vote { predicate, negated, all: has(instruction, "and"), result }
        } else {
            BarrierKind::Count { predicate, negated, row: decoder.dest::<u32>(result)? }
        };
    } else if !has(instruction, "sync") {
        return Err(decoder.not_implemented());
    }
    let (index, count) = match operands {
        [index] => (decoder.source::<u32>(index)?, None),
        [index, count] => (decoder.source::<u32>(index)?, Some(decoder.source::<u32>(count)?)),
        _ => return Err(decoder.wrong_count()),
    };
    // `barrier` without `.aligned` lets the lanes of a warp come one by one.
    let aligned = instruction.opcode == "bar" || has(instruction, "aligned");
    Ok(Barrier { index, count, kind, aligned, next: decoder.next_label() })
}
