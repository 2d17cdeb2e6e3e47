//! Exercises on managed memory: runs a reader's kernel and says in pages what it did wrong.
//!
//! Every one has the signature `(const float* a, float* c, size_t n)` and takes `n` floats out of `a`, `step` apart, to
//! the front of `c`. Both are managed memory, so that the emulated GPU counts the pages. An element of `a` tells by its value
//! which one it is.

use std::fs;
use std::path::Path;
use std::sync::Arc;

use cudarc::driver::{CudaContext, DriverError, LaunchConfig, PushKernelArg, UnifiedSlice};
use cudarc::nvrtc::Ptx;
use serde::Deserialize;

use crate::judge::number;
use crate::run::{Stop, UNTOUCHED};

/// What an exercise on managed memory expects: `c[i] = a[i * step]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Managed {
    /// Floats of `a` from one that is wanted to the next.
    pub step: usize,
}

impl Managed {
    /// The sizes of the check, the most telling first. Floats that lie side by side must be many to fill pages.
    pub fn sizes(&self) -> [usize; 5] {
        [if self.step == 1 { 32 * PAGE } else { 640 }, 1000, 33, 1, 0]
    }
}

/// Threads in a block.
const BLOCK: usize = 256;

/// Floats in a page.
const PAGE: usize = 4096 / size_of::<f32>();

/// What a launch did.
#[derive(Clone, Debug, PartialEq)]
pub struct Glance {
    /// Floats that were to be taken.
    pub n: usize,
    /// The memory of `c`, `None` where nothing was written: as many floats as `a` has.
    pub result: Vec<Option<f32>>,
    /// What the emulated GPU counted; nothing on another GPU.
    pub pages: Option<Pages>,
}

/// What the emulated GPU counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
pub struct Pages {
    /// Pages that were touched, of both.
    #[serde(rename = "managed_pages")]
    pub touched: u64,
    /// Pages that were written.
    #[serde(rename = "managed_pages_written")]
    pub written: u64,
    /// Loads of warps.
    #[serde(rename = "global_load_requests")]
    pub load_requests: u64,
    /// 32-byte sectors that they touched.
    #[serde(rename = "global_load_sectors")]
    pub load_sectors: u64,
}

/// An element of `a`. Floats hold every whole number of this size.
fn value(i: usize) -> f32 {
    1.0 + i as f32
}

/// Runs a kernel once.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn glance(
    context: &Arc<CudaContext>,
    (kernel, ptx): (&str, &str),
    managed: &Managed,
    n: usize,
    counters: Option<&Path>,
) -> Result<Glance, Stop> {
    if !has_signature(ptx, kernel) {
        return Err(Stop::Signature);
    }
    let module = context.load_module(Ptx::from_src(ptx)).map_err(Stop::Setup)?;
    let function = module.load_function(kernel).map_err(Stop::Setup)?;
    let stream = context.default_stream();
    // There is no memory of no bytes.
    let floats = (n * managed.step).max(1);
    let mut a = filled(context, floats, value).map_err(Stop::Setup)?;
    let mut c = filled(context, floats, |_| f32::from_bits(UNTOUCHED)).map_err(Stop::Setup)?;
    let config = LaunchConfig {
        grid_dim: (n.div_ceil(BLOCK).max(1) as u32, 1, 1),
        block_dim: (BLOCK as u32, 1, 1),
        shared_mem_bytes: 0,
    };
    {
        let mut builder = stream.launch_builder(&function);
        builder.arg(&mut a).arg(&mut c).arg(&n);
        // SAFETY: the parameters are those of the signature, which was read from the PTX above. What the kernel does with
        // the memory is the reader's work: this program is there to find out, and ends afterwards.
        unsafe { builder.launch(config) }.map_err(|error| Stop::Kernel(error, n))?;
    }
    stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
    let result = c.as_slice().map_err(|error| Stop::Kernel(error, n))?;
    let touched = |value: &f32| value.to_bits() != UNTOUCHED;
    Ok(Glance {
        n,
        result: result.iter().map(|value| touched(value).then_some(*value)).collect(),
        pages: counters
            .and_then(|file| serde_json::from_str(fs::read_to_string(file).ok()?.lines().last()?).ok()),
    })
}

fn filled(
    context: &Arc<CudaContext>,
    floats: usize,
    value: impl Fn(usize) -> f32,
) -> Result<UnifiedSlice<f32>, DriverError> {
    // SAFETY: every pattern of bits is a float.
    let mut memory = unsafe { context.alloc_unified::<f32>(floats, true)? };
    memory.as_mut_slice()?.iter_mut().enumerate().for_each(|(i, float)| *float = value(i));
    Ok(memory)
}

/// Whether PTX holds a kernel of this name with two pointers and a `size_t`.
fn has_signature(ptx: &str, kernel: &str) -> bool {
    let list = ptx.split_once(&format!(".entry {kernel}(")).and_then(|(_, rest)| rest.split_once(')'));
    list.is_some_and(|(list, _)| {
        list.matches(".param ").count() == 3 && list.matches(".param .u64 ").count() == 3
    })
}

/// What is wrong with a run, in one or two sentences; `None` if nothing is.
pub fn appraise(managed: &Managed, seen: &Glance) -> Option<String> {
    misplaced(managed, seen).or_else(|| pages(managed, seen.n, seen.pages?))
}

