//! Exercises on chunks: launches a reader's kernel once for each part of a vector, several times over as a graph would, and
//! says in the words of the lesson what it did wrong.
//!
//! Every one has the signature `(const float* a, float* c, size_t n, size_t first, size_t length)`. A launch is there for
//! the elements from `first` on, `length` of them, as far as there are so many, and doubles them: `c[i] = 2 a[i]`.

use std::sync::Arc;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;
use serde::Deserialize;

use crate::judge::number;
use crate::run::{MARGIN, Stop, UNTOUCHED};

/// How an exercise on chunks is launched.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Chunks {
    /// Parts of the vector.
    pub parts: usize,
    /// How often all of them are launched.
    pub rounds: usize,
}

/// The sizes of the check, the most telling first.
pub const LENGTHS: [usize; 6] = [1000, 1001, 4099, 33, 5, 1];

/// Threads in a block.
const BLOCK: usize = 256;

/// The memory of `c` before and after one launch, from its first element on and with what lies behind.
#[derive(Clone, Debug, PartialEq)]
pub struct Step {
    /// Elements of the vector.
    pub n: usize,
    /// Which time all parts are launched, from 0.
    pub round: usize,
    /// The part.
    pub part: usize,
    /// Its first element, and the one behind its last.
    pub own: (usize, usize),
    /// What was there before.
    pub before: Vec<f32>,
    /// What is there now.
    pub after: Vec<f32>,
}

/// An element of `a`: its value tells where it is from.
fn value(i: usize) -> f32 {
    1.0 + i as f32
}

/// Launches a kernel for every part, as often as the exercise says, in memory with something behind it.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn watch(
    context: &Arc<CudaContext>,
    kernel: (&str, &str),
    chunks: Chunks,
    n: usize,
) -> Result<Vec<Step>, Stop> {
    run(context, kernel, chunks, n, MARGIN)
}

/// The same in memory of the exact size, where the device itself stops what reaches out of it, reads too.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn enclose(
    context: &Arc<CudaContext>,
    kernel: (&str, &str),
    chunks: Chunks,
    n: usize,
) -> Result<(), Stop> {
    run(context, kernel, chunks, n, 0).map(|_| ())
}

fn run(
    context: &Arc<CudaContext>,
    (kernel, ptx): (&str, &str),
    chunks: Chunks,
    n: usize,
    margin: usize,
) -> Result<Vec<Step>, Stop> {
    if !has_signature(ptx, kernel) {
        return Err(Stop::Signature);
    }
    let module = context.load_module(Ptx::from_src(ptx)).map_err(Stop::Setup)?;
    let function = module.load_function(kernel).map_err(Stop::Setup)?;
    let stream = context.default_stream();
    let behind = || std::iter::repeat_n(f32::from_bits(UNTOUCHED), margin);
    let a: Vec<f32> = (0..n).map(value).chain(behind()).collect();
    let mut before: Vec<f32> = std::iter::repeat_n(0.0, n).chain(behind()).collect();
    let device_a = stream.clone_htod(&a).map_err(Stop::Setup)?;
    let mut device_c = stream.clone_htod(&before).map_err(Stop::Setup)?;
    let length = n.div_ceil(chunks.parts);
    let config = LaunchConfig {
        grid_dim: (length.div_ceil(BLOCK) as u32, 1, 1),
        block_dim: (BLOCK as u32, 1, 1),
        shared_mem_bytes: 0,
    };
    let mut steps = Vec::new();
    for (round, part) in (0..chunks.rounds).flat_map(|round| (0..chunks.parts).map(move |part| (round, part)))
    {
        let first = part * length;
        {
            let (a, mut c) = (device_a.slice(..n), device_c.slice_mut(..n));
            let mut builder = stream.launch_builder(&function);
            builder.arg(&a).arg(&mut c).arg(&n).arg(&first).arg(&length);
            // SAFETY: the parameters are those of the signature, which was read from the PTX above. What the kernel does
            // with the memory is the reader's work: this program is there to find out, and ends afterwards.
            unsafe { builder.launch(config) }.map_err(|error| Stop::Kernel(error, n))?;
        }
        stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
        let after = stream.clone_dtoh(&device_c).map_err(|error| Stop::Kernel(error, n))?;
        stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
        let own = (first.min(n), (first + length).min(n));
        steps.push(Step {
            n,
            round,
            part,
            own,
            before: std::mem::replace(&mut before, after.clone()),
            after,
        });
    }
    Ok(steps)
}

/// Whether PTX holds a kernel of this name with two pointers and three 64-bit numbers.
fn has_signature(ptx: &str, kernel: &str) -> bool {
    let list = ptx.split_once(&format!(".entry {kernel}(")).and_then(|(_, rest)| rest.split_once(')'));
    list.is_some_and(|(list, _)| {
        list.matches(".param ").count() == 5 && list.matches(".param .u64 ").count() == 5
    })
}

