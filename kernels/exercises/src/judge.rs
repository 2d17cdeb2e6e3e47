//! Says in the words of the lesson what a kernel did wrong.

use crate::exercise::About;
use crate::run::{Counts, Observation, a, b};

/// What is wrong with a run, in one or two sentences; `None` if nothing is.
pub fn judge(about: &About, seen: &Observation) -> Option<String> {
    outside(about, seen).or_else(|| unwritten(about, seen)).or_else(|| wrong_sum(seen)).or_else(|| {
        let counts = seen.counts.filter(|_| seen.n >= ENOUGH_TO_COUNT)?;
        accesses(about, seen.n, counts).or_else(|| divergence(about, seen.n, counts))
    })
}

/// Below this, tails and partial warps outweigh what counts show.
const ENOUGH_TO_COUNT: usize = 4096;

/// A thread wrote where the array is not.
fn outside(about: &About, seen: &Observation) -> Option<String> {
    let n = number(seen.n);
    if let Some(element) = seen.written_behind {
        let owner = owner(about, seen, element);
        return Some(format!(
            "{owner} wrote c[{}], past the end: n is {n}. A grid is a whole number of blocks, so some threads may have no \
             element; they must not touch memory.",
            number(element)
        ));
    }
    let before = seen.written_before?;
    Some(format!(
        "A thread wrote {} elements in front of c[0]. Indices are unsigned: one that would be below zero wraps around.",
        number(before)
    ))
}

/// Elements that no thread wrote.
fn unwritten(about: &About, seen: &Observation) -> Option<String> {
    let first = seen.result.iter().position(Option::is_none)?;
    let missing = seen.result.iter().filter(|value| value.is_none()).count();
    let is_prefix = first + missing == seen.n;
    let launch = &about.launch;
    let block = launch.threads_in_block as usize;
    let threads = seen.blocks as usize * block;
    let n = number(seen.n);
    Some(if missing == seen.n {
        format!("Nothing was written: not one of the {n} elements of c.")
    } else if is_prefix && first == 1 {
        format!(
            "Only c[0] was written, by all {} threads. Each thread has to work out an index of its own.",
            number(threads)
        )
    } else if is_prefix && first == threads && launch.blocks.is_some() {
        format!(
            "Only the first {} of {n} elements were written: {} blocks of {block} threads are as many threads, and each took \
             one element. Each has to go on, by the number of threads in the whole grid, until n.",
            number(first),
            seen.blocks
        )
    } else if is_prefix && first == block * launch.elements_per_thread as usize && seen.blocks > 1 {
        format!(
            "Only the first {} of {n} elements were written, as many as one block has: every block did the same ones. \
             threadIdx counts within a block; the index needs blockIdx and blockDim too.",
            number(first)
        )
    } else if is_prefix && launch.elements_per_thread > 1 && missing < launch.elements_per_thread as usize {
        let last = match missing {
            1 => format!("element of {n} was"),
            _ => format!("{missing} elements of {n} were"),
        };
        format!(
            "The last {last} never written. {n} is no multiple of {}: who does the rest?",
            launch.elements_per_thread
        )
    } else {
        format!("c[{}] was never written; {} of {n} elements were not.", number(first), number(missing))
    })
}

/// An element that is not the sum.
fn wrong_sum(seen: &Observation) -> Option<String> {
    let (i, found) = seen
        .result
        .iter()
        .enumerate()
        .find_map(|(i, value)| value.filter(|value| *value != a(i) + b(i)).map(|value| (i, value)))?;
    // The inputs are such that the sum of two elements of the same index tells the index.
    let other = found / (a(1) + b(1));
    let i = (number(i), a(i), b(i));
    Some(if other.fract() == 0.0 && other >= 0.0 && (other as usize) < seen.n {
        let other = number(other as usize);
        format!(
            "c[{}] is {found}, which is a[{other}] + b[{other}]: the index of the load is not that of the store.",
            i.0
        )
    } else {
        format!("c[{}] is {found}; a[{}] + b[{}] is {} + {} = {}.", i.0, i.0, i.0, i.1, i.2, i.1 + i.2)
    })
}

