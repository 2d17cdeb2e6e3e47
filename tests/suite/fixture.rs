//! A small repository in a temporary folder: a book of two pages, a chapter that runs and a heavy one, and records.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use book::root::Root;
use book::serve::{Options, Server};
use record::{Provenance, Record, SCHEMA, Status};
use serde_json::Value;

/// Long enough for a crowded machine to build an empty program.
pub(crate) const PATIENCE: Duration = Duration::from_secs(120);

/// The repository, removed when dropped.
pub(crate) struct Fixture {
    folder: tempfile::TempDir,
    /// The chapter that runs, named after the test: cargo's target folder may be shared.
    pub(crate) chapter: String,
    /// A heavy one.
    pub(crate) heavy: String,
}

impl Fixture {
    /// A repository whose chapter goes from step to step as the test lets it.
    pub(crate) fn new(test: &str) -> Fixture {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let fixture =
            Fixture { folder, chapter: format!("ch90-{test}"), heavy: format!("ch91-heavy-{test}") };
        fixture.write("Cargo.toml", "[workspace]\nresolver = \"3\"\nmembers = [\"chapters/*\"]\n");
        for (name, heavy) in [(&fixture.chapter, false), (&fixture.heavy, true)] {
            fixture.write(
                &format!("chapters/{name}/Cargo.toml"),
                &format!(
                    "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[features]\nnvtx = []\n\
                     [package.metadata.lab]\ntitle = \"A chapter\"\ndomain = \"ch90\"\nlibraries = []\nheavy = {heavy}\n"
                ),
            );
            fixture.write(&format!("chapters/{name}/src/main.rs"), PROGRAM);
            for (step, status) in [
                ("running", Status::Running { cell: "copies".into(), done: 1, total: 2 }),
                ("complete", Status::Complete),
            ] {
                let text = serde_json::to_string(&empty_record(name, status)).expect("JSON");
                fixture.write(&format!("chapters/{name}/{step}.json"), &text);
            }
        }
        let _ = fs::create_dir_all(fixture.path("book/records"));
        fixture.write(
            "book/book.toml",
            "[book]\ntitle = \"Fixture\"\n[build]\ncreate-missing = false\n[output.html]\n",
        );
        fixture.write(
            "book/src/SUMMARY.md",
            &format!(
                "# Summary\n\n[Introduction](introduction.md)\n\n- [A chapter]({}.md)\n",
                fixture.chapter
            ),
        );
        fixture.write("book/src/introduction.md", "# Introduction\n\nWords.\n");
        fixture.write(
            &format!("book/src/{}.md", fixture.chapter),
            &format!("# A chapter\n\n{{{{#lab state {}}}}}\n", fixture.chapter),
        );
        fixture
    }

    /// A path inside.
    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.folder.path().join(path)
    }

    /// Writes a file inside.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        fs::write(path, text).expect("a file");
    }

    /// Lets the running chapter take its next step: `fail` or `go`.
    pub(crate) fn step(&self, word: &str) {
        self.write("step", word);
    }

    /// Serves it.
    pub(crate) fn serve(&self, run: bool) -> Server {
        let root = Root::open(self.folder.path().to_path_buf()).expect("a repository");
        Server::start(&root, &Options { port: 0, open: false, run }).expect("a server")
    }

    /// The reader's own record of the chapter.
    pub(crate) fn own_record(&self) -> Option<Record> {
        Record::load(&record::path(&self.path("book/records/local"), &self.chapter)).expect("a record")
    }
}

/// A record without cells.
pub(crate) fn empty_record(chapter: &str, status: Status) -> Record {
    let provenance = Provenance {
        device: "Emulated H200".into(),
        emulated: true,
        date: "2026-12-03T10:11:12Z".into(),
        ..Provenance::default()
    };
    let chapter = chapter.into();
    Record {
        schema: SCHEMA,
        chapter,
        status,
        provenance,
        inputs: Vec::new(),
        cells: Vec::new(),
        profile: None,
    }
}

/// The chapter's program: a record that says "running", a wait for the test's word, a record that says "complete".
const PROGRAM: &str = r#"
fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let place = arguments.iter().position(|argument| argument == "--record").expect("--record");
    let folder = std::path::Path::new(&arguments[place + 1]).join(env!("CARGO_PKG_NAME"));
    std::fs::create_dir_all(&folder).expect("a folder");
    let save = |text: &str| {
        std::fs::write(folder.join("new"), text).expect("a file");
        std::fs::rename(folder.join("new"), folder.join("record.json")).expect("a record");
    };
    save(include_str!("../running.json"));
    let word = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../step");
    loop {
        match std::fs::read_to_string(&word).as_deref() {
            Ok("fail") => { eprintln!("error: the copies went wrong"); std::process::exit(1) }
            Ok("go") => break,
            _ => std::thread::sleep(std::time::Duration::from_millis(20)),
        }
    }
    save(include_str!("../complete.json"));
}
"#;

/// An answer over the wire.
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    /// A header's value.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (field, value) = line.split_once(':')?;
            field.eq_ignore_ascii_case(name).then(|| value.trim())
        })
    }
}

/// Sends a request as it is written here: `Host` is the server's own unless `headers` name another.
pub(crate) fn ask(address: SocketAddr, method: &str, target: &str, headers: &[(&str, &str)]) -> Reply {
    let mut stream = TcpStream::connect(address).expect("a connection");
    let mut request = format!("{method} {target} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {address}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    stream.write_all((request + "\r\n").as_bytes()).expect("a request");
    let mut reader = BufReader::new(stream);
    let mut head = String::new();
    while reader.read_line(&mut head).expect("a head") > 2 {}
    let mut body = Vec::new();
    reader.read_to_end(&mut body).expect("a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
    Reply { status, head, body: String::from_utf8_lossy(&body).into_owned() }
}

/// The token that stands in the served pages.
pub(crate) fn token(address: SocketAddr) -> String {
    let page = ask(address, "GET", "/", &[]).body;
    let (_, rest) = page.split_once("data-token=\"").expect("a token");
    rest.split('"').next().expect("a token").to_owned()
}

/// What pages are told, once it is so.
pub(crate) fn news(address: SocketAddr, what: &str, is_so: impl Fn(&Value) -> bool) -> Value {
    let start = Instant::now();
    let mut seen = 0;
    loop {
        let reply = ask(address, "GET", &format!("/__live?seen={seen}"), &[]);
        let state: Value = serde_json::from_str(&reply.body).expect("JSON");
        if is_so(&state) {
            return state;
        }
        assert!(start.elapsed() < PATIENCE, "waited for: {what}; the last news: {state}");
        seen = state["version"].as_u64().expect("a version");
    }
}

/// Copies a folder of the real repository into the fixture.
#[cfg(feature = "installed")]
pub(crate) fn copy_folder(from: &std::path::Path, to: &std::path::Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("a folder") {
        let entry = entry.expect("an entry");
        fs::copy(entry.path(), to.join(entry.file_name())).expect("a copy");
    }
}

/// The real repository.
#[cfg(feature = "installed")]
pub(crate) fn repository() -> PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the repository").to_path_buf()
}
