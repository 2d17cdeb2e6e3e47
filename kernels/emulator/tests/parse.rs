//! What the PTX parser accepts and refuses, as files in `tests/ptx/parse`.
//!
//! - `accepted/*.ptx` are whole modules. The snapshot beside each is its syntax tree.
//! - `refused/*.ptx` hold a mistake a line. The snapshot beside each shows where and how each is reported. The first line
//!   says what the lines are: modules, parts of a module, or parts of a body.
//!
//! `INSTA_UPDATE=always cargo test -p emulator --test parse` takes new trees and messages over.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use emulator::ptx::ast::{Function, Init, InitValue, Item, Module, Statement, Variable};
use emulator::ptx::{Error, parse};
use proptest::prelude::*;
use proptest::sample::{Index, select};

#[test]
fn accepted() {
    for path in files("accepted") {
        let module = parse(&read(&path)).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        check_snapshot(&path, &tree(&module));
    }
}

#[test]
fn refused() {
    for path in files("refused") {
        let text = read(&path);
        let (first, mistakes) = text.split_once('\n').unwrap();
        let (before, after) = match first {
            "// as a module" => ("", ""),
            "// at module level" => (".version 8.0 .target sm_80\n", ""),
            "// in a body" => (".version 8.0 .target sm_80 .entry k() {\n", "\nret; }"),
            _ => panic!("{}: `{first}` does not say what the lines are", path.display()),
        };
        let reports: Vec<String> = mistakes.lines().map(|line| report(before, line, after)).collect();
        check_snapshot(&path, &reports.join("\n"));
    }
}

#[test]
fn constant_expressions_have_the_value_beside_them() {
    let text = read(&folder("accepted").join("expressions.ptx"));
    let mut items = parse(&text).unwrap().items.into_iter();
    for line in text.lines().skip(5) {
        let Some(Item::Variable(Variable { init: Some(Init::Value(value)), .. })) = items.next() else {
            panic!("{line}: no value");
        };
        let InitValue::Integer(value) = value else { panic!("{line}: {value:?}") };
        assert!(line.ends_with(&format!("// {:#x}", value as u64)), "{line}: {:#x}", value as u64);
    }
}

#[test]
fn comments_are_blanks() {
    for name in ["module", "variables", "initializers", "operands", "modifiers", "textures"] {
        let text = read(&folder("accepted").join(name).with_extension("ptx"));
        let commented = text.replace(", ", ",/* \" // */").replace('\t', "/**/");
        assert_ne!(commented, text);
        assert_eq!(parse(&commented), parse(&text), "{name}");
    }
}

#[test]
fn lines_may_end_as_on_windows() {
    for path in files("accepted") {
        let text = read(&path);
        let line_in_string = path.ends_with("comments.ptx");
        assert!(line_in_string || parse(&text.replace('\n', "\r\n")) == parse(&text), "{}", path.display());
    }
}

#[test]
fn nesting_has_a_limit() {
    check_nesting("", "{", "ret;", "}", "");
    check_nesting("mov.u32 a, ", "(", "1", ")", ";");
    check_nesting("mov.u32 a, ", "-", "1", "", ";");
    check_nesting("mov.u32 a, ", "(.s64)", "1", "", ";");
    check_nesting("mov.u32 a, ", "1 ? ", "1", " : 1", ";");
    check_nesting("mov.u32 a, ", "1 ? 1 : ", "1", "", ";");
    check_nesting(".global .u32 a = ", "{", "1", "}", ";");
}

