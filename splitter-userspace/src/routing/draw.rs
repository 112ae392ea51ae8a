//! Weighted choice that is exact: blocks of decisions without replacement.

use super::{Draw, SlotId};
use crate::model::{MAX_VARIANTS, Weights};

/// Slots with a higher number have no block of their own and are drawn independently. Bounds the
/// memory of one worker to 36 MiB when all of them are in use.
pub const MAX_BLOCKS: usize = 1 << 20;

/// One worker's blocks, by slot.
///
/// For each slot there is an urn that holds one ball for each unit of weight. A weighted decision
/// takes a ball out at random; when the urn is empty it is filled again. So over each run of `total`
/// decisions exactly `weight` go to each Variant, every order is equally likely, and no order is
/// repeated. An urn is filled anew when the weights of its slot change.
///
/// Not shared: each worker has its own urns and its own random numbers.
pub struct Blocks {
    urns: Vec<Urn>,
    rng: fastrand::Rng,
}

/// What is left of a block.
#[derive(Clone, Copy, Default)]
struct Urn {
    balls: [u32; MAX_VARIANTS],
    /// Which weights it was filled with, as a hash. That two weights share one is unlikely, and
    /// would only mean that the old block is finished first.
    of: u32,
}

impl Blocks {
    /// No block yet. `rng` must be seeded differently for each worker, or they all draw the same;
    /// seeds next to each other will do.
    pub fn new(mut rng: fastrand::Rng) -> Self {
        // The generator's state is its seed, and its first outputs for near seeds are alike.
        let rng = rng.fork();
        Blocks {
            urns: Vec::new(),
            rng,
        }
    }

    /// Makes room for slots below `slots`, 36 bytes each, so that no later draw has to. Without it
    /// the room grows with the highest slot that is drawn from.
    pub fn reserve(&mut self, slots: usize) {
        let slots = slots.min(MAX_BLOCKS);
        if slots > self.urns.len() {
            self.urns.resize(slots, Urn::default());
        }
    }

    /// The draw for one decision of this slot, which has these weights now. Costs nothing until a
    /// point is asked for.
    pub fn slot<'a>(&'a mut self, slot: SlotId, weights: &'a Weights) -> SlotDraw<'a> {
        SlotDraw {
            blocks: self,
            slot,
            weights,
        }
    }

    fn variant(&mut self, slot: SlotId, weights: &Weights) -> usize {
        let index = slot.0 as usize;
        if index >= MAX_BLOCKS {
            let mut once = Urn {
                balls: weights.values,
                of: 0,
            };
            return once.take(&mut self.rng);
        }
        self.reserve(index + 1);
        let Some(urn) = self.urns.get_mut(index) else {
            return 0;
        };
        let of = fingerprint(weights);
        if urn.of != of || urn.balls == [0; MAX_VARIANTS] {
            *urn = Urn {
                balls: weights.values,
                of,
            };
        }
        urn.take(&mut self.rng)
    }
}

impl Urn {
    fn take(&mut self, rng: &mut fastrand::Rng) -> usize {
        let total: u64 = self.balls.iter().copied().map(u64::from).sum();
        if total == 0 {
            return 0;
        }
        let mut ball = rng.u64(..total);
        for (variant, balls) in self.balls.iter_mut().enumerate() {
            if ball < u64::from(*balls) {
                *balls -= 1;
                return variant;
            }
            ball -= u64::from(*balls);
        }
        0
    }
}

/// The draw for one decision: see [`Blocks::slot`].
pub struct SlotDraw<'a> {
    blocks: &'a mut Blocks,
    slot: SlotId,
    weights: &'a Weights,
}

impl Draw for SlotDraw<'_> {
    /// A point of the Variant that was drawn.
    fn point(&mut self, total: u32) -> u32 {
        let variant = self.blocks.variant(self.slot, self.weights);
        first_point(self.weights, variant).min(total.saturating_sub(1))
    }
}

/// The lowest point that [`Weights::at`] gives to `variant`: canaries first, stable last.
fn first_point(weights: &Weights, variant: usize) -> u32 {
    let end = if variant == 0 { MAX_VARIANTS } else { variant };
    let before = weights.values.get(1..end).unwrap_or_default();
    before
        .iter()
        .fold(0, |sum, weight| sum.saturating_add(*weight))
}

fn fingerprint(weights: &Weights) -> u32 {
    // Odd multiplier of a 64-bit linear congruential generator; the high half is well mixed.
    let mix = |hash: u64, value: &u32| {
        (hash ^ u64::from(*value))
            .wrapping_mul(6_364_136_223_846_793_005)
            .rotate_left(29)
    };
    let hash = weights.values.iter().fold(u64::from(weights.len) + 1, mix);
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests;
