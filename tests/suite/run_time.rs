//! Chapter 5 with NVRTC in its place: what it compiles, runs and explains on the emulated GPU.

use std::path::PathBuf;
use std::process::Command;

use record::{Cell, Entry, Output, Record, Status};

use crate::kernels::{nvrtc, program, text};

/// The record of a run that finds NVRTC where pip has put it.
fn run() -> Record {
    let folder = tempfile::tempdir().unwrap();
    // …/nvidia/cuda_nvrtc/lib: the folder of Python's packages is three levels up.
    let site: PathBuf = nvrtc().ancestors().nth(3).unwrap().to_owned();
    let mut command: Command = program("ch05-runtime-compiled");
    command.env("PYTHONPATH", site).env("EMULATED_GPU_CHECK", "all");
    let output = command.args(["--device", "emulated", "--record"]).arg(folder.path()).output().unwrap();
    assert!(output.status.success(), "{}", text(&output));
    let path = record::path(folder.path(), "ch05-runtime-compiled");
    let record = Record::load(&path).unwrap().expect("the run leaves a record");
    assert_eq!(record.status, Status::Complete);
    record
}

fn cell<'a>(record: &'a Record, id: &str) -> &'a Cell {
    record.cell(id).unwrap_or_else(|| panic!("there is no cell {id}"))
}

fn texts(cell: &Cell) -> Vec<&str> {
    cell.outputs
        .iter()
        .filter_map(|output| match output {
            Output::Text(said) => Some(said.text.as_str()),
            _ => None,
        })
        .collect()
}

/// The rows of the cell's table.
fn rows(cell: &Cell) -> &[Vec<Entry>] {
    let table = cell.outputs.iter().find_map(|output| match output {
        Output::Table(table) => Some(&table.rows[..]),
        _ => None,
    });
    table.unwrap_or_else(|| panic!("{} has no table: {:?}", cell.id, cell.outputs))
}

fn word(entry: &Entry) -> &str {
    match entry {
        Entry::Text(text) => text,
        _ => panic!("{entry:?} is no word"),
    }
}

#[test]
fn chapter_5_compiles_runs_and_explains() {
    let record = run();
    assert_eq!(texts(cell(&record, "string")), ["1 + 2 = 3\n999 + 1998 = 2997\n"]);

    let wrong = rows(cell(&record, "odd-sizes"));
    assert_eq!(wrong.len(), 8);
    assert!(wrong.iter().all(|row| row[1..] == [Entry::Number(0.0), Entry::Number(0.0)]), "{wrong:?}");

    let mistakes = texts(cell(&record, "mistakes"));
    let shown = "2 |     size_t i = (size_t)blockIdx.x * blockdim.x + threadIdx.x;\n  |                                     ^^^^^^^^\n";
    assert!(
        mistakes[0].contains("identifier \"blockdim\" is undefined") && mistakes[0].contains(shown),
        "{mistakes:?}"
    );
    assert_eq!(mistakes.len(), 3);

    let counts = rows(cell(&record, "instructions"));
    let number = |row: usize, column: usize| match counts[row][column] {
        Entry::Number(number) => number,
        _ => panic!("{counts:?}"),
    };
    assert!(number(1, 1) < number(0, 1) && number(2, 1) < number(1, 1), "{counts:?}");
    assert_eq!([number(0, 2), number(1, 2), number(2, 2)], [26.0, 26.0, 1.0]);

    let names = rows(cell(&record, "names"));
    assert_eq!(word(&names[1][1]), "_Z10polynomialIfLi4EEvPKT_PS0_mS2_");

    let from: Vec<&str> = rows(cell(&record, "cost")).iter().map(|row| word(&row[1])).collect();
    assert_eq!(from, ["the compiler", "the folder", "the compiler"]);

    let answers: Vec<&str> = rows(cell(&record, "versions")).iter().map(|row| word(&row[2])).collect();
    let (future, foreign) = ("CUDA_ERROR_UNSUPPORTED_PTX_VERSION", "CUDA_ERROR_NO_BINARY_FOR_GPU");
    assert_eq!(answers, ["loads", future, "loads", foreign, foreign]);
}
