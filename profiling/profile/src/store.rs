//! The chapter's record, into which a profile goes.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use record::{Cell, Input, Output, Profile, Record, Status};

use crate::invocation::Invocation;
use crate::ncu::kernels::Ceilings;
use crate::target::Home;

/// A value of one of these names, in GB/s, in the chapter's own cells, is the DRAM bandwidth that it has measured: the rate
/// of a kernel that only copies.
pub const DRAM_CEILING: [&str; 2] = ["dram_ceiling", "copy"];
/// A value of this name, in GFLOP/s or TFLOP/s, is the single-precision peak that it has measured.
pub const FP32_CEILING: [&str; 1] = ["fp32_ceiling"];

/// A record and its file.
#[derive(Debug)]
pub struct Destination {
    file: PathBuf,
    record: Record,
}

impl Destination {
    /// Reads the chapter's record in `folder`.
    ///
    /// # Errors
    /// When there is none of a GPU, or it is of other sources than those that are profiled: a profile belongs to a run.
    pub fn open(folder: &Path, chapter: &str, home: &Home) -> anyhow::Result<Self> {
        let file = record::path(folder, chapter);
        let Some(record) = Record::load(&file)? else {
            bail!(
                "there is no record of {chapter} in {} yet, and a profile is stored with the run that it explains: run \
                 the chapter first (cargo run -p {chapter}; in a bundle ./run.sh record {chapter})",
                folder.display()
            );
        };
        if record.provenance.emulated {
            bail!(
                "the record {} is one of the emulated GPU, which has no profile: run the chapter on the GPU first \
                 (cargo run -p {chapter} -- --device gpu)",
                file.display()
            );
        }
        if record.status != Status::Complete {
            bail!("the record {} is of a run that did not finish: run {chapter} again first", file.display());
        }
        if let Some(change) = change(&record, home) {
            bail!("the record {} is stale, because {change}: run {chapter} again first", file.display());
        }
        Ok(Self { file, record })
    }

    /// Whether the record is of a run with smaller sizes.
    pub fn quick(&self) -> bool {
        self.record.quick()
    }

    /// The folder that holds the record.
    pub fn folder(&self) -> &Path {
        self.file.parent().unwrap_or(Path::new("."))
    }

    /// The record's file.
    pub fn file(&self) -> &Path {
        &self.file
    }

    /// Bounds that the chapter itself has measured.
    pub fn ceilings(&self) -> Ceilings {
        let in_unit = |names: &[&str], units: &[(&str, f64)]| {
            self.record.cells.iter().find_map(|cell| {
                names.iter().find_map(|name| {
                    let value = cell.value(name)?;
                    let (_, factor) = units.iter().find(|(unit, _)| *unit == value.unit)?;
                    Some((value.point.value? * factor, format!("{}.{name}", cell.id)))
                })
            })
        };
        Ceilings {
            dram_gbps: in_unit(&DRAM_CEILING, &[("GB/s", 1.0)]),
            fp32_gflops: in_unit(&FP32_CEILING, &[("GFLOP/s", 1.0), ("TFLOP/s", 1e3)]),
        }
    }

    /// Refuses a profile of another GPU than the record's.
    pub fn same_gpu(&self, profiled: &str) -> anyhow::Result<()> {
        let recorded = &self.record.provenance.device;
        if recorded != profiled {
            bail!(
                "the record {} is of {recorded}, the profile of {profiled}: run the chapter here first",
                self.file.display()
            );
        }
        Ok(())
    }

    /// Stores the profile. Cells of the one before that `replaced` does not name stay, if it was of the same inputs.
    ///
    /// # Errors
    /// Cells that a page could not show, an id that the chapter itself uses, or a file that cannot be written.
    pub fn store(mut self, mut profile: Profile, replaced: &[&str]) -> anyhow::Result<()> {
        profile.inputs = self.record.inputs.clone();
        for cell in &profile.cells {
            cell.check().with_context(|| format!("the cell `{}` of the profile", cell.id))?;
            if self.record.cells.iter().any(|own| own.id == cell.id) {
                bail!(
                    "the chapter has a cell `{}` of its own: rename that, a page could not tell the two apart",
                    cell.id
                );
            }
        }
        if let Some(before) = self.record.profile.take()
            && before.inputs == profile.inputs
        {
            let kept: Vec<Cell> =
                before.cells.into_iter().filter(|cell| !replaced.contains(&cell.id.as_str())).collect();
            if !kept.is_empty() {
                for (tool, version) in before.tools {
                    profile.tools.entry(tool).or_insert(version);
                }
                let commands: Vec<String> =
                    before.commands.into_iter().filter(|line| !profile.commands.contains(line)).collect();
                profile.commands.splice(0..0, commands);
                profile.cells.splice(0..0, kept);
            }
        }
        self.record.profile = Some(profile);
        self.record.save(&self.file)
    }
}

/// What has changed since the record was made, if anything has.
fn change(record: &Record, home: &Home) -> Option<String> {
    match home {
        Home::Checkout(root) => {
            let changes = record::inputs::changes(root, &record.chapter, &record.inputs);
            changes.first().map(ToString::to_string)
        }
        // A bundle has no sources; its manifest says what they were.
        Home::Bundle(_) => {
            let built = home.bundled(&record.chapter)["inputs"].clone();
            let built: Vec<Input> = serde_json::from_value(built).ok()?;
            let differs = |built: &&Input| {
                !record.inputs.iter().any(|recorded| {
                    recorded.kind == built.kind && recorded.name == built.name && recorded.hash == built.hash
                })
            };
            built.iter().find(differs).map(|input| format!("{} is another one in this bundle", input.name))
        }
    }
}

/// The commit that was built, and whether tracked files differ from it.
pub fn commit(home: &Home) -> (String, bool) {
    match home {
        Home::Checkout(root) => {
            let git = |arguments: &[&str]| {
                let said = Invocation::new("git").arguments(arguments.iter().copied()).run(root).ok()?;
                said.success.then(|| said.output.trim().to_owned())
            };
            let commit = git(&["rev-parse", "HEAD"]).unwrap_or_default();
            let changes = git(&["status", "--porcelain", "--untracked-files=no"]).unwrap_or_default();
            (commit, !changes.is_empty())
        }
        Home::Bundle(_) => {
            let manifest = home.manifest();
            let commit = manifest["commit"].as_str().unwrap_or_default().to_owned();
            (commit, manifest["dirty"].as_bool().unwrap_or_default())
        }
    }
}

/// What one half of a profile was, where it could not be collected: the page says so instead of showing nothing.
pub fn not_collected(id: &str, title: &str, reason: &str) -> Cell {
    Cell {
        id: id.into(),
        title: title.into(),
        seconds: 0.0,
        order_dependent: false,
        outputs: vec![Output::Text(record::Text {
            kind: record::Kind::Measured,
            text: format!("not collected ({reason})\n"),
        })],
    }
}
