//! The kernel side as it lies in a pin directory, whether its instance runs or not.

use std::collections::BTreeMap;
use std::fs;
use std::hash::Hash;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};

use aya::Pod;
use aya::maps::{Array, HashMap, Map, MapData, MapError, PerCpuArray};
use splitter_common::{
    AddressKey, Cidr4Key, Cidr6Key, Config, ConnectCounts, Counters as Value, EndpointKey,
    EndpointList, ListenerValue, MAX_POOL_SOCKETS, PROTO_UDP, PoolInfo, PoolState, PortKey,
    PrefixKind, PrefixValue, ServiceValue, Settings, SplitName, read_text,
};

use super::attach::LINK_PREFIX;
use super::cidr::Cidr;
use super::connect::ConnectCounter;
use super::counters::{Counters, Counts};
use super::error::DataplaneError;
use super::maps::map_error;
use super::pin;
use super::spec::MAPS;
use super::splits::Splits;
use super::sys;
use super::tables::reason;

/// The maps in one pin directory.
pub struct Pinned {
    dir: PathBuf,
    /// Weights and decisions. Writing them changes what is served.
    pub splits: Splits,
    /// Number of the map of weights.
    id: u32,
}

/// What belongs to an address and port of ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedListener {
    /// Where clients connect to.
    pub addr: SocketAddr,
    /// Number and policy.
    pub value: ListenerValue,
}

/// A Service's own address where connections of processes are split.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedConnect {
    /// What processes connect to.
    pub addr: SocketAddr,
    /// `TCP` or `UDP`.
    pub protocol: &'static str,
    /// Where its weights are.
    pub slot: u32,
    /// What has one Variant: a [`splitter_common::ConnectBy`] code.
    pub by: u32,
    /// Those of each Variant that take new connections; Variants without any at the end are left out.
    pub endpoints: Vec<Vec<SocketAddr>>,
}

/// What a slot is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PinnedName {
    /// Host, path and path type, as [`crate::model::LocationKey`] is printed.
    pub location: String,
    /// `stable`, then the Services of the canaries.
    pub variants: Vec<String>,
}

impl Pinned {
    /// Opens what is pinned below `base`: that of an instance which says where it answers, else
    /// the first that there is.
    ///
    /// # Errors
    /// When there is nothing, or it has another layout than this program's.
    pub fn open(base: &Path) -> Result<Pinned, DataplaneError> {
        let dirs = pin::existing(base)?;
        let answers = |dir: &&PathBuf| pin::admin(dir).is_some();
        let nothing = || DataplaneError::Nothing {
            dir: base.to_owned(),
        };
        let dir = dirs.iter().find(answers).or(dirs.first());
        let dir = dir.ok_or_else(nothing)?.clone();
        for spec in &MAPS {
            let path = dir.join(spec.name);
            if !path.exists() {
                return Err(nothing());
            }
            let difference = spec.pinned_difference(&dir);
            if let Some(why) = difference.map_err(pin::pin_error("cannot open", &path))? {
                return Err(DataplaneError::Mismatch(why));
            }
        }
        let (slots, stats) = (open(&dir, "splits")?, open(&dir, "split_stats")?);
        let splits = Splits::over(&slots, &stats)?;
        let id = sys::map_info(slots.fd().as_fd());
        let id = id
            .map_err(pin::pin_error("cannot read", &dir.join("splits")))?
            .id;
        Ok(Pinned { dir, splits, id })
    }

    /// Where it is.
    pub fn dir(&self) -> &Path {
        &self.dir
    }

    /// The kernel's number of the map of weights: whose slots are named by whom is told by it.
    pub fn splits_map(&self) -> u32 {
        self.id
    }

    /// Where its instance says that it answers.
    pub fn admin(&self) -> Option<SocketAddr> {
        pin::admin(&self.dir)
    }

