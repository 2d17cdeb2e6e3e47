//! Runs a reader's kernel and writes down what it did to memory.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use serde::Deserialize;

use crate::exercise::Launch;

/// The sizes of the check, the most telling first.
pub const SIZES: [usize; 6] = [1000, 65_537, 33, 31, 1, 0];

/// Elements in front of and behind the result that no thread may touch. A multiple of every alignment.
pub(crate) const MARGIN: usize = 4096;

/// What lies where nothing has been written: a NaN that no sum gives.
pub(crate) const UNTOUCHED: u32 = 0x7fc0_a11e;

/// A reader's kernel, compiled.
#[derive(Clone, Copy, Debug)]
pub struct Attempt<'a> {
    /// The kernel's name.
    pub kernel: &'a str,
    /// Its PTX.
    pub ptx: &'a str,
    /// How to launch it.
    pub launch: &'a Launch,
}

/// What a launch did.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// Elements.
    pub n: usize,
    /// Blocks in the grid.
    pub blocks: u32,
    /// The result, `None` where nothing was written.
    pub result: Vec<Option<f32>>,
    /// The first element in front of the result that was written, counted backwards from it.
    pub written_before: Option<usize>,
    /// The first element behind the result that was written, counted from the result's start.
    pub written_behind: Option<usize>,
    /// What the emulated GPU counted; nothing on another GPU.
    pub counts: Option<Counts>,
}

/// Memory accesses that the emulated GPU counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Counts {
    /// Load instructions of warps that reached global memory.
    #[serde(rename = "global_load_requests")]
    pub load_requests: u64,
    /// 32-byte sectors that they touched.
    #[serde(rename = "global_load_sectors")]
    pub load_sectors: u64,
    /// Store instructions of warps that reached global memory.
    #[serde(rename = "global_store_requests")]
    pub store_requests: u64,
    /// 32-byte sectors that they touched.
    #[serde(rename = "global_store_sectors")]
    pub store_sectors: u64,
    /// Branches at which the threads of a warp went different ways.
    #[serde(rename = "branches_divergent")]
    pub divergent_branches: u64,
}

/// Why there is nothing to observe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    /// There is no kernel of the exercise's name with its parameters.
    Signature,
    /// The driver refused to load the kernel, to allocate, to copy.
    Setup(DriverError),
    /// The device stopped the kernel, at this size.
    Kernel(DriverError, usize),
}

/// Input `a` at an index. The inputs are such that a sum tells which elements were added.
pub(crate) fn a(i: usize) -> f32 {
    i as f32
}

/// Input `b` at an index.
pub(crate) fn b(i: usize) -> f32 {
    0.5 * i as f32
}

impl Launch {
    /// Blocks for a number of elements. One at least, so that a launch for no elements shows a missing guard.
    pub fn grid(&self, n: usize) -> u32 {
        let elements = self.threads_in_block as usize * self.elements_per_thread as usize;
        self.blocks.unwrap_or(n.div_ceil(elements).max(1) as u32)
    }
}

/// Runs a kernel once for a number of elements, between margins that show what it writes where it should not.
///
/// `counters` is the file to which the emulated GPU appends its counts.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn observe(
    context: &Arc<CudaContext>,
    attempt: &Attempt<'_>,
    n: usize,
    counters: Option<&Path>,
) -> Result<Observation, Stop> {
    let memory = run(context, attempt, n, MARGIN)?;
    let touched = |value: &f32| value.to_bits() != UNTOUCHED;
    Ok(Observation {
        n,
        blocks: attempt.launch.grid(n),
        result: memory[MARGIN..][..n].iter().map(|value| touched(value).then_some(*value)).collect(),
        written_before: memory[..MARGIN].iter().rev().position(touched).map(|before| before + 1),
        written_behind: memory[MARGIN + n..].iter().position(touched).map(|behind| n + behind),
        counts: counters.and_then(last_counts),
    })
}

/// Runs a kernel once in memory of the exact size, where the device itself stops what reaches out of it, reads too.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn confine(context: &Arc<CudaContext>, attempt: &Attempt<'_>, n: usize) -> Result<(), Stop> {
    // There is no memory of no bytes.
    if n > 0 {
        run(context, attempt, n, 0)?;
    }
    Ok(())
}

