//! `cuMemcpy*`: copies of one, two and three dimensions, between host and devices.

use std::{ffi::c_void, sync::Arc};

use super::{
    abi::{In, driver},
    allocations, capture,
    error::{CUresult, Result},
    host,
    order::{self, Use},
    queue::{Pace, QUICK_BYTES},
    state::CUcontext,
    stream::{self, CUstream, Stream},
    work::{self, Work},
};
use crate::memory::{DEFINED, Held, Kind};

/// A copy: `depth` slices of `height` rows of `width` bytes.
#[derive(Clone)]
pub(crate) struct Copy {
    from: Side,
    to: Side,
    width: u64,
    height: u64,
    depth: u64,
    /// What the program gave, where it gave a structure.
    given: Option<Box<Memcpy3D>>,
    /// The bytes to copy, read when the copy was given: they are in memory of the host that the program may change.
    staged: Option<Arc<[u8]>>,
}

/// Where the bytes of a side are.
enum Place {
    /// In an allocation.
    Held(Held),
    /// In other memory of the host.
    Host(*mut u8),
}

/// One side of a copy.
#[derive(Clone, Copy)]
struct Side {
    /// The first byte.
    address: u64,
    /// It must be in an allocation; otherwise it may be any memory of the host.
    device: bool,
    /// Bytes from a row to the next.
    pitch: u64,
    /// Bytes from a slice to the next.
    slice: u64,
}

/// `CUDA_MEMCPY2D`
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Memcpy2D {
    from_x: usize,
    from_y: usize,
    from_type: u32,
    from_host: usize,
    from_device: u64,
    from_array: usize,
    from_pitch: usize,
    to_x: usize,
    to_y: usize,
    to_type: u32,
    to_host: usize,
    to_device: u64,
    to_array: usize,
    to_pitch: usize,
    width: usize,
    height: usize,
}

/// `CUDA_MEMCPY3D`, and `CUDA_MEMCPY3D_PEER`, which has contexts where the other has unused pointers.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct Memcpy3D {
    from: Memcpy3DSide,
    to: Memcpy3DSide,
    width: usize,
    height: usize,
    depth: usize,
}

#[repr(C)]
#[derive(Clone, Copy)]
struct Memcpy3DSide {
    x: usize,
    y: usize,
    z: usize,
    level: usize,
    memory_type: u32,
    host: usize,
    device: u64,
    array: usize,
    context: usize,
    pitch: usize,
    height: usize,
}

/// As many bytes of memory that is not pinned an H200 takes before a copy is due; there may be more.
const STAGED_BYTES: u64 = 1 << 20;
const TYPE_HOST: u32 = 1;
const TYPE_DEVICE: u32 = 2;
const TYPE_ARRAY: u32 = 3;
const TYPE_UNIFIED: u32 = 4;

