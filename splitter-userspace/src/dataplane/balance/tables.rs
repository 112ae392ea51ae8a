//! The maps that XDP forwards by.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use aya::maps::{Array, HashMap, MapData};
use splitter_common::{
    AddressKey, BalanceSettings, Balanced, BalancedVariant, Front, MAX_BALANCED, MAX_RING_PARTS,
    MAX_TARGETS, MAX_TRAFFIC, PORTS_EACH, PortKey, PortUses, RING_PART, RingPart, Target,
};

use super::super::error::DataplaneError;
use super::super::ids::Ids;
use super::super::maps::{Maps, map_error};
use super::super::sys;
use super::plan::BalancePlan;
use super::regions::Regions;
use super::rows::named;
use super::traffic::{TRAFFIC, TrafficReader};
use crate::model::L4Key;
use crate::routing::L4Live;

const SETTINGS: &str = "l4_settings";
const PORTS: &str = "l4_ports";
const FRONTS: &str = "l4_fronts";
pub(super) const ROWS: &str = "l4_balanced";
pub(super) const RINGS: &str = "l4_rings";
pub(super) const TARGETS: &str = "l4_targets";
const FLOWS: [&str; 2] = ["l4_flows", "l4_unproven"];

/// How long a program may still use a row where the kernel cannot be asked.
const GRACE: Duration = Duration::from_millis(10);

/// The maps, with what is in them.
pub struct BalanceTables {
    settings: Array<MapData, BalanceSettings>,
    ports: Array<MapData, PortUses>,
    fronts: HashMap<MapData, AddressKey, Front>,
    pub(super) rows: Array<MapData, Balanced>,
    pub(super) rings: Array<MapData, RingPart>,
    targets: Array<MapData, Target>,
    /// What was forwarded.
    pub traffic: Arc<TrafficReader>,
    /// Stands before places of `l4_traffic` in everything that programs remember, so that what a former
    /// process has left is not counted for another Variant.
    pub(super) era: u32,
    written: BalanceSettings,
    uses: BTreeMap<u32, PortUses>,
    installed_fronts: BTreeMap<AddressKey, Front>,
    pub(super) installed: BTreeMap<L4Key, Installed>,
    pub(super) target_ids: Ids<AddressKey>,
    there: BTreeMap<AddressKey, Target>,
    pub(super) traffic_ids: Ids<(L4Key, Arc<str>)>,
    pub(super) row_regions: Regions,
    pub(super) ring_regions: Regions,
    /// Of a former process: in use until the first plan is in force.
    left: Vec<Retired>,
}

/// What stands for one Service port.
pub(super) struct Installed {
    pub(super) live: Arc<L4Live>,
    pub(super) row: u32,
    pub(super) value: Balanced,
    /// The numbers of Endpoints on each ring.
    pub(super) rings: Vec<Vec<u16>>,
}

/// What programs may still know for a moment.
pub(super) enum Retired {
    Row(u32),
    Ring(BalancedVariant),
}

impl BalanceTables {
    /// Takes the maps. What a former process left in them goes on until the first plan is there.
    pub(in super::super) fn new(maps: &mut Maps<'_>) -> Result<Self, DataplaneError> {
        let mut tables = BalanceTables {
            settings: maps.take(SETTINGS)?,
            ports: maps.take(PORTS)?,
            fronts: maps.take(FRONTS)?,
            rows: maps.take(ROWS)?,
            rings: maps.take(RINGS)?,
            targets: maps.take(TARGETS)?,
            traffic: Arc::new(TrafficReader::new(maps.take(TRAFFIC)?)),
            era: fastrand::u32(1..=0xffff) << 16,
            written: BalanceSettings::default(),
            uses: BTreeMap::new(),
            installed_fronts: BTreeMap::new(),
            installed: BTreeMap::new(),
            target_ids: Ids::new(MAX_TARGETS),
            there: BTreeMap::new(),
            traffic_ids: Ids::new(MAX_TRAFFIC),
            row_regions: Regions::new(MAX_BALANCED),
            ring_regions: Regions::new(MAX_RING_PARTS),
            left: Vec::new(),
        };
        tables.written = tables
            .settings
            .get(&0, 0)
            .map_err(map_error("read", SETTINGS))?;
        if tables.written.on != 0 {
            tables.adopt()?;
        }
        Ok(tables)
    }

