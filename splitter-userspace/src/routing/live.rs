use std::sync::Arc;

use crate::model::{LocationId, Snapshot, Weights};

/// Number of a weight slot, the same in every map and for the Location's whole life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

/// Where the weights live: mapped BPF memory, or the process's own.
pub trait WeightSource: Send + Sync {
    /// The weights of a slot now. Never torn, never fails: a slot that nobody wrote has no weight
    /// at all, which leaves everything to stable.
    fn weights(&self, slot: SlotId) -> Weights;
}

/// What the request path reads: one Snapshot with what was derived from it. Published whole.
pub struct Live {
    /// Counts up by one with each published state; 0 is the empty start.
    pub generation: u64,
    /// The state itself.
    pub snapshot: Arc<Snapshot>,
    /// The weight slot of each Location, by [`LocationId`].
    pub slots: Vec<SlotId>,
    /// tmp
    pub router: Arc<super::Router>,
}

impl Live {
    /// The weight slot of a Location.
    pub fn slot(&self, id: LocationId) -> Option<SlotId> {
        self.slots.get(id.0 as usize).copied()
    }
}
