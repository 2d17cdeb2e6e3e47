//! The trace in the format that Chrome introduced and Perfetto opens: an array of complete events, in microseconds.

use std::path::Path;

use anyhow::Context as _;
use serde_json::{Value, json};

use super::export::{Trace, What};
use super::picture;

/// The file's name, beside the record.
pub const FILE: &str = "trace.json";
/// More events would make a file that nobody wants in a repository.
const EVENTS: usize = 20_000;

const HOST: u32 = 1;
const GPU: u32 = 2;

/// Writes the trace to `file`. Beyond 20,000 events, the rest is left out, and the file says how many.
pub fn write(trace: &Trace, file: &Path) -> anyhow::Result<()> {
    std::fs::write(file, events(trace).to_string()).with_context(|| format!("writing {}", file.display()))
}

fn events(trace: &Trace) -> Value {
    let mut threads: Vec<i64> =
        trace.ranges.iter().map(|r| r.thread).chain(trace.calls.iter().map(|c| c.thread)).collect();
    threads.sort_unstable();
    threads.dedup();
    // Threads by order and not by id: ids are the machine's, and differ in each run.
    let thread = |id: i64| threads.binary_search(&id).unwrap_or_default() + 1;

    let mut events: Vec<(i64, Value)> = Vec::new();
    let mut complete = |name: &str,
                        category: &str,
                        pid: u32,
                        tid: i64,
                        (start, end): (i64, i64),
                        args: Value| {
        let (ts, dur) = (start as f64 / 1e3, (end - start) as f64 / 1e3);
        events.push((
            start,
            json!({"name": name, "cat": category, "ph": "X", "pid": pid, "tid": tid, "ts": ts, "dur": dur, "args": args}),
        ));
    };
    for range in &trace.ranges {
        let tid = thread(range.thread) as i64 * 2 - 1;
        complete(&range.name, "nvtx", HOST, tid, (range.start, range.end), json!({"domain": range.domain}));
    }
    for call in &trace.calls {
        let tid = thread(call.thread) as i64 * 2;
        let args = json!({"correlation": call.correlation});
        complete(&call.name, "cuda", HOST, tid, (call.start, call.end), args);
    }
    for work in &trace.work {
        let (category, mut args) = match &work.what {
            What::Kernel(kernel) => (
                "kernel",
                json!({
                    "grid": kernel.grid,
                    "block": kernel.block,
                    "registers": kernel.registers,
                    "shared bytes": kernel.shared_bytes,
                }),
            ),
            What::Copy { bytes, .. } => ("copy", json!({"bytes": bytes})),
            What::Migration { bytes, .. } => ("migration", json!({"bytes": bytes})),
            What::Set { bytes } => ("fill", json!({"bytes": bytes})),
            What::Graph => ("graph", json!({})),
        };
        args["correlation"] = json!(work.correlation);
        let pid = GPU + u32::try_from(work.device).unwrap_or_default();
        complete(&picture::what(&work.what), category, pid, work.stream, (work.start, work.end), args);
    }
    events.sort_by_key(|(start, _)| *start);
    let left_out = events.len().saturating_sub(EVENTS);
    events.truncate(EVENTS);

    let mut all = vec![named("process_name", HOST, 0, "host")];
    for (index, _) in threads.iter().enumerate() {
        let tid = index as i64 * 2 + 1;
        all.push(named("thread_name", HOST, tid, &format!("NVTX ranges, thread {}", index + 1)));
        all.push(named("thread_name", HOST, tid + 1, &format!("CUDA API, thread {}", index + 1)));
    }
    let mut streams: Vec<_> = trace.work.iter().map(|work| (work.device, work.stream)).collect();
    streams.sort_unstable();
    streams.dedup();
    for (device, stream) in streams {
        let pid = GPU + u32::try_from(device).unwrap_or_default();
        let name = trace.gpus.get(device as usize).map_or("GPU", String::as_str);
        all.push(named("process_name", pid, 0, &format!("GPU {device}: {name}")));
        all.push(named("thread_name", pid, stream, &format!("stream {stream}")));
    }
    all.extend(events.into_iter().map(|(_, event)| event));
    json!({"displayTimeUnit": "ns", "otherData": {"events left out": left_out}, "traceEvents": all})
}

fn named(what: &str, pid: u32, tid: i64, name: &str) -> Value {
    json!({"name": what, "ph": "M", "pid": pid, "tid": tid, "args": {"name": name}})
}
