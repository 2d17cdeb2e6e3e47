//! Device memory: allocations, their bounds, and where the host keeps their bytes.
//!
//! A device address is a real but unreadable address of this process: the whole range is reserved without access, so a
//! host that follows a device pointer crashes, as it does with a real GPU. The bytes lie in a second range, at a fixed
//! distance. Managed and pinned memory is the host's own, at the host's own address.
//!
//! Every allocation starts on a page of its own, behind a page that belongs to nobody, and an address is not given out
//! again before the whole range has been used: most out-of-range accesses and uses after free hit no allocation at all.
//!
//! Where reads of bytes that nothing has written are looked for, a third range at another fixed distance holds one byte
//! for each byte of device memory: [`DEFINED`] once it is written, 0 before. Its pages come with the first use.

use std::{
    collections::{BTreeMap, VecDeque},
    fmt,
    sync::{
        Arc, Mutex, OnceLock, PoisonError, RwLock, Weak,
        atomic::{AtomicU8, Ordering},
    },
};

use crate::heap::Heap;

/// What an allocation is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `cuMemAlloc`: for the device alone.
    Device,
    /// `cuMemAllocManaged`: for host and device, at one address.
    Managed,
    /// `cuMemAllocHost`: the host's, and visible to the device.
    Pinned,
    /// The host's own, made visible by `cuMemHostRegister`.
    Registered,
    /// A module's `.global` variables.
    Global,
    /// A module's `.const` variables, which kernels only read.
    Constant,
}

impl Kind {
    /// The allocation lies at the host's own address.
    pub fn is_host(self) -> bool {
        matches!(self, Kind::Managed | Kind::Pinned | Kind::Registered)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Kind::Device => "device memory",
            Kind::Managed => "managed memory",
            Kind::Pinned => "pinned host memory",
            Kind::Registered => "registered host memory",
            Kind::Global => "module variables",
            Kind::Constant => "constant memory",
        })
    }
}

/// A live or freed allocation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allocation {
    /// The device address of its first byte.
    pub address: u64,
    /// Its size.
    pub bytes: u64,
    /// What it is.
    pub kind: Kind,
    /// Its number, in the order of allocation.
    pub number: u64,
}

impl Allocation {
    /// The device address behind its last byte.
    pub fn end(&self) -> u64 {
        self.address + self.bytes
    }
}

/// Why memory could not be had or given back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Zero bytes, an unknown address, or a range that is in use.
    InvalidValue,
    /// The device is full, or the host has no more.
    OutOfMemory,
    /// The host range is registered already.
    AlreadyRegistered,
    /// The host range is not registered.
    NotRegistered,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Error::InvalidValue => "no allocation of that address and size",
            Error::OutOfMemory => "out of memory",
            Error::AlreadyRegistered => "the host range is registered already",
            Error::NotRegistered => "the host range is not registered",
        })
    }
}

impl std::error::Error for Error {}

/// The memory that one device sees.
pub struct Memory {
    /// First device address of the reserved range.
    base: u64,
    /// Size of the reserved range.
    reserved: u64,
    /// What to add to an address of the reserved range to reach its bytes.
    distance: u64,
    /// What to add to reach what is known of its bytes, or 0 where that is not tracked.
    shadow: u64,
    /// Bytes that may be allocated on the device.
    capacity: u64,
    state: RwLock<State>,
    /// The heap of device code, once a launch wanted one.
    heap: OnceLock<Arc<Heap>>,
}

#[derive(Default)]
struct State {
    /// Live allocations by address.
    live: BTreeMap<u64, Allocation>,
    /// The last freed ones, oldest first, for reports.
    freed: VecDeque<Allocation>,
    /// Offset into the reserved range where the search for room starts.
    cursor: u64,
    /// Bytes of the device in use.
    used: u64,
    /// Allocations made so far.
    count: u64,
    /// What kernels use to check accesses; made anew after a change.
    table: Option<Arc<Table>>,
    /// Every table that somebody may hold.
    tables: Vec<Weak<Table>>,
    /// Memory that was freed while somebody may have been using it, with the tables that name it.
    graveyard: Vec<(Vec<Weak<Table>>, Allocation)>,
}

