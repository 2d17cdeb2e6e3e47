//! The CI job that the book shows: each of its shell steps is run here, on the crate that it is an example of.

use std::fs;
use std::os::unix::fs::symlink;
use std::process::Command;

use super::{alone, output, root};

/// The job, as `book/src/emulated-gpu.md` has it.
fn job() -> String {
    let page = fs::read_to_string(root().join("book/src/emulated-gpu.md")).expect("it is a page of the book");
    let (_, job) = page.split_once("```yaml\n").expect("the page shows a job");
    job.split_once("```").expect("the block ends").0.to_owned()
}

/// A step's shell commands, and the variables that it sets.
#[derive(Default)]
struct Step {
    commands: String,
    variables: Vec<(String, String)>,
}

/// The steps that run commands. The form is the one that the page has, not YAML's every form.
fn steps(job: &str) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::new();
    let mut part = "";
    for line in job.lines() {
        if line.starts_with("      - ") {
            steps.push(Step::default());
            part = "";
        }
        let Some(step) = steps.last_mut() else { continue };
        match line.trim_start_matches("      - ").trim() {
            "run: |" => part = "run",
            "env:" => part = "env",
            text if line.starts_with("          ") && part == "run" => {
                step.commands.push_str(text);
                step.commands.push('\n');
            }
            text if line.starts_with("          ") && part == "env" => {
                let (name, value) = text.split_once(": ").expect("a variable has a value");
                step.variables.push((name.to_owned(), value.to_owned()));
            }
            _ => part = "",
        }
    }
    steps.retain(|step| !step.commands.is_empty());
    steps
}

#[test]
fn the_job_of_the_book_tests_a_crate() {
    let _alone = alone();
    let job = job();
    let steps = steps(&job);
    let commands = |line: &&str| line.starts_with("          ") && !line.contains(": ");
    let all = job.lines().filter(commands).count();
    let found: usize = steps.iter().map(|step| step.commands.lines().count()).sum();
    assert_eq!((steps.len(), found), (2, all), "each command of the job is run: {job}");

    // What the steps that check out do: the crate here, and this repository in a folder of it.
    let checkouts = job.lines().filter(|line| line.contains("uses: actions/checkout@")).count();
    assert_eq!(checkouts, 2);
    assert!(job.contains("path: cuda-ladder\n"));
    let checkout = tempfile::tempdir().unwrap();
    let example = root().join("tests/foreign/cudarc-crate");
    for name in ["Cargo.toml", "Cargo.lock", "src", "tests"] {
        symlink(example.join(name), checkout.path().join(name)).unwrap();
    }
    symlink(root(), checkout.path().join("cuda-ladder")).unwrap();

    let mut printed = String::new();
    for step in &steps {
        let mut shell = Command::new("bash");
        // As the runners of GitHub call it.
        shell.args(["--noprofile", "--norc", "-eo", "pipefail", "-c", &step.commands]);
        shell.envs(step.variables.iter().cloned()).current_dir(checkout.path());
        printed.push_str(&String::from_utf8_lossy(&output(&mut shell).stdout));
    }
    assert!(printed.contains("test every_value_is_scaled ... ok"), "{printed}");
}
