//! What stands for each Service port: its row, and the rings that this names.

use std::collections::BTreeMap;
use std::sync::Arc;

use splitter_common::{BalanceBy, Balanced, BalancedVariant, MAX_VARIANTS, RING_PART, RingPart};

use super::super::connect;
use super::super::error::DataplaneError;
use super::super::maps::map_error;
use super::tables::{BalanceTables, Installed, RINGS, ROWS, Retired, TARGETS, full, parts};
use super::traffic::TRAFFIC;
use crate::model::{L4Key, L4SplitBy};
use crate::routing::{L4Live, SlotId};

impl BalanceTables {
    /// Writes what has changed of a Service port. Gives what stood for it before.
    pub(super) fn put(
        &mut self,
        key: &L4Key,
        live: &Arc<L4Live>,
    ) -> Result<Vec<Retired>, DataplaneError> {
        let before = self.installed.get(key);
        // An Endpoint keeps its number as long as it is there.
        if before.is_some_and(|it| Arc::ptr_eq(&it.live, live)) {
            return Ok(Vec::new());
        }
        let rings = self.rings_of(live).ok_or_else(|| full(TARGETS))?;
        if let Some(before) = self.installed.get_mut(key)
            && before.rings == rings
            && is_alike(&before.live, live)
        {
            before.live = Arc::clone(live);
            return Ok(Vec::new());
        }
        let before = self.installed.get(key);
        let same: Vec<_> = rings
            .iter()
            .enumerate()
            .map(|(number, ring)| {
                let before = before.filter(|it| it.rings.get(number) == Some(ring))?;
                before.value.variants.get(number).copied()
            })
            .collect();
        let mut value = Balanced {
            slot: slot_of(live),
            split_by: match live.service.split_by {
                L4SplitBy::Connection => BalanceBy::Connection,
                L4SplitBy::SourceAddress => BalanceBy::SourceAddress,
            } as u32,
            ..Balanced::default()
        };
        let mut added = Vec::new();
        let written = self.write(key, live, &rings, &same, &mut value, &mut added);
        let row = match written {
            Ok(row) => row,
            Err(error) => {
                for ring in added {
                    self.ring_regions.give(ring.ring, parts(ring.len));
                }
                return Err(error);
            }
        };
        let installed = Installed {
            live: Arc::clone(live),
            row,
            value,
            rings,
        };
        let Some(old) = self.installed.insert(key.clone(), installed) else {
            return Ok(Vec::new());
        };
        let kept = named(same.into_iter().flatten());
        let rings = named(old.value.variants.into_iter());
        let gone = rings
            .into_iter()
            .filter(|(start, _)| !kept.contains_key(start));
        Ok(gone
            .map(|(_, ring)| Retired::Ring(ring))
            .chain([Retired::Row(old.row)])
            .collect())
    }

    /// Writes rings and row. Gives the row.
    fn write(
        &mut self,
        key: &L4Key,
        live: &L4Live,
        rings: &[Vec<u16>],
        same: &[Option<BalancedVariant>],
        value: &mut Balanced,
        added: &mut Vec<BalancedVariant>,
    ) -> Result<u32, DataplaneError> {
        let variants = live.service.variants.iter().zip(rings).zip(same);
        for (number, ((variant, ring), same)) in variants.enumerate().take(MAX_VARIANTS) {
            let mut its = BalancedVariant {
                traffic: self.era | self.traffic_of(key, &variant.name)?,
                ..same.unwrap_or_default()
            };
            if same.is_none() && !ring.is_empty() {
                its.len = ring.len() as u32;
                let start = self.ring_regions.take(parts(its.len));
                its.ring = start.ok_or_else(|| full(RINGS))?;
                added.push(its);
                self.write_ring(its.ring, ring)?;
            }
            if let Some(place) = value.variants.get_mut(number) {
                *place = its;
            }
        }
        let row = self.row_regions.take(1).ok_or_else(|| full(ROWS))?;
        if let Err(error) = self.rows.set(row, *value, 0) {
            self.row_regions.give(row, 1);
            return Err(map_error("write", ROWS)(error));
        }
        Ok(row)
    }

