//! Reports weights that somebody changed past the objects.

use std::collections::BTreeMap;

use crate::dataplane::{Override, SlotContent};
use crate::routing::{Live, SlotId};
use crate::telemetry::{Gauge, Registry, WEIGHT_OVERRIDES};

/// What was last reported.
pub struct Overrides {
    known: BTreeMap<SlotId, SlotContent>,
    count: Gauge,
}

impl Overrides {
    /// None known.
    pub fn new(registry: &Registry) -> Self {
        let count = registry.gauge(&WEIGHT_OVERRIDES, &[]);
        count.set(0);
        Overrides {
            known: BTreeMap::new(),
            count,
        }
    }

    /// Logs what has appeared, changed or gone since the last time.
    pub fn report(&mut self, found: &[Override], live: &Live) {
        for change in found {
            if self.known.get(&change.slot) != Some(&change.found) {
                tracing::warn!(
                    location = name(live, change.slot),
                    wanted = %weights(&change.wanted),
                    live = %weights(&change.found),
                    "weights were changed in the map; they hold until the objects change"
                );
            }
        }
        let now: BTreeMap<_, _> = found.iter().map(|o| (o.slot, o.found)).collect();
        for slot in self.known.keys().filter(|slot| !now.contains_key(slot)) {
            let location = name(live, *slot);
            tracing::info!(location, "weights are those of the objects again");
        }
        self.count.set(i64::try_from(now.len()).unwrap_or(i64::MAX));
        self.known = now;
    }
}

/// The Location or Service port that has a slot; empty when it is gone.
fn name(live: &Live, slot: SlotId) -> String {
    let index = live.slots.iter().position(|other| *other == slot);
    let location = index.and_then(|index| live.snapshot.locations.get(index));
    let service = live.l4.iter().find(|it| it.slot == slot);
    let service = service.map(|it| it.service.key.to_string());
    let location = location.map(|location| location.key.to_string());
    location.or(service).unwrap_or_default()
}

/// `80/20`.
fn weights(content: &SlotContent) -> String {
    let used = content.all().iter().take(content.count() as usize);
    let weights: Vec<_> = used.map(|variant| variant.weight.to_string()).collect();
    weights.join("/")
}