/// More requests or sectors than the exercise needs.
fn accesses(about: &About, n: usize, counts: Counts) -> Option<String> {
    let width = u64::from(about.expect.bytes_per_access);
    let bytes = 4 * n as u64;
    // Two arrays are loaded, one is stored. A whole warp moves 32 accesses with one request.
    let requests = bytes.div_ceil(32 * width);
    let sectors = bytes.div_ceil(32);
    let kinds = [
        ("load", counts.load_requests, counts.load_sectors, 2),
        ("store", counts.store_requests, counts.store_sectors, 1),
    ];
    kinds.into_iter().find_map(|(kind, seen_requests, seen_sectors, arrays)| {
        // A tenth and a few for the tail.
        let too_many = |seen: u64, best: u64| seen > best + best / 10 + 8;
        let (best_requests, best_sectors) = (arrays * requests, arrays * sectors);
        let per_request = seen_sectors as f64 / seen_requests.max(1) as f64;
        if too_many(seen_requests, best_requests) && width > 4 {
            return Some(format!(
                "The sums are right, but {n} elements took {} {kind} requests where {} would do: a thread has to {kind} {width} \
                 bytes with one access, not piece by piece.",
                number(seen_requests as usize),
                number(best_requests as usize),
                n = number(n),
            ));
        }
        if per_request > 1.2 * width as f64 {
            return Some(format!(
                "The sums are right, but each {kind} request touched {per_request:.0} sectors where {width} would do: \
                 neighbouring threads do not {kind} neighbouring elements. Let the elements of one thread lie as far apart as \
                 the grid has threads, not side by side."
            ));
        }
        if too_many(seen_requests, best_requests) || too_many(seen_sectors, best_sectors) {
            return Some(format!(
                "The sums are right, but {n} elements took {} {kind} requests where {} would do: elements were added more \
                 than once. The step must be the number of threads in the whole grid.",
                number(seen_requests as usize),
                number(best_requests as usize),
                n = number(n),
            ));
        }
        None
    })
}

/// Warps that split where they should not.
fn divergence(about: &About, n: usize, counts: Counts) -> Option<String> {
    // At the end of the data a warp or two may split: some of its threads have no element.
    let splits = counts.divergent_branches;
    (!about.expect.divergence && splits > 8).then(|| {
        format!(
            "The sums are right, but warps split at a branch {} times in {} elements: some of their threads went one way and \
             some the other, one after the other. Choose the elements so that the 32 threads of a warp go the same way.",
            number(splits as usize),
            number(n)
        )
    })
}

/// The thread whose element this is, if the index is the usual one.
fn owner(about: &About, seen: &Observation, element: usize) -> String {
    let block = about.launch.threads_in_block as usize;
    let thread = (element / about.launch.elements_per_thread as usize) % (seen.blocks as usize * block);
    format!("Block {}, thread {}", thread / block, thread % block)
}

