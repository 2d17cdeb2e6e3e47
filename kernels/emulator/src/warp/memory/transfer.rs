//! Moving bytes between registers and memory.

use std::marker::PhantomData;

use super::{
    Layout,
    address::{Address, Window, addresses, in_a_row, repeat_active},
    shared::settle,
    space::{Generic, Local, Reach, Shared, outside},
};
use crate::warp::{Body, Context, Word, context::FULL};
use crate::{
    fault::{Access, Space},
    module::program::{Flow, Ins},
};

/// Reads what an address of the host holds.
#[inline(always)]
unsafe fn read<T: Copy>(address: u64) -> T {
    // SAFETY: the caller has it from `Reach::reach`, which checked bounds and alignment of a multiple of `T`. Other
    // threads of the grid may write there at the same time: then the program races, and gets some value, as on a GPU.
    unsafe { std::ptr::with_exposed_provenance::<T>(address as usize).read() }
}

/// Writes to an address of the host.
#[inline(always)]
unsafe fn write<T: Copy>(address: u64, value: T) {
    // SAFETY: as for `read`; the allocation is writable.
    unsafe { std::ptr::with_exposed_provenance_mut::<T>(address as usize).write(value) }
}

/// Loads `N` whole words of type `W` a lane.
pub(super) struct Load<A, W, const N: usize, S>(PhantomData<(A, W, S)>);

impl<A: Address, W: Word, const N: usize, S: Reach> Body for Load<A, W, N, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        if context.mask == 0 {
            return Flow::Next;
        }
        // SAFETY: `reach` vouches for `N` words at each address; the decoder chose the rows.
        unsafe {
            let size = size_of::<W>() as u64 * N as u64;
            if N == 1
                && let Some(first) = in_a_row::<A>(context, ins, size)
                && let Some(first) = S::reach_row(context, ins, first, size, Access::Load)
            {
                poll(context, ins);
                context.set_row::<W>(ins.d, read(first));
                return Flow::Next;
            }
            let mut addresses = addresses::<A>(context, ins);
            if let Err(flow) = S::reach(context, ins, &mut addresses, size, Access::Load) {
                return flow;
            }
            poll(context, ins);
            if N == 1 {
                let first = addresses[0];
                if are_neighbours(&addresses, size) {
                    let values: [W; 32] = read(first);
                    context.set_row(ins.d, values);
                    return Flow::Next;
                }
            }
            let rows = [ins.d, ins.b, ins.c, ins.e];
            let mut values = [[W::default(); 32]; N];
            for lane in 0..32 {
                let words: [W; N] = read(addresses[lane]);
                for word in 0..N {
                    values[word][lane] = words[word];
                }
            }
            for word in 0..N {
                context.set_row(rows[word], values[word]);
            }
        }
        Flow::Next
    }
}

/// Loads one word of type `W` a lane from shared memory.
pub(super) struct LoadShared<A, W>(PhantomData<(A, W)>);

impl<A: Address, W: Word> Body for LoadShared<A, W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of these widths, and every address read from is found to be inside.
        unsafe {
            let size = size_of::<W>() as u32;
            let row: [A; 32] = context.row(ins.a);
            let mut offsets = [0u32; 32];
            let mut bits = 0;
            for lane in 0..32 {
                let address = row[lane].widen().wrapping_add(ins.x);
                bits |= address;
                offsets[lane] = address as u32;
            }
            let (mut least, mut greatest) = (u32::MAX, 0);
            for &offset in &offsets {
                least = least.min(offset);
                greatest = greatest.max(offset);
            }
            // Offsets by 32-bit registers wrap around, those by 64-bit ones must be small.
            let inside = (A::ROW == 128 || bits >> 32 == 0)
                && greatest < context.shared_bytes
                && context.shared_bytes - greatest >= size;
            let one_pass = size == 4 && greatest - least < 128 || least == greatest;
            let plain = context.mask == FULL && bits as u32 & (size - 1) == 0 && ins.f >> 6 & 1 == 0;
            if !(inside && one_pass && plain)
                || !context.race.is_null()
                    && !context.race().is_none_or(|race| race.quick_load(&offsets, size / 4, ins.site()))
            {
                return Load::<A, W, 1, Shared>::run(context, ins);
            }
            // Neighbouring words are in different banks, and lanes share a word.
            context.counters.shared_load.instructions += 1;
            context.counters.shared_load.wavefronts += 1;
            let base = context.shared;
            if least == greatest {
                let value = base.add(least as usize).cast::<W>().read();
                context.set_row(ins.d, [value; 32]);
            } else {
                let mut values = [W::default(); 32];
                for lane in 0..32 {
                    values[lane] = base.add(offsets[lane] as usize).cast::<W>().read();
                }
                context.set_row(ins.d, values);
            }
        }
        Flow::Next
    }
}

