//! The PTX files of `tests/ptx/run` through a driver: the emulated one, or the one that `CUDA_DRIVER` names.
//!
//! `CUDA_DRIVER=libcuda.so.1 ./device` runs the same files on a GPU, and so shows whether it computes what they say.
//! `JIT_OPTIMIZATION=0` sets the level of its compiler. `PTX_FILE=path` and `PTX_KERNEL=name` launch only that file and
//! that kernel of it, whatever comes out: this is what compute-sanitizer and Nsight Compute are put around.

mod common;
mod launches;

use std::{env, ffi::c_void, fs, ptr::null_mut};

use common::{Context, alloc, cu, download, function, ok, upload};
use launches::{Param, Request, compare, files, launches};

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shape {
    pub(crate) grid: [u32; 3],
    pub(crate) block: [u32; 3],
    pub(crate) shared: u32,
    pub(crate) cooperative: bool,
}

impl Shape {
    pub(crate) fn new(grid: [u32; 3], block: [u32; 3]) -> Shape {
        Shape { grid, block, shared: 0, cooperative: false }
    }
}

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

/// Launches, and yields what its buffers hold then.
fn launch(text: &str, request: &Request) -> Result<Vec<Vec<u8>>, String> {
    let module = load(text)?;
    let mut values: Vec<Vec<u8>> = Vec::new();
    let mut buffers = Vec::new();
    for param in &request.params {
        let (value, bytes) = match param {
            Param::In { bytes } => (buffer(bytes), bytes.len()),
            Param::Out { bytes, .. } => (buffer(&vec![0; bytes.len()]), bytes.len()),
            Param::New { bytes } => (alloc(*bytes as usize), *bytes as usize),
            Param::Freed { bytes } => {
                let address = alloc(*bytes as usize);
                ok!(cuMemFree_v2(address));
                (address, 0)
            }
            Param::Number(bytes) => {
                values.push(bytes.clone());
                buffers.push((0, 0));
                continue;
            }
        };
        values.push(value.to_le_bytes().to_vec());
        buffers.push((value, bytes));
    }
    let name = std::ffi::CString::new(request.kernel.as_str()).expect("a name has no zero byte");
    let kernel = function(module, &name);
    let mut params: Vec<*mut u8> = values.iter_mut().map(|value| value.as_mut_ptr()).collect();
    let (grid, block) = (request.shape.grid, request.shape.block);
    let launched = if request.shape.cooperative {
        cu!(cuLaunchCooperativeKernel(
            kernel,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            request.shape.shared,
            0usize,
            params.as_mut_ptr(),
        ))
    } else {
        cu!(cuLaunchKernel(
            kernel,
            grid[0],
            grid[1],
            grid[2],
            block[0],
            block[1],
            block[2],
            request.shape.shared,
            0usize,
            params.as_mut_ptr(),
            null_mut::<*mut u8>(),
        ))
    };
    let ended = if launched == 0 { cu!(cuCtxSynchronize()) } else { launched };
    if ended != 0 {
        return Err(format!("launching it answers CUDA error {ended}"));
    }
    let found = buffers
        .iter()
        .map(|&(address, bytes)| if bytes == 0 { Vec::new() } else { download::<u8>(address, bytes) })
        .collect();
    for (address, _) in buffers.into_iter().filter(|(_, bytes)| *bytes > 0) {
        ok!(cuMemFree_v2(address));
    }
    ok!(cuModuleUnload(module));
    Ok(found)
}

fn buffer(bytes: &[u8]) -> u64 {
    let address = alloc(bytes.len().max(1));
    if !bytes.is_empty() {
        upload(address, bytes);
    }
    address
}

/// The device is new enough for a file's target.
fn fits(text: &str) -> bool {
    let target = text.lines().find_map(|line| line.trim().strip_prefix(".target"));
    let digits: String = target.unwrap_or("").chars().filter(char::is_ascii_digit).collect();
    let (mut major, mut minor) = (0i32, 0i32);
    ok!(cuDeviceComputeCapability(&mut major as *mut i32, &mut minor as *mut i32, 0i32));
    digits.parse::<i32>().is_ok_and(|target| target <= 10 * major + minor)
}

/// Loads a file, at the level of optimisation that the environment asks for.
fn load(text: &str) -> Result<usize, String> {
    const ERROR_LOG: u32 = 5;
    const ERROR_LOG_BYTES: u32 = 6;
    const OPTIMIZATION_LEVEL: u32 = 7;
    let text = std::ffi::CString::new(text).expect("PTX has no zero byte");
    let mut log = vec![0u8; 8192];
    let mut options = vec![ERROR_LOG, ERROR_LOG_BYTES];
    let mut values: Vec<*mut c_void> =
        vec![log.as_mut_ptr().cast(), std::ptr::without_provenance_mut(log.len())];
    if let Some(level) = env::var("JIT_OPTIMIZATION").ok().and_then(|level| level.parse::<usize>().ok()) {
        options.push(OPTIMIZATION_LEVEL);
        values.push(std::ptr::without_provenance_mut(level));
    }
    let mut module = 0usize;
    let code = cu!(cuModuleLoadDataEx(
        &mut module as *mut usize,
        text.as_ptr(),
        options.len() as u32,
        options.as_mut_ptr(),
        values.as_mut_ptr(),
    ));
    if code != 0 {
        let end = log.iter().position(|&byte| byte == 0).unwrap_or(log.len());
        let log = String::from_utf8_lossy(&log[..end]);
        return Err(format!("loading it answers CUDA error {code}: {}", log.trim()));
    }
    Ok(module)
}
