//! Loads and stores of every space, their bounds, and what they cost.
//!
//! Global memory: an access must lie inside one allocation; each instruction remembers the allocation that it found
//! last. A request's sectors are the distinct 32-byte pieces that its lanes touch. Local memory lies word by word, the
//! lanes side by side, as on a GPU, so that a warp's accesses to one variable are neighbours. Shared memory has 32 banks
//! of 4 bytes.

use std::marker::PhantomData;

use super::{Body, Context, Word, context::FULL, has, last_type};
use crate::{
    fault::{Access, Cause, Near, Space},
    memory::Range,
    module::{
        Base, Class, Decoded, Decoder, Register,
        program::{Flow, Ins, NONE},
        type_bytes,
    },
    ptx::ast::{self, Instruction, Operand},
};

/// Where generic addresses of shared memory start, above all that a process can map.
pub(crate) const GENERIC_SHARED: u64 = 0x0001_0000_0000_0000;
/// Of local memory.
pub(crate) const GENERIC_LOCAL: u64 = 0x0001_0001_0000_0000;
/// Of a kernel's parameters.
pub(crate) const GENERIC_PARAM: u64 = 0x0001_0002_0000_0000;
/// Every window is this large.
pub(crate) const WINDOW: u64 = 1 << 32;

/// Decodes `ld`, `st` and what needs no action here.
pub(crate) fn decode(decoder: &mut Decoder<'_>, instruction: &Instruction) -> Decoded {
    match instruction.opcode.as_str() {
        "ld" | "ldu" => transfer(decoder, instruction, Access::Load),
        "st" => transfer(decoder, instruction, Access::Store),
        // Memory is coherent here and accesses are executed in order: only the host's threads must be fenced.
        "membar" | "fence" => Ok(decoder.plain(fence)),
        _ => Ok(decoder.plain(nothing)),
    }
}

unsafe fn fence(_: &mut Context, _: &Ins) -> Flow {
    std::sync::atomic::fence(std::sync::atomic::Ordering::SeqCst);
    Flow::Next
}

unsafe fn nothing(_: &mut Context, _: &Ins) -> Flow {
    Flow::Next
}

/// The space that an instruction names, or `None` for a generic address.
pub(crate) fn space_of(instruction: &Instruction) -> Option<ast::Space> {
    instruction.modifiers.iter().find_map(|word| match word.split("::").next()? {
        "global" => Some(ast::Space::Global),
        "shared" => Some(ast::Space::Shared),
        "local" => Some(ast::Space::Local),
        "const" => Some(ast::Space::Const),
        "param" => Some(ast::Space::Param),
        _ => None,
    })
}

/// Where an instruction finds its lanes' addresses, and in which space they are.
pub(crate) struct Place {
    /// The row of addresses; [`NONE`] for addresses that the frame fixes.
    pub(crate) row: u32,
    pub(crate) long: bool,
    /// What to add.
    pub(crate) offset: u64,
    pub(crate) space: Target,
}

/// The space that an access goes to, as far as it is known before it executes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    Global,
    Constant,
    Shared,
    Local,
    /// The running function's own local memory, at the same offset in each lane.
    Frame,
    /// A kernel's parameters, at the same offset in each lane.
    Params,
    /// A kernel's parameters, by address.
    Param,
    Generic,
}

/// Resolves the address operand of an instruction.
pub(crate) fn place(
    decoder: &mut Decoder<'_>,
    instruction: &Instruction,
    operand: &Operand,
) -> Decoded<Place> {
    let (base, offset) = decoder.address(operand)?;
    let space = space_of(instruction);
    Ok(match base {
        Base::Register(Register { class, slot }) => {
            let space = match space {
                None => Target::Generic,
                Some(ast::Space::Global) => Target::Global,
                Some(ast::Space::Const) => Target::Constant,
                Some(ast::Space::Shared) => Target::Shared,
                Some(ast::Space::Param) if decoder.is_entry() => Target::Param,
                Some(_) => Target::Local,
            };
            Place { row: slot, long: class == Class::Long, offset: offset as u64, space }
        }
        Base::Fixed(space, address) => {
            let space = match space {
                ast::Space::Shared => Target::Shared,
                ast::Space::Const => Target::Constant,
                _ => Target::Global,
            };
            let long = space != Target::Shared;
            let row = decoder.constant(long, address);
            Place { row, long, offset: offset as u64, space }
        }
        Base::Frame(at) => Place {
            row: NONE,
            long: false,
            offset: u64::from(at).wrapping_add_signed(offset),
            space: Target::Frame,
        },
        Base::Param(at) => Place {
            row: NONE,
            long: false,
            offset: u64::from(at).wrapping_add_signed(offset),
            space: Target::Params,
        },
    })
}

