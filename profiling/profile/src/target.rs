//! The program that is profiled: a chapter, built here with ranges, or lying beside this program in a bundle.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context as _, bail};
use record::chapter::{Chapter, Profiled};

use crate::invocation::Invocation;

/// Where this program lives, which decides where chapters and records are.
#[derive(Clone, Debug, PartialEq)]
pub enum Home {
    /// A git checkout, by its root: chapters are built by cargo.
    Checkout(PathBuf),
    /// An unpacked bundle, by its root: programs lie in `bin/`, results go to `results/`.
    Bundle(PathBuf),
}

/// What is profiled.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    /// The chapter's whole name, such as `ch01-raw-kernel`.
    pub chapter: String,
    /// The domain of its NVTX ranges, such as `ch01`.
    pub domain: String,
    /// Its program.
    pub program: PathBuf,
    /// What the program is told, whichever tool runs it.
    pub arguments: Vec<String>,
    /// The cells that it runs under each tool; all where there are none.
    pub cells: Profiled,
}

impl Home {
    /// Looks beside this program, then upwards from the current folder.
    ///
    /// # Errors
    /// Outside of both.
    pub fn find() -> anyhow::Result<Self> {
        let program = env::current_exe().context("finding this program's own file")?;
        let bundle = program.parent().and_then(Path::parent);
        if let Some(root) = bundle
            && root.join("manifest.json").is_file()
        {
            return Ok(Self::Bundle(root.to_owned()));
        }
        let here = env::current_dir().context("finding the current folder")?;
        let is_root =
            |folder: &&Path| folder.join("chapters").is_dir() && folder.join("Cargo.toml").is_file();
        match here.ancestors().find(is_root) {
            Some(root) => Ok(Self::Checkout(root.to_owned())),
            None => bail!(
                "{} lies in no checkout of this repository and this program in no bundle: run `cargo profile` inside \
                 the repository, or `./run.sh profile` inside the bundle",
                here.display()
            ),
        }
    }

    /// Where records are read and written unless something else is said.
    pub fn records(&self) -> PathBuf {
        match self {
            Self::Checkout(root) => root.join("book/records/local"),
            Self::Bundle(root) => root.join("results/records"),
        }
    }

    /// Where the tools' own reports go. They name the machine and its processes: never into git or a bundle's results.
    pub fn reports(&self) -> PathBuf {
        match self {
            Self::Checkout(root) => root.join("target/profiles"),
            Self::Bundle(root) => root.join("profiles"),
        }
    }

    /// A chapter's whole name from `ch01` or from itself.
    ///
    /// # Errors
    /// When there is none of that name; the message lists those that there are.
    pub fn chapter(&self, asked: &str) -> anyhow::Result<String> {
        let folder = match self {
            Self::Checkout(root) => root.join("chapters"),
            Self::Bundle(root) => root.join("bin"),
        };
        let entries =
            folder.read_dir().with_context(|| format!("listing the chapters in {}", folder.display()))?;
        let mut chapters: Vec<String> = entries
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .filter(|name| name.starts_with("ch") && name.contains('-') && !name.contains('.'))
            .collect();
        chapters.sort();
        match chapters.iter().find(|name| *name == asked || name.split('-').next() == Some(asked)) {
            Some(chapter) => Ok(chapter.clone()),
            None => bail!("there is no chapter `{asked}`; there are {}", chapters.join(", ")),
        }
    }

    /// The cells that a chapter's manifest wants profilers to look at.
    ///
    /// # Errors
    /// A chapter's manifest that cannot be read.
    pub fn profiled(&self, chapter: &str) -> anyhow::Result<Profiled> {
        match self {
            Self::Checkout(root) => {
                let file = root.join("chapters").join(chapter).join("Cargo.toml");
                let text =
                    std::fs::read_to_string(&file).with_context(|| format!("reading {}", file.display()))?;
                Ok(Chapter::parse(&text)?.profile)
            }
            Self::Bundle(_) => {
                let listed = self.bundled(chapter)["profile"].clone();
                Ok(serde_json::from_value(listed).unwrap_or_default())
            }
        }
    }

