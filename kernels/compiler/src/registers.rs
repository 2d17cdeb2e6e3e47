//! How many registers ptxas gives each kernel, which PTX does not say: `kernels/ptx/registers.csv`.
//!
//! The number decides how many blocks fit on a multiprocessor. NVRTC has no ptxas, so whoever has a CUDA toolkit measures with
//! `cargo kernels --registers`; everybody else gets the committed numbers, written into the PTX's heading, where the
//! emulated GPU finds them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::source::{KernelSource, names};

/// The architectures of the cards that the emulated GPU stands for.
const ARCHITECTURES: [u32; 5] = [75, 80, 86, 89, 90];

/// What was measured, by kernel.
pub(crate) struct Registers(Vec<Row>);

struct Row {
    architecture: u32,
    kernel: String,
    registers: u32,
    /// The SHA-256 of the source that was compiled.
    source: String,
}

impl Registers {
    /// Reads what is committed. Nothing is an answer too.
    pub(crate) fn read(root: &Path) -> Registers {
        let text = fs::read_to_string(path(root)).unwrap_or_default();
        Registers(text.lines().filter_map(Row::parse).collect())
    }

    /// The lines of a kernel's heading: `// ptxas sm_90: copy_01_float4 14 registers`. Numbers of an older source are left out.
    pub(crate) fn heading(&self, kernel: &KernelSource) -> String {
        let source = source_of(kernel);
        let own = self.0.iter().filter(|row| row.kernel == kernel.name() && row.source == source);
        own.fold(String::new(), |mut lines, row| {
            // Writing to a string cannot fail.
            let _ = writeln!(
                lines,
                "// ptxas sm_{}: {} {} registers",
                row.architecture, row.kernel, row.registers
            );
            lines
        })
    }
}

impl Row {
    fn parse(line: &str) -> Option<Row> {
        let mut fields = line.split(',');
        let architecture = fields.next()?.strip_prefix("sm_")?.parse().ok()?;
        let kernel = fields.next()?.to_owned();
        let registers = fields.next()?.parse().ok()?;
        Some(Row { architecture, kernel, registers, source: fields.next()?.to_owned() })
    }
}

/// Asks the ptxas on the search path about every committed kernel, and writes the answers down.
///
/// # Errors
/// When there is no ptxas, it refuses a kernel, or the file cannot be written.
pub fn measure_registers(root: &Path) -> Result<usize> {
    let version = ptxas(&["--version".as_ref()])?;
    let version =
        version.lines().find_map(|line| line.split(", V").nth(1)).unwrap_or("of unknown version").trim();
    let mut text = format!("architecture,kernel,registers,source sha256 (ptxas {version})\n");
    let mut count = 0;
    for name in names(&root.join("kernels/cuda"), ".cu")? {
        let kernel = KernelSource::read(root, &format!("kernels/cuda/{name}.cu"))?;
        let ptx = root.join(format!("kernels/ptx/{name}.ptx"));
        let digits: String = kernel.needs.target.chars().filter(char::is_ascii_digit).collect();
        let least: u32 = digits.parse().with_context(|| format!("the target of {}", kernel.path))?;
        for architecture in ARCHITECTURES.into_iter().filter(|&architecture| architecture >= least) {
            let arch = format!("-arch=sm_{architecture}");
            let said =
                ptxas(&["-v".as_ref(), arch.as_ref(), "-o".as_ref(), "/dev/null".as_ref(), ptx.as_os_str()])?;
            let registers = used_registers(&said)
                .with_context(|| format!("ptxas does not say how many registers {name} uses: {said}"))?;
            writeln!(text, "sm_{architecture},{name},{registers},{}", source_of(&kernel))?;
            count += 1;
        }
    }
    let path = path(root);
    fs::write(&path, text).with_context(|| format!("writing {}", path.display()))?;
    Ok(count)
}

/// `ptxas info    : Used 14 registers, used 0 barriers, …`
fn used_registers(said: &str) -> Option<u32> {
    said.split("Used ").nth(1)?.split(' ').next()?.parse().ok()
}

fn ptxas(arguments: &[&std::ffi::OsStr]) -> Result<String> {
    let output = Command::new("ptxas").args(arguments).output().context(
        "running ptxas, which is part of the CUDA toolkit: put its `bin` on PATH. Without it the committed numbers stay",
    )?;
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    if !output.status.success() {
        bail!("ptxas: {}", said.trim());
    }
    Ok(said)
}

fn source_of(kernel: &KernelSource) -> String {
    kernel.hashes().into_iter().map(|(_, hash)| hash[..16].to_owned()).collect::<Vec<_>>().join("+")
}

fn path(root: &Path) -> PathBuf {
    root.join("kernels/ptx/registers.csv")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_another_source_are_left_out() {
        let kernel = KernelSource::from_text("kernels/cuda/add.cu", "// adds\n").unwrap();
        let row = |source: String| Row { architecture: 90, kernel: "add".into(), registers: 12, source };
        let heading = |source| Registers(vec![row(source)]).heading(&kernel);
        assert_eq!(heading(source_of(&kernel)), "// ptxas sm_90: add 12 registers\n");
        assert_eq!(heading("0123456789abcdef".into()), "");
    }

    #[test]
    fn ptxas_is_understood() {
        let said = "ptxas info    : 0 bytes gmem\nptxas info    : Used 14 registers, used 0 barriers, 376 bytes cmem[0]\n";
        assert_eq!(used_registers(said), Some(14));
        assert_eq!(used_registers("ptxas fatal"), None);
    }
}
