//! `cuGetProcAddress`: which function a name means in a version of CUDA.

use std::ffi::c_void;

use super::{
    abi::{In, Out, Symbol, Text, driver},
    advice, batch, capture, context, copy, coredump, cuda3_launch, device,
    error::{CUresult, Result},
    event, function, graph, graph_memory, graph_nodes, init, launch, library, link, log, memory, module,
    node_params, occupancy, pointer, pool, primary, set, stream, stream_memory, unsupported, user_object,
};

const LEGACY_STREAM: u64 = 1;
const PER_THREAD_STREAM: u64 = 2;

const FOUND: u32 = 0;
const NOT_FOUND: u32 = 1;
const VERSION_NOT_SUFFICIENT: u32 = 2;

driver! {
    /// Answers the function that a name means in a version of CUDA.
    early cuGetProcAddress 11030 (name: Text, answer: Out<*const c_void>, version: i32, flags: u64) {
        answer.check()?;
        find(&name.get()?, version, flags)?.0.map_or(Err(CUresult::NOT_FOUND), |symbol| answer.set(symbol))
    }

    /// Answers the function that a name means in a version of CUDA, and why there is none.
    early cuGetProcAddress_v2 12000, cuGetProcAddress_v2_ptsz 12000 (
        name: Text, answer: Out<*const c_void>, version: i32, flags: u64, status: Out<u32>,
    ) {
        answer.check()?;
        let (symbol, found) = find(&name.get()?, version, flags)?;
        status.set_if_wanted(found);
        answer.set(symbol.unwrap_or(std::ptr::null()))
    }

    /// Answers none of the tables that NVIDIA's own libraries use.
    early cuGetExportTable 3000 (_answer: Out<*const c_void>, _table: In<c_void>) {
        log::once(
            "cuGetExportTable is not supported: it belongs to NVIDIA's own libraries, such as libcudart and cuBLAS, \
             which the emulated GPU cannot serve",
        );
        Err(CUresult::NOT_SUPPORTED)
    }
}

/// Every symbol of the driver.
fn symbols() -> impl Iterator<Item = &'static Symbol> {
    const TABLES: &[&[Symbol]] = &[
        init::SYMBOLS,
        device::SYMBOLS,
        primary::SYMBOLS,
        context::SYMBOLS,
        module::SYMBOLS,
        library::SYMBOLS,
        link::SYMBOLS,
        function::SYMBOLS,
        occupancy::SYMBOLS,
        memory::SYMBOLS,
        advice::SYMBOLS,
        batch::SYMBOLS,
        coredump::SYMBOLS,
        stream_memory::SYMBOLS,
        pool::SYMBOLS,
        pointer::SYMBOLS,
        copy::SYMBOLS,
        set::SYMBOLS,
        stream::SYMBOLS,
        event::SYMBOLS,
        launch::SYMBOLS,
        cuda3_launch::SYMBOLS,
        capture::SYMBOLS,
        graph::SYMBOLS,
        graph_memory::SYMBOLS,
        graph_nodes::SYMBOLS,
        node_params::SYMBOLS,
        user_object::SYMBOLS,
        unsupported::SYMBOLS,
        SYMBOLS,
    ];
    TABLES.iter().copied().flatten()
}

fn find(name: &str, version: i32, flags: u64) -> Result<(Option<*const c_void>, u32)> {
    if flags & !(LEGACY_STREAM | PER_THREAD_STREAM) != 0 || flags == LEGACY_STREAM | PER_THREAD_STREAM {
        return Err(CUresult::INVALID_VALUE);
    }
    let version = u32::try_from(version).map_err(|_| CUresult::INVALID_VALUE)?;
    if version > init::VERSION as u32 {
        return Err(CUresult::INVALID_VALUE);
    }
    let (plain, per_thread): (Vec<_>, Vec<_>) = symbols()
        .map(|symbol| (symbol, symbol.parts()))
        .filter(|(_, (base, _, _))| *base == name)
        .partition(|(_, (.., per_thread))| !per_thread);
    // A function that knows no streams serves whichever default stream is asked for.
    let family = if flags == PER_THREAD_STREAM && !per_thread.is_empty() { per_thread } else { plain };
    let newest = family
        .iter()
        .filter(|(symbol, _)| symbol.since <= version)
        .max_by_key(|(symbol, (_, number, _))| (symbol.since, *number));
    Ok(match newest {
        Some((symbol, _)) => (Some((symbol.address)() as *const c_void), FOUND),
        None if family.is_empty() => (None, NOT_FOUND),
        None => (None, VERSION_NOT_SUFFICIENT),
    })
}

impl Symbol {
    /// `cuMemcpyHtoD_v2_ptds` is `cuMemcpyHtoD`, version 2, for a default stream of the thread.
    fn parts(&self) -> (&'static str, u32, bool) {
        let plain = self.name.strip_suffix("_ptds").or_else(|| self.name.strip_suffix("_ptsz"));
        let name = plain.unwrap_or(self.name);
        let numbered = name.rsplit_once("_v").and_then(|(base, number)| Some((base, number.parse().ok()?)));
        let (base, number) = numbered.unwrap_or((name, 1));
        (base, number, plain.is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(name: &str, version: i32, flags: u64, expected: &str) {
        let symbol = symbols().find(|symbol| symbol.name == expected).expect("the expected symbol exists");
        assert_eq!(find(name, version, flags).ok(), Some((Some((symbol.address)() as *const c_void), FOUND)));
    }

    #[test]
    fn the_newest_function_of_a_version_is_found() {
        check("cuMemAlloc", 12_000, 0, "cuMemAlloc_v2");
        check("cuMemAlloc", 2000, 0, "cuMemAlloc");
        check("cuEventElapsedTime", 12_020, 0, "cuEventElapsedTime");
        check("cuEventElapsedTime", 13_000, 0, "cuEventElapsedTime_v2");
        check("cuCtxCreate", 12_000, 0, "cuCtxCreate_v3");
        check("cuMemcpyHtoD", 12_000, PER_THREAD_STREAM, "cuMemcpyHtoD_v2_ptds");
        check("cuMemAlloc", 12_000, PER_THREAD_STREAM, "cuMemAlloc_v2");
    }

    #[test]
    fn what_is_missing_says_why() {
        assert_eq!(find("cuLaunchKernelEx", 11_000, 0), Ok((None, VERSION_NOT_SUFFICIENT)));
        assert_eq!(find("cuNothing", 12_000, 0), Ok((None, NOT_FOUND)));
        assert_eq!(find("cuInit", 12_000, 3), Err(CUresult::INVALID_VALUE));
    }

    #[test]
    fn no_symbol_is_there_twice() {
        let mut names: Vec<_> = symbols().map(|symbol| symbol.name).collect();
        let all = names.len();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