driver! {
    /// Copies between any two places.
    call cuMemcpy 4000, cuMemcpy_ptds 7000 (to: u64, from: u64, bytes: usize) {
        now(Ok(Copy::unified(from, to, bytes)))
    }

    /// Copies between any two places.
    call cuMemcpyAsync 4000, cuMemcpyAsync_ptsz 7000 (to: u64, from: u64, bytes: usize, stream: CUstream) {
        later(Ok(Copy::unified(from, to, bytes)), stream)
    }

    /// Copies from the host to a device.
    call cuMemcpyHtoD_v2 3020, cuMemcpyHtoD_v2_ptds 7000 (to: u64, from: In<c_void>, bytes: usize) {
        now(Copy::flat(Side::host(from), Side::device(to), bytes))
    }

    /// Copies from the host to a device.
    call cuMemcpyHtoDAsync_v2 3020, cuMemcpyHtoDAsync_v2_ptsz 7000 (
        to: u64, from: In<c_void>, bytes: usize, stream: CUstream,
    ) {
        later(Copy::flat(Side::host(from), Side::device(to), bytes), stream)
    }

    /// Copies from a device to the host.
    call cuMemcpyDtoH_v2 3020, cuMemcpyDtoH_v2_ptds 7000 (to: In<c_void>, from: u64, bytes: usize) {
        now(Copy::flat(Side::device(from), Side::host(to), bytes))
    }

    /// Copies from a device to the host.
    call cuMemcpyDtoHAsync_v2 3020, cuMemcpyDtoHAsync_v2_ptsz 7000 (
        to: In<c_void>, from: u64, bytes: usize, stream: CUstream,
    ) {
        later(Copy::flat(Side::device(from), Side::host(to), bytes), stream)
    }

    /// Copies inside of devices.
    call cuMemcpyDtoD_v2 3020, cuMemcpyDtoD_v2_ptds 7000 (to: u64, from: u64, bytes: usize) {
        now(Copy::flat(Side::device(from), Side::device(to), bytes))
    }

    /// Copies inside of devices.
    call cuMemcpyDtoDAsync_v2 3020, cuMemcpyDtoDAsync_v2_ptsz 7000 (to: u64, from: u64, bytes: usize, stream: CUstream) {
        later(Copy::flat(Side::device(from), Side::device(to), bytes), stream)
    }

    /// Copies from one context's memory to another's.
    call cuMemcpyPeer 4000, cuMemcpyPeer_ptds 7000 (
        to: u64, to_context: CUcontext, from: u64, from_context: CUcontext, bytes: usize,
    ) {
        check_peers(to_context, from_context)?;
        now(Copy::flat(Side::device(from), Side::device(to), bytes))
    }

    /// Copies from one context's memory to another's.
    call cuMemcpyPeerAsync 4000, cuMemcpyPeerAsync_ptsz 7000 (
        to: u64, to_context: CUcontext, from: u64, from_context: CUcontext, bytes: usize, stream: CUstream,
    ) {
        check_peers(to_context, from_context)?;
        later(Copy::flat(Side::device(from), Side::device(to), bytes), stream)
    }

    /// Copies a rectangle.
    call cuMemcpy2D_v2 3020, cuMemcpy2D_v2_ptds 7000, cuMemcpy2DUnaligned_v2 3020, cuMemcpy2DUnaligned_v2_ptds 7000 (
        copy: In<Memcpy2D>,
    ) {
        now(Copy::rectangle(&copy.get()?))
    }

    /// Copies a rectangle.
    call cuMemcpy2DAsync_v2 3020, cuMemcpy2DAsync_v2_ptsz 7000 (copy: In<Memcpy2D>, stream: CUstream) {
        later(Copy::rectangle(&copy.get()?), stream)
    }

    /// Copies a box.
    call cuMemcpy3D_v2 3020, cuMemcpy3D_v2_ptds 7000, cuMemcpy3DPeer 4000, cuMemcpy3DPeer_ptds 7000 (
        copy: In<Memcpy3D>,
    ) {
        now(Copy::box_shaped(&copy.get()?))
    }

    /// Copies a box.
    call cuMemcpy3DAsync_v2 3020, cuMemcpy3DAsync_v2_ptsz 7000, cuMemcpy3DPeerAsync 4000, cuMemcpy3DPeerAsync_ptsz 7000 (
        copy: In<Memcpy3D>, stream: CUstream,
    ) {
        later(Copy::box_shaped(&copy.get()?), stream)
    }
}

impl Side {
    fn device(address: u64) -> Result<Side> {
        Ok(Side { address, device: true, pitch: 0, slice: 0 })
    }

    fn host<T>(pointer: In<T>) -> Result<Side> {
        Ok(Side { address: pointer.pointer() as u64, device: false, pitch: 0, slice: 0 })
    }

