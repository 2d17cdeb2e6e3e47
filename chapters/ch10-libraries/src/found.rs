//! Which of NVIDIA's libraries are here, and how cudarc gets to them.

use anyhow::{Context, Result};
use cudarc::driver::sys;
use lab::libraries::{ask, find, names};
use lab::{Cell, Table, row};

use crate::device::Device;

/// The libraries, their versions and who finds them.
pub(crate) fn libraries(cell: &mut Cell) -> Result<()> {
    let _device = Device::open()?;
    let mut version = 0;
    // SAFETY: the driver writes one number.
    unsafe { sys::cuDriverGetVersion(&mut version) }
        .result()
        .context("asking the driver's version")?;
    let found = find((version / 1000).unsigned_abs());
    let mut table = Table::new("libraries")
        .exact("library", "")
        .measured("version", "")
        .measured("who finds it", "")
        .measured("can be called", "");
    for name in names() {
        let library = found.iter().find(|library| library.name == name);
        let (version, by) = match library {
            Some(library) => (library.version.clone(), library.found_by.to_string()),
            None => (String::new(), "nobody".to_owned()),
        };
        let can = if ask(name, &[]).is_ok() { "yes" } else { "no" };
        table.push(row![name, version, by, can]);
    }
    cell.table(table);
    if let Err(missing) = ask("cuBLAS", &["cublasSgemm_v2"]) {
        cell.measured_text(format!("{missing}."));
    }
    // What a reader sees who asks for a function that the library does not have.
    // cuSPARSE's product of a sparse and a dense matrix by its name in CUDA 10.
    if let Err(missing) = ask("cuSPARSE", &["cusparseScsrmm"]) {
        cell.measured_text(format!("{missing}."));
    }
    Ok(())
}
