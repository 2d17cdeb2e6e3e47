//! PTX files that say what they compute, without the driver.
//!
//! `tests/ptx/run/*.ptx` run on every vector unit that this host has, on one host thread and on two, with the same results
//! and counts. `launches` tells the format; `device.rs` runs the same files through a driver.
//!
//! Every launch runs a second time with all checks on, for nothing there is wrong; `check bounds` is for those that do what
//! the manual forbids and GPUs allow.
//!
//! A file with the line `// counts vary` has threads that wait for each other: how often they look is not determined.
//!
//! `tests/ptx/fault/*.ptx` launch in the same way and end in a fault, whose report is a snapshot. So do
//! `tests/ptx/broken/*.ptx`, programs with one usual mistake each, and corrected ones beside them. They are what NVRTC 12.0
//! makes of the `.cu` files there with `-arch=compute_75 -lineinfo`, behind the comments that say how to launch them.

mod launches;
mod machine;

use std::{fmt::Write as _, fs, path::Path};

use emulator::{grid::Stop, memory::Kind, module::Level, settings::Checks};
use launches::{Param, Request, compare, files, launches};
use machine::{Gpu, Shape};

#[test]
fn run() {
    let mut failures = String::new();
    for (name, text) in files("run") {
        for level in Level::all() {
            let mut counts = Vec::new();
            for threads in [1, 2] {
                match check(&text, level, threads, Checks::default()) {
                    Ok(found) => counts.push(found),
                    Err(error) => {
                        writeln!(failures, "{name} ({level:?}, {threads} threads): {error}").unwrap()
                    }
                }
            }
            if let [one, two] = &counts[..]
                && one != two
                && !text.contains("// counts vary")
            {
                writeln!(failures, "{name} ({level:?}): counts depend on the number of threads").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn no_check_complains_of_what_is_right() {
    let mut failures = String::new();
    for (name, text) in files("run") {
        for level in [Level::host(), Level::Baseline] {
            if let Err(error) = check(&text, level, 1, Checks::ALL) {
                writeln!(failures, "{name} ({level:?}): {error}").unwrap();
            }
        }
    }
    assert!(failures.is_empty(), "\n{failures}");
}

#[test]
fn fault() {
    snapshots("fault", |launch| launch.checks.unwrap_or_default());
}

/// What each program's author gets to read.
#[test]
fn broken() {
    snapshots("broken", |launch| launch.checks.unwrap_or_default());
}

/// The corrected programs beside the broken ones.
#[test]
fn corrected() {
    let mut failures = String::new();
    let mut count = 0;
    for (name, text) in files("broken") {
        for level in [Level::host(), Level::Baseline] {
            let fine = launches(&text).into_iter().filter(|launch| launch.fine);
            for launch in fine {
                count += 1;
                if let Err(error) = check_launch(&text, launch, level, 1, Checks::ALL) {
                    writeln!(failures, "{name} ({level:?}): {error}").unwrap();
                }
            }
        }
    }
    assert!(failures.is_empty() && count > 0, "\n{failures}");
}

/// What the checks find, they alone find; everything else is found without any, and with all of them.
#[test]
fn each_check_finds_its_own() {
    for (name, text) in files("broken") {
        for launch in launches(&text).iter().filter(|launch| !launch.fine) {
            let found = |checks| {
                let gpu = Gpu::load_with(&text, Level::host(), checks).unwrap();
                match launch.run(gpu, 1).1 {
                    Err(Stop::Fault(fault)) => Some(fault.cause),
                    _ => None,
                }
            };
            let needs = launch.checks.unwrap_or_default() != Checks::default();
            assert_eq!(found(Checks::default()).is_none(), needs, "{name} without checks");
            assert!(found(Checks::ALL).is_some(), "{name} with all checks");
        }
    }
}

/// `tests/ptx/broken/table.md`: what is said of each broken program, here and by compute-sanitizer on an H200, as recorded in
/// `sanitizer.csv` beside it.
#[test]
fn table() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/broken");
    let recorded = fs::read_to_string(folder.join("sanitizer.csv")).unwrap();
    let recorded: Vec<Vec<&str>> =
        recorded.lines().skip(2).map(|line| line.splitn(4, ',').collect()).collect();
    let mut table = String::from(
        "| program | emulated GPU | with | an H200 alone | compute-sanitizer on it |\n|---|---|---|---|---|\n",
    );
    for (name, text) in files("broken") {
        let program = name.trim_end_matches(".ptx");
        let said = |tool: &str| {
            let of = |row: &&Vec<&str>| row[..3] == [program, "broken", tool] && !row[3].is_empty();
            recorded.iter().find(of).map(|row| row[3])
        };
        let tools: Vec<String> = ["memcheck", "initcheck", "racecheck", "synccheck"]
            .into_iter()
            .filter_map(|tool| Some(format!("{tool}: {}", said(tool)?.replace("__", "\\_\\_"))))
            .collect();
        let never_ends = said("none") == Some("no end");
        let tools = match &tools[..] {
            _ if never_ends => "does not end".into(),
            [] => "nothing".into(),
            tools => tools.join("; "),
        };
        let alone = match said("none") {
            None => "nothing",
            Some("no end") => "does not end",
            Some(said) => said,
        };
        for launch in launches(&text).iter().filter(|launch| !launch.fine) {
            let checks = launch.checks.unwrap_or_default();
            let gpu = Gpu::load_with(&text, Level::host(), checks).unwrap();
            let Err(Stop::Fault(fault)) = launch.run(gpu, 1).1 else { panic!("{name} ended well") };
            let with = match checks {
                Checks { init: true, .. } => "`init`",
                Checks { race: true, .. } => "`race`",
                Checks { sync: true, .. } => "`sync`",
                _ => "",
            };
            let report = fault.to_string();
            let said =
                report.lines().next().unwrap().trim_start_matches("emulated GPU: the program's fault: ");
            writeln!(table, "| {} | {said} | {with} | {alone} | {tools} |", program.replace('_', " "))
                .unwrap();
        }
    }
    let path = folder.join("table.md");
    if fs::read_to_string(&path).ok().as_deref() != Some(&table) {
        let new = path.with_extension("md.new");
        fs::write(&new, table).unwrap();
        panic!("{} is not what the programs give: {} is", path.display(), new.display());
    }
}

/// The reports of a folder's launches, a snapshot for each file.
fn snapshots(folder: &str, checks: impl Fn(&Request) -> Checks) {
    for (name, text) in files(folder) {
        let reports: Vec<String> = launches(&text)
            .iter()
            .filter(|launch| !launch.fine)
            .map(|launch| {
                let gpu = Gpu::load_with(&text, Level::host(), checks(launch));
                let gpu = gpu.unwrap_or_else(|error| panic!("{name}: {error}"));
                match launch.run(gpu, 1).1 {
                    Err(Stop::Fault(fault)) => {
                        format!("CUDA error {}\n{}", fault.cuda_error(), hide(&fault.to_string()))
                    }
                    Err(Stop::Unsupported(what)) => panic!("{name}: unsupported: {what}"),
                    Err(Stop::Halted) => panic!("{name}: halted"),
                    Ok(_) => panic!("{name}: {} ended well", launch.kernel),
                }
            })
            .collect();
        insta::with_settings!({
            snapshot_path => format!("ptx/{folder}"), prepend_module_to_snapshot => false, omit_expression => true
        }, {
            insta::assert_snapshot!(name.trim_end_matches(".ptx"), reports.join("\n"));
        });
    }
}

/// Addresses differ from run to run; their last digits do not.
fn hide(report: &str) -> String {
    let mut hidden = String::new();
    for word in report.split_inclusive([' ', ',', '\n']) {
        let digits = word.trim_end_matches([' ', ',', '\n']);
        let long = digits.starts_with("0x") && digits.len() > 12;
        if long {
            hidden.push_str("0x…");
            hidden.push_str(&word[digits.len() - 3..]);
        } else {
            hidden.push_str(word);
        }
    }
    hidden
}

fn check(
    text: &str,
    level: Level,
    threads: usize,
    checks: Checks,
) -> Result<Vec<Vec<(&'static str, u64)>>, String> {
    launches(text).into_iter().map(|launch| check_launch(text, launch, level, threads, checks)).collect()
}

fn check_launch(
    text: &str,
    mut launch: Request,
    level: Level,
    threads: usize,
    checks: Checks,
) -> Result<Vec<(&'static str, u64)>, String> {
    let checks = *launch.checks.get_or_insert(checks);
    let gpu = Gpu::load_with(text, level, checks).map_err(|error| error.to_string())?;
    let (gpu, result, buffers) = launch.run_all(gpu, threads);
    let counters = result.map_err(|stop| match stop {
        Stop::Fault(fault) => format!("{}:\n{fault}", launch.kernel),
        stop => format!("{}: {stop:?}", launch.kernel),
    })?;
    for (number, (param, address)) in launch.params.iter().zip(&buffers).enumerate() {
        if let Param::Out { ty, bytes, distance } = param {
            let found = gpu.download::<u8>(*address, bytes.len());
            compare(ty, bytes, &found, *distance)
                .map_err(|error| format!("{}, parameter {number}: {error}", launch.kernel))?;
        }
    }
    let printed = gpu.printed();
    if let Some(expected) = &launch.prints
        && *expected != printed
    {
        return Err(format!("{}: printed {printed:?}, not {expected:?}", launch.kernel));
    }
    let named = counters.named();
    for (name, expected) in &launch.counts {
        let found = named.iter().find(|(known, _)| known == name).map(|(_, count)| *count);
        if found != Some(*expected) {
            return Err(format!("{}: {name} is {found:?}, not {expected}", launch.kernel));
        }
    }
    Ok(named)
}

impl Request {
    fn run(&self, gpu: Gpu, threads: usize) -> (Gpu, Result<emulator::counters::Counters, Stop>) {
        let (gpu, result, _) = self.run_all(gpu, threads);
        (gpu, result)
    }

    fn run_all(
        &self,
        mut gpu: Gpu,
        threads: usize,
    ) -> (Gpu, Result<emulator::counters::Counters, Stop>, Vec<u64>) {
        gpu.settings.threads = threads;
        gpu.settings.budget = self.budget.unwrap_or(10_000_000);
        let mut values = Vec::new();
        let mut addresses = Vec::new();
        for param in &self.params {
            let address = match param {
                Param::In { bytes } => gpu.upload(bytes),
                Param::Out { bytes, .. } => gpu.upload(&vec![0u8; bytes.len()]),
                Param::New { bytes } => gpu.memory.allocate(*bytes, Kind::Device).unwrap(),
                Param::Freed { bytes } => {
                    let address = gpu.memory.allocate(*bytes, Kind::Device).unwrap();
                    gpu.memory.free(address).unwrap();
                    address
                }
                Param::Number(bytes) => {
                    values.push(bytes.clone());
                    addresses.push(0);
                    continue;
                }
            };
            values.push(address.to_le_bytes().to_vec());
            addresses.push(address);
        }
        let params: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
        let result = gpu.launch(&self.kernel, self.shape, &params);
        (gpu, result, addresses)
    }
}
