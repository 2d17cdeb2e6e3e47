//! Versions from `Cargo.lock`.

/// The version of a package in the text of a `Cargo.lock`; of several, all, so that any change is seen.
pub fn locked_version(lock_file: &str, package: &str) -> Option<String> {
    let wanted = format!("name = \"{package}\"");
    let mut lines = lock_file.lines();
    let mut versions = Vec::new();
    while let Some(line) = lines.next() {
        if line == wanted {
            let version = lines.next()?.strip_prefix("version = \"")?.strip_suffix('"')?;
            versions.push(version);
        }
    }
    if versions.is_empty() { None } else { Some(versions.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::locked_version;

    #[test]
    fn versions() {
        let lock = "version = 4\n\n[[package]]\nname = \"cudarc\"\nversion = \"0.19.10\"\n\n[[package]]\nname = \"half\"\nversion = \"1.8.0\"\n\n[[package]]\nname = \"half\"\nversion = \"2.7.1\"\n";
        assert_eq!(locked_version(lock, "cudarc").as_deref(), Some("0.19.10"));
        assert_eq!(locked_version(lock, "half").as_deref(), Some("1.8.0, 2.7.1"));
        assert_eq!(locked_version(lock, "cuda"), None);
    }
}
