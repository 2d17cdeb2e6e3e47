//! Reads the SQLite file that `nsys export` writes, of any version whose schema's major number is 3.
//!
//! Tables are written only when there is something in them, newer versions add a suffix (`NVTX_EVENTS_V2`), and columns
//! come and go. So a table is looked up by its stem, a column may be absent, and what is not there is listed in
//! [`Trace::absent`] instead of being read as nothing happened.

use std::collections::HashMap;
use std::path::Path;

use anyhow::{Context as _, bail};
use rusqlite::{Connection, OpenFlags, Row};

/// The major number of the export schemas that are understood.
const SCHEMA_MAJOR: &str = "3";
/// `copyKind` of pages of managed memory that move to the GPU, and back.
const MIGRATION_TO_GPU: i64 = 11;
const MIGRATION_TO_CPU: i64 = 12;
/// `eventType` of a push/pop range.
const PUSH_POP: i64 = 59;
/// `eventType` of a start/end range.
const START_END: i64 = 60;
/// `eventType` of a domain's creation, whose text is the domain's name.
const DOMAIN_CREATE: i64 = 75;

/// What one session saw, in nanoseconds since it began.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// The export's schema, such as `3.20.3`.
    pub schema: String,
    /// The names of the GPUs, by device number.
    pub gpus: Vec<String>,
    /// NVTX ranges, by start.
    pub ranges: Vec<Range>,
    /// CUDA API calls, by start.
    pub calls: Vec<Call>,
    /// What the GPU did, by start.
    pub work: Vec<Work>,
    /// Page faults of managed memory, by start.
    pub faults: Vec<Fault>,
    /// Whether faults of the CPU, and of the GPU, were recorded.
    pub faults_recorded: [bool; 2],
    /// What this session did not record, in words.
    pub absent: Vec<&'static str>,
    /// Warnings and errors of the tool itself. They may name folders: for the terminal only.
    pub warnings: Vec<String>,
}

/// An NVTX range.
#[derive(Clone, Debug, PartialEq)]
pub struct Range {
    /// Its domain; empty for the default one.
    pub domain: String,
    /// Its message.
    pub name: String,
    /// The thread that opened it.
    pub thread: i64,
    /// When it was opened.
    pub start: i64,
    /// When it was closed.
    pub end: i64,
    /// True for push/pop, which nests on its thread; false for start/end.
    pub nests: bool,
}

/// A call of the CUDA API.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Such as `cuLaunchKernel`.
    pub name: String,
    /// The calling thread.
    pub thread: i64,
    /// When it was entered.
    pub start: i64,
    /// When it returned.
    pub end: i64,
    /// What it caused has the same number.
    pub correlation: i64,
}

/// Something that the GPU did.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// When it began.
    pub start: i64,
    /// When it had ended.
    pub end: i64,
    /// The device.
    pub device: i64,
    /// The stream, by CUDA's number.
    pub stream: i64,
    /// The call that caused it has the same number.
    pub correlation: i64,
    /// What it was.
    pub what: What,
}

/// The sorts of work that a GPU does.
#[derive(Clone, Debug, PartialEq)]
pub enum What {
    /// A kernel.
    Kernel(Kernel),
    /// A copy.
    Copy {
        /// Such as `Host-to-Device`.
        direction: String,
        /// How much.
        bytes: i64,
    },
    /// Pages of managed memory that the driver moved.
    Migration {
        /// Which way.
        to: By,
        /// How much.
        bytes: i64,
    },
    /// A fill.
    Set {
        /// How much.
        bytes: i64,
    },
    /// A whole CUDA graph, where its nodes were not recorded one by one.
    Graph,
}

/// Page faults of managed memory that were recorded together.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Fault {
    /// Who touched a page that was elsewhere.
    pub by: By,
    /// When.
    pub start: i64,
    /// How many.
    pub count: i64,
}

/// Who faults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// A thread of the program.
    Cpu,
    /// A kernel.
    Gpu,
}

/// A kernel's launch.
#[derive(Clone, Debug, PartialEq)]
pub struct Kernel {
    /// Its name without parameters.
    pub name: String,
    /// Blocks in each dimension.
    pub grid: [i64; 3],
    /// Threads in each dimension of a block.
    pub block: [i64; 3],
    /// Registers for each thread.
    pub registers: i64,
    /// Bytes of shared memory for each block, static and dynamic.
    pub shared_bytes: i64,
}

