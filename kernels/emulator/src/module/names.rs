//! Operands: what names stand for, and the rows of constants and special registers.

use super::{
    Decoded,
    decode::{Base, Class, Decoder, Name, Register, invalid, new_slot, unsupported},
    program::{Fill, Special},
    symbols::Symbol,
};
use crate::{
    ptx::ast::{AddressBase, Float, Operand, Space},
    warp::{Lane, Word},
};

impl Decoder<'_> {
    pub(super) fn declare(&mut self, name: &str, what: Name) {
        if let Some(scope) = self.scopes.last_mut() {
            scope.insert(name.to_owned(), what);
        }
    }

    pub(super) fn look_up(&self, name: &str) -> Option<&Name> {
        self.scopes.iter().rev().find_map(|scope| scope.get(name))
    }

    pub(super) fn new_slot(&mut self, class: Class) -> u32 {
        new_slot(&mut self.function, class)
    }

    /// A register by name, if the name is one's.
    pub(crate) fn find_register(&mut self, name: &str) -> Option<Register> {
        let prefix = name.trim_end_matches(|digit: char| digit.is_ascii_digit());
        for scope in self.scopes.iter_mut().rev() {
            if let Some(Name::Register(register)) = scope.get(name) {
                return Some(*register);
            }
            if prefix.len() == name.len() {
                continue;
            }
            // A prefix may itself end in digits: `%p1_<4>` is no problem, `%f1<3>` declares `%f10` to `%f12`.
            for split in prefix.len()..name.len() {
                if let Some(Name::Family { class, count, slots }) = scope.get_mut(&name[..split]) {
                    let class = *class;
                    let number = name[split..].parse::<u32>().ok().filter(|number| *number < *count)?;
                    let slot = *slots.entry(number).or_insert_with(|| new_slot(&mut self.function, class));
                    return Some(Register { class, slot });
                }
            }
        }
        None
    }

    /// The register that an operand names.
    pub(crate) fn register(&mut self, operand: &Operand) -> Decoded<Register> {
        let name = match operand {
            Operand::Name(name) => name.clone(),
            Operand::Element(name, letter) => {
                let letter = match letter {
                    'r' => 'x',
                    'g' => 'y',
                    'b' => 'z',
                    'a' => 'w',
                    other => *other,
                };
                format!("{name}.{letter}")
            }
            _ => return Err(invalid(&format!("`{}` needs a register", self.word))),
        };
        self.find_register(&name).ok_or_else(|| invalid(&format!("`{name}` is not declared as a register")))
    }

    /// A destination of a type's width.
    pub(crate) fn dest<D: Lane>(&mut self, operand: &Operand) -> Decoded<u32> {
        if *operand == Operand::Sink {
            return Ok(self.new_slot(if D::Word::ROW == 128 { Class::Word(32) } else { Class::Long }));
        }
        let register = self.register(operand)?;
        self.check_width::<D::Word>(register, operand)?;
        Ok(register.slot)
    }

    pub(super) fn check_width<W: Word>(&self, register: Register, operand: &Operand) -> Decoded<()> {
        match (register.class, W::ROW) {
            (Class::Word(_), 128) | (Class::Long, 256) => Ok(()),
            _ => Err(invalid(&format!("`{}` does not fit the width of register {operand:?}", self.word))),
        }
    }

    /// A source of a type: a register, a constant, a special register, or an address.
    pub(crate) fn source<A: Lane>(&mut self, operand: &Operand) -> Decoded<u32> {
        let long = A::Word::ROW == 256;
        match operand {
            Operand::Integer(value) => Ok(self.constant(long, *value as u64)),
            Operand::Float(value) => {
                let bits = match (*value, long) {
                    (Float::F32(bits), false) => u64::from(bits),
                    (Float::F64(bits), false) => u64::from((f64::from_bits(bits) as f32).to_bits()),
                    (Float::F32(bits), true) => f64::from(f32::from_bits(bits)).to_bits(),
                    (Float::F64(bits), true) => bits,
                };
                Ok(self.constant(long, bits))
            }
            Operand::Name(name) => {
                if let Some(register) = self.find_register(name) {
                    self.check_width::<A::Word>(register, operand)?;
                    return Ok(register.slot);
                }
                if name == "WARP_SZ" {
                    return Ok(self.constant(long, 32));
                }
                if let Some(special) = special(name) {
                    if long {
                        return Err(unsupported(&format!("`{name}` as 64 bits")));
                    }
                    return Ok(self.fill(Fill::Special(special)));
                }
                self.address_constant(name, 0, long)
            }
            Operand::Element(name, letter) if name.starts_with('%') => {
                let whole = format!("{name}.{letter}");
                if let Some(special) = special(&whole) {
                    return Ok(self.fill(Fill::Special(special)));
                }
                let register = self.register(operand)?;
                self.check_width::<A::Word>(register, operand)?;
                Ok(register.slot)
            }
            Operand::Element(..) => {
                let register = self.register(operand)?;
                self.check_width::<A::Word>(register, operand)?;
                Ok(register.slot)
            }
            Operand::Offset(name, offset) => self.address_constant(name, *offset, long),
            _ => Err(invalid(&format!("`{}` cannot have the operand {operand:?}", self.word))),
        }
    }

    pub(super) fn address_constant(&mut self, name: &str, offset: i64, long: bool) -> Decoded<u32> {
        match self.symbol(name)? {
            Symbol::At(_, address) => Ok(self.constant(long, address.wrapping_add_signed(offset))),
            Symbol::Function(address) => Ok(self.constant(long, address)),
            Symbol::Param(_) | Symbol::Frame(_) => {
                Err(unsupported(&format!("the address of `{name}` in `{}`", self.word)))
            }
        }
    }

    /// What a variable or function's name stands for.
    pub(crate) fn symbol(&self, name: &str) -> Decoded<Symbol> {
        match self.look_up(name) {
            Some(Name::Symbol(symbol)) => Ok(*symbol),
            Some(_) => Err(invalid(&format!("`{name}` is no variable"))),
            None => self.kernelwide.symbol(name),
        }
    }

    /// The label that an operand names.
    pub(crate) fn label(&self, name: &str) -> Decoded<u32> {
        match self.look_up(name) {
            Some(Name::Label(label)) => Ok(*label),
            _ => Err(invalid(&format!("there is no label `{name}`"))),
        }
    }

    /// The labels of a table of branch targets.
    pub(crate) fn targets(&self, name: &str) -> Decoded<Vec<u32>> {
        match self.look_up(name) {
            Some(Name::Targets(names)) => names.iter().map(|name| self.label(name)).collect(),
            _ => Err(invalid(&format!("there is no table of targets `{name}`"))),
        }
    }

    /// A predicate register by name.
    pub(crate) fn predicate_named(&mut self, name: &str) -> Decoded<u32> {
        match self.find_register(name) {
            Some(Register { class: Class::Predicate, slot }) => Ok(slot),
            _ => Err(invalid(&format!("`{name}` is not declared as a predicate"))),
        }
    }

    /// A predicate operand and whether it is negated.
    pub(crate) fn predicate(&mut self, operand: &Operand) -> Decoded<(u32, bool)> {
        match operand {
            // No launch has clusters, so nobody writes it.
            Operand::Name(name) if name == "%is_explicit_cluster" => {
                Ok((self.new_slot(Class::Predicate), false))
            }
            Operand::Name(name) => Ok((self.predicate_named(name)?, false)),
            Operand::Not(name) => Ok((self.predicate_named(name)?, true)),
            // A constant: a predicate that is never written, so all zero.
            Operand::Integer(value) => Ok((self.new_slot(Class::Predicate), *value != 0)),
            Operand::Sink => Ok((self.new_slot(Class::Predicate), false)),
            _ => Err(invalid(&format!("`{}` needs a predicate", self.word))),
        }
    }

    /// The name is a special register's that stays as it is while a block runs.
    pub(crate) fn is_special(&self, name: &str) -> bool {
        special(name).is_some()
    }

    /// A row that holds a constant.
    pub(crate) fn constant(&mut self, long: bool, bits: u64) -> u32 {
        self.fill(if long { Fill::Long(bits) } else { Fill::Word(bits as u32) })
    }

    pub(super) fn fill(&mut self, fill: Fill) -> u32 {
        if let Some(&slot) = self.constants.get(&fill) {
            return slot;
        }
        let slot = self.new_slot(if matches!(fill, Fill::Long(_)) { Class::Long } else { Class::Word(32) });
        self.constants.insert(fill, slot);
        slot
    }

    /// A row or predicate for the decoder's own use.
    pub(crate) fn scratch(&mut self, class: Class) -> u32 {
        self.new_slot(class)
    }

    /// The base and offset of a memory operand.
    pub(crate) fn address(&mut self, operand: &Operand) -> Decoded<(Base, i64)> {
        let (name, offset) = match operand {
            Operand::Address { base: AddressBase::Name(name), offset } => (name.clone(), *offset),
            Operand::Address { base: AddressBase::Absolute(address), offset } => {
                return Ok((Base::Fixed(Space::Global, *address), *offset));
            }
            Operand::Name(name) => (name.clone(), 0),
            Operand::Index(name, index) => (name.clone(), *index),
            _ => return Err(invalid(&format!("`{}` needs an address", self.word))),
        };
        if let Some(register) = self.find_register(&name) {
            return Ok((Base::Register(register), offset));
        }
        let base = match self.symbol(&name)? {
            Symbol::At(space, address) => Base::Fixed(space, address),
            Symbol::Function(address) => Base::Fixed(Space::Global, address),
            Symbol::Param(at) => Base::Param(at),
            Symbol::Frame(at) => Base::Frame(at),
        };
        Ok((base, offset))
    }

    /// A fresh cache of the allocation that an instruction finds.
    pub(crate) fn cache(&mut self) -> u32 {
        self.kernelwide.caches += 1;
        self.kernelwide.caches - 1
    }
}

