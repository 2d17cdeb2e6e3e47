//! What the emulated GPU tells on standard error, as `EMULATED_GPU_LOG` asks.

use std::{collections::HashSet, io::Write, sync::Mutex};

use super::error::CUresult;
use crate::settings::{Log, settings};

/// Says why something was refused, or what went wrong.
pub(crate) fn reason(text: &str) {
    if level() >= Log::Reasons {
        always(text);
    }
}

/// Says it once a process.
pub(crate) fn once(text: &str) {
    static SAID: Mutex<Option<HashSet<String>>> = Mutex::new(None);
    let mut said = SAID.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    if said.get_or_insert_default().insert(text.to_owned()) {
        reason(text);
    }
}

/// Notes a call.
pub(crate) fn call(name: &str, code: CUresult) {
    let wanted = match code {
        CUresult::SUCCESS | CUresult::NOT_READY => Log::Calls,
        _ => Log::Errors,
    };
    if level() >= wanted {
        let answer = code.name().unwrap_or(c"?").to_string_lossy();
        always(&format!("{name} = {answer}"));
    }
}

/// Says it whatever the setting.
pub(crate) fn always(text: &str) {
    // One write, so that lines of several threads stay whole. A program may have closed its standard error.
    let _closed = std::io::stderr().write_all(format!("emulated GPU: {text}\n").as_bytes());
}

fn level() -> Log {
    settings().map_or(Log::Reasons, |settings| settings.log)
}
