//! What the slots are called, for whoever reads the maps.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use aya::maps::{HashMap, MapData};
use splitter_common::{MAX_VARIANTS, SplitName, write_text};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};
use super::plan::{NO_SLOT, SlotPlan};
use crate::model::{HostPattern, Location, Snapshot};

/// The map `split_names`.
pub struct Names {
    map: HashMap<MapData, u32, SplitName>,
    /// What each slot was called after, and a hash of what it is called.
    written: BTreeMap<u32, (Arc<Location>, u64)>,
}

impl Names {
    /// Takes the map; what a former process left in it is removed.
    pub(super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        let mut map: HashMap<_, u32, SplitName> = maps.take("split_names")?;
        let slots: Result<Vec<_>, _> = map.keys().collect();
        for slot in slots.map_err(map_error("read", "split_names"))? {
            map.remove(&slot)
                .map_err(map_error("write", "split_names"))?;
        }
        Ok(Names {
            map,
            written: BTreeMap::new(),
        })
    }

    /// Writes what has changed since the last plan.
    ///
    /// # Errors
    /// When the map cannot be written; the rest is written with the next plan.
    pub fn update(&mut self, plan: &SlotPlan, snapshot: &Snapshot) -> Result<(), DataplaneError> {
        let places = plan.slots.iter().zip(&snapshot.locations);
        let named = places.filter(|(slot, _)| **slot != NO_SLOT);
        let named: BTreeMap<u32, &Arc<Location>> = named.map(|(slot, l)| (slot.0, l)).collect();
        let gone: Vec<u32> = self.written.keys().copied().collect();
        for slot in gone.iter().filter(|slot| !named.contains_key(slot)) {
            self.map
                .remove(slot)
                .map_err(map_error("write", "split_names"))?;
            self.written.remove(slot);
        }
        for (slot, location) in named {
            let written = self.written.get(&slot);
            if written.is_some_and(|(after, _)| Arc::ptr_eq(after, location)) {
                continue;
            }
            let name = name_of(location);
            let hash = hash_of(&name);
            if written.is_none_or(|(_, written)| *written != hash) {
                let written = self.map.insert(slot, name, 0);
                written.map_err(map_error("write", "split_names"))?;
            }
            self.written.insert(slot, (Arc::clone(location), hash));
        }
        Ok(())
    }
}

fn name_of(location: &Location) -> SplitName {
    let mut name = SplitName::default();
    let host = match &location.key.host {
        HostPattern::Any => "*".to_owned(),
        host => host.to_string(),
    };
    write_text(&mut name.host, &host);
    write_text(&mut name.path, &location.key.path);
    write_text(&mut name.kind, &format!("{:?}", location.key.kind));
    let variants = location.split.variants.iter().take(MAX_VARIANTS);
    for (place, variant) in name.variants.iter_mut().zip(variants) {
        write_text(place, &variant.name);
    }
    name
}

fn hash_of(name: &SplitName) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name.host, name.path, name.kind, name.variants).hash(&mut hasher);
    hasher.finish()
}
