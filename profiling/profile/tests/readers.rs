//! What the tools wrote on an H200, read and reduced.

use profile::ncu::kernels::{self, Ceilings};
use profile::ncu::raw;
use profile::nsys::export::{self, Trace, What};
use profile::nsys::{timeline, trace_events};
use record::{Abscissa, Cell, Entry, Output};
use rusqlite::Connection;

const NSYS: &str = include_str!("fixtures/nsys-2025.3.sql");
const KERNELS: &str = include_str!("fixtures/ncu-2025.3-kernels.csv");
const OPERATIONS: &str = include_str!("fixtures/ncu-2025.3-operations.csv");

fn connection(sql: &str) -> Connection {
    let connection = Connection::open_in_memory().unwrap();
    connection.execute_batch(sql).unwrap();
    connection
}

fn trace(sql: &str) -> Trace {
    export::from_connection(&connection(sql)).unwrap()
}

#[track_caller]
fn refused(sql: &str, because: &str) {
    let message = format!("{:#}", export::from_connection(&connection(sql)).unwrap_err());
    assert!(message.contains(because), "{message}");
}

#[track_caller]
fn number(cell: &Cell, name: &str) -> f64 {
    cell.value(name).unwrap_or_else(|| panic!("no value {name}")).point.value.unwrap()
}

#[track_caller]
fn row(cell: &Cell, table: &str, name: &str) -> Vec<Entry> {
    let table = cell.table(table).unwrap();
    let found = table.rows.iter().find(|row| row[0] == Entry::Text(name.into()));
    found.unwrap_or_else(|| panic!("no row {name} in {:?}", table.rows)).clone()
}

fn text(cell: &Cell) -> &str {
    let text = cell.outputs.iter().find_map(|output| match output {
        Output::Text(text) => Some(&text.text),
        _ => None,
    });
    text.unwrap()
}

mod nsight_systems {
    use super::*;

    #[test]
    fn the_export_is_read_whole() {
        let trace = trace(NSYS);
        assert_eq!(trace.schema, "3.20.3");
        assert_eq!(trace.gpus, ["NVIDIA H200"]);
        let names: Vec<_> =
            trace.ranges.iter().map(|range| (range.domain.as_str(), range.name.as_str())).collect();
        assert_eq!(
            names,
            [
                ("ch01", "setup"),
                ("ch01", "h2d"),
                ("ch01", "measure"),
                ("ch01", "kernel.vector_add"),
                ("ch01", "d2h")
            ]
        );
        assert_eq!(trace.calls.len(), 16);
        assert_eq!(trace.calls[1].name, "cudaMalloc");
        let kernels: Vec<_> = trace.work.iter().filter(|work| matches!(work.what, What::Kernel(_))).collect();
        assert_eq!(kernels.len(), 3);
        let What::Kernel(kernel) = &kernels[0].what else { unreachable!() };
        assert_eq!((kernel.name.as_str(), kernel.grid, kernel.registers), ("vector_add", [65536, 1, 1], 16));
        // The fills' table is not in the file, and that is no fill of zero bytes.
        assert_eq!(trace.absent, ["fills"]);
    }

    #[test]
    fn work_is_counted_for_the_range_that_started_it_and_those_around() {
        let cells = timeline::reduce(&trace(NSYS), "ch01").unwrap();
        let cell = &cells[0];
        assert_eq!(cell.id, "timeline");
        let measure = row(cell, "ranges", "measure");
        assert_eq!(measure[1..], [1.0, 524.125, 189.055, 3.0, 0.0, 0.0].map(Entry::Number));
        assert_eq!(row(cell, "ranges", "measure / kernel.vector_add")[4], Entry::Number(3.0));
        let h2d = row(cell, "ranges", "h2d");
        assert_eq!(h2d[4..], [0.0, 2.0, 134.218].map(Entry::Number));
        assert_eq!(row(cell, "ranges", "setup")[3], Entry::Number(0.0));
        let kernel = row(cell, "kernels", "vector_add");
        assert_eq!(
            kernel[1..4],
            [Entry::Text("65536".into()), Entry::Text("256".into()), Entry::Number(3.0)]
        );
        assert_eq!(kernel[5], Entry::Number(63.711));
        let copies = row(cell, "copies", "Host-to-Device");
        assert_eq!(copies[1], Entry::Number(2.0));
        cell.check().unwrap();
    }

