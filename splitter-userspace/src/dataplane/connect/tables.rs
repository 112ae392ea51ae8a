//! The maps that connections are split by.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::thread;
use std::time::Duration;

use aya::Pod;
use aya::maps::{HashMap, MapData};
use splitter_common::{
    AddressKey, EndpointKey, EndpointList, KeepKey, MAX_CONNECT_SERVICES, ServiceValue,
};

use super::super::error::DataplaneError;
use super::super::ids::Ids;
use super::super::maps::{Maps, map_error};
use super::super::pin::pin_error;
use super::super::spec::MAPS;
use super::super::sys;
use super::super::tables::reason;
use super::plan::{ConnectPlan, PlannedConnect};
use crate::model::L4Key;

const SERVICES: &str = "l4_services";
const ENDPOINTS: &str = "l4_endpoints";
const KEEPS: &str = "l4_keeps";

/// What sockets have asked for.
const ASKED: &str = "l4_asked";

/// How long a program may still use a list where the kernel cannot be asked.
const GRACE: Duration = Duration::from_millis(10);

/// The maps, with what is in them.
pub struct ConnectTables {
    services: HashMap<MapData, AddressKey, ServiceValue>,
    endpoints: HashMap<MapData, EndpointKey, AddressKey>,
    keeps: HashMap<MapData, KeepKey, u32>,
    turns: Ids<L4Key>,
    installed: BTreeMap<AddressKey, Installed>,
    kept: BTreeSet<(u32, AddressKey)>,
    next_list: u32,
}

/// What stands for one address.
struct Installed {
    value: ServiceValue,
    lists: Vec<Vec<AddressKey>>,
}

impl ConnectTables {
    /// Takes the maps; what a former process left in them is removed.
    pub(in super::super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        let mut tables = ConnectTables {
            services: maps.take(SERVICES)?,
            endpoints: maps.take(ENDPOINTS)?,
            keeps: maps.take(KEEPS)?,
            turns: Ids::new(MAX_CONNECT_SERVICES),
            installed: BTreeMap::new(),
            kept: BTreeSet::new(),
            next_list: 0,
        };
        clear(&mut tables.services, SERVICES)?;
        clear(&mut tables.endpoints, ENDPOINTS)?;
        clear(&mut tables.keeps, KEEPS)?;
        Ok(tables)
    }

    /// Makes the maps hold a plan. Endpoints come before what names them and go after it, when no program
    /// can know them any more. An address whose rows cannot be written is left to the cluster; gives why. The same plan once more
    /// writes what is missing.
    pub fn apply(&mut self, plan: &ConnectPlan) -> Vec<DataplaneError> {
        let mut faults = Vec::new();
        let mut retired = self.remove_others(plan, &mut faults);
        let planned: BTreeSet<&L4Key> = plan.services.values().map(|it| &it.key).collect();
        self.turns.retain(0, |key| planned.contains(key));
        self.turns.reclaim(0);
        let new: Vec<_> = plan.keeps.difference(&self.kept).copied().collect();
        for (slot, endpoint) in new {
            match self.keeps.insert(keep(slot, endpoint), 1, 0) {
                Ok(()) => {
                    self.kept.insert((slot, endpoint));
                }
                Err(error) => faults.push(map_error("write", KEEPS)(error)),
            }
        }
        for (key, wanted) in &plan.services {
            match self.put(*key, wanted) {
                Ok(lists) => retired.extend(lists),
                Err(error) => {
                    faults.push(error);
                    retired.extend(self.remove(key, &mut faults));
                }
            }
        }
        let gone: Vec<_> = self.kept.difference(&plan.keeps).copied().collect();
        if !retired.is_empty() && sys::wait_for_running_programs().is_err() {
            thread::sleep(GRACE);
        }
        for list in retired {
            self.retire(list, &mut faults);
        }
        for (slot, endpoint) in gone {
            match self.keeps.remove(&keep(slot, endpoint)) {
                Ok(()) => {
                    self.kept.remove(&(slot, endpoint));
                }
                Err(error) => faults.push(map_error("write", KEEPS)(error)),
            }
        }
        faults
    }

    /// Removes the addresses that are not planned. Gives their lists.
    fn remove_others(
        &mut self,
        plan: &ConnectPlan,
        faults: &mut Vec<DataplaneError>,
    ) -> Vec<EndpointList> {
        let there = self.installed.keys().copied();
        let gone: Vec<_> = there
            .filter(|key| !plan.services.contains_key(key))
            .collect();
        gone.iter()
            .flat_map(|key| self.remove(key, faults))
            .collect()
    }

    fn remove(&mut self, key: &AddressKey, faults: &mut Vec<DataplaneError>) -> Vec<EndpointList> {
        let Some(installed) = self.installed.remove(key) else {
            return Vec::new();
        };
        if let Err(error) = self.services.remove(key) {
            faults.push(map_error("write", SERVICES)(error));
        }
        used(&installed.value).collect()
    }