/// What a launch may use beside its own device's memory, and who wants to know what it used.
#[derive(Clone, Default)]
pub struct View {
    /// Memory of other devices.
    pub peers: Vec<&'static Memory>,
    /// Who wants to know.
    pub footprint: Option<Arc<Footprint>>,
}

/// The bytes that a launch used: in each allocation, from the lowest to the highest, apart for reads and writes.
#[derive(Debug, Default)]
pub struct Footprint(Mutex<BTreeMap<(u64, bool), std::ops::Range<u64>>>);

impl Footprint {
    /// Notes an access to the allocation that starts at `start`.
    pub(crate) fn note(&self, start: u64, bytes: std::ops::Range<u64>, writes: bool) {
        let mut used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let used = used.entry((start, writes)).or_insert(bytes.clone());
        *used = used.start.min(bytes.start)..used.end.max(bytes.end);
    }

    /// The bytes, and whether they were written.
    pub fn uses(&self) -> Vec<(std::ops::Range<u64>, bool)> {
        let used = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        used.iter().map(|(&(_, writes), bytes)| (bytes.clone(), writes)).collect()
    }
}

/// The live allocations at one moment, for a launch.
#[derive(Debug, Default)]
pub(crate) struct Table {
    /// Sorted by start, without overlaps.
    pub(crate) ranges: Vec<Range>,
    /// Who wants to know which of them are used.
    pub(crate) footprint: Option<Arc<Footprint>>,
    /// The tables that the ranges are from.
    #[expect(dead_code, reason = "held, so that their memory stays mapped")]
    kept: Vec<Arc<Table>>,
    /// What became of each page of managed memory, an allocation after the other.
    marks: Vec<Box<[AtomicU8]>>,
}

/// Pages of managed memory that a launch touched, counted from the start of their allocation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    /// Pages of 4096 bytes.
    pub pages: u64,
    /// Those that were written.
    pub written: u64,
    /// Pieces of 2 MiB.
    pub blocks: u64,
}

/// An allocation as a kernel sees it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Range {
    /// The first address.
    pub(crate) start: u64,
    /// The address behind the last byte.
    pub(crate) end: u64,
    /// What to add to an address to reach its byte.
    pub(crate) distance: u64,
    /// What to add to an address to reach what is known of its byte, or 0 where all bytes count as written.
    pub(crate) shadow: u64,
    /// Kernels must not write to it.
    pub(crate) constant: bool,
    /// It is managed memory.
    managed: bool,
    /// The address of its first page's mark, or 0 where pages are not counted.
    pub(crate) marks: u64,
}

impl Range {
    /// Marks the page of an address of this range, whose pages are counted.
    #[inline(always)]
    pub(crate) fn touch(&self, address: u64, writes: bool) {
        let mark = self.marks + (address - self.start) / PAGE;
        // SAFETY: `marks` is where the table that this range is from keeps a mark for each of its pages.
        let mark = unsafe { &*std::ptr::with_exposed_provenance::<AtomicU8>(mark as usize) };
        let bits = if writes { TOUCHED | WRITTEN } else { TOUCHED };
        // Most pages are marked already, and reading is cheaper.
        if mark.load(Ordering::Relaxed) & bits != bits {
            mark.fetch_or(bits, Ordering::Relaxed);
        }
    }
}

impl Table {
    /// The pages of managed memory that were touched.
    pub(crate) fn touched(&self) -> Touched {
        let mut touched = Touched::default();
        for block in self.marks.iter().flat_map(|marks| marks.chunks((BLOCK / PAGE) as usize)) {
            let count =
                |bit| block.iter().filter(|mark| mark.load(Ordering::Relaxed) & bit != 0).count() as u64;
            let pages = count(TOUCHED);
            touched.pages += pages;
            touched.written += count(WRITTEN);
            touched.blocks += u64::from(pages > 0);
        }
        touched
    }