    #[test]
    fn the_picture_has_a_lane_for_each_depth_the_calls_and_each_stream() {
        let cells = timeline::reduce(&trace(NSYS), "ch01").unwrap();
        let timeline = cells[0].timeline().unwrap();
        let names: Vec<_> =
            timeline.lanes.iter().map(|lane| (lane.name.as_str(), lane.spans.len())).collect();
        assert_eq!(names, [("NVTX ch01", 4), ("NVTX ch01, level 2", 1), ("CUDA API", 16), ("stream 7", 6)]);
        let setup = &timeline.lanes[0].spans[0];
        assert_eq!((setup.name.as_str(), setup.start_us), ("setup", 0.0));
        // The whole is one pass: there is nothing to look closer at.
        assert_eq!(cells.len(), 1);
        let busy = number(&cells[0], "gpu_busy_us");
        assert!(busy < number(&cells[0], "length_us"));
    }

    #[test]
    fn the_busiest_pass_gets_a_picture_of_its_own() {
        let mut sql = "CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);
            INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.20.3');
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, domainId INTEGER, globalTid INTEGER);
            INSERT INTO NVTX_EVENTS VALUES (0, NULL, 75, 'ch01', 1, 9);
            CREATE TABLE StringIds (id INTEGER, value TEXT);
            INSERT INTO StringIds VALUES (1, 'cuLaunchKernel'), (2, 'vector_add');
            CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER);
            CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER, deviceId INTEGER, streamId INTEGER, correlationId INTEGER, shortName INTEGER);"
            .to_owned();
        // Five passes, with kernels of 10, 30, 20, 5 and 5 µs; the second one's ends after its range. A warm-up does more.
        for (pass, micros) in [10, 30, 20, 5, 5].into_iter().enumerate() {
            let at = pass as i64 * 100_000;
            for (index, name) in ["setup", "h2d", "measure", "d2h", "check"].into_iter().enumerate() {
                let start = at + index as i64 * 10_000;
                let end = start + 9_000;
                sql.push_str(&format!(
                    "INSERT INTO NVTX_EVENTS VALUES ({start}, {end}, 59, '{name}', 1, 9);"
                ));
            }
            let start = at + 21_000;
            let end = start + micros * 1000;
            sql.push_str(&format!(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({start}, {}, 9, {pass}, 1);",
                start + 500
            ));
            sql.push_str(&format!(
                "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES ({start}, {end}, 0, 7, {pass}, 2);"
            ));
        }
        sql.push_str("INSERT INTO NVTX_EVENTS VALUES (500000, 600000, 59, 'warmup', 1, 9), (510000, 590000, 59, 'measure', 1, 9);
            INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES (520000, 520500, 9, 99, 1);
            INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (521000, 581000, 0, 7, 99, 2);");
        let cells = timeline::reduce(&trace(&sql), "ch01").unwrap();
        assert_eq!(cells[1].id, "timeline-pass");
        let pass = cells[1].timeline().unwrap();
        let names: Vec<_> = pass.lanes[0].spans.iter().map(|span| span.name.as_str()).collect();
        assert_eq!(names, ["setup", "h2d", "measure", "d2h", "check"]);
        let kernel = &pass.lanes[2].spans[0];
        assert_eq!((kernel.start_us, kernel.end_us), (21.0, 51.0));
        // The kernel's end is not cut off at the end of the last range.
        assert_eq!(row(&cells[0], "ranges", "warmup / measure")[4], Entry::Number(1.0));
    }

    /// The chapter's fixture, with pages that moved within `measure` and `d2h`, and what was faulted for.
    fn managed() -> String {
        format!(
            "{NSYS}
            INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId, correlationId, bytes, copyKind)
                VALUES (837870000, 837880000, 0, 0, 0, 65536, 11), (837890000, 837990000, 0, 0, 0, 2000000, 11),
                (838400000, 838500000, 0, 0, NULL, 1000000, 12);
            CREATE TABLE CUDA_UM_GPU_PAGE_FAULT_EVENTS (start INTEGER, end INTEGER, globalPid INTEGER, deviceId INTEGER,
                address INTEGER, numberOfPageFaults INTEGER, faultAccessType INTEGER);
            INSERT INTO CUDA_UM_GPU_PAGE_FAULT_EVENTS VALUES (837869000, 837870000, 1, 0, 4096, 12, 2),
                (837889000, 837890000, 1, 0, 8192, 30, 2), (1, 2, 1, 0, 0, 5, 2);
            CREATE TABLE CUDA_UM_CPU_PAGE_FAULT_EVENTS (start INTEGER, globalPid INTEGER, address INTEGER,
                originalFaultPc INTEGER, CpuInstruction INTEGER);
            INSERT INTO CUDA_UM_CPU_PAGE_FAULT_EVENTS VALUES (838399000, 1, 4096, 0, 0), (838450000, 1, 8192, 0, 0);"
        )
    }

    #[test]
    fn pages_that_moved_are_counted_where_they_moved() {
        let trace = trace(&managed());
        assert_eq!(trace.faults_recorded, [true, true]);
        assert_eq!(trace.faults.len(), 5);
        let cells = timeline::reduce(&trace, "ch01").unwrap();
        let (cell, moved) = (&cells[0], cells.last().unwrap());
        assert_eq!(moved.id, "migrations");
        let numbers = |name: &str| row(moved, "migrations", name)[1..].to_vec();
        // The fault was while a kernel was being launched, in the innermost range.
        assert_eq!(
            numbers("measure / kernel.vector_add"),
            [42.0, 0.0, 2.06554, 2.0, 0.0, 0.0].map(Entry::Number)
        );
        assert_eq!(numbers("d2h"), [0.0, 2.0, 0.0, 0.0, 1.0, 1.0].map(Entry::Number));
        assert_eq!(numbers("outside of all ranges")[0], Entry::Number(5.0));
        // Moved pages are no copies, and have a lane of their own.
        assert_eq!(row(cell, "copies", "Host-to-Device")[1], Entry::Number(2.0));
        let lanes = &cell.timeline().unwrap().lanes;
        assert_eq!(
            lanes.last().map(|lane| (lane.name.as_str(), lane.spans.len())),
            Some(("managed memory", 3))
        );
        moved.check().unwrap();
    }

    #[test]
    fn faults_that_were_not_recorded_are_not_zero() {
        let without = managed().replace("CUDA_UM_GPU_PAGE_FAULT_EVENTS", "SOMETHING_ELSE");
        let trace = trace(&without);
        assert_eq!(trace.faults_recorded, [true, false]);
        let cells = timeline::reduce(&trace, "ch01").unwrap();
        let moved = cells.last().unwrap();
        let faults = row(moved, "migrations", "d2h");
        let reason = "the session recorded no page fault of this side";
        assert_eq!(faults[1..3], [Entry::Text(format!("not collected ({reason})")), Entry::Number(2.0)]);
        let label = Abscissa::Label("d2h".into());
        assert_eq!(moved.series("gpu_faults").unwrap().at(&label).unwrap().value, None);
        // A chapter without managed memory has no such cell.
        assert_eq!(timeline::reduce(&super::trace(NSYS), "ch01").unwrap().len(), 1);
    }

    #[test]
    fn perfetto_gets_every_event_and_no_id_of_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(trace_events::FILE);
        trace_events::write(&trace(NSYS), &file).unwrap();
        let json: serde_json::Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
        let events = json["traceEvents"].as_array().unwrap();
        let complete: Vec<_> = events.iter().filter(|event| event["ph"] == "X").collect();
        assert_eq!(complete.len(), 5 + 16 + 6);
        let kernel = complete.iter().find(|event| event["cat"] == "kernel").unwrap();
        assert_eq!(kernel["args"]["grid"], serde_json::json!([65536, 1, 1]));
        assert_eq!(kernel["dur"], 61.152);
        assert!(!json.to_string().contains("16777217"));
    }

    #[test]
    fn newer_tables_are_found_and_older_columns_are_not_needed() {
        // A suffix, as newer exports have it, and a table without the columns that came later.
        let newer = NSYS
            .replace("TABLE NVTX_EVENTS", "TABLE NVTX_EVENTS_V3")
            .replace("INTO NVTX_EVENTS", "INTO NVTX_EVENTS_V3");
        assert_eq!(trace(&newer).ranges, trace(NSYS).ranges);
        let older = "CREATE TABLE EXPORT_META_DATA (name TEXT, value TEXT);
            INSERT INTO EXPORT_META_DATA VALUES ('EXPORT_SCHEMA_VERSION', '3.0.0');
            CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER, text TEXT, domainId INTEGER, globalTid INTEGER);
            INSERT INTO NVTX_EVENTS VALUES (1, NULL, 75, 'ch01', 1, 9), (2, 8, 59, 'measure', 1, 9), (3, NULL, 59, 'never closed', 1, 9), (4, 6, 60, 'apart', 1, 9);";
        let trace = trace(older);
        assert_eq!(trace.ranges.len(), 2);
        assert!(!trace.ranges[1].nests);
        assert_eq!(trace.absent, ["CUDA API calls", "kernels", "copies", "fills"]);
        let cells = timeline::reduce(&trace, "ch01").unwrap();
        let busy = cells[0].value("gpu_busy_us").unwrap();
        assert_eq!(
            (busy.point.value, busy.note.as_str()),
            (None, "not collected (the session recorded no CUDA call)")
        );
        assert!(text(&cells[0]).contains("Not recorded in this session: CUDA API calls, kernels"));
    }

    #[test]
    fn what_is_no_export_is_refused() {
        refused("", "holds no table");
        refused("CREATE TABLE t (a)", "names no EXPORT_SCHEMA_VERSION");
        refused(&NSYS.replace("'3.20.3'", "'4.0.0'"), "its schema is 4.0.0; 3.x is understood");
    }

    #[test]
    fn a_trace_without_the_chapters_ranges_says_how_to_get_them() {
        let error = timeline::reduce(&trace(NSYS), "ch02").unwrap_err().to_string();
        assert!(error.contains("no NVTX range of domain `ch02` (5 ranges of others)"), "{error}");
        assert!(error.contains("-F nvtx"), "{error}");
    }

    #[test]
    fn a_crowded_lane_is_drawn_with_neighbours_together() {
        let mut sql = NSYS.to_owned();
        // 20,000 calls of 100 ns, 200 ns apart, in the measured range.
        for index in 0..20_000 {
            let start = 837_900_000 + index * 200;
            sql.push_str(&format!(
                "INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES ({start}, {}, 0, 16777217, {}, 47, 0, NULL);\n",
                start + 100,
                1000 + index
            ));
        }
        let cells = timeline::reduce(&trace(&sql), "ch01").unwrap();
        let lane = &cells[0].timeline().unwrap().lanes[2];
        assert!(lane.spans.len() <= 400, "{}", lane.spans.len());
        assert!(lane.spans.iter().any(|span| span.name.contains(" × cudaLaunchKernel")), "{:?}", lane.spans);
        assert!(text(&cells[0]).contains("Lane CUDA API: 20016 spans, drawn as"), "{}", text(&cells[0]));
        let launches = row(&cells[0], "calls", "cudaLaunchKernel");
        assert_eq!(launches[1], Entry::Number(20_003.0));
    }
}