    /// The side of a copy with rows and slices.
    fn pitched(side: &Memcpy3DSide, width: usize, height: usize, depth: usize) -> Result<Side> {
        let pitch = if side.pitch == 0 { width } else { side.pitch };
        let rows = if side.height == 0 { height } else { side.height };
        let row_end = side.x.checked_add(width).ok_or(CUresult::INVALID_VALUE)?;
        // A pitch means nothing where there is one row, as a height where there is one slice.
        if (height > 1 || depth > 1) && row_end > pitch || depth > 1 && side.y.saturating_add(height) > rows {
            return Err(CUresult::INVALID_VALUE);
        }
        let (address, device) = match side.memory_type {
            TYPE_HOST => (side.host as u64, false),
            TYPE_DEVICE => (side.device, true),
            TYPE_UNIFIED => (side.device, false),
            TYPE_ARRAY => return Err(CUresult::NOT_SUPPORTED),
            _ => return Err(CUresult::INVALID_VALUE),
        };
        if address == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let slice = pitch.checked_mul(rows).ok_or(CUresult::INVALID_VALUE)?;
        let offset = side
            .z
            .checked_mul(slice)
            .and_then(|offset| offset.checked_add(side.y.checked_mul(pitch)?)?.checked_add(side.x))
            .ok_or(CUresult::INVALID_VALUE)?;
        let address = address.checked_add(offset as u64).ok_or(CUresult::INVALID_VALUE)?;
        Ok(Side { address, device, pitch: pitch as u64, slice: slice as u64 })
    }

    /// Bytes from the first to the last.
    fn extent(&self, copy: &Copy) -> Option<u64> {
        let rows = (copy.height - 1).checked_mul(self.pitch)?;
        let slices = (copy.depth - 1).checked_mul(self.slice)?;
        rows.checked_add(slices)?.checked_add(copy.width)
    }

    /// Fails where the bytes are nowhere, as far as anybody knows their bounds.
    fn check(&self, copy: &Copy, writes: bool) -> Result {
        let extent = self.extent(copy).ok_or(CUresult::INVALID_VALUE)?;
        if self.device || allocations::find(self.address).is_some() {
            return allocations::host_pointer(self.address, extent).map(drop);
        }
        self.check_host(extent, writes)
    }

    fn check_host(&self, extent: u64, writes: bool) -> Result {
        let usable = if writes { host::is_writable } else { host::is_readable };
        if usable(self.address as usize, extent as usize) { Ok(()) } else { Err(CUresult::INVALID_VALUE) }
    }

    /// Where the bytes are, now that they are copied.
    fn resolve(&self, copy: &Copy, writes: bool) -> Result<Place> {
        let extent = self.extent(copy).ok_or(CUresult::INVALID_VALUE)?;
        match allocations::hold(self.address, extent) {
            Ok(held) => Ok(Place::Held(held)),
            Err(error) if self.device => Err(error),
            Err(_) => {
                self.check_host(extent, writes)?;
                Ok(Place::Host(std::ptr::with_exposed_provenance_mut(self.address as usize)))
            }
        }
    }

    /// What memory it is in; nothing for memory of the host that is not pinned.
    fn kind(&self) -> Option<Kind> {
        allocations::find(self.address).map(|allocation| allocation.kind)
    }
}

impl Place {
    fn pointer(&self) -> *mut u8 {
        match self {
            Place::Held(held) => held.pointer,
            Place::Host(pointer) => *pointer,
        }
    }

    /// Where what is known of the bytes is found: nothing, if they count as written in any case.
    fn known(&self) -> Option<*mut u8> {
        match self {
            Place::Held(held) => held.shadow,
            Place::Host(_) => None,
        }
    }
}

impl Copy {
    /// A copy between any two places.
    pub(crate) fn unified(from: u64, to: u64, bytes: usize) -> Copy {
        let side = |address| Side { address, device: false, pitch: 0, slice: 0 };
        Copy::of(side(from), side(to), bytes)
    }

    fn flat(from: Result<Side>, to: Result<Side>, bytes: usize) -> Result<Copy> {
        Ok(Copy::of(from?, to?, bytes))
    }

    fn of(from: Side, to: Side, bytes: usize) -> Copy {
        Copy { from, to, width: bytes as u64, height: 1, depth: 1, given: None, staged: None }
    }