    /// Gives every range of managed memory a mark for each of its pages.
    fn count_pages(&mut self) {
        for range in self.ranges.iter_mut().filter(|range| range.managed) {
            let pages = (range.end - range.start).div_ceil(PAGE);
            let marks: Box<[AtomicU8]> = (0..pages).map(|_| AtomicU8::new(0)).collect();
            range.marks = marks.as_ptr().expose_provenance() as u64;
            self.marks.push(marks);
        }
    }

    /// The range that holds `address`.
    pub(crate) fn find(&self, address: u64) -> Option<Range> {
        let after = self.ranges.partition_point(|range| range.start <= address);
        let range = *self.ranges[..after].last()?;
        (address < range.end).then_some(range)
    }
}

/// Bytes of an allocation, which stay mapped as long as this is held, also when they are freed.
pub(crate) struct Held {
    /// Where the host finds them.
    pub(crate) pointer: *mut u8,
    /// Where what is known of them is found: nothing, if they count as written in any case.
    pub(crate) shadow: Option<*mut u8>,
    _table: Arc<Table>,
}

/// What the shadow of a byte holds once the byte is written.
pub(crate) const DEFINED: u8 = 0xFF;

const PAGE: u64 = 4096;
/// A GPU's driver handles managed memory in pieces of at most this size.
const BLOCK: u64 = 2 << 20;
/// The bits of a page's mark.
const TOUCHED: u8 = 1;
const WRITTEN: u8 = 2;
/// Freed allocations that reports can still name.
const FREED: usize = 4096;
/// Fresh device memory holds this byte, as a float -1.5e-19 or an integer that nobody expects.
const PATTERN: u8 = 0xA0;
/// How much of each end of an allocation is filled with it; beyond that only zeros are sure to be absent at the ends.
const PATTERN_BYTES: u64 = 64 << 20;

impl Memory {
    /// Memory of a device that has `capacity` bytes.
    ///
    /// # Errors
    ///
    /// When the host cannot even reserve addresses.
    pub fn new(capacity: u64) -> Result<Memory, Error> {
        let mut reserved = capacity.next_power_of_two().saturating_mul(4).clamp(1 << 32, 1 << 42);
        loop {
            // Containers may limit addresses too, so ask for less until it is granted.
            match (reserve(reserved), reserve(reserved)) {
                (Some(base), Some(bytes)) => {
                    return Ok(Memory {
                        base,
                        reserved,
                        distance: bytes.wrapping_sub(base),
                        shadow: 0,
                        capacity,
                        state: RwLock::default(),
                        heap: OnceLock::new(),
                    });
                }
                (base, bytes) => {
                    for start in base.into_iter().chain(bytes) {
                        release(start, reserved);
                    }
                }
            }
            reserved /= 2;
            if reserved < 1 << 28 {
                return Err(Error::OutOfMemory);
            }
        }
    }

    /// The heap of device code. The first call says how large it is.
    ///
    /// # Errors
    ///
    /// There is not so much memory.
    pub(crate) fn heap(&self, bytes: u64) -> Result<Arc<Heap>, Error> {
        if let Some(heap) = self.heap.get() {
            return Ok(Arc::clone(heap));
        }
        let bytes = bytes.max(PAGE);
        let address = self.allocate(bytes, Kind::Global)?;
        let heap = Arc::new(Heap::new(address, bytes));
        if self.heap.set(Arc::clone(&heap)).is_err() {
            // Another launch was faster.
            self.free(address)?;
        }
        Ok(Arc::clone(self.heap.get().unwrap_or(&heap)))
    }

    /// Tracks which bytes of device memory have been written, from now on. Nothing may be allocated yet.
    ///
    /// # Errors
    ///
    /// [`Error::OutOfMemory`] when the host cannot reserve addresses for it.
    pub fn track_writes(&mut self) -> Result<(), Error> {
        if self.shadow == 0 {
            self.shadow = reserve(self.reserved).ok_or(Error::OutOfMemory)?.wrapping_sub(self.base);
        }
        Ok(())
    }

