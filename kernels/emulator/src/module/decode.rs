//! A function's body, decoded once: names become rows, predicates, addresses and blocks.

use std::{collections::HashMap, sync::Arc};

use super::{
    LoadError,
    program::{Block, End, Fill, Function, Ins, NONE, Step},
    symbols::{Kernelwide, Symbol},
};
use crate::{
    fault::Place,
    ptx::ast::{self, AddressBase, Instruction, Operand, Space, Statement, Variable},
    warp::{self, Body, Level, rare_step, step},
};

/// An instruction, or why there is none.
pub(crate) type Decoded<T = Ins> = Result<T, LoadError>;

/// What a register holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Class {
    /// One bit.
    Predicate,
    /// Up to 32 bits; the number says how many were declared.
    Word(u8),
    /// 64 bits.
    Long,
    /// 128 bits, as two rows of 64.
    Quad,
}

/// A register's place: its row, or its number among the predicates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Register {
    pub(crate) class: Class,
    pub(crate) slot: u32,
}

/// What a memory operand starts from.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Base {
    /// A register.
    Register(Register),
    /// A variable at a fixed address of its space.
    Fixed(Space, u64),
    /// A variable of the running function's own local memory.
    Frame(u32),
    /// A parameter of the kernel.
    Param(u32),
}

pub(super) enum Name {
    Register(Register),
    /// `%r<10>`: places are given out on first use, and kept by number, since a program may declare billions.
    Family {
        class: Class,
        count: u32,
        slots: HashMap<u32, u32>,
    },
    Symbol(Symbol),
    Label(u32),
    Targets(Vec<String>),
    Prototype,
}

/// What decodes one function.
pub(crate) struct Decoder<'a> {
    pub(crate) level: Level,
    capability: (u32, u32),
    /// The kernel's symbols and the count of its caches.
    pub(crate) kernelwide: &'a mut Kernelwide,
    /// The instruction's words, for messages.
    pub(super) word: String,
    pub(super) function: Function,
    files: &'a [ast::File],
    pub(super) entry: bool,
    pub(super) scopes: Vec<HashMap<String, Name>>,
    pub(super) constants: HashMap<Fill, u32>,
    /// Block of each label; [`NONE`] until it is met.
    labels: Vec<u32>,
    location: Option<ast::Loc>,
    /// Instructions of the block being built, and where it starts.
    block_start: usize,
    block_count: u32,
    /// The block being built has ended.
    ended: bool,
    /// Places of the blocks' ends.
    ends: Vec<Place>,
    /// Registers that a function returns, and the variables where its caller finds them.
    results: Vec<Instruction>,
}

/// Decodes a function of `kernelwide`'s kernel.
pub(crate) fn decode(
    function: &ast::Function,
    files: &[ast::File],
    kernelwide: &mut Kernelwide,
    level: Level,
    capability: (u32, u32),
) -> Decoded<Function> {
    let mut decoder = Decoder {
        level,
        capability,
        kernelwide,
        word: String::new(),
        function: Function { name: function.name.clone(), ..Function::default() },
        files,
        entry: function.entry,
        scopes: vec![HashMap::new()],
        constants: HashMap::new(),
        labels: Vec::new(),
        location: None,
        block_start: 0,
        block_count: 0,
        ended: false,
        ends: Vec::new(),
        results: Vec::new(),
    };
    decoder.parameters(function)?;
    let body = function.body.as_deref().unwrap_or_default();
    if takes_stack(body) {
        decoder.start_stack(function.line)?;
    }
    decoder.statements(body)?;
    decoder.finish(function.line)
}

impl<'a> Decoder<'a> {
    fn parameters(&mut self, function: &ast::Function) -> Decoded<()> {
        if self.entry {
            let mut offset = 0;
            for param in &function.params {
                let (bytes, align) = size(param)?;
                offset = align_up(offset, align);
                self.declare(&param.name, Name::Symbol(Symbol::Param(offset as u32)));
                offset += bytes;
            }
            return Ok(());
        }
        for (variables, results) in [(&function.returns, true), (&function.params, false)] {
            for variable in variables {
                let offset = if variable.space == Space::Reg {
                    self.register_parameter(variable, results)?
                } else {
                    self.frame_variable(variable)?
                };
                let bytes = size(variable)?.0 as u32;
                if bytes == 0 {
                    return Err(unsupported(&format!("`{}`, a parameter without a size,", variable.name)));
                }
                if results {
                    self.function.returns.push((offset, bytes));
                } else {
                    self.function.params.push((offset, bytes));
                }
            }
        }
        Ok(())
    }