    fn write_ring(&mut self, start: u32, ring: &[u16]) -> Result<(), DataplaneError> {
        for (index, chunk) in (start..).zip(ring.chunks(RING_PART)) {
            let mut part = RingPart::default();
            for (place, number) in part.places.iter_mut().zip(chunk) {
                *place = *number;
            }
            self.rings
                .set(index, part, 0)
                .map_err(map_error("write", RINGS))?;
        }
        Ok(())
    }

    fn traffic_of(&mut self, key: &L4Key, variant: &Arc<str>) -> Result<u32, DataplaneError> {
        let name = (key.clone(), Arc::clone(variant));
        if let Some(place) = self.traffic_ids.get(&name) {
            return Ok(place);
        }
        // Open flows of a Variant that is gone go on counting in its place, which is another's only when
        // there is no fresh one left.
        let mut place = self.traffic_ids.assign(&name);
        if place.is_none() {
            self.traffic_ids.reclaim(0);
            place = self.traffic_ids.assign(&name);
        }
        let place = place.ok_or_else(|| full(TRAFFIC))?;
        self.traffic.begin(place, key, variant)?;
        Ok(place)
    }

    /// The rings of a Service port by the numbers of Endpoints; none when one has no number.
    fn rings_of(&self, live: &L4Live) -> Option<Vec<Vec<u16>>> {
        let variants = 0..live.service.variants.len();
        let rings = variants.map(|variant| {
            let taking = live.taking(variant);
            let numbers: Vec<Option<u32>> = taking
                .iter()
                .map(|addr| {
                    let key = connect::key(live.service.key.transport, *addr);
                    self.target_ids.get(&key)
                })
                .collect();
            let places = live.places(variant).iter();
            let number = |place: &u16| numbers.get(usize::from(*place)).copied().flatten();
            places
                .map(|place| number(place).and_then(|it| u16::try_from(it).ok()))
                .collect()
        });
        rings.collect()
    }

    pub(super) fn take_out(&mut self, key: &L4Key) -> Vec<Retired> {
        let Some(old) = self.installed.remove(key) else {
            return Vec::new();
        };
        let rings = named(old.value.variants.into_iter()).into_values();
        rings
            .map(Retired::Ring)
            .chain([Retired::Row(old.row)])
            .collect()
    }
}

/// The rings that there are among these, each once, by where it begins. An empty one begins nowhere.
pub(super) fn named(all: impl Iterator<Item = BalancedVariant>) -> BTreeMap<u32, BalancedVariant> {
    all.filter(|ring| ring.len > 0)
        .map(|ring| (ring.ring, ring))
        .collect()
}

/// Whether a row says the same of two states with the same rings.
fn is_alike(one: &L4Live, other: &L4Live) -> bool {
    let names = |live: &L4Live| {
        let variants = live.service.variants.iter();
        variants.map(|it| Arc::clone(&it.name)).collect::<Vec<_>>()
    };
    slot_of(one) == slot_of(other)
        && one.service.split_by == other.service.split_by
        && names(one) == names(other)
}

/// The slot that decides for what comes in at the node.
fn slot_of(live: &L4Live) -> u32 {
    let service = &live.service;
    let is_split = service.scope.is_north_south() && service.variants.len() > 1;
    match is_split && live.slot != SlotId::NONE {
        true => live.slot.0,
        false => Balanced::NO_SLOT,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_that_is_named_twice_is_one_and_an_empty_one_is_none() {
        let ring = |ring, len| BalancedVariant {
            ring,
            len,
            traffic: 0,
        };
        let all = [ring(0, 509), ring(16, 509), ring(0, 509), ring(0, 0)];
        let found = named(all.into_iter());
        assert_eq!(
            found.into_values().collect::<Vec<_>>(),
            [ring(0, 509), ring(16, 509)]
        );
    }
}
