//! Runs Nsight Systems: collects, turns the stream into a report where nsys could not, and exports SQLite.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};

use super::export::{self, Trace};
use crate::invocation::Invocation;
use crate::target::Target;
use crate::tools::{LIBRARY_PATH, Places};

const NAME: &str = "timeline";

/// A session's outcome.
#[derive(Debug)]
pub struct Session {
    /// What was seen.
    pub trace: Trace,
    /// The lines that were run.
    pub lines: Vec<Invocation>,
    /// The report, for Nsight Systems' own window.
    pub report: PathBuf,
}

/// The line that collects.
pub fn collect(nsys: &Path, target: &Target, folder: &Path) -> Invocation {
    let mut output = std::ffi::OsString::from("--output=");
    output.push(folder.join(NAME));
    let page_faults: &[&str] = match target.cells.page_faults {
        true => &["--cuda-um-gpu-page-faults=true", "--cuda-um-cpu-page-faults=true"],
        false => &[],
    };
    Invocation::new(nsys)
        .arguments([
            "profile",
            "--trace=cuda,nvtx",
            "--sample=none",
            "--cpuctxsw=none",
            "--force-overwrite=true",
        ])
        .arguments(page_faults)
        .argument(output)
        .argument(&target.program)
        .arguments(&target.arguments)
        .arguments(&target.cells.timeline)
}

/// The line that exports.
pub fn export(nsys: &Path, folder: &Path) -> Invocation {
    let mut output = std::ffi::OsString::from("--output=");
    output.push(sqlite(folder));
    Invocation::new(nsys)
        .arguments(["export", "--type=sqlite", "--force-overwrite=true"])
        .argument(output)
        .argument(report(folder))
}

/// The line that turns a stream into a report.
fn import(importer: &Path, stream: &Path, folder: &Path, places: &Places) -> Invocation {
    Invocation::new(importer)
        .variable("LD_LIBRARY_PATH", places.importer_library_path(importer))
        .argument("-i")
        .argument(stream)
        .argument("-o")
        .argument(report(folder))
        .argument("-f")
}

/// Runs the session in `folder` and reads what it saw. The export is deleted afterwards: it is large, and made again from
/// the report in a second.
pub fn run(nsys: &Path, target: &Target, folder: &Path, places: &Places) -> anyhow::Result<Session> {
    let line = collect(nsys, target, folder);
    let finished = line.run(folder)?;
    let mut lines = vec![line];
    let report = report(folder);
    if !report.is_file() {
        let Some(stream) = stream(folder, &finished.output) else {
            bail!(
                "`{}` ended with {} and left no report; it said:\n{}",
                lines[0],
                finished.status,
                tail(&finished.output)
            );
        };
        lines.push(convert(nsys, &stream, folder, places)?);
    }
    if !finished.success {
        // nsys passes the program's own failure on: half a chapter is no record.
        bail!("the profiled program ended with {}; it said:\n{}", finished.status, tail(&finished.output));
    }
    let line = export(nsys, folder);
    let exported = line.run(folder)?;
    let sqlite = sqlite(folder);
    if !exported.success || !sqlite.is_file() {
        bail!("`{line}` ended with {}; it said:\n{}", exported.status, tail(&exported.output));
    }
    lines.push(line);
    let trace = export::read(&sqlite)?;
    std::fs::remove_file(&sqlite).with_context(|| format!("deleting {}", sqlite.display()))?;
    Ok(Session { trace, lines, report })
}

/// Tries every importer, the nearest to `nsys` first, until one makes a report of the stream.
fn convert(nsys: &Path, stream: &Path, folder: &Path, places: &Places) -> anyhow::Result<Invocation> {
    let importers = places.importers(nsys);
    if importers.is_empty() {
        bail!(
            "nsys left only a stream, {}, and no QdstrmImporter of its version is on this machine to turn it into a \
             report: install the whole of Nsight Systems, or copy the stream to a machine that has it",
            stream.display()
        );
    }
    let mut reasons = Vec::new();
    for importer in importers {
        let missing = places.missing_libraries(&importer);
        if !missing.is_empty() {
            reasons.push(format!("{}: {}", importer.display(), libraries_fix(&missing)));
            continue;
        }
        let line = import(&importer, stream, folder, places);
        let finished = line.run(folder)?;
        if report(folder).is_file() {
            // The report holds all that the stream does.
            std::fs::remove_file(stream).with_context(|| format!("deleting {}", stream.display()))?;
            return Ok(line);
        }
        reasons.push(format!("`{line}` ended with {}: {}", finished.status, tail(&finished.output)));
    }
    bail!(
        "nsys left only a stream, {}, and no importer could read it:\n{}",
        stream.display(),
        reasons.join("\n")
    )
}

/// What to do about libraries that the importer lacks.
pub fn libraries_fix(missing: &[String]) -> String {
    format!(
        "{} not found. Install them (Debian and Ubuntu: apt-get install libdw1 libelf1), or, without root, \
         `apt-get download libdw1 libelf1`, unpack both with `dpkg -x FILE FOLDER`, and set \
         {LIBRARY_PATH}=FOLDER/usr/lib/{}-linux-gnu",
        missing.join(" and "),
        std::env::consts::ARCH
    )
}

fn report(folder: &Path) -> PathBuf {
    folder.join(NAME).with_extension("nsys-rep")
}

fn sqlite(folder: &Path) -> PathBuf {
    folder.join(NAME).with_extension("sqlite")
}

/// The stream, where it was asked for or where nsys says that it put it: some versions ignore `--output`.
fn stream(folder: &Path, said: &str) -> Option<PathBuf> {
    let asked_for = folder.join(NAME).with_extension("qdstrm");
    if asked_for.is_file() {
        return Some(asked_for);
    }
    let mut named = said
        .split(|c: char| c.is_whitespace() || matches!(c, '\'' | '"'))
        .filter(|word| word.ends_with(".qdstrm"))
        .map(PathBuf::from)
        .filter(|file| file.is_file());
    named.next_back()
}

/// The last lines of what a tool said: its progress bars come before.
pub(crate) fn tail(text: &str) -> String {
    let lines: Vec<&str> =
        text.split(['\n', '\r']).map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(12)..].join("\n")
}

#[cfg(test)]
mod tests {
    use record::chapter::Profiled;

    use super::*;

    #[test]
    fn page_faults_are_recorded_where_a_chapter_asks_for_them() {
        let line = |page_faults| {
            let cells = Profiled { page_faults, ..Profiled::default() };
            let target = Target {
                chapter: "ch06-managed-memory".into(),
                domain: "ch06".into(),
                program: "ch06-managed-memory".into(),
                arguments: Vec::new(),
                cells,
            };
            collect(Path::new("nsys"), &target, Path::new("reports")).to_string()
        };
        assert!(line(true).contains("--cuda-um-gpu-page-faults=true --cuda-um-cpu-page-faults=true"));
        assert!(!line(false).contains("--cuda-um"));
    }
}