    /// A parameter in a register comes and goes through a variable, which no name in the source can be.
    fn register_parameter(&mut self, variable: &Variable, is_result: bool) -> Decoded<u32> {
        self.variable(variable)?;
        let hidden = Variable { name: format!("{} in memory", variable.name), ..variable.clone() };
        let offset = self.frame_variable(&hidden)?;
        let register = Operand::Name(variable.name.clone());
        let address = Operand::Address { base: AddressBase::Name(hidden.name), offset: 0 };
        let bits = 8 * size(variable)?.0;
        let (opcode, operands) =
            if is_result { ("st", vec![address, register]) } else { ("ld", vec![register, address]) };
        let transfer = Instruction {
            predicate: None,
            opcode: opcode.into(),
            modifiers: vec!["param".into(), format!("b{bits}")],
            operands,
            line: variable.line,
        };
        if is_result {
            self.results.push(transfer);
        } else {
            let ins = warp::decode(self, &transfer)?;
            self.push(ins, variable.line);
        }
        Ok(offset)
    }

    /// Stores the results that are in registers, before the function returns.
    pub(crate) fn store_results(&mut self) -> Decoded<()> {
        for transfer in self.results.clone() {
            let ins = warp::decode(self, &transfer)?;
            self.push(ins, transfer.line);
        }
        Ok(())
    }

    /// The function takes memory from the stack while it runs: the variable that says how much.
    fn start_stack(&mut self, line: u32) -> Decoded<()> {
        let offset = align_up(u64::from(self.function.local_bytes), 4) as u32;
        self.function.local_bytes = offset + 4;
        self.function.taken = Some(offset);
        let ins = Ins { f: offset, ..self.rare_ins::<warp::StackStart>() };
        self.push(ins, line);
        Ok(())
    }

    /// The variable that says what the function has taken from the stack.
    pub(crate) fn taken(&self) -> u32 {
        self.function.taken.unwrap_or(0)
    }

    fn statements(&mut self, statements: &[Statement]) -> Decoded<()> {
        // Labels may be used before they are met.
        for statement in statements {
            match statement {
                Statement::Label(name) => {
                    let label = self.new_label();
                    self.declare(name, Name::Label(label));
                }
                Statement::BranchTargets { name, targets } => {
                    self.declare(name, Name::Targets(targets.clone()));
                }
                Statement::CallTargets { name, .. } | Statement::CallPrototype { name, .. } => {
                    self.declare(name, Name::Prototype);
                }
                _ => {}
            }
        }
        for statement in statements {
            match statement {
                Statement::Label(name) => {
                    if let Some(&Name::Label(label)) = self.look_up(name) {
                        self.bind(label);
                    }
                }
                Statement::Variable(variable) => {
                    self.variable(variable).map_err(|error| at(error, variable.line, &self.function.name))?;
                }
                Statement::Instruction(instruction) => {
                    self.instruction(instruction)
                        .map_err(|error| at(error, instruction.line, &self.function.name))?;
                }
                Statement::Block(inner) => {
                    self.scopes.push(HashMap::new());
                    self.statements(inner)?;
                    self.scopes.pop();
                }
                Statement::Loc(loc) => self.location = Some(*loc),
                _ => {}
            }
        }
        Ok(())
    }

    fn variable(&mut self, variable: &Variable) -> Decoded<()> {
        match variable.space {
            Space::Reg => {
                let class = class_of(&variable.ty)?;
                if let Some(lanes) = variable.vector {
                    for letter in ["x", "y", "z", "w"].iter().take(lanes as usize) {
                        let slot = self.new_slot(class);
                        self.declare(
                            &format!("{}.{letter}", variable.name),
                            Name::Register(Register { class, slot }),
                        );
                    }
                } else if let Some(count) = variable.range {
                    self.declare(&variable.name, Name::Family { class, count, slots: HashMap::new() });
                } else {
                    let slot = self.new_slot(class);
                    self.declare(&variable.name, Name::Register(Register { class, slot }));
                }
            }
            Space::Local | Space::Param => {
                self.frame_variable(variable)?;
            }
            // They were laid out with the module's.
            Space::Shared | Space::Global | Space::Const => {
                let symbol = self
                    .kernelwide
                    .local_symbol(&self.function.name, &variable.name)
                    .ok_or_else(|| unsupported(&format!("`{}` declared inside a function", variable.name)))?;
                self.declare(&variable.name, Name::Symbol(symbol));
            }
            Space::Sreg | Space::Tex => {
                return Err(unsupported(&format!("variables in .{:?} space", variable.space).to_lowercase()));
            }
        }
        Ok(())
    }