    /// Allocates `bytes` on a page of their own.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for zero bytes, [`Error::OutOfMemory`] when the device or the host is full.
    pub fn allocate(&self, bytes: u64, kind: Kind) -> Result<u64, Error> {
        if bytes == 0 || kind == Kind::Registered {
            return Err(Error::InvalidValue);
        }
        let mut state = self.write();
        let size = bytes.checked_next_multiple_of(PAGE).ok_or(Error::OutOfMemory)?;
        if kind != Kind::Pinned && size > self.capacity.saturating_sub(state.used) {
            return Err(Error::OutOfMemory);
        }
        let address = if kind.is_host() {
            map(None, size).ok_or(Error::OutOfMemory)?
        } else {
            let address = self.room(&mut state, size).ok_or(Error::OutOfMemory)?;
            map(Some(address.wrapping_add(self.distance)), size).ok_or(Error::OutOfMemory)?;
            if self.is_tracked(kind) {
                map(Some(address.wrapping_add(self.shadow)), size).ok_or(Error::OutOfMemory)?;
            }
            address
        };
        if kind != Kind::Pinned {
            state.used += size;
        }
        state.count += 1;
        let allocation = Allocation { address, bytes, kind, number: state.count };
        if !matches!(kind, Kind::Global | Kind::Constant) {
            self.fill(&allocation);
        }
        state.live.insert(address, allocation);
        state.table = None;
        Ok(address)
    }

    /// Frees the allocation that starts at `address`.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] when none starts there.
    pub fn free(&self, address: u64) -> Result<(), Error> {
        let mut state = self.write();
        match state.live.get(&address) {
            Some(allocation) if allocation.kind != Kind::Registered => {}
            _ => return Err(Error::InvalidValue),
        }
        self.remove(&mut state, address);
        Ok(())
    }

    /// Makes `bytes` of the host at `pointer` visible to kernels, at the same address.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] for an empty range, [`Error::AlreadyRegistered`] when a part of it is visible already.
    ///
    /// # Safety
    ///
    /// - The range must stay mapped and writable until [`Memory::unregister_host`].
    pub unsafe fn register_host(&self, pointer: *mut u8, bytes: u64) -> Result<(), Error> {
        let address = pointer as u64;
        let end = address.checked_add(bytes).ok_or(Error::InvalidValue)?;
        if address == 0 || bytes == 0 {
            return Err(Error::InvalidValue);
        }
        let mut state = self.write();
        if state.live.range(..end).next_back().is_some_and(|(_, before)| before.end() > address) {
            return Err(Error::AlreadyRegistered);
        }
        state.count += 1;
        let number = state.count;
        state.live.insert(address, Allocation { address, bytes, kind: Kind::Registered, number });
        state.table = None;
        Ok(())
    }

    /// Takes a registered range away from kernels.
    ///
    /// # Errors
    ///
    /// [`Error::NotRegistered`] when no registered range starts there.
    pub fn unregister_host(&self, pointer: *mut u8) -> Result<(), Error> {
        let mut state = self.write();
        match state.live.get(&(pointer as u64)) {
            Some(allocation) if allocation.kind == Kind::Registered => {}
            _ => return Err(Error::NotRegistered),
        }
        self.remove(&mut state, pointer as u64);
        Ok(())
    }

    /// The live allocation that holds `address`.
    pub fn find(&self, address: u64) -> Option<Allocation> {
        let state = self.read();
        let (_, allocation) = state.live.range(..=address).next_back()?;
        (address < allocation.end()).then_some(*allocation)
    }

    /// The last freed allocation that held `address`.
    pub fn find_freed(&self, address: u64) -> Option<Allocation> {
        let held = |allocation: &&Allocation| (allocation.address..allocation.end()).contains(&address);
        self.read().freed.iter().rev().find(held).copied()
    }