mod nsight_compute {
    use super::*;

    fn cells() -> Vec<Cell> {
        let timed = raw::parse(KERNELS).unwrap();
        let counted = raw::parse(OPERATIONS).unwrap();
        kernels::reduce(&timed, Ok(&counted), &Ceilings::default())
    }

    #[test]
    fn the_raw_page_is_read_whole() {
        let report = raw::parse(KERNELS).unwrap();
        assert_eq!(report.launches.len(), 3);
        let launch = &report.launches[0];
        assert_eq!(
            (launch.kernel.as_str(), launch.grid, launch.block),
            ("vector_add", [65536, 1, 1], [256, 1, 1])
        );
        assert_eq!(launch.ranges, ["ch01:measure", "ch01:kernel.vector_add"]);
        assert_eq!(launch.device.as_deref(), Some("NVIDIA H200"));
        assert!(report.messages[0].starts_with("warning: Note: Running with unmodified GPU clocks"));
    }

    #[test]
    fn a_kernel_has_one_row_whatever_its_launches() {
        let cells = cells();
        let row = row(&cells[0], "kernels", "vector_add");
        assert_eq!(row[3], Entry::Number(3.0));
        // 4 sectors a request: 32 neighbouring floats. 16 registers limit nothing.
        assert_eq!(row[13..15], [Entry::Number(4.0), Entry::Number(4.0)]);
        assert_eq!(
            (&row[10], &row[11], &row[12]),
            (&Entry::Number(100.0), &Entry::Text("none".into()), &Entry::Number(16.0))
        );
        let label = Abscissa::Label("vector_add".into());
        let dram = cells[0].series("dram_gbps").unwrap().at(&label).unwrap().value.unwrap();
        // ncu's own figure for the median launch is 3262.7 GB/s.
        assert!((3216.0..3266.0).contains(&dram), "{dram}");
        for cell in &cells {
            cell.check().unwrap();
        }
    }

