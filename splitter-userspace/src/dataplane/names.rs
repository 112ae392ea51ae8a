//! What the slots are called, for whoever reads the maps.

use std::collections::{BTreeMap, HashSet};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use aya::maps::{HashMap, MapData};
use splitter_common::{MAX_VARIANTS, SplitName, write_text};

use super::error::DataplaneError;
use super::maps::{Maps, map_error};
use super::plan::{NO_SLOT, SlotPlan};
use crate::model::{HostPattern, L4Service, Location, Rows, Snapshot};
use crate::routing::SlotId;

/// The map `split_names`.
pub struct Names {
    map: HashMap<MapData, u32, SplitName>,
    /// What each slot was called after, and a hash of what it is called.
    written: BTreeMap<u32, (Owner, u64)>,
    of: Named,
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
            of: Named::default(),
        })
    }

    /// Writes what has changed since the last plan.
    ///
    /// # Errors
    /// When the map cannot be written; the rest is written with the next plan.
    pub fn update(&mut self, plan: &SlotPlan, snapshot: &Snapshot) -> Result<(), DataplaneError> {
        let before = std::mem::take(&mut self.of);
        if before.services == plan.services && before.slots == plan.slots {
            let changed = before.locations.differences(&snapshot.locations);
            for (index, _, location) in changed {
                let slot = plan.slots.get(index).filter(|it| **it != NO_SLOT);
                if let (Some(slot), Some(location)) = (slot, location) {
                    self.name(slot.0, Owner::Location(Arc::clone(location)))?;
                }
            }
        } else {
            self.remove_others(plan)?;
            let places = plan.slots.iter().zip(&snapshot.locations);
            for (slot, location) in places.filter(|(slot, _)| **slot != NO_SLOT) {
                self.name(slot.0, Owner::Location(Arc::clone(location)))?;
            }
        }
        let services = plan.services.iter().zip(&snapshot.l4.services);
        for (slot, service) in services.filter(|(slot, _)| **slot != NO_SLOT) {
            self.name(slot.0, Owner::Service(Arc::clone(service)))?;
        }
        self.of = Named {
            slots: plan.slots.clone(),
            services: plan.services.clone(),
            locations: snapshot.locations.clone(),
        };
        Ok(())
    }

    /// Takes the names of slots away that belong to nobody any more.
    fn remove_others(&mut self, plan: &SlotPlan) -> Result<(), DataplaneError> {
        let used: HashSet<u32> = plan
            .slots
            .iter()
            .chain(&plan.services)
            .map(|it| it.0)
            .collect();
        let gone = self.written.keys().filter(|slot| !used.contains(slot));
        for slot in gone.copied().collect::<Vec<_>>() {
            self.map
                .remove(&slot)
                .map_err(map_error("write", "split_names"))?;
            self.written.remove(&slot);
        }
        Ok(())
    }

    fn name(&mut self, slot: u32, owner: Owner) -> Result<(), DataplaneError> {
        let written = self.written.get(&slot);
        if written.is_some_and(|(after, _)| after.is_same(&owner)) {
            return Ok(());
        }
        let name = owner.name();
        let hash = hash_of(&name);
        if written.is_none_or(|(_, written)| *written != hash) {
            let written = self.map.insert(slot, name, 0);
            written.map_err(map_error("write", "split_names"))?;
        }
        self.written.insert(slot, (owner, hash));
        Ok(())
    }
}

/// What was named, as far as no write of it has failed.
#[derive(Default)]
struct Named {
    slots: Rows<SlotId>,
    services: Vec<SlotId>,
    locations: Rows<Arc<Location>>,
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
