//! Exercises on a matrix: runs a reader's kernel and says in the words of the lesson what it did wrong.
//!
//! Every one has the signature `(const float* a, float* c, unsigned int rows, unsigned int columns)` and blocks of 32 × 8
//! threads, one for each 32 × 32 elements of `a`. An element of `a` tells by its value which one it is.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use serde::Deserialize;

use crate::judge::number;
use crate::run::{MARGIN, Stop, UNTOUCHED};

/// What an exercise on a matrix expects of `c`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Matrix {
    /// What `c` holds afterwards.
    pub result: Wanted,
}

/// What `c` holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wanted {
    /// The matrix with every element doubled.
    Doubled,
    /// The matrix with rows and columns exchanged.
    Transposed,
}

/// The rows and columns of the check, the most telling first.
pub const MATRICES: [(u32, u32); 5] = [(64, 96), (33, 65), (100, 31), (1, 40), (1, 1)];

/// What a launch did.
#[derive(Clone, Debug, PartialEq)]
pub struct Sight {
    /// Rows and columns of `a`.
    pub size: (u32, u32),
    /// The memory of `c`, `None` where nothing was written.
    pub result: Vec<Option<f32>>,
    /// Whether something in front of `c` was written.
    pub written_before: bool,
    /// The first element behind `c` that was written, counted from its start.
    pub written_behind: Option<usize>,
    /// What the emulated GPU counted; nothing on another GPU.
    pub traffic: Option<Traffic>,
}

/// Memory accesses that the emulated GPU counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct Traffic {
    /// Loads of warps from global memory.
    pub global_load_requests: u64,
    /// 32-byte sectors that they touched.
    pub global_load_sectors: u64,
    /// Stores of warps to global memory.
    pub global_store_requests: u64,
    /// 32-byte sectors that they touched.
    pub global_store_sectors: u64,
    /// Loads of warps from shared memory.
    pub shared_load_instructions: u64,
    /// Passes through the banks that they took.
    pub shared_load_wavefronts: u64,
    /// Stores of warps to shared memory.
    pub shared_store_instructions: u64,
    /// Passes through the banks that they took.
    pub shared_store_wavefronts: u64,
}

/// An element of `a`: its value tells where it is from. Floats hold every whole number of this size.
fn value(i: usize) -> f32 {
    1.0 + i as f32
}

/// Runs a kernel once on a matrix, between margins that show what it writes where it should not.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn look(
    context: &Arc<CudaContext>,
    (kernel, ptx): (&str, &str),
    size: (u32, u32),
    counters: Option<&Path>,
) -> Result<Sight, Stop> {
    let memory = run(context, (kernel, ptx), size, MARGIN)?;
    let n = size.0 as usize * size.1 as usize;
    let touched = |value: &f32| value.to_bits() != UNTOUCHED;
    Ok(Sight {
        size,
        result: memory[MARGIN..][..n].iter().map(|value| touched(value).then_some(*value)).collect(),
        written_before: memory[..MARGIN].iter().any(touched),
        written_behind: memory[MARGIN + n..].iter().position(touched).map(|behind| n + behind),
        traffic: counters
            .and_then(|file| serde_json::from_str(fs::read_to_string(file).ok()?.lines().last()?).ok()),
    })
}

/// Runs a kernel once in memory of the exact size, where the device itself stops what reaches out of it, reads too.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn fence(context: &Arc<CudaContext>, kernel: (&str, &str), size: (u32, u32)) -> Result<(), Stop> {
    run(context, kernel, size, 0).map(|_| ())
}

fn run(
    context: &Arc<CudaContext>,
    (kernel, ptx): (&str, &str),
    (rows, columns): (u32, u32),
    margin: usize,
) -> Result<Vec<f32>, Stop> {
    if !has_signature(ptx, kernel) {
        return Err(Stop::Signature);
    }
    let module = context.load_module(Ptx::from_src(ptx)).map_err(Stop::Setup)?;
    let function = module.load_function(kernel).map_err(Stop::Setup)?;
    let stream = context.default_stream();
    let n = rows as usize * columns as usize;
    let untouched = f32::from_bits(UNTOUCHED);
    let frame = || std::iter::repeat_n(untouched, margin);
    let a: Vec<f32> = frame().chain((0..n).map(value)).chain(frame()).collect();
    let device_a = stream.clone_htod(&a).map_err(Stop::Setup)?;
    let mut device_c = stream.clone_htod(&vec![untouched; n + 2 * margin]).map_err(Stop::Setup)?;
    let config = LaunchConfig {
        grid_dim: (columns.div_ceil(32), rows.div_ceil(32), 1),
        block_dim: (32, 8, 1),
        shared_mem_bytes: 0,
    };
    {
        let (a, mut c) = (device_a.slice(margin..margin + n), device_c.slice_mut(margin..margin + n));
        let mut builder = stream.launch_builder(&function);
        builder.arg(&a).arg(&mut c).arg(&rows).arg(&columns);
        // SAFETY: the parameters are those of the signature, which was read from the PTX above. What the kernel does with
        // the memory is the reader's work: this program is there to find out, and ends afterwards.
        unsafe { builder.launch(config) }.map_err(|error| Stop::Kernel(error, n))?;
    }
    stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
    stream.clone_dtoh(&device_c).map_err(|error| Stop::Kernel(error, n))
}