    #[test]
    fn what_was_not_collected_has_a_reason_and_no_number() {
        let cells = cells();
        let conflicts = row(&cells[0], "kernels", "vector_add").pop().unwrap();
        let reason = "the report has no l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
        assert_eq!(conflicts, Entry::Text(format!("not collected ({reason})")));
        assert!(cells[0].series("bank_conflicts").unwrap().points.is_empty());
        let timed = raw::parse(KERNELS).unwrap();
        let without = kernels::reduce(&timed, Err("the second session failed"), &Ceilings::default());
        let row = row(&without[3], "operations", "vector_add");
        assert_eq!(row[1], Entry::Text("not collected (the second session failed)".into()));
        assert_eq!(without[3].value("fp32_peak").unwrap().note, "not collected (the second session failed)");
        without[3].check().unwrap();
    }

    #[test]
    fn a_metric_that_the_gpu_lacks_is_not_zero() {
        let timed = raw::parse(&KERNELS.replace("\"34.27\"", "\"n/a\"")).unwrap();
        let cells = kernels::reduce(&timed, Err("-"), &Ceilings::default());
        let row = row(&cells[0], "kernels", "vector_add");
        assert_eq!(row[8], Entry::Text("not collected (lts__t_sector_hit_rate.pct: n/a)".into()));
    }