/// Loads a parameter of the kernel, the same for all lanes.
pub(super) struct LoadParam<W>(PhantomData<W>);

impl<W: Word> Body for LoadParam<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        let size = size_of::<W>() as u64;
        if ins.x >= u64::from(context.param_bytes) || u64::from(context.param_bytes) - ins.x < size {
            let size_of_all = context.param_bytes.into();
            return outside(context, &[ins.x; 32], size, Access::Load, Space::Parameter, size_of_all);
        }
        // SAFETY: the word lies inside the parameters; the decoder chose a row of this width.
        unsafe {
            let value = context.params.add(ins.x as usize).cast::<W>().read_unaligned();
            context.set_row(ins.d, [value; 32]);
        }
        Flow::Next
    }
}

/// Stores `N` whole words of type `W` a lane.
pub(super) struct Store<A, W, const N: usize, S>(PhantomData<(A, W, S)>);

impl<A: Address, W: Word, const N: usize, S: Reach> Body for Store<A, W, N, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        if context.mask == 0 {
            return Flow::Next;
        }
        // SAFETY: `reach` vouches for `N` words at each address; the decoder chose the rows.
        unsafe {
            let size = size_of::<W>() as u64 * N as u64;
            if N == 1
                && let Some(first) = in_a_row::<A>(context, ins, size)
                && let Some(first) = S::reach_row(context, ins, first, size, Access::Store)
            {
                write(first, context.row::<W>(ins.d));
                return Flow::Next;
            }
            let mut addresses = addresses::<A>(context, ins);
            if let Err(flow) = S::reach(context, ins, &mut addresses, size, Access::Store) {
                return flow;
            }
            if N == 1 && context.mask == FULL {
                let first = addresses[0];
                if are_neighbours(&addresses, size) {
                    write(first, context.row::<W>(ins.d));
                    return if S::WATCHED { settle(context, ins) } else { Flow::Next };
                }
            }
            let rows = [ins.d, ins.b, ins.c, ins.e];
            let mut values = [[W::default(); 32]; N];
            for word in 0..N {
                values[word] = context.row(rows[word]);
            }
            for lane in 0..32 {
                if context.mask >> lane & 1 != 0 {
                    let mut words = [W::default(); N];
                    for word in 0..N {
                        words[word] = values[word][lane];
                    }
                    write(addresses[lane], words);
                }
            }
        }
        if S::WATCHED { settle(context, ins) } else { Flow::Next }
    }
}

/// Each lane's bytes lie right behind those of the lane before it.
#[inline(always)]
fn are_neighbours(addresses: &[u64; 32], size: u64) -> bool {
    let expected = (0..32).map(|lane| addresses[0] + lane * size);
    addresses.iter().zip(expected).fold(true, |all, (&address, expected)| all & (address == expected))
}

#[inline(always)]
fn poll(context: &mut Context, ins: &Ins) {
    if ins.f >> 6 & 1 != 0 {
        wait_a_little(context);
        // Whoever looks at a flag in global memory has met those who set one.
        if let Some(race) = context.race() {
            race.acquire_global();
        }
    }
}

/// What an operation that may wait for another thread takes from its strand's turn, in instructions.
const POLL: i64 = 4096;

/// Notes an operation that may wait for another thread: loops around it have short turns.
#[inline(always)]
pub(crate) fn wait_a_little(context: &mut Context) {
    context.polls += 1;
    context.slice -= POLL;
}

/// Loads of every layout.
pub(super) struct LoadAny<A, S>(PhantomData<(A, S)>);

impl<A: Address, S: Reach> Body for LoadAny<A, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the caller's promise.
        unsafe { each_space::<A, S>(context, ins, Access::Load) }
    }
}

/// Stores of every layout.
pub(super) struct StoreAny<A, S>(PhantomData<(A, S)>);

