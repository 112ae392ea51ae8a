//! What has been forwarded for each Variant.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aya::maps::{MapData, PerCpuArray};
use splitter_common::Traffic;

use super::super::error::DataplaneError;
use super::super::maps::map_error;
use crate::model::L4Key;

pub(super) const TRAFFIC: &str = "l4_traffic";

/// What was forwarded for one Variant of a Service port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ForwardedTraffic {
    /// The Service port.
    pub service: L4Key,
    /// `stable`, or the name of the canary's Service.
    pub variant: Arc<str>,
    /// How much.
    pub traffic: Traffic,
}

/// Whose each place of the map is.
type Places = BTreeMap<u32, (L4Key, Arc<str>)>;

/// Reads it.
pub struct TrafficReader {
    map: Mutex<PerCpuArray<MapData, Traffic>>,
    places: Mutex<Places>,
}

impl TrafficReader {
    pub(super) fn new(map: PerCpuArray<MapData, Traffic>) -> Self {
        TrafficReader {
            map: Mutex::new(map),
            places: Mutex::default(),
        }
    }

    /// Gives a place to a Variant, with nothing counted.
    pub(super) fn begin(
        &self,
        place: u32,
        service: &L4Key,
        variant: &Arc<str>,
    ) -> Result<(), DataplaneError> {
        let mut map = lock(&self.map);
        let there = map.get(&place, 0).map_err(map_error("read", TRAFFIC))?;
        let nothing = vec![Traffic::default(); there.len()];
        let nothing = aya::maps::PerCpuValues::try_from(nothing).ok();
        if let Some(nothing) = nothing {
            map.set(place, nothing, 0)
                .map_err(map_error("write", TRAFFIC))?;
        }
        lock(&self.places).insert(place, (service.clone(), Arc::clone(variant)));
        Ok(())
    }

    /// Forgets whose the places of Variants were that are not there any more.
    pub(super) fn retain(&self, present: impl Fn(&(L4Key, Arc<str>)) -> bool) {
        lock(&self.places).retain(|_, variant| present(variant));
    }

    /// All of it, by Service port and Variant.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn read(&self) -> Result<Vec<ForwardedTraffic>, DataplaneError> {
        let places = lock(&self.places).clone();
        let map = lock(&self.map);
        let mut all = Vec::with_capacity(places.len());
        for (place, (service, variant)) in places {
            let values = map.get(&place, 0).map_err(map_error("read", TRAFFIC))?;
            let mut traffic = Traffic::default();
            for value in values.iter() {
                traffic.flows += value.flows;
                traffic.packets_in += value.packets_in;
                traffic.bytes_in += value.bytes_in;
                traffic.packets_out += value.packets_out;
                traffic.bytes_out += value.bytes_out;
            }
            all.push(ForwardedTraffic {
                service,
                variant,
                traffic,
            });
        }
        all.sort_by(|a, b| (&a.service, &a.variant).cmp(&(&b.service, &b.variant)));
        Ok(all)
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
