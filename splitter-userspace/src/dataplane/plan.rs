//! From a Snapshot to the content of the weight slots, and from one such plan to the next.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use splitter_common::{MAX_SLOTS, MAX_VARIANTS, SlotVariant};

use super::ids::Ids;
use super::slots::SlotTable;
use crate::model::{
    BackendKey, L4Key, L4Service, Location, LocationKey, ObjectRef, Problem, Rows, Severity,
    Snapshot,
};
use crate::routing::SlotId;

/// The slot of a Location or Service port that has none: reads as no weights at all, so stable answers.
pub const NO_SLOT: SlotId = SlotId::NONE;

/// What a slot should hold.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SlotContent {
    count: u32,
    variants: [SlotVariant; MAX_VARIANTS],
}

impl SlotContent {
    /// Weight and Backend number of each Variant, stable first; those past [`MAX_VARIANTS`] are
    /// left out.
    pub fn new(variants: impl IntoIterator<Item = (u32, u32)>) -> Self {
        let mut content = SlotContent::default();
        for (place, (weight, backend)) in content.variants.iter_mut().zip(variants) {
            *place = SlotVariant { weight, backend };
            content.count += 1;
        }
        content
    }

    /// How many Variants there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// All places; those past [`Self::count`] are zero.
    pub fn all(&self) -> &[SlotVariant; MAX_VARIANTS] {
        &self.variants
    }
}

/// Why a slot cannot be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SlotError {
    /// The table has no such slot.
    #[error("there is no weight slot {}, the last is {}", .0.0, MAX_SLOTS - 1)]
    NoSuchSlot(SlotId),
}

/// Numbers of slots and Backends, kept from Snapshot to Snapshot.
#[derive(Debug)]
pub struct SlotAllocator {
    slots: Ids<Owner>,
    backends: Ids<BackendKey>,
}

/// What a slot can belong to.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Owner {
    Location(LocationKey),
    Service(L4Key),
}

impl Default for SlotAllocator {
    fn default() -> Self {
        Self::with_slots(MAX_SLOTS)
    }
}

impl SlotAllocator {
    /// An allocator that gives out at most `slots` slots.
    pub fn with_slots(slots: u32) -> Self {
        SlotAllocator {
            slots: Ids::new(slots),
            backends: Ids::new(u32::MAX),
        }
    }

    /// Frees what no state of generation `oldest` or later names, and says which slots are to be
    /// emptied. Without it, freed slots are never used again.
    pub fn reclaim(&mut self, oldest: u64) -> Vec<SlotOp> {
        self.backends.reclaim(oldest);
        let freed = self.slots.reclaim(oldest);
        freed
            .into_iter()
            .map(|id| SlotOp::Clear(SlotId(id)))
            .collect()
    }
}

/// What the slots should hold for one Snapshot.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SlotPlan {
    /// The slot of each Location, by `LocationId`; [`NO_SLOT`] for those without.
    pub slots: Rows<SlotId>,
    /// The slot of each Service port, by `L4Id`; [`NO_SLOT`] for those without.
    pub services: Vec<SlotId>,
    /// The content of each slot in use.
    pub contents: BTreeMap<SlotId, SlotContent>,
    /// Locations and Service ports that need a slot and found none left.
    pub problems: Vec<Problem>,
}

/// One write to the slot table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SlotOp {
    /// The slot gets this content.
    Write(SlotId, SlotContent),
    /// The slot belongs to nobody any more.
    Clear(SlotId),
}

/// Gives every Location and Service port with a canary a slot and says what it holds.
///
/// It gets its slot with its first canary and keeps it as long as it exists. One that never
/// had a canary needs none: there is nothing to weigh. `generation` is that of the state that will
/// carry the plan; slots of Locations that are gone rest until [`SlotAllocator::reclaim`] is told
/// that no older state is left.
pub fn plan(snapshot: &Snapshot, generation: u64, allocator: &mut SlotAllocator) -> SlotPlan {
    let locations: HashSet<_> = snapshot.locations.iter().map(|l| &l.key).collect();
    let services: HashSet<_> = snapshot.l4.services.iter().map(|it| &it.key).collect();
    let l4 = snapshot.l4.services.iter().flat_map(|it| &it.variants);
    let l4: HashSet<BackendKey> = l4.map(|it| it.key.backend()).collect();
    let backends = snapshot.backends.iter().map(|b| &b.key);
    let backends: HashSet<_> = backends.chain(&l4).collect();
    allocator.slots.retain(generation, |owner| match owner {
        Owner::Location(key) => locations.contains(key),
        Owner::Service(key) => services.contains(key),
    });
    allocator
        .backends
        .retain(generation, |key| backends.contains(key));

    let mut plan = SlotPlan::default();
    for location in &snapshot.locations {
        let slot = slot_of(location, allocator, &mut plan.problems);
        plan.slots.push(slot);
        if slot != NO_SLOT {
            let content = content(snapshot, location, allocator);
            plan.contents.insert(slot, content);
        }
    }
    services_of(snapshot, allocator, &mut plan);
    plan
}

/// Does the same for all Service ports.
fn services_of(snapshot: &Snapshot, allocator: &mut SlotAllocator, plan: &mut SlotPlan) {
    plan.services.clear();
    for service in &snapshot.l4.services {
        let slot = service_slot(service, allocator, &mut plan.problems);
        plan.services.push(slot);
        if slot != NO_SLOT {
            let variants = service.variants.iter().map(|variant| {
                let number = allocator.backends.assign(&variant.key.backend());
                (variant.weight, number.unwrap_or(u32::MAX))
            });
            plan.contents.insert(slot, SlotContent::new(variants));
        }
    }
}

