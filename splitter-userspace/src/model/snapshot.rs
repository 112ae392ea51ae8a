use std::sync::Arc;

use serde::Serialize;

use super::{Backend, Host, Location};

/// Index of a Location in [`Snapshot::locations`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct LocationId(pub u32);

/// Index of a Backend in [`Snapshot::backends`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(transparent)]
pub struct BackendId(pub u32);

/// All routing state at one moment: immutable, comparable, in a stable order.
///
/// Equal objects give an equal Snapshot, whatever the order in which they came. What did not change
/// between two Snapshots can be shared behind the inner `Arc`s.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Snapshot {
    /// Sorted by pattern: exact names, wildcards, any.
    pub hosts: Vec<Host>,
    /// Sorted by key.
    pub locations: Vec<Arc<Location>>,
    /// Sorted by key, then fault.
    pub backends: Vec<Arc<Backend>>,
}

impl Snapshot {
    /// The Location of an id that this Snapshot gave out.
    pub fn location(&self, id: LocationId) -> Option<&Arc<Location>> {
        self.locations.get(id.0 as usize)
    }

    /// The Backend of an id that this Snapshot gave out.
    pub fn backend(&self, id: BackendId) -> Option<&Arc<Backend>> {
        self.backends.get(id.0 as usize)
    }
}
