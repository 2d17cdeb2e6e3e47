//! `EMULATED_GPU_COUNTERS`: a file with one JSON object for each launch.

use std::{
    fs::OpenOptions,
    io::{self, Write},
    path::Path,
    sync::Mutex,
    time::Duration,
};

use serde_json::{Map, Value};

use super::{log, state::lock};
use crate::{counters::Counters, grid::Launch};

/// Appends the counters of a launch.
pub(crate) fn append(path: &Path, launch: &Launch<'_>, counters: &Counters, took: Duration) {
    let mut object = Map::new();
    object.insert("kernel".into(), launch.kernel.name.as_str().into());
    object.insert("grid".into(), launch.grid.to_vec().into());
    object.insert("block".into(), launch.block.to_vec().into());
    object.insert("dynamic_shared_bytes".into(), launch.dynamic_shared_bytes.into());
    for (name, count) in counters.named() {
        object.insert(name.into(), count.into());
    }
    object.insert("host_seconds".into(), took.as_secs_f64().into());
    if let Err(error) = write(path, &format!("{}\n", Value::Object(object))) {
        log::once(&format!("counters cannot be written to {}: {error}", path.display()));
    }
}

fn write(path: &Path, line: &str) -> io::Result<()> {
    // One write a line, so that lines of several threads and processes stay whole.
    static WRITING: Mutex<()> = Mutex::new(());
    let _writing = lock(&WRITING);
    OpenOptions::new().create(true).append(true).open(path)?.write_all(line.as_bytes())
}