fn misplaced(managed: &Managed, seen: &Glance) -> Option<String> {
    let (n, step) = (seen.n, managed.step);
    let (front, behind) = seen.result.split_at(n.min(seen.result.len()));
    let spread =
        n > 1 && step > 1 && seen.result.get(step).is_some_and(|value| *value == Some(self::value(step)));
    if spread {
        let written = (0..n)
            .map(|i| i * step / PAGE)
            .fold((0, usize::MAX), |(count, last), page| (count + usize::from(page != last), page));
        return Some(format!(
            "With n = {n}, c[{step}] was written: the results lie as far apart as the floats of a did, in {} pages of c \
             where {} would do. Put them side by side: c has n floats at its front for them.",
            number(written.0),
            number(n.div_ceil(PAGE)),
        ));
    }
    if let Some(past) = behind.iter().position(Option::is_some) {
        return Some(format!(
            "With n = {n}, c[{}] was written, past the last of {n} results.",
            number(n + past)
        ));
    }
    let wrong = (0..n).find(|&i| front[i] != Some(value(i * step)))?;
    Some(match front[wrong] {
        None => format!("With n = {n}, c[{wrong}] was never written."),
        Some(found) => format!(
            "With n = {n}, c[{wrong}] is a[{}] and should be a[{}].",
            number((found - 1.0).max(0.0) as usize),
            number(wrong * step)
        ),
    })
}

/// More pages than what is wanted lies in, or requests that jump about in them.
fn pages(managed: &Managed, n: usize, seen: Pages) -> Option<String> {
    let of_c = n.div_ceil(PAGE) as u64;
    let of_a = match managed.step {
        step if step >= PAGE => n as u64,
        step => (n * step).div_ceil(PAGE) as u64,
    };
    let touched = seen.touched.saturating_sub(seen.written);
    if seen.written > of_c {
        return Some(format!(
            "The results are right, but {} pages were written where {of_c} would do, and each of them moves.",
            number(seen.written as usize)
        ));
    }
    if touched > of_a {
        return Some(format!(
            "The results are right, but {} pages of a were touched for {} floats, which lie in {}. A page that is only \
             looked at moves as well: work out where the floats lie instead of looking for them.",
            number(touched as usize),
            number(n),
            number(of_a as usize)
        ));
    }
    let per_request = seen.load_sectors as f64 / seen.load_requests.max(1) as f64;
    (managed.step == 1 && per_request > 5.0).then(|| {
        format!(
            "The results are right, but each load of a warp touched {per_request:.0} sectors where 4 would do: its 32 threads \
             jump between pages, and so 32 of them fault at once. Let neighbouring threads take neighbouring floats."
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(step: usize, n: usize) -> Glance {
        let mut result = vec![None; (n * step).max(1)];
        (0..n).for_each(|i| result[i] = Some(value(i * step)));
        Glance { n, result, pages: None }
    }

    #[track_caller]
    fn says(step: usize, n: usize, change: impl FnOnce(&mut Glance), words: &str) {
        let mut seen = right(step, n);
        change(&mut seen);
        let verdict = appraise(&Managed { step }, &seen).unwrap_or_default();
        assert!(verdict.contains(words), "{verdict:?} lacks {words:?}");
    }

    #[test]
    fn nothing_is_wrong_with_a_right_run() {
        for step in [1, 1024, 8192] {
            let managed = Managed { step };
            for n in managed.sizes() {
                assert_eq!(appraise(&managed, &right(step, n)), None);
            }
        }
    }

    #[test]
    fn results_in_wrong_places_are_told() {
        let spread = |seen: &mut Glance| {
            seen.result.fill(None);
            (0..640).for_each(|i| seen.result[i * 1024] = Some(value(i * 1024)));
        };
        says(1024, 640, spread, "in 640 pages of c where 1 would do");
        says(1024, 33, |seen| seen.result[40] = Some(1.0), "c[40] was written, past the last of 33");
        says(8192, 33, |seen| seen.result[5] = None, "c[5] was never written");
        says(8192, 33, |seen| seen.result[5] = Some(value(5)), "c[5] is a[5] and should be a[40,960]");
    }

    #[test]
    fn pages_are_counted() {
        let pages = |touched, written, load_requests, load_sectors| {
            move |seen: &mut Glance| {
                seen.pages = Some(Pages { touched, written, load_requests, load_sectors });
            }
        };
        says(
            8192,
            640,
            pages(5121, 1, 160, 5120),
            "5120 pages of a were touched for 640 floats, which lie in 640",
        );
        says(1024, 640, pages(1280, 640, 20, 640), "640 pages were written where 1 would do");
        says(1, 640, pages(2, 1, 20, 640), "touched 32 sectors where 4 would do");
        let mut seen = right(8192, 640);
        pages(641, 1, 20, 640)(&mut seen);
        assert_eq!(appraise(&Managed { step: 8192 }, &seen), None);
    }

    #[test]
    fn the_signature_is_read_from_the_ptx() {
        let ptx = |types: &[&str]| {
            let list: Vec<String> = types.iter().map(|ty| format!("\t.param {ty} p")).collect();
            format!(".visible .entry k({})\n{{\nret;\n}}\n", list.join(",\n"))
        };
        assert!(has_signature(&ptx(&[".u64", ".u64", ".u64"]), "k"));
        assert!(!has_signature(&ptx(&[".u64", ".u64", ".u32"]), "k"));
        assert!(!has_signature(&ptx(&[".u64", ".u64"]), "k"));
    }
}
