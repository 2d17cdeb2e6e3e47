//! `cuMemcpyBatchAsync`: many copies at once.

use super::{
    abi::{In, Out, driver},
    advice::Location,
    copy::{self, Copy},
    error::{CUresult, Result},
    stream::{self, CUstream},
};

/// `CUmemcpyAttributes`
#[repr(C)]
#[derive(Clone, Copy)]
struct Attributes {
    source_order: u32,
    source: Location,
    destination: Location,
    flags: u32,
}

driver! {
    /// Copies between pairs of places; the copies are done in the order of the list here.
    call cuMemcpyBatchAsync 12080, cuMemcpyBatchAsync_ptsz 12080 (
        to: In<u64>, from: In<u64>, bytes: In<usize>, count: usize, attributes: In<Attributes>, firsts: In<usize>,
        attribute_count: usize, failed: Out<usize>, stream: CUstream,
    ) {
        failed.set_if_wanted(usize::MAX);
        batch(to, from, bytes, count, (attributes, firsts, attribute_count), failed, stream)
    }

    /// Copies between pairs of places; the copies are done in the order of the list here.
    call cuMemcpyBatchAsync_v2 13000, cuMemcpyBatchAsync_v2_ptsz 13000 (
        to: In<u64>, from: In<u64>, bytes: In<usize>, count: usize, attributes: In<Attributes>, firsts: In<usize>,
        attribute_count: usize, stream: CUstream,
    ) {
        let nowhere = Out::of(std::ptr::null_mut());
        batch(to, from, bytes, count, (attributes, firsts, attribute_count), nowhere, stream)
    }
}

fn batch(
    to: In<u64>,
    from: In<u64>,
    bytes: In<usize>,
    count: usize,
    (attributes, firsts, attribute_count): (In<Attributes>, In<usize>, usize),
    failed: Out<usize>,
    stream: CUstream,
) -> Result {
    let stream = stream::get(stream)?;
    // The list may be done in any order, which the legacy stream does not allow.
    if stream.legacy || count == 0 || attribute_count == 0 || attribute_count > count {
        return Err(CUresult::INVALID_VALUE);
    }
    let (attributes, firsts) = (attributes.list(attribute_count)?, firsts.list(attribute_count)?);
    let rising = firsts.windows(2).all(|pair| pair[0] < pair[1]);
    let known = attributes.iter().all(|attributes| (1..=3).contains(&attributes.source_order));
    if firsts.first() != Some(&0) || !rising || firsts.last() >= Some(&count) || !known {
        return Err(CUresult::INVALID_VALUE);
    }
    let (to, from, bytes) = (to.list(count)?, from.list(count)?, bytes.list(count)?);
    let copies =
        to.into_iter().zip(from).zip(bytes).map(|((to, from), bytes)| Copy::unified(from, to, bytes));
    let copies: Vec<Copy> = copies.collect();
    for (index, copy) in copies.iter().enumerate() {
        copy.check().inspect_err(|_| failed.set_if_wanted(index))?;
    }
    copies.into_iter().try_for_each(|copy| copy::submit(&stream, copy))
}
