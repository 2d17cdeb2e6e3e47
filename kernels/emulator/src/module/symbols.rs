//! What names at module level stand for, and which of them a kernel reaches.

use std::collections::{BTreeSet, HashMap};

use super::{
    LoadError,
    decode::{Decoded, align_up, invalid, size, unsupported},
    program::Builtin,
};
use crate::model::Limits;
use crate::ptx::ast::{self, AddressBase, Item, Linkage, Operand, Space, Statement, Variable};

/// What a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// A variable at a fixed address of its space.
    At(Space, u64),
    /// A function, by the value that stands for it in a register.
    Function(u64),
    /// A kernel's parameter, by its offset.
    Param(u32),
    /// A variable of a function's own local memory, by its offset.
    Frame(u32),
}

/// Functions are known in registers by this number and their index above it, far from all memory.
const FUNCTIONS: u64 = 0x0002_0000_0000_0000;

/// The functions and variables of a module.
pub(crate) struct Symbols<'a> {
    /// Functions with a body, in order.
    pub(crate) functions: Vec<&'a ast::Function>,
    /// Their indices, and those of their aliases.
    by_name: HashMap<&'a str, usize>,
    /// Variables at module level.
    pub(crate) variables: Vec<&'a Variable>,
    /// Variables inside functions that live as long as the module.
    pub(crate) inner: Vec<(&'a str, &'a Variable)>,
    /// Addresses of `.global` and `.const` variables; those inside functions as `function/name`.
    pub(crate) addresses: HashMap<String, (Space, u64)>,
    /// Functions whose address something takes.
    taken: BTreeSet<usize>,
}

/// What one kernel's functions share.
pub(crate) struct Kernelwide {
    symbols: HashMap<String, Symbol>,
    /// Program indices of functions.
    indices: HashMap<String, u32>,
    /// Indices by address.
    pub(crate) by_address: HashMap<u64, u32>,
    /// Bytes of static shared memory.
    pub(crate) shared_bytes: u64,
    /// How many instructions have a cache of the allocation they find.
    pub(crate) caches: u32,
}

