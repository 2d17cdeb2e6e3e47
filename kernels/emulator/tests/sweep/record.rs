//! What a GPU computed, in a file of one line for each form.
//!
//! Of an exact form: a hash of all results; after it one of each eighth of them, in which every NaN is the same, so that a
//! difference says where it is and whether it is only which NaN. Of an approximate form: the results for some operands.

use std::{env, fmt::Write as _};

use super::{forms::Form, operands, reference};

/// Parts of a form's results that have a hash each.
const PARTS: usize = 8;

/// How many results of an approximate form are kept.
const KEPT: usize = 320;

/// A recorded file.
pub(crate) struct Record(serde_json::Map<String, serde_json::Value>);

impl Record {
    pub(crate) fn read(text: &str) -> Record {
        match serde_json::from_str(text) {
            Ok(serde_json::Value::Object(forms)) => Record(forms),
            _ => panic!("the record is no JSON object"),
        }
    }

    pub(crate) fn write(forms: &[Form], results: &[Result<Vec<u64>, u32>]) -> String {
        let mut text = String::from("{\n");
        for (number, (form, result)) in forms.iter().zip(results).enumerate() {
            let value = match result {
                Ok(values) => of(form, values),
                Err(code) => format!("error {code}"),
            };
            let comma = if number + 1 < forms.len() { "," } else { "" };
            // Writing to a string cannot fail.
            let _written = writeln!(text, "\"{}\": \"{value}\"{comma}", form.text);
        }
        text + "}\n"
    }

    /// What differs from the record.
    pub(crate) fn check(&self, form: &Form, values: &[u64]) -> Option<String> {
        let recorded = self.0.get(&form.text).and_then(|value| value.as_str());
        let Some(bound) = form.bound else { return exact(form, recorded?, values) };
        let recorded: Vec<Option<u64>> = match recorded {
            Some(recorded) => recorded.split(' ').map(|bits| u64::from_str_radix(bits, 16).ok()).collect(),
            None => Vec::new(),
        };
        let rows = operands::rows(form);
        for (place, index) in kept(values.len()).enumerate() {
            let other = recorded.get(place).copied().flatten();
            let exact = reference::is_near(form, bound, &rows[index], values[index], None);
            let same = other
                .and_then(|other| reference::is_near(form, bound, &rows[index], values[index], Some(other)));
            if exact == Some(false) || same == Some(false) {
                let other = other.map_or("none".to_owned(), |other| format!("{other:#x}"));
                return Some(format!(
                    "{} of {:#x}, {:#x} is {:#x}; the H200's is {other}, and the bound {bound:?}",
                    form.text, rows[index][0], rows[index][1], values[index]
                ));
            }
        }
        None
    }
}

fn exact(form: &Form, recorded: &str, values: &[u64]) -> Option<String> {
    if recorded.starts_with("error") {
        return Some(format!("{}: a GPU's driver refuses it: {recorded}", form.text));
    }
    let found = of(form, values);
    if found == recorded {
        return None;
    }
    let parts = found.split(' ').skip(1).zip(recorded.split(' ').skip(1));
    let differ: Vec<usize> = parts.enumerate().filter(|(_, (a, b))| a != b).map(|(part, _)| part).collect();
    Some(if differ.is_empty() {
        format!("{}: which NaN it is differs", form.text)
    } else {
        format!("{}: parts {differ:?} of {PARTS} differ", form.text)
    })
}

fn of(form: &Form, values: &[u64]) -> String {
    if form.bound.is_some() {
        let kept: Vec<String> = kept(values.len()).map(|index| format!("{:x}", values[index])).collect();
        return kept.join(" ");
    }
    let mut text = format!("{:016x}", hash(values.iter().copied()));
    for part in values.chunks(values.len().div_ceil(PARTS)) {
        let hash = hash(part.iter().map(|&bits| reference::one_nan(&form.dest, bits)));
        // Writing to a string cannot fail.
        let _written = write!(text, " {:08x}", hash >> 32);
    }
    text
}

