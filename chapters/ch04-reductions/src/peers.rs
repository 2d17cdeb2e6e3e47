//! The same elsewhere: CUB in this process, Triton and torch.compile in turn with our kernels, and
//! other Python libraries beside.

use anyhow::{Result, ensure};
use cudarc::driver::sys::{CUdeviceptr, CUstream};
use cudarc::driver::{CudaSlice, DevicePtr, DevicePtrMut, DeviceRepr, ValidAsZeroBits};
use lab::timing::{self, Pairs};
use lab::{Cell, Table, row};

use crate::cpu;
use crate::device::Device;
use crate::histogram::{self, Counter};
use crate::scan::{self, Scanner};
use crate::sum::{self, Summer};

/// The programs in `tests/peers` that only tell their rates.
const PYTHON_PEERS: [&str; 4] = ["ch04_torch.py", "ch04_cupy.py", "ch04_jax.py", "ch04_numba.py"];

/// What the peers measure, as their reports name it.
const RATES: [&str; 5] = ["sum", "histogram", "scan", "softmax", "layer_norm"];

/// Runs everything that is installed here.
pub fn peers(cell: &mut Cell) -> Result<()> {
    cell.progress(6 + PYTHON_PEERS.len() as u64);
    let mut table = Table::new("peers").measured("written in", "").measured("version", "");
    for rate in RATES {
        table = table.measured(rate.replace('_', " "), "GB/s");
    }
    let mut unmeasured = Vec::new();
    match lab::peers::cuda_library("ch04_cuda.cu") {
        Ok(library) => against_cub(cell, &library, &mut table)?,
        Err(missing) => unmeasured.push(format!("CUB was not measured: {missing}.")),
    }
    cell.tick("ch04_triton.py");
    let kernels = [
        ("softmax_03_registers.ptx", kernels::SOFTMAX_03_REGISTERS.ptx_text()),
        ("layer_norm_03_registers.ptx", kernels::LAYER_NORM_03_REGISTERS.ptx_text()),
    ];
    match lab::peers::python_with_files("ch04_triton.py", &kernels) {
        Ok(peer) => {
            for ratio in [
                "softmax_over_triton",
                "softmax_over_compile",
                "layer_norm_over_triton",
                "layer_norm_over_compile",
            ] {
                if let Some(value) = peer.number(ratio) {
                    cell.measured(ratio, value, "");
                }
            }
            for (name, suffix) in [("Triton", "triton"), ("torch.compile", "compile")] {
                table.push(row![
                    name,
                    peer.word(&format!("{suffix}_version")),
                    "",
                    "",
                    "",
                    peer.number(&format!("softmax_{suffix}")),
                    peer.number(&format!("layer_norm_{suffix}")),
                ]);
            }
            table.push(row![
                "Rust, this chapter, beside Triton",
                "",
                "",
                "",
                "",
                peer.number("softmax_ours"),
                peer.number("layer_norm_ours"),
            ]);
        }
        Err(missing) => {
            unmeasured.push(format!("Triton and torch.compile were not measured: {missing}."));
        }
    }
    for script in PYTHON_PEERS {
        cell.tick(script);
        match lab::peers::python(script) {
            Ok(peer) => {
                let mut entries = Vec::from(row![peer.word("peer"), peer.word("version")]);
                entries.extend(RATES.map(|rate| match peer.number(rate) {
                    Some(rate) => rate.into(),
                    None => "".into(),
                }));
                table.push(entries);
            }
            Err(missing) => unmeasured.push(format!("{script} was not measured: {missing}.")),
        }
    }
    if !table.rows.is_empty() {
        cell.table(table);
    }
    if !unmeasured.is_empty() {
        cell.measured_text(unmeasured.join("\n"));
    }
    Ok(())
}

type Temporary = unsafe extern "C" fn(usize) -> usize;
/// Temporary memory and its bytes, input, output, elements, stream.
type Cub =
    unsafe extern "C" fn(CUdeviceptr, usize, CUdeviceptr, CUdeviceptr, usize, CUstream) -> i32;

