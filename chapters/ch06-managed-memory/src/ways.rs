//! Seven ways for two vectors to the device and for their sum back. Each is a handful of lines; what
//! they have in common, and what is timed of each, is the trait.

use std::sync::Arc;

use anyhow::Result;
use cudarc::driver::sys;
use cudarc::driver::{CudaContext, CudaSlice, CudaStream, PinnedHostSlice, UnifiedSlice};
use kernels::vector_add_03_float4::{Arguments, Kernel};

use crate::cpu;
use crate::managed::{self, Advice, Mapped, Place};

/// Which way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// Explicit copies from and to a `Vec`.
    Pageable,
    /// Explicit copies from and to pinned memory.
    Pinned,
    /// No copies: the kernel works in pinned memory, over the link.
    ZeroCopy,
    /// Managed memory, and nothing said about it.
    Cold,
    /// Managed memory that is on the device already, from the launch before.
    Resident,
    /// Managed memory, prefetched to the device and back.
    Prefetched,
    /// Managed memory that is advised to stay with the CPU and be reached from there.
    Advised,
}

impl Way {
    /// In the order of the story.
    pub const ALL: [Way; 7] = [
        Way::Pageable,
        Way::Pinned,
        Way::ZeroCopy,
        Way::Cold,
        Way::Resident,
        Way::Prefetched,
        Way::Advised,
    ];

    /// What the book calls it.
    pub fn name(self) -> &'static str {
        match self {
            Way::Pageable => "pageable",
            Way::Pinned => "pinned",
            Way::ZeroCopy => "zero-copy",
            Way::Cold => "cold",
            Way::Resident => "resident",
            Way::Prefetched => "prefetched",
            Way::Advised => "advised",
        }
    }

    /// Memory for `n` floats in each vector, the kernel, and what this way does with them.
    ///
    /// # Errors
    /// When memory cannot be had, or the kernel not be loaded.
    pub fn open(self, context: &Arc<CudaContext>, n: usize) -> Result<Box<dyn Trip>> {
        let stream = context.default_stream();
        let kernel = Kernel::load(context)?;
        Ok(match self {
            Way::Pageable => Box::new(Pageable {
                host: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
                device: device_vectors(&stream, n)?,
                stream,
                kernel,
            }),
            Way::Pinned => Box::new(Pinned {
                host: [pinned(context, n)?, pinned(context, n)?, pinned(context, n)?],
                device: device_vectors(&stream, n)?,
                stream,
                kernel,
            }),
            Way::ZeroCopy => Box::new(ZeroCopy {
                memory: [
                    Mapped::allocate(&stream, n)?,
                    Mapped::allocate(&stream, n)?,
                    Mapped::allocate(&stream, n)?,
                ],
                stream,
                kernel,
            }),
            Way::Cold | Way::Resident | Way::Prefetched | Way::Advised => {
                let memory = [
                    managed::allocate(context, n)?,
                    managed::allocate(context, n)?,
                    managed::allocate(context, n)?,
                ];
                if self == Way::Advised {
                    for vector in &memory {
                        managed::advise(vector, Advice::Preferred(Place::Host), &stream)?;
                        managed::advise(vector, Advice::AccessedBy(Place::Device), &stream)?;
                    }
                }
                Box::new(Managed { memory, stream, kernel, way: self })
            }
        })
    }
}

// ANCHOR: trip
/// A way from two vectors that the CPU has written to a sum that the CPU has read.
pub trait Trip {
    /// The CPU has the inputs. This part is not timed: somebody always writes them.
    fn prepare(&mut self) -> Result<()>;
    /// Brings the inputs to the device, as far as that is this program's business.
    fn bring(&mut self) -> Result<()>;
    /// Adds, and waits for the end.
    fn add(&mut self) -> Result<()>;
    /// Brings the sum to where the CPU reads it, and reads a float of each page.
    fn fetch(&mut self) -> Result<()>;
    /// Calls `look` with the two inputs, to be written, and the sum, to be read.
    fn with(&mut self, look: &mut Look<'_>) -> Result<()>;
}
// ANCHOR_END: trip

/// What the CPU does with the inputs, which it may write, and the sum.
pub type Look<'a> = dyn FnMut(&mut [f32], &mut [f32], &[f32]) + 'a;

/// `a + b` by one of the ways, for any length: what the tests call.
///
/// # Errors
/// As [`Way::open`], and when the driver refuses something.
pub fn add(way: Way, context: &Arc<CudaContext>, a: &[f32], b: &[f32]) -> Result<Vec<f32>> {
    let n = a.len();
    anyhow::ensure!(b.len() == n, "adding {n} floats to {}: the lengths must be equal", b.len());
    if n == 0 {
        return Ok(Vec::new()); // There is no memory of no bytes.
    }
    let mut trip = way.open(context, n)?;
    fill(&mut *trip, a, b)?;
    trip.prepare()?;
    trip.bring()?;
    trip.add()?;
    trip.fetch()?;
    let mut c = Vec::new();
    trip.with(&mut |_, _, sum| c = sum.to_vec())?;
    Ok(c)
}

/// Writes the inputs.
pub(crate) fn fill(trip: &mut dyn Trip, a: &[f32], b: &[f32]) -> Result<()> {
    trip.with(&mut |own_a, own_b, _| {
        own_a.copy_from_slice(a);
        own_b.copy_from_slice(b);
    })
}

fn device_vectors(stream: &Arc<CudaStream>, n: usize) -> Result<[CudaSlice<f32>; 3]> {
    Ok([stream.alloc_zeros(n)?, stream.alloc_zeros(n)?, stream.alloc_zeros(n)?])
}

/// Pinned memory that the CPU reads as fast as any other: cudarc's `alloc_pinned` gives memory that
/// is only good to be written.
pub(crate) fn pinned(context: &Arc<CudaContext>, n: usize) -> Result<PinnedHostSlice<f32>> {
    // SAFETY: every pattern of bits is a float.
    Ok(unsafe { context.alloc_pinned_with_flags(n, sys::CU_MEMHOSTALLOC_PORTABLE)? })
}

struct Pageable {
    host: [Vec<f32>; 3],
    device: [CudaSlice<f32>; 3],
    stream: Arc<CudaStream>,
    kernel: Kernel,
}

impl Trip for Pageable {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    // ANCHOR: pageable
    fn bring(&mut self) -> Result<()> {
        let ([a, b, _], [device_a, device_b, _]) = (&self.host, &mut self.device);
        self.stream.memcpy_htod(a, device_a)?;
        self.stream.memcpy_htod(b, device_b)?;
        Ok(self.stream.synchronize()?)
    }

