//! Finds Nsight Systems, Nsight Compute and what belongs to them.

use std::env;
use std::path::{Path, PathBuf};

use crate::invocation::Invocation;

/// Names folders with libraries for the importer, separated by `:`.
pub const LIBRARY_PATH: &str = "LADDER_LIBRARY_PATH";

/// Where to look.
#[derive(Clone, Debug)]
pub struct Places {
    /// Folders with programs, in order.
    pub path: Vec<PathBuf>,
    /// Folders that hold installations, such as `/opt/nvidia`.
    pub roots: Vec<PathBuf>,
    /// Folders with libraries that the importer may need.
    pub libraries: Vec<PathBuf>,
    /// Files of which one is there where there is a GPU: the driver's devices.
    pub devices: Vec<PathBuf>,
}

impl Places {
    /// This machine's: `PATH`, the folders in which NVIDIA's and Debian's packages and conda install, and the
    /// libraries of [`LIBRARY_PATH`] and of the folder `lib` beside the one that this program lies in.
    pub fn of_this_machine() -> Self {
        let list = |name| env::var_os(name).map(|list| env::split_paths(&list).collect()).unwrap_or_default();
        let mut roots: Vec<PathBuf> = ["/opt/nvidia", "/usr/local", "/usr/lib"].map(PathBuf::from).into();
        roots.extend(
            ["CUDA_HOME", "CUDA_PATH", "CONDA_PREFIX"].into_iter().filter_map(env::var_os).map(PathBuf::from),
        );
        let mut libraries: Vec<PathBuf> = list(LIBRARY_PATH);
        let beside =
            env::current_exe().ok().and_then(|program| Some(program.parent()?.parent()?.join("lib")));
        libraries.extend(beside.filter(|folder| folder.is_dir()));
        // Linux's driver, and WSL2's.
        let devices = ["/dev/nvidiactl", "/dev/dxg"].map(PathBuf::from).into();
        Self { path: list("PATH"), roots, libraries, devices }
    }

    /// Whether there is a GPU. Asks for the driver's device and then for NVIDIA's own program, so that libcuda is not
    /// loaded into this process.
    pub fn has_gpu(&self) -> bool {
        self.devices.iter().any(|device| device.exists())
            || self.program("nvidia-smi").is_some_and(|program| {
                let listed = Invocation::new(program).argument("-L").run(Path::new("/"));
                listed.is_ok_and(|listed| listed.success && listed.output.contains("GPU "))
            })
    }

