//! The tools: Nsight Systems with its importer, Nsight Compute with its permission, libclang, and two debuggers.

use std::path::Path;

use compiler::libclang;

use super::Check;
use crate::ncu::session::PERMISSION_FIX;
use crate::nsys::session::libraries_fix;
use crate::tools::{Places, version_of};

pub(super) const NSYS: &str = "nsys";
pub(super) const IMPORTER: &str = "nsys importer";
pub(super) const NCU: &str = "ncu";
pub(super) const COUNTERS: &str = "GPU counters";
pub(super) const LIBCLANG: &str = "libclang";

/// Who may read performance counters, as the kernel module says.
pub(super) fn counters() -> Check {
    let file = Path::new("/proc/driver/nvidia/params");
    match std::fs::read_to_string(file) {
        Ok(params) => permission(&params, is_root()),
        Err(_) => Check::missing(
            COUNTERS,
            format!("{} is not there, so nothing says who may read them", file.display()),
            "comes with NVIDIA's driver (under WSL2: NVIDIA Control Panel, Developer, Manage GPU Performance Counters)",
        ),
    }
}

fn permission(params: &str, root: bool) -> Check {
    let line = params.lines().find_map(|line| line.strip_prefix("RmProfilingAdminOnly:"));
    match (line.map(str::trim), root) {
        (Some("0"), _) => Check::ok(COUNTERS, "every user may read them (RmProfilingAdminOnly 0)"),
        // Root inside a container may still lack the capability: only a session can tell.
        (Some(_), true) => Check::ok(
            COUNTERS,
            "root may read them (RmProfilingAdminOnly 1; in a container --cap-add=SYS_ADMIN)",
        ),
        (Some(_), false) => {
            Check::missing(COUNTERS, "for root only (RmProfilingAdminOnly 1)", PERMISSION_FIX)
        }
        (None, _) => Check::optional(
            COUNTERS,
            "the driver does not say who may read them",
            "if ncu answers ERR_NVGPUCTRPERM: run as root",
        ),
    }
}

/// Nsight Systems and what turns its stream into a report.
pub(super) fn systems(places: &Places) -> Vec<Check> {
    let Some(nsys) = places.nsys() else {
        return vec![Check::missing(
            NSYS,
            "not on PATH, in /opt/nvidia, in a CUDA toolkit or in Nsight Compute's folder",
            "install Nsight Systems (NVIDIA's package repository: nsight-systems; profiling/env has a Dockerfile)",
        )];
    };
    let version = version_of(&nsys);
    let found = match &version {
        Some(version) => Check::ok(NSYS, format!("{version} at {}", nsys.display())),
        None => {
            Check::missing(NSYS, format!("{} does not say its version", nsys.display()), "install it again")
        }
    };
    vec![found, importer(places, &nsys)]
}

fn importer(places: &Places, nsys: &Path) -> Check {
    let importers = places.importers(nsys);
    let mut broken = Vec::new();
    for importer in &importers {
        let missing = places.missing_libraries(importer);
        if missing.is_empty() {
            return Check::ok(IMPORTER, importer.display().to_string());
        }
        broken.push((importer, missing));
    }
    match broken.first() {
        Some((importer, missing)) => Check::missing(
            IMPORTER,
            format!("{} lacks {}", importer.display(), missing.join(", ")),
            libraries_fix(missing),
        ),
        None => Check::missing(
            IMPORTER,
            "no QdstrmImporter: nsys may leave a stream (.qdstrm) that nothing here can read",
            "install the whole of Nsight Systems, not only its target's part",
        ),
    }
}

/// Nsight Compute.
pub(super) fn compute(places: &Places) -> Check {
    match places.ncu() {
        None => Check::missing(
            NCU,
            "not on PATH, in /opt/nvidia or in a CUDA toolkit",
            "install Nsight Compute (NVIDIA's package repository: nsight-compute; conda-forge: nsight-compute)",
        ),
        Some(ncu) => match version_of(&ncu) {
            Some(version) => Check::ok(NCU, format!("{version} at {}", ncu.display())),
            None => {
                Check::missing(NCU, format!("{} does not say its version", ncu.display()), "install it again")
            }
        },
    }
}

/// What NVTX ranges need to be built.
pub(super) fn libclang() -> Check {
    match libclang::find() {
        Ok(found) => Check::ok(LIBCLANG, found.describe()),
        Err(error) => {
            Check::missing(LIBCLANG, "not found, so no NVTX ranges can be built", format!("{error:#}"))
        }
    }
}

/// Tools that the book shows and that profiling does without.
pub(super) fn debuggers(places: &Places) -> Vec<Check> {
    ["compute-sanitizer", "cuda-gdb"]
        .map(|name| match places.program(name) {
            Some(file) => match version_of(&file) {
                Some(version) => Check::ok(name, format!("{version} at {}", file.display())),
                None => Check::ok(name, file.display().to_string()),
            },
            None => Check::optional(name, "not found", "comes with the CUDA toolkit"),
        })
        .into()
}

fn is_root() -> bool {
    // The second number of the line is the effective user.
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    line.and_then(|line| line.split_whitespace().nth(1)) == Some("0")
}

#[cfg(test)]
mod tests {
    use super::super::State;
    use super::*;

    #[test]
    fn the_permission_is_read_from_the_kernel_module() {
        assert_eq!(permission("EnableMSI: 1\nRmProfilingAdminOnly: 0\n", false).state, State::Ok);
        assert_eq!(permission("RmProfilingAdminOnly: 1\n", true).state, State::Ok);
        let refused = permission("RmProfilingAdminOnly: 1\n", false);
        assert_eq!(refused.state, State::Missing);
        assert!(refused.fix.contains("NVreg_RestrictProfilingToAdminUsers=0"));
        assert_eq!(permission("EnableMSI: 1\n", false).state, State::Optional);
    }
}
