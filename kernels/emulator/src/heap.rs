//! The heap of device code: `malloc` and `free` in a kernel.
//!
//! One allocation of a fixed size, made by the first launch that may use it, as on a GPU: `CU_LIMIT_MALLOC_HEAP_SIZE` says
//! how large. What a kernel takes stays until some kernel gives it back.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
};

/// Pieces are multiples of this, as a GPU's are.
const ALIGN: u64 = 16;

/// The heap.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Sizes of free and of taken pieces, by their addresses.
    pieces: Mutex<Pieces>,
}

#[derive(Debug, Default)]
struct Pieces {
    free: BTreeMap<u64, u64>,
    taken: BTreeMap<u64, u64>,
}

impl Heap {
    /// A heap in an allocation.
    pub(crate) fn new(address: u64, bytes: u64) -> Heap {
        let pieces = Pieces { free: BTreeMap::from([(address, bytes)]), taken: BTreeMap::new() };
        Heap { pieces: Mutex::new(pieces) }
    }

    /// The address of so many bytes, or 0 if there is no room.
    pub(crate) fn take(&self, bytes: u64) -> u64 {
        let Some(bytes) = bytes.max(1).checked_next_multiple_of(ALIGN) else { return 0 };
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let Some((&address, &size)) = pieces.free.iter().find(|(_, size)| **size >= bytes) else { return 0 };
        pieces.free.remove(&address);
        if size > bytes {
            pieces.free.insert(address + bytes, size - bytes);
        }
        pieces.taken.insert(address, bytes);
        address
    }

    /// Gives a piece back: whether there was one.
    pub(crate) fn give(&self, address: u64) -> bool {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(mut bytes) = pieces.taken.remove(&address) else { return false };
        let mut start = address;
        if let Some(behind) = pieces.free.remove(&(address + bytes)) {
            bytes += behind;
        }
        if let Some((&before, &size)) = pieces.free.range(..address).next_back()
            && before + size == address
        {
            pieces.free.remove(&before);
            start = before;
            bytes += size;
        }
        pieces.free.insert(start, bytes);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_are_apart_and_grow_together_again() {
        let heap = Heap::new(1 << 20, 64);
        let found = [heap.take(1), heap.take(17), heap.take(16), heap.take(1)];
        assert_eq!(found, [1 << 20, (1 << 20) + 16, (1 << 20) + 48, 0]);
        assert!(heap.give(found[1]));
        assert!(!heap.give(found[1]) && !heap.give(found[0] + 1) && !heap.give(0));
        assert!(heap.give(found[0]) && heap.give(found[2]));
        assert_eq!(heap.take(64), 1 << 20);
        assert_eq!((heap.take(u64::MAX), heap.take(0)), (0, 0));
    }
}