    /// Takes over what a former process left.
    fn adopt(&mut self) -> Result<(), DataplaneError> {
        for number in 0..MAX_TARGETS {
            let target = self.targets.get(&number, 0);
            self.know(number, target.map_err(map_error("read", TARGETS))?);
        }
        let fronts: Vec<(AddressKey, Front)> = self
            .fronts
            .iter()
            .collect::<Result<_, _>>()
            .map_err(map_error("read", FRONTS))?;
        // All addresses of one Service port name one row, and two rows may name one ring.
        let rows: BTreeSet<u32> = fronts.iter().map(|(_, front)| front.row).collect();
        self.installed_fronts.extend(fronts);
        let mut found = Vec::with_capacity(rows.len());
        for number in rows {
            let row = self.rows.get(&number, 0);
            let row = row.map_err(map_error("read", ROWS))?;
            self.row_regions.take_at(number, 1);
            self.left.push(Retired::Row(number));
            found.push(row);
        }
        for ring in named(found.iter().flat_map(|row| row.variants)).into_values() {
            self.ring_regions.take_at(ring.ring, parts(ring.len));
            self.left.push(Retired::Ring(ring));
        }
        for number in 0..self.ports.len() {
            let uses = self
                .ports
                .get(&number, 0)
                .map_err(map_error("read", PORTS))?;
            if uses != PortUses::default() {
                self.uses.insert(number, uses);
            }
        }
        Ok(())
    }

    /// Takes over the numbers of Endpoints that an instance has which is being taken over: its flows go on
    /// by them.
    pub(in super::super) fn learn_targets(&mut self, dir: &Path) -> Result<(), DataplaneError> {
        let path = dir.join(TARGETS);
        if !path.exists() {
            return Ok(());
        }
        let map = MapData::from_pin(&path).map_err(map_error("open", TARGETS))?;
        let map: Array<_, Target> = aya::maps::Map::Array(map)
            .try_into()
            .map_err(map_error("open", TARGETS))?;
        for number in 0..MAX_TARGETS.min(map.len()) {
            let target = map.get(&number, 0).map_err(map_error("read", TARGETS))?;
            if target.state == 0 {
                continue;
            }
            self.targets
                .set(number, target, 0)
                .map_err(map_error("write", TARGETS))?;
            self.know(number, target);
        }
        Ok(())
    }

    fn know(&mut self, number: u32, target: Target) {
        if target.state != 0 && self.target_ids.take(&target.address, number) {
            self.there.insert(target.address, target);
        }
    }

    /// Whether anything is forwarded.
    pub fn is_on(&self) -> bool {
        self.written.on != 0
    }

    /// Puts these settings in force.
    pub fn set(&mut self, settings: BalanceSettings) -> Result<(), DataplaneError> {
        let era = self.era;
        let settings = BalanceSettings { era, ..settings };
        if self.written != settings {
            self.settings
                .set(0, settings, 0)
                .map_err(map_error("write", SETTINGS))?;
            self.written = settings;
        }
        Ok(())
    }

    /// Makes the maps hold a plan: what is named comes before what names it, and goes after it, when no
    /// program can know it any more. What cannot be written is left to user space; gives why. The same
    /// plan once more writes what is missing.
    pub fn apply(&mut self, plan: &BalancePlan) -> Vec<DataplaneError> {
        let mut faults = Vec::new();
        let mut retired = std::mem::take(&mut self.left);
        self.put_targets(plan, &mut faults);
        self.add_uses(plan, &mut faults);
        let is_there = |key: &(L4Key, Arc<str>)| {
            let live = plan.services.get(&key.0);
            live.is_some_and(|live| live.service.variants.iter().any(|it| it.name == key.1))
        };
        self.traffic_ids.retain(0, is_there);
        self.traffic.retain(is_there);
        for (key, live) in &plan.services {
            match self.put(key, live) {
                Ok(old) => retired.extend(old),
                Err(error) => {
                    faults.push(error);
                    retired.extend(self.take_out(key));
                }
            }
        }
        self.put_fronts(plan, &mut faults);
        let gone: Vec<_> = self.installed.keys().cloned().collect();
        for key in gone.iter().filter(|key| !plan.services.contains_key(key)) {
            retired.extend(self.take_out(key));
        }
        self.remove_targets(plan, &mut faults);
        if !retired.is_empty() && sys::wait_for_running_programs().is_err() {
            thread::sleep(GRACE);
        }
        for it in retired {
            match it {
                Retired::Row(row) => self.row_regions.give(row, 1),
                Retired::Ring(ring) => self.ring_regions.give(ring.ring, parts(ring.len)),
            }
        }
        // Numbers of Endpoints that are gone rest no longer: their epochs tell them apart.
        self.target_ids.reclaim(0);
        faults
    }

