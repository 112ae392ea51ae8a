//! The weight slots, read by every worker on every weighted decision.

use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Mutex, PoisonError};

use splitter_common::{MAX_SLOTS, MAX_VARIANTS, Slot, SlotVariant};

use super::memory::Words;
use super::plan::{SlotContent, SlotError};
use crate::model::{self, Weights};
use crate::routing::{SlotId, WeightSource};

const _: () = assert!(MAX_VARIANTS == model::MAX_VARIANTS);
const _: () = assert!(size_of::<Slot>().is_multiple_of(size_of::<AtomicU32>()));

/// Words of one slot, and where its fields lie; [`Slot`] is the definition.
const WORDS: usize = size_of::<Slot>() / size_of::<AtomicU32>();
const SEQ: usize = std::mem::offset_of!(Slot, seq) / 4;
const GENERATION: usize = std::mem::offset_of!(Slot, generation) / 4;
const COUNT: usize = std::mem::offset_of!(Slot, count) / 4;
const VARIANTS: usize = std::mem::offset_of!(Slot, variants) / 4;
const VARIANT_WORDS: usize = size_of::<SlotVariant>() / 4;
const WEIGHT: usize = std::mem::offset_of!(SlotVariant, weight) / 4;
const BACKEND: usize = std::mem::offset_of!(SlotVariant, backend) / 4;

/// How often a reader starts again before it takes the words as they are. A writer is done within
/// some 50 ns; only a sequence that somebody left odd is met more often than once.
const READ_TRIES: usize = 16;

/// All weight slots: a BPF array's memory, or the process's own.
///
/// A slot is written under a sequence count (odd while it is being written), so that readers of
/// this program never see half of a write. Tools such as bpftool write without it; then a reader
/// may see a mix of old and new weights once, which is still a valid Split.
pub struct SlotTable {
    words: Words<AtomicU32>,
    /// Two writers in one slot would hide each other's sequence.
    writer: Mutex<()>,
}

impl SlotTable {
    /// Slots in the process's own memory: no privileges needed, not visible to other tools.
    ///
    /// # Errors
    /// When there is no memory left.
    pub fn in_memory() -> io::Result<Self> {
        Words::anonymous(MAX_SLOTS as usize * WORDS).map(Self::over)
    }

    /// The memory of the BPF array `splits`.
    ///
    /// # Errors
    /// The kernel's, when the map cannot be mapped or is too small.
    pub fn of_map(fd: BorrowedFd<'_>) -> io::Result<Self> {
        Words::of_map(fd, MAX_SLOTS as usize * WORDS).map(Self::over)
    }

    fn over(words: Words<AtomicU32>) -> Self {
        SlotTable {
            words,
            writer: Mutex::new(()),
        }
    }

    /// How many slots there are.
    pub fn len(&self) -> u32 {
        MAX_SLOTS
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Puts a Split's weights into a slot. Workers and kernel programs follow at once.
    ///
    /// # Errors
    /// When there is no such slot.
    pub fn write(
        &self,
        slot: SlotId,
        content: &SlotContent,
        generation: u64,
    ) -> Result<(), SlotError> {
        let words = self.slot(slot).ok_or(SlotError::NoSuchSlot(slot))?;
        let _only_writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        // Odd from here on, also if some tool left an odd number behind.
        let writing = words[SEQ].load(Ordering::Relaxed) | 1;
        words[SEQ].store(writing, Ordering::Relaxed);
        fence(Ordering::Release);
        // The map has room for the low half only; it is for people.
        words[GENERATION].store(generation as u32, Ordering::Relaxed);
        words[COUNT].store(content.count(), Ordering::Relaxed);
        for (place, variant) in words[VARIANTS..]
            .chunks_exact(VARIANT_WORDS)
            .zip(content.all())
        {
            place[WEIGHT].store(variant.weight, Ordering::Relaxed);
            place[BACKEND].store(variant.backend, Ordering::Relaxed);
        }
        words[SEQ].store(writing.wrapping_add(1), Ordering::Release);
        Ok(())
    }

    /// Empties every slot: what a former process left is of no use to this one.
    pub fn clear(&self) {
        let _only_writer = self.writer.lock().unwrap_or_else(PoisonError::into_inner);
        let used = |slot: &&[AtomicU32]| slot.iter().any(|word| word.load(Ordering::Relaxed) != 0);
        for slot in self.words.chunks_exact(WORDS).filter(used) {
            slot.iter()
                .for_each(|word| word.store(0, Ordering::Relaxed));
        }
    }

    /// A whole slot, as far as it could be read in one piece; `count` is at most
    /// [`MAX_VARIANTS`], and everything past it is zero.
    pub fn read(&self, slot: SlotId) -> Slot {
        self.copy(slot, whole)
    }

    fn slot(&self, slot: SlotId) -> Option<&[AtomicU32]> {
        let start = (slot.0 as usize).checked_mul(WORDS)?;
        self.words.get(start..start.checked_add(WORDS)?)
    }

    /// Copies from a slot in one piece if it can be had, else whatever is there.
    fn copy<T: Default>(&self, slot: SlotId, copy: impl Fn(&[AtomicU32]) -> T) -> T {
        let Some(words) = self.slot(slot) else {
            return T::default();
        };
        consistent(words, &copy).unwrap_or_else(|| copy(words))
    }
}

/// Copies from a slot between two equal, even sequence numbers; none after [`READ_TRIES`] failures.
fn consistent<T>(words: &[AtomicU32], copy: impl Fn(&[AtomicU32]) -> T) -> Option<T> {
    for _ in 0..READ_TRIES {
        let before = words[SEQ].load(Ordering::Acquire);
        if before & 1 == 0 {
            let value = copy(words);
            fence(Ordering::Acquire);
            if words[SEQ].load(Ordering::Relaxed) == before {
                return Some(value);
            }
        }
        std::hint::spin_loop();
    }
    None
}

impl WeightSource for SlotTable {
    fn weights(&self, slot: SlotId) -> Weights {
        self.copy(slot, |words| {
            let mut weights = Weights {
                len: count(words) as u8,
                ..Weights::default()
            };
            for (weight, place) in weights.values.iter_mut().zip(variants(words)) {
                *weight = place[WEIGHT].load(Ordering::Relaxed);
            }
            weights
        })
    }
}

fn whole(words: &[AtomicU32]) -> Slot {
    let mut slot = Slot {
        seq: words[SEQ].load(Ordering::Relaxed),
        generation: words[GENERATION].load(Ordering::Relaxed),
        count: count(words) as u32,
        ..Slot::default()
    };
    for (variant, place) in slot.variants.iter_mut().zip(variants(words)) {
        variant.weight = place[WEIGHT].load(Ordering::Relaxed);
        variant.backend = place[BACKEND].load(Ordering::Relaxed);
    }
    slot
}

/// Variants in use. Anybody may write the word, so it is held to what there is.
fn count(words: &[AtomicU32]) -> usize {
    (words[COUNT].load(Ordering::Relaxed) as usize).min(MAX_VARIANTS)
}

fn variants(words: &[AtomicU32]) -> impl Iterator<Item = &[AtomicU32]> {
    words[VARIANTS..]
        .chunks_exact(VARIANT_WORDS)
        .take(count(words))
}

#[cfg(test)]
#[path = "slots_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
