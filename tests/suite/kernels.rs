//! `cargo kernels` and `cargo book exercise` with the real compiler. Needs Python with pip, or NVRTC 12.0.140.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::{env, fs};

use tempfile::TempDir;

#[test]
fn committed_ptx_follows_from_the_sources_in_a_clone_elsewhere() {
    let clone = clone_of_kernels();
    let output = cargo_kernels(clone.path(), &["--check"]);
    assert!(output.status.success(), "{}", text(&output));
}

#[test]
fn what_does_not_follow_is_listed_and_regenerated() {
    let clone = clone_of_kernels();
    let (cuda, ptx) = (clone.path().join("kernels/cuda"), clone.path().join("kernels/ptx"));
    let committed = fs::read_to_string(ptx.join("copy_01_float4.ptx")).unwrap();
    fs::remove_file(ptx.join("copy_01_float4.ptx")).unwrap();
    fs::write(ptx.join("of_no_source.ptx"), "").unwrap();
    append(&cuda.join("vector_add_01_scalar.cu"), "// Changed.\n");
    append(&ptx.join("launch_01_empty.ptx"), "// Changed.\n");

    let output = cargo_kernels(clone.path(), &["--check"]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    let states = [
        ("copy_01_float4", "missing"),
        ("of_no_source", "orphan"),
        ("vector_add_01_scalar", "differs"),
        ("launch_01_empty", "differs"),
    ];
    for (name, state) in states {
        let line = said.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        assert!(line.contains(state), "{name}: {said}");
    }
    let all = fs::read_dir(&cuda).unwrap().count() + 1; // Each source has its PTX, and one PTX has no source.
    let wanted = format!("4 of {all} do not follow from kernels/cuda: run `cargo kernels`");
    assert!(said.contains(&wanted), "{said}");

    assert!(cargo_kernels(clone.path(), &[]).status.success());
    assert!(cargo_kernels(clone.path(), &["--check"]).status.success());
    assert_eq!(fs::read_to_string(ptx.join("copy_01_float4.ptx")).unwrap(), committed);
    assert!(!ptx.join("of_no_source.ptx").exists());
}

#[test]
fn a_kernel_that_does_not_compile_is_an_error_with_file_and_line_and_nothing_is_written() {
    let clone = clone_of_kernels();
    fs::remove_file(clone.path().join("kernels/ptx/copy_01_float4.ptx")).unwrap();
    let source = "extern \"C\" __global__ void vector_add_05_wrong() {\n    nothing = 1;\n}\n";
    fs::write(clone.path().join("kernels/cuda/vector_add_05_wrong.cu"), source).unwrap();
    let output = cargo_kernels(clone.path(), &[]);
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    assert!(
        said.contains("kernels/cuda/vector_add_05_wrong.cu:2: error: identifier \"nothing\" is undefined"),
        "{said}"
    );
    assert!(!clone.path().join("kernels/ptx/copy_01_float4.ptx").exists());
}

#[test]
fn a_header_is_included_hashed_and_named_relative_to_the_repository() {
    let clone = clone_of_kernels();
    let cuda = clone.path().join("kernels/cuda");
    fs::write(
        cuda.join("common.cuh"),
        "__device__ __noinline__ float twice(float x) {\n    return x + x;\n}\n",
    )
    .unwrap();
    let source = "// target: compute_80, options: --device-int128\n#include \"common.cuh\"\n\
                  extern \"C\" __global__ void twice_01(float* c) {\n    *c = twice(*c);\n}\n";
    fs::write(cuda.join("twice_01.cu"), source).unwrap();
    let output = cargo_kernels(clone.path(), &[]);
    assert!(output.status.success(), "{}", text(&output));
    let ptx = fs::read_to_string(clone.path().join("kernels/ptx/twice_01.ptx")).unwrap();
    assert!(ptx.contains(".target sm_80"), "{ptx}");
    assert!(ptx.contains("--device-int128\n"), "{ptx}");
    assert!(ptx.contains("// source: kernels/cuda/common.cuh sha256:"), "{ptx}");
    assert!(ptx.contains("\"kernels/cuda/twice_01.cu\""), "{ptx}");
    assert!(ptx.contains("\"kernels/cuda/common.cuh\""), "{ptx}");
    assert!(!ptx.contains(clone.path().to_str().unwrap()), "{ptx}");
}

#[test]
fn without_nvrtc_and_python_one_sentence_says_what_is_missing() {
    let clone = clone_of_kernels();
    let output = program("compiler").current_dir(clone.path()).env("PATH", clone.path()).output().unwrap();
    if output.status.success() {
        // The system has a copy, which is found without Python.
        assert!(nvrtc().starts_with("/usr"), "{}", text(&output));
        return;
    }
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output);
    let wanted = "NVRTC 12.0.140, which compiles the kernels, is not installed";
    assert!(
        said.contains(wanted) && said.contains("(python3 is not installed): install Python 3 with pip"),
        "{said}"
    );
}

