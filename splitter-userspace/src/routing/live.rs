use std::sync::Arc;

use super::{L4Live, Router};
use crate::model::{LocationId, MAX_VARIANTS, Rows, Snapshot, Weights};

/// Number of a weight slot, the same in every map and for the whole life of the Location or the Service
/// port that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SlotId(pub u32);

impl SlotId {
    /// Of a Location without a slot: it reads as no weights.
    pub const NONE: SlotId = SlotId(u32::MAX);
}

/// Where the weights live: mapped BPF memory, or the process's own.
pub trait WeightSource: Send + Sync {
    /// The weights of a slot now. Never torn, never fails: a slot that nobody wrote has no weight
    /// at all, which leaves everything to stable.
    fn weights(&self, slot: SlotId) -> Weights;

    /// Counts a request that was given to a Variant of a slot's Split, so that the observed share
    /// can be seen beside the weights. Sources that keep no count do nothing.
    fn count(&self, _slot: SlotId, _variant: usize) {}

    /// What was counted of a slot, by Variant.
    fn counted(&self, _slot: SlotId) -> [u64; MAX_VARIANTS] {
        [0; MAX_VARIANTS]
    }
}

/// What the request path reads: one Snapshot with what was derived from it. Published whole.
pub struct Live {
    /// Counts up by one with each published state; 0 is the empty start.
    pub generation: u64,
    /// The state itself.
    pub snapshot: Arc<Snapshot>,
    /// Finds this Snapshot's Locations.
    pub router: Arc<Router>,
    /// The weight slot of each Location, by [`LocationId`].
    pub slots: Rows<SlotId>,
    /// What is split without a look at HTTP, by [`L4Id`](crate::model::L4Id).
    pub l4: Vec<Arc<L4Live>>,
}

impl Live {
    /// Puts the parts together. `router` must come from a Snapshot with the [same
    /// structure](same_structure); `slots` has one entry for each Location.
    pub fn new(
        generation: u64,
        snapshot: Arc<Snapshot>,
        router: Arc<Router>,
        slots: Rows<SlotId>,
    ) -> Self {
        debug_assert_eq!(slots.len(), snapshot.locations.len());
        Live {
            generation,
            snapshot,
            router,
            slots,
            l4: Vec::new(),
        }
    }

    /// The same with what is split without a look at HTTP: one for each Service port of the Snapshot.
    pub fn with_l4(self, l4: Vec<Arc<L4Live>>) -> Self {
        debug_assert_eq!(l4.len(), self.snapshot.l4.services.len());
        Live { l4, ..self }
    }

    /// The start: no host, no Location, generation 0.
    pub fn empty() -> Self {
        let snapshot = Snapshot::default();
        let router = Arc::new(Router::build(&snapshot));
        Live::new(0, Arc::new(snapshot), router, Rows::new())
    }

    /// The router for `next`: this one's when the structure did not change, else a new one.
    pub fn router_for(&self, next: &Snapshot) -> Arc<Router> {
        if same_structure(&self.snapshot, next) {
            Arc::clone(&self.router)
        } else {
            Arc::new(Router::build(next))
        }
    }

    /// The Location whose pods have the TLS of connections to `name`, which is in lower case, if it is
    /// left to them. The most specific host counts, as for requests.
    pub fn passthrough(&self, name: &str) -> Option<LocationId> {
        let host = self.router.find_host(name)?;
        let host = self.snapshot.hosts.get(host as usize)?;
        self.snapshot.passthrough.get(&host.pattern).copied()
    }

    /// The weight slot of a Location.
    pub fn slot(&self, id: LocationId) -> Option<SlotId> {
        self.slots.get(id.0 as usize).copied()
    }
}

/// Whether two Snapshots have the same hosts and Locations under the same ids, so that one
/// [`Router`] serves both. Splits, rules, weights, owners and endpoints may differ.
pub fn same_structure(one: &Snapshot, other: &Snapshot) -> bool {
    one.hosts == other.hosts
        && one.same_locations(other, |one, other| {
            one.key == other.key && one.pattern == other.pattern
        })
}

#[cfg(test)]
mod tests;
