//! Several modules become one, by the rules of a linker: what one declares `.extern` another defines `.visible`, `.weak`
//! or `.common`, and what is visible to its own module only keeps out of the others' way under another name.

use std::collections::{HashMap, HashSet};

use super::{
    LoadError,
    decode::{Decoded, size},
    symbols::is_of_device_runtime,
};
use crate::ptx::ast::{
    AddressBase, Init, InitValue, Item, Linkage, Loc, Module, Operand, Space, Statement, Variable,
};

/// Links modules, in the order in which they were given.
pub(crate) fn link(mut modules: Vec<Module>) -> Decoded<Module> {
    if let [first, others @ ..] = &modules[..]
        && let Some(other) = others.iter().find(|other| other.address_size != first.address_size)
    {
        let (one, two) = (first.address_size, other.address_size);
        return Err(LoadError::Invalid(format!("addresses of {one} and {two} bits cannot be linked")));
    }
    let chosen = choose(&modules)?;
    let mut linked = Module { address_size: 64, ..Module::default() };
    let everywhere: Vec<HashSet<String>> = modules.iter().map(|module| names(module).collect()).collect();
    let mut files = 0;
    for (number, module) in modules.iter_mut().enumerate() {
        let elsewhere = |name: &str| {
            everywhere.iter().enumerate().any(|(other, names)| other != number && names.contains(name))
        };
        let renames = private(module)
            .filter(|name| elsewhere(name))
            .map(|name| (name.to_owned(), fresh(name, number, &everywhere)))
            .collect();
        let missing: HashSet<String> = module
            .items
            .iter()
            .filter_map(declared)
            .filter(|name| !chosen.contains_key(*name))
            .map(str::to_owned)
            .collect();
        let mut walk = Walk { renames, missing, hidden: Vec::new(), undefined: None, files };
        module.items.iter_mut().for_each(|item| walk.item(item));
        if let Some(name) = walk.undefined {
            let module = number + 1;
            return Err(LoadError::Invalid(format!("undefined reference to `{name}` in module {module}")));
        }
        for file in &mut module.files {
            file.index = file.index.saturating_add(files);
        }
        files = module.files.iter().map(|file| file.index).fold(files, u32::max);
    }
    for (number, module) in modules.into_iter().enumerate() {
        linked.version = linked.version.max(module.version);
        linked.address_size = module.address_size;
        if module.architecture() >= linked.architecture() {
            linked.target = module.target;
        }
        linked.files.extend(module.files);
        let kept = module.items.into_iter().filter(|item| match item_name(item) {
            Some((name, Some(Linkage::Internal))) => !chosen.contains_key(name) || is_entry(item),
            // A declaration is of no use beside a definition; the chosen definition of several is kept.
            Some((name, Some(_))) => chosen.get(name).is_some_and(|chosen| chosen.module == number),
            Some((name, None)) => !chosen.contains_key(name),
            None => true,
        });
        linked.items.extend(kept);
    }
    Ok(linked)
}

/// The definition that a name stands for in all modules.
struct Chosen {
    module: usize,
    linkage: Linkage,
    bytes: u64,
}

/// Chooses a definition of each name that more than one module may see.
fn choose(modules: &[Module]) -> Decoded<HashMap<String, Chosen>> {
    let mut chosen: HashMap<String, Chosen> = HashMap::new();
    for (number, module) in modules.iter().enumerate() {
        for item in &module.items {
            let Some((name, Some(linkage))) = item_name(item) else { continue };
            // A kernel is found by its name however it is declared.
            let linkage =
                if is_entry(item) && linkage == Linkage::Internal { Linkage::Visible } else { linkage };
            let bytes = match item {
                Item::Variable(variable) => size(variable)?.0,
                _ => 0,
            };
            let new = Chosen { module: number, linkage, bytes };
            match (chosen.get(name), linkage) {
                (_, Linkage::Internal | Linkage::Extern) => {}
                (None, _) => {
                    chosen.insert(name.to_owned(), new);
                }
                (Some(old), _) if old.module == number => {}
                (Some(Chosen { linkage: Linkage::Visible, module, .. }), Linkage::Visible) => {
                    let (first, second) = (module + 1, number + 1);
                    return Err(LoadError::Invalid(format!(
                        "multiple definition of `{name}` in module {second}, first defined in module {first}"
                    )));
                }
                (Some(old), _) => {
                    let larger =
                        linkage == Linkage::Common && old.linkage == Linkage::Common && bytes > old.bytes;
                    if linkage == Linkage::Visible || larger {
                        chosen.insert(name.to_owned(), new);
                    }
                }
            }
        }
    }
    Ok(chosen)
}

/// What an item is called, and how it is linked if it is a definition.
fn item_name(item: &Item) -> Option<(&str, Option<Linkage>)> {
    match item {
        Item::Variable(variable) => {
            let defined = variable.linkage != Linkage::Extern;
            Some((&variable.name, defined.then_some(variable.linkage)))
        }
        Item::Function(function) => Some((&function.name, function.body.as_ref().map(|_| function.linkage))),
        Item::Alias { name, .. } => Some((name, Some(Linkage::Visible))),
        Item::Pragma(_) | Item::Section(_) => None,
    }
}