    /// The live allocation closest to `address`.
    pub fn nearest(&self, address: u64) -> Option<Allocation> {
        let state = self.read();
        let before = state.live.range(..=address).next_back().map(|(_, allocation)| *allocation);
        let after = state.live.range(address..).next().map(|(_, allocation)| *allocation);
        match (before, after) {
            (Some(before), Some(after)) => {
                let missed = address.saturating_sub(before.end() - 1);
                Some(if missed <= after.address - address { before } else { after })
            }
            (before, after) => before.or(after),
        }
    }

    /// Where the host finds the `bytes` at device address `address`. They stay there until freed.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidValue`] when they are not all in one allocation.
    pub fn host_pointer(&self, address: u64, bytes: u64) -> Result<*mut u8, Error> {
        let allocation = self.find(address).ok_or(Error::InvalidValue)?;
        if bytes > allocation.end() - address {
            return Err(Error::InvalidValue);
        }
        Ok(self.pointer(&allocation, address))
    }

    /// Notes that the host has written the `bytes` at a device address. Those of host memory count as written anyway.
    pub fn define(&self, address: u64, bytes: u64) {
        if let Some(shadow) = self.shadow_pointer(address, bytes) {
            // SAFETY: `shadow_pointer` vouches for that many bytes.
            unsafe { shadow.write_bytes(DEFINED, bytes as usize) };
        }
    }

    /// Where what is known of `bytes` at `address` is found, if it is tracked. It stays there until they are freed.
    pub(crate) fn shadow_pointer(&self, address: u64, bytes: u64) -> Option<*mut u8> {
        let allocation = self.find(address).filter(|allocation| self.is_tracked(allocation.kind))?;
        let shadow = std::ptr::with_exposed_provenance_mut(address.wrapping_add(self.shadow) as usize);
        (bytes <= allocation.end() - address).then_some(shadow)
    }

    /// Only memory that the host cannot write behind the driver's back is tracked. Variables start as zeros or values.
    fn is_tracked(&self, kind: Kind) -> bool {
        self.shadow != 0 && kind == Kind::Device
    }

    /// Bytes of the device that are free.
    pub fn available(&self) -> u64 {
        self.capacity.saturating_sub(self.read().used)
    }

    /// Bytes that the device has.
    pub fn capacity(&self) -> u64 {
        self.capacity
    }

    /// The live allocations, in the order of their addresses.
    pub fn allocations(&self) -> Vec<Allocation> {
        self.read().live.values().copied().collect()
    }

    /// The bytes at an address, if an allocation has them all.
    pub(crate) fn hold(&self, address: u64, bytes: u64) -> Option<Held> {
        let table = self.own_table();
        let range = table.find(address).filter(|range| bytes <= range.end - address)?;
        let place = |distance| std::ptr::with_exposed_provenance_mut(address.wrapping_add(distance) as usize);
        let shadow = (range.shadow != 0).then(|| place(range.shadow));
        Some(Held { pointer: place(range.distance), shadow, _table: table })
    }

    /// The allocations that a launch may use. Memory that is freed while somebody holds the table stays mapped.
    pub(crate) fn table(&self, view: &View) -> Arc<Table> {
        let own = self.own_table();
        let View { peers, footprint } = view.clone();
        // Each launch counts the pages that it touches itself.
        let managed = own.ranges.iter().any(|range| range.managed);
        if peers.is_empty() && footprint.is_none() && !managed {
            return own;
        }
        let kept: Vec<Arc<Table>> =
            std::iter::once(own).chain(peers.into_iter().map(Memory::own_table)).collect();
        let mut ranges: Vec<Range> = kept.iter().flat_map(|table| &table.ranges).copied().collect();
        // Host memory is in the tables of all devices, at one place.
        ranges.sort_by_key(|range| range.start);
        ranges.dedup_by_key(|range| range.start);
        let mut table = Table { ranges, footprint, kept, marks: Vec::new() };
        table.count_pages();
        Arc::new(table)
    }