    /// A program on the path or in a CUDA toolkit.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        let toolkits = self.installations(&["cuda"]).into_iter().map(|toolkit| toolkit.join("bin"));
        self.path
            .iter()
            .cloned()
            .chain(toolkits)
            .map(|folder| folder.join(name))
            .find(|file| is_program(file))
    }

    /// Nsight Compute's command line.
    pub fn ncu(&self) -> Option<PathBuf> {
        self.program("ncu").or_else(|| {
            self.compute_folders().into_iter().map(|folder| folder.join("ncu")).find(|file| is_program(file))
        })
    }

    /// Nsight Systems' command line: on the path, installed by itself, or the one inside Nsight Compute's folder.
    pub fn nsys(&self) -> Option<PathBuf> {
        let mut folders = Vec::new();
        for systems in self.systems_folders() {
            folders.push(systems.join("bin"));
            folders.extend(targets(&systems));
        }
        folders.extend(self.compute_folders().iter().flat_map(|compute| targets(&compute.join("host"))));
        let installed = || folders.iter().map(|folder| folder.join("nsys")).find(|file| is_program(file));
        self.program("nsys").or_else(installed)
    }

    /// Importers that turn nsys' stream into a report, those nearest to `nsys` first: theirs is its version.
    pub fn importers(&self, nsys: &Path) -> Vec<PathBuf> {
        let nsys = nsys.canonicalize().unwrap_or_else(|_| nsys.to_owned());
        let mut folders = self.systems_folders();
        folders.extend(self.compute_folders().into_iter().map(|folder| folder.join("host")));
        // The installation that nsys is in, wherever that is.
        folders.extend(nsys.ancestors().skip(2).take(2).map(Path::to_owned));
        let mut importers: Vec<PathBuf> = folders
            .iter()
            .flat_map(|folder| subfolders(folder))
            .map(|folder| folder.join("QdstrmImporter"))
            .filter(|file| is_program(file))
            .map(|file| file.canonicalize().unwrap_or(file))
            .collect();
        let shared = |file: &PathBuf| {
            file.components().zip(nsys.components()).take_while(|(theirs, ours)| theirs == ours).count()
        };
        importers.sort_by_key(|file| (std::cmp::Reverse(shared(file)), file.clone()));
        importers.dedup();
        importers
    }

    /// What the dynamic loader needs for an importer: its own folder, then [`Places::libraries`].
    pub fn importer_library_path(&self, importer: &Path) -> String {
        let own = importer.parent().map(Path::to_owned);
        let folders = own.into_iter().chain(self.libraries.iter().cloned());
        folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>().join(":")
    }

    /// Libraries that the loader would not find for `importer`, such as `libdw.so.1`.
    ///
    /// This is what `ldd` does: with the variable set, the loader lists the libraries instead of starting the program.
    pub fn missing_libraries(&self, importer: &Path) -> Vec<String> {
        let listed = Invocation::new(importer)
            .variable("LD_TRACE_LOADED_OBJECTS", "1")
            .variable("LD_LIBRARY_PATH", self.importer_library_path(importer))
            .run(Path::new("/"));
        let Ok(listed) = listed else { return Vec::new() };
        let missing = listed.output.lines().filter(|line| line.contains("=> not found"));
        let mut missing: Vec<String> =
            missing.filter_map(|line| line.split_whitespace().next()).map(str::to_owned).collect();
        missing.sort();
        missing.dedup();
        missing
    }

    /// Folders of Nsight Compute, newest first.
    fn compute_folders(&self) -> Vec<PathBuf> {
        self.product("nsight-compute")
    }

    /// Folders of Nsight Systems, newest first.
    fn systems_folders(&self) -> Vec<PathBuf> {
        self.product("nsight-systems")
    }

    /// `/opt/nvidia/nsight-compute/2025.3.1`, `/usr/local/cuda-13.0/nsight-compute-2025.3.1`, `/usr/lib/nsight-compute`.
    fn product(&self, name: &str) -> Vec<PathBuf> {
        let mut holders = self.roots.clone();
        holders.extend(self.installations(&["cuda"]));
        let named = |holder: &PathBuf| {
            subfolders(holder)
                .into_iter()
                .filter(|folder| file_name(folder).starts_with(name))
                .collect::<Vec<_>>()
        };
        let mut folders = Vec::new();
        for product in holders.iter().flat_map(named) {
            let versions = subfolders(&product);
            folders.extend(
                versions
                    .into_iter()
                    .filter(|folder| file_name(folder).starts_with(|c: char| c.is_ascii_digit())),
            );
            folders.push(product);
        }
        folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
        folders
    }

    fn installations(&self, prefixes: &[&str]) -> Vec<PathBuf> {
        let mut folders: Vec<PathBuf> = self
            .roots
            .iter()
            .flat_map(|root| subfolders(root))
            .filter(|folder| prefixes.iter().any(|prefix| file_name(folder).starts_with(prefix)))
            .collect();
        folders.sort_by_key(|folder| std::cmp::Reverse(version(folder)));
        folders
    }
}

/// The version in a tool's `--version`: the first word that begins with two numbers and a dot between.
pub fn version_of(program: &Path) -> Option<String> {
    let said = Invocation::new(program).argument("--version").run(Path::new("/")).ok()?;
    version_in(&said.output).map(str::to_owned)
}

/// [`version_of`], of what the tool said.
pub fn version_in(text: &str) -> Option<&str> {
    text.split(|c: char| c.is_whitespace() || c == ',' || c == '(').find(|word| {
        let mut numbers = word.split('.');
        let number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
        number(numbers.next()) && number(numbers.next())
    })
}

/// The folders with the programs of this processor: `target-linux-x64`, `target-linux-sbsa-armv8`.
fn targets(folder: &Path) -> Vec<PathBuf> {
    let ours = if cfg!(target_arch = "aarch64") { "armv8" } else { "x64" };
    let mut targets = subfolders(folder);
    targets
        .retain(|folder| file_name(folder).starts_with("target-linux-") && file_name(folder).ends_with(ours));
    targets
}