    fn add(&mut self) -> Result<()> {
        let [a, b, c] = &mut self.device;
        let n = a.len() as u64;
        self.kernel.launch(&self.stream, Arguments { a, b, c, n })?;
        Ok(self.stream.synchronize()?)
    }

    fn fetch(&mut self) -> Result<()> {
        self.stream.memcpy_dtoh(&self.device[2], &mut self.host[2])?;
        self.stream.synchronize()?;
        std::hint::black_box(cpu::read_pages(&self.host[2]));
        Ok(())
    }
    // ANCHOR_END: pageable

    fn with(&mut self, look: &mut Look<'_>) -> Result<()> {
        let [a, b, c] = &mut self.host;
        look(a, b, c);
        Ok(())
    }
}

struct Pinned {
    host: [PinnedHostSlice<f32>; 3],
    device: [CudaSlice<f32>; 3],
    stream: Arc<CudaStream>,
    kernel: Kernel,
}

impl Trip for Pinned {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn bring(&mut self) -> Result<()> {
        let ([a, b, _], [device_a, device_b, _]) = (&self.host, &mut self.device);
        self.stream.memcpy_htod(a, device_a)?;
        self.stream.memcpy_htod(b, device_b)?;
        Ok(self.stream.synchronize()?)
    }

    fn add(&mut self) -> Result<()> {
        let [a, b, c] = &mut self.device;
        let n = a.len() as u64;
        self.kernel.launch(&self.stream, Arguments { a, b, c, n })?;
        Ok(self.stream.synchronize()?)
    }

    fn fetch(&mut self) -> Result<()> {
        self.stream.memcpy_dtoh(&self.device[2], &mut self.host[2])?;
        self.stream.synchronize()?;
        std::hint::black_box(cpu::read_pages(self.host[2].as_slice()?));
        Ok(())
    }

    fn with(&mut self, look: &mut Look<'_>) -> Result<()> {
        let [a, b, c] = &mut self.host;
        look(a.as_mut_slice()?, b.as_mut_slice()?, c.as_slice()?);
        Ok(())
    }
}

struct ZeroCopy {
    memory: [Mapped; 3],
    stream: Arc<CudaStream>,
    kernel: Kernel,
}

impl Trip for ZeroCopy {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn bring(&mut self) -> Result<()> {
        Ok(())
    }

    fn add(&mut self) -> Result<()> {
        let [a, b, c] = &mut self.memory;
        let n = a.len() as u64;
        self.kernel.launch(&self.stream, Arguments { a: &**a, b: &**b, c: &mut **c, n })?;
        Ok(self.stream.synchronize()?)
    }

    fn fetch(&mut self) -> Result<()> {
        std::hint::black_box(cpu::read_pages(self.memory[2].as_slice()?));
        Ok(())
    }

    fn with(&mut self, look: &mut Look<'_>) -> Result<()> {
        let [a, b, c] = &mut self.memory;
        look(a.as_mut_slice()?, b.as_mut_slice()?, c.as_slice()?);
        Ok(())
    }
}

struct Managed {
    memory: [UnifiedSlice<f32>; 3],
    stream: Arc<CudaStream>,
    kernel: Kernel,
    way: Way,
}

impl Trip for Managed {
    fn prepare(&mut self) -> Result<()> {
        if self.way == Way::Resident {
            return self.add(); // The launch before.
        }
        let [a, b, c] = &mut self.memory;
        cpu::write_pages(a.as_mut_slice()?);
        cpu::write_pages(b.as_mut_slice()?);
        std::hint::black_box(cpu::read_pages(c.as_slice()?));
        Ok(())
    }

    // ANCHOR: managed
    fn bring(&mut self) -> Result<()> {
        if self.way == Way::Prefetched {
            for vector in &self.memory {
                managed::prefetch(vector, Place::Device, &self.stream)?;
            }
            self.stream.synchronize()?;
        }
        Ok(())
    }

    fn add(&mut self) -> Result<()> {
        let [a, b, c] = &mut self.memory;
        let n = a.len() as u64;
        self.kernel.launch(&self.stream, Arguments { a, b, c, n })?;
        Ok(self.stream.synchronize()?)
    }

    fn fetch(&mut self) -> Result<()> {
        let [_, _, c] = &self.memory;
        if self.way == Way::Prefetched {
            managed::prefetch(c, Place::Host, &self.stream)?;
            self.stream.synchronize()?;
        }
        std::hint::black_box(cpu::read_pages(c.as_slice()?));
        Ok(())
    }
    // ANCHOR_END: managed

    fn with(&mut self, look: &mut Look<'_>) -> Result<()> {
        let [a, b, c] = &mut self.memory;
        look(a.as_mut_slice()?, b.as_mut_slice()?, c.as_slice()?);
        Ok(())
    }
}
