//! PTX as it was written: every directive and operand form of the PTX ISA manual, each with its source line.
//!
//! Nothing here knows what an instruction does. Opcodes and modifiers stay words, so that the parser accepts PTX newer
//! than the emulator, and `module` says which word it cannot execute.

/// A PTX module.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Module {
    /// `.version major.minor`.
    pub version: (u32, u32),
    /// `.target` specifiers, such as `sm_75`, `texmode_independent`, `debug`.
    pub target: Vec<String>,
    /// `.address_size`, 32 or 64.
    pub address_size: u32,
    /// `.file` directives.
    pub files: Vec<File>,
    /// Everything else at module level, in order.
    pub items: Vec<Item>,
}

impl Module {
    /// The number in `sm_90a`, if the module names one.
    pub fn architecture(&self) -> Option<u32> {
        let target = self.target.iter().find_map(|target| target.strip_prefix("sm_"))?;
        target.trim_end_matches(|letter: char| letter.is_ascii_alphabetic()).parse().ok()
    }
}

/// `.file index "name" [, timestamp, size]`.
#[derive(Clone, Debug, PartialEq)]
pub struct File {
    /// The number that `.loc` refers to.
    pub index: u32,
    /// The source file's name.
    pub name: String,
}

/// A directive at module level.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    /// A variable in `.global`, `.const`, `.shared`, `.tex` …
    Variable(Variable),
    /// `.entry` or `.func`, with a body or as a declaration.
    Function(Function),
    /// `.alias name, aliasee;`
    Alias {
        /// The new name.
        name: String,
        /// The function that it stands for.
        aliasee: String,
    },
    /// `.pragma "…";`
    Pragma(String),
    /// A `.section` with its debugging data, skipped over.
    Section(String),
}

/// Linkage of a variable or function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Linkage {
    /// Visible in this module only.
    #[default]
    Internal,
    /// `.visible`
    Visible,
    /// `.extern`
    Extern,
    /// `.weak`
    Weak,
    /// `.common`
    Common,
}

/// A state space.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Space {
    /// `.reg`
    Reg,
    /// `.sreg`
    Sreg,
    /// `.const`
    Const,
    /// `.global`
    Global,
    /// `.local`
    Local,
    /// `.param`
    Param,
    /// `.shared`
    Shared,
    /// `.tex`
    Tex,
}

/// A type as PTX writes it, without the dot: `f32`, `b64`, `pred`, `f16x2`, `texref` …
pub type TypeName = String;

/// A variable declaration, `.space [.align n] [.vN] .type name[dims] [= init]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Variable {
    /// Linkage; internal inside a function.
    pub linkage: Linkage,
    /// The state space.
    pub space: Space,
    /// `.align`, in bytes.
    pub align: Option<u32>,
    /// 2, 4 or 8 for `.v2`, `.v4`, `.v8`.
    pub vector: Option<u32>,
    /// The type.
    pub ty: TypeName,
    /// `.ptr [.space] [.align n]` of a kernel parameter.
    pub ptr: Option<Ptr>,
    /// The name; for `%r<10>` the prefix `%r`.
    pub name: String,
    /// `<10>` declares `%r0` … `%r9`.
    pub range: Option<u32>,
    /// Array dimensions; `None` for an unsized one.
    pub dimensions: Vec<Option<u64>>,
    /// The initializer.
    pub init: Option<Init>,
    /// `.attribute(.managed, .unified(0, 1))` as it was written, without the dots: `managed`, `unified(0, 1)`.
    pub attributes: Vec<String>,
    /// The line of the PTX, from 1.
    pub line: u32,
}

/// `.ptr` of a kernel parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ptr {
    /// The space that it points to; generic when absent.
    pub space: Option<Space>,
    /// The alignment that it promises; 4 when none is written.
    pub align: u32,
}

/// An initializer.
#[derive(Clone, Debug, PartialEq)]
pub enum Init {
    /// One value.
    Value(InitValue),
    /// `{ … }`, possibly nested.
    List(Vec<Init>),
}

/// A value of an initializer.
#[derive(Clone, Debug, PartialEq)]
pub enum InitValue {
    /// A constant integer expression, evaluated; two's complement.
    Integer(i128),
    /// A float, with its bits in the precision that was written (`0f` 32, `0d` and decimal 64).
    Float(Float),
    /// `symbol`, `symbol+offset`, `generic(symbol)+offset`, `mask(symbol)`.
    Address {
        /// The variable or function.
        symbol: String,
        /// Bytes added.
        offset: i64,
        /// `generic(…)` was written.
        generic: bool,
        /// `0xFF00(symbol)`: only these bits of the address, shifted down to the lowest of them.
        mask: Option<u64>,
    },
    /// `addr_mode_0 = wrap`, a field of a `.texref`, `.samplerref` or `.surfref`.
    Field {
        /// The field.
        name: String,
        /// Its value: a word or a number.
        value: String,
    },
}

