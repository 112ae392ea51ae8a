//! What the slots are called, for whoever reads the maps.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use aya::maps::{HashMap, MapData};
use splitter_common::{MAX_VARIANTS, SplitName, write_text};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};
use super::plan::{NO_SLOT, SlotPlan};
use crate::model::{HostPattern, L4Service, Location, Snapshot};

/// The map `split_names`.
pub struct Names {
    map: HashMap<MapData, u32, SplitName>,
    /// What each slot was called after, and a hash of what it is called.
    written: BTreeMap<u32, (Owner, u64)>,
}

/// What has a slot.
#[derive(Clone)]
enum Owner {
    Location(Arc<Location>),
    Service(Arc<L4Service>),
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
        let places = places.map(|(slot, it)| (slot, Owner::Location(Arc::clone(it))));
        let services = plan.services.iter().zip(&snapshot.l4.services);
        let services = services.map(|(slot, it)| (slot, Owner::Service(Arc::clone(it))));
        let named = places.chain(services).filter(|(slot, _)| **slot != NO_SLOT);
        let named: BTreeMap<u32, Owner> = named.map(|(slot, it)| (slot.0, it)).collect();
        let gone: Vec<u32> = self.written.keys().copied().collect();
        for slot in gone.iter().filter(|slot| !named.contains_key(slot)) {
            self.map
                .remove(slot)
                .map_err(map_error("write", "split_names"))?;
            self.written.remove(slot);
        }
        for (slot, owner) in named {
            let written = self.written.get(&slot);
            if written.is_some_and(|(after, _)| after.is_same(&owner)) {
                continue;
            }
            let name = owner.name();
            let hash = hash_of(&name);
            if written.is_none_or(|(_, written)| *written != hash) {
                let written = self.map.insert(slot, name, 0);
                written.map_err(map_error("write", "split_names"))?;
            }
            self.written.insert(slot, (owner, hash));
        }
        Ok(())
    }
}

impl Owner {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Owner::Location(one), Owner::Location(other)) => Arc::ptr_eq(one, other),
            (Owner::Service(one), Owner::Service(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    fn name(&self) -> SplitName {
        match self {
            Owner::Location(it) => location_name(it),
            Owner::Service(it) => service_name(it),
        }
    }
}

/// The Service in place of a host, its port in place of a path.
fn service_name(service: &L4Service) -> SplitName {
    let (host, path, kind) = service.key.place();
    let names = service.variants.iter().map(|it| &*it.name);
    name_of([&host, &path, kind], names)
}

fn location_name(location: &Location) -> SplitName {
    let host = match &location.key.host {
        HostPattern::Any => "*".to_owned(),
        host => host.to_string(),
    };
    let kind = format!("{:?}", location.key.kind);
    let names = location.split.variants.iter().map(|it| &*it.name);
    name_of([&host, &location.key.path, &kind], names)
}

fn name_of<'a>(
    [host, path, kind]: [&str; 3],
    variants: impl Iterator<Item = &'a str>,
) -> SplitName {
    let mut name = SplitName::default();
    write_text(&mut name.host, host);
    write_text(&mut name.path, path);
    write_text(&mut name.kind, kind);
    for (place, variant) in name.variants.iter_mut().zip(variants.take(MAX_VARIANTS)) {
        write_text(place, variant);
    }
    name
}

fn hash_of(name: &SplitName) -> u64 {
    let mut hasher = DefaultHasher::new();
    (name.host, name.path, name.kind, name.variants).hash(&mut hasher);
    hasher.finish()
}
