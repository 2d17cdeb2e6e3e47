//! `cuMemAdvise`, `cuMemPrefetch*`, `cuMemDiscard*` and `cuMemRangeGetAttribute`: where managed memory would like to be.
//!
//! Managed memory is the host's here, and no page moves. What a program advised is kept, to be answered.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    ffi::c_void,
    sync::Mutex,
};

use super::{
    abi::{In, Out, driver},
    allocations::{self, Owned},
    device,
    error::{CUresult, Result},
    state::{CUdevice, current, lock},
    stream::{self, CUstream},
};
use crate::memory::Kind;

/// `CUmemLocation`
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Location {
    pub(crate) kind: u32,
    pub(crate) id: i32,
}

/// What was advised for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Advice {
    read_mostly: bool,
    preferred: Option<Location>,
    accessed_by: BTreeSet<CUdevice>,
    prefetched: Option<Location>,
}

/// Advice for the bytes from each offset to the next, by the number of the allocation.
static ADVICE: Mutex<Option<HashMap<u64, BTreeMap<u64, Advice>>>> = Mutex::new(None);

/// `CU_MEM_LOCATION_TYPE_*`
const INVALID: u32 = 0;
const DEVICE: u32 = 1;
const HOST: u32 = 2;
const HOST_NUMA_CURRENT: u32 = 4;
/// `CU_DEVICE_CPU` and `CU_DEVICE_INVALID`
const CPU: CUdevice = -1;
const NO_DEVICE: CUdevice = -2;
/// Advice is given to whole pages.
const PAGE: u64 = 4096;

driver! {
    /// Notes where pages were asked for; there is nowhere to move them to.
    call cuMemPrefetchAsync 8000, cuMemPrefetchAsync_ptsz 8000 (
        address: u64, bytes: usize, ordinal: CUdevice, stream: CUstream,
    ) {
        stream::get(stream)?.context.check()?;
        prefetch(address, bytes, location(ordinal))
    }

    /// Notes where pages were asked for; there is nowhere to move them to.
    call cuMemPrefetchAsync_v2 12020, cuMemPrefetchAsync_v2_ptsz 12020 (
        address: u64, bytes: usize, place: Location, flags: u32, stream: CUstream,
    ) {
        stream::get(stream)?.context.check()?;
        if flags != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        prefetch(address, bytes, place)
    }

    /// Notes where many ranges of pages were asked for.
    call cuMemPrefetchBatchAsync 13000, cuMemPrefetchBatchAsync_ptsz 13000 (
        addresses: In<u64>, bytes: In<usize>, count: usize, places: In<Location>, firsts: In<usize>, place_count: usize,
        flags: u64, stream: CUstream,
    ) {
        prefetch_batch(addresses, bytes, count, places, firsts, place_count, flags, stream)
    }

    /// Does nothing: what is in discarded pages may as well stay.
    call cuMemDiscardBatchAsync 13000, cuMemDiscardBatchAsync_ptsz 13000 (
        addresses: In<u64>, bytes: In<usize>, count: usize, flags: u64, stream: CUstream,
    ) {
        stream::get(stream)?.context.check()?;
        if flags != 0 || count == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let mut ranges = addresses.list(count)?.into_iter().zip(bytes.list(count)?);
        ranges.try_for_each(|(address, bytes)| managed(address, bytes).map(drop))
    }

    /// Notes where discarded pages were asked for.
    call cuMemDiscardAndPrefetchBatchAsync 13000, cuMemDiscardAndPrefetchBatchAsync_ptsz 13000 (
        addresses: In<u64>, bytes: In<usize>, count: usize, places: In<Location>, firsts: In<usize>, place_count: usize,
        flags: u64, stream: CUstream,
    ) {
        prefetch_batch(addresses, bytes, count, places, firsts, place_count, flags, stream)
    }

    /// Notes advice.
    call cuMemAdvise 8000 (address: u64, bytes: usize, advice: u32, ordinal: CUdevice) {
        current()?;
        advise(address, bytes, advice, location(ordinal))
    }

    /// Notes advice.
    call cuMemAdvise_v2 12020 (address: u64, bytes: usize, advice: u32, place: Location) {
        current()?;
        advise(address, bytes, advice, place)
    }

    /// Answers what was advised for the whole of a range.
    call cuMemRangeGetAttribute 8000 (answer: Out<c_void>, room: usize, number: u32, address: u64, bytes: usize) {
        current()?;
        attribute(answer, room, number, &advised(address, bytes)?)
    }

    /// Answers several.
    call cuMemRangeGetAttributes 8000 (
        answers: In<Out<c_void>>, rooms: In<usize>, numbers: In<u32>, count: usize, address: u64, bytes: usize,
    ) {
        current()?;
        if count == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let advised = advised(address, bytes)?;
        let (answers, rooms, numbers) = (answers.list(count)?, rooms.list(count)?, numbers.list(count)?);
        for ((answer, room), number) in answers.into_iter().zip(rooms).zip(numbers) {
            attribute(answer, room, number, &advised)?;
        }
        Ok(())
    }
}