/// Which results of an approximate form are kept: the edges, which come first, and some of the rest.
fn kept(count: usize) -> impl Iterator<Item = usize> {
    let edges = count.min(KEPT / 2);
    let step = (count - edges).div_ceil(KEPT / 2).max(1);
    (0..edges).chain((edges..count).step_by(step))
}

/// Fowler, Noll and Vo's hash of the bytes.
fn hash(values: impl Iterator<Item = u64>) -> u64 {
    values.flat_map(u64::to_le_bytes).fold(0xCBF2_9CE4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3)
    })
}

/// All results, to find out which ones differ.
pub(crate) struct Dump;

impl Dump {
    /// For each form its text and a line break, the number of results, and so many of 8 bytes, or as few as they need.
    pub(crate) fn write(forms: &[Form], results: &[Result<Vec<u64>, u32>]) -> Vec<u8> {
        let mut bytes = Vec::new();
        for (form, result) in forms.iter().zip(results) {
            let values = result.as_deref().unwrap_or_default();
            bytes.extend_from_slice(format!("{}\n", form.text).as_bytes());
            bytes.extend_from_slice(&(values.len() as u32).to_le_bytes());
            for value in values {
                bytes.extend_from_slice(&value.to_le_bytes()[..Dump::width(form)]);
            }
        }
        bytes
    }

    fn width(form: &Form) -> usize {
        super::kernels::register(&form.dest) as usize / 8
    }

    /// Prints some results of each form that differ, and all results of forms whose text contains `SWEEP_FORM`.
    pub(crate) fn compare(dump: &[u8], forms: &[Form], results: &[Result<Vec<u64>, u32>]) {
        let mut rest = dump;
        while let Some(end) = rest.iter().position(|&byte| byte == b'\n') {
            let text = String::from_utf8_lossy(&rest[..end]).into_owned();
            let count =
                rest[end + 1..end + 5].iter().rev().fold(0, |count, &byte| count << 8 | usize::from(byte));
            rest = &rest[end + 5..];
            let known = forms.iter().zip(results).find(|(form, _)| form.text == text);
            let Some((form, result)) = known else {
                println!("{text}: no such form now, and the rest of the dump cannot be read");
                return;
            };
            let width = Dump::width(form);
            let theirs = rest[..count * width].chunks(width);
            let theirs: Vec<u64> = theirs
                .map(|bytes| bytes.iter().rev().fold(0, |value, &byte| value << 8 | u64::from(byte)))
                .collect();
            rest = &rest[count * width..];
            let Ok(ours) = result else { continue };
            if env::var("SWEEP_FORM").is_ok_and(|part| text.contains(&part)) {
                for (row, (ours, theirs)) in operands::rows(form).iter().zip(ours.iter().zip(&theirs)) {
                    println!("{text}\t{:x}\t{:x}\t{:x}\t{ours:x}\t{theirs:x}", row[0], row[1], row[2]);
                }
            }
            if theirs.is_empty() {
                println!("{text}: the GPU's driver refuses it");
            }
            let rows = operands::rows(form);
            let differ: Vec<usize> = (0..theirs.len())
                .filter(|&index| {
                    let near = |bound| {
                        reference::is_near(form, bound, &rows[index], ours[index], Some(theirs[index]))
                    };
                    ours[index] != theirs[index] && form.bound.and_then(near) != Some(true)
                })
                .collect();
            if differ.is_empty() {
                continue;
            }
            println!("{text}: {} of {} differ", differ.len(), theirs.len());
            let step = differ.len().div_ceil(6);
            for &index in differ.iter().step_by(step) {
                println!(
                    "    {:x?}: {:#x}, the GPU's {:#x}",
                    &rows[index][..form.sources.len()],
                    ours[index],
                    theirs[index]
                );
            }
        }
    }
}
