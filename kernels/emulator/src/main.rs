//! `cargo run -p emulator -- PROGRAM ARGUMENT…` runs a CUDA program on the emulated GPU.
//!
//! The program is any that speaks the CUDA driver's interface: ours, PyCUDA's, a test suite. It is started with a folder
//! first on its library path that holds the emulated driver as `libcuda.so` and `libcuda.so.1`.

use std::{
    env,
    ffi::{OsStr, OsString},
    fmt::Write as _,
    fs, io,
    os::unix::{fs::symlink, process::CommandExt},
    path::{Path, PathBuf},
    process::{Command, ExitCode},
};

use emulator::{
    scope,
    settings::{SETTINGS, settings},
};

const LIBRARY: &str = "libemulator.so";

fn main() -> ExitCode {
    let mut arguments = env::args_os().skip(1);
    let result = match arguments.next() {
        None => Err(format!("say which program to run\n\n{}", help())),
        Some(option) if option == "--help" || option == "-h" => {
            print!("{}", help());
            Ok(())
        }
        Some(option) if option == "--scope" => {
            print!("{}", scope());
            Ok(())
        }
        Some(option) if option == "--library" => library().map(|path| println!("{}", path.display())),
        Some(option) if option.as_encoded_bytes().starts_with(b"-") => {
            Err(format!("{} is no option\n\n{}", option.display(), help()))
        }
        Some(program) => run(&program, arguments),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("emulator: {message}");
            ExitCode::FAILURE
        }
    }
}

/// Becomes the program. Returns only when that fails.
fn run(program: &OsStr, arguments: impl Iterator<Item = OsString>) -> Result<(), String> {
    settings().map_err(|error| error.to_string())?;
    let library = library()?;
    let folder = links(&library).map_err(|error| {
        format!(
            "cannot make a folder with libcuda.so.1 in it, beside {} or in the temporary folder: {error}",
            library.display()
        )
    })?;
    let mut path = folder.into_os_string();
    if let Some(more) = env::var_os("LD_LIBRARY_PATH").filter(|more| !more.is_empty()) {
        path.push(":");
        path.push(more);
    }
    let error = Command::new(program).args(arguments).env("LD_LIBRARY_PATH", path).exec();
    Err(format!("cannot run {}: {error}", program.display()))
}

/// The emulated driver: beside this program, where Cargo puts libraries of dependencies, or where this was built.
fn library() -> Result<PathBuf, String> {
    let program =
        env::current_exe().map_err(|error| format!("cannot find this program's own folder: {error}"))?;
    let beside = program.parent().unwrap_or(Path::new("."));
    // OUT_DIR is build/emulator-…/out in the folder that also holds deps.
    let built = Path::new(env!("OUT_DIR")).ancestors().nth(3).unwrap_or(beside);
    let folders = [beside.to_owned(), beside.join("deps"), built.to_owned(), built.join("deps")];
    // Cargo leaves a copy of an earlier build beside the program when it builds only what the program needs.
    let built = |path: &PathBuf| fs::metadata(path).and_then(|metadata| metadata.modified()).ok();
    let found =
        folders.iter().map(|folder| folder.join(LIBRARY)).filter(|path| path.is_file()).max_by_key(built);
    found.ok_or_else(|| {
        format!("there is no {LIBRARY} in {}; build it by cargo build -p emulator", beside.display())
    })
}

/// A folder with the names that programs ask for.
fn links(library: &Path) -> io::Result<PathBuf> {
    let library = library.canonicalize()?;
    let beside = library.with_file_name("emulated-gpu");
    if fill(&beside, &library).is_ok() {
        return Ok(beside);
    }
    // A folder that only this user can write, for a library in a place that only others can write.
    // SAFETY: `getuid` has no preconditions.
    let user = unsafe { libc::getuid() };
    let folder = env::temp_dir().join(format!("emulated-gpu-{user}-{}", std::process::id()));
    fill(&folder, &library)?;
    Ok(folder)
}

fn fill(folder: &Path, library: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    for name in ["libcuda.so", "libcuda.so.1"] {
        let link = folder.join(name);
        if fs::read_link(&link).is_ok_and(|target| target == library) {
            continue;
        }
        // Two programs may do this at once, so the link is made beside and moved into its place.
        let fresh = folder.join(format!(".{name}.{}", std::process::id()));
        symlink(library, &fresh)?;
        fs::rename(&fresh, &link)?;
    }
    Ok(())
}

fn help() -> String {
    let mut text = String::from(
        "Runs a CUDA program on an emulated GPU.

  cargo run -p emulator -- PROGRAM ARGUMENT...
      runs a program that speaks the CUDA driver's interface
  cargo run -p emulator -- --library
      prints where the emulated driver is; as libcuda.so.1 in a folder on LD_LIBRARY_PATH it serves
      any program
  cargo run -p emulator -- --scope
      prints which instructions of PTX it executes
  cargo run -p emulator -- --help
      prints this

It executes PTX. What it computes is what a GPU computes; how long it takes says nothing about one.
It does not run machine code for GPUs, nor NVIDIA's libraries that bring such code (cuBLAS, cuDNN,
NCCL), nor programs of the CUDA runtime (libcudart), which needs NVIDIA's own driver.

Settings, from the environment:
",
    );
    for setting in SETTINGS {
        // Writing to a string cannot fail.
        let _written =
            write!(text, "\n  {}={}\n      [default: {}]\n", setting.name, setting.values, setting.default);
        for line in wrap(setting.help, 90) {
            let _written = writeln!(text, "      {line}");
        }
    }
    text
}

/// Lines of at most so many characters.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + word.len() <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}
