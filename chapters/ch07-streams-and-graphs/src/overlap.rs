//! Numbers that go to the device, through a kernel and back, in chunks and in several streams.

use std::ops::Range;
use std::sync::Arc;

use anyhow::{Result, ensure};
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice};
use kernels::work_01_rounds::{Arguments, Kernel};

/// What is done to a chunk, in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// The copy to the device.
    HostToDevice,
    /// The work.
    Kernel,
    /// The copy back.
    DeviceToHost,
}

impl Stage {
    /// All three.
    pub const ALL: [Stage; 3] = [Stage::HostToDevice, Stage::Kernel, Stage::DeviceToHost];

    /// A short name, as profilers write it.
    pub fn name(self) -> &'static str {
        match self {
            Stage::HostToDevice => "h2d",
            Stage::Kernel => "kernel",
            Stage::DeviceToHost => "d2h",
        }
    }
}

/// In which order the stages of the chunks are enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// All stages of a chunk, then the next chunk.
    DepthFirst,
    /// One chunk a stream at a time: the first stage of each, then the second, then the third.
    BreadthFirst,
}

// ANCHOR: order
impl Order {
    /// Stages and chunks in the order in which they are enqueued.
    pub fn steps(self, chunks: usize, streams: usize) -> Vec<(Stage, usize)> {
        let at_once = match self {
            Order::DepthFirst => 1,
            Order::BreadthFirst => streams,
        };
        let groups = (0..chunks).step_by(at_once).map(|first| first..chunks.min(first + at_once));
        let stages = |group: Range<usize>| {
            Stage::ALL
                .into_iter()
                .flat_map(move |stage| group.clone().map(move |chunk| (stage, chunk)))
        };
        groups.flat_map(stages).collect()
    }
}
// ANCHOR_END: order

/// Memory of the host: both kinds hold floats, and the driver copies from and to both.
pub enum Host {
    /// The driver has locked its pages: they stay where they are.
    Pinned(PinnedHostSlice<f32>),
    /// Ordinary memory.
    Pageable(Vec<f32>),
}

impl Host {
    /// `n` floats.
    pub fn new(context: &Arc<CudaContext>, pinned: bool, n: usize) -> Result<Self> {
        if !pinned {
            return Ok(Self::Pageable(vec![0.0; n]));
        }
        // Without flags the CPU's cache serves it, so that reading it is as fast as other memory. The driver gives no memory of
        // no bytes.
        // SAFETY: it is written before it is read, just below, and any bits are a float.
        let mut memory = unsafe { context.alloc_pinned_with_flags(n.max(1), 0)? };
        memory.as_mut_slice()?.fill(0.0);
        Ok(Self::Pinned(memory))
    }

    /// The floats. Whoever reads them waits first for the copies that write them.
    pub fn as_slice(&self) -> Result<&[f32]> {
        Ok(match self {
            Self::Pinned(memory) => memory.as_slice()?,
            Self::Pageable(memory) => memory,
        })
    }

    /// The floats. Whoever writes them waits first for the copies that read them.
    pub fn as_mut_slice(&mut self) -> Result<&mut [f32]> {
        Ok(match self {
            Self::Pinned(memory) => memory.as_mut_slice()?,
            Self::Pageable(memory) => memory,
        })
    }
}

/// The numbers, on both sides, and the streams.
pub struct Pipeline {
    n: usize,
    host_in: Host,
    host_out: Host,
    device_in: CudaSlice<f32>,
    device_out: CudaSlice<f32>,
    kernel: Kernel,
    streams: Vec<Arc<CudaStream>>,
    context: Arc<CudaContext>,
}