    #[test]
    fn a_unit_that_is_not_the_expected_one_is_not_guessed_at() {
        let timed = raw::parse(&KERNELS.replace("\"ns\"", "\"us\"")).unwrap();
        let cells = kernels::reduce(&timed, Err("-"), &Ceilings::default());
        let row = row(&cells[0], "kernels", "vector_add");
        assert_eq!(
            row[4],
            Entry::Text(
                "not collected (gpu__time_duration.sum came in `us`, expected `ns` or `nsecond`)".into()
            )
        );
    }

    #[test]
    fn stalls_are_told_for_every_reason() {
        let cells = cells();
        let long = row(&cells[2], "stalls", "long scoreboard");
        assert_eq!(long[1], Entry::Number(53.45));
        let figure = cells[2].figure("").unwrap();
        assert_eq!(figure.series[0], "long_scoreboard");
        assert!(!figure.series.contains(&"selected".to_owned()));
    }

    #[test]
    fn the_roof_is_the_hardwares_and_the_chapters() {
        let cells = cells();
        // The fixture's session counted fp32 only: a sum with an unknown part is unknown.
        let row_of = row(&cells[3], "operations", "vector_add");
        assert_eq!(row_of[1], Entry::Number(16_777_216.0));
        assert!(matches!(&row_of[5], Entry::Text(text) if text.starts_with("not collected")));
        let peak = number(&cells[3], "fp32_peak");
        assert!((65_900.0..67_500.0).contains(&peak), "{peak}");
        let dram = number(&cells[3], "dram_peak");
        assert!((4800.0..4815.0).contains(&dram), "{dram}");

        let timed = raw::parse(KERNELS).unwrap();
        let counted = raw::parse(&with_other_precisions()).unwrap();
        let ceilings = Ceilings { dram_gbps: Some((4300.0, "copy.dram_ceiling".into())), fp32_gflops: None };
        let cells = kernels::reduce(&timed, Ok(&counted), &ceilings);
        let point = cells[3].series("kernel_1").unwrap();
        let Abscissa::Number(intensity) = point.x[0] else { panic!("{point:?}") };
        // One addition for twelve bytes, of which some are still in L2.
        assert!((0.08..0.09).contains(&intensity), "{intensity}");
        assert_eq!(cells[3].series("measured_roof").unwrap().points.len(), 3);
        assert_eq!(number(&cells[3], "dram_ceiling"), 4300.0);
        cells[3].check().unwrap();
    }

