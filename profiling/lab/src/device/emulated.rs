//! Where the emulated driver lies.

use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

const FILE: &str = "libemulator.so";

/// `libemulator.so`: in `deps/` beside the program or beside the program itself (a test program lies in `deps/`, a bundle
/// has one folder), else where the build left it, which differs with Cargo's `build.build-dir`.
///
/// # Errors
/// When it is in none of them.
pub(super) fn find() -> Result<PathBuf> {
    let program = std::env::current_exe().unwrap_or_default();
    find_beside(program.parent().unwrap_or(Path::new(".")), build_folder())
}

fn find_beside(beside: &Path, build_folder: Option<PathBuf>) -> Result<PathBuf> {
    // `deps/` first: what Cargo copies beside the program is not refreshed when only a dependency was built.
    let candidates = [Some(beside.join("deps")), Some(beside.to_owned()), example(beside), build_folder];
    candidates.into_iter().flatten().map(|folder| folder.join(FILE)).find(|path| path.is_file()).ok_or_else(
        || {
            anyhow!(
                "the emulated GPU is missing: {FILE} is not beside this program ({}); build it with \
                 `cargo build -p emulator`",
                beside.display()
            )
        },
    )
}

/// A folder that holds the emulated driver under the names by which programs open a driver.
pub(super) fn links(library: &Path) -> Result<PathBuf> {
    crate::links::folder(&["libcuda.so", "libcuda.so.1"].map(|name| (name.to_owned(), library.to_owned())))
}

/// An example's program lies in `examples/`, next to `deps/`.
fn example(beside: &Path) -> Option<PathBuf> {
    Some(beside.parent()?.join("deps"))
}

/// The `deps/` folder of the build that made this program: `OUT_DIR` is `<build>/build/lab-<hash>/out`.
fn build_folder() -> Option<PathBuf> {
    Some(Path::new(env!("OUT_DIR")).ancestors().nth(3)?.join("deps"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_found_beside_the_program_and_missed_in_one_sentence() {
        let folder = tempfile::tempdir().unwrap();
        let beside = folder.path().join("debug");
        let elsewhere = folder.path().join("build/deps");
        std::fs::create_dir_all(beside.join("deps")).unwrap();
        std::fs::create_dir_all(&elsewhere).unwrap();

        let message = find_beside(&beside, None).unwrap_err().to_string();
        assert!(
            message.starts_with("the emulated GPU is missing: libemulator.so is not beside"),
            "{message}"
        );
        // The last place to look first, so that each one wins over those before it.
        for place in [elsewhere.clone(), beside.clone(), beside.join("deps")] {
            std::fs::write(place.join(FILE), "").unwrap();
            assert_eq!(find_beside(&beside, Some(elsewhere.clone())).unwrap(), place.join(FILE));
        }
    }
}
