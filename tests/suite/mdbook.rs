//! A stock mdBook 0.5 gives the same book as `cargo book build`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use book::root::Root;
use book::static_book::{self, Options};

use crate::fixture::{Fixture, repository};

fn mdbook() -> Command {
    let installed = repository().join("target/tools/bin/mdbook");
    let program = if installed.is_file() { installed } else { PathBuf::from("mdbook") };
    let version = Command::new(&program).arg("--version").output();
    let version =
        version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
    assert!(version.contains("v0.5."), "this test needs mdBook 0.5: cargo install mdbook --version 0.5.4");
    Command::new(program)
}

/// Every file below a folder. The fields of the search index have no order, and so its name's hash says nothing.
fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(folder).expect("it is below").to_string_lossy();
            let bytes = fs::read(&path).expect("a file");
            let bytes = match String::from_utf8(bytes) {
                Ok(text) => without_hash(&text).into_bytes(),
                Err(error) => error.into_bytes(),
            };
            found.insert(PathBuf::from(without_hash(&name)), bytes);
        }
    }
    found
}

/// `searchindex.js` of `searchindex-0123abcd.js`.
fn without_hash(text: &str) -> String {
    const NAME: &str = "searchindex-";
    let mut parts = text.split(NAME);
    let mut without = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let hash = part.chars().take_while(char::is_ascii_hexdigit).count();
        without.push_str(NAME.trim_end_matches('-'));
        without.push_str(&part[hash..]);
    }
    without
}

/// What the script holds.
fn search_index(script: &[u8]) -> serde_json::Value {
    let script = String::from_utf8_lossy(script);
    let (_, json) = script.split_once("JSON.parse('").expect("the script parses JSON");
    let (json, _) = json.rsplit_once("')").expect("the script parses JSON");
    serde_json::from_str(&json.replace("\\'", "'").replace("\\\\", "\\")).expect("JSON")
}

#[test]
fn a_stock_mdbook_gives_the_same_book() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let (ours, theirs) = (folder.path().join("ours"), folder.path().join("theirs"));
    let root = Root::open(repository()).expect("the repository");
    let options = Options { destination: ours.clone(), problems_on_page: false };
    assert_eq!(static_book::build(&root, &options).expect("our build"), []);
    let (success, said) = build(&repository().join("book"), &theirs);
    assert!(success, "{said}");
    let (ours, theirs) = (files(&ours), files(&theirs));
    assert_eq!(ours.keys().collect::<Vec<_>>(), theirs.keys().collect::<Vec<_>>());
    for (name, bytes) in &ours {
        if name.to_string_lossy().starts_with("searchindex") {
            assert_eq!(search_index(bytes), search_index(&theirs[name]), "{}", name.display());
        } else {
            assert!(theirs[name] == *bytes, "{} differs", name.display());
        }
    }
    let drawn = ours.values().filter(|bytes| String::from_utf8_lossy(bytes).contains("class=\"lab-"));
    assert!(drawn.count() > 0, "no page has anything of ours");
}

#[test]
fn a_problem_stops_a_stock_mdbook() {
    let fixture = Fixture::new("stock");
    let config = format!(
        "[book]\ntitle = \"Fixture\"\n[preprocessor.lab]\ncommand = \"cargo run --quiet --manifest-path {} --package book \
         -- preprocess\"\nrenderers = [\"html\"]\nbefore = [\"links\"]\n",
        repository().join("Cargo.toml").display()
    );
    fixture.write("book/book.toml", &config);
    fixture.write("book/src/introduction.md", "# Introduction\n\n{{#lab code nothing.rs:x}}\n");
    let (success, said) = build(&fixture.path("book"), &fixture.path("theirs"));
    assert!(!success, "{said}");
    assert!(said.contains("book/src/introduction.md:3: there is no file `nothing.rs`"), "{said}");
}

/// `mdbook build`, and what it said.
fn build(book: &Path, destination: &Path) -> (bool, String) {
    let output =
        mdbook().arg("build").arg(book).arg("--dest-dir").arg(destination).output().expect("mdbook starts");
    let said = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8_lossy(&said).into_owned())
}
