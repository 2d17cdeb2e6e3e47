//! `cuUserObject*`: things of the program that graphs keep alive.

use std::{
    ffi::c_void,
    sync::{Arc, Mutex},
};

use super::{
    abi::{Out, driver},
    error::{CUresult, Result},
    graph::CUgraph,
    handle::{Handle, objects},
    state::lock,
};

/// A thing of the program, as C names it.
pub(crate) type CUuserObject = Handle<UserObject>;

/// A thing of the program, which goes with its last reference.
pub(crate) struct UserObject {
    object: usize,
    destroy: extern "C" fn(*mut c_void),
    references: Mutex<u64>,
}

objects!(UserObject: INVALID_VALUE);

/// References that a graph holds.
#[derive(Default)]
pub(crate) struct References(Mutex<Vec<(CUuserObject, u64)>>);

/// The one flag, which must be given: nothing waits for the function that destroys.
const NO_DESTRUCTOR_SYNC: u32 = 1;
/// The graph takes references over that the caller has.
const MOVE: u32 = 1;

driver! {
    /// Makes an object with references that the caller has.
    call cuUserObjectCreate 11030 (
        answer: Out<CUuserObject>, object: *mut c_void, destroy: Option<extern "C" fn(*mut c_void)>, count: u32, flags: u32,
    ) {
        answer.check()?;
        let destroy = destroy.ok_or(CUresult::INVALID_VALUE)?;
        if flags != NO_DESTRUCTOR_SYNC || !is_count(count) {
            return Err(CUresult::INVALID_VALUE);
        }
        let references = Mutex::new(count.into());
        answer.set(Handle::new(UserObject { object: object as usize, destroy, references }))
    }

    /// Gives the caller more references.
    call cuUserObjectRetain 11030 (handle: CUuserObject, count: u32) {
        if !is_count(count) {
            return Err(CUresult::INVALID_VALUE);
        }
        handle.get()?.retain(count.into());
        Ok(())
    }

    /// Takes references from the caller.
    call cuUserObjectRelease 11030 (handle: CUuserObject, count: u32) {
        if !is_count(count) {
            return Err(CUresult::INVALID_VALUE);
        }
        release(handle, count.into())
    }

    /// Gives a graph references, new ones or the caller's.
    call cuGraphRetainUserObject 11030 (graph: CUgraph, handle: CUuserObject, count: u32, flags: u32) {
        if !is_count(count) || flags & !MOVE != 0 {
            return Err(CUresult::INVALID_VALUE);
        }
        let graph = graph.get()?;
        let object = handle.get()?;
        if flags & MOVE == 0 {
            object.retain(count.into());
        } else if *lock(&object.references) < count.into() {
            return Err(CUresult::INVALID_VALUE);
        }
        graph.users.add(handle, count.into());
        Ok(())
    }

    /// Takes references from a graph.
    call cuGraphReleaseUserObject 11030 (graph: CUgraph, handle: CUuserObject, count: u32) {
        if !is_count(count) {
            return Err(CUresult::INVALID_VALUE);
        }
        graph.get()?.users.remove(handle, count.into())?;
        release(handle, count.into())
    }
}

impl UserObject {
    fn retain(&self, count: u64) {
        let mut references = lock(&self.references);
        *references = references.saturating_add(count);
    }
}

impl References {
    /// As many references of one's own.
    pub(crate) fn copied(&self) -> References {
        let held = lock(&self.0).clone();
        for (handle, count) in &held {
            if let Ok(object) = handle.get() {
                object.retain(*count);
            }
        }
        References(Mutex::new(held))
    }

    fn add(&self, handle: CUuserObject, count: u64) {
        let mut held = lock(&self.0);
        match held.iter_mut().find(|(other, _)| *other == handle) {
            Some((_, held)) => *held = held.saturating_add(count),
            None => held.push((handle, count)),
        }
    }

    fn remove(&self, handle: CUuserObject, count: u64) -> Result {
        let mut held = lock(&self.0);
        let (_, own) = held.iter_mut().find(|(other, _)| *other == handle).ok_or(CUresult::INVALID_VALUE)?;
        *own = own.checked_sub(count).ok_or(CUresult::INVALID_VALUE)?;
        held.retain(|(_, count)| *count > 0);
        Ok(())
    }
}

impl Drop for References {
    fn drop(&mut self) {
        for (handle, count) in std::mem::take(&mut *lock(&self.0)) {
            // A program that released too much has destroyed it already.
            let _gone = release(handle, count);
        }
    }
}

fn release(handle: CUuserObject, count: u64) -> Result {
    let object: Arc<UserObject> = handle.get()?;
    let mut references = lock(&object.references);
    *references = references.checked_sub(count).ok_or(CUresult::INVALID_VALUE)?;
    let last = *references == 0;
    drop(references);
    if last {
        handle.take()?;
        (object.destroy)(object.object as *mut c_void);
    }
    Ok(())
}

fn is_count(count: u32) -> bool {
    (1..=i32::MAX as u32).contains(&count)
}