impl Pipeline {
    /// `n` numbers, and so many streams. Where `context` tracks events, cudarc orders the work; else the streams do alone.
    pub fn new(context: &Arc<CudaContext>, n: usize, streams: usize, pinned: bool) -> Result<Self> {
        let mut host_in = Host::new(context, pinned, n)?;
        for (i, number) in host_in.as_mut_slice()?.iter_mut().enumerate() {
            *number = number_at(i);
        }
        let stream = context.default_stream();
        let pipeline = Self {
            n,
            host_in,
            host_out: Host::new(context, pinned, n)?,
            device_in: stream.alloc_zeros(n.max(1))?,
            device_out: stream.alloc_zeros(n.max(1))?,
            kernel: Kernel::load(context)?,
            streams: (0..streams).map(|_| context.new_stream()).collect::<Result<_, _>>()?,
            context: context.clone(),
        };
        // The streams do not wait for the default stream, on which the memory was allocated.
        context.synchronize()?;
        Ok(pipeline)
    }

    /// Streams that can be used.
    pub fn streams(&self) -> &[Arc<CudaStream>] {
        &self.streams
    }

    /// Enqueues one stage for all numbers, in the first stream.
    pub fn enqueue_whole(&mut self, stage: Stage, rounds: u32) -> Result<()> {
        self.enqueue_on(0, stage, rounds)
    }

    /// Enqueues one stage for all numbers in one of the streams.
    pub fn enqueue_on(&mut self, stream: usize, stage: Stage, rounds: u32) -> Result<()> {
        let (mut parts, streams) = self.parts(1, rounds)?;
        parts.enqueue(stage, 0, &streams[stream])
    }

    // ANCHOR: there_and_back
    /// Takes all numbers there, through the kernel and back, in `chunks` parts over `streams` streams.
    pub fn there_and_back(
        &mut self,
        order: Order,
        streams: usize,
        chunks: usize,
        rounds: u32,
    ) -> Result<()> {
        let (mut parts, all) = self.parts(chunks, rounds)?;
        for (stage, chunk) in order.steps(chunks, streams) {
            parts.enqueue(stage, chunk, &all[chunk % streams])?;
        }
        self.wait()
    }
    // ANCHOR_END: there_and_back

    // ANCHOR: by_stage
    /// The same with a stream for each stage. A chunk passes from stream to stream, and an event hands it over.
    pub fn by_stage(&mut self, chunks: usize, rounds: u32) -> Result<()> {
        let (mut parts, all) = self.parts(chunks, rounds)?;
        for chunk in 0..chunks {
            for (stage, stream) in Stage::ALL.into_iter().zip(all) {
                parts.enqueue(stage, chunk, stream)?;
                if let Some(next) = all[..Stage::ALL.len()].get(1 + stage as usize) {
                    next.wait(&stream.record_event(None)?)?;
                }
            }
        }
        self.wait()
    }
    // ANCHOR_END: by_stage

    /// The same, calling `around` before and after each stage, for who draws it. Does not wait.
    pub fn observed(
        &mut self,
        streams: usize,
        chunks: usize,
        rounds: u32,
        mut around: impl FnMut(&Arc<CudaStream>, Option<(Stage, usize)>) -> Result<()>,
    ) -> Result<()> {
        let (mut parts, all) = self.parts(chunks, rounds)?;
        for (stage, chunk) in Order::DepthFirst.steps(chunks, streams) {
            let stream = &all[chunk % streams];
            around(stream, None)?;
            parts.enqueue(stage, chunk, stream)?;
            around(stream, Some((stage, chunk)))?;
        }
        Ok(())
    }

    /// Waits for everything that was enqueued.
    pub fn wait(&self) -> Result<()> {
        Ok(self.context.synchronize()?)
    }

    /// An error unless the numbers that came back are right, bit for bit; looks at the ends and at every 4099th. Clears them
    /// afterwards.
    pub fn check(&mut self, rounds: u32) -> Result<()> {
        let _check = lab::range("check");
        self.wait()?;
        let last = self.n.saturating_sub(1);
        let found = self.host_out.as_mut_slice()?;
        for i in (0..self.n).filter(|i| i % 4099 == 0 || *i < 300 || i + 300 > last) {
            let (found, expected) = (found[i], expected(number_at(i), rounds));
            ensure!(
                found.to_bits() == expected.to_bits(),
                "number {i} is {found} and must be {expected}"
            );
        }
        found.fill(0.0);
        Ok(())
    }