/// A floating-point literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Float {
    /// `0f3F800000`
    F32(u32),
    /// `0d3FF0000000000000`, `1.0`
    F64(u64),
}

/// `.entry` or `.func`.
#[derive(Clone, Debug, PartialEq)]
pub struct Function {
    /// Linkage.
    pub linkage: Linkage,
    /// `.entry` is a kernel.
    pub entry: bool,
    /// The name.
    pub name: String,
    /// Return parameters of a `.func`.
    pub returns: Vec<Variable>,
    /// Parameters.
    pub params: Vec<Variable>,
    /// `.maxntid 256, 1, 1`, `.reqntid`, `.minnctapersm`, `.noreturn`, `.explicitcluster` …, without the dot.
    pub directives: Vec<(String, Vec<i64>)>,
    /// `.attribute(…)` of a `.func`, as a variable's.
    pub attributes: Vec<String>,
    /// `.pragma "…";` between the parameters and the body.
    pub pragmas: Vec<String>,
    /// The body; a declaration has none.
    pub body: Option<Vec<Statement>>,
    /// The line of the PTX, from 1.
    pub line: u32,
}

/// A statement of a body.
#[derive(Clone, Debug, PartialEq)]
pub enum Statement {
    /// `name:`
    Label(String),
    /// A local variable or register declaration.
    Variable(Variable),
    /// An instruction.
    Instruction(Instruction),
    /// `{ … }`, a scope of its own.
    Block(Vec<Statement>),
    /// `.loc file line column [, function_name label [+ offset], inlined_at file line column]`
    Loc(Loc),
    /// `.pragma "nounroll";`
    Pragma(String),
    /// `label: .branchtargets a, b, c;`
    BranchTargets {
        /// The label of the table.
        name: String,
        /// Its labels.
        targets: Vec<String>,
    },
    /// `label: .calltargets f, g;`
    CallTargets {
        /// The label of the table.
        name: String,
        /// Its functions.
        targets: Vec<String>,
    },
    /// `label: .callprototype (…) _ (…);`
    CallPrototype {
        /// The label of the prototype.
        name: String,
        /// Return parameters.
        returns: Vec<Variable>,
        /// Parameters.
        params: Vec<Variable>,
        /// `.noreturn`, `.abi_preserve 4` …, as a function's.
        directives: Vec<(String, Vec<i64>)>,
    },
}

/// A source position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Loc {
    /// Index of a `.file`.
    pub file: u32,
    /// Line in that file, from 1.
    pub line: u32,
    /// Column in that line.
    pub column: u32,
    /// Where the function that holds this line was inlined.
    pub inlined_at: Option<(u32, u32, u32)>,
}

/// `[@[!]p] opcode.modifier.modifier operands;`
#[derive(Clone, Debug, PartialEq)]
pub struct Instruction {
    /// `@p` or `@!p`.
    pub predicate: Option<Predicate>,
    /// The first word: `ld`, `add`, `setp` …
    pub opcode: String,
    /// The words after it, without dots: `["global", "nc", "v4", "f32"]`; `L2::128B` and `::` forms stay one word.
    pub modifiers: Vec<String>,
    /// The operands, destination first.
    pub operands: Vec<Operand>,
    /// The line of the PTX, from 1.
    pub line: u32,
}

/// A guard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Predicate {
    /// The predicate register.
    pub register: String,
    /// `@!p`
    pub negated: bool,
}

/// An operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A register, special register (`%tid.x` is one name), variable, label or function.
    Name(String),
    /// `!p`
    Not(String),
    /// `-x` of a register, where an instruction allows it; `-x.h1` keeps the selector in the name.
    Negated(String),
    /// An integer constant expression, evaluated; unsigned ones above `i64::MAX` keep their value.
    Integer(i128),
    /// A float.
    Float(Float),
    /// `_`, a destination that is not wanted.
    Sink,
    /// `{a, b, c, d}`
    Vector(Vec<Operand>),
    /// `a.x` of a vector register.
    Element(String, char),
    /// `a.h1`, `a.b3210`: the bytes or halves that a video instruction takes from a register.
    Selector(String, String),
    /// `a[3]` of a register or parameter array.
    Index(String, i64),
    /// `p|q`, two destinations.
    Pair(Box<Operand>, Box<Operand>),
    /// `name+offset` outside brackets (`mov.u64 %rd1, table+8`).
    Offset(String, i64),
    /// `[base+offset]`
    Address {
        /// What is in front of the offset.
        base: AddressBase,
        /// Bytes added.
        offset: i64,
    },
    /// `[tex, sampler, {x, y}]`, `[tensorMap, {x, y}]`: an address of several parts.
    Parts(Vec<Operand>),
    /// `(a, b)` of a call.
    List(Vec<Operand>),
}

/// What an address starts from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AddressBase {
    /// A register or variable.
    Name(String),
    /// An absolute address.
    Absolute(u64),
}