    /// What a bundle's manifest says of a chapter; nothing outside a bundle.
    pub fn bundled(&self, chapter: &str) -> serde_json::Value {
        self.manifest()["chapters"][chapter].clone()
    }

    /// A bundle's manifest; nothing outside a bundle.
    pub fn manifest(&self) -> serde_json::Value {
        let Self::Bundle(root) = self else { return serde_json::Value::Null };
        let bytes = std::fs::read(root.join("manifest.json")).ok();
        bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default()
    }

    /// The line that builds a chapter with ranges; nothing in a bundle.
    pub fn build_line(&self, chapter: &str) -> Option<Invocation> {
        let Self::Checkout(_) = self else { return None };
        let mut line =
            Invocation::new("cargo").arguments(["build", "--package", chapter, "--features", "nvtx"]);
        line.environment.clear();
        Some(line)
    }

    /// Where the program lies once it is built.
    pub fn program(&self, chapter: &str) -> PathBuf {
        match self {
            Self::Checkout(root) => {
                let target =
                    env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
                target.join("debug").join(chapter)
            }
            Self::Bundle(root) => root.join("bin").join(chapter),
        }
    }

    /// Builds a chapter with ranges, with `libclang` in the environment, and returns its program.
    ///
    /// # Errors
    /// When cargo fails; its own words are on the terminal.
    pub fn build(&self, chapter: &str, libclang: &[(String, String)]) -> anyhow::Result<PathBuf> {
        let (Self::Checkout(root), Some(line)) = (self, self.build_line(chapter)) else {
            return Ok(self.program(chapter));
        };
        let output = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
            .args(&line.arguments)
            .arg("--message-format=json-render-diagnostics")
            .envs(libclang.iter().map(|(name, value)| (name, value)))
            .current_dir(root)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .with_context(|| format!("starting `{line}`"))?;
        if !output.status.success() {
            bail!(
                "`{line}` failed; its words are above. If they are about libclang or bindgen: NVTX ranges need libclang \
                 to build, and `cargo profile doctor` says how to get it"
            );
        }
        executable(&String::from_utf8_lossy(&output.stdout), chapter)
            .with_context(|| format!("`{line}` named no program of {chapter}"))
    }
}

/// Whether ranges were compiled into a program: NVTX looks for its tool in this variable, so the name is in the file.
pub fn has_ranges(program: &Path) -> anyhow::Result<bool> {
    const NAME: &[u8] = b"NVTX_INJECTION64_PATH";
    let bytes = std::fs::read(program).with_context(|| format!("reading {}", program.display()))?;
    Ok(bytes.windows(NAME.len()).any(|window| window == NAME))
}

/// The program that cargo's messages name for the chapter.
fn executable(messages: &str, chapter: &str) -> Option<PathBuf> {
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == chapter)
        .filter_map(|message| message["executable"].as_str().map(PathBuf::from))
        .next_back()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chapters_go_by_their_number() {
        let root = tempfile::tempdir().unwrap();
        for name in ["bin/ch00-the-machine", "bin/ch01-raw-kernel", "bin/profile", "bin/ch01.so"] {
            let file = root.path().join(name);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, "").unwrap();
        }
        let home = Home::Bundle(root.path().to_owned());
        assert_eq!(home.chapter("ch01").unwrap(), "ch01-raw-kernel");
        assert_eq!(home.chapter("ch00-the-machine").unwrap(), "ch00-the-machine");
        let error = home.chapter("ch1").unwrap_err().to_string();
        assert_eq!(error, "there is no chapter `ch1`; there are ch00-the-machine, ch01-raw-kernel");
    }

    #[test]
    fn cargo_names_the_program() {
        let messages = concat!(
            r#"{"reason":"compiler-artifact","target":{"name":"lab"},"executable":null}"#,
            "\n",
            r#"{"reason":"compiler-artifact","target":{"name":"ch01-raw-kernel"},"executable":"/t/debug/ch01-raw-kernel"}"#,
            "\n",
            r#"{"reason":"build-finished","success":true}"#,
        );
        assert_eq!(executable(messages, "ch01-raw-kernel"), Some("/t/debug/ch01-raw-kernel".into()));
        assert_eq!(executable(messages, "ch02-x"), None);
    }
}
