//! What `cargo kernels` does: `kernels/ptx` follows from `kernels/cuda`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::nvrtc::Compiler;
use crate::registers::Registers;
use crate::source::{KernelSource, names};
use crate::toolchain::pinned;

/// How a committed PTX file relates to its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is what the source compiles to.
    None,
    /// The source compiles to something else.
    Differs,
    /// There is a source and no PTX.
    Missing,
    /// There is PTX and no source.
    Orphan,
}

/// One kernel of the folder.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The kernel.
    pub name: String,
    /// How its PTX was found.
    pub change: Change,
    /// What it was compiled for and with.
    pub how: String,
    /// What its PTX must be; nothing for an orphan.
    text: Option<String>,
}

/// Compiles every kernel and compares; writes nothing.
///
/// # Errors
/// When a compiler is missing or a kernel does not compile.
pub fn check(root: &Path) -> Result<Vec<Outcome>> {
    let mut compilers = BTreeMap::new();
    let sources = names(&root.join("kernels/cuda"), ".cu")?;
    let mut outcomes = Vec::new();
    let registers = Registers::read(root);
    for name in &sources {
        let kernel = KernelSource::read(root, &format!("kernels/cuda/{name}.cu"))?;
        let compiler = match compilers.entry(kernel.needs.compiler.clone()) {
            std::collections::btree_map::Entry::Occupied(entry) => entry.into_mut(),
            std::collections::btree_map::Entry::Vacant(entry) => {
                let pin =
                    pinned(&kernel.needs.compiler).with_context(|| format!("compiling {}", kernel.path))?;
                entry.insert(Compiler::open_pinned(pin)?)
            }
        };
        let text = committed_form(compiler, &kernel, &registers)?;
        let change = match fs::read_to_string(ptx_path(root, name)) {
            Ok(committed) if committed == text => Change::None,
            Ok(_) => Change::Differs,
            Err(_) => Change::Missing,
        };
        let how = format!("{}, NVRTC {}", kernel.needs.target, compiler.version());
        outcomes.push(Outcome { name: name.clone(), change, how, text: Some(text) });
    }
    for name in names(&root.join("kernels/ptx"), ".ptx")? {
        if !sources.contains(&name) {
            let how = "it has no source in kernels/cuda".to_string();
            outcomes.push(Outcome { name, change: Change::Orphan, how, text: None });
        }
    }
    Ok(outcomes)
}

/// Brings `kernels/ptx` up to date: writes what differs or is missing, removes orphans, leaves the rest untouched.
///
/// # Errors
/// As [`check`], or when a file cannot be written. Nothing is written unless every kernel compiles.
pub fn regenerate(root: &Path) -> Result<Vec<Outcome>> {
    let outcomes = check(root)?;
    for outcome in &outcomes {
        let path = ptx_path(root, &outcome.name);
        match &outcome.text {
            Some(text) if outcome.change != Change::None => fs::write(&path, text),
            Some(_) => Ok(()),
            None => fs::remove_file(&path),
        }
        .with_context(|| format!("updating kernels/ptx/{}.ptx", outcome.name))?;
    }
    Ok(outcomes)
}

/// A kernel's PTX as it is committed: the heading, then what the compiler wrote.
fn committed_form(compiler: &Compiler, kernel: &KernelSource, registers: &Registers) -> Result<String> {
    let ptx = compiler.compile(kernel)?;
    let name = kernel.name();
    if !ptx.contains(&format!(".entry {name}(")) {
        bail!("{} must define `extern \"C\" __global__ void {name}(…)`, named like the file", kernel.path);
    }
    let heading = kernel.heading(compiler.version()) + &registers.heading(kernel);
    Ok(format!("{heading}{}\n", ptx.trim_end()))
}

fn ptx_path(root: &Path, name: &str) -> std::path::PathBuf {
    root.join("kernels/ptx").join(format!("{name}.ptx"))
}
