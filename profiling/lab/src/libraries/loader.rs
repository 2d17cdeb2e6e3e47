//! Where the dynamic loader looks for a library, without loading one: `LD_LIBRARY_PATH`, `ld.so.cache`, the default folders.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

/// What the dynamic loader knows.
pub(super) struct Loader {
    /// `LD_LIBRARY_PATH`.
    folders: Vec<PathBuf>,
    /// From `ld.so.cache`: file names and their paths.
    cache: HashMap<String, PathBuf>,
    defaults: &'static [&'static str],
}

impl Loader {
    /// Reads the library path and the cache.
    pub(super) fn read() -> Self {
        let path = std::env::var_os("LD_LIBRARY_PATH").unwrap_or_default();
        Self {
            folders: std::env::split_paths(&path).filter(|folder| folder.is_absolute()).collect(),
            cache: std::fs::read("/etc/ld.so.cache").map(|bytes| parse(&bytes)).unwrap_or_default(),
            defaults: &["/lib64", "/usr/lib64", "/lib", "/usr/lib"],
        }
    }

    /// A loader that finds nothing.
    #[cfg(test)]
    pub(super) fn empty() -> Self {
        Self { folders: Vec::new(), cache: HashMap::new(), defaults: &[] }
    }

    /// The file that `dlopen(name)` would open.
    pub(super) fn find(&self, name: &str) -> Option<PathBuf> {
        let in_folder = |folder: &Path| Some(folder.join(name)).filter(|path| path.is_file());
        self.folders
            .iter()
            .find_map(|folder| in_folder(folder))
            .or_else(|| self.cache.get(name).cloned().filter(|path| path.is_file()))
            .or_else(|| self.defaults.iter().map(Path::new).find_map(in_folder))
    }
}

/// Reads `ld.so.cache` in the form that glibc writes since 2.2: a header of 48 bytes, entries of 24, then strings, whose
/// offsets count from the header. An older table may come first.
fn parse(bytes: &[u8]) -> HashMap<String, PathBuf> {
    const MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
    // ELF of this architecture: `FLAG_ELF_LIBC6` with `FLAG_X8664_LIB64` or `FLAG_AARCH64_LIB64`.
    const FLAGS: u32 = if cfg!(target_arch = "aarch64") { 0x0a03 } else { 0x0303 };
    let Some(start) = bytes.windows(MAGIC.len()).position(|window| window == MAGIC) else {
        return HashMap::new();
    };
    let bytes = &bytes[start..];
    let number = |at: usize| -> Option<u32> {
        bytes.get(at..at + 4).map(|four| u32::from_ne_bytes([four[0], four[1], four[2], four[3]]))
    };
    let string = |at: u32| -> Option<String> {
        let rest = bytes.get(at as usize..)?;
        let end = rest.iter().position(|byte| *byte == 0)?;
        String::from_utf8(rest[..end].to_vec()).ok()
    };
    let mut found = HashMap::new();
    for entry in 0..number(20).unwrap_or(0) as usize {
        let at = 48 + 24 * entry;
        let (Some(flags), Some(key), Some(value)) = (number(at), number(at + 4), number(at + 8)) else {
            break;
        };
        if flags != FLAGS {
            continue;
        }
        if let (Some(name), Some(path)) = (string(key), string(value)) {
            // The loader takes the first; later ones are for other processors.
            found.entry(name).or_insert_with(|| PathBuf::from(path));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_c_library_is_found_where_the_loader_finds_it() {
        let found =
            Loader::read().find("libc.so.6").expect("every Linux with glibc has libc.so.6 in its cache");
        assert!(found.is_file());
    }

    #[test]
    fn a_torn_cache_is_an_empty_one() {
        assert!(parse(b"").is_empty());
        let mut bytes = b"glibc-ld.so.cache1.1".to_vec();
        bytes.extend(9u32.to_ne_bytes());
        assert!(parse(&bytes).is_empty());
    }
}