/// Ours and CUB's in turn, so that both meet the same clocks and the same neighbours.
fn against_cub(cell: &mut Cell, library: &lab::peers::Library, table: &mut Table) -> Result<()> {
    // SAFETY: tests/peers/ch04_cuda.cu defines these functions with these parameters.
    let (temporary, sum, scan, histogram) = unsafe {
        (
            library.function::<Temporary>("peer_temporary_bytes")?,
            library.function::<Cub>("peer_sum")?,
            library.function::<Cub>("peer_scan")?,
            library.function::<Cub>("peer_histogram")?,
        )
    };
    let device = Device::open()?;
    let n = cell.largest(cell.parameter("largest")?);
    // SAFETY: the function takes a number and allocates nothing.
    let bytes = unsafe { temporary(n) };
    let cub = Peer { device: &device, temporary: device.zeros::<u8>(bytes)?, bytes, n };
    let block = cpu::numbers(n.min(1 << 20), 1);
    let a = device.repeat(&block, n)?;

    cell.tick("sum");
    let summer = Summer::load(&device, sum::Step::OnePass)?;
    let mut scratch = summer.scratch(&device, n)?;
    let mut theirs = device.zeros::<f32>(1)?;
    let sums = timing::device_pairs(
        device.raw_stream(),
        |_| summer.enqueue(&device, &a, n, &mut scratch),
        |_| cub.call("sum", sum, &a, &mut theirs),
    )?;
    let expected = cpu::sum(&block) * (n / block.len()) as f64;
    for found in [summer.result(&device, &scratch)?, device.fetch(&theirs, 1)?[0]] {
        let error = (f64::from(found) - expected).abs() / expected;
        ensure!(error < 1e-5, "a sum of {n} elements is {found}, and should be {expected}");
    }

    cell.tick("scan");
    let scanner = Scanner::load(&device, scan::Step::PublishFirst)?;
    let mut scratch = scanner.scratch(&device, n)?;
    let (mut c, mut theirs) = (device.zeros::<f32>(n)?, device.zeros::<f32>(n)?);
    let scans = timing::device_pairs(
        device.raw_stream(),
        |_| scanner.enqueue(&device, &a, &mut c, n, &mut scratch),
        |_| cub.call("scan", scan, &a, &mut theirs),
    )?;
    let host = device.fetch(&a, n)?;
    for c in [&c, &theirs] {
        let wrong = scan::first_wrong(&host, &device.fetch(c, n)?);
        ensure!(wrong.is_none(), "a scan of {n} elements is wrong from {wrong:?} on");
    }
    drop((a, c, theirs, host));

    let mut histograms = Vec::new();
    let block = cpu::bytes(n.min(1 << 22), 3);
    for (name, block) in [("random", block.clone()), ("constant", vec![77; block.len()])] {
        cell.tick(&format!("histogram, {name}"));
        let a = device.repeat(&block, n)?;
        let counter = Counter::load(&device, histogram::Step::Runs)?;
        let (mut bins, mut theirs) = (device.zeros::<u32>(256)?, device.zeros::<u32>(256)?);
        let pairs = timing::device_pairs(
            device.raw_stream(),
            |_| counter.enqueue(&device, &a, n, &mut bins),
            |_| cub.call("histogram", histogram, &a, &mut theirs),
        )?;
        let times = (n / block.len()).max(1) as u32;
        let expected = cpu::histogram(&block).map(|count| times * count);
        for bins in [&bins, &theirs] {
            ensure!(device.fetch(bins, 256)? == expected, "a histogram of {n} bytes is wrong");
        }
        cell.measured(format!("histogram_{name}_ratio"), pairs.map(|pairs| pairs.speed), "");
        histograms.push(pairs);
    }

    cell.measured("sum_ratio", sums.map(|pairs| pairs.speed), "");
    cell.measured("scan_ratio", scans.map(|pairs| pairs.speed), "");
    if let (Some(sums), Some(scans), Some(Some(histograms))) = (sums, scans, histograms.first()) {
        type Side = fn(&Pairs) -> timing::Timing;
        let ours: Side = |pairs| pairs.ours;
        let theirs: Side = |pairs| pairs.theirs;
        let sides = [("Rust, this chapter", "", ours), ("CUB", library.version(), theirs)];
        for (language, version, side) in sides {
            table.push(row![
                language,
                version,
                side(&sums).gigabytes_per_second(size_of::<f32>() * n),
                side(histograms).gigabytes_per_second(n),
                side(&scans).gigabytes_per_second(2 * size_of::<f32>() * n),
                "",
                "",
            ]);
        }
    }
    Ok(())
}

/// What every call of CUB needs.
struct Peer<'a> {
    device: &'a Device,
    temporary: CudaSlice<u8>,
    bytes: usize,
    n: usize,
}

impl Peer<'_> {
    fn call<I, O>(
        &self,
        name: &str,
        function: Cub,
        input: &CudaSlice<I>,
        output: &mut CudaSlice<O>,
    ) -> Result<()>
    where
        I: DeviceRepr + ValidAsZeroBits,
        O: DeviceRepr + ValidAsZeroBits,
    {
        let stream = &self.device.stream;
        let (temporary, _temporary) = self.temporary.device_ptr(stream);
        let (input, _input) = input.device_ptr(stream);
        let (output, _output) = output.device_ptr_mut(stream);
        // SAFETY: temporary memory of as many bytes as the library asked for, and input and output
        // for `n` elements, which the guards keep until the call is enqueued; a stream of the same
        // context.
        let code =
            unsafe { function(temporary, self.bytes, input, output, self.n, stream.cu_stream()) };
        ensure!(code == 0, "the C++ peer's {name} returned the CUDA runtime's error {code}");
        Ok(())
    }
}
