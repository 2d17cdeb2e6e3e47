//! The settings of the emulated GPU: environment variables, because the programs that it runs know nothing of it.

use std::{collections::BTreeMap, fmt, path::PathBuf, sync::OnceLock};

use crate::model::{MODELS, Model};

/// What the environment asks for.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The card to stand for.
    pub model: &'static Model,
    /// How many of them.
    pub devices: u32,
    /// Bytes of device memory of each.
    pub memory: u64,
    /// What is checked beside the bounds of every access.
    pub checks: Checks,
    /// The file that gets one line of counters a launch.
    pub counters: Option<PathBuf>,
    /// Host threads that run blocks.
    pub threads: usize,
    /// Warp instructions that a launch may execute.
    pub budget: u64,
    /// What is written to standard error.
    pub log: Log,
}

/// Checks that a run can do without. Bounds, alignment and barriers of divergent code are always checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checks {
    /// Reads of device and shared memory that nothing has written.
    pub init: bool,
    /// Races between the threads of a block in shared memory.
    pub race: bool,
    /// Barriers that not every thread reaches.
    pub sync: bool,
    /// Operations on the same bytes that no stream, event or synchronisation orders.
    pub stream: bool,
}

impl Checks {
    /// Every check.
    pub const ALL: Checks = Checks { init: true, race: true, sync: true, stream: true };
}

/// What is written to standard error.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Log {
    /// Reports of faults only.
    Quiet,
    /// Also why a module was refused, and each unsupported function once.
    #[default]
    Reasons,
    /// Also every call that fails.
    Errors,
    /// Every call.
    Calls,
}

/// A variable of the environment, as `--help` shows it.
#[derive(Clone, Copy, Debug)]
pub struct Setting {
    /// The variable.
    pub name: &'static str,
    /// The values that it takes.
    pub values: &'static str,
    /// What it is when it is not set.
    pub default: &'static str,
    /// What it does.
    pub help: &'static str,
}

/// Every setting, in the order in which a reader meets them.
pub const SETTINGS: &[Setting] = &[
    Setting {
        name: "EMULATED_GPU_MODEL",
        values: "h200 h100 a100 a10 l40s l4 t4 rtx3090 rtx4090",
        default: "h200",
        help: "The card whose attributes and limits it answers with. Its name always says that it is emulated.",
    },
    Setting {
        name: "EMULATED_GPU_DEVICES",
        values: "0 to 64",
        default: "1",
        help: "How many of these cards the machine seems to have.",
    },
    Setting {
        name: "EMULATED_GPU_MEMORY",
        values: "bytes, or with K, M, G",
        default: "the card's",
        help: "Device memory of each card. What the host cannot hold is refused as out of memory in any case.",
    },
    Setting {
        name: "EMULATED_GPU_CHECK",
        values: "bounds init race sync stream all, joined by commas",
        default: "bounds",
        help: "Reports reads of device and shared memory that nothing has written (init), races between the threads of \
               a block in shared memory (race), barriers that not every thread reaches (sync), and operations on the \
               same bytes that nothing orders (stream). Bounds and alignment are always checked.",
    },
    Setting {
        name: "EMULATED_GPU_COUNTERS",
        values: "a file",
        default: "none",
        help: "Appends one JSON object a launch: instructions, memory requests and sectors, bank conflicts.",
    },
    Setting {
        name: "EMULATED_GPU_THREADS",
        values: "1 to 1024",
        default: "one a core",
        help: "Host threads that run the blocks of a grid.",
    },
    Setting {
        name: "EMULATED_GPU_BUDGET",
        values: "warp instructions",
        default: "100000000000",
        help: "A launch that executes more is stopped, as a watchdog would: an endless loop is reported, with its line.",
    },
    Setting {
        name: "EMULATED_GPU_LOG",
        values: "0 to 3",
        default: "1",
        help: "To standard error: 0 only faults, 1 also why a module is refused and what is not supported, 2 every \
               call that fails, 3 every call.",
    },
];

/// A variable with a value that means nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    name: String,
    message: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.name, self.message)
    }
}

impl std::error::Error for Error {}

/// The settings of this process, read once.
pub fn settings() -> Result<&'static Settings, &'static Error> {
    static READ: OnceLock<Result<Settings, Error>> = OnceLock::new();
    READ.get_or_init(|| {
        Settings::read(
            std::env::vars_os()
                .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
                .filter(|(name, _)| name.starts_with(PREFIX))
                .map(|(name, value)| (name, value.to_string_lossy().into_owned())),
        )
    })
    .as_ref()
}

const PREFIX: &str = "EMULATED_GPU_";