    /// A copy of `CUDA_MEMCPY2D`.
    fn rectangle(copy: &Memcpy2D) -> Result<Copy> {
        let side = |x, y, memory_type, host, device, array, pitch| Memcpy3DSide {
            x,
            y,
            z: 0,
            level: 0,
            memory_type,
            host,
            device,
            array,
            context: 0,
            pitch,
            height: 0,
        };
        Copy::box_shaped(&Memcpy3D {
            from: side(
                copy.from_x,
                copy.from_y,
                copy.from_type,
                copy.from_host,
                copy.from_device,
                copy.from_array,
                copy.from_pitch,
            ),
            to: side(
                copy.to_x,
                copy.to_y,
                copy.to_type,
                copy.to_host,
                copy.to_device,
                copy.to_array,
                copy.to_pitch,
            ),
            width: copy.width,
            height: copy.height,
            depth: 1,
        })
    }

    /// A copy of `CUDA_MEMCPY3D`.
    pub(crate) fn box_shaped(copy: &Memcpy3D) -> Result<Copy> {
        let &Memcpy3D { from, to, width, height, depth } = copy;
        if from.level != 0 || to.level != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        if width == 0 || height == 0 || depth == 0 {
            return Ok(Copy::NOTHING);
        }
        Ok(Copy {
            from: Side::pitched(&from, width, height, depth)?,
            to: Side::pitched(&to, width, height, depth)?,
            width: width as u64,
            height: height as u64,
            depth: depth as u64,
            given: Some(Box::new(*copy)),
            staged: None,
        })
    }

    /// The copy as a structure, the program's own where it gave one.
    pub(crate) fn params(&self) -> Memcpy3D {
        if let Some(given) = &self.given {
            return **given;
        }
        let side = |side: &Side| Memcpy3DSide {
            x: 0,
            y: 0,
            z: 0,
            level: 0,
            memory_type: if side.device { TYPE_DEVICE } else { TYPE_HOST },
            host: if side.device { 0 } else { side.address as usize },
            device: if side.device { side.address } else { 0 },
            array: 0,
            context: 0,
            pitch: self.width as usize,
            height: 1,
        };
        Memcpy3D {
            from: side(&self.from),
            to: side(&self.to),
            width: self.width as usize,
            height: self.height as usize,
            depth: self.depth as usize,
        }
    }

    const NOTHING: Copy = {
        let side = Side { address: 0, device: false, pitch: 0, slice: 0 };
        Copy { from: side, to: side, width: 0, height: 0, depth: 0, given: None, staged: None }
    };

    /// Fails for what is not in an allocation, and for null pointers.
    pub(crate) fn check(&self) -> Result {
        if self.width == 0 {
            return Ok(());
        }
        self.from.check(self, false)?;
        self.to.check(self, true)
    }

    /// Whether it is over at once.
    pub(crate) fn pace(&self) -> Pace {
        let bytes = self.width.saturating_mul(self.height).saturating_mul(self.depth);
        if bytes <= QUICK_BYTES { Pace::Quick } else { Pace::Long }
    }

    /// Reads the bytes now, where they are few and in memory that the program may change. It was checked.
    fn stage(&mut self) {
        let is_small = self.height == 1 && self.depth == 1 && self.width <= STAGED_BYTES;
        if is_small && self.from.kind().is_none() && self.to.kind() == Some(Kind::Device) {
            let pointer = std::ptr::with_exposed_provenance(self.from.address as usize);
            // SAFETY: The bytes were found readable, and the caller of the driver leaves them alone during the call.
            let bytes: &[u8] = unsafe { std::slice::from_raw_parts(pointer, self.width as usize) };
            self.staged = Some(bytes.into());
        }
    }

    /// Whether the host waits for a copy without `Async` in its name: not between memory of devices.
    fn is_waited_for(&self) -> bool {
        let is_device =
            |side: &Side| matches!(side.kind(), Some(Kind::Device | Kind::Global | Kind::Constant));
        !is_device(&self.from) || !is_device(&self.to)
    }

