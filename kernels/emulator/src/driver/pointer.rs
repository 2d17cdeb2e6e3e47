//! `cuPointer*`: what an address is.

use std::ffi::c_void;

use super::{
    abi::{In, Out, driver},
    allocations::{self, Owned},
    error::{CUresult, Result},
    handle::Handle,
    pool::Pool,
    state::current,
};
use crate::memory::Kind;

const HOST: u32 = 1;
const DEVICE: u32 = 2;
const SYNC_MEMOPS: u32 = 6;

driver! {
    /// Answers an attribute of the allocation that holds an address.
    call cuPointerGetAttribute 4000 (answer: Out<c_void>, number: u32, address: u64) {
        answer.check()?;
        current()?;
        let allocation = allocations::find(address).ok_or(CUresult::INVALID_VALUE)?;
        attribute(&allocation, number, address, answer)
    }

    /// Answers several; what an address does not have is zero.
    call cuPointerGetAttributes 7000 (count: u32, numbers: In<u32>, answers: In<Out<c_void>>, address: u64) {
        current()?;
        if count == 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let allocation = allocations::find(address);
        for (number, answer) in numbers.list(count as usize)?.into_iter().zip(answers.list(count as usize)?) {
            answer.check()?;
            let found = allocation.map_or(Err(CUresult::INVALID_VALUE), |allocation| {
                attribute(&allocation, number, address, answer)
            });
            if found.is_err() {
                zero(number, answer)?;
            }
        }
        Ok(())
    }

    /// Sets the one attribute that can be set.
    call cuPointerSetAttribute 6000 (value: In<u32>, number: u32, address: u64) {
        current()?;
        if number != SYNC_MEMOPS {
            return Err(CUresult::INVALID_VALUE);
        }
        allocations::set_sync_memops(address, value.get()? != 0)
    }
}

fn attribute(allocation: &Owned, number: u32, address: u64, answer: Out<c_void>) -> Result {
    let host = allocation.kind.is_host();
    match number {
        1 => answer.cast().set(allocation.context),
        2 => {
            let on_host = matches!(allocation.kind, Kind::Pinned | Kind::Registered);
            answer.cast().set(if on_host { HOST } else { DEVICE })
        }
        3 => answer.cast().set(address),
        4 if host => answer.cast().set(address),
        4 => Err(CUresult::INVALID_VALUE),
        SYNC_MEMOPS => answer.cast().set(u32::from(allocation.sync_memops)),
        7 => answer.cast().set(allocation.number),
        8 => answer.cast().set(u32::from(allocation.kind == Kind::Managed)),
        9 => answer.cast().set(allocation.device.ordinal as i32),
        // Neither other processes nor other hardware can open it.
        10 | 15 | 21 => answer.cast().set(0_u32),
        14 => answer.cast().set(0_u64),
        11 | 19 => answer.cast().set(allocation.address),
        12 | 18 => answer.cast().set(allocation.bytes as usize),
        13 => answer.cast().set(1_u32),
        16 => answer.cast().set(3_u32),
        17 => answer.cast().set(allocation.pool.unwrap_or(Handle::<Pool>::NULL)),
        20 => answer.cast().set(allocation.number),
        _ => Err(CUresult::INVALID_VALUE),
    }
}

fn zero(number: u32, answer: Out<c_void>) -> Result {
    match number {
        1 | 3 | 4 | 7 | 11 | 12 | 14 | 17..=20 => answer.cast().set(0_u64),
        9 => answer.cast().set(-2_i32),
        2 | 6 | 8 | 10 | 13 | 15 | 16 | 21 => answer.cast().set(0_u32),
        _ => Err(CUresult::INVALID_VALUE),
    }
}
