//! The maps of the loaded object, handed out one by one with their types.

use std::os::fd::AsFd as _;

use aya::Ebpf;
use aya::maps::{Map, MapData, MapError};

use super::error::DataplaneError;
use super::spec::{MAPS, PROGRAMS_OWN};
use super::sys;
use super::tables::reason;

/// The maps of a loaded object that nobody has taken yet.
pub(super) struct Maps<'a>(pub(super) &'a mut Ebpf);

impl Maps<'_> {
    /// Checks that every map is what this program expects, and has type information.
    pub(super) fn check(&self) -> Result<(), DataplaneError> {
        let known =
            |name: &&str| PROGRAMS_OWN.contains(name) || MAPS.iter().any(|spec| spec.name == *name);
        if let Some(name) = self
            .0
            .maps()
            .map(|(name, _)| name)
            .find(|name| !known(name))
        {
            let text = format!("nobody knows whether the map {name} must have type information");
            return Err(DataplaneError::Mismatch(text));
        }
        for spec in &MAPS {
            let map = self.0.map(spec.name).ok_or_else(|| missing(spec.name))?;
            let data = data_of(map).ok_or_else(|| missing(spec.name))?;
            let info = sys::map_info(data.fd().as_fd()).map_err(|source| DataplaneError::Map {
                what: "read",
                map: spec.name,
                source,
            })?;
            if let Some(difference) = spec.difference(&info) {
                return Err(DataplaneError::Mismatch(difference));
            }
            if spec.needs_btf() && info.btf == 0 {
                return Err(DataplaneError::NoBtf { map: spec.name });
            }
        }
        Ok(())
    }

    /// The kernel's number of a map that nobody has taken.
    pub(super) fn id(&self, name: &'static str) -> Result<u32, DataplaneError> {
        let data = self.0.map(name).and_then(data_of);
        let data = data.ok_or_else(|| missing(name))?;
        let info = sys::map_info(data.fd().as_fd()).map_err(|source| DataplaneError::Map {
            what: "read",
            map: name,
            source,
        })?;
        Ok(info.id)
    }

    /// Takes a map as the type that its user wants.
    pub(super) fn take<T>(&mut self, name: &'static str) -> Result<T, DataplaneError>
    where
        T: TryFrom<Map, Error = MapError>,
    {
        let map = self.0.take_map(name).ok_or_else(|| missing(name))?;
        T::try_from(map).map_err(map_error("read", name))
    }

    /// Takes a map as a bare descriptor.
    pub(super) fn take_data(&mut self, name: &'static str) -> Result<MapData, DataplaneError> {
        match self.0.take_map(name) {
            Some(Map::Array(data) | Map::SockMap(data)) => Ok(data),
            _ => Err(missing(name)),
        }
    }
}

fn missing(name: &str) -> DataplaneError {
    DataplaneError::Mismatch(format!("there is no map {name}"))
}

/// The descriptor of a map of any of the kinds that we use.
fn data_of(map: &Map) -> Option<&MapData> {
    match map {
        Map::Array(data)
        | Map::PerCpuArray(data)
        | Map::HashMap(data)
        | Map::LruHashMap(data)
        | Map::SkStorage(data)
        | Map::SockMap(data) => Some(data),
        _ => None,
    }
}

/// Says which map an error of aya is about.
pub(super) fn map_error(
    what: &'static str,
    map: &'static str,
) -> impl FnOnce(MapError) -> DataplaneError {
    move |error| DataplaneError::Map {
        what,
        map,
        source: reason(error),
    }
}
