//! CUDA's libraries: which are on this machine, where, and who finds them.
//!
//! cudarc opens a library by name when it is first used, and panics where there is none. With the bindings of CUDA 12 it
//! asks for `libnvrtc.so`, `libnvrtc.so.12` and the like, which the dynamic loader looks up in `LD_LIBRARY_PATH` and in
//! `ld.so.cache`, and nowhere else. So it misses libraries of CUDA 13 (`libcublas.so.13`), those whose version is none that
//! it tries (`libnccl.so.2`, `libcufile.so.0`), and whatever lies in a toolkit's folder, a conda environment or a Python
//! package. This module looks there too, and links what it finds under unversioned names into one folder, with which
//! [`main`](crate::main()) puts itself on the library path.
//!
//! A library newer than the driver is left out: it would fail at its first call.

mod ask;
mod loader;
mod places;

use std::fs;
use std::path::{Path, PathBuf};

use loader::Loader;
use places::{Place, places};

pub use ask::{Missing, ask};

/// A CUDA library of this machine.
#[derive(Clone, Debug, PartialEq)]
pub struct Library {
    /// What people call it, such as `cuBLAS`.
    pub name: &'static str,
    /// The name that cudarc asks for first, such as `libcublas.so`.
    pub file: String,
    /// Its version, as far as the file's name or the Python package says.
    pub version: String,
    /// Where it lies.
    pub path: PathBuf,
    /// Who finds it.
    pub found_by: FoundBy,
}

/// Who finds a library.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FoundBy {
    /// The dynamic loader, under a name that cudarc asks for: any program would.
    Loader,
    /// The dynamic loader has it under a name that cudarc does not ask for; a link helps.
    LoaderByLink,
    /// A link into the toolkit that an environment variable names.
    Variable(&'static str),
    /// A link into the active conda environment.
    Conda,
    /// A link into a Python package.
    Python,
    /// A link into a toolkit's usual folder.
    Toolkit,
}

impl std::fmt::Display for FoundBy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            FoundBy::Loader => "the dynamic loader",
            FoundBy::LoaderByLink => "lab, by a link to the loader's",
            FoundBy::Variable("CUDA_HOME") => "lab, in CUDA_HOME",
            FoundBy::Variable(_) => "lab, in CUDA_PATH",
            FoundBy::Conda => "lab, in the conda environment",
            FoundBy::Python => "lab, in a Python package",
            FoundBy::Toolkit => "lab, in a CUDA toolkit",
        })
    }
}

/// Every library that the chapters may ask for and that is on this machine, for a driver of this CUDA version (12, 13, …).
pub fn find(driver_major: u32) -> Vec<Library> {
    let (loader, places) = (Loader::read(), places());
    LIBRARIES.iter().filter_map(|wanted| find_one(wanted, driver_major, &loader, &places)).collect()
}

/// The names of every library that [`find`] looks for, in its order.
pub fn names() -> impl Iterator<Item = &'static str> {
    LIBRARIES.iter().map(|wanted| wanted.name)
}

/// The links that make cudarc find what the loader alone does not: `(name, target)`, by name.
pub(crate) fn links(libraries: &[Library]) -> Vec<(String, PathBuf)> {
    let mut links = Vec::new();
    for library in libraries.iter().filter(|library| library.found_by != FoundBy::Loader) {
        links.push((library.file.clone(), library.path.clone()));
        // Libraries open each other by their versioned names (NVRTC its built-in functions, cuSOLVER cuBLAS), and look
        // for them in the folder of the link. What the loader has needs no link.
        let folder = library.path.parent().filter(|_| library.found_by != FoundBy::LoaderByLink);
        for companion in folder.into_iter().flat_map(companions) {
            links.push(companion);
        }
    }
    links.sort();
    links.dedup_by(|later, earlier| later.0 == earlier.0);
    links
}