    fn own_table(&self) -> Arc<Table> {
        let mut state = self.write();
        if let Some(table) = &state.table {
            return Arc::clone(table);
        }
        let range = |allocation: &Allocation| Range {
            start: allocation.address,
            end: allocation.end(),
            distance: (self.pointer(allocation, allocation.address) as u64).wrapping_sub(allocation.address),
            shadow: if self.is_tracked(allocation.kind) { self.shadow } else { 0 },
            constant: allocation.kind == Kind::Constant,
            managed: allocation.kind == Kind::Managed,
            marks: 0,
        };
        let ranges = state.live.values().map(range).collect();
        let table = Arc::new(Table { ranges, ..Table::default() });
        state.table = Some(Arc::clone(&table));
        state.tables.retain(|table| table.strong_count() > 0);
        state.tables.push(Arc::downgrade(&table));
        table
    }

    fn pointer(&self, allocation: &Allocation, address: u64) -> *mut u8 {
        let distance = if allocation.kind.is_host() { 0 } else { self.distance };
        std::ptr::with_exposed_provenance_mut(address.wrapping_add(distance) as usize)
    }

    /// A free stretch of `size` bytes with a free page behind it.
    fn room(&self, state: &mut State, size: u64) -> Option<u64> {
        let need = size.checked_add(PAGE)?;
        // Large allocations start where CUDA's do, on 2 MiB, so that the host can use large pages.
        let align = if size >= 2 << 20 { 2 << 20 } else { PAGE };
        let end = self.base + self.reserved;
        for start in [state.cursor.max(PAGE), PAGE] {
            let mut address = (self.base + start).next_multiple_of(align);
            for (&next, allocation) in state.live.range(self.base + start..end) {
                if next >= address + need {
                    break;
                }
                address =
                    address.max((allocation.end().next_multiple_of(PAGE) + PAGE).next_multiple_of(align));
            }
            if address.checked_add(need)? <= end {
                state.cursor = address + need - self.base;
                return Some(address);
            }
        }
        None
    }

    fn fill(&self, allocation: &Allocation) {
        let pointer = self.pointer(allocation, allocation.address);
        let head = allocation.bytes.min(PATTERN_BYTES);
        let tail = (allocation.bytes - head).min(1 << 20);
        // SAFETY: the allocation was just mapped for writing with at least `bytes` bytes, and nobody else knows it yet.
        unsafe {
            pointer.write_bytes(PATTERN, head as usize);
            pointer.add((allocation.bytes - tail) as usize).write_bytes(PATTERN, tail as usize);
        }
    }

    fn remove(&self, state: &mut State, address: u64) {
        let Some(allocation) = state.live.remove(&address) else { return };
        if state.freed.len() == FREED {
            state.freed.pop_front();
        }
        state.freed.push_back(allocation);
        if !matches!(allocation.kind, Kind::Pinned | Kind::Registered) {
            state.used -= allocation.bytes.next_multiple_of(PAGE);
        }
        state.table = None;
        state.tables.retain(|table| table.strong_count() > 0);
        state.graveyard.push((state.tables.clone(), allocation));
        // What no launch and no copy holds any more is given back.
        state.graveyard.retain(|(tables, allocation)| {
            let is_held = tables.iter().any(|table| table.strong_count() > 0);
            if !is_held {
                self.unmap(allocation);
            }
            is_held
        });
    }

    fn unmap(&self, allocation: &Allocation) {
        let size = allocation.bytes.next_multiple_of(PAGE);
        match allocation.kind {
            Kind::Registered => {}
            Kind::Managed | Kind::Pinned => release(allocation.address, size),
            // Freed device memory loses its bytes and its access, and its addresses stay reserved.
            Kind::Device | Kind::Global | Kind::Constant => {
                let _ = map_with(Some(allocation.address.wrapping_add(self.distance)), size, libc::PROT_NONE);
                if self.is_tracked(allocation.kind) {
                    let _ =
                        map_with(Some(allocation.address.wrapping_add(self.shadow)), size, libc::PROT_NONE);
                }
            }
        }
    }

