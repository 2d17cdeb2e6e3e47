//! An exercise as it lies in this folder.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

use crate::chunks::Chunks;
use crate::layer::Layer;
use crate::managed::Managed;
use crate::matrix::Matrix;

/// An exercise.
#[derive(Clone, Debug)]
pub struct Exercise {
    /// The chapter's number, such as `ch01`.
    pub chapter: String,
    /// The name, such as `grid_stride`.
    pub name: String,
    /// What its `.toml` says.
    pub about: About,
}

/// What the `.toml` of an exercise says.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct About {
    /// Its place in the chapter.
    pub number: u32,
    /// A few words.
    pub title: String,
    /// The task in one sentence, the same as in the source's heading.
    pub task: String,
    /// What the check looks at.
    pub check: String,
    /// Hints, shown one at a time.
    pub hints: Vec<String>,
    /// What the kernel computes.
    #[serde(default)]
    pub operation: Operation,
    /// How the check launches the kernel.
    pub launch: Launch,
    /// What the check expects besides right sums.
    #[serde(default)]
    pub expect: Expect,
    /// Where the kernel works on a matrix, and not on vectors: what it makes of it. Then the launch is one block of 32 × 8
    /// threads for each 32 × 32 elements.
    pub matrix: Option<Matrix>,
    /// Where the kernel takes floats out of managed memory: how far they lie apart.
    pub managed: Option<Managed>,
    /// Where the kernel is launched once for each part of a vector: how many parts there are, and how often it is all done.
    pub chunks: Option<Chunks>,
    /// Where the kernel does what follows a product: what it makes of a matrix and a bias.
    pub layer: Option<Layer>,
}

/// What the kernel of an exercise computes, and with which parameters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// `c[i] = a[i] + b[i]`: `(const float* a, const float* b, float* c, size_t n)`.
    #[default]
    Add,
    /// The sum of every block's elements: `(const float* a, float* partials, size_t n)`.
    Sum,
    /// The maximum of every block's elements, with the same parameters.
    Maximum,
    /// How often each byte occurs: `(const unsigned char* a, unsigned int* bins, size_t n)`.
    Histogram,
}

/// How the check launches the kernel.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Launch {
    /// Threads in a block.
    pub threads_in_block: u32,
    /// Blocks in the grid, whatever the size of the data. Without it the grid has a thread for every
    /// `elements_per_thread` elements, and at least one block.
    pub blocks: Option<u32>,
    /// Neighbouring elements that a thread takes.
    #[serde(default = "one")]
    pub elements_per_thread: u32,
}

/// What the check expects besides right sums.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Expect {
    /// How many bytes a thread moves with one load or store.
    pub bytes_per_access: u32,
    /// Whether warps may split at a branch.
    #[serde(default = "yes")]
    pub divergence: bool,
}

impl Default for Expect {
    fn default() -> Self {
        Self { bytes_per_access: 4, divergence: true }
    }
}

/// The exercises of a chapter, in the chapter's order. The chapter may be a crate's whole name.
///
/// # Errors
/// When there are none, or a file is not what it should be.
pub fn find(root: &Path, chapter: &str) -> Result<Vec<Exercise>> {
    let number = chapter.split('-').next().unwrap_or(chapter);
    let mut exercises = Vec::new();
    for file in compiler::names(&root.join("kernels/exercises"), ".toml")? {
        if let Some(name) = file.strip_prefix(&format!("{number}_")) {
            let path = format!("kernels/exercises/{file}.toml");
            let text = fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
            let about = toml::from_str(&text).with_context(|| format!("reading {path}"))?;
            exercises.push(Exercise { chapter: number.to_string(), name: name.to_string(), about });
        }
    }
    if exercises.is_empty() {
        bail!("{chapter} has no exercises: kernels/exercises holds no {number}_*.toml");
    }
    exercises.sort_by_key(|exercise| exercise.about.number);
    Ok(exercises)
}

impl Exercise {
    /// The kernel's name, which is also the file's.
    pub fn kernel(&self) -> String {
        format!("{}_{}", self.chapter, self.name)
    }

    /// The file with the hole, from the repository's root.
    pub fn path(&self) -> String {
        format!("kernels/exercises/{}.cu", self.kernel())
    }