/// What is wrong with a launch, in one or two sentences; `None` if nothing is.
pub fn sentence(step: &Step) -> Option<String> {
    stray(step).or_else(|| wrong(step))
}

/// Something outside of the part was written.
fn stray(step: &Step) -> Option<String> {
    let (from, to) = step.own;
    let changed = |i: &usize| step.before[*i].to_bits() != step.after[*i].to_bits();
    let at = (0..step.after.len()).filter(|i| !(from..to).contains(i)).find(changed)?;
    let n = number(step.n);
    Some(if at >= step.n {
        format!(
            "With {n} elements, part {} wrote c[{}], past the end. The last part may be shorter than the others: an index has to \
             be below first + length, and below n as well.",
            step.part,
            number(at)
        )
    } else if at < from {
        format!(
            "With {n} elements, part {} begins at element {} and wrote c[{}], which belongs to a part before it. In another \
             stream that part may just be at work. An index counts from `first`.",
            step.part,
            number(from),
            number(at)
        )
    } else {
        format!(
            "With {n} elements, part {} ends before element {} and wrote c[{}], which belongs to the next part. In another \
             stream that part may not have arrived yet: a grid is a whole number of blocks, and a part is not.",
            step.part,
            number(to),
            number(at)
        )
    })
}

/// An element of the part is not what it should be.
fn wrong(step: &Step) -> Option<String> {
    let (from, to) = step.own;
    let i = (from..to).find(|i| step.after[*i] != 2.0 * value(*i))?;
    let (found, n) = (step.after[i], number(step.n));
    let other = found / 2.0 - 1.0;
    Some(if step.round > 0 && step.before[i] == 2.0 * value(i) {
        format!(
            "The first time all is right. Launched again, c[{}] is {found} and no longer {}: the kernel takes what it finds in c \
             for granted, and there it finds its own result. A graph is launched again and again on the same memory, so each \
             launch must come to the same from a alone.",
            number(i),
            step.before[i]
        )
    } else if found == 0.0 {
        format!("With {n} elements, part {} never wrote c[{}].", step.part, number(i))
    } else if other.fract() == 0.0 && other >= 0.0 && (other as usize) < step.n {
        format!(
            "With {n} elements, c[{}] is {found}, which is twice a[{}]: the index of the load is not that of the store.",
            number(i),
            number(other as usize)
        )
    } else {
        format!(
            "With {n} elements, c[{}] is {found}; twice a[{}] is {}.",
            number(i),
            number(i),
            2.0 * value(i)
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A faultless launch.
    fn right(round: usize, part: usize) -> Step {
        let n = 1000;
        let own = (250 * part, 250 * (part + 1));
        let done = |until: usize| -> Vec<f32> {
            let behind = std::iter::repeat_n(f32::from_bits(UNTOUCHED), 10);
            (0..n).map(|i| if i < until { 2.0 * value(i) } else { 0.0 }).chain(behind).collect()
        };
        let (before, after) = if round == 0 { (done(own.0), done(own.1)) } else { (done(n), done(n)) };
        Step { n, round, part, own, before, after }
    }

    #[track_caller]
    fn says(mut step: Step, change: impl FnOnce(&mut Vec<f32>), words: &str) {
        change(&mut step.after);
        let said = sentence(&step).unwrap_or_default();
        assert!(said.contains(words), "{said:?} lacks {words:?}");
    }

    #[test]
    fn nothing_is_wrong_with_a_right_launch() {
        for (round, part) in [(0, 0), (0, 3), (1, 0), (1, 3)] {
            assert_eq!(sentence(&right(round, part)), None);
        }
    }

    #[test]
    fn a_stray_write_says_whose_element_it_was() {
        says(right(0, 3), |c| c[1000] = 1.0, "part 3 wrote c[1000], past the end");
        says(
            right(0, 1),
            |c| c[0] = 7.0,
            "begins at element 250 and wrote c[0], which belongs to a part before it",
        );
        says(right(0, 1), |c| c[500] = 7.0, "ends before element 500 and wrote c[500]");
    }

    #[test]
    fn a_wrong_element_says_why() {
        says(right(0, 1), |c| c[260] = 0.0, "part 1 never wrote c[260]");
        says(right(0, 1), |c| c[260] = 2.0 * value(10), "which is twice a[10]");
        says(right(0, 1), |c| c[260] = 0.5, "c[260] is 0.5; twice a[260] is 522.");
        says(right(1, 0), |c| c[3] = 16.0, "Launched again, c[3] is 16 and no longer 8");
    }

    #[test]
    fn the_signature_is_read_from_the_ptx() {
        let ptx = |count: usize| {
            format!(".visible .entry k({})\n{{\n", vec!["\t.param .u64 k_param"; count].join(",\n"))
        };
        assert!(has_signature(&ptx(5), "k"));
        assert!(!has_signature(&ptx(4), "k"));
        assert!(!has_signature(&ptx(5), "other"));
    }
}