#[test]
fn the_exercises_as_given_are_not_solved_and_their_solutions_are() {
    for (chapter, name, wrong) in [
        ("ch01", "guard", "Only c[0] was written, by all 1024 threads."),
        ("ch01", "grid_stride", "Only the first 1024 of 65,537 elements were written"),
        ("ch01", "float4", "load requests where 1026 would do"),
        ("ch02", "plane", "was never written"),
        ("ch02", "warps", "each load request touched 16 sectors where 4 would do"),
        ("ch02", "agree", "warps split at a branch 2049 times in 65,537 elements"),
        ("ch03", "coalesced", "each load request touched 32 sectors where 4 would do"),
        ("ch03", "padding", "32 passes through the banks where 1 would do, 31 conflicts a request"),
        ("ch03", "swizzle", "32 passes through the banks where 1 would do, 31 conflicts a request"),
        ("ch03", "edges", "c has 65 rows and 33 columns"),
        ("ch04", "barrier", "with no barrier between, and one of them wrote"),
        ("ch04", "shuffle", "the sum of the even lanes alone: the round with offset 1 is missing"),
        ("ch04", "histogram", "atomicAdd does the three as one step"),
        ("ch04", "identity", "the identity of the operation"),
        ("ch05", "macro", "a[1] + b[1] is 1 + 0.5 = 1.5"),
        ("ch05", "constant", "c[640] was never written"),
        ("ch05", "template", "thread 250 wrote c[1000], past the end"),
        ("ch06", "headers", "5120 pages of a were touched for 640 floats, which lie in 640"),
        ("ch06", "packed", "in 640 pages of c where 1 would do"),
        ("ch06", "order", "each load of a warp touched 32 sectors where 4 would do"),
        ("ch07", "chunk", "part 0 ends before element 250 and wrote c[250]"),
        ("ch07", "replay", "Launched again, c[0] is 4 and no longer 2"),
        ("ch07", "wide", "8 above a multiple of 16"),
        ("ch10", "bias", "y[0][0] has no bias"),
        ("ch10", "columns", "a column holds 33 elements"),
        ("ch10", "gelu", "The root of 2 / π is missing"),
    ] {
        let output = exercise(chapter, name, None);
        assert_eq!(output.status.code(), Some(1), "{}", text(&output));
        assert!(text(&output).contains(wrong), "{}", text(&output));

        let solution = workspace().join(format!("kernels/exercises/{chapter}_{name}.solution.cu"));
        let output = exercise(chapter, name, Some(&solution));
        assert!(output.status.success(), "{}", text(&output));
        assert!(text(&output).contains("solved"), "{}", text(&output));
    }
}

