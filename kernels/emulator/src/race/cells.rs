//! Who used a word of shared memory last, for each word; and for each byte of words that are used in parts.

use super::clock::{THREAD, lanes};

/// Stands where a word's stamps would, if its bytes have stamps of their own. No stamp has all bits.
pub(super) const SPLIT: u32 = u32::MAX;

/// Stamps of the same number of words or bytes.
#[derive(Default)]
pub(super) struct Cells {
    /// Of the last write; 0 if there was none.
    pub(super) write: Vec<u32>,
    /// Of the last read.
    pub(super) read: Vec<u32>,
    /// Of the last read by any other thread.
    pub(super) other: Vec<u32>,
    /// The instructions that left them.
    pub(super) write_site: Vec<u32>,
    pub(super) read_site: Vec<u32>,
    pub(super) other_site: Vec<u32>,
}

impl Cells {
    pub(super) fn new(count: usize) -> Cells {
        let zeros = || vec![0; count];
        Cells {
            write: zeros(),
            read: zeros(),
            other: zeros(),
            write_site: zeros(),
            read_site: zeros(),
            other_site: zeros(),
        }
    }

    /// Forgets all stamps; written cells stay written.
    pub(super) fn forget(&mut self, fresh: u32, written: u32) {
        for stamp in self.write.iter_mut().filter(|stamp| **stamp != SPLIT) {
            *stamp = if *stamp >= fresh { written | (*stamp & THREAD) } else { 0 };
        }
        self.read.fill(0);
        self.other.fill(0);
    }

    /// The greatest write stamp of the words, the least one, and the least stamp of a second reader.
    #[inline(always)]
    pub(super) fn loads(&self, words: &[u32; 32], count: u32) -> (u32, u32, u32) {
        let (mut most, mut least, mut other) = (0, u32::MAX, u32::MAX);
        for &word in words {
            for word in word..word + count {
                // SAFETY: the caller has checked the access against the size of shared memory, which has as many words.
                let (write, read) = unsafe {
                    (*self.write.get_unchecked(word as usize), *self.other.get_unchecked(word as usize))
                };
                most = most.max(write);
                least = least.min(write);
                other = other.min(read);
            }
        }
        (most, least, other)
    }

    /// The greatest stamp of any access to the words.
    #[inline(always)]
    pub(super) fn stores(&self, words: &[u32; 32], count: u32) -> u32 {
        let mut most = 0;
        for &word in words {
            for word in word..word + count {
                // SAFETY: as in `loads`.
                let (write, read) = unsafe {
                    (*self.write.get_unchecked(word as usize), *self.read.get_unchecked(word as usize))
                };
                most = most.max(write).max(read);
            }
        }
        most
    }

    /// Leaves the stamps of a store by these lanes.
    #[inline(always)]
    pub(super) fn stamp_stores(&mut self, words: &[u32; 32], count: u32, mask: u32, stamp: u32, site: u32) {
        if mask == u32::MAX && count == 1 && are_neighbours(words) {
            let first = words[0] as usize;
            let (Some(stamps), Some(sites)) =
                (self.write.get_mut(first..first + 32), self.write_site.get_mut(first..first + 32))
            else {
                return;
            };
            for lane in 0..32 {
                stamps[lane] = stamp + lane as u32;
                sites[lane] = site;
            }
            return;
        }
        for lane in lanes(mask) {
            for word in words[lane]..words[lane] + count {
                self.write[word as usize] = stamp + lane as u32;
                self.write_site[word as usize] = site;
            }
        }
    }

    /// Leaves the stamp of a read.
    #[inline(always)]
    pub(super) fn stamp_read(&mut self, at: usize, stamp: u32, site: u32) {
        let read = self.read[at];
        if (read ^ stamp) & THREAD != 0 {
            self.other[at] = read;
            self.other_site[at] = self.read_site[at];
        }
        self.read[at] = stamp;
        self.read_site[at] = site;
    }
}

#[inline(always)]
pub(super) fn are_neighbours(words: &[u32; 32]) -> bool {
    (0..32).fold(true, |all, lane| all & (words[lane] == words[0].wrapping_add(lane as u32)))
}
