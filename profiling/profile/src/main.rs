//! `cargo profile CHAPTER` and `cargo profile doctor`.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use profile::target::Home;
use profile::tools::Places;
use profile::{Request, doctor};

/// Profiles a chapter with Nsight Systems and Nsight Compute, and adds what they saw to its record.
#[derive(Parser)]
#[command(
    name = "profile",
    bin_name = "cargo profile",
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    after_help = "LADDER_LIBRARY_PATH names folders with libraries that the importer of Nsight Systems needs (libdw, libelf)."
)]
struct Arguments {
    #[command(subcommand)]
    command: Option<Task>,
    /// The chapter, such as ch01 or ch01-raw-kernel.
    #[arg(required = true)]
    chapter: Option<String>,
    /// Cells to run, instead of those that the chapter's manifest names for a profile.
    cells: Vec<String>,
    /// Only the timeline, by Nsight Systems.
    #[arg(long)]
    timeline: bool,
    /// Only the kernels' counters, by Nsight Compute.
    #[arg(long)]
    kernels: bool,
    /// Print the commands and run none.
    #[arg(long)]
    dry_run: bool,
    /// The folder that holds CHAPTER/record.json, instead of book/records/local.
    #[arg(long, value_name = "DIR")]
    record: Option<PathBuf>,
    /// At most so many launches under Nsight Compute, which runs each of them some forty times.
    #[arg(long, value_name = "N", default_value_t = 100)]
    launches: u32,
}

#[derive(Subcommand)]
enum Task {
    /// Say what this machine has for profiling and how to get what it lacks. Ends with 1 if something is missing.
    Doctor,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let places = Places::of_this_machine();
    let outcome = match arguments {
        Arguments { command: Some(Task::Doctor), .. } => {
            let checks = doctor::checks(&places, Home::find().ok().as_ref());
            println!("{}\n{}", doctor::table(&checks), doctor::verdict(&checks));
            return if doctor::complete(&checks) { ExitCode::SUCCESS } else { ExitCode::FAILURE };
        }
        Arguments { chapter, cells, timeline, kernels, dry_run, record, launches, .. } => {
            let request = Request {
                chapter: chapter.unwrap_or_default(),
                cells,
                timeline: timeline || !kernels,
                kernels: kernels || !timeline,
                dry_run,
                record,
                launches,
            };
            Home::find().and_then(|home| profile::run(&request, &home, &places))
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("cargo profile: {error:#}");
            ExitCode::FAILURE
        }
    }
}
