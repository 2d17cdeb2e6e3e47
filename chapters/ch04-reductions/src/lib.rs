//! Chapter 4, reductions: many threads agree on one answer, or on one for each row, bin or prefix.
//!
//! You need chapters 2 and 3: blocks, warps, divergence, shared memory and its banks. You get: the
//! sum, the histogram, the scan, softmax and layer norm, each from its first idea to the memory's
//! limit, and what the order of additions does to floats.

pub mod cpu;
pub mod device;
pub mod histogram;
pub mod peers;
pub mod rows;
pub mod scan;
pub mod sum;
mod whole;

use lab::CellSpec;

/// The chapter, top to bottom.
pub const CELLS: &[CellSpec] = &[
    lab::cell("sum-odd-sizes", "Hold every sum against the CPU at awkward sizes", sum::odd_sizes)
        .order_dependent(),
    lab::cell("sum-counts", "Count what each step of the sum asks for", sum::counts),
    lab::cell("sum-meeting", "Count the two steps whose blocks meet", sum::meeting)
        .order_dependent(),
    lab::cell("sum", "From one number for all to one pass", sum::rates).order_dependent(),
    lab::cell("float-order", "How far each order of additions is off", sum::float_order),
    lab::cell("same-twice", "Sum the same numbers twenty times", sum::same_twice).order_dependent(),
    lab::cell("histogram-counts", "Count the conflicts of each histogram", histogram::counts),
    lab::cell("histogram", "From global counters to runs", histogram::rates),
    lab::cell(
        "scan-odd-sizes",
        "Hold every scan against the CPU at awkward sizes",
        scan::odd_sizes,
    )
    .order_dependent(),
    lab::cell("scan-counts", "Count the bytes of each scan", scan::counts).order_dependent(),
    lab::cell("scan", "From one block to one pass", scan::rates).order_dependent(),
    lab::cell("rows-odd-sizes", "Hold every row against the CPU at awkward sizes", rows::odd_sizes),
    lab::cell("special", "What softmax makes of infinities", rows::special),
    lab::cell("rows-counts", "Count how often a row is read", rows::counts),
    lab::cell("softmax", "From three passes to registers: softmax", rows::softmax_rates),
    lab::cell("layer-norm", "From three passes to registers: layer norm", rows::layer_norm_rates),
    lab::cell("whole", "Every ladder, against its ceiling", whole::whole).order_dependent(),
    lab::cell("peers", "The same by CUB, Triton, PyTorch and others", peers::peers)
        .order_dependent(),
];
