//! Folders of links: libraries under the names by which programs ask for them.

use std::fs;
use std::io::ErrorKind;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use record::inputs::sha256;

/// A folder that holds exactly these links, `(name, target)`. It lies beside the program, else in the user's cache or the
/// temporary folder, is named by what it holds, and appears whole or not at all, so that programs may share it.
///
/// # Errors
/// When no folder can be written.
pub(crate) fn folder(links: &[(String, PathBuf)]) -> Result<PathBuf> {
    let listing: String =
        links.iter().map(|(name, target)| format!("{name}\0{}\n", target.display())).collect();
    let name = sha256(listing.as_bytes());
    let mut last = None;
    for place in places() {
        let folder = place.join(&name[..16]);
        match create(&folder, links) {
            Ok(()) => return Ok(folder),
            Err(error) => last = Some(error),
        }
    }
    Err(last.unwrap_or_else(|| anyhow::anyhow!("there is no folder to write in"))).context(
        "making a folder of links to CUDA's libraries; set XDG_CACHE_HOME to a folder that can be written",
    )
}

fn places() -> Vec<PathBuf> {
    let beside = std::env::current_exe().ok().and_then(|program| Some(program.parent()?.join("lab-links")));
    let cache = std::env::var_os("XDG_CACHE_HOME").map(PathBuf::from).filter(|path| path.is_absolute());
    let cache = cache.or_else(|| Some(std::env::home_dir()?.join(".cache")));
    let mut places = Vec::from_iter(beside);
    places.extend(cache.map(|cache| cache.join("cuda-ladder/links")));
    // Other users share the temporary folder, so it is taken only when it can be made for this one alone.
    // SAFETY: `getuid` reads a number and cannot fail.
    let user = unsafe { libc::getuid() };
    places.push(std::env::temp_dir().join(format!("cuda-ladder-{user}")));
    places
}

fn create(folder: &Path, links: &[(String, PathBuf)]) -> Result<()> {
    let place = folder.parent().context("the folder has no parent")?;
    fs::create_dir_all(place).with_context(|| format!("creating {}", place.display()))?;
    check_owner(place)?;
    if folder.is_dir() {
        return Ok(());
    }
    let temporary = tempfile::tempdir_in(place).with_context(|| format!("writing in {}", place.display()))?;
    for (name, target) in links {
        symlink(target, temporary.path().join(name))
            .with_context(|| format!("linking {}", target.display()))?;
    }
    match fs::rename(temporary.path(), folder) {
        Ok(()) => {
            // The folder has another name now: nothing is left to be removed.
            let _ = temporary.keep();
            Ok(())
        }
        // Another program was faster; its folder has the same name, hence the same links.
        Err(error) if matches!(error.kind(), ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists) => {
            Ok(())
        }
        Err(error) => Err(error).with_context(|| format!("naming {}", folder.display())),
    }
}

/// Libraries are loaded from the folder, so it must not be one that somebody else prepared.
fn check_owner(place: &Path) -> Result<()> {
    use std::os::unix::fs::MetadataExt;
    let owner = fs::metadata(place)?.uid();
    // SAFETY: `getuid` reads a number and cannot fail.
    let user = unsafe { libc::getuid() };
    anyhow::ensure!(owner == user, "{} belongs to another user", place.display());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_appears_whole_and_is_used_again() {
        let place = tempfile::tempdir().unwrap();
        let folder = place.path().join("links");
        let links = [("libcuda.so".to_owned(), PathBuf::from("/somewhere/libemulator.so"))];
        create(&folder, &links).unwrap();
        create(&folder, &links).unwrap();
        assert_eq!(fs::read_link(folder.join("libcuda.so")).unwrap(), links[0].1);
        assert_eq!(fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