/// The layout of an access, packed into an instruction's `f`.
#[derive(Clone, Copy)]
struct Layout {
    /// Bytes of an element: 1, 2, 4 or 8.
    bytes: u32,
    /// Elements: 1, 2 or 4.
    count: u32,
    /// Elements are sign-extended.
    signed: bool,
    /// Registers have 64 bits.
    long: bool,
    /// The access may wait for another thread.
    polls: bool,
}

impl Layout {
    fn pack(self, cache: u32) -> u32 {
        self.bytes.trailing_zeros()
            | self.count.trailing_zeros() << 2
            | u32::from(self.signed) << 4
            | u32::from(self.long) << 5
            | u32::from(self.polls) << 6
            | cache << 8
    }

    #[inline(always)]
    fn unpack(packed: u32) -> (Layout, u32) {
        let layout = Layout {
            bytes: 1 << (packed & 3),
            count: 1 << (packed >> 2 & 3),
            signed: packed >> 4 & 1 != 0,
            long: packed >> 5 & 1 != 0,
            polls: packed >> 6 & 1 != 0,
        };
        (layout, packed >> 8)
    }
}

fn transfer(decoder: &mut Decoder<'_>, instruction: &Instruction, access: Access) -> Decoded {
    let [first, second] = decoder.operands(instruction)?;
    let (address, value) = if access == Access::Load { (second, first) } else { (first, second) };
    let ty = last_type(instruction);
    let bytes = match type_bytes(ty) {
        Ok(bytes @ ..=8) => bytes as u32,
        _ => return Err(decoder.not_implemented()),
    };
    let values = match value {
        Operand::Vector(values) => &values[..],
        value => std::slice::from_ref(value),
    };
    let count = values.len() as u32;
    let vector = instruction.modifiers.iter().find(|word| matches!(word.as_str(), "v2" | "v4" | "v8"));
    if !matches!(count, 1 | 2 | 4) || vector.is_none() != (count == 1) {
        return Err(decoder.not_implemented());
    }

    let mut rows = [NONE; 4];
    let mut long = None;
    for (row, value) in rows.iter_mut().zip(values) {
        let class = if let Operand::Sink = value {
            None
        } else if access == Access::Load || decoder.register(value).is_ok() {
            Some(decoder.register(value)?)
        } else {
            None
        };
        match class {
            Some(Register { class: Class::Predicate, .. }) => return Err(decoder.not_implemented()),
            Some(register) => {
                let this = register.class == Class::Long;
                if *long.get_or_insert(this) != this || (bytes == 8 && !this) {
                    return Err(decoder.not_implemented());
                }
                *row = register.slot;
            }
            None if access == Access::Load => {}
            None => {
                let this = bytes == 8;
                *row = if this { decoder.source::<u64>(value)? } else { decoder.source::<u32>(value)? };
                if *long.get_or_insert(this) != this {
                    return Err(decoder.not_implemented());
                }
            }
        }
    }
    let long = long.unwrap_or(bytes == 8);
    for row in &mut rows[..count as usize] {
        if *row == NONE {
            *row = decoder.scratch(if long { Class::Long } else { Class::Word(32) });
        }
    }
    let place = place(decoder, instruction, address)?;
    let polls = ["volatile", "acquire", "relaxed", "mmio"].iter().any(|word| has(instruction, word));
    let layout = Layout { bytes, count, signed: ty.starts_with('s') && access == Access::Load, long, polls };
    let cache = decoder.cache();
    let [d, b, c, e] = rows;
    let ins =
        Ins { a: place.row, d, b, c, e, f: layout.pack(cache), x: place.offset, ..decoder.plain(nothing) };
    let load = access == Access::Load;

    // Whole words of registers of their width have steps of their own.
    let plain = if long { bytes == 8 } else { bytes == 4 };
    macro_rules! choose {
        ($a:ty) => {
            match place.space {
                Target::Constant if plain && load && count == 1 => {
                    if long {
                        decoder.ins::<Load<$a, u64, 1, Constant>>()
                    } else {
                        decoder.ins::<Load<$a, u32, 1, Constant>>()
                    }
                }
                Target::Global if plain && load => match (long, count) {
                    (false, 1) => decoder.ins::<Load<$a, u32, 1, Global>>(),
                    (false, 2) => decoder.ins::<Load<$a, u32, 2, Global>>(),
                    (false, _) => decoder.ins::<Load<$a, u32, 4, Global>>(),
                    (true, 1) => decoder.ins::<Load<$a, u64, 1, Global>>(),
                    (true, _) => decoder.ins::<Load<$a, u64, 2, Global>>(),
                },
                Target::Global if plain => match (long, count) {
                    (false, 1) => decoder.ins::<Store<$a, u32, 1, Global>>(),
                    (false, 2) => decoder.ins::<Store<$a, u32, 2, Global>>(),
                    (false, _) => decoder.ins::<Store<$a, u32, 4, Global>>(),
                    (true, 1) => decoder.ins::<Store<$a, u64, 1, Global>>(),
                    (true, _) => decoder.ins::<Store<$a, u64, 2, Global>>(),
                },
                Target::Shared if plain && load => match (long, count) {
                    (false, 1) => decoder.ins::<Load<$a, u32, 1, Shared>>(),
                    (false, 2) => decoder.ins::<Load<$a, u32, 2, Shared>>(),
                    (false, _) => decoder.ins::<Load<$a, u32, 4, Shared>>(),
                    (true, 1) => decoder.ins::<Load<$a, u64, 1, Shared>>(),
                    (true, _) => decoder.ins::<Load<$a, u64, 2, Shared>>(),
                },
                Target::Shared if plain => match (long, count) {
                    (false, 1) => decoder.ins::<Store<$a, u32, 1, Shared>>(),
                    (false, 2) => decoder.ins::<Store<$a, u32, 2, Shared>>(),
                    (false, _) => decoder.ins::<Store<$a, u32, 4, Shared>>(),
                    (true, 1) => decoder.ins::<Store<$a, u64, 1, Shared>>(),
                    (true, _) => decoder.ins::<Store<$a, u64, 2, Shared>>(),
                },
                space => any::<$a>(decoder, space, load),
            }
        };
    }
    let chosen = if count == 4 && long { None } else { Some(()) };
    if place.space == Target::Params && plain && load && count == 1 {
        let ins_of = if long { decoder.ins::<LoadParam<u64>>() } else { decoder.ins::<LoadParam<u32>>() };
        return Ok(Ins { step: ins_of.step, ..ins });
    }
    if place.space == Target::Shared && plain && load && count == 1 && !place.long {
        let ins_of = if long { decoder.ins::<LoadShared<u64>>() } else { decoder.ins::<LoadShared<u32>>() };
        return Ok(Ins { step: ins_of.step, ..ins });
    }
    let step = match (chosen, place.row == NONE, place.long) {
        (_, true, _) => any::<u32>(decoder, place.space, load),
        (None, _, false) => any::<u32>(decoder, place.space, load),
        (None, _, true) => any::<u64>(decoder, place.space, load),
        (_, _, false) => choose!(u32),
        (_, _, true) => choose!(u64),
    };
    Ok(Ins { step: step.step, ..ins })
}