    fn read(&self) -> std::sync::RwLockReadGuard<'_, State> {
        self.state.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> std::sync::RwLockWriteGuard<'_, State> {
        self.state.write().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        let dead = state.graveyard.iter().map(|(_, allocation)| allocation);
        for allocation in state.live.values().chain(dead).filter(|allocation| allocation.kind.is_host()) {
            if allocation.kind != Kind::Registered {
                release(allocation.address, allocation.bytes.next_multiple_of(PAGE));
            }
        }
        release(self.base, self.reserved);
        release(self.base.wrapping_add(self.distance), self.reserved);
        if self.shadow != 0 {
            release(self.base.wrapping_add(self.shadow), self.reserved);
        }
    }
}

/// Reserves addresses without access.
fn reserve(bytes: u64) -> Option<u64> {
    map_with(None, bytes, libc::PROT_NONE)
}

/// Bytes that the host can still give, as Linux estimates them.
pub(crate) fn host_available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

/// Maps fresh memory, at `at` if given, which must be inside a reserved range.
fn map(at: Option<u64>, bytes: u64) -> Option<u64> {
    map_with(at, bytes, libc::PROT_READ | libc::PROT_WRITE)
}

fn map_with(at: Option<u64>, bytes: u64, protection: libc::c_int) -> Option<u64> {
    let fixed = if at.is_some() { libc::MAP_FIXED } else { 0 };
    let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | fixed;
    let hint = std::ptr::without_provenance_mut(at.unwrap_or(0) as usize);
    // SAFETY: without `at` the kernel chooses free addresses; with it, the caller owns that part of a reserved range.
    let pointer = unsafe { libc::mmap(hint, bytes as usize, protection, flags, -1, 0) };
    (pointer != libc::MAP_FAILED).then(|| pointer.expose_provenance() as u64)
}