    /// Takes all addresses out: nothing new is forwarded, and what there is goes on.
    pub fn close(&mut self) -> Vec<DataplaneError> {
        let mut faults = Vec::new();
        self.put_fronts(&BalancePlan::default(), &mut faults);
        faults
    }

    fn put_targets(&mut self, plan: &BalancePlan, faults: &mut Vec<DataplaneError>) {
        for (address, state) in &plan.targets {
            let before = self.there.get(address);
            if before.is_some_and(|it| it.state == *state) {
                continue;
            }
            let Some(number) = self.target_ids.assign(address) else {
                faults.push(full(TARGETS));
                return;
            };
            let target = Target {
                address: *address,
                epoch: before.map_or_else(|| fastrand::u32(1..), |it| it.epoch),
                state: *state,
            };
            match self.targets.set(number, target, 0) {
                Ok(()) => {
                    self.there.insert(*address, target);
                }
                Err(error) => faults.push(map_error("write", TARGETS)(error)),
            }
        }
    }

    /// Flows to these end.
    fn remove_targets(&mut self, plan: &BalancePlan, faults: &mut Vec<DataplaneError>) {
        let there = self.there.keys().copied();
        let gone: Vec<_> = there
            .filter(|address| !plan.targets.contains_key(address))
            .collect();
        for address in gone {
            let Some(number) = self.target_ids.get(&address) else {
                continue;
            };
            match self.targets.set(number, Target::default(), 0) {
                Ok(()) => {
                    self.there.remove(&address);
                }
                Err(error) => faults.push(map_error("write", TARGETS)(error)),
            }
        }
        let there = &self.there;
        self.target_ids
            .retain(0, |address| there.contains_key(address));
    }

    fn put_fronts(&mut self, plan: &BalancePlan, faults: &mut Vec<DataplaneError>) {
        let mut wanted = BTreeMap::new();
        for (key, service) in &plan.fronts {
            if let Some(installed) = self.installed.get(service) {
                let front = Front {
                    row: installed.row,
                    print: AddressKey::print(&key.as_words()),
                };
                wanted.insert(*key, front);
            }
        }
        let there = self.installed_fronts.keys().copied();
        let gone: Vec<_> = there.filter(|key| !wanted.contains_key(key)).collect();
        for key in gone {
            match self.fronts.remove(&key) {
                Ok(()) => {
                    self.installed_fronts.remove(&key);
                }
                Err(error) => faults.push(map_error("write", FRONTS)(error)),
            }
        }
        for (key, front) in wanted {
            if self.installed_fronts.get(&key) == Some(&front) {
                continue;
            }
            match self.fronts.insert(key, front, 0) {
                Ok(()) => {
                    self.installed_fronts.insert(key, front);
                }
                Err(error) => faults.push(map_error("write", FRONTS)(error)),
            }
        }
    }

    /// Says what ports are used for. They stay so: what is under way of a flow that has ended is still
    /// translated, and a look that finds nothing costs little.
    fn add_uses(&mut self, plan: &BalancePlan, faults: &mut Vec<DataplaneError>) {
        let mut wanted = self.uses.clone();
        plan.fronts
            .keys()
            .for_each(|key| add(&mut wanted, key, false));
        let local = plan.targets.iter();
        let local = local.filter(|(_, state)| *state & Target::LOCAL != 0);
        local.for_each(|(key, _)| add(&mut wanted, key, true));
        for (number, uses) in wanted {
            if self.uses.get(&number) == Some(&uses) {
                continue;
            }
            match self.ports.set(number, uses, 0) {
                Ok(()) => {
                    self.uses.insert(number, uses);
                }
                Err(error) => faults.push(map_error("write", PORTS)(error)),
            }
        }
    }
}

fn add(all: &mut BTreeMap<u32, PortUses>, key: &AddressKey, target: bool) {
    let port = usize::from(key.port.port);
    let uses = all.entry((port / PORTS_EACH) as u32).or_default();
    if let Some(use_of) = uses.uses.get_mut(port % PORTS_EACH) {
        *use_of |= PortKey::port_use(key.port.protocol, target);
    }
}

pub(super) fn parts(len: u32) -> u32 {
    len.div_ceil(RING_PART as u32)
}

pub(super) fn full(map: &'static str) -> DataplaneError {
    DataplaneError::Map {
        what: "write",
        map,
        source: std::io::Error::from_raw_os_error(libc::ENOSPC),
    }
}

/// Has a successor use the maps of the flows, so that they go on. One of another layout stays where it is.
pub fn share_flows(from: &Path, to: &Path) -> Result<(), DataplaneError> {
    let mut flows = FLOWS.iter();
    flows.try_for_each(|name| super::super::connect::share(name, from, to))
}