/// The step for every layout.
fn any<A: Word + Address>(decoder: &Decoder<'_>, space: Target, load: bool) -> Ins {
    macro_rules! both {
        ($space:ty) => {
            if load {
                decoder.rare_ins::<LoadAny<A, $space>>()
            } else {
                decoder.rare_ins::<StoreAny<A, $space>>()
            }
        };
    }
    match space {
        Target::Global => both!(Global),
        Target::Constant => both!(Constant),
        Target::Shared => both!(Shared),
        Target::Local => both!(Local),
        Target::Frame => both!(Frame),
        Target::Params => both!(Params),
        Target::Param => both!(Param),
        Target::Generic => both!(Generic),
    }
}

/// A register that can hold an address.
pub(crate) trait Address: Word {
    fn widen(self) -> u64;
}

impl Address for u32 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self.into()
    }
}

impl Address for u64 {
    #[inline(always)]
    fn widen(self) -> u64 {
        self
    }
}

/// The lanes' addresses. Inactive lanes get the address of an active one, so that checks and counts need no mask.
#[inline(always)]
pub(crate) unsafe fn addresses<A: Address>(context: &Context, ins: &Ins) -> [u64; 32] {
    if ins.a == NONE {
        return [ins.x; 32];
    }
    // SAFETY: the decoder chose a row of this width.
    let row: [A; 32] = unsafe { context.row(ins.a) };
    let mut found = [0; 32];
    for lane in 0..32 {
        found[lane] = row[lane].widen().wrapping_add(ins.x);
    }
    if A::ROW == 128 {
        // Offsets in 32-bit spaces wrap around there.
        for address in &mut found {
            *address &= u64::from(u32::MAX);
        }
    }
    if context.mask != FULL {
        repeat_active(&mut found, context.mask);
    }
    found
}

