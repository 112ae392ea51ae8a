use crate::layout::layout;
use crate::limits::MAX_VARIANTS;

/// One Variant of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SlotVariant {
    /// Its part of the sum of all weights.
    pub weight: u32,
    /// Number of the Backend that answers: stable for the Backend's lifetime.
    pub backend: u32,
}

/// The weights of one Split, as they lie in the map `splits`.
///
/// Weights only: a reader adds them up, so that a person who changes one number has changed the
/// split and no second number can disagree. `variants[0]` is stable, then the canaries, oldest
/// first.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct Slot {
    /// Odd while the slot is being written. Readers start again when it is odd or has changed,
    /// for a bounded number of times.
    pub seq: u32,
    /// Generation of the Snapshot that wrote it, low 32 bits.
    pub generation: u32,
    /// Variants in use, at most [`MAX_VARIANTS`]; anything above counts as that. 0: never written,
    /// everything is for stable.
    pub count: u32,
    /// Zero.
    pub pad: u32,
    /// The Variants; those past `count` are zero.
    pub variants: [SlotVariant; MAX_VARIANTS],
}

/// Decisions of one slot by Variant, as they lie in the map `split_stats`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(C)]
pub struct SlotStats {
    /// How often each Variant was chosen.
    pub chosen: [u64; MAX_VARIANTS],
}

layout!(SlotVariant, size 8, align 4, { weight: 0, backend: 4 });
layout!(Slot, size 80, align 4, { seq: 0, generation: 4, count: 8, pad: 12, variants: 16 });
layout!(SlotStats, size 64, align 8, { chosen: 0 });

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layout::bytes_of;

    #[test]
    fn slot_bytes() {
        let mut slot = Slot {
            seq: 2,
            generation: 0x0102_0304,
            count: 2,
            ..Slot::default()
        };
        slot.variants[0] = SlotVariant {
            weight: 80,
            backend: 7,
        };
        slot.variants[7] = SlotVariant {
            weight: 1,
            backend: 0xffff_ffff,
        };
        let mut golden = [0u8; 80];
        golden[0] = 2;
        golden[4..8].copy_from_slice(&[4, 3, 2, 1]);
        golden[8] = 2;
        golden[16] = 80;
        golden[20] = 7;
        golden[72] = 1;
        golden[76..80].fill(0xff);
        assert_eq!(bytes_of(&slot), golden);
    }

    #[test]
    fn stats_bytes() {
        let mut stats = SlotStats::default();
        stats.chosen[1] = 0x1_0000_0002;
        let mut golden = [0u8; 64];
        golden[8] = 2;
        golden[12] = 1;
        assert_eq!(bytes_of(&stats), golden);
    }
}
