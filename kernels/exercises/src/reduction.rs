//! Runs a reader's kernel that reduces, and says in the words of the lesson what it did wrong.

use std::sync::Arc;

use cudarc::driver::{CudaContext, LaunchConfig, PushKernelArg};
use cudarc::nvrtc::Ptx;

use crate::exercise::Operation;
use crate::judge::number;
use crate::run::{Attempt, Stop, UNTOUCHED, has_parameters};

/// What a kernel left: a word for every block or bin, as bits, so that a number that was never written is told from all
/// others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Elements.
    pub n: usize,
    /// The words.
    pub words: Vec<u32>,
}

const THREADS: usize = 256;
const BINS: usize = 256;

/// Input of a sum: whole numbers, small enough that every sum of a block is exact.
fn addend(i: usize) -> f32 {
    (i % 97 + 1) as f32
}

/// Input of a maximum: all below zero, and the largest of a block not at its start.
fn negative(i: usize) -> f32 {
    -1.0 - ((i * 37 + 11) % 1009) as f32
}

/// Input of a histogram: runs of equal bytes, so that threads of a warp meet.
fn byte(i: usize) -> u8 {
    (i / 5 % 256) as u8
}

/// The parameters of an operation's kernel, as its exercises must keep them.
pub fn signature(operation: Operation, kernel: &str) -> String {
    let parameters = match operation {
        Operation::Add => "const float* a, const float* b, float* c, size_t n",
        Operation::Sum | Operation::Maximum => "const float* a, float* partials, size_t n",
        Operation::Histogram => "const unsigned char* a, unsigned int* bins, size_t n",
    };
    format!("`{kernel}({parameters})`")
}

/// Runs a kernel once on `n` elements, in memory of the exact size.
///
/// # Errors
/// When the device stopped the kernel, or something before that failed.
pub fn reduce(
    context: &Arc<CudaContext>,
    attempt: &Attempt<'_>,
    operation: Operation,
    n: usize,
) -> Result<Answer, Stop> {
    if !has_parameters(attempt.ptx, attempt.kernel, 3) {
        return Err(Stop::Signature);
    }
    let module = context.load_module(Ptx::from_src(attempt.ptx)).map_err(Stop::Setup)?;
    let kernel = module.load_function(attempt.kernel).map_err(Stop::Setup)?;
    let stream = context.default_stream();
    let blocks = attempt.launch.grid(n);
    let input: Vec<u8> = match operation {
        Operation::Histogram => (0..n).map(byte).collect(),
        Operation::Maximum => (0..n).flat_map(|i| negative(i).to_ne_bytes()).collect(),
        Operation::Sum | Operation::Add => (0..n).flat_map(|i| addend(i).to_ne_bytes()).collect(),
    };
    // There is no memory of no bytes.
    let input = if input.is_empty() { vec![0; 4] } else { input };
    let output = match operation {
        Operation::Histogram => vec![0; BINS],
        _ => vec![UNTOUCHED; blocks as usize],
    };
    let device_input = stream.clone_htod(&input).map_err(Stop::Setup)?;
    let mut device_output = stream.clone_htod(&output).map_err(Stop::Setup)?;
    let config = LaunchConfig {
        grid_dim: (blocks, 1, 1),
        block_dim: (attempt.launch.threads_in_block, 1, 1),
        shared_mem_bytes: 0,
    };
    let mut builder = stream.launch_builder(&kernel);
    builder.arg(&device_input).arg(&mut device_output).arg(&n);
    // SAFETY: the parameters are two pointers and a `size_t`, which was read from the PTX above. What the kernel does with
    // the memory is the reader's work: this program is there to find out, and ends afterwards.
    unsafe { builder.launch(config) }.map_err(|error| Stop::Kernel(error, n))?;
    stream.synchronize().map_err(|error| Stop::Kernel(error, n))?;
    let words = stream.clone_dtoh(&device_output).map_err(|error| Stop::Kernel(error, n))?;
    Ok(Answer { n, words })
}