/// Gives each inactive lane the address of the active lane before it, or else of the first.
pub(crate) fn repeat_active(found: &mut [u64; 32], mask: u32) {
    let mut last = found[mask.trailing_zeros().min(31) as usize];
    for lane in 0..32 {
        if mask >> lane & 1 != 0 {
            last = found[lane];
        } else {
            found[lane] = last;
        }
    }
}

/// The least address, the greatest, and all their bits.
#[inline(always)]
fn extent(addresses: &[u64; 32]) -> (u64, u64, u64) {
    let (mut least, mut greatest, mut bits) = (u64::MAX, 0, 0);
    for &address in addresses {
        least = least.min(address);
        greatest = greatest.max(address);
        bits |= address;
    }
    (least, greatest, bits)
}

/// A space: from addresses to the host's pointers, with checks and counts.
pub(crate) trait Reach: 'static {
    /// Replaces the addresses with those of the bytes on the host.
    ///
    /// # Safety
    ///
    /// - The context points to the running block and warp.
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow>;

    /// Words of 4 bytes of one lane are this far from each other on the host.
    const STRIDE: u64 = 4;
}

/// Device, managed and pinned memory.
pub(crate) struct Global;
/// Read-only variables.
struct Constant;
/// A block's own memory.
pub(crate) struct Shared;
/// A thread's own memory, by address.
struct Local;
/// The running function's own, at a fixed offset.
struct Frame;
/// The kernel's parameters, at a fixed offset.
struct Params;
/// The kernel's parameters, by address.
struct Param;
/// Whatever the address says.
struct Generic;

impl Reach for Global {
    #[inline(always)]
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        global(context, ins.f >> 8, addresses, bytes, access)
    }
}

/// Checks and counts an access to global memory.
#[inline(always)]
pub(crate) fn global(
    context: &mut Context,
    cache: u32,
    addresses: &mut [u64; 32],
    bytes: u64,
    access: Access,
) -> Result<(), Flow> {
    let (least, greatest, bits) = extent(addresses);
    if bits & (bytes - 1) != 0 {
        return Err(misaligned(context, addresses, bytes, access, Space::Global));
    }
    let range = context.caches[cache as usize];
    let inside = least >= range.start && greatest < range.end && range.end - greatest >= bytes;
    let writes = access != Access::Load;
    let range = if inside && !(writes && range.constant) {
        range
    } else {
        match find_range(context, cache, addresses, least, greatest, bytes, access)? {
            Some(range) => range,
            None => return Ok(()),
        }
    };
    let sectors = sectors(addresses, least, greatest);
    let counter = match access {
        Access::Load => &mut context.counters.global_load,
        Access::Store => &mut context.counters.global_store,
        Access::Atomic => &mut context.counters.global_atomic,
    };
    counter.requests += 1;
    counter.sectors += sectors;
    for address in addresses {
        *address = address.wrapping_add(range.distance);
    }
    Ok(())
}

/// The allocation of all lanes; or `None` after the addresses of lanes in several were replaced one by one.
#[cold]
#[inline(never)]
fn find_range(
    context: &mut Context,
    cache: u32,
    addresses: &mut [u64; 32],
    least: u64,
    greatest: u64,
    bytes: u64,
    access: Access,
) -> Result<Option<Range>, Flow> {
    let inside = |range: &Range, address: u64| range.end - address >= bytes;
    let writes = access != Access::Load;
    if let Some(range) = context.table.find(least)
        && greatest < range.end
        && inside(&range, greatest)
        && !(writes && range.constant)
    {
        match &context.table.footprint {
            // Without the cache, every access comes here.
            Some(footprint) => footprint.note(range.start, least..greatest + bytes, writes),
            None => context.caches[cache as usize] = range,
        }
        return Ok(Some(range));
    }
    let mut wrong = 0u32;
    let mut constant = false;
    let mut host = [0; 32];
    for lane in 0..32 {
        match context.table.find(addresses[lane]) {
            Some(range) if inside(&range, addresses[lane]) && !(writes && range.constant) => {
                if let Some(footprint) = &context.table.footprint
                    && context.mask >> lane & 1 == 1
                {
                    footprint.note(range.start, addresses[lane]..addresses[lane] + bytes, writes);
                }
                host[lane] = addresses[lane].wrapping_add(range.distance);
            }
            found => {
                constant |=
                    found.is_some_and(|range| writes && range.constant && inside(&range, addresses[lane]));
                wrong |= 1 << lane;
            }
        }
    }
    wrong &= context.mask;
    if wrong != 0 {
        let address = addresses[wrong.trailing_zeros() as usize];
        let cause = if constant {
            Cause::ReadOnly { address }
        } else {
            Cause::OutOfBounds { access, space: Space::Global, address, bytes, near: Near::Nothing }
        };
        return Err(context.fault(cause, wrong));
    }
    let sectors = sectors(addresses, least, greatest);
    let counter = match access {
        Access::Load => &mut context.counters.global_load,
        Access::Store => &mut context.counters.global_store,
        Access::Atomic => &mut context.counters.global_atomic,
    };
    counter.requests += 1;
    counter.sectors += sectors;
    *addresses = host;
    Ok(None)
}

