use std::sync::Arc;

use serde::Serialize;

use super::AdminState;
use crate::model::{Location, LocationId, Problem, Snapshot, Weights};
use crate::routing::{L4Live, Live, SlotId, WeightSource};
use crate::telemetry::L4Shown;

/// The routing state in use, with the weights as they are now. In a stable order, so that two
/// dumps can be compared.
#[derive(Serialize)]
struct Dump<'a> {
    generation: u64,
    steering: &'a serde_json::Value,
    snapshot: &'a Snapshot,
    /// Of Locations, then of Service ports.
    weights: Vec<SplitWeights<'a>>,
    /// Connections where no HTTP is looked at.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    connections: Vec<L4Shown>,
}

#[derive(Serialize)]
struct SplitWeights<'a> {
    location: String,
    host: String,
    path: String,
    kind: String,
    slot: Option<u32>,
    variants: Vec<VariantWeight<'a>>,
}

/// A Variant's weight by the objects and by its slot. They differ when somebody wrote the slot.
#[derive(Serialize)]
struct VariantWeight<'a> {
    name: &'a str,
    wanted: u32,
    live: u32,
    /// Requests or connections that were given to it since the slot is this one's.
    chosen: u64,
}

/// `/config_dump` as JSON.
pub(super) fn config(live: &Live, state: &AdminState) -> serde_json::Result<Vec<u8>> {
    let weights = state.weights.as_ref();
    let split = locations(live).filter(|(_, location)| is_split(location));
    let services = live.l4.iter().filter(|it| it.service.variants.len() > 1);
    let services = services.map(|it| service_weights(weights, it));
    to_json(&Dump {
        generation: live.generation,
        steering: &state.steering.borrow(),
        snapshot: &live.snapshot,
        connections: state.l4.shown(),
        weights: split
            .map(|(id, location)| split_weights(live, weights, id, location))
            .chain(services)
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
    let key = &location.key;
    let slot = live.slot(id);
    let names = location
        .split
        .variants
        .iter()
        .map(|it| (&*it.name, it.weight));
    SplitWeights {
        location: key.to_string(),
        host: key.host.to_string(),
        path: key.path.to_string(),
        kind: format!("{:?}", key.kind),
        slot: slot.map(|slot| slot.0),
        variants: variants(weights, slot, names),
    }
}

fn service_weights<'a>(weights: &dyn WeightSource, it: &'a L4Live) -> SplitWeights<'a> {
    let (host, path, kind) = it.service.key.place();
    let slot = (it.slot != SlotId::NONE).then_some(it.slot);
    let names = it.service.variants.iter().map(|it| (&*it.name, it.weight));
    SplitWeights {
        location: it.service.key.to_string(),
        host,
        path,
        kind: kind.to_owned(),
        slot: slot.map(|slot| slot.0),
        variants: variants(weights, slot, names),
    }
}

fn variants<'a>(
    weights: &dyn WeightSource,
    slot: Option<SlotId>,
    names: impl Iterator<Item = (&'a str, u32)>,
) -> Vec<VariantWeight<'a>> {
    let chosen = slot.map(|slot| weights.counted(slot)).unwrap_or_default();
    let live = slot.map_or_else(Weights::default, |slot| weights.weights(slot));
    let all = names.zip(live.values).zip(chosen);
    all.map(|(((name, wanted), live), chosen)| VariantWeight {
        name,
        wanted,
        live,
        chosen,
    })
    .collect()
}

fn to_json(value: &impl Serialize) -> serde_json::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}