    /// Whether the host waits for a copy with `Async` in its name: it does where memory of the host is not pinned, unless
    /// the bytes are read already, and between two places of the host.
    fn is_waited_for_anyway(&self) -> bool {
        let is_host =
            |kind| !matches!(kind, Some(Kind::Device | Kind::Global | Kind::Constant | Kind::Managed));
        let (from, to) = (self.from.kind(), self.to.kind());
        self.width > 0
            && self.staged.is_none()
            && (from.is_none() || to.is_none() || is_host(from) && is_host(to))
    }

    /// The bytes that it reads and writes, each from the first to the last.
    pub(crate) fn uses(&self) -> Vec<Use> {
        let used = |side: &Side, writes| {
            let extent = side.extent(self).unwrap_or(0);
            Use { bytes: side.address..side.address.saturating_add(extent), writes }
        };
        if self.width == 0 { Vec::new() } else { vec![used(&self.from, false), used(&self.to, true)] }
    }

    /// Copies.
    pub(crate) fn run(&self) -> Result {
        if self.width == 0 {
            return Ok(());
        }
        let from = match &self.staged {
            Some(bytes) => Place::Host(bytes.as_ptr().cast_mut()),
            None => self.from.resolve(self, false)?,
        };
        let to = self.to.resolve(self, true)?;
        let (known_from, known_to) = (from.known(), to.known());
        let (from, to) = (from.pointer(), to.pointer());
        for slice in 0..self.depth {
            for row in 0..self.height {
                let from_offset = (slice * self.from.slice + row * self.from.pitch) as usize;
                let to_offset = (slice * self.to.slice + row * self.to.pitch) as usize;
                // SAFETY: Memory of devices is held up to the last row; for other memory of the host, the caller promises
                // it. Both may overlap, which `copy` allows.
                unsafe { std::ptr::copy(from.add(from_offset), to.add(to_offset), self.width as usize) };
                if let Some(known_to) = known_to {
                    // A copy of bytes that nothing has written leaves such bytes behind: only a kernel that reads them
                    // is at fault.
                    // SAFETY: The shadows have as many bytes as the sides, and may overlap as they may.
                    unsafe {
                        let known_to = known_to.add(to_offset);
                        match known_from {
                            Some(known) => {
                                std::ptr::copy(known.add(from_offset), known_to, self.width as usize);
                            }
                            None => known_to.write_bytes(DEFINED, self.width as usize),
                        }
                    }
                }
            }
        }
        Ok(())
    }
}

fn now(copy: Result<Copy>) -> Result {
    let copy = copy?;
    let stream = stream::default()?;
    capture::refuse_unsafe()?;
    copy.check()?;
    if stream.capture().is_some() {
        return work::submit(&stream, Work::Copy(copy));
    }
    stream.context.check()?;
    let waits = copy.is_waited_for();
    let point = work::give(&stream, Work::Copy(copy))?;
    if waits {
        stream.context.wait(&[point])?;
        order::host_waited_for_stream(&stream);
    }
    Ok(())
}

fn later(copy: Result<Copy>, stream: CUstream) -> Result {
    let copy = copy?;
    let stream = stream::get(stream)?;
    copy.check()?;
    submit(&stream, copy)
}

/// Hands a copy that was checked to a stream.
pub(crate) fn submit(stream: &Arc<Stream>, mut copy: Copy) -> Result {
    if stream.capture().is_some() {
        return work::submit(stream, Work::Copy(copy));
    }
    copy.stage();
    let waits = copy.is_waited_for_anyway();
    stream.context.check()?;
    let point = work::give(stream, Work::Copy(copy))?;
    if waits { stream.context.wait(&[point]) } else { Ok(()) }
}

fn check_peers(to: CUcontext, from: CUcontext) -> Result {
    to.get()?.check()?;
    from.get()?.check()
}