#[test]
fn wrong_attempts_are_explained_in_terms_of_the_lesson() {
    let index = "size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;";
    let add = "c[i] = a[i] + b[i];";
    for (chapter, name, hole, wrong) in [
        ("ch01", "guard", format!("{index} {add}"), "Block 3, thread 232 wrote c[1000], past the end: n is 1000."),
        ("ch01", "guard", format!("size_t i = threadIdx.x; if (i < n) {add}"), "as many as one block has"),
        ("ch01", "guard", format!("{index} if (i <= n) {add}"), "Block 3, thread 232 wrote c[1000]"),
        (
            "ch01",
            "guard",
            format!("{index} float x = *(const volatile float*)(a + i); if (i < n) c[i] = x + b[i];"),
            "With n = 1000 the device stopped",
        ),
        (
            "ch01",
            "guard",
            format!("{index} if (i < n) c[i] = a[i] - b[i];"),
            "c[1] is 0.5; a[1] + b[1] is 1 + 0.5 = 1.5.",
        ),
        ("ch01", "guard", format!("{index} if (i < n) c[i] = a[i] + b[i]"), "attempt.cu:8: error: expected a \";\""),
        (
            "ch01",
            "guard",
            format!("{index} while (i < n) {add}"),
            "a loop without an end (CUDA_ERROR_LAUNCH_TIMEOUT)",
        ),
        (
            "ch01",
            "guard",
            format!("{index} if (i < n) c[n - 1 - i] = a[i] + b[i];"),
            "c[0] is 1498.5, which is a[999] + b[999]",
        ),
        (
            "ch01",
            "grid_stride",
            format!("for (size_t i = first; i < n; i += blockDim.x) {add}"),
            "added more than once",
        ),
        (
            "ch01",
            "grid_stride",
            format!(
                "size_t m = (n + gridDim.x * blockDim.x - 1) / (gridDim.x * blockDim.x);
                 for (size_t i = first * m; i < first * m + m && i < n; ++i) {add}"
            ),
            "sectors where 4 would do",
        ),
        (
            "ch01",
            "float4",
            format!("if (first + 4 <= n) {{ for (size_t i = first; i < first + 4; ++i) {add} }}"),
            "The last element of 65,537 was never written.",
        ),
        (
            "ch01",
            "float4",
            "reinterpret_cast<float4*>(c + 1)[first / 4] = float4();".into(),
            "16 bytes went to an address",
        ),
        (
            "ch04",
            "barrier",
            "for (unsigned int step = THREADS / 2; step > 0; step /= 2) if (t < step) { s[t] += s[t + step]; __syncthreads(); }"
                .into(),
            "It cannot stand where only some of them come by.",
        ),
        (
            "ch04",
            "barrier",
            "for (unsigned int step = THREADS / 2; step > 16; step /= 2) { if (t < step) s[t] += s[t + step]; __syncthreads(); }"
                .into(),
            "the first lane of every warp alone",
        ),
        (
            "ch04",
            "shuffle",
            "if (t % 32 < 16) for (int d = 16; d > 0; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);".into(),
            "The mask names every lane that takes part",
        ),
        (
            "ch04",
            "shuffle",
            "for (int d = 8; d > 0; d /= 2) x += __shfl_down_sync(0xffffffff, x, d);".into(),
            "the round with offset 16 is missing",
        ),
        (
            "ch04",
            "histogram",
            "if (i < n && t % 2 == 0) atomicAdd(&counts[a[i]], 1);".into(),
            "bin 0 is 3 and should be 5",
        ),
        ("ch04", "identity", "s[t] = i < n ? a[i] : 0.0f;".into(), "The identity of a maximum is -∞"),
    ] {
        check_attempt(chapter, name, &hole, wrong);
    }
}

#[test]
fn wrong_attempts_on_a_matrix_are_explained_too() {
    let rows = "for (unsigned int k = 0; k < 32; k += 8) {
        unsigned int row = blockIdx.y * 32 + threadIdx.y + k, column = blockIdx.x * 32 + threadIdx.x;
        size_t i = (size_t)row * columns + column;";
    let store = "c[(size_t)(row + k) * rows + column] = tile[threadIdx.x][threadIdx.y + k];";
    let copy = |guard: &str| format!("for (unsigned int k = 0; k < TILE; k += 8) {{ {guard} {store} }}");
    for (name, hole, wrong) in [
        ("coalesced", format!("{rows} c[i] = a[i] + a[i]; }}"), "past the end"),
        ("coalesced", format!("{rows} if (row < rows) c[i] = a[i] + a[i]; }}"), "past the end"),
        (
            "coalesced",
            format!(
                "{rows} if (row < rows && column < columns) c[(size_t)column * rows + row] = a[i] + a[i]; }}"
            ),
            "c[0][1] holds a[1][0], and should hold a[0][1]",
        ),
        (
            "coalesced",
            format!(
                "{rows} float x = *(const volatile float*)(a + i); if (row < rows && column < columns) c[i] = x + x; }}"
            ),
            "With 33 × 65 elements the device stopped the kernel",
        ),
        ("padding", "__shared__ float tile[TILE][TILE + 2];".into(), "2 passes through the banks"),
        ("padding", "__shared__ float tile[TILE][TILE + 16];".into(), "16 passes through the banks"),
        ("swizzle", "return row;".into(), "and should hold a[0][0]"),
        ("swizzle", "return 31 - column;".into(), "31 conflicts a request"),
        ("edges", copy("if (row + k < rows && column < columns)"), "the other way round than a"),
        ("edges", copy("if (row + k < columns)"), "past the end"),
    ] {
        check_attempt("ch03", name, &hole, wrong);
    }
}

