//! The launches of PTX files through a driver.

use std::{env, ffi::CString, ptr::null_mut};

use crate::{
    common::{alloc, cu, download, function, ok, try_load, upload},
    launches::{Param, Request},
};

/// Loads PTX, at the level of optimisation that `JIT_OPTIMIZATION` asks for.
pub(crate) fn load(text: &str) -> Result<usize, String> {
    let text = CString::new(text).expect("PTX has no zero byte");
    let level =
        env::var("JIT_OPTIMIZATION").ok().map(|level| level.parse().expect("JIT_OPTIMIZATION is a number"));
    let loaded = try_load(text.as_bytes_with_nul(), level);
    match loaded.code {
        0 => Ok(loaded.module),
        code => Err(format!("loading it answers CUDA error {code}: {}", loaded.log.trim())),
    }
}

/// Launches a kernel of a module, and yields what its buffers hold then.
pub(crate) fn launch(module: usize, request: &Request) -> Result<Vec<Vec<u8>>, String> {
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
    let name = CString::new(request.kernel.as_str()).expect("a name has no zero byte");
    let kernel = function(module, &name);
    let mut params: Vec<*mut u8> = values.iter_mut().map(|value| value.as_mut_ptr()).collect();
    let ([gx, gy, gz], [bx, by, bz]) = (request.shape.grid, request.shape.block);
    let (shared, stream, params) = (request.shape.shared, 0usize, params.as_mut_ptr());
    let launched = if request.shape.cooperative {
        cu!(cuLaunchCooperativeKernel(kernel, gx, gy, gz, bx, by, bz, shared, stream, params))
    } else {
        cu!(cuLaunchKernel(kernel, gx, gy, gz, bx, by, bz, shared, stream, params, null_mut::<*mut u8>()))
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
    Ok(found)
}

fn buffer(bytes: &[u8]) -> u64 {
    let address = alloc(bytes.len().max(1));
    if !bytes.is_empty() {
        upload(address, bytes);
    }
    address
}