/// Whether PTX holds a kernel of this name with two pointers and two 32-bit numbers.
fn has_signature(ptx: &str, kernel: &str) -> bool {
    let list = ptx.split_once(&format!(".entry {kernel}(")).and_then(|(_, rest)| rest.split_once(')'));
    list.is_some_and(|(list, _)| {
        let types: Vec<&str> =
            list.split(".param ").skip(1).filter_map(|parameter| parameter.split(' ').next()).collect();
        types == [".u64", ".u64", ".u32", ".u32"]
    })
}

/// What is wrong with a run, in one or two sentences; `None` if nothing is.
pub fn verdict(matrix: &Matrix, seen: &Sight) -> Option<String> {
    outside(matrix, seen)
        .or_else(|| unwritten(matrix, seen))
        .or_else(|| misplaced(matrix, seen))
        .or_else(|| traffic(seen.traffic.filter(|_| is_whole(seen))?))
}

/// Whether every warp has its 32 elements: at the edges partial warps outweigh what counts show.
fn is_whole(seen: &Sight) -> bool {
    seen.size.0.is_multiple_of(32) && seen.size.1.is_multiple_of(32)
}

fn outside(matrix: &Matrix, seen: &Sight) -> Option<String> {
    let (rows, columns) = seen.size;
    if seen.written_before {
        return Some(
            "A thread wrote in front of c. Indices are unsigned: one below zero wraps around.".into(),
        );
    }
    let behind = seen.written_behind?;
    let bounds = match matrix.result {
        Wanted::Doubled => format!("c has {rows} rows and {columns} columns"),
        Wanted::Transposed => format!("c has {columns} rows and {rows} columns"),
    };
    Some(format!(
        "With {rows} × {columns} elements a thread wrote c[{}], past the end. A tile at the edge reaches further than the \
         matrix: {bounds}, and an element must be inside both.",
        number(behind)
    ))
}

fn unwritten(matrix: &Matrix, seen: &Sight) -> Option<String> {
    let first = seen.result.iter().position(Option::is_none)?;
    let missing = seen.result.iter().filter(|value| value.is_none()).count();
    let (rows, columns) = seen.size;
    let (i, j) = place(matrix, seen, first);
    let exchanged = match matrix.result {
        Wanted::Transposed => {
            format!(" c has {columns} rows and {rows} columns: the other way round than a.")
        }
        Wanted::Doubled => String::new(),
    };
    Some(format!(
        "With {rows} × {columns} elements c[{i}][{j}] was never written; {} of {} elements were not.{exchanged}",
        number(missing),
        number(seen.result.len())
    ))
}

fn misplaced(matrix: &Matrix, seen: &Sight) -> Option<String> {
    let (rows, columns) = seen.size;
    let n = seen.result.len();
    for (at, found) in seen.result.iter().enumerate() {
        let (i, j) = place(matrix, seen, at);
        let (wanted, expected, factor) = match matrix.result {
            Wanted::Doubled => ((i, j), 2.0 * value(at), 2.0),
            Wanted::Transposed => ((j, i), value(j * columns as usize + i), 1.0),
        };
        let Some(found) = found.filter(|found| *found != expected) else { continue };
        let from = found / factor - 1.0;
        let is_element = from.fract() == 0.0 && from >= 0.0 && (from as usize) < n;
        let holds = match is_element {
            true => {
                let from = from as usize;
                format!("holds a[{}][{}]", from / columns as usize, from % columns as usize)
            }
            false => format!("is {found}"),
        };
        return Some(format!(
            "With {rows} × {columns} elements c[{i}][{j}] {holds}, and should hold a[{}][{}].",
            wanted.0, wanted.1
        ));
    }
    None
}

/// Row and column of an element of `c`.
fn place(matrix: &Matrix, seen: &Sight, at: usize) -> (usize, usize) {
    let width = match matrix.result {
        Wanted::Doubled => seen.size.1,
        Wanted::Transposed => seen.size.0,
    };
    (at / width as usize, at % width as usize)
}