/// A library to look for: what people call it, its stem, its version in CUDA 12 and in CUDA 13 (`SONAME` numbers), and the
/// Python packages that bring either.
struct Wanted {
    name: &'static str,
    stem: &'static str,
    cuda_12: &'static str,
    cuda_13: &'static str,
    packages: [&'static str; 2],
}

const fn wanted(
    name: &'static str,
    stem: &'static str,
    cuda_12: &'static str,
    cuda_13: &'static str,
    packages: [&'static str; 2],
) -> Wanted {
    Wanted { name, stem, cuda_12, cuda_13, packages }
}

const LIBRARIES: [Wanted; 13] = [
    wanted("NVRTC", "nvrtc", "12", "13", ["nvidia-cuda-nvrtc-cu12", "nvidia-cuda-nvrtc"]),
    wanted("nvJitLink", "nvJitLink", "12", "13", ["nvidia-nvjitlink-cu12", "nvidia-nvjitlink"]),
    wanted("CUDA runtime", "cudart", "12", "13", ["nvidia-cuda-runtime-cu12", "nvidia-cuda-runtime"]),
    wanted("cuBLAS", "cublas", "12", "13", ["nvidia-cublas-cu12", "nvidia-cublas"]),
    wanted("cuBLASLt", "cublasLt", "12", "13", ["nvidia-cublas-cu12", "nvidia-cublas"]),
    wanted("cuRAND", "curand", "10", "10", ["nvidia-curand-cu12", "nvidia-curand"]),
    wanted("cuFFT", "cufft", "11", "12", ["nvidia-cufft-cu12", "nvidia-cufft"]),
    wanted("cuSPARSE", "cusparse", "12", "12", ["nvidia-cusparse-cu12", "nvidia-cusparse"]),
    wanted("cuSOLVER", "cusolver", "11", "12", ["nvidia-cusolver-cu12", "nvidia-cusolver"]),
    wanted("cuDNN", "cudnn", "9", "9", ["nvidia-cudnn-cu12", "nvidia-cudnn-cu13"]),
    wanted("NCCL", "nccl", "2", "2", ["nvidia-nccl-cu12", "nvidia-nccl-cu13"]),
    wanted("cuFile", "cufile", "0", "0", ["nvidia-cufile-cu12", "nvidia-cufile"]),
    wanted("CUPTI", "cupti", "12", "13", ["nvidia-cuda-cupti-cu12", "nvidia-cuda-cupti"]),
];

fn find_one(wanted: &Wanted, driver_major: u32, loader: &Loader, places: &[Place]) -> Option<Library> {
    let library = |path: PathBuf, found_by, site: Option<&Path>| Library {
        name: wanted.name,
        file: format!("lib{}.so", wanted.stem),
        version: version(&path, site),
        path,
        found_by,
    };
    let asked_by_cudarc = cudarc::get_lib_name_candidates(wanted.stem);
    if let Some(path) = asked_by_cudarc.iter().find_map(|name| loader.find(name)) {
        return Some(library(path, FoundBy::Loader, None));
    }
    let versions = [wanted.cuda_13, wanted.cuda_12];
    for version in &versions[usize::from(driver_major < 13)..] {
        let name = format!("lib{}.so.{version}", wanted.stem);
        if let Some(path) = loader.find(&name) {
            return Some(library(path, FoundBy::LoaderByLink, None));
        }
        for place in places {
            let path = place.folder.join(&name);
            if path.is_file() {
                return Some(library(path, place.found_by, place.site.as_deref()));
            }
        }
    }
    None
}

/// The other NVIDIA libraries of a folder, by their versioned names.
fn companions(folder: &Path) -> Vec<(String, PathBuf)> {
    let named = |name: &str| {
        ["libcu", "libnv", "libnccl"].iter().any(|prefix| name.starts_with(prefix))
            && name.contains(".so.")
            // The driver is never taken from a toolkit.
            && !name.starts_with("libcuda.so")
            && !name.starts_with("libnvidia")
    };
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries
        .filter_map(|entry| Some((entry.file_name().into_string().ok()?, entry.path())))
        .filter(|(name, _)| named(name))
        .collect()
}

/// The version that the file's own name ends with, or that of the Python package it belongs to, whichever says more.
fn version(path: &Path, site: Option<&Path>) -> String {
    let real = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
    let name = real.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let from_name = name.split_once(".so.").map_or("", |(_, version)| version).to_owned();
    let package = site.and_then(|site| package_version(path.strip_prefix(site).ok()?, site));
    package.filter(|package| package.len() > from_name.len()).unwrap_or(from_name)
}

/// The version of the NVIDIA package whose list of files names `file`: `nvidia_cuda_nvrtc_cu12-12.0.140.dist-info`.
fn package_version(file: &Path, site: &Path) -> Option<String> {
    let file = format!("{},", file.display());
    for entry in fs::read_dir(site).ok()?.flatten() {
        let name = entry.file_name().into_string().ok()?;
        let Some(package) = name.strip_suffix(".dist-info").filter(|name| name.starts_with("nvidia")) else {
            continue;
        };
        let list = fs::read_to_string(entry.path().join("RECORD")).unwrap_or_default();
        if list.lines().any(|line| line.starts_with(&file)) {
            return package.rsplit_once('-').map(|(_, version)| version.to_owned());
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A Python environment with NVRTC of CUDA 12 and cuBLAS of CUDA 13.
    fn sample() -> (tempfile::TempDir, Vec<Place>) {
        let site = tempfile::tempdir().unwrap();
        let mut places = Vec::new();
        for (package, files) in [
            ("cuda_nvrtc", &["libnvrtc.so.12", "libnvrtc-builtins.so.12.0"][..]),
            ("cu13", &["libcublas.so.13", "libcuda.so.1", "libstdc++.so.6"]),
        ] {
            let folder = site.path().join("nvidia").join(package).join("lib");
            fs::create_dir_all(&folder).unwrap();
            for file in files {
                fs::write(folder.join(file), "").unwrap();
            }
            places.push(Place { folder, found_by: FoundBy::Python, site: Some(site.path().to_owned()) });
        }
        let info = site.path().join("nvidia_cuda_nvrtc_cu12-12.0.140.dist-info");
        fs::create_dir_all(&info).unwrap();
        fs::write(info.join("RECORD"), "nvidia/cuda_nvrtc/lib/libnvrtc.so.12,sha256=abc,1\n").unwrap();
        (site, places)
    }

    fn find_in(places: &[Place], driver_major: u32) -> Vec<Library> {
        let nothing = Loader::empty();
        LIBRARIES.iter().filter_map(|wanted| find_one(wanted, driver_major, &nothing, places)).collect()
    }

    #[test]
    fn python_packages_are_found_with_their_version_and_linked_with_their_companions() {
        let (_site, places) = sample();
        let found = find_in(&places, 13);
        let told: Vec<(&str, &str)> =
            found.iter().map(|library| (library.file.as_str(), library.version.as_str())).collect();
        assert_eq!(told, [("libnvrtc.so", "12.0.140"), ("libcublas.so", "13")]);

        let names: Vec<String> = links(&found).into_iter().map(|(name, _)| name).collect();
        assert_eq!(
            names,
            ["libcublas.so", "libcublas.so.13", "libnvrtc-builtins.so.12.0", "libnvrtc.so", "libnvrtc.so.12"]
        );
    }

    /// cudarc asks for `libnccl.so`, `.so.12`, `.so.11` and so on, and these two are none of them.
    #[test]
    fn nccl_and_cufile_get_the_names_that_cudarc_asks_for() {
        let site = tempfile::tempdir().unwrap();
        let folder = site.path().join("lib");
        fs::create_dir_all(&folder).unwrap();
        for (stem, file) in [("nccl", "libnccl.so.2"), ("cufile", "libcufile.so.0")] {
            fs::write(folder.join(file), "").unwrap();
            assert!(!cudarc::get_lib_name_candidates(stem).iter().any(|name| name == file));
        }
        let places = [Place { folder: folder.clone(), found_by: FoundBy::Toolkit, site: None }];
        let found = find_in(&places, 12);
        assert_eq!(found.iter().map(|library| library.name).collect::<Vec<_>>(), ["NCCL", "cuFile"]);
        let links = links(&found);
        for (link, target) in [("libnccl.so", "libnccl.so.2"), ("libcufile.so", "libcufile.so.0")] {
            assert!(links.contains(&(link.to_owned(), folder.join(target))), "{links:?}");
        }
    }

    #[test]
    fn a_library_newer_than_the_driver_is_left_out() {
        let (_site, places) = sample();
        let found = find_in(&places, 12);
        assert_eq!(found.iter().map(|library| library.name).collect::<Vec<_>>(), ["NVRTC"]);
    }
}
