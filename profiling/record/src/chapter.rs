//! What a chapter's `Cargo.toml` says of it. Read without compiling, by the book as by the chapter itself.

use std::collections::BTreeMap;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// A chapter's name and its `[package.metadata.lab]`.
#[derive(Clone, Debug, PartialEq)]
pub struct Chapter {
    /// The crate's name, such as `ch01-raw-kernel`.
    pub name: String,
    /// The question it answers: `title`, else the crate's description.
    pub title: String,
    /// The NVTX domain, such as `ch01`: `domain`, else the name up to its first hyphen.
    pub domain: String,
    /// Crates of this rung whose version can change a result.
    pub libraries: Vec<String>,
    /// Parameters of a run, such as a largest size, as they stand in the manifest.
    pub parameters: BTreeMap<String, String>,
    /// Whether it runs only when asked for by name.
    pub heavy: bool,
    /// Whether it may still lack the record of a GPU: its page then says so where that record's numbers will stand.
    pub draft: bool,
    /// The cells that profilers look at unless others are named.
    pub profile: Profiled,
}

/// The cells of a chapter that profilers look at; all of them where none is named.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Profiled {
    /// Those of the timeline.
    pub timeline: Vec<String>,
    /// Those whose kernels are counted.
    pub kernels: Vec<String>,
    /// Whether the timeline has page faults of managed memory, which cost much to record.
    pub page_faults: bool,
}

impl Chapter {
    /// Reads the text of a chapter's `Cargo.toml`.
    ///
    /// # Errors
    /// When it is no manifest of a package, or `[package.metadata.lab]` holds what nobody reads.
    pub fn parse(manifest: &str) -> Result<Self> {
        let manifest: Manifest = toml::from_str(manifest).context("reading a chapter's Cargo.toml")?;
        let Package { name, description, metadata } = manifest.package;
        let lab = metadata.lab;
        let parameters = lab
            .parameters
            .into_iter()
            .map(|(key, value)| {
                let value = match value {
                    toml::Value::String(text) => text,
                    toml::Value::Integer(_) | toml::Value::Float(_) | toml::Value::Boolean(_) => {
                        value.to_string()
                    }
                    _ => {
                        bail!("the parameter `{key}` of {name} is neither a number, a word nor true or false")
                    }
                };
                Ok((key, value))
            })
            .collect::<Result<_>>()?;
        let short = name.split('-').next().unwrap_or_default().to_owned();
        Ok(Self {
            title: lab.title.or(description).unwrap_or_default(),
            domain: lab.domain.unwrap_or(short),
            libraries: lab.libraries,
            parameters,
            heavy: lab.heavy,
            draft: lab.draft,
            profile: lab.profile,
            name,
        })
    }
}

#[derive(Deserialize)]
struct Manifest {
    package: Package,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    description: Option<String>,
    #[serde(default)]
    metadata: Metadata,
}

#[derive(Default, Deserialize)]
struct Metadata {
    #[serde(default)]
    lab: Lab,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Lab {
    title: Option<String>,
    domain: Option<String>,
    libraries: Vec<String>,
    parameters: BTreeMap<String, toml::Value>,
    heavy: bool,
    draft: bool,
    profile: Profiled,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_whole_manifest() {
        let chapter = Chapter::parse(
            r#"
            [package]
            name = "ch01-raw-kernel"
            version.workspace = true
            [package.metadata.lab]
            title = "What are the four steps?"
            libraries = ["cudarc"]
            parameters = { largest = 268435456, ratio = 0.5, mode = "all" }
            profile = { timeline = ["four-steps"], page_faults = true }
            "#,
        )
        .unwrap();
        assert_eq!(chapter.title, "What are the four steps?");
        assert_eq!(chapter.domain, "ch01");
        assert_eq!(chapter.libraries, ["cudarc"]);
        let parameters: Vec<(&str, &str)> =
            chapter.parameters.iter().map(|(k, v)| (k.as_str(), v.as_str())).collect();
        assert_eq!(parameters, [("largest", "268435456"), ("mode", "all"), ("ratio", "0.5")]);
        assert!(!chapter.heavy);
        assert_eq!(chapter.profile.timeline, ["four-steps"]);
        assert!(chapter.profile.kernels.is_empty());
        assert!(chapter.profile.page_faults);
    }

    #[test]
    fn a_bare_manifest_takes_its_description() {
        let chapter =
            Chapter::parse("[package]\nname = \"ch02-x\"\ndescription = \"Who runs what?\"\n").unwrap();
        assert_eq!((chapter.title.as_str(), chapter.domain.as_str()), ("Who runs what?", "ch02"));
    }

    #[test]
    fn a_misspelt_key_is_an_error() {
        let text = "[package]\nname = \"x\"\n[package.metadata.lab]\nheavvy = true\n";
        assert!(format!("{:#}", Chapter::parse(text).unwrap_err()).contains("heavvy"));
    }
}
