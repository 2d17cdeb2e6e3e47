//! `cargo book`: serves, builds and checks the book, runs its chapters, and carries them to a GPU machine and back.

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use book::root::{Chapter, Root};
use book::run::{self, Outcome};
use book::static_book::{self, Problem};
use book::{bundle, check, exercise, import, preprocess, serve};
use clap::{Args, Parser, Subcommand};

#[derive(Parser)]
#[command(name = "cargo book", bin_name = "cargo book", about, version)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Serve the book on 127.0.0.1, and run its chapters in the background
    Serve {
        /// The port
        #[arg(long, default_value_t = 3000)]
        port: u16,
        /// Open it in a browser
        #[arg(long)]
        open: bool,
        /// Only serve what is recorded
        #[arg(long)]
        no_run: bool,
    },
    /// Build the static book
    Build {
        /// The folder to build into [default: target/book]
        #[arg(long)]
        destination: Option<PathBuf>,
    },
    /// Check every directive, claim, link and committed record, without a GPU
    Check,
    /// Run chapters into your own records (book/records/local)
    Run(Chapters),
    /// Run chapters into the committed records of this GPU
    Record(Chapters),
    /// Check an exercise: CHAPTER [NAME] [--hint] [--solution]; without arguments, list them all
    #[command(disable_help_flag = true)]
    Exercise {
        /// As the checker takes them; --help says more
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Pack everything that a GPU machine without Rust needs into one archive
    Bundle,
    /// Bring an archive of results from a GPU machine into the committed records
    Import {
        /// The archive that run.sh wrote
        file: PathBuf,
    },
    /// The preprocessor that a stock mdBook starts
    #[command(hide = true)]
    Preprocess {
        /// `supports RENDERER`
        question: Vec<String>,
    },
}

#[derive(Args)]
struct Chapters {
    /// Such as ch01; all but the heavy ones if none is named
    chapters: Vec<String>,
    /// Where the kernels run
    #[arg(long, value_parser = ["auto", "gpu", "emulated"], default_value = "auto")]
    device: String,
    /// Smaller problem sizes
    #[arg(long)]
    quick: bool,
}

fn main() -> ExitCode {
    match start(Arguments::parse().command) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn start(command: Command) -> Result<ExitCode> {
    if let Command::Preprocess { question } = command {
        return answer_mdbook(&question);
    }
    let root = Root::find()?;
    match command {
        Command::Serve { port, open, no_run } => {
            serve::serve(&root, &serve::Options { port, open, run: !no_run })?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Build { destination } => {
            let destination = destination.unwrap_or_else(|| root.built_book());
            // mdBook takes a relative folder as relative to the book's, and the reader as relative to where they are.
            let destination = std::path::absolute(destination).context("asking for the current folder")?;
            let options = static_book::Options { destination, problems_on_page: false };
            let problems = static_book::build(&root, &options)?;
            if problems.is_empty() {
                println!("The book is in {}.", root.relative(&options.destination.join("index.html")));
            }
            Ok(report(&problems))
        }
        Command::Check => {
            let problems = check::check(&root)?;
            if problems.is_empty() {
                println!("Every directive resolves, every claim holds, every committed record is fresh.");
            }
            Ok(report(&problems))
        }
        Command::Run(chapters) => {
            let options = run::Options {
                device: chapters.device.clone(),
                quick: chapters.quick,
                ..run::Options::local(&root)
            };
            let outcomes = run::run(&root, &named(&root, &chapters)?, &options)?;
            Ok(exit_code(&outcomes))
        }
        Command::Record(chapters) => {
            let options = run::Options {
                device: chapters.device.clone(),
                quick: chapters.quick,
                ..run::Options::local(&root)
            };
            if run::is_dirty(&root) {
                eprintln!("warning: tracked files differ from the commit, and the records will say so");
            }
            let outcomes = run::record(&root, &named(&root, &chapters)?, &options)?;
            Ok(exit_code(&outcomes))
        }
        Command::Exercise { arguments } => exercise::exercise(&root, &arguments),
        Command::Bundle => {
            bundle::bundle(&root)?;
            Ok(ExitCode::SUCCESS)
        }
        Command::Import { file } => {
            for line in import::import(&root, &file)? {
                println!("{line}");
            }
            Ok(ExitCode::SUCCESS)
        }
        Command::Preprocess { .. } => Ok(ExitCode::SUCCESS),
    }
}

/// `supports html` is mdBook's question whether to ask at all; otherwise its JSON comes by standard input.
fn answer_mdbook(question: &[String]) -> Result<ExitCode> {
    match question {
        [] => {
            preprocess::preprocess(std::io::stdin().lock(), std::io::stdout().lock())?;
            Ok(ExitCode::SUCCESS)
        }
        [supports, renderer] if supports == "supports" => {
            Ok(if renderer == "html" { ExitCode::SUCCESS } else { ExitCode::FAILURE })
        }
        _ => anyhow::bail!("mdBook asks `supports RENDERER` or nothing, not `{}`", question.join(" ")),
    }
}

fn named<'r>(root: &'r Root, chapters: &Chapters) -> Result<Vec<&'r Chapter>> {
    if chapters.chapters.is_empty() {
        return Ok(root.chapters.iter().filter(|chapter| !chapter.heavy).collect());
    }
    chapters.chapters.iter().map(|name| root.chapter(name)).collect()
}

fn exit_code(outcomes: &[(String, Outcome)]) -> ExitCode {
    let complete = outcomes.iter().all(|(_, outcome)| *outcome == Outcome::Complete);
    if complete { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

fn report(problems: &[Problem]) -> ExitCode {
    for problem in problems {
        println!("{problem}");
    }
    match problems.len() {
        0 => ExitCode::SUCCESS,
        count => {
            eprintln!("error: {count} problem{}", if count == 1 { "" } else { "s" });
            ExitCode::FAILURE
        }
    }
}