/// Distinct 32-byte pieces. No access crosses from one to the next, for it is aligned to its size.
#[inline(always)]
fn sectors(addresses: &[u64; 32], least: u64, greatest: u64) -> u64 {
    if least >> 5 == greatest >> 5 {
        return 1;
    }
    let mut changes = 0u64;
    let mut back = 0u64;
    for lane in 1..32 {
        let (before, after) = (addresses[lane - 1] >> 5, addresses[lane] >> 5);
        changes += u64::from(before != after);
        back |= u64::from(after < before);
    }
    if back == 0 { changes + 1 } else { distinct(addresses, 5) }
}

/// Distinct pieces of `1 << shift` bytes, in any order.
#[inline(never)]
fn distinct(addresses: &[u64; 32], shift: u32) -> u64 {
    let least = addresses.iter().fold(u64::MAX, |least, &address| least.min(address >> shift));
    // Pieces that are near each other are bits of a word.
    let mut bits = 0u64;
    let mut far = false;
    for &address in addresses {
        let piece = (address >> shift) - least;
        far |= piece >= 64;
        bits |= 1u64.wrapping_shl(piece as u32);
    }
    if !far {
        return u64::from(bits.count_ones());
    }
    let mut sorted = addresses.map(|address| address >> shift);
    sorted.sort_unstable();
    1 + sorted.windows(2).filter(|pair| pair[0] != pair[1]).count() as u64
}

impl Reach for Constant {
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        // Constant loads go through a cache of their own, and count as no global traffic.
        let before = context.counters;
        let reached = global(context, ins.f >> 8, addresses, bytes, access);
        context.counters = before;
        reached
    }
}

impl Reach for Shared {
    #[inline(always)]
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        shared(context, addresses, bytes, access)
    }
}

/// Checks and counts an access to shared memory.
#[inline(always)]
pub(crate) fn shared(
    context: &mut Context,
    addresses: &mut [u64; 32],
    bytes: u64,
    access: Access,
) -> Result<(), Flow> {
    let (least, greatest, bits) = extent(addresses);
    if bits & (bytes - 1) != 0 {
        return Err(misaligned(context, addresses, bytes, access, Space::Shared));
    }
    let size = u64::from(context.shared_bytes);
    if greatest >= size || size - greatest < bytes {
        let size = u64::from(context.shared_bytes);
        return Err(outside(context, addresses, bytes, access, Space::Shared, size));
    }
    // 32 neighbouring words are in 32 banks.
    let (wavefronts, least_wavefronts) = if bytes <= 4 && greatest - least < 128 {
        (1, 1)
    } else {
        wavefronts(addresses, bytes, context.mask)
    };
    let counter = match access {
        Access::Load => &mut context.counters.shared_load,
        Access::Store => &mut context.counters.shared_store,
        Access::Atomic => &mut context.counters.shared_atomic,
    };
    counter.instructions += 1;
    counter.wavefronts += wavefronts;
    counter.bank_conflicts += wavefronts - least_wavefronts;
    let base = context.shared as u64;
    for address in addresses {
        *address += base;
    }
    Ok(())
}

