//! Where CUDA's libraries lie that the dynamic loader does not find: toolkits, conda environments, Python packages.

use std::fs;
use std::path::{Path, PathBuf};

use super::FoundBy;

/// A folder that may hold CUDA libraries.
pub(super) struct Place {
    pub(super) folder: PathBuf,
    pub(super) found_by: FoundBy,
    /// The `site-packages` folder, for Python packages.
    pub(super) site: Option<PathBuf>,
}

/// The folders to look in, the reader's own choices first.
pub(super) fn places() -> Vec<Place> {
    let mut places = Vec::new();
    for variable in ["CUDA_PATH", "CUDA_HOME"] {
        if let Some(root) = std::env::var_os(variable) {
            toolkit(Path::new(&root), FoundBy::Variable(variable), &mut places);
        }
    }
    if let Some(prefix) = std::env::var_os("CONDA_PREFIX") {
        let prefix = Path::new(&prefix);
        toolkit(prefix, FoundBy::Conda, &mut places);
        places.push(Place { folder: prefix.join("lib"), found_by: FoundBy::Conda, site: None });
    }
    for site in site_packages() {
        for package in folders(&site.join("nvidia")) {
            places.push(Place {
                folder: package.join("lib"),
                found_by: FoundBy::Python,
                site: Some(site.clone()),
            });
        }
    }
    let local = folders(Path::new("/usr/local"))
        .into_iter()
        .rev()
        .filter(|folder| folder.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"cuda")));
    for root in local.chain(["/opt/cuda".into()]) {
        toolkit(&root, FoundBy::Toolkit, &mut places);
    }
    places.retain(|place| place.folder.is_dir());
    places
}

fn toolkit(root: &Path, found_by: FoundBy, places: &mut Vec<Place>) {
    let target =
        if cfg!(target_arch = "aarch64") { "targets/sbsa-linux/lib" } else { "targets/x86_64-linux/lib" };
    for below in ["lib64", target] {
        places.push(Place { folder: root.join(below), found_by, site: None });
    }
}

/// The package folders of the Pythons that a reader would start, without starting one.
fn site_packages() -> Vec<PathBuf> {
    let mut prefixes = Vec::new();
    for variable in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        prefixes.extend(std::env::var_os(variable).map(PathBuf::from));
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    for folder in std::env::split_paths(&path) {
        if folder.join("python3").exists() {
            prefixes.extend(folder.parent().map(Path::to_owned));
        }
    }
    prefixes.extend(std::env::home_dir().map(|home| home.join(".local")));
    prefixes.push("/usr/local".into());

    let mut sites: Vec<PathBuf> = std::env::var_os("PYTHONPATH")
        .map(|path| std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect())
        .unwrap_or_default();
    // What `cargo kernels` has fetched lies in the build folder, some levels above the program.
    if let Ok(program) = std::env::current_exe() {
        sites.extend(
            program.ancestors().skip(1).take(4).flat_map(|folder| folders(&folder.join("toolchain"))),
        );
    }
    for prefix in prefixes {
        for python in folders(&prefix.join("lib")) {
            if python.file_name().is_some_and(|name| name.as_encoded_bytes().starts_with(b"python3")) {
                sites.push(python.join("site-packages"));
                sites.push(python.join("dist-packages"));
            }
        }
    }
    let mut seen = std::collections::HashSet::new();
    sites.retain(|site| site.is_dir() && seen.insert(site.clone()));
    sites
}

/// The folders in a folder, by name; none where it cannot be read.
fn folders(folder: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = fs::read_dir(folder)
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    folders
}