    /// Gives a variable room in the function's part of local memory.
    fn frame_variable(&mut self, variable: &Variable) -> Decoded<u32> {
        let (bytes, align) = size(variable)?;
        let offset = align_up(u64::from(self.function.local_bytes), align.max(4));
        let end = offset + align_up(bytes, 4);
        if end > MOST_LOCAL {
            let name = &self.function.name;
            return Err(invalid(&format!(
                "`{name}` needs {end} bytes of local memory, more than {MOST_LOCAL}"
            )));
        }
        let offset = offset as u32;
        self.function.local_bytes = end as u32;
        self.declare(&variable.name, Name::Symbol(Symbol::Frame(offset)));
        Ok(offset)
    }

    fn instruction(&mut self, instruction: &Instruction) -> Decoded<()> {
        self.word.clear();
        self.word.push_str(&instruction.opcode);
        for modifier in &instruction.modifiers {
            self.word.push('.');
            self.word.push_str(modifier);
        }
        if self.ended {
            // Nothing jumps here unless a label comes first.
            self.start_block();
        }
        let guard = match &instruction.predicate {
            None => None,
            Some(guard) => Some((self.predicate_named(&guard.register)?, guard.negated)),
        };
        if warp::control::is_control(instruction) {
            return warp::control::decode(self, instruction, guard);
        }
        self.in_place(instruction, guard)
    }

    /// Adds an instruction that does not end the block.
    pub(crate) fn in_place(&mut self, instruction: &Instruction, guard: Option<(u32, bool)>) -> Decoded<()> {
        let line = instruction.line;
        // An operation that waits for other lanes starts a block, to be executed again when they are there.
        if warp::exchange::waits(instruction) {
            let after = guard.map(|guard| self.skip(guard));
            self.split();
            let ins = warp::decode(self, instruction)?;
            self.push(ins, line);
            self.block_count += 1;
            if let Some(after) = after {
                self.bind(after);
            }
            return Ok(());
        }
        let guard = guard.map(|(predicate, negated)| warp::Guard { predicate, negated });
        if let Some(guard) = &guard {
            self.push(guard.begin(), line);
        }
        match warp::elements(self, instruction)? {
            // Without active lanes all but the first are executed, and do nothing.
            Some(elements) => {
                for element in &elements {
                    let ins = warp::decode(self, element)?;
                    self.push(ins, line);
                }
            }
            None => {
                let ins = warp::decode(self, instruction)?;
                self.push(ins, line);
            }
        }
        if let Some(guard) = &guard {
            self.push(guard.end(), line);
        }
        self.block_count += 1;
        Ok(())
    }

    fn push(&mut self, ins: Ins, line: u32) {
        let place = self.place(line);
        self.function.code.push(ins);
        self.function.places.push(place);
    }

    fn place(&self, line: u32) -> Place {
        let source = self.location.as_ref().and_then(|location| {
            let (file, line, column) =
                location.inlined_at.map_or((location.file, location.line, location.column), |_| {
                    (location.file, location.line, location.column)
                });
            let file = self.files.iter().find(|known| known.index == file)?;
            Some((file.name.clone(), line, column))
        });
        Place { function: self.function.name.clone(), ptx_line: line, instruction: self.word.clone(), source }
    }

    // Blocks.

    /// A label that nothing in the source can name.
    pub(crate) fn new_label(&mut self) -> u32 {
        self.labels.push(NONE);
        self.labels.len() as u32 - 1
    }

    /// The next instruction is what jumps to `label` reach.
    pub(crate) fn bind(&mut self, label: u32) {
        if self.ended {
            self.start_block();
        } else {
            self.split();
        }
        self.labels[label as usize] = self.function.blocks.len() as u32;
    }

    /// Starts a new block, unless the current one is still empty.
    fn split(&mut self) {
        if self.function.code.len() > self.block_start {
            let next = self.function.blocks.len() as u32 + 1;
            let next = self.fixed_label(next);
            self.end_block(End::Jump(next), 0);
            self.start_block();
        }
    }

