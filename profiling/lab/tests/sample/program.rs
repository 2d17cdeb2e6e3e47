//! A chapter that says everything a chapter can say, and goes wrong in every way: what `lab`'s own tests run.

use std::process::{Command, ExitCode};
use std::time::Duration;

use anyhow::{Context, Result, bail};
use lab::{Axis, Cell, CellSpec, Chapter, Figure, Series, Table, row, timing};

const CELLS: &[CellSpec] = &[
    lab::cell("outputs", "Say everything", outputs),
    lab::cell("order", "Let blocks race", |_| Ok(())).order_dependent(),
    lab::cell("ranges", "Open ranges", ranges),
    lab::cell("library", "Open a library by the name that cudarc asks for", library),
    lab::cell("fails", "Fail with a cause", fails),
    lab::cell("panics", "Panic", |_| panic!("a fact was none")),
    lab::cell("not-a-number", "Divide by zero", not_a_number),
    lab::cell("waits", "Wait to be stopped", waits),
];

fn main() -> ExitCode {
    let chapter = Chapter {
        name: "ch99-sample",
        manifest: "[package]\nname = \"ch99-sample\"\ndescription = \"What can a chapter say?\"\n\
                   [package.metadata.lab]\nlibraries = [\"cudarc\"]\nparameters = { largest = 64 }\n",
        loaded_kernels: || vec![("sample", ".version 8.0 // a comment\n")],
    };
    lab::main(chapter, CELLS)
}

fn outputs(cell: &mut Cell) -> Result<()> {
    cell.text("1 + 2 = 3");
    cell.measured_text(format!("this program is {}", std::env::current_exe()?.display()));
    cell.value("largest", cell.largest(1 << 28) as f64, "");
    let host = timing::host(|| std::thread::sleep(Duration::from_micros(50)));
    cell.measured("sleep", host.seconds(), "s");
    cell.measured("call", timing::host_call(|| Ok(()))?.map(timing::Timing::seconds), "s");

    let mut squares = Series::exact("squares", "").label("n²");
    cell.progress(10);
    for n in 1..=10u32 {
        cell.tick(&format!("n = {n}"));
        squares.push(n, f64::from(n * n));
    }
    cell.series(squares);
    cell.figure(
        Figure::new("How do squares grow?", "They grow faster and faster.")
            .x(Axis::linear("n", ""))
            .y(Axis::log10("square", ""))
            .series(["squares"])
            .limit("largest", "the largest size"),
    );
    cell.table(Table::new("words").exact("word", "").measured("time", "s").row(row!["now", 1e-3]));
    Ok(())
}

fn ranges(_: &mut Cell) -> Result<()> {
    let setup = lab::range("setup");
    drop(setup);
    {
        let _measure = lab::range("measure");
        let _kernel = lab::range("kernel.sample");
    }
    timing::host(|| {});
    let _check = lab::range("check");
    Ok(())
}

fn library(cell: &mut Cell) -> Result<()> {
    // SAFETY: the test's library has no initialiser.
    unsafe { libloading::Library::new("libnccl.so") }.context("opening libnccl.so")?;
    let child = Command::new("sh").args(["-c", "echo \"a child's path is <$LD_LIBRARY_PATH>\""]).output()?;
    cell.text(String::from_utf8(child.stdout)?);
    Ok(())
}

fn fails(_: &mut Cell) -> Result<()> {
    let cause = || -> Result<()> { bail!("there is none in {}", std::env::current_dir()?.display()) };
    cause().context("looking for a reason")
}

fn not_a_number(cell: &mut Cell) -> Result<()> {
    let (done, total) = (0, cell.largest(0));
    cell.value("ratio", done as f64 / total as f64, "");
    Ok(())
}

fn waits(_: &mut Cell) -> Result<()> {
    std::thread::sleep(Duration::from_secs(600));
    Ok(())
}