    /// The fixture with columns of fp64 and fp16, which the session that it comes from did not ask for, all zero.
    fn with_other_precisions() -> String {
        let names: Vec<String> = profile::ncu::metrics::counted();
        let more: Vec<&String> = names.iter().filter(|name| !OPERATIONS.contains(name.as_str())).collect();
        let mut row = 0;
        let lines = OPERATIONS.lines().map(|line| {
            if !line.starts_with('"') {
                return line.to_owned();
            }
            row += 1;
            let fields = more.iter().map(|name| match row {
                1 => format!(",\"{name}\""),
                2 => ",\"inst\"".into(),
                _ => ",\"0\"".into(),
            });
            format!("{line}{}", fields.collect::<String>())
        });
        lines.collect::<Vec<_>>().join("\n")
    }

    #[test]
    fn block_sizes_tell_launches_of_one_kernel_apart() {
        let two = KERNELS.replacen("(256, 1, 1)", "(32, 8, 1)", 1);
        let timed = raw::parse(&two).unwrap();
        let cells = kernels::reduce(&timed, Err("-"), &Ceilings::default());
        row(&cells[0], "kernels", "vector_add (32 × 8)");
        row(&cells[0], "kernels", "vector_add (256)");
    }

    #[test]
    fn of_several_sizes_the_largest_stands() {
        // The first launch has another grid, of half the blocks.
        let two = KERNELS.replacen("(65536, 1, 1)", "(32768, 1, 1)", 1);
        let timed = raw::parse(&two).unwrap();
        let cells = kernels::reduce(&timed, Err("-"), &Ceilings::default());
        let row = row(&cells[0], "kernels", "vector_add");
        assert_eq!(row[1..4], [Entry::Text("65536".into()), Entry::Text("256".into()), Entry::Number(2.0)]);
        assert!(
            text(&cells[0]).contains("1 launch of a smaller size is left out: vector_add."),
            "{}",
            text(&cells[0])
        );
    }

    #[test]
    fn numbers_of_another_locale_are_refused_as_a_whole() {
        let european = KERNELS.replace("\"134235648\"", "\"134.235.648\"");
        let error = format!("{:#}", raw::parse(&european).unwrap_err());
        assert!(error.contains("dram__bytes_read.sum of launch 0 (`vector_add`)"), "{error}");
        assert!(error.contains("LC_ALL=C"), "{error}");
        let grouped = KERNELS.replace("\"134235648\"", "\"134,235,648\"");
        assert_eq!(raw::parse(&grouped).unwrap(), raw::parse(KERNELS).unwrap());
    }

    #[test]
    fn what_is_no_raw_page_is_refused() {
        assert_eq!(raw::parse("").unwrap().launches, []);
        let details = "\"ID\",\"Kernel Name\",\"Metric Name\"\n\"0\",\"k\",\"m\"\n";
        assert!(format!("{:#}", raw::parse(details).unwrap_err()).contains("--page raw"));
        let without_units: Vec<&str> = KERNELS.lines().filter(|line| !line.starts_with("\"\",")).collect();
        let error = format!("{:#}", raw::parse(&without_units.join("\n")).unwrap_err());
        assert!(error.contains("no row of units"), "{error}");
    }
}