/// The name is one of so many numbered ones.
fn numbered(name: &str, prefix: &str, count: u32) -> bool {
    name.strip_prefix(prefix).and_then(|number| number.parse().ok()).is_some_and(|number: u32| number < count)
}

/// A special register that stays as it is while a block runs.
fn special(name: &str) -> Option<Special> {
    let name = name.strip_prefix('%')?;
    let axis = |name: &str| match name {
        "x" => Some(0),
        "y" => Some(1),
        "z" => Some(2),
        _ => None,
    };
    if let Some((name, rest)) = name.split_once('.') {
        let axis = axis(rest)?;
        return Some(match name {
            "tid" => Special::Tid(axis),
            "ntid" => Special::Ntid(axis),
            // Without clusters each block is a cluster of its own.
            "ctaid" | "clusterid" => Special::Ctaid(axis),
            "nctaid" | "nclusterid" => Special::Nctaid(axis),
            "cluster_ctaid" => Special::Zero,
            "cluster_nctaid" => Special::One,
            _ => return None,
        });
    }
    Some(match name {
        "laneid" => Special::Lane,
        "warpid" => Special::Warp,
        "nwarpid" => Special::Warps,
        "smid" => Special::Multiprocessor,
        "nsmid" => Special::Multiprocessors,
        "gridid" => Special::Grid,
        "lanemask_eq" => Special::LaneMaskEq,
        "lanemask_le" => Special::LaneMaskLe,
        "lanemask_lt" => Special::LaneMaskLt,
        "lanemask_ge" => Special::LaneMaskGe,
        "lanemask_gt" => Special::LaneMaskGt,
        "dynamic_smem_size" => Special::DynamicShared,
        "total_smem_size" | "aggr_smem_size" => Special::TotalShared,
        "cluster_ctarank" => Special::Zero,
        "cluster_nctarank" => Special::One,
        // Nothing is reserved, no graph executes this, and there is no environment and no monitor of performance.
        "reserved_smem_offset_begin" | "reserved_smem_offset_end" | "reserved_smem_offset_cap" => {
            Special::Zero
        }
        "reserved_smem_offset_0" | "reserved_smem_offset_1" | "current_graph_exec" => Special::Zero,
        _ if numbered(name, "envreg", 32) || numbered(name.trim_end_matches("_64"), "pm", 8) => Special::Zero,
        _ => return None,
    })
}