    /// The solution, from the repository's root.
    pub fn solution_path(&self) -> String {
        format!("kernels/exercises/{}.solution.cu", self.kernel())
    }
}

/// The three parts of an exercise's source: what stands before the hole, in it, and behind it.
///
/// # Errors
/// When it has not exactly one hole.
pub fn hole(source: &str) -> Result<[&str; 3]> {
    let parts = |source| {
        let (before, rest) = str::split_once(source, "    // Your turn: begin.\n")?;
        let (hole, after) = rest.split_once("    // Your turn: end.\n")?;
        (!after.contains("// Your turn:")).then_some([before, hole, after])
    };
    parts(source).context(
        "a hole lies between `// Your turn: begin.` and `// Your turn: end.`, each on its own line, once",
    )
}

fn one() -> u32 {
    1
}

fn yes() -> bool {
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Those of every chapter.
    fn exercises() -> Vec<Exercise> {
        let chapters = ["ch01", "ch02", "ch03", "ch04", "ch05", "ch06", "ch07", "ch10"];
        chapters.iter().flat_map(|chapter| find(&compiler::workspace_root(), chapter).unwrap()).collect()
    }

    fn read(path: &str) -> String {
        fs::read_to_string(compiler::workspace_root().join(path)).unwrap()
    }

    #[test]
    fn exercises_come_in_the_order_of_their_chapter() {
        let names = |chapter| -> Vec<String> {
            let exercises = find(&compiler::workspace_root(), chapter).unwrap();
            exercises.into_iter().map(|exercise| exercise.name).collect()
        };
        assert_eq!(names("ch01"), ["guard", "grid_stride", "float4"]);
        assert_eq!(names("ch02"), ["plane", "warps", "agree"]);
        assert_eq!(names("ch03-memory-hierarchy"), ["coalesced", "padding", "swizzle", "edges"]);
        assert_eq!(names("ch04"), ["barrier", "shuffle", "histogram", "identity"]);
        assert_eq!(names("ch05"), ["macro", "constant", "template"]);
        assert_eq!(names("ch06-managed-memory"), ["headers", "packed", "order"]);
        assert_eq!(names("ch07"), ["chunk", "replay", "wide"]);
        assert_eq!(names("ch10"), ["bias", "columns", "gelu"]);
    }

    #[test]
    fn a_solution_differs_from_its_exercise_in_the_hole_alone() {
        for exercise in exercises() {
            let (skeleton, solution) = (read(&exercise.path()), read(&exercise.solution_path()));
            let [before, _, after] = hole(&skeleton).unwrap();
            let [solution_before, solution_hole, solution_after] = hole(&solution).unwrap();
            assert_eq!((before, after), (solution_before, solution_after), "{}", exercise.path());
            assert!(!solution_hole.trim().is_empty());
        }
    }

    #[test]
    fn the_heading_says_the_task_and_the_command() {
        for exercise in exercises() {
            let source = read(&exercise.path());
            // The comment is wrapped, the sidecar's sentence is not.
            let lines = source.lines().map_while(|line| line.strip_prefix("//"));
            let heading = lines.map(str::trim).collect::<Vec<_>>().join(" ");
            let task = &exercise.about.task;
            assert!(heading.contains(task.as_str()), "{} lacks `{task}`", exercise.path());
            let command = format!("`cargo book exercise {} {}`", exercise.chapter, exercise.name);
            assert!(heading.contains(&command), "{} lacks `{command}`", exercise.path());
            assert!(source.contains(&format!("void {}(", exercise.kernel())));
            assert_eq!(exercise.about.hints.len(), 2);
        }
    }

    #[test]
    fn a_source_with_no_hole_or_two_is_refused() {
        let one = "a\n    // Your turn: begin.\nb\n    // Your turn: end.\nc\n";
        assert_eq!(hole(one).unwrap(), ["a\n", "b\n", "c\n"]);
        assert!(hole("a\n").is_err());
        assert!(hole(&format!("{one}{one}")).is_err());
    }

    #[test]
    fn a_chapter_without_exercises_says_so() {
        let message = find(&compiler::workspace_root(), "ch99").unwrap_err().to_string();
        assert_eq!(message, "ch99 has no exercises: kernels/exercises holds no ch99_*.toml");
    }
}
