//! What the emulated GPU counts, against what Nsight Compute counted on an H200 for the same PTX.
//!
//! `kernels` are whole kernels, `rules` single instructions with many patterns of addresses, from which the rules were
//! found. `tests/ptx/count/record.sh` measures both on a GPU, where this program only launches them; here the launches run
//! without a driver and their counts are compared with what was recorded. `table` compares the book's page with them;
//! `UPDATE=1 cargo test -p emulator --test counters` writes it.

mod common;
#[path = "launches/driver.rs"]
mod driver;
mod launches;
mod machine;

use std::{collections::BTreeMap, env, fmt::Write as _, fs, path::PathBuf};

use common::Context;
use emulator::{counters::Counters, grid::Stop, module::Level, settings::Checks};
use launches::{Param, Request, launches};
use machine::{Gpu, Shape};

const CUDA: &str = include_str!("ptx/count/kernels.cu");
const PTX: &str = include_str!("ptx/count/kernels.ptx");

/// What was measured of one launch at one level of optimisation, by the metric's name.
type Measured = BTreeMap<String, u64>;

#[test]
fn kernels() {
    let requests = launches(CUDA);
    if env::var_os("CUDA_DRIVER").is_some() {
        let _context = Context::new();
        let module = driver::load(PTX).unwrap();
        requests.iter().for_each(|request| drop(driver::launch(module, request).unwrap()));
        return;
    }
    let measured = measured("kernels.csv");
    let mut wrong = String::new();
    // Checks change no counts, and have nothing to say of most of these kernels.
    for checks in [Checks::default(), Checks::ALL] {
        let gpu = Gpu::load_with(PTX, Level::host(), checks).unwrap_or_else(|error| panic!("{error}"));
        for (number, request) in requests.iter().enumerate() {
            if checks == Checks::ALL && request.checks.is_some() {
                continue;
            }
            let name = format!("{number}, {}", request.kernel);
            let counters = match count(&gpu, request) {
                Ok(counters) => counters,
                Err(report) => {
                    writeln!(wrong, "{name}:\n{report}").unwrap();
                    continue;
                }
            };
            compare(&name, &counters, &measured[&(number, 0)], Which::All, &mut wrong);
            compare(&format!("{name} -O3"), &counters, &measured[&(number, 3)], Which::Global, &mut wrong);
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

#[test]
fn rules() {
    let text = rules_ptx();
    let requests: Vec<(usize, Request)> =
        OPERATIONS.iter().flat_map(|operation| cases(operation).into_iter().enumerate()).collect();
    if env::var_os("CUDA_DRIVER").is_some() {
        let _context = Context::new();
        let module = driver::load(&text).unwrap();
        requests.iter().for_each(|(_, request)| drop(driver::launch(module, request).unwrap()));
        return;
    }
    let measured = measured("rules.csv");
    let gpu = Gpu::new(&text);
    let mut wrong = String::new();
    for (number, (case, request)) in requests.iter().enumerate() {
        let case = *case;
        let counters = count(&gpu, request).unwrap_or_else(|report| panic!("{}: {report}", request.kernel));
        let name = format!("{number}, {} case {case}", request.kernel);
        let mut differences = String::new();
        compare(&name, &counters, &measured[&(number, 0)], Which::All, &mut differences);
        if is_known(&request.kernel, case) == differences.is_empty() {
            writeln!(
                wrong,
                "{name} is{} as measured\n{differences}",
                if differences.is_empty() { "" } else { " not" }
            )
            .unwrap();
        }
    }
    assert!(wrong.is_empty(), "\n{wrong}");
}

/// Why a kernel's shared or local memory is used differently when ptxas optimises.
const OPTIMISED: [(&str, &str); 5] = [
    ("scan_blelloch", "the loops are unrolled, and values stay in registers between their steps"),
    ("histogram_shared", "threads that add 1 to one word are counted first, and added at once"),
    ("histogram_few_bins", "the same, with more threads a word"),
    ("sgemm_tiled", "four loads of 4 bytes are one of 16"),
    ("local_array", "the array's places are known, so it lies in registers"),
];

#[test]
fn table() {
    let (gpu, measured) = (Gpu::new(PTX), measured("kernels.csv"));
    let mut rows = String::from(
        "| kernel | global | shared | local | ncu `-O0` | ncu `-O3` |\n\
         |---|--:|--:|--:|---|---|\n",
    );
    let mut reasons: Vec<&str> = Vec::new();
    let mut notes = String::from("\nWhere `-O3` needs less:\n\n");
    for (number, request) in launches(CUDA).iter().enumerate() {
        let c = count(&gpu, request).unwrap_or_else(|stop| panic!("{}: {stop}", request.kernel));
        let ours = [
            c.global_load.sectors,
            c.global_store.sectors,
            c.global_atomic.sectors,
            c.shared_load.wavefronts,
            c.shared_store.wavefronts,
            c.shared_atomic.wavefronts,
            c.local_load.sectors,
            c.local_store.sectors,
        ];
        let [unoptimised, optimised] = [0, 3].map(|level| traffic(&measured[&(number, level)]));
        let groups = |counts: &[u64; 8]| [list(&counts[..3]), list(&counts[3..6]), list(&counts[6..])];
        let verdict = |theirs: &[u64; 8]| match groups(&ours) == groups(theirs) {
            true => "equal".to_owned(),
            false => format!("shared {}, local {}", groups(theirs)[1], groups(theirs)[2]),
        };
        let mut last = verdict(&optimised);
        if last != "equal" {
            let (kernel, reason) = OPTIMISED
                .iter()
                .find(|(kernel, _)| *kernel == request.kernel)
                .unwrap_or_else(|| panic!("{}: why does -O3 differ?", request.kernel));
            reasons.push(kernel);
            writeln!(notes, "- `{kernel}`: {reason}.").unwrap();
            last = last.replace(", local –", "").replace("shared –, ", "");
        }
        let parameter = match request.params.last() {
            Some(Param::Number(bytes)) if is_repeated(&request.kernel) => {
                format!(", {}", u32::from_le_bytes(bytes[..4].try_into().unwrap()))
            }
            _ => String::new(),
        };
        let [global, shared, local] = groups(&ours);
        writeln!(
            rows,
            "| `{}`{parameter} | {global} | {shared} | {local} | {} | {last} |",
            request.kernel,
            verdict(&unoptimised)
        )
        .unwrap();
    }
    reasons.dedup();
    rows.push_str(&notes);
    assert_eq!(reasons, OPTIMISED.map(|(kernel, _)| kernel), "every reason explains a difference");

    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../book/src/emulated-gpu-counts.md");
    let page = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let known = |operation| (0..CASES).filter(|&case| is_known(operation, case)).count();
    let partly = cases(&OPERATIONS[0]).iter().filter(|request| !is_whole(request)).count();
    let kernels: std::collections::BTreeSet<String> =
        launches(CUDA).into_iter().map(|request| request.kernel).collect();
    for sentence in [
        format!("## {} kernels, counted twice", kernels.len()),
        format!("with {CASES} patterns of addresses each"),
        format!("than our rule says in {} of {partly} patterns", known("shared_load_v4_u32")),
        format!("differs in {} of {CASES}.", known("shared_atomic_add_u64")),
    ] {
        assert!(page.contains(&sentence), "the page should say: {sentence}");
    }
    let (start, stop) = ("<!-- written by tests/counters.rs: begin -->\n", "<!-- end -->");
    let from = page.find(start).expect("the page has a place for the table") + start.len();
    let to = from + page[from..].find(stop).expect("the place ends");
    if page[from..to] != rows {
        assert!(env::var_os("UPDATE").is_some(), "the page's table is out of date: UPDATE=1 writes it");
        fs::write(&path, format!("{}{rows}{}", &page[..from], &page[to..])).expect("the page can be written");
    }
}

/// The same counts as in the table, measured.
fn traffic(measured: &Measured) -> [u64; 8] {
    let sum = |names: &[&str]| names.iter().map(|name| measured[*name]).sum();
    [
        sum(&["l1tex_t_sectors_pipe_lsu_mem_global_op_ld"]),
        sum(&["l1tex_t_sectors_pipe_lsu_mem_global_op_st"]),
        sum(&["l1tex_t_sectors_pipe_lsu_mem_global_op_atom", "l1tex_t_sectors_pipe_lsu_mem_global_op_red"]),
        sum(&["l1tex_data_pipe_lsu_wavefronts_mem_shared_op_ld"]),
        sum(&["l1tex_data_pipe_lsu_wavefronts_mem_shared_op_st"]),
        sum(&["l1tex_data_pipe_lsu_wavefronts_mem_shared_op_atom"]),
        sum(&["l1tex_t_sectors_pipe_lsu_mem_local_op_ld"]),
        sum(&["l1tex_t_sectors_pipe_lsu_mem_local_op_st"]),
    ]
}

/// Counts side by side, or nothing when all are zero.
fn list(counts: &[u64]) -> String {
    if counts.iter().all(|&count| count == 0) {
        return "–".into();
    }
    counts.iter().map(u64::to_string).collect::<Vec<_>>().join("\u{a0}·\u{a0}")
}

/// A kernel is launched with several values of its last parameter.
fn is_repeated(kernel: &str) -> bool {
    launches(CUDA).iter().filter(|request| request.kernel == kernel).count() > 1
}

/// Where our rules are known to differ from the measurement.
fn is_known(operation: &str, case: usize) -> bool {
    match operation {
        // Some lanes of a warp are off.
        "shared_load_v4_u32" | "shared_load_v2_u64" => matches!(case, 31 | 38 | 43 | 45),
        // Which of several lanes gets through first is not known.
        "shared_atomic_add_u64" => matches!(case, 23 | 24 | 34),
        // The hardware's loop ends where the maximum stays as it is, so its counts depend on what memory holds.
        "shared_atomic_max_u64" => true,
        _ => false,
    }
}

/// The launch's counts without a driver.
fn count(gpu: &Gpu, request: &Request) -> Result<Counters, String> {
    let mut buffers = Vec::new();
    let mut values: Vec<Vec<u8>> = Vec::new();
    for param in &request.params {
        values.push(match param {
            Param::In { bytes } | Param::Out { bytes, .. } => {
                let address = gpu.upload(bytes);
                buffers.push(address);
                address.to_le_bytes().to_vec()
            }
            Param::Number(bytes) => bytes.clone(),
            Param::New { .. } | Param::Freed { .. } => panic!("only buffers and numbers are counted"),
        });
    }
    let params: Vec<&[u8]> = values.iter().map(Vec::as_slice).collect();
    let counters = gpu.launch(&request.kernel, request.shape, &params).map_err(|stop| match stop {
        Stop::Fault(fault) => fault.to_string(),
        Stop::Unsupported(what) => what,
        Stop::Halted => "halted".into(),
    });
    buffers.into_iter().for_each(|address| gpu.memory.free(address).unwrap());
    counters
}

/// Which counts are compared. Those of global memory do not depend on how the PTX was compiled.
#[derive(Clone, Copy, PartialEq)]
enum Which {
    All,
    Global,
}

/// Notes every count that differs from what was measured.
fn compare(name: &str, counters: &Counters, measured: &Measured, which: Which, wrong: &mut String) {
    let metric = |name: String| *measured.get(&name).unwrap_or_else(|| panic!("{name} was not recorded"));
    let instructions = |op: &str| metric(format!("inst_executed_op_{op}"));
    let sectors = |space: &str, op: &str| metric(format!("l1tex_t_sectors_pipe_lsu_mem_{space}_op_{op}"));
    let wavefronts = |op: &str| metric(format!("l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{op}"));
    let c = counters;
    for (what, ours, theirs) in [
        ("global load requests", c.global_load.requests, instructions("global_ld")),
        ("global load sectors", c.global_load.sectors, sectors("global", "ld")),
        ("global store requests", c.global_store.requests, instructions("global_st")),
        ("global store sectors", c.global_store.sectors, sectors("global", "st")),
        // What the hardware calls a reduction is an atomic whose old value nobody wants.
        (
            "global atomic requests",
            c.global_atomic.requests,
            instructions("global_atom") + instructions("global_red"),
        ),
        (
            "global atomic sectors",
            c.global_atomic.sectors,
            sectors("global", "atom") + sectors("global", "red"),
        ),
        ("local load requests", c.local_load.requests, instructions("local_ld")),
        ("local load sectors", c.local_load.sectors, sectors("local", "ld")),
        ("local store requests", c.local_store.requests, instructions("local_st")),
        ("local store sectors", c.local_store.sectors, sectors("local", "st")),
        // `ldmatrix` has a metric of its own for passes, and none for instructions: there is one in each launch that has any.
        (
            "shared load instructions",
            c.shared_load.instructions,
            instructions("shared_ld") + u64::from(wavefronts("ldsm") > 0),
        ),
        ("shared load wavefronts", c.shared_load.wavefronts, wavefronts("ld") + wavefronts("ldsm")),
        (
            "shared store instructions",
            c.shared_store.instructions,
            instructions("shared_st") + instructions("shared_stsm"),
        ),
        ("shared store wavefronts", c.shared_store.wavefronts, wavefronts("st") + wavefronts("stsm")),
        ("shared atomic instructions", c.shared_atomic.instructions, instructions("shared_atom")),
        ("shared atomic wavefronts", c.shared_atomic.wavefronts, wavefronts("atom")),
    ] {
        if ours != theirs && (which == Which::All || what.starts_with("global")) {
            writeln!(wrong, "{name}: {what} {ours}, measured {theirs}").unwrap();
        }
    }
}

/// What was recorded, by launch and level.
fn measured(file: &str) -> BTreeMap<(usize, u32), Measured> {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/ptx/count").join(file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines
        .map(|line| {
            let fields: Vec<&str> = line.split(',').collect();
            let number = |index: usize| fields[index].parse().unwrap_or_else(|_| panic!("{line}"));
            let metrics = (3..names.len()).map(|index| (names[index].to_owned(), number(index))).collect();
            ((number(0) as usize, number(2) as u32), metrics)
        })
        .collect()
}

// Single instructions.

/// An instruction whose costs are measured: its name, its text with `ADDRESS` in it, and how many bytes each lane reaches.
struct Operation {
    name: &'static str,
    text: &'static str,
    bytes: u32,
    space: Space,
}

#[derive(Clone, Copy, PartialEq)]
enum Space {
    Shared,
    Global,
    Local,
}

macro_rules! operations {
    ($($space:ident $bytes:literal $name:ident $text:literal;)*) => {
        &[$(Operation { name: stringify!($name), text: $text, bytes: $bytes, space: Space::$space }),*]
    };
}

const OPERATIONS: &[Operation] = operations! {
    Shared 1 shared_load_u8 "ld.shared.u8 %r10, ADDRESS;";
    Shared 2 shared_load_u16 "ld.shared.u16 %r10, ADDRESS;";
    Shared 4 shared_load_u32 "ld.shared.u32 %r10, ADDRESS;";
    Shared 8 shared_load_u64 "ld.shared.u64 %rd10, ADDRESS;";
    Shared 8 shared_load_v2_u32 "ld.shared.v2.u32 {%r10, %r11}, ADDRESS;";
    Shared 16 shared_load_v4_u32 "ld.shared.v4.u32 {%r10, %r11, %r12, %r13}, ADDRESS;";
    Shared 16 shared_load_v2_u64 "ld.shared.v2.u64 {%rd10, %rd11}, ADDRESS;";
    Shared 1 shared_store_u8 "st.shared.u8 ADDRESS, %r9;";
    Shared 2 shared_store_u16 "st.shared.u16 ADDRESS, %r9;";
    Shared 4 shared_store_u32 "st.shared.u32 ADDRESS, %r9;";
    Shared 8 shared_store_u64 "st.shared.u64 ADDRESS, %rd9;";
    Shared 8 shared_store_v2_u32 "st.shared.v2.u32 ADDRESS, {%r9, %r9};";
    Shared 16 shared_store_v4_u32 "st.shared.v4.u32 ADDRESS, {%r9, %r9, %r9, %r9};";
    Shared 4 shared_atomic_add_u32 "atom.shared.add.u32 %r10, ADDRESS, %r9;";
    Shared 4 shared_reduce_add_u32 "red.shared.add.u32 ADDRESS, %r9;";
    Shared 4 shared_atomic_max_u32 "atom.shared.max.u32 %r10, ADDRESS, %r9;";
    Shared 4 shared_atomic_exch_b32 "atom.shared.exch.b32 %r10, ADDRESS, %r9;";
    Shared 4 shared_atomic_cas_b32 "atom.shared.cas.b32 %r10, ADDRESS, %r9, %r8;";
    Shared 4 shared_atomic_and_b32 "atom.shared.and.b32 %r10, ADDRESS, %r9;";
    Shared 4 shared_atomic_inc_u32 "atom.shared.inc.u32 %r10, ADDRESS, %r9;";
    Shared 4 shared_atomic_add_f32 "atom.shared.add.f32 %f10, ADDRESS, %f9;";
    Shared 8 shared_atomic_add_u64 "atom.shared.add.u64 %rd10, ADDRESS, %rd9;";
    Shared 8 shared_atomic_max_u64 "atom.shared.max.u64 %rd10, ADDRESS, %rd9;";
    Shared 8 shared_atomic_exch_b64 "atom.shared.exch.b64 %rd10, ADDRESS, %rd9;";
    Shared 8 shared_atomic_cas_b64 "atom.shared.cas.b64 %rd10, ADDRESS, %rd9, %rd8;";
    Shared 16 shared_ldmatrix_x1 "ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%r10}, ADDRESS;";
    Shared 16 shared_ldmatrix_x2 "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, ADDRESS;";
    Shared 16 shared_ldmatrix_x4 "ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%r10, %r11, %r12, %r13}, ADDRESS;";
    Shared 16 shared_ldmatrix_x4_trans "ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%r10, %r11, %r12, %r13}, ADDRESS;";
    Shared 16 shared_stmatrix_x1 "stmatrix.sync.aligned.m8n8.x1.shared.b16 ADDRESS, {%r9};";
    Shared 16 shared_stmatrix_x4 "stmatrix.sync.aligned.m8n8.x4.shared.b16 ADDRESS, {%r9, %r9, %r9, %r9};";
    Global 1 global_load_u8 "ld.global.u8 %r10, ADDRESS;";
    Global 4 global_load_u32 "ld.global.u32 %r10, ADDRESS;";
    Global 8 global_load_u64 "ld.global.u64 %rd10, ADDRESS;";
    Global 16 global_load_v4_u32 "ld.global.v4.u32 {%r10, %r11, %r12, %r13}, ADDRESS;";
    Global 1 global_store_u8 "st.global.u8 ADDRESS, %r9;";
    Global 4 global_store_u32 "st.global.u32 ADDRESS, %r9;";
    Global 16 global_store_v4_u32 "st.global.v4.u32 ADDRESS, {%r9, %r9, %r9, %r9};";
    Global 4 global_atomic_add_u32 "atom.global.add.u32 %r10, ADDRESS, %r9;";
    Global 4 global_atomic_add_f32 "atom.global.add.f32 %f10, ADDRESS, %f9;";
    Global 4 global_atomic_cas_b32 "atom.global.cas.b32 %r10, ADDRESS, %r9, %r8;";
    Global 4 global_atomic_exch_b32 "atom.global.exch.b32 %r10, ADDRESS, %r9;";
    Global 8 global_atomic_add_u64 "atom.global.add.u64 %rd10, ADDRESS, %rd9;";
    Global 4 global_reduce_add_u32 "red.global.add.u32 ADDRESS, %r9;";
    Global 4 global_reduce_add_f32 "red.global.add.f32 ADDRESS, %f9;";
    Global 4 global_reduce_max_u32 "red.global.max.u32 ADDRESS, %r9;";
    Global 8 global_reduce_add_u64 "red.global.add.u64 ADDRESS, %rd9;";
    Local 1 local_load_u8 "ld.local.u8 %r10, ADDRESS;";
    Local 4 local_load_u32 "ld.local.u32 %r10, ADDRESS;";
    Local 8 local_load_u64 "ld.local.u64 %rd10, ADDRESS;";
    Local 16 local_load_v4_u32 "ld.local.v4.u32 {%r10, %r11, %r12, %r13}, ADDRESS;";
    Local 1 local_store_u8 "st.local.u8 ADDRESS, %r9;";
    Local 4 local_store_u32 "st.local.u32 ADDRESS, %r9;";
    Local 16 local_store_v4_u32 "st.local.v4.u32 ADDRESS, {%r9, %r9, %r9, %r9};";
};

/// Bytes of the memory that the lanes' offsets reach into.
const SPAN: u32 = 4096;

/// A kernel for each operation: lane `l`, if bit `l` of the mask is set, reaches `offsets[l]` bytes into the memory.
fn rules_ptx() -> String {
    let mut text = String::from(
        ".version 8.0\n.target sm_90\n.address_size 64\n.extern .shared .align 128 .b8 shared_memory[];\n",
    );
    for operation in OPERATIONS {
        let address = match operation.space {
            Space::Shared => "mov.u32 %r4, shared_memory; add.u32 %r5, %r4, %r3;",
            Space::Local => "mov.u64 %rd3, own; add.u64 %rd5, %rd3, %rd4;",
            Space::Global => "ld.param.u64 %rd3, [memory]; add.u64 %rd5, %rd3, %rd4;",
        };
        let place = if operation.space == Space::Shared { "[%r5]" } else { "[%rd5]" };
        write!(
            text,
            "
.visible .entry {}(.param .align 8 .b8 offsets[128], .param .u32 mask, .param .u64 memory) {{
  .reg .b32 %r<20>; .reg .b64 %rd<20>; .reg .f32 %f<20>; .reg .pred %p<2>;
  {}
  mov.u32 %r1, %laneid;
  ld.param.u32 %r2, [mask];
  shr.u32 %r2, %r2, %r1; and.b32 %r2, %r2, 1; setp.eq.u32 %p1, %r2, 0;
  mov.b64 %rd1, offsets; mul.wide.u32 %rd2, %r1, 4; add.u64 %rd2, %rd1, %rd2;
  ld.param.u32 %r3, [%rd2]; cvt.u64.u32 %rd4, %r3;
  mov.u32 %r9, 1; mov.u32 %r8, 0; mov.u64 %rd9, 1; mov.u64 %rd8, 0; mov.f32 %f9, 0f3F800000;
  {address}
  @%p1 bra DONE;
  {}
  {}
DONE:
  ret;
}}
",
            operation.name,
            if operation.space == Space::Local { ".local .align 128 .b8 own[4096];" } else { "" },
            operation.text.replace("ADDRESS", place),
            sink(operation),
        )
        .unwrap();
    }
    text
}

/// Uses what a load yields, or the compiler drops the load: a store to one address of another space.
fn sink(operation: &Operation) -> String {
    let Some((_, register)) = operation.text.strip_prefix("ld").and_then(|rest| rest.split_once([' ', '{']))
    else {
        return String::new();
    };
    let registers: Vec<&str> =
        register.split(['{', '}', ',', ' ']).filter(|word| word.starts_with('%')).collect();
    let store = if operation.space == Space::Shared {
        "ld.param.u64 %rd6, [memory]; st.global.u32 [%rd6], %r18;"
    } else {
        "mov.u32 %r17, shared_memory; st.shared.u32 [%r17], %r18;"
    };
    let mut text = String::from("mov.u32 %r18, 0; ");
    for register in registers {
        if register.starts_with("%rd") {
            write!(text, "cvt.u32.u64 %r19, {register}; xor.b32 %r18, %r18, %r19; ").unwrap();
        } else {
            write!(text, "xor.b32 %r18, %r18, {register}; ").unwrap();
        }
    }
    text + store
}

/// How many patterns of addresses each operation is measured with.
const CASES: usize = 48;

/// The patterns of one operation. They must not change without a new recording.
fn cases(operation: &Operation) -> Vec<Request> {
    let elements = SPAN / operation.bytes;
    let mut seed = 0x9e37_79b9u32;
    let mut random = move |below: u32| {
        seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (seed >> 8) % below
    };
    (0..CASES)
        .map(|case| {
            let mut mask = u32::MAX;
            let mut element = |lane: u32| -> u32 {
                match case {
                    0 => lane,
                    1 => 0,
                    2 => 2 * lane,
                    3 => 3 * lane,
                    4 => 4 * lane,
                    5 => 8 * lane,
                    6 => 16 * lane,
                    7 => 33 * lane,
                    8 => 31 - lane,
                    9 => lane ^ 1,
                    10 => lane ^ 2,
                    11 => lane ^ 16,
                    12 => lane / 2,
                    13 => lane / 4,
                    14 => lane % 4,
                    15 => lane % 16,
                    16 => lane / 16,
                    17 => lane % 2,
                    18 => lane + 1,
                    19 => lane + 3,
                    20 => lane % 8 * 8 + lane / 8,
                    21 => random(8),
                    22 => random(32),
                    23 | 24 => random(64),
                    25 | 26 => random(elements),
                    27..=30 => lane,
                    31 => random(64),
                    32 | 33 => random(elements),
                    34 => 32 * lane,
                    35 => 7,
                    // Neighbours that want the same, some of them off.
                    36..=38 | 41 | 42 => lane / 2,
                    43..=46 => lane % 2 + lane / 4 * 2,
                    47 => {
                        if lane < 16 {
                            lane / 2
                        } else {
                            lane
                        }
                    }
                    _ => 0,
                }
            };
            let offsets: Vec<u8> =
                (0..32).flat_map(|lane| (element(lane) % elements * operation.bytes).to_le_bytes()).collect();
            match case {
                27 => mask = 0x0000_ffff,
                28 => mask = 0xffff_0000,
                29 => mask = 0x5555_5555,
                30 => mask = 0x0000_0100,
                31..=33 => mask = random(1 << 24) | random(256) << 24 | 1 << (case % 32),
                36 => mask = 0xf03c_c30f,
                37 | 39 => mask = 0x5555_5555,
                38 | 40 => mask = 0xffff_fffe,
                41 => mask = 0x0000_ffff,
                42 => mask = 0x3333_3333,
                43 => mask = 0xcccc_cccc,
                45 => mask = 0xffff_fffb,
                46 => mask = 0x0f0f_0f0f,
                _ => {}
            }
            Request {
                kernel: operation.name.into(),
                shape: Shape { shared: SPAN, ..Shape::new([1; 3], [32, 1, 1]) },
                params: vec![
                    Param::Number(offsets),
                    Param::Number(mask.to_le_bytes().to_vec()),
                    Param::In { bytes: vec![0; SPAN as usize] },
                ],
                prints: None,
                counts: Vec::new(),
                checks: None,
                budget: None,
                fine: false,
            }
        })
        // All lanes of a warp move a matrix together.
        .filter(|request| !request.kernel.contains("matrix") || is_whole(request))
        .collect()
}

/// No lane of the warp is off.
fn is_whole(request: &Request) -> bool {
    matches!(&request.params[1], Param::Number(mask) if *mask == [255; 4])
}