    /// Jumps over what follows, up to the returned label, in lanes where the guard does not hold.
    pub(crate) fn skip(&mut self, (predicate, negated): (u32, bool)) -> u32 {
        let after = self.new_label();
        let next = self.fixed_label(self.function.blocks.len() as u32 + 1);
        self.end_block(
            End::Branch { predicate, negated: !negated, target: after, next, join: NONE, counted: false },
            0,
        );
        self.start_block();
        after
    }

    /// The label of the block behind the current one.
    pub(crate) fn next_label(&mut self) -> u32 {
        self.fixed_label(self.function.blocks.len() as u32 + 1)
    }

    fn fixed_label(&mut self, block: u32) -> u32 {
        self.labels.push(block);
        self.labels.len() as u32 - 1
    }

    /// Ends the current block. The targets in `end` are labels until the function is finished.
    pub(crate) fn end_block(&mut self, end: End, line: u32) {
        let place = self.place(line);
        let counted = u32::from(line != 0);
        self.function.blocks.push(Block {
            start: self.block_start as u32,
            stop: self.function.code.len() as u32,
            count: self.block_count + counted,
            place: self.ends.len() as u32,
            end,
        });
        self.ends.push(place);
        self.ended = true;
    }

    fn start_block(&mut self) {
        self.block_start = self.function.code.len();
        self.block_count = 0;
        self.ended = false;
    }

    fn finish(mut self, line: u32) -> Decoded<Function> {
        if !self.ended {
            self.store_results()?;
            self.word = "ret".into();
            self.end_block(if self.entry { End::Exit } else { End::Return }, 0);
        }
        let blocks = self.function.blocks.len() as u32;
        let labels = std::mem::take(&mut self.labels);
        let mut missing = false;
        let mut target = |label: &mut u32| {
            *label = labels[*label as usize];
            missing |= *label >= blocks;
        };
        for block in &mut self.function.blocks {
            match &mut block.end {
                End::Jump(label) => target(label),
                End::Branch { target: label, next, .. } => {
                    target(label);
                    target(next);
                }
                End::Switch { targets, .. } => targets.iter_mut().for_each(&mut target),
                End::Call(call) => target(&mut call.next),
                End::Barrier(barrier) => target(&mut barrier.next),
                End::Exit | End::Return | End::Trap => {}
            }
            block.place += self.function.code.len() as u32;
        }
        if missing {
            // The last instruction falls through, or a label ends the function: what follows is an implicit return.
            let end = if self.entry { End::Exit } else { End::Return };
            let stop = self.function.code.len() as u32;
            let place = stop + self.ends.len() as u32;
            self.function.blocks.push(Block { start: stop, stop, count: 0, place, end });
            self.ends.push(Place { ptx_line: line, ..Place::default() });
        }
        self.function.places.append(&mut self.ends);
        super::flow::find_joins(&mut self.function.blocks);
        self.function.fills = self.constants.into_iter().map(|(fill, slot)| (slot, fill)).collect();
        self.function.fills.sort_by_key(|(slot, _)| *slot);
        Ok(self.function)
    }

    /// An instruction of a body, without operands yet.
    pub(crate) fn ins<B: Body>(&self) -> Ins {
        Ins { step: step::<B>(self.level), d: 0, a: 0, b: 0, c: 0, e: 0, f: 0, x: 0 }
    }

    /// The same, compiled for the baseline alone.
    pub(crate) fn rare_ins<B: Body>(&self) -> Ins {
        self.plain(rare_step::<B>())
    }

    /// An instruction of a step that needs no vector unit.
    pub(crate) fn plain(&self, step: Step) -> Ins {
        Ins { step, d: 0, a: 0, b: 0, c: 0, e: 0, f: 0, x: 0 }
    }

    /// Exactly `N` operands.
    pub(crate) fn operands<'i, const N: usize>(
        &self,
        instruction: &'i Instruction,
    ) -> Decoded<&'i [Operand; N]> {
        instruction.operands[..].try_into().map_err(|_| self.wrong_count())
    }

    pub(crate) fn wrong_count(&self) -> LoadError {
        invalid(&format!("`{}` has a wrong number of operands", self.word))
    }

    /// The instruction is valid PTX, and this word of it is not implemented.
    pub(crate) fn not_implemented(&self) -> LoadError {
        unsupported(&format!("`{}`", self.word))
    }

    /// The instruction's opcode and modifiers.
    pub(crate) fn word(&self) -> &str {
        &self.word
    }

    /// The compute capability of the emulated card.
    pub(crate) fn capability(&self) -> (u32, u32) {
        self.capability
    }

    /// Keeps a value for an instruction, which finds it with `program::kept` by this number.
    pub(crate) fn keep<T: Send + Sync + 'static>(&mut self, value: T) -> u64 {
        let value = Arc::new(value);
        let address = Arc::as_ptr(&value).expose_provenance() as u64;
        self.function.kept.push(value);
        address
    }

    /// The function is a kernel.
    pub(crate) fn is_entry(&self) -> bool {
        self.entry
    }
}

