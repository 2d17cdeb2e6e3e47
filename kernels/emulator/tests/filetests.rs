//! PTX files that say what they compute.
//!
//! `tests/ptx/run/*.ptx` run on every vector unit that this host has, on one host thread and on two, with the same results
//! and counts. A file holds launches, each a comment with one line for each parameter:
//!
//! ```text
//! // run: kernel, grid 1, block 4            also: grid 2 3 1, shared 64, cooperative
//! //   in  u32 1 2 3 4                       a buffer; `32*7` is a value 32 times, `0..4` counts
//! //   out f32 0.5 1.5 2.5 3.5               a buffer that the kernel fills; compared bit by bit
//! //   out f32 ~1e-6 0.5 1.5                 or within a relative distance
//! //   u32 4                                 a number
//! //   prints hello\n
//! //   count global_load_sectors 4
//! ```
//!
//! A file with the line `// counts vary` has threads that wait for each other: how often they look is not determined.
//!
//! `tests/ptx/fault/*.ptx` launch in the same way and end in a fault, whose report is a snapshot.

mod machine;

use std::{fmt::Write as _, fs, path::Path};

use emulator::{grid::Stop, module::Level, settings::Checks};
use machine::{Gpu, Shape};

#[test]
fn run() {
    let mut failures = String::new();
    for (name, text) in files("run") {
        for level in Level::all() {
            let mut counts = Vec::new();
            for threads in [1, 2] {
                match check(&text, level, threads) {
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
fn fault() {
    for (name, text) in files("fault") {
        let reports: Vec<String> = launches(&text)
            .iter()
            .map(|launch| {
                let gpu = Gpu::load(&text, Level::host()).unwrap_or_else(|error| panic!("{name}: {error}"));
                match launch.run(gpu, 1).1 {
                    Err(Stop::Fault(fault)) => {
                        format!("CUDA error {}\n{}", fault.cuda_error(), hide(&fault.to_string()))
                    }
                    Err(Stop::Unsupported(what)) => panic!("{name}: unsupported: {what}"),
                    Ok(_) => panic!("{name}: {} ended well", launch.kernel),
                }
            })
            .collect();
        insta::with_settings!({ snapshot_path => "ptx/fault", prepend_module_to_snapshot => false, omit_expression => true }, {
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

fn files(folder: &str) -> Vec<(String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/ptx").join(folder);
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "ptx"))
        .map(|path| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), fs::read_to_string(&path).unwrap())
        })
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no files in {}", folder.display());
    files
}

/// A launch that a file asks for.
struct Request {
    kernel: String,
    shape: Shape,
    params: Vec<Param>,
    prints: Option<String>,
    counts: Vec<(String, u64)>,
    checks: Checks,
    budget: Option<u64>,
}

enum Param {
    In { bytes: Vec<u8> },
    Out { ty: String, bytes: Vec<u8>, distance: Option<f64> },
    Number(Vec<u8>),
}

fn check(text: &str, level: Level, threads: usize) -> Result<Vec<Vec<(&'static str, u64)>>, String> {
    let mut all = Vec::new();
    for launch in launches(text) {
        let gpu = Gpu::load(text, level).map_err(|error| error.to_string())?;
        let (gpu, result, buffers) = {
            let (gpu, result, buffers) = launch.run_all(gpu, threads);
            (gpu, result, buffers)
        };
        let counters = result.map_err(|stop| format!("{}: {stop:?}", launch.kernel))?;
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
        all.push(named);
    }
    Ok(all)
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
        gpu.settings.checks = self.checks;
        gpu.settings.budget = self.budget.unwrap_or(10_000_000);
        let mut values = Vec::new();
        let mut addresses = Vec::new();
        for param in &self.params {
            let address = match param {
                Param::In { bytes } => gpu.upload(bytes),
                Param::Out { bytes, .. } => gpu.upload(&vec![0u8; bytes.len()]),
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

fn launches(text: &str) -> Vec<Request> {
    let mut launches: Vec<Request> = Vec::new();
    for line in text.lines() {
        let Some(line) = line.strip_prefix("//") else { continue };
        if let Some(line) = line.strip_prefix(" run: ") {
            let mut parts = line.split(", ");
            let kernel = parts.next().unwrap().to_owned();
            let mut request = Request {
                kernel,
                shape: Shape::new([1; 3], [32, 1, 1]),
                params: Vec::new(),
                prints: None,
                counts: Vec::new(),
                checks: Checks::default(),
                budget: None,
            };
            for part in parts {
                let mut words = part.split_whitespace();
                let word = words.next().unwrap();
                let numbers: Vec<u32> = words.clone().filter_map(|word| word.parse().ok()).collect();
                let axis = |index: usize| numbers.get(index).copied().unwrap_or(1);
                match word {
                    "grid" => request.shape.grid = [axis(0), axis(1), axis(2)],
                    "block" => request.shape.block = [axis(0), axis(1), axis(2)],
                    "shared" => request.shape.shared = numbers[0],
                    "cooperative" => request.shape.cooperative = true,
                    "budget" => request.budget = Some(numbers[0].into()),
                    "check" => {
                        for check in words {
                            match check {
                                "sync" => request.checks.sync = true,
                                _ => panic!("unknown check in `{line}`"),
                            }
                        }
                    }
                    _ => panic!("unknown word in `{line}`"),
                }
            }
            launches.push(request);
            continue;
        }
        let (Some(launch), Some(line)) = (launches.last_mut(), line.strip_prefix("   ")) else {
            continue;
        };
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let rest = rest.trim_start();
        match word {
            "in" => {
                let (ty, rest) = rest.split_once(' ').unwrap();
                launch.params.push(Param::In { bytes: values(ty, rest) });
            }
            "out" => {
                let (ty, mut rest) = rest.split_once(' ').unwrap();
                let mut distance = None;
                if let Some(after) = rest.strip_prefix('~') {
                    let (value, values) = after.split_once(' ').unwrap();
                    distance = Some(value.parse().unwrap());
                    rest = values;
                }
                launch.params.push(Param::Out { ty: ty.into(), bytes: values(ty, rest), distance });
            }
            "prints" => launch.prints = Some(rest.replace("\\n", "\n")),
            "count" => {
                let (name, value) = rest.split_once(' ').unwrap();
                launch.counts.push((name.into(), value.trim().parse().unwrap()));
            }
            ty => launch.params.push(Param::Number(values(ty, rest))),
        }
    }
    assert!(!launches.is_empty(), "no launch");
    launches
}

fn values(ty: &str, text: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for word in text.split_whitespace() {
        let (count, word) = match word.split_once('*') {
            Some((count, word)) => (count.parse().unwrap(), word),
            None => (1, word),
        };
        if let Some((start, stop)) = word.split_once("..")
            && let (Ok(start), Ok(stop)) = (start.parse::<i64>(), stop.parse::<i64>())
        {
            for value in start..stop {
                for _ in 0..count {
                    bytes.extend(encode(ty, &value.to_string()));
                }
            }
            continue;
        }
        for _ in 0..count {
            bytes.extend(encode(ty, word));
        }
    }
    bytes
}

fn encode(ty: &str, word: &str) -> Vec<u8> {
    let integer = || -> u64 {
        let (negative, digits) = match word.strip_prefix('-') {
            Some(digits) => (true, digits),
            None => (false, word),
        };
        let value = match digits.strip_prefix("0x") {
            Some(digits) => u64::from_str_radix(digits, 16),
            None => digits.parse(),
        };
        let value = value.unwrap_or_else(|_| panic!("`{word}` is no {ty}"));
        if negative { value.wrapping_neg() } else { value }
    };
    let float = || word.parse::<f64>().unwrap_or_else(|_| panic!("`{word}` is no {ty}"));
    match ty {
        "u8" | "s8" => vec![integer() as u8],
        "u16" | "s16" => (integer() as u16).to_le_bytes().to_vec(),
        "u32" | "s32" => (integer() as u32).to_le_bytes().to_vec(),
        "u64" | "s64" => integer().to_le_bytes().to_vec(),
        "f32" if word.starts_with("0x") => (integer() as u32).to_le_bytes().to_vec(),
        "f64" if word.starts_with("0x") => integer().to_le_bytes().to_vec(),
        "f32" => word.parse::<f32>().unwrap_or_else(|_| panic!("`{word}` is no f32")).to_le_bytes().to_vec(),
        "f64" => float().to_le_bytes().to_vec(),
        _ => panic!("unknown type `{ty}`"),
    }
}

fn compare(ty: &str, expected: &[u8], found: &[u8], distance: Option<f64>) -> Result<(), String> {
    let bytes = match ty {
        "u8" | "s8" => 1,
        "u16" | "s16" => 2,
        "u64" | "s64" | "f64" => 8,
        _ => 4,
    };
    for (index, (expected, found)) in expected.chunks(bytes).zip(found.chunks(bytes)).enumerate() {
        if expected == found {
            continue;
        }
        let show = |value: &[u8]| {
            let mut wide = [0; 8];
            wide[..bytes].copy_from_slice(value);
            let bits = u64::from_le_bytes(wide);
            match ty {
                "f32" => (
                    f64::from(f32::from_bits(bits as u32)),
                    format!("{} ({bits:#x})", f32::from_bits(bits as u32)),
                ),
                "f64" => (f64::from_bits(bits), format!("{} ({bits:#x})", f64::from_bits(bits))),
                _ => (bits as f64, format!("{bits:#x}")),
            }
        };
        let ((wanted, expected), (got, found)) = (show(expected), show(found));
        if let Some(distance) = distance
            && ((wanted - got).abs() <= distance * wanted.abs() || wanted.is_nan() && got.is_nan())
        {
            continue;
        }
        return Err(format!("element {index} is {found}, not {expected}"));
    }
    Ok(())
}
