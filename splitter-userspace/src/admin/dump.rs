use std::sync::Arc;

use serde::Serialize;

use super::AdminState;
use crate::model::{Location, LocationId, LocationKey, Problem, Snapshot};
use crate::routing::{Live, WeightSource};

/// The routing state in use, with the weights as they are now. In a stable order, so that two
/// dumps can be compared.
#[derive(Serialize)]
struct Dump<'a> {
    generation: u64,
    steering: &'a serde_json::Value,
    snapshot: &'a Snapshot,
    weights: Vec<SplitWeights<'a>>,
}

#[derive(Serialize)]
struct SplitWeights<'a> {
    location: String,
    #[serde(flatten)]
    key: &'a LocationKey,
    slot: Option<u32>,
    variants: Vec<VariantWeight<'a>>,
}

/// A Variant's weight by the objects and by its slot. They differ when somebody wrote the slot.
#[derive(Serialize)]
struct VariantWeight<'a> {
    name: &'a str,
    wanted: u32,
    live: u32,
    /// Requests that were given to it since the slot is this Location's.
    chosen: u64,
}

/// `/config_dump` as JSON.
pub(super) fn config(live: &Live, state: &AdminState) -> serde_json::Result<Vec<u8>> {
    let weights = state.weights.as_ref();
    let split = locations(live).filter(|(_, location)| is_split(location));
    to_json(&Dump {
        generation: live.generation,
        steering: &state.steering.borrow(),
        snapshot: &live.snapshot,
        weights: split
            .map(|(id, location)| split_weights(live, weights, id, location))
            .collect(),
    })
}

/// `/problems` as JSON.
pub(super) fn problems(problems: &[Problem]) -> serde_json::Result<Vec<u8>> {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort();
    to_json(&sorted)
}

/// Whether there is anything to weigh: only such Locations have a slot.
pub(super) fn is_split(location: &Location) -> bool {
    location.split.variants.len() > 1
}

/// Every Location with its id.
pub(super) fn locations(live: &Live) -> impl Iterator<Item = (LocationId, &Arc<Location>)> {
    (0..).map(LocationId).zip(&live.snapshot.locations)
}

/// The weight of each Variant now; 0 for a slot that nobody wrote.
pub(super) fn live_weights<'a>(
    live: &Live,
    weights: &dyn WeightSource,
    id: LocationId,
    location: &'a Location,
) -> impl Iterator<Item = (&'a str, u32)> {
    let values = live.slot(id).map(|slot| weights.weights(slot).values);
    let values = values.unwrap_or_default();
    let names = location.split.variants.iter().map(|v| v.name.as_ref());
    names.zip(values)
}

fn split_weights<'a>(
    live: &Live,
    weights: &dyn WeightSource,
    id: LocationId,
    location: &'a Location,
) -> SplitWeights<'a> {
    let slot = live.slot(id);
    let chosen = slot.map(|slot| weights.counted(slot)).unwrap_or_default();
    let wanted = location.split.variants.iter().map(|v| v.weight);
    let variants = live_weights(live, weights, id, location).zip(wanted);
    SplitWeights {
        location: location.key.to_string(),
        key: &location.key,
        slot: slot.map(|slot| slot.0),
        variants: variants
            .zip(chosen)
            .map(|(((name, live), wanted), chosen)| VariantWeight {
                name,
                wanted,
                live,
                chosen,
            })
            .collect(),
    }
}

fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}