    /// Writes what has changed of an address. Gives the lists that it had before and has no more.
    fn put(
        &mut self,
        key: AddressKey,
        wanted: &PlannedConnect,
    ) -> Result<Vec<EndpointList>, DataplaneError> {
        let turn = self.turns.assign(&wanted.key).unwrap_or_default();
        let mut value = ServiceValue {
            slot: wanted.slot.0,
            turn,
            split_by: wanted.by as u32,
            ..ServiceValue::default()
        };
        let before = self.installed.get(&key);
        let mut added = Vec::new();
        let mut failed = None;
        for (index, endpoints) in wanted.lists.iter().enumerate().take(value.lists.len()) {
            let same = before.filter(|it| it.lists.get(index) == Some(endpoints));
            value.lists[index] = match same {
                Some(before) => before.value.lists[index],
                None => {
                    let list = EndpointList {
                        list: self.next_list,
                        len: endpoints.len() as u32,
                    };
                    self.next_list = self.next_list.wrapping_add(1);
                    added.push(list);
                    if let Err(error) = write(&mut self.endpoints, list, endpoints) {
                        failed = Some(error);
                        break;
                    }
                    list
                }
            };
        }
        let old = before.map(|it| it.value);
        if failed.is_none() && old != Some(value) {
            let written = self.services.insert(key, value, 0);
            failed = written.err().map(map_error("write", SERVICES));
        }
        if let Some(error) = failed {
            let mut ignored = Vec::new();
            added
                .into_iter()
                .for_each(|it| self.retire(it, &mut ignored));
            return Err(error);
        }
        let lists = wanted.lists.clone();
        self.installed.insert(key, Installed { value, lists });
        let old = old.iter().flat_map(used);
        Ok(old.filter(|it| !value.lists.contains(it)).collect())
    }

    /// Removes the rows of a list. Some may be missing.
    fn retire(&mut self, list: EndpointList, faults: &mut Vec<DataplaneError>) {
        for place in 0..list.len {
            let key = EndpointKey {
                list: list.list,
                place,
            };
            match self.endpoints.remove(&key).map_err(reason) {
                Err(error) if error.raw_os_error() != Some(libc::ENOENT) => {
                    faults.push(DataplaneError::Map {
                        what: "write",
                        map: ENDPOINTS,
                        source: error,
                    });
                }
                _ => {}
            }
        }
    }
}

/// The lists of a row that have rows of their own.
fn used(value: &ServiceValue) -> impl Iterator<Item = EndpointList> + use<> {
    value.lists.into_iter().filter(|it| it.len > 0)
}

fn write(
    map: &mut HashMap<MapData, EndpointKey, AddressKey>,
    list: EndpointList,
    endpoints: &[AddressKey],
) -> Result<(), DataplaneError> {
    for (place, endpoint) in (0..).zip(endpoints) {
        let key = EndpointKey {
            list: list.list,
            place,
        };
        map.insert(key, endpoint, 0)
            .map_err(map_error("write", ENDPOINTS))?;
    }
    Ok(())
}

fn keep(slot: u32, endpoint: AddressKey) -> KeepKey {
    KeepKey { slot, endpoint }
}

fn clear<K: Pod, V: Pod>(
    map: &mut HashMap<MapData, K, V>,
    name: &'static str,
) -> Result<(), DataplaneError> {
    let keys: Vec<K> = map
        .keys()
        .collect::<Result<_, _>>()
        .map_err(map_error("read", name))?;
    for key in keys {
        map.remove(&key).map_err(map_error("write", name))?;
    }
    Ok(())
}

/// Has a successor use the map of what sockets have asked for, so that those which are open still see what
/// they asked for.
pub fn share_asked(from: &Path, to: &Path) -> Result<(), DataplaneError> {
    share(ASKED, from, to)
}

/// Has a successor use a map of the instance that it takes over. One of another layout stays where it is.
pub fn share(name: &str, from: &Path, to: &Path) -> Result<(), DataplaneError> {
    let spec = MAPS.iter().find(|spec| spec.name == name);
    let (old, new) = (from.join(name), to.join(name));
    let fits = spec.is_some_and(|spec| matches!(spec.pinned_difference(from), Ok(None)));
    if !fits || !old.exists() {
        return Ok(());
    }
    let failed = |path: &Path| {
        let path = path.to_owned();
        move |error: String| pin_error("cannot share", &path)(std::io::Error::other(error))
    };
    let map = MapData::from_pin(&old).map_err(|error| failed(&old)(error.to_string()))?;
    // What a former attempt has left.
    if new.exists() {
        fs::remove_file(&new).map_err(pin_error("cannot remove", &new))?;
    }
    map.pin(&new)
        .map_err(|error| failed(&new)(error.to_string()))
}