/// Passes that an access to shared memory takes, and those that its width needs without conflicts.
///
/// A pass serves 32 lanes with up to 4 bytes each, 16 with 8 or 8 with 16. Lanes that want the same word share it. Two
/// neighbouring groups of wide accesses share a pass where each lane's neighbour, by bit 0 or by bit 1 of its number, is
/// off or wants the same address.
#[inline(never)]
pub(crate) fn wavefronts(addresses: &[u64; 32], bytes: u64, mask: u32) -> (u64, u64) {
    if bytes <= 4 {
        return (passes(addresses.iter().map(|address| address >> 2)), 1);
    }
    let words = bytes / 4;
    let group = 32 / words as usize;
    let pairs = |lanes: std::ops::Range<usize>, bit: usize| {
        lanes.clone().all(|lane| {
            mask >> (lane ^ bit) & 1 == 0 || mask >> lane & 1 == 0 || addresses[lane] == addresses[lane ^ bit]
        })
    };
    let mut total = 0;
    let mut least = 0;
    // Groups that may share: both halves of the warp for 8 bytes, the quarters of each half for 16.
    for first in (0..32).step_by(2 * group) {
        let lanes = first..first + 2 * group;
        let shares = pairs(lanes.clone(), 1) || pairs(lanes.clone(), 2);
        let step = if shares { 2 * group } else { group };
        for start in lanes.step_by(step) {
            let active = (start..start + step).filter(|lane| mask >> lane & 1 != 0);
            let wanted = active.flat_map(|lane| (0..words).map(move |word| (addresses[lane] >> 2) + word));
            let found = passes(wanted);
            total += found;
            least += u64::from(found > 0);
        }
    }
    (total.max(1), least.max(1))
}

/// The most distinct words that one bank has to serve.
fn passes(words: impl Iterator<Item = u64>) -> u64 {
    let mut banks = [[0u64; 32]; 32];
    let mut counts = [0usize; 32];
    let mut most = 0;
    for word in words {
        let bank = (word & 31) as usize;
        let count = counts[bank];
        if banks[bank][..count].contains(&word) {
            continue;
        }
        // At most 32 lanes' words or, for wide accesses, as many in one pass of fewer lanes.
        if let Some(slot) = banks[bank].get_mut(count) {
            *slot = word;
            counts[bank] += 1;
            most = most.max(counts[bank]);
        }
    }
    most as u64
}

impl Reach for Local {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        local(context, addresses, bytes, access)
    }

    const STRIDE: u64 = 128;
}

fn local(context: &mut Context, addresses: &mut [u64; 32], bytes: u64, access: Access) -> Result<(), Flow> {
    let (_, greatest, bits) = extent(addresses);
    if bits & (bytes - 1) != 0 {
        return Err(misaligned(context, addresses, bytes, access, Space::Local));
    }
    let size = u64::from(context.local_bytes);
    if greatest >= size || size - greatest < bytes {
        return Err(outside(context, addresses, bytes, access, Space::Local, size));
    }
    // The lanes' words are side by side: 8 lanes share a sector.
    let mut pieces = 0;
    for word in 0..bytes.div_ceil(4) {
        let mut places = [0; 32];
        for lane in 0..32 {
            places[lane] = ((addresses[lane] >> 2) + word) * 128 + 4 * lane as u64;
        }
        if context.mask != FULL {
            repeat_active(&mut places, context.mask);
        }
        pieces += distinct(&places, 5);
    }
    let counter = if access == Access::Load {
        &mut context.counters.local_load
    } else {
        &mut context.counters.local_store
    };
    counter.requests += 1;
    counter.sectors += pieces;
    place_local(context, addresses);
    Ok(())
}

fn place_local(context: &Context, addresses: &mut [u64; 32]) {
    let base = context.local as u64;
    for (lane, address) in addresses.iter_mut().enumerate() {
        *address = base + (*address >> 2) * 128 + 4 * lane as u64 + (*address & 3);
    }
}

impl Reach for Frame {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        for address in addresses.iter_mut() {
            *address = address.wrapping_add(u64::from(context.frame));
        }
        let size = u64::from(context.local_bytes);
        let address = addresses[0];
        if address & (bytes.min(4) - 1) != 0 {
            return Err(misaligned(context, addresses, bytes, access, Space::Local));
        }
        if address >= size || size - address < bytes {
            return Err(outside(context, addresses, bytes, access, Space::Local, size));
        }
        place_local(context, addresses);
        Ok(())
    }

    const STRIDE: u64 = 128;
}

impl Reach for Params {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        let size = u64::from(context.param_bytes);
        let address = addresses[0];
        if address >= size || size - address < bytes {
            return Err(outside(context, addresses, bytes, access, Space::Parameter, size));
        }
        *addresses = [context.params as u64 + address; 32];
        Ok(())
    }
}

impl Reach for Param {
    unsafe fn reach(
        context: &mut Context,
        _: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        let size = u64::from(context.param_bytes);
        let base = context.params as u64;
        for address in addresses.iter_mut() {
            *address &= WINDOW - 1;
        }
        let (_, greatest, _) = extent(addresses);
        if greatest >= size || size - greatest < bytes {
            return Err(outside(context, addresses, bytes, access, Space::Parameter, size));
        }
        for address in addresses.iter_mut() {
            *address += base;
        }
        Ok(())
    }
}

