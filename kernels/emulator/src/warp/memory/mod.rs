//! Loads and stores of every space.
//!
//! `address` finds the lanes' addresses; `space`, `global` and `shared` check them, count what they cost and find the
//! bytes on the host; `transfer` moves the bytes.

mod address;
mod global;
mod init;
mod shared;
mod space;
mod transfer;

pub(crate) use address::{Address, WINDOW, Window, addresses, repeat_active, window};
pub(crate) use address::{GENERIC_LOCAL, GENERIC_PARAM, GENERIC_SHARED};
pub(crate) use global::global;
pub(crate) use shared::{Atomic, row_passes, shared};
pub(crate) use transfer::wait_a_little;

use super::{Context, Word, has, last_type};
use crate::{
    fault::Access,
    module::{
        Base, Class, Decoded, Decoder, Register,
        program::{Flow, Ins, NONE},
        type_bytes,
    },
    ptx::ast::{self, Instruction, Operand},
};
use space::{Constant, Frame, Generic, Global, Local, Param, Params, Shared};
use transfer::{Load, LoadAny, LoadParam, LoadShared, Store, StoreAny};

/// Decodes `ld`, `st` and what needs no action here.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    match instruction.opcode.as_str() {
        "ld" | "ldu" => transfer(decoder, instruction, Access::Load),
        "st" => transfer(decoder, instruction, Access::Store),
        // Memory is coherent here and accesses are executed in order: only the host's threads must be fenced.
        "membar" | "fence" => Ok(decoder.plain(fence)),
        _ => Ok(decoder.plain(nothing)),
    }
}

unsafe fn fence(_: &mut Context, _: &Ins) -> Flow {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    Flow::Next
}

unsafe fn nothing(_: &mut Context, _: &Ins) -> Flow {
    Flow::Next
}

/// The space that an instruction names, or `None` for a generic address.
pub(crate) fn space_of(instruction: &Instruction) -> Option<ast::Space> {
    instruction.modifiers.iter().find_map(|word| match word.split("::").next()? {
        "global" => Some(ast::Space::Global),
        "shared" => Some(ast::Space::Shared),
        "local" => Some(ast::Space::Local),
        "const" => Some(ast::Space::Const),
        "param" => Some(ast::Space::Param),
        _ => None,
    })
}

/// Where an instruction finds its lanes' addresses, and in which space they are.
pub(crate) struct Place {
    /// The row of addresses; [`NONE`] for addresses that the frame fixes.
    pub(crate) row: u32,
    pub(crate) long: bool,
    /// What to add.
    pub(crate) offset: u64,
    pub(crate) space: Target,
}

/// The space that an access goes to, as far as it is known before it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Global,
    Constant,
    Shared,
    Local,
    /// The running function's own local memory, at the same offset in each lane.
    Frame,
    /// A kernel's parameters, at the same offset in each lane.
    Params,
    /// A kernel's parameters, by address.
    Param,
    Generic,
}

/// Resolves the address operand of an instruction.
pub(crate) fn place(
    decoder: &mut Decoder<'_>,
    instruction: &Instruction,
    operand: &Operand,
) -> Decoded<Place> {
    let (base, offset) = decoder.address(operand)?;
    let space = space_of(instruction);
    Ok(match base {
        Base::Register(Register { class, slot }) => {
            let space = match space {
                None => Target::Generic,
                Some(ast::Space::Global) => Target::Global,
                Some(ast::Space::Const) => Target::Constant,
                Some(ast::Space::Shared) => Target::Shared,
                Some(ast::Space::Param) if decoder.is_entry() => Target::Param,
                Some(_) => Target::Local,
            };
            Place { row: slot, long: class == Class::Long, offset: offset as u64, space }
        }
        Base::Fixed(space, address) => {
            let space = match space {
                ast::Space::Shared => Target::Shared,
                ast::Space::Const => Target::Constant,
                _ => Target::Global,
            };
            let long = space != Target::Shared;
            let row = decoder.constant(long, address);
            Place { row, long, offset: offset as u64, space }
        }
        Base::Frame(at) => Place {
            row: NONE,
            long: false,
            offset: u64::from(at).wrapping_add_signed(offset),
            space: Target::Frame,
        },
        Base::Param(at) => Place {
            row: NONE,
            long: false,
            offset: u64::from(at).wrapping_add_signed(offset),
            space: Target::Params,
        },
    })
}