/// One launch. The memory of `c` afterwards, with its margins.
fn run(context: &Arc<CudaContext>, attempt: &Attempt<'_>, n: usize, margin: usize) -> Result<Vec<f32>, Stop> {
    if !has_signature(attempt.ptx, attempt.kernel) {
        return Err(Stop::Signature);
    }
    let module = context.load_module(Ptx::from_src(attempt.ptx)).map_err(Stop::Setup)?;
    let kernel = module.load_function(attempt.kernel).map_err(Stop::Setup)?;
    let launch = attempt.launch;
    let stream = context.default_stream();
    let untouched = f32::from_bits(UNTOUCHED);
    let framed = |value: fn(usize) -> f32| -> Vec<f32> {
        let frame = || std::iter::repeat_n(untouched, margin);
        frame().chain((0..n).map(value)).chain(frame()).collect()
    };
    let inner = margin..margin + n;
    let device_a = stream.clone_htod(&framed(a)).map_err(Stop::Setup)?;
    let device_b = stream.clone_htod(&framed(b)).map_err(Stop::Setup)?;
    let mut device_c = stream.clone_htod(&vec![untouched; n + 2 * margin]).map_err(Stop::Setup)?;
    let config = LaunchConfig {
        grid_dim: (launch.grid(n), 1, 1),
        block_dim: (launch.threads_in_block, 1, 1),
        shared_mem_bytes: 0,
    };
    {
        let (a, b, mut c) =
            (device_a.slice(inner.clone()), device_b.slice(inner.clone()), device_c.slice_mut(inner));
        let mut builder = stream.launch_builder(&kernel);
        builder.arg(&a).arg(&b).arg(&mut c).arg(&n);
        // SAFETY: the parameters are those of every exercise's signature, which was read from the PTX above. What the kernel does with the memory is the reader's work: this program is there to find out, holds nothing
        // in that context that it minds losing, and ends afterwards.
        unsafe { builder.launch(config) }.map_err(|error| Stop::Kernel(error, n))?;
    }
    stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
    stream.clone_dtoh(&device_c).map_err(|error| Stop::Kernel(error, n))
}

/// Whether PTX holds a kernel of this name with the parameters of every exercise: three pointers and a `size_t`.
fn has_signature(ptx: &str, kernel: &str) -> bool {
    has_parameters(ptx, kernel, 4)
}

/// Whether PTX holds a kernel of this name with so many parameters of 8 bytes, pointers or `size_t`, and no others.
pub(crate) fn has_parameters(ptx: &str, kernel: &str, parameters: usize) -> bool {
    let list = ptx.split_once(&format!(".entry {kernel}(")).and_then(|(_, rest)| rest.split_once(')'));
    list.is_some_and(|(list, _)| {
        list.matches(".param ").count() == parameters && list.matches(".param .u64 ").count() == parameters
    })
}

/// The counts of the last launch in the emulated GPU's file.
fn last_counts(file: &Path) -> Option<Counts> {
    serde_json::from_str(fs::read_to_string(file).ok()?.lines().last()?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_signature_is_read_from_the_ptx() {
        let ptx = |parameters: &str| format!(".visible .entry k({parameters})\n{{\nret;\n}}\n");
        let right = "\t.param .u64 k_param_0,\n\t.param .u64 k_param_1,\n\t.param .u64 k_param_2,\n\t.param .u64 k_param_3\n";
        assert!(has_signature(&ptx(right), "k"));
        assert!(!has_signature(&ptx(right), "other"));
        assert!(!has_signature(&ptx(&right.replace(".u64 k_param_3", ".u32 k_param_3")), "k"));
        assert!(!has_signature(&ptx("\t.param .u64 k_param_0\n"), "k"));
    }

    #[test]
    fn a_grid_has_a_thread_for_every_element_or_as_many_as_it_has() {
        let launch =
            |blocks, elements_per_thread| Launch { threads_in_block: 256, blocks, elements_per_thread };
        assert_eq!([0, 1, 256, 257].map(|n| launch(None, 1).grid(n)), [1, 1, 1, 2]);
        assert_eq!([1024, 1025].map(|n| launch(None, 4).grid(n)), [1, 2]);
        assert_eq!(launch(Some(4), 1).grid(65_537), 4);
    }
}