/// The space that a generic address is in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Window {
    Global,
    Shared,
    Local,
    Param,
}

/// The space that a generic address is in.
#[inline(always)]
pub(crate) fn window(address: u64) -> Window {
    match address & !(WINDOW - 1) {
        GENERIC_SHARED => Window::Shared,
        GENERIC_LOCAL => Window::Local,
        GENERIC_PARAM => Window::Param,
        _ => Window::Global,
    }
}

impl Generic {
    /// The space of the first active lane, and the active lanes that are in it.
    fn split(context: &Context, addresses: &[u64; 32]) -> (Window, u32) {
        let first = window(addresses[context.mask.trailing_zeros().min(31) as usize]);
        let same = (0..32).filter(|&lane| window(addresses[lane]) == first);
        (first, same.fold(0, |lanes, lane| lanes | 1 << lane) & context.mask)
    }
}

impl Reach for Generic {
    unsafe fn reach(
        context: &mut Context,
        ins: &Ins,
        addresses: &mut [u64; 32],
        bytes: u64,
        access: Access,
    ) -> Result<(), Flow> {
        // SAFETY: as for the spaces themselves. `LoadAny` and `StoreAny` have split the lanes by space.
        unsafe {
            match window(addresses[0]) {
                Window::Global => global(context, ins.f >> 8, addresses, bytes, access),
                other => {
                    for address in addresses.iter_mut() {
                        *address &= WINDOW - 1;
                    }
                    match other {
                        Window::Shared => shared(context, addresses, bytes, access),
                        Window::Local => local(context, addresses, bytes, access),
                        _ => Param::reach(context, ins, addresses, bytes, access),
                    }
                }
            }
        }
    }

    // Known only when it executes.
    const STRIDE: u64 = 0;
}

#[cold]
#[inline(never)]
fn misaligned(
    context: &mut Context,
    addresses: &[u64; 32],
    bytes: u64,
    access: Access,
    space: Space,
) -> Flow {
    let wrong = wrong_lanes(context, addresses, |address| address & (bytes - 1) != 0);
    let address = addresses[wrong.trailing_zeros().min(31) as usize];
    context.fault(Cause::Misaligned { access, space, address, bytes }, wrong)
}

#[cold]
#[inline(never)]
fn outside(
    context: &mut Context,
    addresses: &[u64; 32],
    bytes: u64,
    access: Access,
    space: Space,
    size: u64,
) -> Flow {
    let wrong = wrong_lanes(context, addresses, |address| address >= size || size - address < bytes);
    let address = addresses[wrong.trailing_zeros().min(31) as usize];
    context.fault(Cause::OutOfBounds { access, space, address, bytes, near: Near::Space(size) }, wrong)
}

fn wrong_lanes(context: &Context, addresses: &[u64; 32], wrong: impl Fn(u64) -> bool) -> u32 {
    (0..32)
        .filter(|&lane| context.mask >> lane & 1 != 0 && wrong(addresses[lane]))
        .fold(0, |lanes, lane| lanes | 1 << lane)
}

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
struct Load<A, W, const N: usize, S>(PhantomData<(A, W, S)>);