/// The layout of an access, packed into an instruction's `f`.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of an element: 1, 2, 4 or 8.
    bytes: u32,
    /// Elements: 1, 2 or 4.
    count: u32,
    /// Elements are sign-extended.
    signed: bool,
    /// Registers have 64 bits.
    long: bool,
    /// The access may wait for another thread.
    polls: bool,
    /// It is volatile or ordered, so that it is no race with its like.
    strong: bool,
}

/// The access is volatile or ordered.
#[inline(always)]
fn is_strong(ins: &Ins) -> bool {
    ins.f >> 7 & 1 != 0
}

impl Layout {
    fn pack(self, cache: u32) -> u32 {
        self.bytes.trailing_zeros()
            | self.count.trailing_zeros() << 2
            | u32::from(self.signed) << 4
            | u32::from(self.long) << 5
            | u32::from(self.polls) << 6
            | u32::from(self.strong) << 7
            | cache << 8
    }

    #[inline(always)]
    fn unpack(packed: u32) -> (Layout, u32) {
        let layout = Layout {
            bytes: 1 << (packed & 3),
            count: 1 << (packed >> 2 & 3),
            signed: packed >> 4 & 1 != 0,
            long: packed >> 5 & 1 != 0,
            polls: packed >> 6 & 1 != 0,
            strong: packed >> 7 & 1 != 0,
        };
        (layout, packed >> 8)
    }
}

fn transfer(decoder: &mut Decoder<'_>, instruction: &Instruction, access: Access) -> Decoded {
    let [first, second] = decoder.operands(instruction)?;
    let (address, value) = if access == Access::Load { (second, first) } else { (first, second) };
    let ty = last_type(instruction);
    if ty == "b128" {
        return quad(decoder, instruction, address, value, access);
    }
    let bytes = match type_bytes(ty) {
        Ok(bytes @ ..=8) => bytes as u32,
        _ => return Err(decoder.not_implemented()),
    };
    let values = match value {
        Operand::Vector(values) => &values[..],
        value => std::slice::from_ref(value),
    };
    let count = values.len() as u32;
    let vector = instruction.modifiers.iter().find(|word| matches!(word.as_str(), "v2" | "v4" | "v8"));
    if !matches!(count, 1 | 2 | 4) || vector.is_none() != (count == 1) {
        return Err(decoder.not_implemented());
    }

    let mut rows = [NONE; 4];
    let mut long = None;
    for (row, value) in rows.iter_mut().zip(values) {
        let class = if let Operand::Sink = value {
            None
        } else if access == Access::Load || decoder.register(value).is_ok() {
            Some(decoder.register(value)?)
        } else {
            None
        };
        match class {
            Some(Register { class: Class::Predicate | Class::Quad, .. }) => {
                return Err(decoder.not_implemented());
            }
            Some(register) => {
                let this = register.class == Class::Long;
                if *long.get_or_insert(this) != this || (bytes == 8 && !this) {
                    return Err(decoder.not_implemented());
                }
                *row = register.slot;
            }
            None if access == Access::Load => {}
            None => {
                let this = bytes == 8;
                *row = if this { decoder.source::<u64>(value)? } else { decoder.source::<u32>(value)? };
                if *long.get_or_insert(this) != this {
                    return Err(decoder.not_implemented());
                }
            }
        }
    }
    let long = long.unwrap_or(bytes == 8);
    for row in &mut rows[..count as usize] {
        if *row == NONE {
            *row = decoder.scratch(if long { Class::Long } else { Class::Word(32) });
        }
    }
    let place = place(decoder, instruction, address)?;
    let polls = ["volatile", "acquire", "relaxed", "mmio"].iter().any(|word| has(instruction, word));
    let strong = polls || has(instruction, "release");
    let signed = ty.starts_with('s') && access == Access::Load;
    let layout = Layout { bytes, count, signed, long, polls, strong };
    let cache = decoder.cache();
    let [d, b, c, e] = rows;
    let ins =
        Ins { a: place.row, d, b, c, e, f: layout.pack(cache), x: place.offset, ..decoder.plain(nothing) };
    let load = access == Access::Load;

    // Whole words of registers of their width have steps of their own.
    let plain = if long { bytes == 8 } else { bytes == 4 };
    macro_rules! choose {
        ($a:ty) => {
            match place.space {
                Target::Constant if plain && load && count == 1 => {
                    if long {
                        decoder.ins::<Load<$a, u64, 1, Constant>>()
                    } else {
                        decoder.ins::<Load<$a, u32, 1, Constant>>()
                    }
                }
                Target::Global if plain && load => match (long, count) {
                    (false, 1) => decoder.ins::<Load<$a, u32, 1, Global>>(),
                    (false, 2) => decoder.ins::<Load<$a, u32, 2, Global>>(),
                    (false, _) => decoder.ins::<Load<$a, u32, 4, Global>>(),
                    (true, 1) => decoder.ins::<Load<$a, u64, 1, Global>>(),
                    (true, _) => decoder.ins::<Load<$a, u64, 2, Global>>(),
                },
                Target::Global if plain => match (long, count) {
                    (false, 1) => decoder.ins::<Store<$a, u32, 1, Global>>(),
                    (false, 2) => decoder.ins::<Store<$a, u32, 2, Global>>(),
                    (false, _) => decoder.ins::<Store<$a, u32, 4, Global>>(),
                    (true, 1) => decoder.ins::<Store<$a, u64, 1, Global>>(),
                    (true, _) => decoder.ins::<Store<$a, u64, 2, Global>>(),
                },
                Target::Shared if plain && load => match (long, count) {
                    (false, 2) => decoder.ins::<Load<$a, u32, 2, Shared>>(),
                    (false, _) => decoder.ins::<Load<$a, u32, 4, Shared>>(),
                    (true, _) => decoder.ins::<Load<$a, u64, 2, Shared>>(),
                },
                Target::Shared if plain => match (long, count) {
                    (false, 1) => decoder.ins::<Store<$a, u32, 1, Shared>>(),
                    (false, 2) => decoder.ins::<Store<$a, u32, 2, Shared>>(),
                    (false, _) => decoder.ins::<Store<$a, u32, 4, Shared>>(),
                    (true, 1) => decoder.ins::<Store<$a, u64, 1, Shared>>(),
                    (true, _) => decoder.ins::<Store<$a, u64, 2, Shared>>(),
                },
                space => any::<$a>(decoder, space, load),
            }
        };
    }
    let chosen = if count == 4 && long { None } else { Some(()) };
    if place.space == Target::Params && plain && load && count == 1 {
        let chosen = if long { decoder.ins::<LoadParam<u64>>() } else { decoder.ins::<LoadParam<u32>>() };
        return Ok(Ins { step: chosen.step, ..ins });
    }
    if place.space == Target::Shared && plain && load && count == 1 {
        let chosen = match (place.long, long) {
            (false, false) => decoder.ins::<LoadShared<u32, u32>>(),
            (false, true) => decoder.ins::<LoadShared<u32, u64>>(),
            (true, false) => decoder.ins::<LoadShared<u64, u32>>(),
            (true, true) => decoder.ins::<LoadShared<u64, u64>>(),
        };
        return Ok(Ins { step: chosen.step, ..ins });
    }
    let step = match (chosen, place.row == NONE, place.long) {
        (_, true, _) => any::<u32>(decoder, place.space, load),
        (None, _, false) => any::<u32>(decoder, place.space, load),
        (None, _, true) => any::<u64>(decoder, place.space, load),
        (_, _, false) => choose!(u32),
        (_, _, true) => choose!(u64),
    };
    Ok(Ins { step: step.step, ..ins })
}