pub(super) fn new_slot(function: &mut Function, class: Class) -> u32 {
    match class {
        Class::Predicate => {
            function.predicates += 1;
            function.predicates - 1
        }
        Class::Word(_) => {
            function.row_bytes += 128;
            function.row_bytes - 128
        }
        Class::Long => {
            function.row_bytes += 256;
            function.row_bytes - 256
        }
        Class::Quad => {
            function.row_bytes += 512;
            function.row_bytes - 512
        }
    }
}

/// The body has an instruction that takes memory from the stack.
fn takes_stack(statements: &[Statement]) -> bool {
    statements.iter().any(|statement| match statement {
        Statement::Instruction(instruction) => {
            matches!(instruction.opcode.as_str(), "alloca" | "stacksave" | "stackrestore")
        }
        Statement::Block(inner) => takes_stack(inner),
        _ => false,
    })
}

/// The class of a register type.
fn class_of(ty: &str) -> Decoded<Class> {
    Ok(match ty {
        "pred" => Class::Predicate,
        "b128" => Class::Quad,
        _ => match type_bytes(ty)? {
            bytes @ ..=4 => Class::Word(bytes as u8 * 8),
            _ => Class::Long,
        },
    })
}

/// Bytes of a PTX type.
pub(crate) fn type_bytes(ty: &str) -> Decoded<u64> {
    Ok(match ty {
        "b8" | "u8" | "s8" | "e4m3" | "e5m2" => 1,
        "b16" | "u16" | "s16" | "f16" | "bf16" | "e4m3x2" | "e5m2x2" => 2,
        "b32" | "u32" | "s32" | "f32" | "f16x2" | "bf16x2" | "tf32" | "u16x2" | "s16x2" => 4,
        "b64" | "u64" | "s64" | "f64" => 8,
        "b128" => 16,
        _ => return Err(unsupported(&format!("type .{ty}"))),
    })
}

/// Local memory that a thread can have.
const MOST_LOCAL: u64 = 512 << 10;
/// Bytes that no variable has, and that can be added up without care.
const MOST_BYTES: u64 = 1 << 40;
/// An alignment that no variable has.
const MOST_ALIGNMENT: u64 = 1 << 20;

/// Bytes and alignment of a variable. An array without a size has none.
pub(crate) fn size(variable: &Variable) -> Decoded<(u64, u64)> {
    let element = type_bytes(&variable.ty)? * u64::from(variable.vector.unwrap_or(1));
    let mut bytes = element;
    for dimension in &variable.dimensions {
        bytes = bytes
            .checked_mul(dimension.unwrap_or(0))
            .ok_or_else(|| invalid(&format!("`{}` is too large", variable.name)))?;
    }
    if bytes > MOST_BYTES {
        return Err(invalid(&format!("`{}` is too large", variable.name)));
    }
    let align = variable.align.map_or(element, u64::from);
    if !align.is_power_of_two() || align > MOST_ALIGNMENT {
        return Err(invalid(&format!(
            "`{}` has an alignment that is no power of two, or too large",
            variable.name
        )));
    }
    Ok((bytes, align))
}

pub(crate) fn align_up(offset: u64, align: u64) -> u64 {
    (offset + align - 1) & !(align - 1)
}

pub(crate) fn invalid(message: &str) -> LoadError {
    LoadError::Invalid(message.to_owned())
}

pub(crate) fn unsupported(message: &str) -> LoadError {
    LoadError::Unsupported(format!("{message} is not implemented"))
}

/// Adds the place to a message.
fn at(error: LoadError, line: u32, function: &str) -> LoadError {
    let place = |message: String| format!("PTX line {line}, in {function}: {message}");
    match error {
        LoadError::Invalid(message) => LoadError::Invalid(place(message)),
        LoadError::Unsupported(message) => LoadError::Unsupported(place(message)),
        LoadError::OutOfMemory(message) => LoadError::OutOfMemory(place(message)),
    }
}