    /// Names of the links that are kept.
    pub fn links(&self) -> Vec<String> {
        let entries = fs::read_dir(&self.dir).into_iter().flatten().flatten();
        let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
        let mut names: Vec<_> = names.filter(|name| name.starts_with(LINK_PREFIX)).collect();
        names.sort();
        names
    }

    /// The process, the count of changes, and the settings in force.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn config(&self) -> Result<(Config, Settings), DataplaneError> {
        let config: Array<_, Config> = typed(Map::Array(open(&self.dir, "config")?), "config")?;
        let config = config.get(&0, 0).map_err(map_error("read", "config"))?;
        let buffer = usize::from(config.epoch & 1 == 1);
        Ok((config, config.settings[buffer]))
    }

    /// The ranges in force, in order.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn ranges(&self) -> Result<Vec<(Cidr, PrefixKind)>, DataplaneError> {
        let buffer = (self.config()?.0.epoch & 1) as u8;
        let v4: Vec<(Cidr4Key, PrefixValue)> = self.entries("cidr4")?;
        let v6: Vec<(Cidr6Key, PrefixValue)> = self.entries("cidr6")?;
        let v4 = v4.into_iter().filter(|(key, _)| key.buffer == buffer);
        let v6 = v6.into_iter().filter(|(key, _)| key.buffer == buffer);
        let v4 = v4.map(|(key, value)| (Ipv4Addr::from(key.addr).into(), key.len, value));
        let v6 = v6.map(|(key, value)| (Ipv6Addr::from(key.addr).into(), key.len, value));
        let all = v4.chain(v6);
        let mut all: Vec<_> = all
            .map(|(addr, len, value): (IpAddr, _, _)| {
                (Cidr::cut(addr, len), PrefixKind::from_code(value.kind))
            })
            .collect();
        all.sort_unstable();
        Ok(all)
    }

    /// The addresses and ports that are ours, in order.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn listeners(&self) -> Result<Vec<PinnedListener>, DataplaneError> {
        let ports: Vec<(PortKey, ListenerValue)> = self.entries("listeners")?;
        let addresses: Vec<(AddressKey, ListenerValue)> = self.entries("listener_addrs")?;
        let ports = ports
            .into_iter()
            .map(|(port, value)| ([0; 16], port, value));
        let addresses = addresses.into_iter();
        let all = ports.chain(addresses.map(|(key, value)| (key.addr, key.port, value)));
        let mut all: Vec<_> = all
            .filter(|(.., value)| value.listener != ListenerValue::NONE)
            .map(|(addr, port, value)| PinnedListener {
                addr: SocketAddr::new(ip(addr, port.family), port.port),
                value,
            })
            .collect();
        all.sort_by_key(|listener| listener.addr);
        Ok(all)
    }

    /// The sockets of the pools, as their companion describes them, with their places.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn pools(&self) -> Result<Vec<(u32, SocketAddr, PoolInfo)>, DataplaneError> {
        let name = "pool_info";
        let map: Array<_, PoolInfo> = typed(Map::Array(open(&self.dir, name)?), name)?;
        let mut found = Vec::new();
        for index in 0..MAX_POOL_SOCKETS {
            let info = map.get(&index, 0).map_err(map_error("read", name))?;
            if info.state == PoolState::Listening as u32 {
                let addr = SocketAddr::new(ip(info.addr, info.family), info.port);
                found.push((index, addr, info));
            }
        }
        Ok(found)
    }

    /// What the slots are called, by their numbers.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn names(&self) -> Result<BTreeMap<u32, PinnedName>, DataplaneError> {
        let all: Vec<(u32, SplitName)> = self.entries("split_names")?;
        let text = |place: &[i8]| {
            let bytes: Vec<u8> = read_text(place).collect();
            String::from_utf8_lossy(&bytes).into_owned()
        };
        let named = all.into_iter().map(|(slot, name)| {
            let (host, path) = (text(&name.host), text(&name.path));
            let variants = name.variants.iter().map(|variant| text(variant));
            let name = PinnedName {
                location: place(&host, &path, &text(&name.kind)),
                variants: variants.filter(|variant| !variant.is_empty()).collect(),
            };
            (slot, name)
        });
        Ok(named.collect())
    }

    /// The Services whose connections are split where processes make them, in order.
    ///
    /// # Errors
    /// When a map cannot be read.
    pub fn connects(&self) -> Result<Vec<PinnedConnect>, DataplaneError> {
        let services: Vec<(AddressKey, ServiceValue)> = self.entries("l4_services")?;
        let endpoints: Vec<(EndpointKey, AddressKey)> = self.entries("l4_endpoints")?;
        let endpoints: BTreeMap<EndpointKey, AddressKey> = endpoints.into_iter().collect();
        let addr = |key: &AddressKey| SocketAddr::new(ip(key.addr, key.port.family), key.port.port);
        let list = |list: EndpointList| {
            let places = (0..list.len).map(|place| EndpointKey {
                list: list.list,
                place,
            });
            let found = places.filter_map(|key| endpoints.get(&key));
            found.map(addr).collect::<Vec<_>>()
        };
        let mut all: Vec<_> = services
            .iter()
            .map(|(key, value)| {
                let mut lists: Vec<_> = value.lists.iter().map(|it| list(*it)).collect();
                while lists.last().is_some_and(Vec::is_empty) {
                    lists.pop();
                }
                PinnedConnect {
                    addr: addr(key),
                    protocol: match key.port.protocol {
                        PROTO_UDP => "UDP",
                        _ => "TCP",
                    },
                    slot: value.slot,
                    by: value.split_by,
                    endpoints: lists,
                }
            })
            .collect();
        all.sort_by_key(|it| (it.addr, it.protocol));
        Ok(all)
    }

    /// What became of these connections, by name.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn connect_counts(&self) -> Result<Vec<(&'static str, u64)>, DataplaneError> {
        let name = "l4_counts";
        let map: PerCpuArray<_, ConnectCounts> =
            typed(Map::PerCpuArray(open(&self.dir, name)?), name)?;
        ConnectCounter::over(map).read()
    }

    /// What the programs have counted.
    ///
    /// # Errors
    /// When the map cannot be read.
    pub fn counts(&self) -> Result<Counts, DataplaneError> {
        let name = "counters";
        let map: PerCpuArray<_, Value> = typed(Map::PerCpuArray(open(&self.dir, name)?), name)?;
        Counters::over(map).read()
    }

    fn entries<K: Pod + Hash + Eq, V: Pod>(
        &self,
        name: &'static str,
    ) -> Result<Vec<(K, V)>, DataplaneError> {
        let map: HashMap<_, K, V> = typed(Map::HashMap(open(&self.dir, name)?), name)?;
        map.iter()
            .collect::<Result<_, _>>()
            .map_err(map_error("read", name))
    }
}

fn open(dir: &Path, name: &'static str) -> Result<MapData, DataplaneError> {
    let path = dir.join(name);
    MapData::from_pin(&path).map_err(|error| pin::pin_error("cannot open", &path)(reason(error)))
}

fn typed<T: TryFrom<Map, Error = MapError>>(
    map: Map,
    name: &'static str,
) -> Result<T, DataplaneError> {
    T::try_from(map).map_err(map_error("read", name))
}

/// The address in a key: IPv4 lies in the first four bytes.
fn ip(addr: [u8; 16], family: u8) -> IpAddr {
    match (family, addr) {
        (4, [a, b, c, d, ..]) => Ipv4Addr::new(a, b, c, d).into(),
        _ => Ipv6Addr::from(addr).into(),
    }
}

/// A Location, or a Service's port as commands take it.
fn place(host: &str, path: &str, kind: &str) -> String {
    match kind {
        "TCP" => format!("{host}{path}"),
        "UDP" => format!("{host}{path}/UDP"),
        kind => format!("{host}{path} ({kind})"),
    }
}
