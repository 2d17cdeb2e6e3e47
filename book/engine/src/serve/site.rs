//! The built book in memory. A request is looked up by name among the files that were read, so that no path can lead anywhere
//! else, and a rebuild never shows half a book.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::path::Path;

use anyhow::{Context, Result};
use walkdir::WalkDir;

/// All files of one build.
#[derive(Default)]
pub(super) struct Site {
    files: HashMap<String, File>,
}

/// One file as it is sent.
pub(super) struct File {
    pub(super) bytes: Vec<u8>,
    pub(super) content_type: &'static str,
    /// Changes when the content does, and only then.
    pub(super) tag: String,
}

impl Site {
    /// Reads what mdBook left in a folder.
    pub(super) fn read(folder: &Path) -> Result<Site> {
        let mut files = HashMap::new();
        for entry in WalkDir::new(folder) {
            let entry = entry.with_context(|| format!("reading {}", folder.display()))?;
            if !entry.file_type().is_file() {
                continue;
            }
            let path = entry.path();
            let bytes = std::fs::read(path).with_context(|| format!("reading {}", path.display()))?;
            let name = path.strip_prefix(folder).unwrap_or(path).to_string_lossy().into_owned();
            files.insert(name, File { content_type: content_type(path), tag: tag(&bytes), bytes });
        }
        Ok(Site { files })
    }

    /// The file that a request's path names.
    pub(super) fn file(&self, path: &str) -> Option<&File> {
        let path = percent_decoded(path.strip_prefix('/')?)?;
        match path.as_str() {
            "" => self.files.get("index.html"),
            folder if folder.ends_with('/') => self.files.get(&format!("{folder}index.html")),
            name => self.files.get(name),
        }
    }

    /// What stands where nothing is.
    pub(super) fn not_found(&self) -> Option<&File> {
        self.files.get("404.html")
    }
}

impl File {
    pub(super) fn is_page(&self) -> bool {
        self.content_type.starts_with("text/html")
    }
}

fn content_type(path: &Path) -> &'static str {
    match path.extension().and_then(|extension| extension.to_str()) {
        Some("html") => "text/html; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("js") => "text/javascript; charset=utf-8",
        Some("json") => "application/json",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("ico") => "image/vnd.microsoft.icon",
        Some("woff2") => "font/woff2",
        Some("txt" | "md" | "cu" | "py" | "rs") => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

fn percent_decoded(path: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(path.len());
    let mut rest = path.bytes();
    while let Some(byte) = rest.next() {
        bytes.push(match byte {
            b'%' => {
                let digits = [rest.next()?, rest.next()?];
                u8::from_str_radix(std::str::from_utf8(&digits).ok()?, 16).ok()?
            }
            byte => byte,
        });
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site() -> Site {
        let folder = tempfile::tempdir().expect("a folder");
        let book = folder.path().join("book");
        std::fs::create_dir_all(book.join("css")).expect("a folder");
        for (name, text) in
            [("index.html", "<p>"), ("a b.html", "x"), ("css/page.css", "p {}"), ("css/index.html", "")]
        {
            std::fs::write(book.join(name), text).expect("a file");
        }
        std::fs::write(folder.path().join("secret"), "s").expect("a file");
        Site::read(&book).expect("a site")
    }

    #[test]
    fn files_are_found_by_their_paths() {
        let site = site();
        for (path, content_type) in [
            ("/", "text/html; charset=utf-8"),
            ("/index.html", "text/html; charset=utf-8"),
            ("/a%20b.html", "text/html; charset=utf-8"),
            ("/css/page.css", "text/css; charset=utf-8"),
            ("/css/", "text/html; charset=utf-8"),
        ] {
            assert_eq!(site.file(path).map(|file| file.content_type), Some(content_type), "{path}");
        }
    }

    #[test]
    fn no_path_leads_out() {
        let site = site();
        for path in [
            "/../secret",
            "/..%2fsecret",
            "/%2e%2e/secret",
            "//etc/passwd",
            "/css/../../secret",
            "/css/..%5c..%5csecret",
            "secret",
            "",
            "/%zz",
            "/%",
            "/%ff",
            "/css",
            "/index.html/",
            "/index.html%00",
        ] {
            assert!(site.file(path).is_none(), "{path}");
        }
    }
}
