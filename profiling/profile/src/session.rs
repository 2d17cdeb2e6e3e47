//! One `cargo profile CHAPTER`, from the question what is there to the record that is written.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use compiler::libclang;
use record::chapter::Profiled;
use record::{Cell, Entry, Profile, Table};

use crate::invocation::Invocation;
use crate::ncu;
use crate::nsys;
use crate::store::{self, Destination};
use crate::target::{Home, Target, has_ranges};
use crate::tools::{Places, version_of};

/// What is asked for.
#[derive(Clone, Debug)]
pub struct Request {
    /// The chapter, by number or whole name.
    pub chapter: String,
    /// The cells to run; all where there are none.
    pub cells: Vec<String>,
    /// Whether the timeline is wanted.
    pub timeline: bool,
    /// Whether the kernels' counters are wanted. With both, one that cannot be had is said and the other recorded.
    pub kernels: bool,
    /// Print the commands and run none.
    pub dry_run: bool,
    /// The folder of records, instead of the home's.
    pub record: Option<PathBuf>,
    /// At most so many launches under Nsight Compute.
    pub launches: u32,
}

/// What one tool gave.
struct Half {
    cells: Vec<Cell>,
    lines: Vec<Invocation>,
    device: Option<String>,
    notes: Vec<String>,
}

/// Profiles, and stores what came out.
///
/// # Errors
/// What is missing, in a sentence that says how to get it.
pub fn run(request: &Request, home: &Home, places: &Places) -> anyhow::Result<()> {
    let chapter = home.chapter(&request.chapter)?;
    let nsys = places.nsys();
    let ncu = places.ncu();
    if request.dry_run {
        print!("{}", dry_run(request, home, &chapter, nsys.as_deref(), ncu.as_deref())?);
        return Ok(());
    }
    if !places.has_gpu() {
        bail!(
            "this machine has no NVIDIA GPU, and the emulated one has no profile. The book shows the recorded profile; \
             to make one of your own, take a bundle to a machine with a GPU (cargo book bundle, then ./run.sh profile {chapter})"
        );
    }
    let (nsys, ncu) = tier(request, &chapter, nsys, ncu)?;
    let records = request.record.clone().unwrap_or_else(|| home.records());
    let destination = Destination::open(&records, &chapter, home)?;

    let mut target = target(request, home, &chapter)?;
    target.program = build(home, &chapter)?;
    if destination.quick() {
        // The sizes of the run that the profile explains.
        target.arguments.push("--quick".into());
    }
    if !has_ranges(&target.program)? {
        bail!(
            "{} was built without NVTX ranges, and without them a profiler's report cannot be told in the chapter's words. \
             `cargo profile` builds them in wherever libclang is found; by hand: cargo build -p {chapter} -F nvtx",
            target.program.display()
        );
    }
    let date = record::now();
    let folder = home.reports().join(&chapter).join(date.replace(':', "-"));
    std::fs::create_dir_all(&folder).with_context(|| format!("making the folder {}", folder.display()))?;

    let (commit, dirty) = store::commit(home);
    let mut profile = Profile { date, commit, dirty, ..Profile::default() };
    let mut replaced: Vec<&str> = Vec::new();
    let mut failures = Vec::new();
    if let Some(nsys) = &nsys {
        println!("Nsight Systems: the timeline of {chapter} …");
        replaced.extend([nsys::timeline::TIMELINE, nsys::timeline::PASS, nsys::timeline::MIGRATIONS]);
        let half = timeline(nsys, &target, &folder, places, &destination);
        add(&mut profile, half, ("Nsight Systems", nsys), "timeline", &destination, &mut failures)?;
    }
    if let Some(ncu) = &ncu {
        println!("Nsight Compute: the counters of {chapter}'s kernels, each launch some forty times …");
        replaced.extend(ncu::kernels::CELLS);
        let half = kernels(ncu, &target, &folder, request.launches, &destination);
        add(&mut profile, half, ("Nsight Compute", ncu), "kernels", &destination, &mut failures)?;
    }
    let wanted = usize::from(nsys.is_some()) + usize::from(ncu.is_some());
    if failures.len() == wanted {
        return Err(failures.remove(0));
    }
    for failure in &failures {
        eprintln!("cargo profile: {failure:#}");
    }

    for table in profile.cells.iter().flat_map(|cell| [cell.table("ranges"), cell.table("kernels")]).flatten()
    {
        println!("\n{}", show(table));
    }
    let file = destination.file().to_owned();
    destination.store(profile, &replaced)?;
    println!("\nstored in {}", file.display());
    println!("the tools' own reports, for their windows and not for git: {}", folder.display());
    Ok(())
}