fn is_entry(item: &Item) -> bool {
    matches!(item, Item::Function(function) if function.entry)
}

fn names(module: &Module) -> impl Iterator<Item = String> + '_ {
    module.items.iter().filter_map(item_name).map(|(name, _)| name.to_owned())
}

/// Names that only their own module sees.
fn private(module: &Module) -> impl Iterator<Item = &str> {
    module
        .items
        .iter()
        .filter(|item| !is_entry(item))
        .filter_map(item_name)
        .filter_map(|(name, linkage)| (linkage == Some(Linkage::Internal)).then_some(name))
}

/// The name of a declaration that needs a definition. Shared memory without a size is the launch's.
fn declared(item: &Item) -> Option<&str> {
    match item {
        Item::Variable(variable) => {
            let of_launch = variable.space == Space::Shared && variable.dimensions.contains(&None);
            (variable.linkage == Linkage::Extern && !of_launch).then_some(variable.name.as_str())
        }
        Item::Function(function) => {
            let missing = function.linkage == Linkage::Extern && function.body.is_none();
            (missing && !is_of_device_runtime(&function.name)).then_some(function.name.as_str())
        }
        Item::Alias { .. } | Item::Pragma(_) | Item::Section(_) => None,
    }
}

/// A name that no module has.
fn fresh(name: &str, number: usize, taken: &[HashSet<String>]) -> String {
    let mut fresh = format!("{name}${number}");
    while taken.iter().any(|names| names.contains(&fresh)) {
        fresh.push('$');
    }
    fresh
}

/// Goes through a module, changes names and numbers of files, and looks for names that nobody defines.
struct Walk {
    renames: HashMap<String, String>,
    /// Names that are declared and nowhere defined.
    missing: HashSet<String>,
    /// Names of a function's own that hide those of the module, by block.
    hidden: Vec<HashSet<String>>,
    /// The first of the missing names that something uses.
    undefined: Option<String>,
    /// What is added to the numbers of files.
    files: u32,
}

impl Walk {
    fn item(&mut self, item: &mut Item) {
        match item {
            Item::Variable(variable) => {
                self.definition(&mut variable.name);
                variable.init.iter_mut().for_each(|init| self.init(init));
            }
            Item::Function(function) => {
                self.definition(&mut function.name);
                let own = function.returns.iter().chain(&function.params).map(|param| param.name.clone());
                self.hidden.push(own.filter(|name| self.concerns(name)).collect());
                function.body.iter_mut().for_each(|body| self.statements(body));
                self.hidden.pop();
            }
            Item::Alias { name, aliasee } => {
                self.definition(name);
                self.name(aliasee);
            }
            Item::Pragma(_) | Item::Section(_) => {}
        }
    }

    fn concerns(&self, name: &str) -> bool {
        self.renames.contains_key(name) || self.missing.contains(name)
    }

    fn definition(&self, name: &mut String) {
        if let Some(new) = self.renames.get(name) {
            name.clone_from(new);
        }
    }

    fn name(&mut self, name: &mut String) {
        if self.hidden.iter().any(|names| names.contains(name)) {
            return;
        }
        if self.undefined.is_none() && self.missing.contains(name) {
            self.undefined = Some(name.clone());
        }
        self.definition(name);
    }

    fn statements(&mut self, statements: &mut [Statement]) {
        let own = statements.iter().filter_map(|statement| match statement {
            Statement::Label(name)
            | Statement::Variable(Variable { name, .. })
            | Statement::BranchTargets { name, .. }
            | Statement::CallTargets { name, .. }
            | Statement::CallPrototype { name, .. } => Some(name),
            Statement::Instruction(_) | Statement::Block(_) | Statement::Loc(_) | Statement::Pragma(_) => {
                None
            }
        });
        self.hidden.push(own.filter(|name| self.concerns(name)).cloned().collect());
        for statement in statements {
            match statement {
                Statement::Instruction(instruction) => {
                    instruction.operands.iter_mut().for_each(|operand| self.operand(operand));
                }
                Statement::Variable(variable) => variable.init.iter_mut().for_each(|init| self.init(init)),
                Statement::Block(inner) => self.statements(inner),
                Statement::CallTargets { targets, .. } => targets.iter_mut().for_each(|name| self.name(name)),
                Statement::Loc(Loc { file, inlined_at, .. }) => {
                    *file = file.saturating_add(self.files);
                    if let Some((file, ..)) = inlined_at {
                        *file = file.saturating_add(self.files);
                    }
                }
                Statement::Label(_)
                | Statement::Pragma(_)
                | Statement::BranchTargets { .. }
                | Statement::CallPrototype { .. } => {}
            }
        }
        self.hidden.pop();
    }