    fn parts(&mut self, chunks: usize, rounds: u32) -> Result<(Parts<'_>, &[Arc<CudaStream>])> {
        let parts = Parts {
            n: self.n,
            length: self.n.div_ceil(chunks),
            rounds,
            host_in: self.host_in.as_slice()?,
            host_out: self.host_out.as_mut_slice()?,
            device_in: &mut self.device_in,
            device_out: &mut self.device_out,
            kernel: &self.kernel,
        };
        Ok((parts, &self.streams))
    }

    /// Addresses for a peer that does the same: host in and out, device in and out. The memory lives as long as this.
    pub fn addresses(&mut self) -> Result<[u64; 4]> {
        use cudarc::driver::{DevicePtr, DevicePtrMut};
        let stream = &self.streams[0];
        let host_in = self.host_in.as_slice()?.as_ptr() as u64;
        let host_out = self.host_out.as_mut_slice()?.as_mut_ptr() as u64;
        let (device_in, _in) = self.device_in.device_ptr(stream);
        let (device_out, _out) = self.device_out.device_ptr_mut(stream);
        Ok([host_in, host_out, device_in, device_out])
    }
}

impl Drop for Pipeline {
    /// Copies may be under way, and the memory is about to be freed.
    fn drop(&mut self) {
        self.context.record_err(self.context.synchronize());
    }
}

/// The numbers, cut into parts.
struct Parts<'a> {
    n: usize,
    length: usize,
    rounds: u32,
    host_in: &'a [f32],
    host_out: &'a mut [f32],
    device_in: &'a mut CudaSlice<f32>,
    device_out: &'a mut CudaSlice<f32>,
    kernel: &'a Kernel,
}

impl Parts<'_> {
    // ANCHOR: enqueue
    /// Enqueues one stage of one chunk. The last chunk may be shorter.
    fn enqueue(&mut self, stage: Stage, chunk: usize, stream: &Arc<CudaStream>) -> Result<()> {
        let (from, to) = (chunk * self.length, (chunk + 1) * self.length);
        let part = from.min(self.n)..to.min(self.n);
        if part.is_empty() {
            return Ok(());
        }
        match stage {
            Stage::HostToDevice => {
                let host = &self.host_in[part.clone()];
                stream.memcpy_htod(host, &mut self.device_in.slice_mut(part))?;
            }
            Stage::Kernel => {
                let n = part.len() as u64;
                let input = &self.device_in.slice(part.clone());
                let output = &mut self.device_out.slice_mut(part);
                self.kernel.launch(stream, Arguments { input, output, n, rounds: self.rounds })?;
            }
            Stage::DeviceToHost => {
                let host = &mut self.host_out[part.clone()];
                stream.memcpy_dtoh(&self.device_out.slice(part), host)?;
            }
        }
        Ok(())
    }
    // ANCHOR_END: enqueue
}

/// The same numbers where every chunk has memory of its own, so that cudarc can follow each.
pub struct OwnChunks {
    chunks: Vec<Chunk>,
    kernel: Kernel,
    streams: Vec<Arc<CudaStream>>,
    context: Arc<CudaContext>,
}

struct Chunk {
    n: usize,
    host_in: PinnedHostSlice<f32>,
    host_out: PinnedHostSlice<f32>,
    device_in: CudaSlice<f32>,
    device_out: CudaSlice<f32>,
}