/// 128 bits: a vector of two registers of 64.
fn quad(
    decoder: &mut Decoder<'_>,
    instruction: &Instruction,
    address: &Operand,
    value: &Operand,
    access: Access,
) -> Decoded {
    let d = super::wide::register(decoder, value)?;
    let place = place(decoder, instruction, address)?;
    let polls = ["volatile", "acquire", "relaxed"].iter().any(|word| has(instruction, word));
    let strong = polls || has(instruction, "release");
    let layout = Layout { bytes: 8, count: 2, signed: false, long: true, polls, strong };
    let f = layout.pack(decoder.cache());
    let load = access == Access::Load;
    let step = if place.long {
        any::<u64>(decoder, place.space, load)
    } else {
        any::<u32>(decoder, place.space, load)
    };
    Ok(Ins { a: place.row, d, b: d + super::wide::UPPER, f, x: place.offset, ..step })
}

/// The step for every layout.
fn any<A: Word + Address>(decoder: &Decoder<'_>, space: Target, load: bool) -> Ins {
    macro_rules! both {
        ($space:ty) => {
            if load {
                decoder.rare_ins::<LoadAny<A, $space>>()
            } else {
                decoder.rare_ins::<StoreAny<A, $space>>()
            }
        };
    }
    match space {
        Target::Global => both!(Global),
        Target::Constant => both!(Constant),
        Target::Shared => both!(Shared),
        Target::Local => both!(Local),
        Target::Frame => both!(Frame),
        Target::Params => both!(Params),
        Target::Param => both!(Param),
        Target::Generic => both!(Generic),
    }
}
