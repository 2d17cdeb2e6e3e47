//! `cargo kernels`: regenerates or checks `kernels/ptx`.

use std::process::ExitCode;

use anyhow::Result;
use clap::Parser;
use compiler::{Change, Outcome};

/// Compiles kernels/cuda/*.cu to the PTX in kernels/ptx.
///
/// The compiler is NVRTC 12.0.140, an installed copy or the pinned wheel that pip fetches into target/toolchain. No GPU is
/// needed, and no CUDA toolkit. A kernel that needs another target or compiler says so in its first line, such as
/// `// target: compute_90a, compiler: 13.0`. Only files that change are written; PTX without a source is removed.
#[derive(Parser)]
#[command(name = "cargo kernels", bin_name = "cargo kernels")]
struct Arguments {
    /// Compare only: exit with 1 and a list if kernels/ptx is not what kernels/cuda compiles to.
    #[arg(long)]
    check: bool,
    /// First ask the ptxas on PATH, which a CUDA toolkit has, how many registers each kernel takes.
    #[arg(long, conflicts_with = "check")]
    registers: bool,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(arguments.check, arguments.registers) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(check: bool, registers: bool) -> Result<ExitCode> {
    let root = compiler::workspace_root();
    if registers {
        let count = compiler::measure_registers(&root)?;
        println!("{count} numbers of registers");
    }
    let outcomes = if check { compiler::check(&root)? } else { compiler::regenerate(&root)? };
    let width = outcomes.iter().map(|outcome| outcome.name.len()).max().unwrap_or(0);
    for Outcome { name, change, how, .. } in &outcomes {
        println!("{name:width$}  {:9}  {how}", word(*change, check));
    }
    let changed = outcomes.iter().filter(|outcome| outcome.change != Change::None).count();
    if check && changed > 0 {
        eprintln!("{changed} of {} do not follow from kernels/cuda: run `cargo kernels`", outcomes.len());
        return Ok(ExitCode::FAILURE);
    }
    Ok(ExitCode::SUCCESS)
}

fn word(change: Change, check: bool) -> &'static str {
    match (change, check) {
        (Change::None, _) => "unchanged",
        (Change::Differs, true) => "differs",
        (Change::Missing, true) => "missing",
        (Change::Orphan, true) => "orphan",
        (Change::Differs | Change::Missing, false) => "written",
        (Change::Orphan, false) => "removed",
    }
}