/// A parser whose time grew with the square of the length would not come back from these.
#[test]
fn long_texts_take_no_longer_than_their_length() {
    for repeated in [
        "\"",
        "/*",
        "//",
        "/",
        "é",
        "\n",
        " ",
        ".",
        "1",
        "a",
        "a:",
        "a.",
        "@",
        "mov.u32 a, b;",
        "{",
        "1+",
        "%",
    ] {
        let _ = parse(&repeated.repeat(1 << 18));
        let _ = parse(&format!(".version 8.0 .target sm_80 .entry k() {{ {}", repeated.repeat(1 << 18)));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn mutated_modules_never_panic(file: Index, mutations in prop::collection::vec(mutation(), 1..6)) {
        let files = files("accepted");
        let mut text: Vec<char> = read(&files[file.index(files.len())]).chars().collect();
        for mutation in mutations {
            mutation.apply(&mut text);
        }
        check_error_is_inside(&text.into_iter().collect::<String>());
    }

    #[test]
    fn arbitrary_words_never_panic(words in prop::collection::vec(select(WORDS), 0..60), blank in select(&["", " ", "\n"][..])) {
        let body = words.join(blank);
        check_error_is_inside(&format!(".version 8.0 .target sm_80 .entry k() {{ {body} }}"));
        check_error_is_inside(&format!(".version 8.0 .target sm_80 {body}"));
        check_error_is_inside(&body);
    }

    #[test]
    fn arbitrary_text_never_panics(text: String) {
        check_error_is_inside(&text);
    }
}

/// A change to a text.
#[derive(Clone, Debug)]
enum Mutation {
    Truncate(Index),
    Remove(Index, usize),
    Repeat(Index, usize),
    Insert(Index, &'static str),
}

fn mutation() -> impl Strategy<Value = Mutation> {
    prop_oneof![
        1 => any::<Index>().prop_map(Mutation::Truncate),
        4 => (any::<Index>(), 1..40usize).prop_map(|(at, length)| Mutation::Remove(at, length)),
        4 => (any::<Index>(), 1..40usize).prop_map(|(at, length)| Mutation::Repeat(at, length)),
        4 => (any::<Index>(), select(WORDS)).prop_map(|(at, word)| Mutation::Insert(at, word)),
    ]
}

impl Mutation {
    fn apply(&self, text: &mut Vec<char>) {
        if text.is_empty() {
            return;
        }
        let range = |at: &Index, length: usize| {
            let start = at.index(text.len());
            start..(start + length).min(text.len())
        };
        match self {
            Mutation::Truncate(at) => text.truncate(at.index(text.len())),
            Mutation::Remove(at, length) => drop(text.drain(range(at, *length))),
            Mutation::Repeat(at, length) => {
                let range = range(at, *length);
                let repeated = text[range.clone()].to_vec();
                text.splice(range.end..range.end, repeated);
            }
            Mutation::Insert(at, word) => {
                let start = at.index(text.len());
                text.splice(start..start, word.chars());
            }
        }
    }
}

const WORDS: &[&str] = &[
    ".version 8.0",
    ".target",
    "sm_90",
    ".address_size",
    ".file",
    ".loc",
    ".section",
    ".pragma",
    ".alias",
    ".visible",
    ".extern",
    ".entry",
    ".func",
    ".global",
    ".const",
    ".const[2]",
    ".shared",
    ".param",
    ".reg",
    ".align",
    ".attribute",
    ".ptr",
    ".v4",
    ".u32",
    ".f32",
    ".pred",
    ".maxntid",
    ".noreturn",
    ".branchtargets",
    ".calltargets",
    ".callprototype",
    ".x",
    ".L2::128B",
    "mov",
    "call",
    "ld",
    "bra",
    "%r1",
    "%tid",
    "$L",
    "_",
    "WARP_SZ",
    "generic",
    "function_name",
    "inlined_at",
    "1",
    "0",
    "8.0",
    ".5",
    "0x",
    "0xFFU",
    "0f3F800000",
    "0d0",
    "1e5",
    "99999999999999999999",
    "\"text\"",
    "\"",
    "/*",
    "*/",
    "//",
    "#line",
    "#",
    "@@DWARF",
    "é",
    "\0",
    "\\",
    ",",
    ";",
    ":",
    "::",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    "<",
    ">",
    "<<",
    ">>",
    "+",
    "-",
    "*",
    "/",
    "%",
    "&",
    "&&",
    "|",
    "||",
    "^",
    "!",
    "!=",
    "==",
    "~",
    "?",
    "=",
    "@",
    ".",
];

/// Reads `count` nested things: 90 are fine, and a hundred thousand are an error rather than an exhausted stack.
#[track_caller]
fn check_nesting(before: &str, opening: &str, inner: &str, closing: &str, after: &str) {
    let nested = |count: usize| {
        let body = format!("{before}{}{inner}{}{after}", opening.repeat(count), closing.repeat(count));
        parse(&format!(".version 8.0 .target sm_80 .entry k() {{ {body} }}"))
    };
    nested(90).unwrap();
    let error = nested(100_000).unwrap_err();
    assert_eq!(error.message, "nested more than 100 deep");
}

/// Whatever a text is, an error in it has a place in it.
#[track_caller]
fn check_error_is_inside(text: &str) {
    if let Err(error) = parse(text) {
        let line = text.split('\n').nth(error.line as usize - 1);
        let columns = line.unwrap_or_else(|| panic!("{error} is behind the text")).chars().count() as u32;
        assert!((1..=columns + 1).contains(&error.column), "{error} is behind the line");
    }
}

fn check_snapshot(path: &Path, snapshot: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(path.parent().unwrap());
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(path.file_stem().unwrap().to_str().unwrap(), snapshot));
}

/// A mistake as it was written, and below it what the parser says about it.
fn report(before: &str, mistake: &str, after: &str) -> String {
    match parse(&format!("{before}{mistake}{after}")) {
        Ok(_) => format!("{mistake}\n  accepted\n"),
        Err(Error { line, column, message }) => {
            let place = if line as usize == before.lines().count() + 1 {
                format!("{}^", " ".repeat(column as usize - 1))
            } else {
                format!("line {line}, column {column}:")
            };
            format!("{mistake}\n{place} {message}\n")
        }
    }
}

/// `Debug`'s text without fields that say nothing.
fn brief(value: &impl std::fmt::Debug) -> String {
    let mut text = format!("{value:?}").replace("linkage: Internal, ", "");
    for field in ["align", "vector", "ptr", "range", "init", "predicate", "inlined_at", "body", "mask"] {
        text = text.replace(&format!(", {field}: None"), "").replace(&format!("{field}: None, "), "");
    }
    for field in
        ["dimensions", "attributes", "directives", "pragmas", "returns", "params", "modifiers", "operands"]
    {
        text = text.replace(&format!(", {field}: []"), "");
    }
    text
}

/// The syntax tree with a line for each directive and statement.
fn tree(module: &Module) -> String {
    let Module { version, target, address_size, files, items } = module;
    let mut tree = format!("version {version:?}, target {target:?}, address size {address_size}\n");
    for file in files {
        writeln!(tree, "{file:?}").unwrap();
    }
    for item in items {
        match item {
            Item::Function(function) => function_tree(function, &mut tree),
            item => writeln!(tree, "{}", brief(item)).unwrap(),
        }
    }
    tree
}

fn function_tree(function: &Function, tree: &mut String) {
    let header = Function { body: None, ..function.clone() };
    writeln!(tree, "{}", brief(&header)).unwrap();
    if let Some(body) = &function.body {
        body_tree(body, 1, tree);
    }
}

fn body_tree(body: &[Statement], depth: usize, tree: &mut String) {
    for statement in body {
        let indent = "  ".repeat(depth);
        match statement {
            Statement::Block(body) => {
                writeln!(tree, "{indent}Block").unwrap();
                body_tree(body, depth + 1, tree);
            }
            statement => writeln!(tree, "{indent}{}", brief(statement)).unwrap(),
        }
    }
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn folder(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/parse").join(name)
}

fn files(folder_name: &str) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(folder_name)).unwrap();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    files.retain(|path| path.extension().is_some_and(|extension| extension == "ptx"));
    files.sort();
    assert!(!files.is_empty());
    files
}