/// Says which tools will be used, and why not better ones.
fn tier(
    request: &Request,
    chapter: &str,
    nsys: Option<PathBuf>,
    ncu: Option<PathBuf>,
) -> anyhow::Result<(Option<PathBuf>, Option<PathBuf>)> {
    let nsys_missing = "Nsight Systems (nsys) is not on this machine";
    let ncu_missing = "Nsight Compute (ncu) is not on this machine";
    let doctor = "`cargo profile doctor` says how to get it";
    let nsys = nsys.filter(|_| request.timeline);
    let ncu = ncu.filter(|_| request.kernels);
    match (request.timeline, request.kernels, &nsys, &ncu) {
        (true, true, None, None) => bail!(
            "neither Nsight Systems (nsys) nor Nsight Compute (ncu) is on this machine: the best there is here are the \
             CUDA-event times in the chapter's own record (cargo run -p {chapter}); {doctor}"
        ),
        (true, false, None, _) => bail!("{nsys_missing}: {doctor}"),
        (false, true, _, None) => bail!("{ncu_missing}: {doctor}"),
        (true, true, None, Some(_)) => {
            println!("{nsys_missing}, so there will be no timeline: {doctor}")
        }
        (true, true, Some(_), None) => {
            println!("{ncu_missing}, so there will be no counters: {doctor}")
        }
        _ => {}
    }
    Ok((nsys, ncu))
}

fn target(request: &Request, home: &Home, chapter: &str) -> anyhow::Result<Target> {
    let listed = home.profiled(chapter)?;
    let cells = if request.cells.is_empty() {
        listed
    } else {
        Profiled { timeline: request.cells.clone(), kernels: request.cells.clone(), ..listed }
    };
    Ok(Target {
        chapter: chapter.to_owned(),
        // The contract of `lab`'s ranges: the domain is the chapter's number.
        domain: chapter.split('-').next().unwrap_or(chapter).to_owned(),
        program: home.program(chapter),
        arguments: ["--device", "gpu", "--once"].map(str::to_owned).into(),
        cells,
    })
}

fn build(home: &Home, chapter: &str) -> anyhow::Result<PathBuf> {
    let Home::Checkout(_) = home else { return Ok(home.program(chapter)) };
    let libclang = libclang::find_or_fetch()
        .context("a profile needs NVTX ranges, and they need libclang to be built")?;
    home.build(chapter, &libclang.environment())
}

fn timeline(
    nsys: &Path,
    target: &Target,
    folder: &Path,
    places: &Places,
    destination: &Destination,
) -> anyhow::Result<Half> {
    let session = nsys::session::run(nsys, target, folder, places)?;
    let cells = nsys::timeline::reduce(&session.trace, &target.domain)?;
    nsys::trace_events::write(&session.trace, &destination.folder().join(nsys::trace_events::FILE))?;
    Ok(Half {
        cells,
        lines: session.lines,
        device: session.trace.gpus.first().cloned(),
        notes: session.trace.warnings,
    })
}

fn kernels(
    ncu: &Path,
    target: &Target,
    folder: &Path,
    launches: u32,
    destination: &Destination,
) -> anyhow::Result<Half> {
    let session = ncu::session::run(ncu, target, folder, launches)?;
    let counted = session.counted.as_ref().map_err(String::as_str);
    let cells = ncu::kernels::reduce(&session.timed, counted, &destination.ceilings());
    let mut notes = session.timed.messages.clone();
    if session.timed.launches.len() as u32 == launches {
        notes.push(format!("stopped after {launches} launches: --launches N raises that"));
    }
    if let Err(reason) = &session.counted {
        notes.push(format!("no operations were counted: {reason}"));
    }
    let device = session.timed.launches.first().and_then(|launch| launch.device.clone());
    Ok(Half { cells, lines: session.lines, device, notes })
}

