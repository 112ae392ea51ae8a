//! Decisions by slot and Variant: the observed share beside the target.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU64, Ordering};

use splitter_common::{MAX_SLOTS, MAX_VARIANTS, SlotStats};

use super::memory::Words;
use crate::routing::SlotId;

/// All decision counters: a BPF array's memory, or the process's own.
pub struct SplitStats {
    words: Words<AtomicU64>,
}

const _: () = assert!(size_of::<SlotStats>() == MAX_VARIANTS * size_of::<u64>());

impl SplitStats {
    /// Counters in the process's own memory.
    ///
    /// # Errors
    /// When there is no memory left.
    pub fn in_memory() -> io::Result<Self> {
        let words = Words::anonymous(MAX_SLOTS as usize * MAX_VARIANTS)?;
        Ok(SplitStats { words })
    }

    /// The memory of the BPF array `split_stats`.
    ///
    /// # Errors
    /// The kernel's, when the map cannot be mapped or is too small.
    pub fn of_map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        let words = Words::of_map(fd, MAX_SLOTS as usize * MAX_VARIANTS)?;
        Ok(SplitStats { words })
    }

    /// Counts one decision. Without effect for a slot or Variant that there is not.
    pub fn count(&self, slot: SlotId, variant: usize) {
        let counter = self.slot(slot).and_then(|words| words.get(variant));
        if let Some(counter) = counter {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// The decisions of a slot by Variant.
    pub fn read(&self, slot: SlotId) -> [u64; MAX_VARIANTS] {
        let mut counts = [0; MAX_VARIANTS];
        let words = self.slot(slot).into_iter().flatten();
        for (count, word) in counts.iter_mut().zip(words) {
            *count = word.load(Ordering::Relaxed);
        }
        counts
    }

    /// Starts a slot's counters anew: another Location has it now.
    pub fn clear(&self, slot: SlotId) {
        for word in self.slot(slot).into_iter().flatten() {
            word.store(0, Ordering::Relaxed);
        }
    }

    fn slot(&self, slot: SlotId) -> Option<&[AtomicU64]> {
        let start = (slot.0 as usize).checked_mul(MAX_VARIANTS)?;
        self.words.get(start..start.checked_add(MAX_VARIANTS)?)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn counts_by_slot_and_variant() {
        let stats = SplitStats::in_memory().unwrap();
        stats.count(SlotId(1), 0);
        stats.count(SlotId(1), 7);
        stats.count(SlotId(1), 7);
        assert_eq!(stats.read(SlotId(1)), [1, 0, 0, 0, 0, 0, 0, 2]);
        assert_eq!(stats.read(SlotId(0)), [0; 8]);
        assert_eq!(stats.read(SlotId(2)), [0; 8]);
        stats.clear(SlotId(1));
        assert_eq!(stats.read(SlotId(1)), [0; 8]);
    }

    #[test]
    fn what_there_is_not_is_not_counted() {
        let stats = SplitStats::in_memory().unwrap();
        stats.count(SlotId(0), 8);
        stats.count(SlotId(MAX_SLOTS), 0);
        stats.count(SlotId(u32::MAX), 0);
        assert_eq!(stats.read(SlotId(1)), [0; 8]);
        assert_eq!(stats.read(SlotId(u32::MAX)), [0; 8]);
    }
}