#[test]
fn wrong_attempts_on_managed_memory_are_explained_too() {
    for (name, hole, wrong) in [
        ("headers", "if (i < n) c[i] = a[i * PAGE];", "c[1] is a[1024] and should be a[8192]"),
        ("headers", "if (i + 1 < n) c[i] = a[8 * i * PAGE];", "c[639] was never written"),
        ("packed", "c[i] = a[(i < n ? i : 0) * PAGE];", "was written, past the last of 640 results"),
        ("order", "for (size_t at = i; at < n; at += 1024) c[at] = a[at] + 1;", "should be a[0]"),
        ("order", "if (i < n && i % 2 == 0) c[i] = a[i];", "c[1] was never written"),
    ] {
        check_attempt("ch06", name, hole, wrong);
    }
}

#[test]
fn wrong_attempts_on_a_layer_are_explained_too() {
    for (name, hole, wrong) in [
        ("bias", "y[i] = x[i] + bias[i / columns];", "y[0][1] got bias[0], the one of its row"),
        ("bias", "y[i] = x[i] + bias[i];", "bias has as many elements as there are columns"),
        ("bias", "if (i > 0) y[i] = x[i] + bias[i % columns];", "y[0][0] was never written"),
        ("columns", "float element = x[(size_t)rows * columns - 1 - i];", "should be made of x[0]"),
        ("gelu", "float inner = 0.7978845608f * z;", "The cube is missing"),
        ("gelu", "float inner = 0.63661977f * (z + 0.044715f * z * z * z);", "and should stand its root"),
    ] {
        check_attempt("ch10", name, hole, wrong);
    }
}

/// The exercise with this in its hole is not solved, and the check says these words.
#[track_caller]
fn check_attempt(chapter: &str, name: &str, hole: &str, wrong: &str) {
    let folder = TempDir::new().unwrap();
    let path = workspace().join(format!("kernels/exercises/{chapter}_{name}.cu"));
    let source = fs::read_to_string(path).unwrap();
    let (before, rest) = source.split_once("    // Your turn: begin.\n").unwrap();
    let (_, after) = rest.split_once("    // Your turn: end.\n").unwrap();
    let attempt = folder.path().join("attempt.cu");
    fs::write(&attempt, format!("{before}{hole}\n{after}")).unwrap();
    let output = exercise(chapter, name, Some(&attempt));
    assert_eq!(output.status.code(), Some(1), "{hole}: {}", text(&output));
    assert!(text(&output).contains(wrong), "{hole}: {}", text(&output));
}

/// `cargo book exercise CHAPTER NAME` on the emulated GPU.
fn exercise(chapter: &str, name: &str, file: Option<&Path>) -> Output {
    let mut command = program("exercises");
    command.current_dir(workspace()).args([chapter, name]);
    if let Some(file) = file {
        command.arg("--file").arg(file);
    }
    command.output().unwrap()
}

/// `cargo kernels`, called in a clone.
fn cargo_kernels(clone: &Path, arguments: &[&str]) -> Output {
    program("compiler").current_dir(clone).args(arguments).env("LD_LIBRARY_PATH", nvrtc()).output().unwrap()
}

/// The folder of the pinned NVRTC, fetched once.
pub(crate) fn nvrtc() -> PathBuf {
    compiler::find_or_fetch_nvrtc(compiler::BASELINE).unwrap_or_else(|error| panic!("{error:#}"))
}

/// A folder, with a space in its name, that holds a copy of `kernels/cuda` and `kernels/ptx`.
fn clone_of_kernels() -> TempDir {
    let clone = tempfile::Builder::new().prefix("another clone ").tempdir().unwrap();
    for folder in ["kernels/cuda", "kernels/ptx"] {
        let to = clone.path().join(folder);
        fs::create_dir_all(&to).unwrap();
        for entry in fs::read_dir(workspace().join(folder)).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
        }
    }
    clone
}

/// A program of the workspace, built beside this one.
pub(crate) fn program(package: &str) -> Command {
    let built = Command::new(env!("CARGO"))
        .args(["build", "--quiet", "--package", package, "--bins"])
        .current_dir(workspace())
        .status()
        .unwrap();
    assert!(built.success(), "{package} does not build");
    // target/debug/deps/suite-0123 → target/debug
    let here = env::current_exe().unwrap();
    let mut command = Command::new(here.parent().unwrap().parent().unwrap().join(package));
    command
        .env_remove("CUDA_PATH")
        .env_remove("CUDA_HOME")
        .env_remove("CONDA_PREFIX")
        .env_remove("LD_LIBRARY_PATH");
    command
}

fn workspace() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn append(path: &Path, line: &str) {
    fs::write(path, fs::read_to_string(path).unwrap() + line).unwrap();
}

pub(crate) fn text(output: &Output) -> String {
    format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr))
}
