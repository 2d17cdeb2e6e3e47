//! Vectors on the device, and whether a sum of two came out right.

use std::sync::Arc;

use anyhow::{Result, ensure};
use cudarc::driver::{CudaSlice, CudaStream};

/// Two vectors of `n` floats and one for their sum. The inputs repeat after [`PERIOD`] elements.
pub struct Vectors {
    /// The first input.
    pub a: CudaSlice<f32>,
    /// The second input.
    pub b: CudaSlice<f32>,
    /// The sum.
    pub c: CudaSlice<f32>,
    pattern: [Vec<f32>; 2],
    stream: Arc<CudaStream>,
}

/// Long enough that no cache holds it by chance.
const PERIOD: usize = 1 << 20;

impl Vectors {
    /// Puts them on the device.
    pub fn new(stream: &Arc<CudaStream>, n: usize) -> Result<Self> {
        let period = n.clamp(1, PERIOD);
        let pattern = [1, 2].map(|seed| numbers(period, seed));
        Ok(Self {
            a: repeated(stream, &pattern[0], n)?,
            b: repeated(stream, &pattern[1], n)?,
            c: stream.alloc_zeros(n.max(1))?,
            pattern,
            stream: stream.clone(),
        })
    }

    /// An error unless `c` is `a + b` in its first `n` elements, bit for bit. Clears `c` afterwards.
    pub fn check(&mut self, n: usize) -> Result<()> {
        let _check = lab::range("check");
        let [a, b] = &self.pattern;
        let sum: Vec<f32> = a.iter().zip(b).map(|(a, b)| a + b).collect();
        for start in (0..n).step_by(sum.len()) {
            let end = n.min(start + sum.len());
            let found = self.stream.clone_dtoh(&self.c.slice(start..end))?;
            ensure!(
                found == sum[..end - start],
                "the sum is wrong between elements {start} and {end}"
            );
        }
        self.stream.memset_zeros(&mut self.c)?;
        Ok(())
    }
}

/// `n` floats on the device that repeat a pattern: copied once, then doubled over there.
fn repeated(stream: &Arc<CudaStream>, pattern: &[f32], n: usize) -> Result<CudaSlice<f32>> {
    let mut memory = stream.alloc_zeros(n.max(1))?;
    let mut done = pattern.len().min(n);
    if done > 0 {
        stream.memcpy_htod(&pattern[..done], &mut memory.slice_mut(..done))?;
    }
    while done < n {
        let more = done.min(n - done);
        let (from, mut to) = memory.split_at_mut(done);
        stream.memcpy_dtod(&from.slice(..more), &mut to.slice_mut(..more))?;
        done += more;
    }
    Ok(memory)
}

/// Numbers between 0 and 1 that are the same in every run (a multiplicative congruential generator;
/// Park and Miller 1988).
pub fn numbers(n: usize, seed: u64) -> Vec<f32> {
    random(seed).take(n).map(|number| number as f32 / MODULUS as f32).collect()
}

/// Whole numbers from 1 below 2^31 - 1, the same in every run.
pub fn random(seed: u64) -> impl Iterator<Item = u64> {
    std::iter::successors(Some(seed * 16_807 % MODULUS), |last| Some(last * 16_807 % MODULUS))
}

const MODULUS: u64 = (1 << 31) - 1;