/// Forgets the advice for an allocation that is gone.
pub(crate) fn forget(number: u64) {
    if let Some(advice) = lock(&ADVICE).as_mut() {
        advice.remove(&number);
    }
}

/// What an ordinal means.
fn location(ordinal: CUdevice) -> Location {
    if ordinal == CPU { Location { kind: HOST, id: 0 } } else { Location { kind: DEVICE, id: ordinal } }
}

fn check(place: Location) -> Result {
    match place.kind {
        DEVICE => device::check(place.id),
        HOST..=HOST_NUMA_CURRENT => Ok(()),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

/// The allocation of managed memory that holds a range.
fn managed(address: u64, bytes: usize) -> Result<Owned> {
    let allocation = allocations::find(address).filter(|found| found.kind == Kind::Managed);
    let allocation = allocation.ok_or(CUresult::INVALID_VALUE)?;
    let room = allocation.address + allocation.bytes - address;
    if bytes == 0 || bytes as u64 > room { Err(CUresult::INVALID_VALUE) } else { Ok(allocation) }
}

/// The offsets of the pages that a range touches.
fn pages(allocation: &Owned, address: u64, bytes: usize) -> (u64, u64) {
    let start = address - allocation.address;
    (start / PAGE * PAGE, (start + bytes as u64).next_multiple_of(PAGE))
}

fn change(address: u64, bytes: usize, change: impl Fn(&mut Advice)) -> Result {
    let allocation = managed(address, bytes)?;
    let (start, end) = pages(&allocation, address, bytes);
    let mut all = lock(&ADVICE);
    let advice = all.get_or_insert_default().entry(allocation.number).or_default();
    for edge in [start, end] {
        let before = advice.range(..=edge).next_back().map(|(_, advice)| advice.clone());
        advice.entry(edge).or_insert_with(|| before.unwrap_or_default());
    }
    advice.range_mut(start..end).for_each(|(_, advice)| change(advice));
    Ok(())
}

/// The advice for each part of a range.
fn advised(address: u64, bytes: usize) -> Result<Vec<Advice>> {
    let allocation = managed(address, bytes)?;
    let (start, end) = pages(&allocation, address, bytes);
    let all = lock(&ADVICE);
    let Some(advice) = all.as_ref().and_then(|all| all.get(&allocation.number)) else {
        return Ok(vec![Advice::default()]);
    };
    let first = advice.range(..=start).next_back().map(|(_, advice)| advice.clone()).unwrap_or_default();
    let others = advice.range(start + 1..end).map(|(_, advice)| advice.clone());
    Ok(std::iter::once(first).chain(others).collect())
}

fn prefetch(address: u64, bytes: usize, place: Location) -> Result {
    managed(address, bytes)?;
    check(place)?;
    change(address, bytes, |advice| advice.prefetched = Some(place))
}

#[expect(clippy::too_many_arguments, reason = "those of the driver's function")]
fn prefetch_batch(
    addresses: In<u64>,
    bytes: In<usize>,
    count: usize,
    places: In<Location>,
    firsts: In<usize>,
    place_count: usize,
    flags: u64,
    stream: CUstream,
) -> Result {
    stream::get(stream)?.context.check()?;
    let (places, firsts) = (places.list(place_count)?, firsts.list(place_count)?);
    // Each place serves from its first range on to the next place's first, and the first serves from the start.
    let rising = firsts.windows(2).all(|pair| pair[0] < pair[1]);
    if flags != 0 || count == 0 || firsts.first() != Some(&0) || !rising || firsts.last() >= Some(&count) {
        return Err(CUresult::INVALID_VALUE);
    }
    for (index, (address, bytes)) in addresses.list(count)?.into_iter().zip(bytes.list(count)?).enumerate() {
        let place = firsts.iter().rposition(|&first| first <= index).ok_or(CUresult::INVALID_VALUE)?;
        prefetch(address, bytes, places[place])?;
    }
    Ok(())
}

fn advise(address: u64, bytes: usize, advice: u32, place: Location) -> Result {
    managed(address, bytes)?;
    match advice {
        1 | 2 => change(address, bytes, |own| own.read_mostly = advice == 1),
        3 => {
            check(place)?;
            change(address, bytes, |own| own.preferred = Some(place))
        }
        4 => change(address, bytes, |own| own.preferred = None),
        5 | 6 => {
            check(place)?;
            let ordinal = if place.kind == DEVICE { place.id } else { CPU };
            change(address, bytes, |own| {
                match advice {
                    5 => own.accessed_by.insert(ordinal),
                    _ => own.accessed_by.remove(&ordinal),
                };
            })
        }
        _ => Err(CUresult::INVALID_VALUE),
    }
}

fn attribute(answer: Out<c_void>, room: usize, number: u32, advised: &[Advice]) -> Result {
    let needed = match number {
        3 if room >= 4 && room.is_multiple_of(4) => room,
        1 | 2 | 4..=8 => 4,
        _ => return Err(CUresult::INVALID_VALUE),
    };
    if room != needed {
        return Err(CUresult::INVALID_VALUE);
    }
    // A place counts only where all pages have it.
    let common = |of: fn(&Advice) -> Option<Location>| {
        let place = advised.first().and_then(of);
        place.filter(|_| advised.iter().all(|advice| of(advice) == place))
    };
    let ordinal = |place: Option<Location>| match place {
        Some(Location { kind: DEVICE, id }) => id,
        Some(_) => CPU,
        None => NO_DEVICE,
    };
    let preferred = |advice: &Advice| advice.preferred;
    let prefetched = |advice: &Advice| advice.prefetched;
    let nowhere = Location { kind: INVALID, id: 0 };
    match number {
        1 => answer.cast().set(i32::from(advised.iter().all(|advice| advice.read_mostly))),
        2 => answer.cast().set(ordinal(common(preferred))),
        3 => {
            let first = advised.first().map(|advice| advice.accessed_by.clone()).unwrap_or_default();
            let all = first
                .into_iter()
                .filter(|ordinal| advised.iter().all(|advice| advice.accessed_by.contains(ordinal)));
            answer.cast().set_all(all.chain(std::iter::repeat(NO_DEVICE)).take(room / 4))
        }
        4 => answer.cast().set(ordinal(common(prefetched))),
        5 => answer.cast().set(common(preferred).unwrap_or(nowhere).kind),
        6 => answer.cast().set(common(preferred).unwrap_or(nowhere).id),
        7 => answer.cast().set(common(prefetched).unwrap_or(nowhere).kind),
        _ => answer.cast().set(common(prefetched).unwrap_or(nowhere).id),
    }
}