impl<'a> Symbols<'a> {
    /// Collects the names of a module.
    pub(crate) fn new(module: &'a ast::Module) -> Decoded<Symbols<'a>> {
        let mut symbols = Symbols {
            functions: Vec::new(),
            by_name: HashMap::new(),
            variables: Vec::new(),
            inner: Vec::new(),
            addresses: HashMap::new(),
            taken: BTreeSet::new(),
        };
        for item in &module.items {
            match item {
                Item::Function(function) => {
                    let Some(body) = &function.body else { continue };
                    if symbols.by_name.insert(&function.name, symbols.functions.len()).is_some() {
                        return Err(invalid(&format!("function `{}` is defined twice", function.name)));
                    }
                    symbols.functions.push(function);
                    for_each_variable(body, &mut |variable| {
                        if matches!(variable.space, Space::Global | Space::Const | Space::Shared) {
                            symbols.inner.push((&function.name, variable));
                        }
                    });
                }
                Item::Variable(variable) => symbols.variables.push(variable),
                Item::Alias { .. } | Item::Pragma(_) | Item::Section(_) => {}
            }
        }
        for item in &module.items {
            if let Item::Alias { name, aliasee } = item {
                let index = *symbols
                    .by_name
                    .get(aliasee.as_str())
                    .ok_or_else(|| invalid(&format!("alias `{name}` of unknown function `{aliasee}`")))?;
                symbols.by_name.insert(name, index);
            }
        }
        for function in &symbols.functions {
            for_each_name(function.body.as_deref().unwrap_or_default(), &mut |name, called| {
                if let Some(&index) = symbols.by_name.get(name)
                    && !called
                {
                    symbols.taken.insert(index);
                }
            });
        }
        for variable in symbols.variables.iter().chain(symbols.inner.iter().map(|(_, variable)| variable)) {
            if let Some(init) = &variable.init {
                for_each_address(init, &mut |name| {
                    if let Some(&index) = symbols.by_name.get(name) {
                        symbols.taken.insert(index);
                    }
                });
            }
        }
        Ok(symbols)
    }

    /// The value that stands for a function.
    pub(crate) fn function_address(&self, name: &str) -> Option<u64> {
        self.by_name.get(name).map(|&index| FUNCTIONS + 16 * index as u64)
    }

    /// The functions that `kernel` reaches, itself first, and what their names stand for.
    pub(crate) fn reach(&self, kernel: &'a ast::Function) -> Decoded<(Vec<&'a ast::Function>, Kernelwide)> {
        let mut order = vec![self.by_name[kernel.name.as_str()]];
        let mut names = BTreeSet::new();
        let mut next = 0;
        while let Some(&index) = order.get(next) {
            next += 1;
            let body = self.functions[index].body.as_deref().unwrap_or_default();
            let mut found = Vec::new();
            for_each_name(body, &mut |name, called| {
                names.insert(name.to_owned());
                match self.by_name.get(name) {
                    Some(&callee) if called => found.push(callee),
                    // A call of something that is no function's name goes through a register.
                    None if called && builtin(name).is_none() => found.extend(&self.taken),
                    _ => {}
                }
            });
            for callee in found {
                if !order.contains(&callee) {
                    order.push(callee);
                }
            }
        }

        let mut kernelwide = Kernelwide {
            symbols: HashMap::new(),
            indices: HashMap::new(),
            by_address: HashMap::new(),
            shared_bytes: 0,
            caches: 0,
        };
        for (name, &(space, address)) in &self.addresses {
            kernelwide.symbols.insert(name.clone(), Symbol::At(space, address));
        }
        for (name, &index) in &self.by_name {
            let address = FUNCTIONS + 16 * index as u64;
            kernelwide.symbols.insert((*name).to_owned(), Symbol::Function(address));
            if let Some(place) = order.iter().position(|&reached| reached == index) {
                kernelwide.indices.insert((*name).to_owned(), place as u32);
                kernelwide.by_address.insert(address, place as u32);
            }
        }
        self.lay_out_shared(&order, &names, &mut kernelwide)?;
        Ok((order.into_iter().map(|index| self.functions[index]).collect(), kernelwide))
    }

    /// Static variables from the start, then the dynamic ones, which all start at the same address.
    fn lay_out_shared(
        &self,
        order: &[usize],
        names: &BTreeSet<String>,
        kernelwide: &mut Kernelwide,
    ) -> Decoded<()> {
        let used = self.variables.iter().filter(|variable| names.contains(&variable.name));
        let outer = used.map(|variable| (variable.name.clone(), *variable));
        let reached = |name: &str| order.iter().any(|&index| self.functions[index].name == name);
        let inner = self.inner.iter().filter(|(function, _)| reached(function));
        let inner = inner.map(|(function, variable)| (format!("{function}/{}", variable.name), *variable));
        let shared: Vec<_> =
            outer.chain(inner).filter(|(_, variable)| variable.space == Space::Shared).collect();
        let mut end = 0;
        let mut dynamic_align = 16;
        for (name, variable) in &shared {
            let (bytes, align) = size(variable)?;
            if variable.dimensions.contains(&None) || (variable.linkage == Linkage::Extern && bytes == 0) {
                dynamic_align = dynamic_align.max(align);
                continue;
            }
            let offset = align_up(end, align);
            end = offset + bytes;
            // More than 48 KB loads on a GPU, too; it is the launch that needs the kernel's consent.
            if end > u64::from(Limits::MOST_SHARED_PER_BLOCK) {
                let most = Limits::MOST_SHARED_PER_BLOCK;
                return Err(invalid(&format!(
                    "`{name}` and others need {end} bytes of shared memory, more than {most}"
                )));
            }
            let present = kernelwide.symbols.insert(name.clone(), Symbol::At(Space::Shared, offset));
            if present.is_some() && name.contains('/') {
                return Err(unsupported(&format!("a second variable `{name}`")));
            }
        }
        kernelwide.shared_bytes = end;
        for (name, _) in shared {
            kernelwide.symbols.entry(name).or_insert(Symbol::At(Space::Shared, align_up(end, dynamic_align)));
        }
        Ok(())
    }
}

impl Kernelwide {
    /// What a name at module level stands for.
    pub(crate) fn symbol(&self, name: &str) -> Decoded<Symbol> {
        self.symbols.get(name).copied().ok_or_else(|| {
            if name.starts_with('%') {
                unsupported(&format!("special register `{name}`"))
            } else {
                invalid(&format!("`{name}` is not declared"))
            }
        })
    }