/// Reads an export.
///
/// # Errors
/// A file that is no export, is empty, or has a schema that is not understood.
pub fn read(file: &Path) -> anyhow::Result<Trace> {
    let connection = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY)
        .with_context(|| format!("opening the export {}", file.display()))?;
    from_connection(&connection).with_context(|| format!("reading the export {}", file.display()))
}

/// [`read`], of a file that is open.
pub fn from_connection(connection: &Connection) -> anyhow::Result<Trace> {
    let export = Export::new(connection)?;
    let mut trace = Trace {
        schema: export.schema()?,
        warnings: export.warnings()?,
        gpus: export.gpus()?,
        ..Trace::default()
    };
    export.ranges(&mut trace)?;
    export.calls(&mut trace)?;
    export.work(&mut trace)?;
    export.faults(&mut trace)?;
    Ok(trace)
}

/// The export's tables, by stem.
struct Export<'a> {
    connection: &'a Connection,
    tables: HashMap<String, Table>,
    strings: HashMap<i64, String>,
}

struct Table {
    name: String,
    version: u32,
    columns: Vec<String>,
}

impl Table {
    /// The column, or `NULL` where this version has none.
    fn column(&self, name: &str) -> String {
        if self.columns.iter().any(|column| column == name) { format!("\"{name}\"") } else { "NULL".into() }
    }

    fn select(&self, columns: &[&str], order: &str) -> String {
        let columns: Vec<_> = columns.iter().map(|name| self.column(name)).collect();
        format!("SELECT {} FROM \"{}\" {order}", columns.join(", "), self.name)
    }
}

impl<'a> Export<'a> {
    fn new(connection: &'a Connection) -> anyhow::Result<Self> {
        let mut tables: HashMap<String, Table> = HashMap::new();
        let names: Vec<String> = connection
            .prepare("SELECT name FROM sqlite_master WHERE type = 'table'")?
            .query_map([], |row| row.get(0))?
            .collect::<Result<_, _>>()?;
        for name in names {
            let (stem, version) = stem(&name);
            if tables.get(stem).is_some_and(|known| known.version >= version) {
                continue;
            }
            let columns = connection
                .prepare(&format!("PRAGMA table_info(\"{name}\")"))?
                .query_map([], |row| row.get(1))?
                .collect::<Result<_, _>>()?;
            tables.insert(stem.to_owned(), Table { name: name.clone(), version, columns });
        }
        let mut export = Self { connection, tables, strings: HashMap::new() };
        export.strings = export
            .rows("StringIds", &["id", "value"], "", |row| Ok((row.get(0)?, row.get(1)?)))?
            .into_iter()
            .collect();
        Ok(export)
    }