/// A number with separators, as the book writes it.
pub(crate) fn number(number: usize) -> String {
    let digits = number.to_string();
    if digits.len() < 5 {
        return digits;
    }
    let groups: Vec<&str> =
        digits.as_bytes().rchunks(3).rev().filter_map(|group| str::from_utf8(group).ok()).collect();
    groups.join(",")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exercise::find;

    fn about(name: &str) -> About {
        let exercises = find(&compiler::workspace_root(), "ch01").unwrap();
        exercises.into_iter().find(|exercise| exercise.name == name).unwrap().about
    }

    /// A faultless run.
    fn right(about: &About, n: usize) -> Observation {
        Observation {
            n,
            blocks: about.launch.grid(n),
            result: (0..n).map(|i| Some(a(i) + b(i))).collect(),
            written_before: None,
            written_behind: None,
            counts: None,
        }
    }

    #[track_caller]
    fn says(name: &str, n: usize, change: impl FnOnce(&mut Observation), words: &str) {
        let about = about(name);
        let mut seen = right(&about, n);
        change(&mut seen);
        let verdict = judge(&about, &seen).unwrap_or_default();
        assert!(verdict.contains(words), "{verdict:?} lacks {words:?}");
    }

    #[test]
    fn nothing_is_wrong_with_a_right_run() {
        for name in ["guard", "grid_stride", "float4"] {
            for n in crate::run::SIZES {
                assert_eq!(judge(&about(name), &right(&about(name), n)), None);
            }
        }
    }

    #[test]
    fn a_missing_guard_names_the_thread() {
        let behind = |seen: &mut Observation| seen.written_behind = Some(seen.n);
        says("guard", 1000, behind, "Block 3, thread 232 wrote c[1000], past the end: n is 1000.");
        says("float4", 1000, behind, "Block 0, thread 250 wrote c[1000]");
        says("guard", 0, behind, "Block 0, thread 0 wrote c[0], past the end: n is 0.");
        says("guard", 33, |seen| seen.written_before = Some(2), "2 elements in front of c[0]");
    }

    #[test]
    fn elements_left_out_are_told_by_their_pattern() {
        let only = |count: usize| move |seen: &mut Observation| seen.result[count..].fill(None);
        says("guard", 1000, only(1), "Only c[0] was written, by all 1024 threads.");
        says("guard", 1000, only(256), "as many as one block has");
        says("guard", 1000, only(0), "not one of the 1000 elements");
        says(
            "grid_stride",
            65_537,
            only(1024),
            "Only the first 1024 of 65,537 elements were written: 4 blocks of 256",
        );
        says("float4", 65_537, only(65_536), "The last element of 65,537 was never written.");
        says("guard", 1000, |seen| seen.result[7] = None, "c[7] was never written; 1 of 1000");
    }

    #[test]
    fn a_wrong_sum_says_whose_it_is() {
        says("guard", 1000, |seen| seen.result[5] = Some(a(9) + b(9)), "c[5] is 13.5, which is a[9] + b[9]");
        says("guard", 1000, |seen| seen.result[5] = Some(5.0), "a[5] + b[5] is 5 + 2.5 = 7.5.");
    }

    #[test]
    fn warps_that_split_are_counted() {
        let exercises = find(&compiler::workspace_root(), "ch02").unwrap();
        let about = exercises.into_iter().find(|exercise| exercise.name == "agree").unwrap().about;
        let mut seen = right(&about, 65_537);
        for (divergent_branches, wrong) in [(2, false), (2049, true)] {
            seen.counts = Some(Counts { divergent_branches, ..Counts::default() });
            let verdict = judge(&about, &seen).unwrap_or_default();
            assert_eq!(verdict.contains("warps split at a branch 2049 times"), wrong, "{verdict}");
        }
    }

    #[test]
    fn counts_tell_how_memory_was_used() {
        let n = 65_537;
        let counts = |load_requests, load_sectors, store_requests, store_sectors| {
            let counts =
                Counts { load_requests, load_sectors, store_requests, store_sectors, divergent_branches: 0 };
            move |seen: &mut Observation| seen.counts = Some(counts)
        };
        let floors =
            [("grid_stride", counts(4098, 16_386, 2049, 8193)), ("float4", counts(1028, 16_388, 514, 8194))];
        for (name, set) in floors {
            let mut seen = right(&about(name), n);
            set(&mut seen);
            assert_eq!(judge(&about(name), &seen), None);
        }
        let chunks = counts(4160, 131_076, 2080, 65_538);
        says("grid_stride", n, chunks, "each load request touched 32 sectors where 4 would do");
        let twice = counts(8196, 32_772, 4098, 16_386);
        says("grid_stride", n, twice, "8196 load requests where 4098 would do");
        let scalar = counts(4104, 65_556, 2052, 32_778);
        says("float4", n, scalar, "4104 load requests where 1026 would do");
        let scalar_store = counts(1028, 16_388, 2052, 32_778);
        says("float4", n, scalar_store, "has to store 16 bytes with one access, not piece by piece");
    }
}