fn subfolders(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = folder.read_dir() else { return Vec::new() };
    let mut folders: Vec<PathBuf> =
        entries.flatten().map(|entry| entry.path()).filter(|path| path.is_dir()).collect();
    folders.sort();
    folders
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

/// The numbers in the last part of a path, for comparing versions.
fn version(path: &Path) -> Vec<u32> {
    file_name(path).split(|c: char| !c.is_ascii_digit()).filter_map(|part| part.parse().ok()).collect()
}

fn is_program(file: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt as _;
    file.metadata().is_ok_and(|metadata| metadata.is_file() && metadata.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    fn program(root: &Path, path: &str) -> PathBuf {
        let file = root.join(path);
        fs::create_dir_all(file.parent().unwrap()).unwrap();
        fs::write(&file, "#!/bin/sh\n").unwrap();
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
        file
    }

    fn places(root: &Path) -> Places {
        Places {
            path: vec![root.join("bin")],
            roots: vec![root.join("opt")],
            libraries: Vec::new(),
            devices: Vec::new(),
        }
    }

    #[test]
    fn the_path_comes_first() {
        let root = tempfile::tempdir().unwrap();
        program(root.path(), "opt/nsight-systems/2025.3.2/bin/nsys");
        let first = program(root.path(), "bin/nsys");
        assert_eq!(places(root.path()).nsys(), Some(first));
    }

    #[test]
    fn the_newest_installation_is_taken() {
        let root = tempfile::tempdir().unwrap();
        program(root.path(), "opt/nsight-systems/2025.3.2/bin/nsys");
        let newest = program(root.path(), "opt/nsight-systems/2025.10.1/bin/nsys");
        assert_eq!(places(root.path()).nsys(), Some(newest));
    }

    #[test]
    fn nsight_compute_holds_one_too() {
        let root = tempfile::tempdir().unwrap();
        let target = if cfg!(target_arch = "aarch64") { "sbsa-armv8" } else { "x64" };
        let compute = "opt/nsight-compute/2025.3.1";
        let nsys = program(root.path(), &format!("{compute}/host/target-linux-{target}/nsys"));
        let importer =
            program(root.path(), &format!("{compute}/host/linux-desktop-glibc_2_11_3-x64/QdstrmImporter"));
        let other = program(root.path(), "opt/nsight-systems/2024.2.3/host-linux-x64/QdstrmImporter");
        let ncu = program(root.path(), &format!("{compute}/ncu"));
        let places = places(root.path());
        assert_eq!(places.nsys().as_ref(), Some(&nsys));
        assert_eq!(places.ncu(), Some(ncu));
        let canonical: Vec<_> = [importer, other].map(|file| file.canonicalize().unwrap()).into();
        assert_eq!(places.importers(&nsys), canonical);
    }

    #[test]
    fn a_toolkit_may_hold_it() {
        let root = tempfile::tempdir().unwrap();
        let ncu = program(root.path(), "opt/cuda-13.0/nsight-compute-2025.3.1/ncu");
        assert_eq!(places(root.path()).ncu(), Some(ncu));
        let wrapper = program(root.path(), "opt/cuda-13.0/bin/ncu");
        assert_eq!(places(root.path()).ncu(), Some(wrapper));
    }

    #[test]
    fn nothing_is_found_where_nothing_is() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(places(root.path()).nsys(), None);
        assert_eq!(places(root.path()).ncu(), None);
        assert_eq!(places(root.path()).importers(Path::new("/nonexistent/nsys")), Vec::<PathBuf>::new());
    }

    #[test]
    fn versions_are_found_in_what_tools_say() {
        for (said, version) in [
            ("NVIDIA Nsight Systems version 2025.3.1.0", "2025.3.1.0"),
            ("NVIDIA Nsight Systems version 2025.3.1.90-253135822126v0", "2025.3.1.90-253135822126v0"),
            ("Copyright (c) 2018-2025 NVIDIA Corporation\nVersion 2025.3.1.0 (build 36398880)", "2025.3.1.0"),
            ("NVIDIA (R) cuda-gdb 13.0", "13.0"),
        ] {
            assert_eq!(version_in(said), Some(version));
        }
        assert_eq!(version_in("no version here"), None);
    }
}
