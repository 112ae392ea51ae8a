//! From a Snapshot to the content of the weight slots, and from one such plan to the next.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use splitter_common::{MAX_SLOTS, MAX_VARIANTS, SlotVariant};

use super::ids::Ids;
use super::slots::SlotTable;
use crate::model::{BackendKey, Location, LocationKey, Problem, Severity, Snapshot};
use crate::routing::SlotId;

/// The slot of a Location that has none: reads as no weights at all, so stable answers.
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
    slots: Ids<LocationKey>,
    backends: Ids<BackendKey>,
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
    pub slots: Vec<SlotId>,
    /// The content of each slot in use.
    pub contents: BTreeMap<SlotId, SlotContent>,
    /// Locations that need a slot and found none left.
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

/// Gives every Location with a canary a slot and says what it holds.
///
/// A Location gets its slot with its first canary and keeps it as long as it exists. One that never
/// had a canary needs none: there is nothing to weigh. `generation` is that of the state that will
/// carry the plan; slots of Locations that are gone rest until [`SlotAllocator::reclaim`] is told
/// that no older state is left.
pub fn plan(snapshot: &Snapshot, generation: u64, allocator: &mut SlotAllocator) -> SlotPlan {
    let locations: HashSet<_> = snapshot.locations.iter().map(|l| &l.key).collect();
    let backends: HashSet<_> = snapshot.backends.iter().map(|b| &b.key).collect();
    allocator
        .slots
        .retain(generation, |key| locations.contains(key));
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
    plan
}

/// As [`plan`], which it gives the same as, for a Snapshot that follows on one whose plan is known:
/// where both have the same Locations and Backends, only Locations that differ are looked at.
pub fn replan(
    previous: &SlotPlan,
    before: &Snapshot,
    snapshot: &Snapshot,
    generation: u64,
    allocator: &mut SlotAllocator,
) -> SlotPlan {
    if previous.slots.len() != snapshot.locations.len() || !same_places(before, snapshot) {
        return plan(snapshot, generation, allocator);
    }
    let mut plan = SlotPlan {
        problems: Vec::new(),
        ..previous.clone()
    };
    let pairs = before.locations.iter().zip(&snapshot.locations);
    for (place, (old, new)) in plan.slots.iter_mut().zip(pairs) {
        let settled = *place != NO_SLOT || new.split.variants.len() < 2;
        if settled && Arc::ptr_eq(old, new) {
            continue;
        }
        *place = slot_of(new, allocator, &mut plan.problems);
        if *place != NO_SLOT {
            let content = content(snapshot, new, allocator);
            plan.contents.insert(*place, content);
        }
    }
    plan
}

/// Whether Locations and Backends are the same under the same numbers, whatever else they say.
fn same_places(one: &Snapshot, other: &Snapshot) -> bool {
    let mut locations = one.locations.iter().zip(&other.locations);
    let mut backends = one.backends.iter().zip(&other.backends);
    one.locations.len() == other.locations.len()
        && one.backends.len() == other.backends.len()
        && locations.all(|(a, b)| Arc::ptr_eq(a, b) || a.key == b.key)
        && backends.all(|(a, b)| Arc::ptr_eq(a, b) || a.key == b.key)
}

fn slot_of(
    location: &Location,
    allocator: &mut SlotAllocator,
    problems: &mut Vec<Problem>,
) -> SlotId {
    if location.split.variants.len() < 2 {
        return allocator.slots.get(&location.key).map_or(NO_SLOT, SlotId);
    }
    allocator.slots.assign(&location.key).map_or_else(
        || {
            problems.push(no_slot_left(location));
            NO_SLOT
        },
        SlotId,
    )
}

fn no_slot_left(location: &Location) -> Problem {
    Problem {
        severity: Severity::Error,
        object: location.ingress.clone(),
        source: String::new(),
        field: "spec.rules".to_owned(),
        code: "too-many-splits",
        message: format!(
            "no weight slot is left for the location {}: {MAX_SLOTS} locations with a canary are \
             the limit",
            location.key
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
