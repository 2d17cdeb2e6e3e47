//! Every form of every arithmetic instruction, over thousands of operands, against what an H200 computed.
//!
//! `sweep/forms.rs` lists the forms. For each of them a kernel is generated and run over the operands that
//! `sweep/operands.rs` chooses. The results are compared with `sweep/h200.json`, where a GPU's are kept: of exact forms
//! hashes of all bits, of approximate ones the bits for some operands, from which the emulated GPU may differ by what
//! the form's bound allows. `sweep/reference.rs` computes what can be computed independently.
//!
//! The program speaks the driver's interface alone. On a machine with a GPU
//!
//! ```text
//! CUDA_DRIVER=libcuda.so.1 SWEEP_RECORD=h200.json SWEEP_DUMP=h200.bin ./sweep
//! ```
//!
//! writes what that GPU computes, and here `SWEEP_COMPARE=h200.bin` then shows the operands for which the results differ.
//! `SWEEP_PTX=FOLDER` writes the kernels, for ptxas to judge.

mod common;
#[path = "sweep/forms.rs"]
mod forms;
#[path = "sweep/kernels.rs"]
mod kernels;
#[path = "sweep/operands.rs"]
mod operands;
#[path = "sweep/record.rs"]
mod record;
#[path = "sweep/reference.rs"]
mod reference;

use std::{env, fs, path::PathBuf};

use common::Context;
use forms::Form;
use record::{Dump, Record};

/// What a GPU computed.
const H200: &str = include_str!("sweep/h200.json");

#[test]
fn sweep() {
    let forms = forms::all();
    if let Some(folder) = env::var_os("SWEEP_PTX") {
        return kernels::write(&forms, &PathBuf::from(folder));
    }
    let _context = Context::new();
    let results = kernels::run(&forms);
    if let Some(path) = env::var_os("SWEEP_DUMP") {
        fs::write(&path, Dump::write(&forms, &results)).expect("SWEEP_DUMP names a file");
    }
    if let Some(path) = env::var_os("SWEEP_COMPARE") {
        let dump = fs::read(&path).expect("SWEEP_COMPARE names a file");
        return Dump::compare(&dump, &forms, &results);
    }
    if let Some(path) = env::var_os("SWEEP_RECORD") {
        return fs::write(&path, Record::write(&forms, &results)).expect("SWEEP_RECORD names a file");
    }
    let record = Record::read(H200);
    let mut wrong = Vec::new();
    for (form, result) in forms.iter().zip(&results) {
        match result {
            Err(code) => wrong.push(format!("{}: not loaded, error {code}", form.text)),
            Ok(values) => wrong.extend(check(form, values, &record)),
        }
    }
    assert!(wrong.is_empty(), "{} of {} forms:\n{}", wrong.len(), forms.len(), wrong.join("\n"));
}

/// What is wrong with a form's results.
fn check(form: &Form, values: &[u64], record: &Record) -> Option<String> {
    let rows = operands::rows(form);
    for (row, &found) in rows.iter().zip(values) {
        if let Some(expected) = reference::expected(form, row)
            && !reference::agrees(form, expected, found)
        {
            let row = row.map(|operand| format!("{operand:#x}")).join(", ");
            return Some(format!("{} of {row} is {found:#x}, not {expected:#x}", form.text));
        }
    }
    record.check(form, values)
}
