//! Who used a word of shared memory last, for each word; and for each byte of words that are used in parts.

use super::clock::THREAD;
use crate::warp::lanes_of;

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
        let mut look = |writes: &[u32], others: &[u32]| {
            for (&write, &second) in writes.iter().zip(others) {
                most = most.max(write);
                least = least.min(write);
                other = other.min(second);
            }
        };
        for half in halves(words) {
            match pattern(half) {
                Pattern::Same if count == 1 => {
                    let word = half[0] as usize;
                    look(&self.write[word..=word], &self.other[word..=word]);
                }
                Pattern::Neighbours if count == 1 => {
                    let all = half[0] as usize..half[0] as usize + 16;
                    if let (Some(writes), Some(others)) = (self.write.get(all.clone()), self.other.get(all)) {
                        look(&writes[..16], &others[..16]);
                    }
                }
                _ => {
                    for &word in half {
                        let all = word as usize..(word + count) as usize;
                        // SAFETY: the caller has checked the access against the size of shared memory, which has as many
                        // words.
                        unsafe { look(self.write.get_unchecked(all.clone()), self.other.get_unchecked(all)) };
                    }
                }
            }
        }
        (most, least, other)
    }

    /// Leaves the stamps of loads by these lanes.
    #[inline(always)]
    pub(super) fn stamp_loads(&mut self, words: &[u32; 32], count: u32, mask: u32, stamp: u32, site: u32) {
        for (number, half) in halves(words).enumerate() {
            let first = 16 * number as u32;
            let pattern = if mask == u32::MAX && count == 1 { pattern(half) } else { Pattern::Any };
            match pattern {
                Pattern::Same => {
                    // Two readers stand for all.
                    self.stamp_read(half[0] as usize, stamp + first, site);
                    self.stamp_read(half[0] as usize, stamp + first + 15, site);
                }
                Pattern::Neighbours => self.stamp_neighbours(half[0] as usize, stamp + first, site),
                Pattern::Any => {
                    for lane in lanes_of(mask & 0xffff << first) {
                        for word in words[lane]..words[lane] + count {
                            self.stamp_read(word as usize, stamp + lane as u32, site);
                        }
                    }
                }
            }
        }
    }

    /// As `stamp_read` for 16 neighbours.
    #[inline(always)]
    fn stamp_neighbours(&mut self, first: usize, stamp: u32, site: u32) {
        let all = first..first + 16;
        let (Some(read), Some(other), Some(read_site), Some(other_site)) = (
            self.read.get_mut(all.clone()),
            self.other.get_mut(all.clone()),
            self.read_site.get_mut(all.clone()),
            self.other_site.get_mut(all),
        ) else {
            return;
        };
        for lane in 0..16 {
            let stamp = stamp + lane as u32;
            let differs = (read[lane] ^ stamp) & THREAD != 0;
            other[lane] = if differs { read[lane] } else { other[lane] };
            other_site[lane] = if differs { read_site[lane] } else { other_site[lane] };
            read[lane] = stamp;
            read_site[lane] = site;
        }
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
        for lane in lanes_of(mask) {
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

/// How the words of half a warp lie.
enum Pattern {
    Same,
    Neighbours,
    Any,
}

#[inline(always)]
fn pattern(words: &[u32; 16]) -> Pattern {
    let (mut same, mut neighbours) = (0, 0);
    for lane in 0..16 {
        let offset = words[lane].wrapping_sub(words[0]);
        same |= offset;
        neighbours |= offset ^ lane as u32;
    }
    if neighbours == 0 {
        Pattern::Neighbours
    } else if same == 0 {
        Pattern::Same
    } else {
        Pattern::Any
    }
}

#[inline(always)]
fn halves(words: &[u32; 32]) -> impl Iterator<Item = &[u32; 16]> {
    words.as_chunks::<16>().0.iter()
}

#[inline(always)]
fn are_neighbours(words: &[u32; 32]) -> bool {
    (0..32).fold(true, |all, lane| all & (words[lane] == words[0].wrapping_add(lane as u32)))
}