impl OwnChunks {
    /// `n` numbers in `chunks` chunks, and so many streams.
    pub fn new(
        context: &Arc<CudaContext>,
        n: usize,
        streams: usize,
        chunks: usize,
    ) -> Result<Self> {
        let stream = context.default_stream();
        let length = n.div_ceil(chunks);
        let chunk = |chunk: usize| -> Result<Chunk> {
            let first = (chunk * length).min(n);
            let n = length.min(n - first);
            // SAFETY: both are written before they are read.
            let [mut host_in, mut host_out] = unsafe {
                [
                    context.alloc_pinned_with_flags(n.max(1), 0)?,
                    context.alloc_pinned_with_flags(n.max(1), 0)?,
                ]
            };
            for (i, number) in host_in.as_mut_slice()?.iter_mut().enumerate() {
                *number = number_at(first + i);
            }
            host_out.as_mut_slice()?.fill(0.0);
            let (device_in, device_out) =
                (stream.alloc_zeros(n.max(1))?, stream.alloc_zeros(n.max(1))?);
            Ok(Chunk { n, host_in, host_out, device_in, device_out })
        };
        let chunks = (0..chunks).map(chunk).collect::<Result<_>>()?;
        let streams = (0..streams).map(|_| context.new_stream()).collect::<Result<_, _>>()?;
        context.synchronize()?;
        Ok(Self { chunks, kernel: Kernel::load(context)?, streams, context: context.clone() })
    }

    // ANCHOR: own_chunks
    /// Takes all numbers there, through the kernel and back. Nothing in here can go wrong: cudarc waits where it must.
    pub fn there_and_back(&mut self, rounds: u32) -> Result<()> {
        for (number, chunk) in self.chunks.iter_mut().enumerate().filter(|(_, chunk)| chunk.n > 0) {
            let stream = &self.streams[number % self.streams.len()];
            let Chunk { n, host_in, host_out, device_in, device_out } = chunk;
            stream.memcpy_htod(host_in, device_in)?;
            let arguments =
                Arguments { input: device_in, output: device_out, n: *n as u64, rounds };
            self.kernel.launch(stream, arguments)?;
            stream.memcpy_dtoh(device_out, host_out)?;
        }
        Ok(self.context.synchronize()?)
    }
    // ANCHOR_END: own_chunks

    /// As [`Pipeline::check`].
    pub fn check(&mut self, rounds: u32) -> Result<()> {
        let mut first = 0;
        for chunk in &mut self.chunks {
            let found = chunk.host_out.as_mut_slice()?;
            for i in (0..chunk.n).filter(|i| i % 4099 == 0 || i + 1 == chunk.n) {
                let (found, expected) = (found[i], expected(number_at(first + i), rounds));
                ensure!(
                    found == expected,
                    "number {} is {found} and must be {expected}",
                    first + i
                );
            }
            found.fill(0.0);
            first += chunk.n;
        }
        Ok(())
    }
}

/// The number at a place, between 0 and 1: a float holds each of these exactly.
pub fn number_at(i: usize) -> f32 {
    const BITS: u32 = 24;
    let mixed = (i as u32).wrapping_mul(2_654_435_761) >> (32 - BITS);
    mixed as f32 / (1 << BITS) as f32
}

/// What becomes of a number: `mul_add` rounds once, as the kernel's `fmaf` does.
pub fn expected(number: f32, rounds: u32) -> f32 {
    (0..rounds).fold(number, |x, round| x.mul_add(0.999, 0.001 * (round & 3) as f32))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_first_ends_a_chunk_before_the_next_begins() {
        use Stage::{DeviceToHost as D, HostToDevice as H, Kernel as K};
        let depth = [(H, 0), (K, 0), (D, 0), (H, 1), (K, 1), (D, 1), (H, 2), (K, 2), (D, 2)];
        assert_eq!(Order::DepthFirst.steps(3, 2), depth);
        let breadth = [(H, 0), (H, 1), (K, 0), (K, 1), (D, 0), (D, 1), (H, 2), (K, 2), (D, 2)];
        assert_eq!(Order::BreadthFirst.steps(3, 2), breadth);
    }
}
