//! The format of PTX files that say what they compute.
//!
//! A file holds launches, each a comment with one line for each parameter:
//!
//! ```text
//! // run: kernel, grid 1, block 4            also: grid 2 3 1, shared 64, cooperative, budget 1000, and
//!                                            check init race sync: those checks, `all` of them, or only `bounds`;
//!                                            fine: among broken launches, one that is not
//! //   in  u32 1 2 3 4                       a buffer; `32*7` is a value 32 times, `0..4` counts
//! //   out f32 0.5 1.5 2.5 3.5               a buffer that the kernel fills; compared bit by bit
//! //   out f32 ~1e-6 0.5 1.5                 or within a relative distance
//! //   u32 4                                 a number
//! //   new 64                                a buffer of so many bytes that nothing has written
//! //   freed 64                              and one that was freed before the launch
//! //   prints hello\n
//! //   count global_load_sectors 4
//! ```
#![allow(dead_code, reason = "each test program uses a part of it")]

use std::{fs, path::Path};

use crate::Shape;
use emulator::settings::Checks;

/// A launch that a file asks for.
pub(crate) struct Request {
    pub(crate) kernel: String,
    pub(crate) shape: Shape,
    pub(crate) params: Vec<Param>,
    pub(crate) prints: Option<String>,
    pub(crate) counts: Vec<(String, u64)>,
    pub(crate) checks: Option<Checks>,
    pub(crate) budget: Option<u64>,
    pub(crate) fine: bool,
}

pub(crate) enum Param {
    In { bytes: Vec<u8> },
    Out { ty: String, bytes: Vec<u8>, distance: Option<f64> },
    Number(Vec<u8>),
    New { bytes: u64 },
    Freed { bytes: u64 },
}

pub(crate) fn files(folder: &str) -> Vec<(String, String)> {
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

pub(crate) fn launches(text: &str) -> Vec<Request> {
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
                checks: None,
                budget: None,
                fine: false,
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
                    "fine" => request.fine = true,
                    "cooperative" => request.shape.cooperative = true,
                    "budget" => request.budget = Some(numbers[0].into()),
                    "check" => {
                        let checks = request.checks.get_or_insert_default();
                        for check in words {
                            match check {
                                "bounds" => {}
                                "init" => checks.init = true,
                                "race" => checks.race = true,
                                "sync" => checks.sync = true,
                                "all" => *checks = Checks::ALL,
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
            "new" => launch.params.push(Param::New { bytes: rest.trim().parse().unwrap() }),
            "freed" => launch.params.push(Param::Freed { bytes: rest.trim().parse().unwrap() }),
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

pub(crate) fn compare(ty: &str, expected: &[u8], found: &[u8], distance: Option<f64>) -> Result<(), String> {
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