fn release(address: u64, bytes: u64) {
    // SAFETY: the range was mapped by `map_with`, and no table that a launch holds names it any more.
    unsafe { libc::munmap(std::ptr::with_exposed_provenance_mut(address as usize), bytes as usize) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memory() -> Memory {
        Memory::new(1 << 30).unwrap()
    }

    #[test]
    fn allocations_have_bounds() {
        let memory = memory();
        let a = memory.allocate(1000, Kind::Device).unwrap();
        let b = memory.allocate(1, Kind::Device).unwrap();
        assert_eq!(memory.find(a + 999).map(|allocation| allocation.bytes), Some(1000));
        assert_eq!(memory.find(a + 1000), None);
        assert_eq!(memory.nearest(a + 1000).map(|allocation| allocation.address), Some(a));
        assert_eq!(memory.nearest(b - 1).map(|allocation| allocation.address), Some(b));
        assert!(memory.host_pointer(a, 1000).is_ok());
        assert_eq!(memory.host_pointer(a, 1001), Err(Error::InvalidValue));
        assert_eq!(memory.allocate(0, Kind::Device), Err(Error::InvalidValue));
    }

    #[test]
    fn fresh_memory_holds_the_pattern_and_freed_memory_is_named() {
        let memory = memory();
        let a = memory.allocate(5000, Kind::Device).unwrap();
        let pointer = memory.host_pointer(a, 5000).unwrap();
        // SAFETY: `host_pointer` vouches for 5000 bytes.
        let bytes = unsafe { std::slice::from_raw_parts(pointer, 5000) };
        assert!(bytes.iter().all(|&byte| byte == PATTERN));
        memory.free(a).unwrap();
        assert_eq!(memory.free(a), Err(Error::InvalidValue));
        assert_eq!(memory.find(a), None);
        assert_eq!(memory.find_freed(a + 4999).map(|allocation| allocation.address), Some(a));
        assert_ne!(memory.allocate(5000, Kind::Device), Ok(a), "addresses are not given out again at once");
    }

    #[test]
    fn written_bytes_are_known_until_they_are_freed() {
        let mut memory = memory();
        assert!(memory.shadow_pointer(0, 1).is_none(), "nothing is tracked unless asked for");
        memory.track_writes().unwrap();
        let a = memory.allocate(64, Kind::Device).unwrap();
        let shadow = memory.shadow_pointer(a, 64).unwrap();
        memory.define(a + 8, 4);
        // SAFETY: `shadow_pointer` vouches for 64 bytes.
        let known = unsafe { std::slice::from_raw_parts(shadow, 64) };
        assert!(known.iter().enumerate().all(|(at, &byte)| (byte == DEFINED) == (8..12).contains(&at)));
        assert!(memory.shadow_pointer(a, 65).is_none());
        let managed = memory.allocate(64, Kind::Managed).unwrap();
        assert!(memory.shadow_pointer(managed, 1).is_none(), "the host writes managed memory unseen");
        assert_eq!(memory.table(&View::default()).find(managed).unwrap().shadow, 0);
        memory.free(a).unwrap();
        assert!(memory.shadow_pointer(a, 1).is_none());
    }

    #[test]
    fn device_memory_is_limited_and_given_back() {
        let memory = Memory::new(1 << 20).unwrap();
        let a = memory.allocate(1 << 20, Kind::Device).unwrap();
        assert_eq!(memory.allocate(1, Kind::Device), Err(Error::OutOfMemory));
        assert!(memory.allocate(1, Kind::Pinned).is_ok(), "pinned memory is the host's");
        memory.free(a).unwrap();
        assert_eq!(memory.available(), 1 << 20);
    }

    #[test]
    fn addresses_wrap_around() {
        let memory = Memory::new(1 << 30).unwrap();
        let kept = memory.allocate(100 << 20, Kind::Device).unwrap();
        let rounds = memory.reserved / (900 << 20) + 2;
        for _ in 0..rounds {
            let a = memory.allocate(900 << 20, Kind::Device).unwrap();
            assert!(a >= kept + (100 << 20) || a + (900 << 20) <= kept);
            memory.free(a).unwrap();
        }
    }

    #[test]
    fn host_memory_is_at_its_own_address() {
        let memory = memory();
        let a = memory.allocate(64, Kind::Managed).unwrap();
        assert_eq!(memory.host_pointer(a, 64).unwrap() as u64, a);
        let mut own = [0u8; 64];
        // SAFETY: `own` outlives its registration.
        unsafe {
            memory.register_host(own.as_mut_ptr(), 64).unwrap();
            assert_eq!(memory.register_host(own.as_mut_ptr(), 1), Err(Error::AlreadyRegistered));
        }
        assert_eq!(memory.free(own.as_ptr() as u64), Err(Error::InvalidValue));
        memory.unregister_host(own.as_mut_ptr()).unwrap();
        assert_eq!(memory.unregister_host(own.as_mut_ptr()), Err(Error::NotRegistered));
    }

    #[test]
    fn each_table_counts_the_pages_of_managed_memory_anew() {
        let memory = memory();
        let device = memory.allocate(64, Kind::Device).unwrap();
        let a = memory.allocate(BLOCK + PAGE, Kind::Managed).unwrap();
        let table = memory.table(&View::default());
        assert_eq!(table.find(device).unwrap().marks, 0);
        let range = table.find(a).unwrap();
        range.touch(a + 5, false);
        range.touch(a + PAGE - 1, false);
        range.touch(a + PAGE, true);
        assert_eq!(table.touched(), Touched { pages: 2, written: 1, blocks: 1 });
        range.touch(a + BLOCK + PAGE - 1, false);
        assert_eq!(table.touched(), Touched { pages: 3, written: 1, blocks: 2 });
        assert_eq!(memory.table(&View::default()).touched(), Touched::default());
        memory.free(a).unwrap();
        assert!(memory.table(&View::default()).marks.is_empty());
    }

    #[test]
    fn a_table_keeps_freed_memory_mapped() {
        let memory = memory();
        let a = memory.allocate(64, Kind::Device).unwrap();
        let table = memory.table(&View::default());
        memory.free(a).unwrap();
        let range = table.find(a + 63).unwrap();
        let byte = std::ptr::with_exposed_provenance::<u8>((a + range.distance) as usize);
        // SAFETY: the table is held, so the bytes are still mapped.
        assert_eq!(unsafe { byte.read() }, PATTERN);
        assert!(memory.table(&View::default()).find(a).is_none());
    }
}