/// Puts one tool's half into the profile, or the reason why there is none.
fn add(
    profile: &mut Profile,
    half: anyhow::Result<Half>,
    (name, program): (&str, &Path),
    cell: &str,
    destination: &Destination,
    failures: &mut Vec<anyhow::Error>,
) -> anyhow::Result<()> {
    match half {
        Ok(half) => {
            if let Some(device) = &half.device {
                destination.same_gpu(device)?;
            }
            for note in half.notes {
                eprintln!("{name}: {note}");
            }
            let version = version_of(program).unwrap_or_else(|| "unknown".into());
            profile.tools.insert(name.to_owned(), version);
            profile.commands.extend(half.lines.iter().map(Invocation::without_paths));
            profile.cells.extend(half.cells);
        }
        Err(error) => {
            let reason = publishable(&format!("{error:#}"));
            profile.cells.push(store::not_collected(cell, &format!("{name} gave nothing"), &reason));
            failures.push(error);
        }
    }
    Ok(())
}

/// The first line of a message, with paths cut to their last part: records are published.
fn publishable(message: &str) -> String {
    let line = message.lines().next().unwrap_or_default();
    let words = line.split(' ').map(|word| {
        let begin = word.find(|c: char| !"`'\"(".contains(c)).unwrap_or(0);
        match word[begin..].rsplit_once('/') {
            Some((folder, last)) if folder.starts_with('/') => format!("{}{last}", &word[..begin]),
            _ => word.to_owned(),
        }
    });
    words.collect::<Vec<_>>().join(" ")
}

/// The commands that would be run. Where a tool is not found its bare name stands, and a line says so.
fn dry_run(
    request: &Request,
    home: &Home,
    chapter: &str,
    nsys: Option<&Path>,
    ncu: Option<&Path>,
) -> anyhow::Result<String> {
    let target = target(request, home, chapter)?;
    let folder = home.reports().join(chapter).join("TIME");
    let mut text = String::new();
    if let Some(line) = home.build_line(chapter) {
        text.push_str(&format!("{line}\n"));
    }
    let mut tool = |found: Option<&Path>, name: &str| {
        if found.is_none() {
            text.push_str(&format!(
                "# {name} is not on this machine: `cargo profile doctor` says how to get it\n"
            ));
        }
        found.map_or_else(|| PathBuf::from(name), Path::to_owned)
    };
    let mut lines = Vec::new();
    if request.timeline {
        let nsys = tool(nsys, "nsys");
        lines
            .extend([nsys::session::collect(&nsys, &target, &folder), nsys::session::export(&nsys, &folder)]);
    }
    if request.kernels {
        let ncu = tool(ncu, "ncu");
        lines.extend(ncu::session::lines(&ncu, &target, &folder, request.launches));
    }
    for line in lines {
        text.push_str(&format!("{line}\n"));
    }
    Ok(text)
}

/// A table as a terminal shows it.
fn show(table: &Table) -> String {
    let mut rows: Vec<Vec<String>> = vec![
        table.columns.iter().map(|column| column.name.clone()).collect(),
        table.columns.iter().map(|column| column.unit.clone()).collect(),
    ];
    rows.extend(table.rows.iter().map(|row| {
        row.iter()
            .map(|entry| match entry {
                Entry::Number(number) => format!("{number}"),
                Entry::Text(text) if text.starts_with("not collected") => "not collected".into(),
                Entry::Text(text) => text.clone(),
                Entry::NeedsGpu(()) => "needs a GPU".into(),
            })
            .collect()
    }));
    let widths: BTreeMap<usize, usize> = rows.iter().flat_map(|row| row.iter().enumerate()).fold(
        BTreeMap::new(),
        |mut widths, (column, cell)| {
            let width: &mut usize = widths.entry(column).or_default();
            *width = (*width).max(cell.chars().count());
            widths
        },
    );
    let line = |row: &Vec<String>| {
        let cells = row.iter().enumerate().map(|(column, cell)| match column {
            0 => format!("{cell:<width$}", width = widths[&column]),
            _ => format!("{cell:>width$}", width = widths[&column]),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    rows.iter().map(line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reason_names_no_folder() {
        assert_eq!(
            publishable("`/opt/nvidia/nsys profile` left no report (/home/someone/target/x)\nmore"),
            "`nsys profile` left no report (x)"
        );
        assert_eq!(publishable("bytes / time is undefined"), "bytes / time is undefined");
    }
}