impl<A: Address, W: Word, const N: usize, S: Reach> Body for Load<A, W, N, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        if context.mask == 0 {
            return Flow::Next;
        }
        // SAFETY: `reach` vouches for `N` words at each address; the decoder chose the rows.
        unsafe {
            let mut addresses = addresses::<A>(context, ins);
            let size = size_of::<W>() as u64 * N as u64;
            if let Err(flow) = S::reach(context, ins, &mut addresses, size, Access::Load) {
                return flow;
            }
            poll(context, ins);
            if N == 1 {
                let first = addresses[0];
                let mut neighbours = true;
                for lane in 0..32 {
                    neighbours &= addresses[lane] == first + lane as u64 * size;
                }
                if neighbours {
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

/// Loads one word of type `W` a lane from shared memory, by 32-bit addresses.
struct LoadShared<W>(PhantomData<W>);

impl<W: Word> Body for LoadShared<W> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the decoder chose rows of these widths, and every address read from is found to be inside.
        unsafe {
            let size = size_of::<W>() as u32;
            let row: [u32; 32] = context.row(ins.a);
            let (mut least, mut greatest, mut bits) = (u32::MAX, 0, 0);
            for &address in &row {
                let address = address.wrapping_add(ins.x as u32);
                least = least.min(address);
                greatest = greatest.max(address);
                bits |= address;
            }
            let simple = context.mask == FULL
                && bits & (size - 1) == 0
                && greatest < context.shared_bytes
                && context.shared_bytes - greatest >= size
                && (size == 4 && greatest - least < 128 || least == greatest)
                && ins.f >> 6 & 1 == 0;
            if !simple {
                return Load::<u32, W, 1, Shared>::run(context, ins);
            }
            // One pass: neighbouring words are in different banks, and lanes share a word.
            context.counters.shared_load.instructions += 1;
            context.counters.shared_load.wavefronts += 1;
            let base = context.shared.add(ins.x as u32 as usize);
            let mut values = [W::default(); 32];
            if least == greatest {
                values = [context.shared.add(least as usize).cast::<W>().read(); 32];
            } else if ins.x as u32 <= least {
                for lane in 0..32 {
                    values[lane] = base.add(row[lane] as usize).cast::<W>().read();
                }
            } else {
                // The sum of some lane has wrapped around.
                for lane in 0..32 {
                    let address = row[lane].wrapping_add(ins.x as u32);
                    values[lane] = context.shared.add(address as usize).cast::<W>().read();
                }
            }
            context.set_row(ins.d, values);
        }
        Flow::Next
    }
}

/// Loads a parameter of the kernel, the same for all lanes.
struct LoadParam<W>(PhantomData<W>);

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
struct Store<A, W, const N: usize, S>(PhantomData<(A, W, S)>);

impl<A: Address, W: Word, const N: usize, S: Reach> Body for Store<A, W, N, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        if context.mask == 0 {
            return Flow::Next;
        }
        // SAFETY: `reach` vouches for `N` words at each address; the decoder chose the rows.
        unsafe {
            let mut addresses = addresses::<A>(context, ins);
            let size = size_of::<W>() as u64 * N as u64;
            if let Err(flow) = S::reach(context, ins, &mut addresses, size, Access::Store) {
                return flow;
            }
            if N == 1 && context.mask == FULL {
                let first = addresses[0];
                let mut neighbours = true;
                for lane in 0..32 {
                    neighbours &= addresses[lane] == first + lane as u64 * size;
                }
                if neighbours {
                    write(first, context.row::<W>(ins.d));
                    return Flow::Next;
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
        Flow::Next
    }
}

#[inline(always)]
fn poll(context: &mut Context, ins: &Ins) {
    if ins.f >> 6 & 1 != 0 {
        wait_a_little(context);
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
struct LoadAny<A, S>(PhantomData<(A, S)>);

impl<A: Address, S: Reach> Body for LoadAny<A, S> {
    #[inline(always)]
    unsafe fn run(context: &mut Context, ins: &Ins) -> Flow {
        // SAFETY: the caller's promise.
        unsafe { each_space::<A, S>(context, ins, Access::Load) }
    }
}

/// Stores of every layout.
struct StoreAny<A, S>(PhantomData<(A, S)>);

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
    Flow::Next
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

impl Context {
    /// Up to 8 bytes at a generic address of a lane, or zero when there is nothing.
    pub(crate) fn peek(&self, address: u64, bytes: u64, lane: usize) -> u64 {
        let mut value = 0;
        for byte in 0..bytes {
            value |= u64::from(self.peek_byte(address.wrapping_add(byte), lane).unwrap_or(0)) << (8 * byte);
        }
        value
    }

    /// A string that ends in a zero byte, at a generic address of a lane.
    pub(crate) fn string(&self, address: u64, lane: usize) -> Vec<u8> {
        (0..1 << 16)
            .map_while(|offset| self.peek_byte(address.wrapping_add(offset), lane).filter(|&byte| byte != 0))
            .collect()
    }

    fn peek_byte(&self, address: u64, lane: usize) -> Option<u8> {
        let offset = address & (WINDOW - 1);
        let host = match window(address) {
            Window::Global => address.wrapping_add(self.table.find(address)?.distance),
            Window::Shared if offset < u64::from(self.shared_bytes) => self.shared as u64 + offset,
            Window::Local if offset < u64::from(self.local_bytes) => {
                self.local as u64 + (offset >> 2) * 128 + 4 * lane as u64 + (offset & 3)
            }
            Window::Param if offset < u64::from(self.param_bytes) => self.params as u64 + offset,
            _ => return None,
        };
        // SAFETY: the byte lies inside of what was just found.
        Some(unsafe { read::<u8>(host) })
    }
}