/// Makes a plan for a Snapshot `before` the plan for the one that follows on it, the same as [`plan`]
/// gives, and says what must be written, the same as [`diff`] gives. Where both Snapshots have the same
/// Locations, Service ports and Backends, only Locations that differ are looked at.
pub fn replan(
    current: &mut SlotPlan,
    before: &Snapshot,
    snapshot: &Snapshot,
    generation: u64,
    allocator: &mut SlotAllocator,
) -> Vec<SlotOp> {
    // Those that found no slot are to get one as soon as there is one.
    let settled = current.problems.is_empty();
    if !settled || current.slots.len() != snapshot.locations.len() || !same_places(before, snapshot)
    {
        let next = plan(snapshot, generation, allocator);
        let ops = diff(current, &next);
        *current = next;
        return ops;
    }
    let mut changed = SlotPlan::default();
    for (index, old, new) in before.locations.differences(&snapshot.locations) {
        let (Some(old), Some(new)) = (old, new) else {
            continue;
        };
        if Arc::ptr_eq(old, new) {
            continue;
        }
        let slot = slot_of(new, allocator, &mut changed.problems);
        if current.slots.get(index) != Some(&slot)
            && let Some(place) = current.slots.get_mut(index)
        {
            *place = slot;
        }
        if slot != NO_SLOT {
            let content = content(snapshot, new, allocator);
            changed.contents.insert(slot, content);
        }
    }
    services_of(snapshot, allocator, &mut changed);
    let ops = diff(current, &changed);
    current.services = changed.services;
    current.problems = changed.problems;
    current.contents.extend(changed.contents);
    ops
}

/// Whether Locations, Service ports and Backends are the same under the same numbers, whatever else they say.
fn same_places(one: &Snapshot, other: &Snapshot) -> bool {
    let (services, others) = (&one.l4.services, &other.l4.services);
    let variants = |it: &L4Service| {
        let keys = it.variants.iter().map(|variant| variant.key.clone());
        keys.collect::<Vec<_>>()
    };
    let mut pairs = services.iter().zip(others);
    services.len() == others.len()
        && pairs.all(|(a, b)| Arc::ptr_eq(a, b) || (a.key == b.key && variants(a) == variants(b)))
        && one.same_locations(other, |one, other| one.key == other.key)
        && one.same_backends(other, |one, other| one.key == other.key)
}

fn slot_of(
    location: &Location,
    allocator: &mut SlotAllocator,
    problems: &mut Vec<Problem>,
) -> SlotId {
    let owner = Owner::Location(location.key.clone());
    if location.split.variants.len() < 2 {
        return allocator.slots.get(&owner).map_or(NO_SLOT, SlotId);
    }
    assigned(&owner, allocator, || {
        let place = format!("the location {}", location.key);
        problems.push(no_slot_left(&location.ingress, "spec.rules", &place));
    })
}

fn service_slot(
    service: &L4Service,
    allocator: &mut SlotAllocator,
    problems: &mut Vec<Problem>,
) -> SlotId {
    let owner = Owner::Service(service.key.clone());
    if service.variants.len() < 2 {
        return allocator.slots.get(&owner).map_or(NO_SLOT, SlotId);
    }
    assigned(&owner, allocator, || {
        let field = "metadata.annotations.splitter.io/split";
        problems.push(no_slot_left(
            &service.object(),
            field,
            &service.key.to_string(),
        ));
    })
}

fn assigned(owner: &Owner, allocator: &mut SlotAllocator, none: impl FnOnce()) -> SlotId {
    let slot = allocator.slots.assign(owner);
    if slot.is_none() {
        none();
    }
    slot.map_or(NO_SLOT, SlotId)
}

fn no_slot_left(object: &ObjectRef, field: &str, place: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        object: object.clone(),
        source: String::new(),
        field: field.to_owned(),
        code: "too-many-splits",
        message: format!(
            "no weight slot is left for {place}: {MAX_SLOTS} locations and ports of Services with a \
             canary are the limit"
        ),
        effect: "its weights have no effect: what no rule decides goes to stable".to_owned(),
    }
}

fn content(snapshot: &Snapshot, location: &Location, allocator: &mut SlotAllocator) -> SlotContent {
    SlotContent::new(location.split.variants.iter().map(|variant| {
        let key = snapshot
            .backend(variant.backend)
            .map(|backend| &backend.key);
        let number = key.and_then(|key| allocator.backends.assign(key));
        (variant.weight, number.unwrap_or(u32::MAX))
    }))
}

/// What must be written to get from one plan to the next. A slot whose content is the same in both
/// is not touched, so that a weight changed from outside stays until the object changes.
pub fn diff(old: &SlotPlan, new: &SlotPlan) -> Vec<SlotOp> {
    let changed = |slot: &SlotId, content: &SlotContent| old.contents.get(slot) != Some(content);
    let contents = new.contents.iter();
    contents
        .filter(|(slot, content)| changed(slot, content))
        .map(|(slot, content)| SlotOp::Write(*slot, *content))
        .collect()
}

/// Writes the changes of a plan. Do it before the state that names its slots is published.
///
/// # Errors
/// When an operation names a slot that the table has not; those before it are written.
pub fn apply(table: &SlotTable, ops: &[SlotOp], generation: u64) -> Result<(), SlotError> {
    for op in ops {
        match op {
            SlotOp::Write(slot, content) => table.write(*slot, content, generation)?,
            SlotOp::Clear(slot) => table.write(*slot, &SlotContent::default(), generation)?,
        }
    }
    Ok(())
}

#[cfg(test)]
#[path = "plan_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