/// What is wrong with an answer, in one or two sentences; `None` if nothing is.
pub fn judge_reduction(operation: Operation, answer: &Answer) -> Option<String> {
    match operation {
        Operation::Add => None,
        Operation::Sum => {
            answer.words.iter().enumerate().find_map(|(block, &word)| sum(answer.n, block, word))
        }
        Operation::Maximum => {
            answer.words.iter().enumerate().find_map(|(block, &word)| maximum(answer.n, block, word))
        }
        Operation::Histogram => histogram(answer),
    }
}

/// The elements of a block, with their places in it.
fn elements(n: usize, block: usize) -> impl Iterator<Item = (usize, usize)> + Clone {
    (0..THREADS).map(move |t| (t, block * THREADS + t)).filter(move |(_, i)| *i < n)
}

fn sum(n: usize, block: usize, word: u32) -> Option<String> {
    let of = |chosen: &dyn Fn(usize) -> bool| -> f32 {
        elements(n, block).filter(|(t, _)| chosen(*t)).map(|(_, i)| addend(i)).sum()
    };
    let (expected, found) = (of(&|_| true), f32::from_bits(word));
    if found == expected {
        return None;
    }
    if word == UNTOUCHED {
        return Some(format!("Block {block} wrote no sum."));
    }
    let of_n =
        format!("With n = {}, the sum of block {block} is {found} and should be {expected}", number(n));
    // What a wrong shuffle or a tree that ends early leaves out has a pattern.
    type Pattern = (&'static str, fn(usize) -> bool);
    let patterns: [Pattern; 6] = [
        ("It is the sum of the even lanes alone: the round with offset 1 is missing.", |t| t % 2 == 0),
        ("It is the sum of the odd lanes alone.", |t| t % 2 == 1),
        ("It is the sum of lanes 0 to 15 of every warp: the round with offset 16 is missing.", |t| {
            t % 32 < 16
        }),
        (
            "It is the sum of the first lane of every warp alone: the other lanes' numbers have not reached it.",
            |t| t % 32 == 0,
        ),
        ("It is the sum of the first warp alone.", |t| t < 32),
        ("It is the first element alone.", |t| t == 0),
    ];
    let pattern = patterns.into_iter().find(|(_, chosen)| of(chosen) == found).map(|(words, _)| words);
    Some(match pattern {
        Some(words) => format!("{of_n}. {words}"),
        None if found > expected => format!("{of_n}: some elements were added more than once."),
        None => format!("{of_n}: some elements are missing."),
    })
}

fn maximum(n: usize, block: usize, word: u32) -> Option<String> {
    let expected = elements(n, block).map(|(_, i)| negative(i)).fold(f32::NEG_INFINITY, f32::max);
    let found = f32::from_bits(word);
    if found == expected {
        return None;
    }
    let have = elements(n, block).count();
    let of_n =
        format!("With n = {}, the maximum of block {block} is {found} and should be {expected}", number(n));
    Some(if word == UNTOUCHED {
        format!("Block {block} wrote no maximum.")
    } else if found > expected && have < THREADS {
        format!(
            "{of_n}. Only {have} of its {THREADS} threads have an element, and {found} is none: what the others put in is \
             larger than every element. The identity of a maximum is -∞, as 0 is that of a sum."
        )
    } else {
        format!("{of_n}.")
    })
}

fn histogram(answer: &Answer) -> Option<String> {
    let mut expected = vec![0; BINS];
    (0..answer.n).for_each(|i| expected[usize::from(byte(i))] += 1);
    let bin = answer.words.iter().zip(&expected).position(|(found, expected)| found != expected)?;
    let (found, expected) = (answer.words[bin], expected[bin]);
    let n = number(answer.n);
    Some(if found < expected {
        format!(
            "With n = {n}, bin {bin} is {found} and should be {expected}: counts were lost. Threads that read the same \
             counter before either has written it add 1 to the same number."
        )
    } else {
        format!("With n = {n}, bin {bin} is {found} and should be {expected}.")
    })
}

/// What the emulated GPU's report means for the lesson; `None` where it speaks of something else.
pub fn explain_report(operation: Operation, report: &str) -> Option<&'static str> {
    let says = |words: &str| report.contains(words);
    Some(if says("race in shared memory") {
        match operation {
            Operation::Histogram => {
                "Two threads used the same counter at once. `+= 1` reads, adds and writes, and whoever reads between \
                 another's read and write loses a count. atomicAdd does the three as one step."
            }
            _ => {
                "Two threads used the same bytes of shared memory with no barrier between, and one of them wrote. Warps run \
                 at their own pace: without __syncthreads() between two rounds, a thread may read what another has yet to \
                 write. That the sum may still come out right is luck."
            }
        }
    } else if says("that nothing has written") {
        "A thread read a number in shared memory that no thread had written. The threads without an element take part in \
         the tree too, so each must put in something that changes nothing: the identity of the operation."
    } else if says("barrier") {
        "A barrier was not reached by all threads of the block. It cannot stand where only some of them come by."
    } else if says("warp") && says("lane") {
        "A shuffle's mask and the lanes that execute it do not agree. The mask names every lane that takes part, and each of \
         them has to be there."
    } else {
        return None;
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn right(operation: Operation, n: usize) -> Answer {
        let blocks = n.div_ceil(THREADS).max(1);
        let words = match operation {
            Operation::Histogram => {
                let mut bins = vec![0; BINS];
                (0..n).for_each(|i| bins[usize::from(byte(i))] += 1);
                bins
            }
            Operation::Maximum => (0..blocks)
                .map(|block| {
                    elements(n, block).map(|(_, i)| negative(i)).fold(f32::NEG_INFINITY, f32::max).to_bits()
                })
                .collect(),
            _ => (0..blocks)
                .map(|block| elements(n, block).map(|(_, i)| addend(i)).sum::<f32>().to_bits())
                .collect(),
        };
        Answer { n, words }
    }

    #[track_caller]
    fn says(operation: Operation, n: usize, change: impl FnOnce(&mut Answer), words: &str) {
        let mut answer = right(operation, n);
        change(&mut answer);
        let verdict = judge_reduction(operation, &answer).unwrap_or_default();
        assert!(verdict.contains(words), "{verdict:?} lacks {words:?}");
    }

    #[test]
    fn nothing_is_wrong_with_a_right_answer() {
        for operation in [Operation::Sum, Operation::Maximum, Operation::Histogram] {
            for n in crate::run::SIZES {
                assert_eq!(judge_reduction(operation, &right(operation, n)), None, "{operation:?}, n = {n}");
            }
        }
    }

    #[test]
    fn a_sum_that_leaves_lanes_out_says_which() {
        let only = |chosen: fn(usize) -> bool| {
            move |answer: &mut Answer| {
                let sum = elements(1000, 2).filter(|(t, _)| chosen(*t)).map(|(_, i)| addend(i)).sum::<f32>();
                answer.words[2] = sum.to_bits();
            }
        };
        says(Operation::Sum, 1000, only(|t| t % 2 == 0), "the round with offset 1 is missing");
        says(Operation::Sum, 1000, only(|t| t % 32 < 16), "the round with offset 16 is missing");
        says(Operation::Sum, 1000, only(|t| t < 32), "the first warp alone");
        says(Operation::Sum, 1000, |answer| answer.words[0] = 1e6f32.to_bits(), "more than once");
        says(Operation::Sum, 1000, |answer| answer.words[0] = UNTOUCHED, "Block 0 wrote no sum.");
    }

    #[test]
    fn a_wrong_identity_and_lost_counts_are_told() {
        says(Operation::Maximum, 1000, |answer| answer.words[3] = 0, "The identity of a maximum is -∞");
        says(Operation::Maximum, 0, |answer| answer.words[0] = 0, "Only 0 of its 256 threads");
        says(
            Operation::Histogram,
            33,
            |answer| answer.words[2] = 1,
            "bin 2 is 1 and should be 5: counts were lost",
        );
    }

    #[test]
    fn reports_are_explained_by_the_lesson() {
        let race = "the program's fault: race in shared memory, write after read";
        assert!(explain_report(Operation::Histogram, race).unwrap().contains("atomicAdd"));
        assert!(explain_report(Operation::Sum, race).unwrap().contains("__syncthreads()"));
        assert!(
            explain_report(Operation::Maximum, "load of 4 bytes of shared memory that nothing has written")
                .unwrap()
                .contains("identity")
        );
        assert_eq!(explain_report(Operation::Sum, "out of bounds"), None);
    }
}
