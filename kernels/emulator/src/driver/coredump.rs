//! `cuCoredump*`: no dump is ever written, and that is what the settings say.

use std::ffi::{c_char, c_void};

use super::{
    abi::{Out, driver},
    error::{CUresult, Result},
    log,
    state::current,
};

driver! {
    /// Answers a setting of the current context.
    call cuCoredumpGetAttribute 12010 (number: u32, answer: Out<c_void>, bytes: Out<usize>) {
        current()?;
        get(number, answer, bytes)
    }

    /// Answers a setting of all contexts.
    call cuCoredumpGetAttributeGlobal 12010 (number: u32, answer: Out<c_void>, bytes: Out<usize>) {
        get(number, answer, bytes)
    }

    /// Accepts that there shall be no dump.
    call cuCoredumpSetAttribute 12010 (number: u32, value: Out<c_void>, bytes: Out<usize>) {
        current()?;
        set(number, value, bytes)
    }

    /// Accepts that there shall be no dump.
    call cuCoredumpSetAttributeGlobal 12010 (number: u32, value: Out<c_void>, bytes: Out<usize>) {
        set(number, value, bytes)
    }
}

/// `CU_COREDUMP_*`: four switches, two names of files, and flags.
fn get(number: u32, answer: Out<c_void>, bytes: Out<usize>) -> Result {
    bytes.check()?;
    match number {
        1..=4 => {
            bytes.set(1)?;
            if answer.is_null() { Ok(()) } else { answer.cast().set(0_u8) }
        }
        5 | 6 => {
            let room = bytes.read()?;
            bytes.set(1)?;
            if answer.is_null() { Ok(()) } else { answer.cast::<c_char>().set_text("", room) }
        }
        7 => {
            bytes.set(4)?;
            if answer.is_null() { Ok(()) } else { answer.cast().set(0_u32) }
        }
        _ => Err(CUresult::INVALID_VALUE),
    }
}

fn set(number: u32, value: Out<c_void>, bytes: Out<usize>) -> Result {
    bytes.check()?;
    match number {
        1..=4 if value.cast::<u8>().read()? != 0 => {
            log::once("the emulated GPU writes no core dumps; a fault's report says where it happened");
            Err(CUresult::NOT_SUPPORTED)
        }
        1..=7 => Ok(()),
        _ => Err(CUresult::INVALID_VALUE),
    }
}
