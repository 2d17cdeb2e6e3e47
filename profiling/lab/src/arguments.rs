//! The command line of a chapter's program.

use std::path::PathBuf;

use anyhow::{Context, Result};
use clap::{CommandFactory, FromArgMatches, Parser};

use crate::device::DeviceChoice;

/// What the reader asked for.
#[derive(Clone, Debug, Parser)]
#[command(
    version = None,
    after_help = "Without a GPU, the chapter runs on the emulated GPU: results and counts are exact, and times are left out."
)]
pub(crate) struct Arguments {
    /// Run these cells only; all without any. `--list` shows their names
    #[arg(value_name = "CELL")]
    pub(crate) cells: Vec<String>,

    /// Where to run [default: auto, or what LADDER_DEVICE says]
    #[arg(long, value_enum)]
    device: Option<DeviceChoice>,

    /// Smaller problem sizes, for a first look
    #[arg(long)]
    pub(crate) quick: bool,

    /// List the cells and stop
    #[arg(long)]
    pub(crate) list: bool,

    /// The folder that holds CHAPTER/record.json [default: book/records/local of this checkout]
    #[arg(long, value_name = "DIR", conflicts_with = "no_record")]
    pub(crate) record: Option<PathBuf>,

    /// Show what comes out and store nothing
    #[arg(long)]
    pub(crate) no_record: bool,

    /// Run each timed loop once, after one warm-up, and store nothing: for profilers
    #[arg(long)]
    pub(crate) once: bool,
}

impl Arguments {
    /// Reads the command line; prints and ends the process where it asks for help or makes no sense.
    pub(crate) fn read(name: &'static str, title: &str) -> Self {
        let command = Self::command().name(name).about(title.to_owned());
        // `get_matches` ends the process with clap's message, and `from_arg_matches` cannot fail on what it accepted.
        Self::from_arg_matches(&command.get_matches()).unwrap_or_else(|error| error.exit())
    }

    /// The device: what was asked for, else what the environment says.
    ///
    /// # Errors
    /// When the environment says what there is not.
    pub(crate) fn device(&self) -> Result<DeviceChoice> {
        match self.device {
            Some(choice) => Ok(choice),
            None => DeviceChoice::from_environment().context("choosing the device"),
        }
    }

    /// The arguments that can change what comes out, for the record's provenance. Paths are left out.
    pub(crate) fn for_provenance(&self) -> Vec<String> {
        let device = match self.device {
            Some(DeviceChoice::Gpu) => Some("--device gpu"),
            Some(DeviceChoice::Emulated) => Some("--device emulated"),
            Some(DeviceChoice::Auto) | None => None,
        };
        let quick = self.quick.then_some("--quick");
        self.cells.iter().map(String::as_str).chain(device).chain(quick).map(str::to_owned).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn provenance_leaves_paths_out() {
        let line = ["ch99", "a", "--record", "/home/reader/records", "--device", "gpu", "--quick"];
        let arguments = Arguments::try_parse_from(line).unwrap();
        assert_eq!(arguments.for_provenance(), ["a", "--device gpu", "--quick"]);
    }

    #[test]
    fn storing_and_not_storing_exclude_each_other() {
        assert!(Arguments::try_parse_from(["ch99", "--record", "x", "--no-record"]).is_err());
        Arguments::command().debug_assert();
    }
}
