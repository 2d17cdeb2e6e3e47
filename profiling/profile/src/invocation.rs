//! A command line that can be shown, run and recorded.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::Context as _;

/// A program with its arguments and the variables that are set for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Invocation {
    /// Variables on top of the environment.
    pub environment: Vec<(String, OsString)>,
    /// The program's file, or its name where `PATH` finds it.
    pub program: PathBuf,
    /// The arguments.
    pub arguments: Vec<OsString>,
}

/// What a program left when it had ended.
#[derive(Debug)]
pub struct Finished {
    /// Whether it reported success.
    pub success: bool,
    /// How it ended, in words.
    pub status: String,
    /// Its standard output, then its standard error.
    pub output: String,
}

impl Invocation {
    /// `program` without arguments.
    ///
    /// Numbers come as the C locale writes them: in others, `27.595.520` and `27.6` cannot be told apart.
    pub fn new(program: impl Into<PathBuf>) -> Self {
        Self {
            environment: vec![("LC_ALL".into(), "C".into())],
            program: program.into(),
            arguments: Vec::new(),
        }
    }

    /// With one more argument.
    #[must_use]
    pub fn argument(mut self, argument: impl Into<OsString>) -> Self {
        self.arguments.push(argument.into());
        self
    }

    /// With more arguments.
    #[must_use]
    pub fn arguments<A: Into<OsString>>(mut self, arguments: impl IntoIterator<Item = A>) -> Self {
        self.arguments.extend(arguments.into_iter().map(Into::into));
        self
    }

    /// With a variable set.
    #[must_use]
    pub fn variable(mut self, name: &str, value: impl Into<OsString>) -> Self {
        self.environment.push((name.into(), value.into()));
        self
    }

    /// Runs it in `directory` and waits. What it writes is kept, and not shown.
    pub fn run(&self, directory: &Path) -> anyhow::Result<Finished> {
        let output = Command::new(&self.program)
            .args(&self.arguments)
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .current_dir(directory)
            .stdin(Stdio::null())
            .output()
            .with_context(|| format!("starting `{self}`"))?;
        let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.push_str(&String::from_utf8_lossy(&output.stderr));
        Ok(Finished { success: output.status.success(), status: output.status.to_string(), output: text })
    }

    /// The line for a record: every path is cut to its last part, so that no machine's folders are published.
    pub fn without_paths(&self) -> String {
        let short = Self {
            environment: self
                .environment
                .iter()
                .map(|(name, value)| (name.clone(), last_part(value)))
                .collect(),
            program: last_part(self.program.as_os_str()).into(),
            arguments: self.arguments.iter().map(last_part).collect(),
        };
        short.to_string()
    }
}

/// The line as a shell would take it.
impl fmt::Display for Invocation {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (name, value) in &self.environment {
            write!(formatter, "{name}={} ", quoted(&value.to_string_lossy()))?;
        }
        write!(formatter, "{}", quoted(&self.program.to_string_lossy()))?;
        for argument in &self.arguments {
            write!(formatter, " {}", quoted(&argument.to_string_lossy()))?;
        }
        Ok(())
    }
}

/// `word` in quotes if a shell would take it apart.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "@%+=:,./_-".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// The last part of an absolute path, also behind `--option=`; anything else as it stands.
fn last_part(word: impl Into<OsString>) -> OsString {
    let word = word.into();
    let Some(text) = word.to_str() else { return "…".into() };
    let (option, value) = match text.split_once('=') {
        Some((option, value)) if value.starts_with('/') => (&text[..=option.len()], value),
        _ => ("", text),
    };
    if !value.starts_with('/') {
        return word;
    }
    let last = Path::new(value).file_name().map_or_else(|| "/".into(), |name| name.to_string_lossy());
    format!("{option}{last}").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_can_be_pasted_into_a_shell() {
        let line = Invocation::new("/opt/my tools/ncu").argument("--nvtx-include").argument("ch01@measure/");
        assert_eq!(line.to_string(), "LC_ALL=C '/opt/my tools/ncu' --nvtx-include ch01@measure/");
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_record_names_no_folder() {
        let line = Invocation::new("/opt/nvidia/bin/nsys")
            .variable("LD_LIBRARY_PATH", "/home/someone/lib")
            .arguments(["profile", "--output=/home/someone/target/timeline", "/home/someone/ch01-raw-kernel"])
            .argument("ch01@measure/");
        assert_eq!(
            line.without_paths(),
            "LC_ALL=C LD_LIBRARY_PATH=lib nsys profile --output=timeline ch01-raw-kernel ch01@measure/"
        );
    }

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Invocation::new("/nonexistent/nsys").run(Path::new("/")).unwrap_err();
        assert_eq!(error.to_string(), "starting `LC_ALL=C /nonexistent/nsys`");
    }
}