/// More sectors or more passes than a request needs.
fn traffic(counts: Traffic) -> Option<String> {
    let each = |count: u64, requests: u64| count as f64 / requests.max(1) as f64;
    for (what, sectors, requests) in [
        ("load", counts.global_load_sectors, counts.global_load_requests),
        ("store", counts.global_store_sectors, counts.global_store_requests),
    ] {
        let touched = each(sectors, requests);
        if touched > 4.0 {
            return Some(format!(
                "The result is right, but each {what} request touched {touched:.0} sectors where 4 would do: the 32 threads of \
                 a warp, which differ in threadIdx.x, {what} elements that are not neighbours. Let threadIdx.x run along a row."
            ));
        }
    }
    for (what, passes, requests) in [
        ("load from", counts.shared_load_wavefronts, counts.shared_load_instructions),
        ("store to", counts.shared_store_wavefronts, counts.shared_store_instructions),
    ] {
        let taken = each(passes, requests);
        if taken > 1.0 {
            return Some(format!(
                "The result is right, but each {what} the tile took {taken:.0} passes through the banks where 1 would do, {:.0} \
                 conflicts a request: up to {taken:.0} of the 32 lanes of a warp want different words of one bank. Word w of \
                 shared memory lies in bank w % 32.",
                taken - 1.0
            ));
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRANSPOSED: Matrix = Matrix { result: Wanted::Transposed };
    const DOUBLED: Matrix = Matrix { result: Wanted::Doubled };

    /// A faultless run.
    fn right(matrix: &Matrix, (rows, columns): (u32, u32)) -> Sight {
        let (r, c) = (rows as usize, columns as usize);
        let element = |at: usize| match matrix.result {
            Wanted::Doubled => 2.0 * value(at),
            Wanted::Transposed => value(at % r * c + at / r),
        };
        Sight {
            size: (rows, columns),
            result: (0..r * c).map(|at| Some(element(at))).collect(),
            written_before: false,
            written_behind: None,
            traffic: None,
        }
    }

    #[track_caller]
    fn says(matrix: &Matrix, size: (u32, u32), change: impl FnOnce(&mut Sight), words: &str) {
        let mut seen = right(matrix, size);
        change(&mut seen);
        let said = verdict(matrix, &seen).unwrap_or_default();
        assert!(said.contains(words), "{said:?} lacks {words:?}");
    }

    fn counted(traffic: Traffic) -> impl FnOnce(&mut Sight) {
        move |seen| seen.traffic = Some(traffic)
    }

    #[test]
    fn nothing_is_wrong_with_a_right_run() {
        let best = Traffic {
            global_load_requests: 192,
            global_load_sectors: 768,
            shared_load_instructions: 192,
            shared_load_wavefronts: 192,
            ..Traffic::default()
        };
        for size in MATRICES {
            for matrix in [TRANSPOSED, DOUBLED] {
                let mut seen = right(&matrix, size);
                assert_eq!(verdict(&matrix, &seen), None);
                seen.traffic = Some(best);
                assert_eq!(verdict(&matrix, &seen), None);
            }
        }
    }

    #[test]
    fn what_reaches_out_is_told_with_the_bounds_of_c() {
        let behind = |seen: &mut Sight| seen.written_behind = Some(2145);
        says(&TRANSPOSED, (33, 65), behind, "wrote c[2145], past the end");
        says(&TRANSPOSED, (33, 65), behind, "c has 65 rows and 33 columns");
        says(&DOUBLED, (33, 65), |seen| seen.written_before = true, "in front of c");
    }

    #[test]
    fn elements_are_told_by_row_and_column() {
        says(&TRANSPOSED, (33, 65), |seen| seen.result[34] = None, "c[1][1] was never written; 1 of 2145");
        says(
            &TRANSPOSED,
            (64, 96),
            |seen| seen.result[1] = Some(value(1)),
            "c[0][1] holds a[0][1], and should hold a[1][0]",
        );
        says(
            &DOUBLED,
            (64, 96),
            |seen| seen.result[97] = Some(0.5),
            "c[1][1] is 0.5, and should hold a[1][1]",
        );
    }

    #[test]
    fn counts_are_told_as_sectors_and_conflicts() {
        let traffic = Traffic { global_load_requests: 192, global_load_sectors: 6144, ..Traffic::default() };
        says(&DOUBLED, (64, 96), counted(traffic), "each load request touched 32 sectors where 4 would do");
        let traffic =
            Traffic { shared_load_instructions: 192, shared_load_wavefronts: 6144, ..Traffic::default() };
        says(
            &TRANSPOSED,
            (64, 96),
            counted(traffic),
            "32 passes through the banks where 1 would do, 31 conflicts a request",
        );
        // At the edge warps are not whole, and nothing is said.
        let mut seen = right(&TRANSPOSED, (33, 65));
        seen.traffic = Some(traffic);
        assert_eq!(verdict(&TRANSPOSED, &seen), None);
    }

    #[test]
    fn the_signature_is_read_from_the_ptx() {
        let ptx = |types: [&str; 4]| {
            let list: String = types.map(|of| format!("\t.param {of} k_param,\n")).concat();
            format!(".visible .entry k(\n{list})\n{{\nret;\n}}\n")
        };
        assert!(has_signature(&ptx([".u64", ".u64", ".u32", ".u32"]), "k"));
        assert!(!has_signature(&ptx([".u64", ".u64", ".u64", ".u32"]), "k"));
        assert!(!has_signature(&ptx([".u64", ".u64", ".u32", ".u32"]), "other"));
    }
}