    /// Every row of a table, or none where the table is absent.
    fn rows<T>(
        &self,
        table: &str,
        columns: &[&str],
        order: &str,
        read: impl FnMut(&Row<'_>) -> rusqlite::Result<T>,
    ) -> anyhow::Result<Vec<T>> {
        let Some(table) = self.tables.get(table) else { return Ok(Vec::new()) };
        let mut statement = self.connection.prepare(&table.select(columns, order))?;
        let rows = statement.query_map([], read)?.collect::<Result<_, _>>();
        rows.with_context(|| format!("table {}", table.name))
    }

    fn has(&self, table: &str) -> bool {
        self.tables.contains_key(table)
    }

    fn string(&self, id: i64) -> String {
        self.strings.get(&id).cloned().unwrap_or_else(|| format!("string {id}"))
    }

    fn schema(&self) -> anyhow::Result<String> {
        if self.tables.is_empty() {
            bail!("it holds no table: nsys recorded nothing");
        }
        // 2022's versions call it by another name.
        let table = if self.has("META_DATA_EXPORT") { "META_DATA_EXPORT" } else { "EXPORT_META_DATA" };
        let facts: Vec<(String, Option<String>)> =
            self.rows(table, &["name", "value"], "", |row| Ok((row.get(0)?, row.get(1)?)))?;
        let schema = facts
            .into_iter()
            .find(|(name, _)| name == "EXPORT_SCHEMA_VERSION")
            .and_then(|(_, value)| value)
            .context("it names no EXPORT_SCHEMA_VERSION, so it was not written by `nsys export`")?;
        if schema.split('.').next() != Some(SCHEMA_MAJOR) {
            bail!("its schema is {schema}; {SCHEMA_MAJOR}.x is understood here");
        }
        Ok(schema)
    }

    fn warnings(&self) -> anyhow::Result<Vec<String>> {
        let rows: Vec<(i64, String)> =
            self.rows("DIAGNOSTIC_EVENT", &["severity", "text"], "", |row| Ok((row.get(0)?, row.get(1)?)))?;
        // 2 is a warning, 3 an error.
        Ok(rows.into_iter().filter(|(severity, _)| matches!(severity, 2 | 3)).map(|(_, text)| text).collect())
    }

    fn gpus(&self) -> anyhow::Result<Vec<String>> {
        let names: Vec<Option<String>> =
            self.rows("TARGET_INFO_GPU", &["name", "id"], "ORDER BY 2", |row| row.get(0))?;
        Ok(names.into_iter().flatten().collect())
    }

    fn ranges(&self, trace: &mut Trace) -> anyhow::Result<()> {
        if !self.has("NVTX_EVENTS") {
            trace.absent.push("NVTX ranges");
            return Ok(());
        }
        struct Event {
            start: i64,
            end: Option<i64>,
            sort: i64,
            text: Option<String>,
            domain: i64,
            thread: i64,
        }
        let columns = ["start", "end", "eventType", "text", "textId", "domainId", "globalTid"];
        let events = self.rows("NVTX_EVENTS", &columns, "ORDER BY 1, 2 DESC", |row| {
            let text: Option<String> = row.get(3)?;
            let id: Option<i64> = row.get(4)?;
            Ok(Event {
                start: row.get(0)?,
                end: row.get(1)?,
                sort: row.get(2)?,
                // A registered message is a number, any other one is text.
                text: text.or_else(|| id.map(|id| self.string(id))),
                domain: row.get::<_, Option<i64>>(5)?.unwrap_or_default(),
                thread: row.get::<_, Option<i64>>(6)?.unwrap_or_default(),
            })
        })?;
        let domains: HashMap<i64, String> = events
            .iter()
            .filter(|event| event.sort == DOMAIN_CREATE)
            .filter_map(|event| Some((event.domain, event.text.clone()?)))
            .collect();
        for event in events {
            // A range that was never closed has no end: its length is unknown.
            if let (PUSH_POP | START_END, Some(end), Some(name)) = (event.sort, event.end, event.text) {
                trace.ranges.push(Range {
                    domain: domains.get(&event.domain).cloned().unwrap_or_default(),
                    name,
                    thread: event.thread,
                    start: event.start,
                    end,
                    nests: event.sort == PUSH_POP,
                });
            }
        }
        Ok(())
    }

    fn calls(&self, trace: &mut Trace) -> anyhow::Result<()> {
        if !self.has("CUPTI_ACTIVITY_KIND_RUNTIME") {
            trace.absent.push("CUDA API calls");
        }
        let columns = ["start", "end", "globalTid", "correlationId", "nameId"];
        trace.calls = self.rows("CUPTI_ACTIVITY_KIND_RUNTIME", &columns, "ORDER BY 1", |row| {
            Ok(Call {
                start: row.get(0)?,
                end: row.get(1)?,
                thread: row.get::<_, Option<i64>>(2)?.unwrap_or_default(),
                correlation: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
                name: without_version(&self.string(row.get(4)?)).to_owned(),
            })
        })?;
        Ok(())
    }

    fn work(&self, trace: &mut Trace) -> anyhow::Result<()> {
        const PLACE: [&str; 5] = ["start", "end", "deviceId", "streamId", "correlationId"];
        let place = |row: &Row<'_>, what| -> rusqlite::Result<Work> {
            Ok(Work {
                start: row.get(0)?,
                end: row.get(1)?,
                device: row.get(2)?,
                stream: row.get::<_, Option<i64>>(3)?.unwrap_or_default(),
                correlation: row.get::<_, Option<i64>>(4)?.unwrap_or_default(),
                what,
            })
        };
        let columns =
            |more: &[&'static str]| -> Vec<&'static str> { PLACE.iter().chain(more).copied().collect() };

        let kernels = columns(&[
            "shortName",
            "demangledName",
            "gridX",
            "gridY",
            "gridZ",
            "blockX",
            "blockY",
            "blockZ",
            "registersPerThread",
            "staticSharedMemory",
            "dynamicSharedMemory",
        ]);
        trace.work = self.rows("CUPTI_ACTIVITY_KIND_KERNEL", &kernels, "", |row| {
            let name: Option<i64> = row.get::<_, Option<i64>>(5)?.or(row.get(6)?);
            let number =
                |column| Ok::<_, rusqlite::Error>(row.get::<_, Option<i64>>(column)?.unwrap_or_default());
            let kernel = Kernel {
                name: name.map_or_else(|| "kernel".into(), |name| self.string(name)),
                grid: [number(7)?, number(8)?, number(9)?],
                block: [number(10)?, number(11)?, number(12)?],
                registers: number(13)?,
                shared_bytes: number(14)? + number(15)?,
            };
            place(row, What::Kernel(kernel))
        })?;

        let directions: HashMap<i64, String> = self
            .rows("ENUM_CUDA_MEMCPY_OPER", &["id", "label"], "", |row| Ok((row.get(0)?, row.get(1)?)))?
            .into_iter()
            .collect();
        trace.work.extend(self.rows(
            "CUPTI_ACTIVITY_KIND_MEMCPY",
            &columns(&["bytes", "copyKind"]),
            "",
            |row| {
                let kind: i64 = row.get(6)?;
                let bytes = row.get(5)?;
                match kind {
                    MIGRATION_TO_GPU => return place(row, What::Migration { to: By::Gpu, bytes }),
                    MIGRATION_TO_CPU => return place(row, What::Migration { to: By::Cpu, bytes }),
                    _ => {}
                }
                let direction =
                    directions.get(&kind).cloned().unwrap_or_else(|| format!("copy of kind {kind}"));
                place(row, What::Copy { direction, bytes })
            },
        )?);
        trace.work.extend(self.rows("CUPTI_ACTIVITY_KIND_MEMSET", &columns(&["bytes"]), "", |row| {
            place(row, What::Set { bytes: row.get(5)? })
        })?);
        trace
            .work
            .extend(self.rows("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", &PLACE, "", |row| place(row, What::Graph))?);
        trace.work.sort_by_key(|work| (work.start, work.end));

        let tables = [
            ("CUPTI_ACTIVITY_KIND_KERNEL", "kernels"),
            ("CUPTI_ACTIVITY_KIND_MEMCPY", "copies"),
            ("CUPTI_ACTIVITY_KIND_MEMSET", "fills"),
        ];
        trace.absent.extend(tables.iter().filter(|(table, _)| !self.has(table)).map(|(_, what)| what));
        Ok(())
    }
}

impl Export<'_> {
    /// Page faults of managed memory.
    fn faults(&self, trace: &mut Trace) -> anyhow::Result<()> {
        let cpu = self.rows("CUDA_UM_CPU_PAGE_FAULT_EVENTS", &["start"], "", |row| {
            Ok(Fault { by: By::Cpu, start: row.get(0)?, count: 1 })
        })?;
        let gpu =
            self.rows("CUDA_UM_GPU_PAGE_FAULT_EVENTS", &["start", "numberOfPageFaults"], "", |row| {
                // A row without a number stands for itself.
                let count = row.get::<_, Option<i64>>(1)?.unwrap_or(1);
                Ok(Fault { by: By::Gpu, start: row.get(0)?, count })
            })?;
        trace.faults_recorded = [&cpu, &gpu].map(|faults| !faults.is_empty());
        trace.faults = cpu.into_iter().chain(gpu).collect();
        trace.faults.sort_by_key(|fault| fault.start);
        Ok(())
    }
}

/// A table's name without the suffix of its version, and that version.
fn stem(name: &str) -> (&str, u32) {
    name.rsplit_once("_V")
        .and_then(|(stem, version)| Some((stem, version.parse().ok()?)))
        .unwrap_or((name, 1))
}

/// A call's name without the version of its signature: `cudaMalloc_v3020`, `cuMemAlloc_v2`.
fn without_version(name: &str) -> &str {
    match name.rsplit_once("_v") {
        Some((stem, version)) if !version.is_empty() && version.bytes().all(|b| b.is_ascii_digit()) => stem,
        _ => name,
    }
}
