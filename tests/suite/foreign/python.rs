//! Python programs: PyCUDA, which is built here, and `cuda.core`.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use super::{alone, driver_folder, emulated, folder, output, root};

/// A virtual environment with what `tests/foreign/requirements.txt` and `pycuda.txt` pin.
pub(crate) struct Environment {
    folder: PathBuf,
}

impl Environment {
    /// The environment, made in `target` when it is not there. Only that takes long: PyCUDA is C++.
    pub(crate) fn get() -> &'static Environment {
        static ENVIRONMENT: OnceLock<Environment> = OnceLock::new();
        ENVIRONMENT.get_or_init(|| {
            let (environment, foreign) = (folder("python"), root().join("tests/foreign"));
            let read = |name: &str| fs::read_to_string(foreign.join(name)).expect("it is committed");
            let version = output(Command::new("python3").arg("--version"));
            let version = String::from_utf8_lossy(&version.stdout).into_owned();
            let wanted = version + &read("requirements.txt") + &read("pycuda.txt");
            let stamp = environment.join("made-of.txt");
            let environment = Environment { folder: environment };
            if fs::read_to_string(&stamp).ok().as_ref() != Some(&wanted) {
                environment.make(&foreign);
                fs::write(stamp, wanted).expect("target can be written");
            }
            environment
        })
    }

    /// Where the wheels put CUDA: `include` and `lib` are in it.
    pub(crate) fn cuda(&self) -> PathBuf {
        let lib = fs::read_dir(self.folder.join("lib")).expect("the environment has a lib").flatten();
        let python = lib.map(|entry| entry.path()).find(|path| path.join("site-packages/nvidia").is_dir());
        python.expect("the wheels are installed").join("site-packages/nvidia/cu13")
    }

    /// A command of this Python.
    fn python(&self) -> PathBuf {
        self.folder.join("bin/python")
    }

    fn make(&self, foreign: &Path) {
        fs::remove_dir_all(&self.folder).expect("target can be written");
        output(Command::new("python3").args(["-m", "venv"]).arg(&self.folder));
        let pip = |arguments: &[&str], requirements: Option<&str>| {
            let mut command = Command::new(self.python());
            command.args(["-m", "pip", "--quiet", "--disable-pip-version-check"]).args(arguments);
            if let Some(requirements) = requirements {
                command.arg("--require-hashes").arg("--requirement").arg(foreign.join(requirements));
            }
            // What is installed already builds the rest; the fastest code is not wanted, but soon.
            command.current_dir(&self.folder).env("CXXFLAGS", "-O0 -g0 -w").env("CFLAGS", "-O0 -g0 -w");
            output(&mut command);
        };
        pip(&["install", "--no-deps", "--only-binary=:all:"], Some("requirements.txt"));
        pip(
            &["download", "--no-deps", "--no-build-isolation", "--no-binary=:all:", "--dest=."],
            Some("pycuda.txt"),
        );
        output(Command::new("tar").args(["-xf", "pycuda-2026.1.tar.gz"]).current_dir(&self.folder));
        let (driver, include) = (driver_folder(), self.cuda().join("include"));
        let mut configure = Command::new(self.python());
        configure.args(["configure.py", "--no-cuda-enable-curand"]);
        configure.arg(format!("--cuda-inc-dir={}", include.display()));
        configure.arg(format!("--cudadrv-lib-dir={}", driver.display()));
        output(configure.current_dir(self.folder.join("pycuda-2026.1")));
        pip(&["install", "--no-deps", "--no-build-isolation", "./pycuda-2026.1"], None);
    }
}

/// Runs a program of tests/foreign on the emulated GPU.
fn run(program: &str, arguments: &[&str]) -> Output {
    let mut command = emulated(Environment::get().python());
    command.arg(root().join("tests/foreign").join(program)).args(arguments);
    output(&mut command)
}

#[test]
fn a_pycuda_program_runs() {
    let _alone = alone();
    let output = run("pycuda_program.py", &["kernels/ptx/vector_add_01_scalar.ptx"]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "Emulated NVIDIA H200 9.0\nTrue 0 1024\npycuda ok\n");
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
}

#[test]
fn a_cuda_core_program_runs() {
    let _alone = alone();
    let output = run("cuda_core_program.py", &[]);
    let printed = String::from_utf8_lossy(&output.stdout);
    assert_eq!(printed, "Emulated NVIDIA H200 9.0\ncuda.core ok\n");
}

#[test]
fn machine_code_is_refused_with_the_reason() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    let cubin = folder.path().join("f.cubin");
    let path = cubin.to_str().expect("a temporary folder has a plain name");
    let printed = run("machine_code.py", &[path]);
    let errors = String::from_utf8_lossy(&printed.stderr);
    let printed = String::from_utf8_lossy(&printed.stdout);
    assert!(printed.contains("cuda.core: CUDA_ERROR_NO_BINARY_FOR_GPU: "), "{printed}");
    assert!(printed.contains("no kernel image is available for execution on the device"), "{printed}");
    let reasons: Vec<&str> = errors.lines().filter(|line| line.contains("cubin")).collect();
    assert_eq!(reasons.len(), 2, "{errors}");
    for reason in reasons {
        assert!(reason.contains("executes PTX"), "{reason}");
        assert!(reason.contains("nvcc -ptx"), "{reason}");
    }

    // The same from C.
    let program = folder.path().join("program");
    let mut compiler = Command::new(env::var_os("CC").unwrap_or_else(|| "cc".into()));
    compiler.arg("-o").arg(&program).arg(root().join("kernels/emulator/tests/common/program.c")).arg("-ldl");
    output(&mut compiler);
    let refused = emulated(&program).arg(path).arg("fill").output().expect("cargo runs");
    let printed = String::from_utf8_lossy(&refused.stdout);
    assert!(printed.ends_with("cuModuleLoadData: CUDA_ERROR_NO_BINARY_FOR_GPU\n"), "{printed}");
    assert!(String::from_utf8_lossy(&refused.stderr).contains("nvcc -ptx"));
}