    /// What a variable inside a function stands for.
    pub(crate) fn local_symbol(&self, function: &str, name: &str) -> Option<Symbol> {
        self.symbols.get(&format!("{function}/{name}")).copied()
    }

    /// The program's index of a function.
    pub(crate) fn function(&self, name: &str) -> Option<u32> {
        self.indices.get(name).copied()
    }
}

/// A function of the device runtime, by its name.
pub(crate) fn builtin(name: &str) -> Option<Builtin> {
    match name {
        "vprintf" => Some(Builtin::Vprintf),
        "__assertfail" => Some(Builtin::Assertfail),
        "malloc" => Some(Builtin::Malloc),
        "free" => Some(Builtin::Free),
        _ => None,
    }
}

/// Whether a function is one of those that the driver has and no module defines.
pub(crate) fn is_of_device_runtime(name: &str) -> bool {
    builtin(name).is_some()
        || matches!(name, "cudaLaunchDeviceV2" | "cudaGetParameterBufferV2" | "cudaDeviceSynchronize")
}

/// The error for a function that the module declares and nobody defines.
pub(crate) fn undefined(name: &str) -> LoadError {
    if is_of_device_runtime(name) {
        return unsupported(&format!("device function `{name}`"));
    }
    invalid(&format!(
        "undefined reference to function `{name}`; a module that has it can be linked by cuLink"
    ))
}

fn for_each_variable<'a>(statements: &'a [Statement], f: &mut impl FnMut(&'a Variable)) {
    for statement in statements {
        match statement {
            Statement::Variable(variable) => f(variable),
            Statement::Block(inner) => for_each_variable(inner, f),
            _ => {}
        }
    }
}

/// Names that instructions use, and whether a `call` calls them.
fn for_each_name(statements: &[Statement], f: &mut impl FnMut(&str, bool)) {
    for statement in statements {
        match statement {
            Statement::Instruction(instruction) => {
                let call = instruction.opcode == "call";
                // `call (results), callee, (arguments)`: the callee is the first operand that is no list.
                let callee =
                    instruction.operands.iter().position(|operand| matches!(operand, Operand::Name(_)));
                for (index, operand) in instruction.operands.iter().enumerate() {
                    names_of(operand, &mut |name| f(name, call && Some(index) == callee));
                }
            }
            Statement::Block(inner) => for_each_name(inner, f),
            _ => {}
        }
    }
}

fn names_of(operand: &Operand, f: &mut impl FnMut(&str)) {
    match operand {
        Operand::Name(name)
        | Operand::Offset(name, _)
        | Operand::Index(name, _)
        | Operand::Address { base: AddressBase::Name(name), .. } => f(name),
        Operand::Vector(operands) | Operand::Parts(operands) | Operand::List(operands) => {
            operands.iter().for_each(|operand| names_of(operand, f));
        }
        _ => {}
    }
}

fn for_each_address(init: &ast::Init, f: &mut impl FnMut(&str)) {
    match init {
        ast::Init::Value(ast::InitValue::Address { symbol, .. }) => f(symbol),
        ast::Init::Value(_) => {}
        ast::Init::List(inits) => inits.iter().for_each(|init| for_each_address(init, f)),
    }
}
