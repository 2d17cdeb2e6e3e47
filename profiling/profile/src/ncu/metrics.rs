//! Nsight Compute's names, each used in one place of [`kernels`](super::kernels).
//!
//! `launch__…` metrics belong to sections and cannot be asked for by name. `…_sass_…` metrics are counted by patching the
//! kernel's instructions, so they are collected in a session of their own, in which nothing is timed.

/// The sections of the first session.
pub const SECTIONS: [&str; 5] =
    ["SpeedOfLight", "Occupancy", "LaunchStats", "MemoryWorkloadAnalysis", "WarpStateStats"];

/// Time on the GPU.
pub const TIME: &str = "gpu__time_duration.sum";
/// Bytes read from DRAM.
pub const DRAM_READ: &str = "dram__bytes_read.sum";
/// Bytes written to DRAM.
pub const DRAM_WRITE: &str = "dram__bytes_write.sum";
/// Share of the DRAM's peak.
pub const DRAM_PERCENT: &str = "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed";
/// Bytes a cycle at the DRAM's peak.
pub const DRAM_PEAK: &str = "dram__bytes.sum.peak_sustained";
/// The DRAM's clock while the kernel ran.
pub const DRAM_CLOCK: &str = "dram__cycles_elapsed.avg.per_second";
/// Share of the multiprocessors' peak.
pub const SM_PERCENT: &str = "sm__throughput.avg.pct_of_peak_sustained_elapsed";
/// Share of the memory system's peak, whichever of its parts is the busiest.
pub const MEMORY_PERCENT: &str = "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed";
/// Share of the L1 cache's peak.
pub const L1_PERCENT: &str = "l1tex__throughput.avg.pct_of_peak_sustained_active";
/// Share of the L2 cache's peak.
pub const L2_PERCENT: &str = "lts__throughput.avg.pct_of_peak_sustained_elapsed";
/// Sectors that were found in L1.
pub const L1_HITS: &str = "l1tex__t_sector_hit_rate.pct";
/// Sectors that were found in L2.
pub const L2_HITS: &str = "lts__t_sector_hit_rate.pct";
/// The multiprocessors' clock while the kernel ran.
pub const SM_CLOCK: &str = "sm__cycles_elapsed.avg.per_second";
/// Warps that were resident, on average, of those that fit.
pub const ACHIEVED_OCCUPANCY: &str = "sm__warps_active.avg.pct_of_peak_sustained_active";
/// Warps that the launch could have had resident, of those that fit.
pub const THEORETICAL_OCCUPANCY: &str = "sm__maximum_warps_per_active_cycle_pct";
/// Registers of a thread.
pub const REGISTERS: &str = "launch__registers_per_thread";
/// Blocks that a multiprocessor can hold, by what limits them.
pub const OCCUPANCY_LIMITS: [(&str, &str); 5] = [
    ("registers", "launch__occupancy_limit_registers"),
    ("shared memory", "launch__occupancy_limit_shared_mem"),
    ("blocks", "launch__occupancy_limit_blocks"),
    ("warps", "launch__occupancy_limit_warps"),
    ("barriers", "launch__occupancy_limit_barriers"),
];
/// Requests of a warp to load from global memory, and the sectors that they needed.
pub const LOADS: (&str, &str) =
    ("l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum");
/// Requests of a warp to store to global memory, and the sectors that they needed.
pub const STORES: (&str, &str) =
    ("l1tex__t_requests_pipe_lsu_mem_global_op_st.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum");
/// Accesses to shared memory that had to wait because their bank was busy with the same request.
pub const BANK_CONFLICTS: &str = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum";
/// Instructions that warps executed.
pub const WARP_INSTRUCTIONS: &str = "smsp__inst_executed.sum";

/// Why a warp that was resident did not issue. `selected` is no stall: it is the warp that did issue.
pub const STALLS: [&str; 19] = [
    "long_scoreboard",
    "short_scoreboard",
    "wait",
    "barrier",
    "math_pipe_throttle",
    "lg_throttle",
    "mio_throttle",
    "tex_throttle",
    "drain",
    "branch_resolving",
    "dispatch_stall",
    "no_instruction",
    "imc_miss",
    "membar",
    "gmma",
    "sleeping",
    "misc",
    "not_selected",
    "selected",
];

/// Fused multiply-adds a cycle at the multiprocessors' peak, in single precision.
pub const FFMA_PEAK: &str = "sm__sass_thread_inst_executed_op_ffma_pred_on.sum.peak_sustained";
/// Floating-point operations by precision: additions, multiplications, fused multiply-adds.
pub const FLOATING: [(&str, [&str; 3]); 3] = [
    (
        "fp32",
        [
            "smsp__sass_thread_inst_executed_op_fadd_pred_on.sum",
            "smsp__sass_thread_inst_executed_op_fmul_pred_on.sum",
            "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum",
        ],
    ),
    (
        "fp64",
        [
            "smsp__sass_thread_inst_executed_op_dadd_pred_on.sum",
            "smsp__sass_thread_inst_executed_op_dmul_pred_on.sum",
            "smsp__sass_thread_inst_executed_op_dfma_pred_on.sum",
        ],
    ),
    (
        "fp16",
        [
            "smsp__sass_thread_inst_executed_op_hadd_pred_on.sum",
            "smsp__sass_thread_inst_executed_op_hmul_pred_on.sum",
            "smsp__sass_thread_inst_executed_op_hfma_pred_on.sum",
        ],
    ),
];

/// The metric of a stall's reason: warps that waited for it, on average, while one instruction was issued.
pub fn stall(reason: &str) -> String {
    format!("smsp__average_warps_issue_stalled_{reason}_per_issue_active.ratio")
}

/// What the first session asks for beyond its sections, which hold the rest.
pub fn timed() -> Vec<String> {
    let names = [
        TIME,
        DRAM_READ,
        DRAM_WRITE,
        DRAM_PEAK,
        DRAM_CLOCK,
        SM_CLOCK,
        LOADS.0,
        LOADS.1,
        STORES.0,
        STORES.1,
        BANK_CONFLICTS,
        WARP_INSTRUCTIONS,
    ];
    names.map(str::to_owned).into()
}

/// What the second session asks for.
pub fn counted() -> Vec<String> {
    let operations = FLOATING.iter().flat_map(|(_, names)| names);
    std::iter::once(&FFMA_PEAK).chain(operations).map(|name| (*name).to_owned()).collect()
}