    fn operand(&mut self, operand: &mut Operand) {
        match operand {
            Operand::Name(name)
            | Operand::Offset(name, _)
            | Operand::Index(name, _)
            | Operand::Element(name, _)
            | Operand::Address { base: AddressBase::Name(name), .. } => self.name(name),
            Operand::Vector(operands) | Operand::Parts(operands) | Operand::List(operands) => {
                operands.iter_mut().for_each(|operand| self.operand(operand));
            }
            Operand::Pair(first, second) => {
                self.operand(first);
                self.operand(second);
            }
            Operand::Not(_)
            | Operand::Negated(_)
            | Operand::Integer(_)
            | Operand::Float(_)
            | Operand::Sink
            | Operand::Selector(..)
            | Operand::Address { base: AddressBase::Absolute(_), .. } => {}
        }
    }

    fn init(&mut self, init: &mut Init) {
        match init {
            Init::Value(InitValue::Address { symbol, .. }) => self.name(symbol),
            Init::Value(_) => {}
            Init::List(inits) => inits.iter_mut().for_each(|init| self.init(init)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ptx;

    fn linked(texts: &[&str]) -> Decoded<Module> {
        let head = ".version 8.0\n.target sm_75\n.address_size 64\n";
        link(texts.iter().map(|text| ptx::parse(&format!("{head}{text}")).expect("it parses")).collect())
    }

    /// The names of what is left, and whether each has a body or is a variable that is no declaration.
    #[track_caller]
    fn check(texts: &[&str], expected: &[&str]) {
        let module = linked(texts).expect("it links");
        let defined: Vec<_> =
            module.items.iter().filter_map(item_name).filter(|(_, linkage)| linkage.is_some()).collect();
        assert_eq!(defined.iter().map(|(name, _)| *name).collect::<Vec<_>>(), expected);
    }

    #[track_caller]
    fn refuse(texts: &[&str], word: &str) {
        match linked(texts) {
            Err(LoadError::Invalid(message)) => assert!(message.contains(word), "{message}"),
            other => panic!("{other:?}"),
        }
    }

    const CALLS: &str = ".extern .func f;\n.entry k() { call f; ret; }\n";

    #[test]
    fn a_declaration_finds_its_definition() {
        check(&[CALLS, ".visible .func f { ret; }"], &["k", "f"]);
        check(
            &[".visible .global .u32 x;", ".extern .global .u32 x;\n.entry k() { mov.u64 %rd1, x; ret; }"],
            &["x", "k"],
        );
        check(&[CALLS, ".weak .func f { ret; }"], &["k", "f"]);
    }

    #[test]
    fn what_nobody_defines_is_named_where_it_is_used() {
        refuse(&[CALLS], "undefined reference to `f` in module 1");
        refuse(&["", ".extern .global .u32 x;\n.global .u64 y = x;"], "`x` in module 2");
        // Its own module alone sees it.
        refuse(&[CALLS, ".func f { ret; }"], "undefined reference to `f`");
        check(&[".extern .func f;\n.entry k() { ret; }"], &["k"]);
        check(&[".extern .func vprintf;\n.entry k() { call vprintf; ret; }"], &["k"]);
        check(&[".extern .shared .b8 s[];\n.entry k() { mov.u64 %rd1, s; ret; }"], &["k"]);
    }

    #[test]
    fn one_visible_definition_and_any_number_of_weak_ones() {
        refuse(
            &[".visible .func f { ret; }", ".visible .func f { ret; }"],
            "multiple definition of `f` in module 2",
        );
        refuse(&[".entry k() { ret; }", ".entry k() { ret; }"], "multiple definition of `k`");
        check(&[".weak .func f { ret; }", ".weak .func f { ret; }"], &["f"]);
        let module =
            linked(&[".weak .global .u32 x = 1;", ".visible .global .u32 x = 2;"]).expect("it links");
        assert!(matches!(&module.items[..], [Item::Variable(Variable { linkage: Linkage::Visible, .. })]));
        let module = linked(&[".common .global .u32 x;", ".common .global .u32 x[4];"]).expect("it links");
        assert!(matches!(&module.items[..], [Item::Variable(variable)] if variable.dimensions == [Some(4)]));
    }

    #[test]
    fn names_of_one_module_do_not_meet_those_of_another() {
        let module = ".global .u32 x = 1;\n.visible .entry k1() { mov.u64 %rd1, x; { .reg .b64 x; mov.u64 x, x; } ret; }";
        let other = ".global .u32 x = 2;\n.visible .entry k2() { mov.u64 %rd1, x; ret; }";
        check(&[module, other], &["x$0", "k1", "x$1", "k2"]);
        let linked = linked(&[module, other]).expect("it links");
        let text = format!("{linked:?}");
        assert_eq!(text.matches("Name(\"x$0\")").count(), 1, "the register is another `x`");
        assert_eq!(text.matches("Name(\"x\")").count(), 2);
    }
}