impl Settings {
    /// Reads settings from names and values. An empty value counts as unset.
    pub fn read(variables: impl IntoIterator<Item = (String, String)>) -> Result<Settings, Error> {
        let variables: BTreeMap<String, String> =
            variables.into_iter().filter(|(_, value)| !value.is_empty()).collect();
        if let Some(name) = variables.keys().find(|name| SETTINGS.iter().all(|setting| setting.name != *name))
        {
            let known: Vec<_> = SETTINGS.iter().map(|setting| setting.name).collect();
            return Err(Error {
                name: name.clone(),
                message: format!("is no setting; there are {}", known.join(", ")),
            });
        }
        let value = |name| variables.get(name).map(String::as_str);
        let wrong = |name: &str, expected: &str| Error {
            name: format!("{name}={}", variables[name]),
            message: format!("is not understood; use {expected}"),
        };
        let number = |name, least: u64, most: u64, default: u64| match value(name) {
            None => Ok(default),
            Some(text) => text
                .parse()
                .ok()
                .filter(|number| (least..=most).contains(number))
                .ok_or_else(|| wrong(name, &format!("a number from {least} to {most}"))),
        };

        let model = match value("EMULATED_GPU_MODEL") {
            None => &MODELS[0],
            Some(key) => Model::find(key).ok_or_else(|| {
                let keys: Vec<_> = MODELS.iter().map(|model| model.key).collect();
                wrong("EMULATED_GPU_MODEL", &format!("one of {}", keys.join(", ")))
            })?,
        };
        let memory = match value("EMULATED_GPU_MEMORY") {
            None => model.total_memory,
            Some(text) => bytes(text)
                .ok_or_else(|| wrong("EMULATED_GPU_MEMORY", "a number of bytes such as 512M or 8G"))?,
        };
        let cores = std::thread::available_parallelism().map_or(1, usize::from) as u64;
        Ok(Settings {
            model,
            devices: number("EMULATED_GPU_DEVICES", 0, 64, 1)? as u32,
            memory,
            checks: match value("EMULATED_GPU_CHECK") {
                None => Checks::default(),
                Some(text) => checks(text).ok_or_else(|| {
                    wrong("EMULATED_GPU_CHECK", "bounds, init, race, sync, stream or all, joined by commas")
                })?,
            },
            counters: value("EMULATED_GPU_COUNTERS").map(PathBuf::from),
            threads: number("EMULATED_GPU_THREADS", 1, 1024, cores)? as usize,
            budget: number("EMULATED_GPU_BUDGET", 1, u64::MAX, 100_000_000_000)?,
            log: match number("EMULATED_GPU_LOG", 0, 3, 1)? {
                0 => Log::Quiet,
                1 => Log::Reasons,
                2 => Log::Errors,
                _ => Log::Calls,
            },
        })
    }
}

/// `512M` in bytes.
fn bytes(text: &str) -> Option<u64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let unit: u64 = match text[digits.len()..].to_ascii_uppercase().as_str() {
        "" => 1,
        "K" | "KIB" => 1 << 10,
        "M" | "MIB" => 1 << 20,
        "G" | "GIB" => 1 << 30,
        _ => return None,
    };
    digits.parse::<u64>().ok()?.checked_mul(unit).filter(|&bytes| bytes > 0)
}

fn checks(text: &str) -> Option<Checks> {
    let mut checks = Checks::default();
    for word in text.split(',') {
        match word.trim() {
            "bounds" => {}
            "init" => checks.init = true,
            "race" => checks.race = true,
            "sync" => checks.sync = true,
            "stream" => checks.stream = true,
            "all" => checks = Checks::ALL,
            _ => return None,
        }
    }
    Some(checks)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(variables: &[(&str, &str)]) -> Result<Settings, String> {
        Settings::read(variables.iter().map(|(name, value)| (name.to_string(), value.to_string())))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_set_is_one_h200() {
        let settings = read(&[]).unwrap();
        assert_eq!((settings.model.key, settings.devices), ("h200", 1));
        assert_eq!(settings.memory, settings.model.total_memory);
        assert_eq!(settings.checks, Checks::default());
    }

    #[test]
    fn values_are_understood() {
        let settings = read(&[
            ("EMULATED_GPU_MODEL", "T4"),
            ("EMULATED_GPU_DEVICES", "2"),
            ("EMULATED_GPU_MEMORY", "512M"),
            ("EMULATED_GPU_CHECK", "bounds, stream"),
            ("EMULATED_GPU_THREADS", ""),
        ])
        .unwrap();
        assert_eq!((settings.model.key, settings.devices, settings.memory), ("t4", 2, 512 << 20));
        assert_eq!(settings.checks, Checks { stream: true, ..Checks::default() });
        assert!(settings.threads >= 1);
    }

    #[test]
    fn wrong_values_are_named_with_the_right_ones() {
        let error = |name, value| read(&[(name, value)]).unwrap_err();
        assert_eq!(
            error("EMULATED_GPU_DEVICES", "two"),
            "EMULATED_GPU_DEVICES=two is not understood; use a number from 0 to 64"
        );
        assert!(error("EMULATED_GPU_MODEL", "h300").contains("one of h200, h100, a100"));
        assert!(error("EMULATED_GPU_CHECK", "races").contains("bounds, init, race, sync, stream"));
        assert_eq!(read(&[("EMULATED_GPU_CHECK", "all")]).unwrap().checks, Checks::ALL);
        assert!(error("EMULATED_GPU_MEMORY", "8T").contains("512M or 8G"));
        assert!(error("EMULATED_GPU_CHEK", "all").contains("is no setting; there are EMULATED_GPU_MODEL"));
    }

    #[test]
    fn help_names_every_model() {
        let keys: Vec<_> = MODELS.iter().map(|model| model.key).collect();
        assert_eq!(SETTINGS[0].values, keys.join(" "));
        assert!(MODELS.iter().all(|model| model.name.starts_with("Emulated ")));
    }
}