impl<A: Address, S: Reach> Body for StoreAny<A, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the caller's promise.
        unsafe { each_space::<A, S>(context, ins, Access::Store) }
    }
}

/// Transfers the lanes of each space by themselves, if there may be several.
#[inline(always)]
unsafe fn each_space<A: Address, S: Reach>(context: &mut Context, ins: &Ins, access: Access) -> Flow {
    if context.mask == 0 {
        return Flow::Next;
    }
    // SAFETY: the caller's promise.
    unsafe {
        let whole = addresses::<A>(context, ins);
        if S::STRIDE != 0 {
            return any_layout::<S>(context, ins, whole, access, S::STRIDE);
        }
        let mask = context.mask;
        let mut left = mask;
        while left != 0 {
            context.set_mask(left);
            let (window, lanes) = Generic::split(context, &whole);
            context.set_mask(lanes);
            let mut addresses = whole;
            repeat_active(&mut addresses, lanes);
            let stride = if window == Window::Local { Local::STRIDE } else { 4 };
            let flow = any_layout::<S>(context, ins, addresses, access, stride);
            if flow != Flow::Next {
                return flow;
            }
            left &= !lanes;
        }
        context.set_mask(mask);
        Flow::Next
    }
}

#[inline(always)]
unsafe fn any_layout<S: Reach>(
    context: &mut Context,
    ins: &Ins,
    mut addresses: [u64; 32],
    access: Access,
    stride: u64,
) -> Flow {
    let (layout, _) = Layout::unpack(ins.f);
    // SAFETY: `reach` vouches for the bytes of all elements at each address; the decoder chose the rows.
    unsafe {
        let size = u64::from(layout.bytes * layout.count);
        if let Err(flow) = S::reach(context, ins, &mut addresses, size, access) {
            return flow;
        }
        poll(context, ins);
        let rows = [ins.d, ins.b, ins.c, ins.e];
        for element in 0..layout.count {
            let row = rows[element as usize];
            let offset = u64::from(element * layout.bytes);
            let place = |address: u64| {
                if stride == 4 { address + offset } else { address + (offset >> 2) * stride + (offset & 3) }
            };
            if access == Access::Load {
                let mut values = [0u64; 32];
                for lane in 0..32 {
                    values[lane] = read_element(place(addresses[lane]), layout, stride);
                }
                if layout.long {
                    context.set_row::<u64>(row, values);
                } else {
                    context.set_row::<u32>(row, values.map(|value| value as u32));
                }
            } else {
                let values: [u64; 32] =
                    if layout.long { context.row(row) } else { context.row::<u32>(row).map(u64::from) };
                for lane in 0..32 {
                    if context.mask >> lane & 1 != 0 {
                        write_element(place(addresses[lane]), values[lane], layout.bytes, stride);
                    }
                }
            }
        }
    }
    if S::WATCHED && access != Access::Load { settle(context, ins) } else { Flow::Next }
}

#[inline(always)]
unsafe fn read_element(address: u64, layout: Layout, stride: u64) -> u64 {
    // SAFETY: the caller's promise.
    unsafe {
        match (layout.bytes, layout.signed) {
            (1, false) => read::<u8>(address).into(),
            // A signed byte or half fills the register; a 16-bit one keeps its low half.
            (1, true) => narrow(i64::from(read::<i8>(address)), layout.long),
            (2, false) => read::<u16>(address).into(),
            (2, true) => narrow(i64::from(read::<i16>(address)), layout.long),
            (4, false) => read::<u32>(address).into(),
            (4, true) => narrow(i64::from(read::<i32>(address)), layout.long),
            _ if stride == 4 => read::<u64>(address),
            _ => u64::from(read::<u32>(address)) | u64::from(read::<u32>(address + stride)) << 32,
        }
    }
}

#[inline(always)]
fn narrow(value: i64, long: bool) -> u64 {
    if long { value as u64 } else { u64::from(value as u32) }
}

#[inline(always)]
unsafe fn write_element(address: u64, value: u64, bytes: u32, stride: u64) {
    // SAFETY: the caller's promise.
    unsafe {
        match bytes {
            1 => write(address, value as u8),
            2 => write(address, value as u16),
            4 => write(address, value as u32),
            _ if stride == 4 => write(address, value),
            _ => {
                write(address, value as u32);
                write(address + stride, (value >> 32) as u32);
            }
        }
    }
}
