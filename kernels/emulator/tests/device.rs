//! The PTX files of `tests/ptx/run` through a driver: the emulated one, or the one that `CUDA_DRIVER` names.
//!
//! `CUDA_DRIVER=libcuda.so.1 ./device` runs the same files on a GPU, and so shows whether it computes what they say.
//! `JIT_OPTIMIZATION=0` sets the level of its compiler. `PTX_FILE=path` and `PTX_KERNEL=name` launch only that file and
//! that kernel of it, whatever comes out: this is what compute-sanitizer and Nsight Compute are put around.

mod common;
#[path = "launches/driver.rs"]
mod driver;
mod launches;
#[path = "machine/shape.rs"]
mod shape;

use std::{env, fs};

use common::{Context, ok};
use launches::{Param, Request, compare, files, launches};
use shape::Shape;

#[test]
fn run() {
    let _context = Context::new();
    if let Some(path) = env::var_os("PTX_FILE") {
        let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let wanted = env::var("PTX_KERNEL").ok();
        for request in launches(&text) {
            if wanted.as_ref().is_none_or(|wanted| request.kernel == *wanted) {
                println!("{}: {:?}", request.kernel, launch(&text, &request).map(drop));
            }
        }
        return;
    }
    let mut failures = Vec::new();
    let mut count = 0;
    for (name, text) in files("run") {
        if !fits(&text) {
            println!("{name} is for a newer device");
            continue;
        }
        for request in launches(&text) {
            count += 1;
            if let Err(error) = check(&text, &request) {
                failures.push(format!("{name}, {}: {error}", request.kernel));
            }
        }
    }
    println!("{count} launches");
    assert!(failures.is_empty(), "\n{}\n{} of {count} launches failed", failures.join("\n"), failures.len());
}

/// Loads, launches, and yields what the launch's buffers hold then.
fn launch(text: &str, request: &Request) -> Result<Vec<Vec<u8>>, String> {
    let module = driver::load(text)?;
    let found = driver::launch(module, request)?;
    ok!(cuModuleUnload(module));
    Ok(found)
}

/// Launches and compares what came out with what the file says. What the device prints goes where it goes.
fn check(text: &str, request: &Request) -> Result<(), String> {
    let found = launch(text, request)?;
    for (number, (param, found)) in request.params.iter().zip(&found).enumerate() {
        if let Param::Out { ty, bytes, distance } = param {
            compare(ty, bytes, found, *distance).map_err(|error| format!("parameter {number}: {error}"))?;
        }
    }
    Ok(())
}

/// The device is new enough for a file's target.
fn fits(text: &str) -> bool {
    let target = text.lines().find_map(|line| line.trim().strip_prefix(".target"));
    let digits: String = target.unwrap_or("").chars().filter(char::is_ascii_digit).collect();
    let (mut major, mut minor) = (0i32, 0i32);
    ok!(cuDeviceComputeCapability(&mut major as *mut i32, &mut minor as *mut i32, 0i32));
    digits.parse::<i32>().is_ok_and(|target| target <= 10 * major + minor)
}
