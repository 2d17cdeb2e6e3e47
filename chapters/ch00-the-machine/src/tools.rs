//! NVIDIA's tools at work: each runs this very program on one of its cells, and what it prints is
//! kept.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};
use lab::Cell;

/// Every tool that the chapter shows, and what it is for.
pub(crate) const ALL: [(&str, &str); 5] = [
    ("nvidia-smi", "NVIDIA's driver brings it; it tells how the device is"),
    ("compute-sanitizer", "the CUDA Toolkit brings it; it finds wrong accesses and races"),
    ("cuda-gdb", "the CUDA Toolkit brings it; it stops a kernel and looks inside"),
    ("nsys", "install Nsight Systems; it draws what happens when"),
    ("ncu", "install Nsight Compute; it counts what a kernel does to the hardware"),
];

pub(crate) fn nvidia_smi(cell: &mut Cell) -> Result<()> {
    show(cell, "nvidia-smi", &[], &[], |line| !line.is_empty(), 24)
}

pub(crate) fn compute_sanitizer(cell: &mut Cell) -> Result<()> {
    // One report a thread is plenty for a page; the tool prints 24 of them here, and again for each
    // vector.
    let tool = ["--print-limit", "1"];
    // The frames between the launch and `main` have no names in an optimised program.
    let wanted = |line: &str| line.starts_with("=====") && !line.contains("Host Frame:  [");
    show(cell, "compute-sanitizer", &tool, &["fault", "--no-record"], wanted, 16)
}

pub(crate) fn cuda_gdb(cell: &mut Cell) -> Result<()> {
    let tool = [
        "--batch",
        "--quiet",
        "-ex",
        "set cuda break_on_launch application",
        "-ex",
        "run",
        "-ex",
        "info cuda kernels",
        "-ex",
        "info cuda blocks",
        "-ex",
        "cuda block 3 thread 7",
        "-ex",
        "print threadIdx",
        "-ex",
        "print blockIdx",
        "--args",
    ];
    let wanted = |line: &str| {
        let noise = [
            "[New ",
            "[Thread ",
            "[Detaching",
            "[Switching to",
            "Using host",
            "warning:",
            "Error while",
        ];
        !line.is_empty() && !noise.iter().any(|start| line.starts_with(start))
    };
    show(cell, "cuda-gdb", &tool, &["who-am-i", "--no-record"], wanted, 24)
}

pub(crate) fn nsys(cell: &mut Cell) -> Result<()> {
    let tool = [
        "profile",
        "-t",
        "cuda",
        "--sample=none",
        "--cpuctxsw=none",
        "--stats=true",
        "-f",
        "true",
        "-o",
    ];
    let folder = env::temp_dir().join(format!("ch00-nsys-{}", std::process::id()));
    let report = folder.join("report");
    std::fs::create_dir_all(&folder)
        .with_context(|| "making a temporary folder for nsys's report".to_owned())?;
    let report_name = report.to_string_lossy().into_owned();
    let mut arguments = tool.to_vec();
    arguments.push(&report_name);
    let mut wanted = false;
    let shown = show(
        cell,
        "nsys",
        &arguments,
        &["who-am-i", "--no-record"],
        |line| {
            // The summaries of API calls and kernels, without the progress before and the file
            // names after.
            wanted |= line.contains("cuda_api_sum") || line.contains("cuda_gpu_kern_sum");
            wanted &= !(line.contains("Generat") || line.contains("cuda_gpu_mem"));
            wanted && !line.is_empty()
        },
        24,
    );
    let _ = std::fs::remove_dir_all(&folder);
    shown
}

pub(crate) fn ncu(cell: &mut Cell) -> Result<()> {
    let tool = ["--clock-control", "none", "--section", "SpeedOfLight", "--section", "LaunchStats"];
    let mut in_report = false;
    let wanted = |line: &str| {
        // What the program says itself stands between the progress and the report.
        in_report |= line.trim_start().starts_with("machine_01_who_am_i (");
        !line.trim().is_empty() && (in_report || line.starts_with("==PROF== Profiling"))
    };
    show(cell, "ncu", &tool, &["who-am-i", "--no-record"], wanted, 28)
}

/// Runs `name tool_arguments this-program program_arguments` and says the command and the lines
/// that are `wanted`, at most `most` of them. Where the tool is missing or fails, one sentence says
/// so.
fn show(
    cell: &mut Cell,
    name: &str,
    tool_arguments: &[&str],
    program_arguments: &[&str],
    mut wanted: impl FnMut(&str) -> bool,
    most: usize,
) -> Result<()> {
    let Some(tool) = find(name) else {
        cell.measured_text(format!("{name} is not installed here."));
        return Ok(());
    };
    let program = env::current_exe().context("finding this program, for a tool to run it")?;
    let mut command = Command::new(tool);
    command.args(tool_arguments);
    if !program_arguments.is_empty() {
        command.arg(&program).args(program_arguments);
    }
    let run = command.env("LC_ALL", "C").output().with_context(|| format!("starting {name}"))?;
    let mut said = format!("$ {name}");
    for argument in tool_arguments {
        let argument = if argument.contains(env::temp_dir().to_string_lossy().as_ref()) {
            "report"
        } else {
            argument
        };
        let quoted =
            if argument.contains(' ') { format!(" '{argument}'") } else { format!(" {argument}") };
        said.push_str(&quoted);
    }
    for argument in program_arguments.first().map(|_| PROGRAM).iter().chain(program_arguments) {
        said.push_str(&format!(" {argument}"));
    }
    let output =
        [run.stdout, run.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    let output = without_paths(&output, &program);
    let lines: Vec<&str> = output.lines().map(str::trim_end).filter(|line| wanted(line)).collect();
    for line in lines.iter().take(most) {
        said.push('\n');
        said.push_str(line);
    }
    if lines.len() > most {
        said.push_str(&format!("\n… and {} lines more", lines.len() - most));
    }
    if lines.is_empty() {
        let last =
            output.lines().rfind(|line| !line.trim().is_empty()).unwrap_or("it printed nothing");
        said.push_str(&format!("\n{name} ended with {}: {last}", run.status));
    }
    cell.measured_text(said);
    Ok(())
}

const PROGRAM: &str = "ch00-the-machine";

/// A record holds no path of the machine that it was made on.
fn without_paths(output: &str, program: &Path) -> String {
    let folder =
        program.parent().map(|folder| format!("{}/", folder.display())).unwrap_or_default();
    let temporary = format!("{}/", env::temp_dir().display());
    let mut output = output.to_owned();
    for path in [folder, temporary] {
        if path.len() > 1 {
            output = output.replace(&path, "");
        }
    }
    output
}

/// The tool on the path, or in the toolkit's usual folder.
pub(crate) fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain([PathBuf::from("/usr/local/cuda/bin")])
        .map(|folder| folder.join(name))
        .find(|tool| tool.is_file())
}
