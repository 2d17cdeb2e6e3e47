//! Checks a reader's kernel; behind `cargo book exercise`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use anyhow::{Context, Result, bail};
use clap::Parser;
use compiler::{Compiler, KernelSource};
use cudarc::driver::CudaContext;
use cudarc::driver::sys::CUresult;
use exercises::{
    Attempt, Chunks, Exercise, LAYERS, LENGTHS, Layer, MATRICES, Managed, Matrix, Operation, SIZES, Stop,
    appraise, complaint, compute, confine, enclose, explain_report, fence, find, glance, hole, judge,
    judge_reduction, look, observe, reduce, sentence, signature, verdict, watch,
};
use lab::DeviceChoice;

/// Checks the kernels of an exercise and explains what is wrong.
///
/// Put your code between the two `Your turn` lines of kernels/exercises/CHAPTER_NAME.cu and call this again. Without NAME,
/// all exercises of the chapter are checked in order, up to the first that is not solved. The check runs on the emulated
/// GPU, which counts every memory access and names the thread that goes astray.
#[derive(Parser)]
#[command(name = "cargo book exercise", bin_name = "cargo book exercise")]
struct Arguments {
    /// The chapter, such as ch01
    chapter: String,
    /// The exercise
    name: Option<String>,
    /// Show a hint; `--hint 2` shows the second
    #[arg(long, value_name = "NUMBER", num_args = 0..=1, default_missing_value = "1", requires = "name")]
    hint: Option<usize>,
    /// Show what the solution has in the hole
    #[arg(long, requires = "name")]
    solution: bool,
    /// List the chapter's exercises
    #[arg(long)]
    list: bool,
    /// Check another file than the exercise's own
    #[arg(long, requires = "name")]
    file: Option<PathBuf>,
    /// Where the kernel runs. A GPU counts no accesses, and does not say which thread went astray
    #[arg(long, value_enum, default_value_t = DeviceChoice::Emulated)]
    device: DeviceChoice,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<ExitCode> {
    let root = compiler::workspace_root();
    let all = find(&root, &arguments.chapter)?;
    let chosen: Vec<&Exercise> = match &arguments.name {
        None => all.iter().collect(),
        Some(name) => {
            vec![all.iter().find(|exercise| exercise.name == *name).with_context(|| {
                let names: Vec<&str> = all.iter().map(|exercise| exercise.name.as_str()).collect();
                format!("{} has no exercise `{name}`, only {}", arguments.chapter, names.join(", "))
            })?]
        }
    };
    if arguments.list {
        for exercise in chosen {
            println!("{:16} {}", exercise.name, exercise.about.task);
        }
        return Ok(ExitCode::SUCCESS);
    }
    if let Some(number) = arguments.hint {
        return hint(chosen[0], number);
    }
    if arguments.solution {
        let path = chosen[0].solution_path();
        let text = fs::read_to_string(root.join(&path)).with_context(|| format!("reading {path}"))?;
        print!("{}", hole(&text).with_context(|| path.clone())?[1]);
        return Ok(ExitCode::SUCCESS);
    }

    // Races, reads of what was never written and missed barriers are what the reductions are about. The others explain what
    // is wrong by the result and the counts.
    let checks = chosen.iter().any(|exercise| exercise.about.operation != Operation::Add);
    let checker = Checker::prepare(&root, arguments.device, checks)?;
    for exercise in &chosen {
        match checker.check(exercise, arguments.file.as_deref())? {
            None => println!("{:16} solved", exercise.name),
            Some(wrong) => {
                println!("{:16} not yet\n\n{wrong}\n", exercise.name);
                println!("Task:  {}", exercise.about.task);
                println!("File:  {}", exercise.path());
                println!("Hint:  cargo book exercise {} {} --hint", exercise.chapter, exercise.name);
                return Ok(ExitCode::FAILURE);
            }
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn hint(exercise: &Exercise, number: usize) -> Result<ExitCode> {
    let hints = &exercise.about.hints;
    let Some(text) = number.checked_sub(1).and_then(|index| hints.get(index)) else {
        bail!("{} has hints 1 to {}", exercise.name, hints.len());
    };
    println!("{text}");
    let command = format!("cargo book exercise {} {}", exercise.chapter, exercise.name);
    match number < hints.len() {
        true => println!("\nThe next one: {command} --hint {}", number + 1),
        false => println!("\nThat was the last; the solution: {command} --solution"),
    }
    Ok(ExitCode::SUCCESS)
}

/// What every check needs.
struct Checker<'a> {
    root: &'a Path,
    compiler: Compiler,
    context: Arc<CudaContext>,
    /// The file that the emulated GPU writes its counts to; nothing on another GPU.
    counters: Option<PathBuf>,
}

impl<'a> Checker<'a> {
    /// Puts the device in place, first of all because that may start the program anew, and opens the compiler.
    fn prepare(root: &'a Path, device: DeviceChoice, checks: bool) -> Result<Self> {
        let counters = std::env::temp_dir().join(format!("exercise-counters-{}.jsonl", std::process::id()));
        // SAFETY: the program has one thread yet.
        unsafe { std::env::set_var("EMULATED_GPU_COUNTERS", &counters) };
        if std::env::var_os("EMULATED_GPU_BUDGET").is_none() {
            // An endless loop ends after a second. The longest right run takes a hundredth of this.
            // SAFETY: as above.
            unsafe { std::env::set_var("EMULATED_GPU_BUDGET", "20000000") };
        }
        if checks && std::env::var_os("EMULATED_GPU_CHECK").is_none() {
            // SAFETY: as above.
            unsafe { std::env::set_var("EMULATED_GPU_CHECK", "all") };
        }
        lab::prepare_device(device)?;
        let compiler = Compiler::open()?;
        let context = lab::open_device()?;
        let counters = lab::is_emulated(&context).then_some(counters);
        Ok(Self { root, compiler, context, counters })
    }

    /// What is wrong with an exercise; `None` if it is solved.
    fn check(&self, exercise: &Exercise, file: Option<&Path>) -> Result<Option<String>> {
        let mut source = KernelSource::read(self.root, &exercise.path())?;
        if let Some(file) = file {
            source.text = fs::read_to_string(file).with_context(|| format!("reading {}", file.display()))?;
            source.path = file.display().to_string();
        }
        let ptx = match self.compiler.compile(&source) {
            Ok(ptx) => ptx,
            Err(error) => return Ok(Some(format!("It does not compile:\n{error}"))),
        };
        let kernel = exercise.kernel();
        if let Some(matrix) = &exercise.about.matrix {
            return self.check_matrix(matrix, &kernel, &ptx);
        }
        if let Some(managed) = &exercise.about.managed {
            return self.check_managed(managed, &kernel, &ptx);
        }
        if let Some(chunks) = exercise.about.chunks {
            return self.check_chunks(chunks, &kernel, &ptx);
        }
        if let Some(layer) = exercise.about.layer {
            return self.check_layer(layer, &kernel, &ptx);
        }
        let attempt = Attempt { kernel: &kernel, ptx: &ptx, launch: &exercise.about.launch };
        if exercise.about.operation != Operation::Add {
            return self.check_reduction(&attempt, exercise.about.operation);
        }
        for n in SIZES {
            match observe(&self.context, &attempt, n, self.counters.as_deref()) {
                Ok(seen) => {
                    if let Some(wrong) = judge(&exercise.about, &seen) {
                        return Ok(Some(wrong));
                    }
                }
                Err(stop) => return self.stopped(&kernel, stop),
            }
        }
        for n in SIZES {
            if let Err(stop) = confine(&self.context, &attempt, n) {
                return self.stopped(&kernel, stop);
            }
        }
        if self.counters.as_ref().is_some_and(|file| !file.exists()) {
            bail!("the emulated GPU wrote no counts, so the check is incomplete");
        }
        Ok(None)
    }

    /// What is wrong with a kernel on a matrix; `None` if nothing is.
    fn check_matrix(&self, matrix: &Matrix, kernel: &str, ptx: &str) -> Result<Option<String>> {
        for size in MATRICES {
            let wrong = match look(&self.context, (kernel, ptx), size, self.counters.as_deref()) {
                Ok(seen) => verdict(matrix, &seen),
                Err(stop) => Some(self.stopped_on(kernel, size, stop)?),
            };
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        for size in MATRICES {
            if let Err(stop) = fence(&self.context, (kernel, ptx), size) {
                return self.stopped_on(kernel, size, stop).map(Some);
            }
        }
        if self.counters.as_ref().is_some_and(|file| !file.exists()) {
            bail!("the emulated GPU wrote no counts, so the check is incomplete");
        }
        Ok(None)
    }

    /// What is wrong with a kernel on managed memory; `None` if nothing is.
    fn check_managed(&self, managed: &Managed, kernel: &str, ptx: &str) -> Result<Option<String>> {
        for n in managed.sizes() {
            let wrong = match glance(&self.context, (kernel, ptx), managed, n, self.counters.as_deref()) {
                Ok(seen) => appraise(managed, &seen),
                Err(Stop::Signature) => Some(format!(
                    "The kernel must keep its name and its parameters: `{kernel}(const float* a, float* c, size_t n)`."
                )),
                Err(stop) => return self.stopped(kernel, stop),
            };
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        if self.counters.as_ref().is_some_and(|file| !file.exists()) {
            bail!("the emulated GPU wrote no counts, so the check is incomplete");
        }
        Ok(None)
    }

    /// What is wrong with a kernel that is launched for each part of a vector; `None` if nothing is.
    fn check_chunks(&self, chunks: Chunks, kernel: &str, ptx: &str) -> Result<Option<String>> {
        for n in LENGTHS {
            match watch(&self.context, (kernel, ptx), chunks, n) {
                Ok(steps) => {
                    if let Some(wrong) = steps.iter().find_map(sentence) {
                        return Ok(Some(wrong));
                    }
                }
                Err(stop) => return self.stopped_in_part(kernel, n, stop).map(Some),
            }
        }
        for n in LENGTHS {
            if let Err(stop) = enclose(&self.context, (kernel, ptx), chunks, n) {
                return self.stopped_in_part(kernel, n, stop).map(Some);
            }
        }
        Ok(None)
    }

    /// What is wrong with a kernel that follows a product; `None` if nothing is.
    fn check_layer(&self, layer: Layer, kernel: &str, ptx: &str) -> Result<Option<String>> {
        for size in LAYERS {
            let wrong = match compute(&self.context, (kernel, ptx), layer.result, size) {
                Ok(y) => complaint(layer.result, size, &y),
                Err(stop) => Some(self.stopped_in_layer(kernel, size, stop)?),
            };
            if wrong.is_some() {
                return Ok(wrong);
            }
        }
        Ok(None)
    }

    /// What is wrong with a kernel that follows a product and could not be observed.
    fn stopped_in_layer(&self, kernel: &str, (rows, columns): (u32, u32), stop: Stop) -> Result<String> {
        let error = match stop {
            Stop::Signature => {
                return Ok(format!(
                    "The kernel must keep its name and its parameters: `{kernel}(const float* x, const float* bias, float* y, \
                     unsigned int rows, unsigned int columns)`."
                ));
            }
            Stop::Setup(error) => bail!("running {kernel}: {error}"),
            Stop::Kernel(error, _) => error,
        };
        let reason = match error.0 {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => {
                "it reached memory that is not part of x, of bias or of y: bias has as many elements as there are columns"
            }
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => "it ran for so long that it must be a loop without an end",
            _ => "it failed",
        };
        Ok(format!(
            "With {rows} × {columns} elements the device stopped the kernel, because {reason} ({:?}). {}",
            error.0,
            self.who()
        ))
    }

    /// What is wrong with a kernel on a part of a vector that could not be watched.
    fn stopped_in_part(&self, kernel: &str, n: usize, stop: Stop) -> Result<String> {
        let error = match stop {
            Stop::Signature => {
                return Ok(format!(
                    "The kernel must keep its name and its parameters: `{kernel}(const float* a, float* c, size_t n, size_t \
                     first, size_t length)`."
                ));
            }
            Stop::Setup(error) => bail!("running {kernel}: {error}"),
            Stop::Kernel(error, _) => error,
        };
        let reason = match error.0 {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => {
                "it reached memory that is not part of a or c: the last part may be shorter than `length`"
            }
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => "it ran for so long that it must be a loop without an end",
            _ => "it failed",
        };
        Ok(format!(
            "With n = {n} the device stopped the kernel, because {reason} ({:?}). {}",
            error.0,
            self.who()
        ))
    }

    /// What is wrong with a kernel on a matrix that could not be observed.
    fn stopped_on(&self, kernel: &str, (rows, columns): (u32, u32), stop: Stop) -> Result<String> {
        let error = match stop {
            Stop::Signature => {
                return Ok(format!(
                    "The kernel must keep its name and its parameters: `{kernel}(const float* a, float* c, unsigned int \
                     rows, unsigned int columns)`."
                ));
            }
            Stop::Setup(error) => bail!("running {kernel}: {error}"),
            Stop::Kernel(error, _) => error,
        };
        let reason = match error.0 {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => {
                "it reached memory that is not part of a, of c or of the tile: both indices of an element must be inside"
            }
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => "it ran for so long that it must be a loop without an end",
            _ => "it failed",
        };
        Ok(format!(
            "With {rows} × {columns} elements the device stopped the kernel, because {reason} ({:?}). {}",
            error.0,
            self.who()
        ))
    }

    /// Who names the thread that went astray.
    fn who(&self) -> &'static str {
        match self.counters {
            Some(_) => "The report above names the thread and the line.",
            None => "A GPU does not say which thread it was: `--device emulated` does.",
        }
    }

    /// What is wrong with a kernel that sums, takes maxima or counts; `None` if it is right.
    fn check_reduction(&self, attempt: &Attempt<'_>, operation: Operation) -> Result<Option<String>> {
        for n in SIZES {
            let (answer, report) = lab::driver_messages(|| Ok(reduce(&self.context, attempt, operation, n)))?;
            match answer {
                Ok(answer) => {
                    if let Some(wrong) = judge_reduction(operation, &answer) {
                        return Ok(Some(wrong));
                    }
                }
                Err(Stop::Signature) => {
                    let signature = signature(operation, attempt.kernel);
                    return Ok(Some(format!(
                        "The kernel must keep its name and its parameters: {signature}."
                    )));
                }
                Err(stop) => {
                    return match explain_report(operation, &report) {
                        Some(words) => Ok(Some(format!("With n = {n}: {words}\n\n{}", report.trim_end()))),
                        None => {
                            eprint!("{report}");
                            self.stopped(attempt.kernel, stop)
                        }
                    };
                }
            }
        }
        Ok(None)
    }

    /// What is wrong with a kernel that could not be observed.
    fn stopped(&self, kernel: &str, stop: Stop) -> Result<Option<String>> {
        let (error, n) = match stop {
            Stop::Signature => {
                return Ok(Some(format!(
                    "The kernel must keep its name and its parameters: `{kernel}(const float* a, const float* b, float* c, \
                     size_t n)`."
                )));
            }
            Stop::Setup(error) => bail!("running {kernel}: {error}"),
            Stop::Kernel(error, n) => (error, n),
        };
        let reason = match error.0 {
            CUresult::CUDA_ERROR_ILLEGAL_ADDRESS => "it reached memory that is not part of a, b or c",
            CUresult::CUDA_ERROR_MISALIGNED_ADDRESS => {
                "an access of 16 bytes went to an address that is no multiple of 16: the first of four elements must have \
                 an index that is a multiple of 4"
            }
            CUresult::CUDA_ERROR_LAUNCH_TIMEOUT => "it ran for so long that it must be a loop without an end",
            _ => "it failed",
        };
        Ok(Some(format!(
            "With n = {n} the device stopped the kernel, because {reason} ({:?}). {}",
            error.0,
            self.who()
        )))
    }
}

impl Drop for Checker<'_> {
    fn drop(&mut self) {
        if let Some(file) = &self.counters {
            let _ = fs::remove_file(file);
        }
    }
}
