//! What every map must look like: asked of the programs' own maps, and of pinned ones before they
//! are taken over.

use std::io;
use std::path::Path;

use aya::maps::{MapData, MapError};
use splitter_common::{
    AddressKey, Asked, BalanceSettings, Balanced, BucketKey, BucketKind, BucketState, Cidr4Key,
    Cidr6Key, Class, Config, ConnectCounts, Counters, EndpointKey, FlowKey, FlowValue, FragmentKey,
    Front, INDEX_ENTRIES, KeepKey, ListenerValue, MAX_BALANCED, MAX_CONNECT_ADDRESSES,
    MAX_CONNECT_ENDPOINTS, MAX_CONNECT_SERVICES, MAX_FLOWS, MAX_FRAGMENTS, MAX_FRONTS,
    MAX_LISTENERS, MAX_MAP_NAME, MAX_POOL_SOCKETS, MAX_PORTS, MAX_PREFIXES, MAX_RING_PARTS,
    MAX_SLOTS, MAX_SOURCES, MAX_TARGETS, MAX_TRAFFIC, POOLS, PoolInfo, PortKey, PortUses,
    PrefixIndex, PrefixValue, RingPart, ServiceValue, Slot, SlotStats, SplitName, Target, Traffic,
    WORK_WORDS,
};
use std::os::fd::AsFd as _;

use super::sys::{self, MapInfo};

const HASH: u32 = 1;
const ARRAY: u32 = 2;
const PERCPU_ARRAY: u32 = 6;
const LRU_HASH: u32 = 9;
const SOCKMAP: u32 = 15;
const SK_STORAGE: u32 = 24;

const NO_PREALLOC: u32 = 1;
const MMAPABLE: u32 = 1024;

/// What one map must look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapSpec {
    /// Its name: in the object, in the kernel, in the pin directory.
    pub name: &'static str,
    kind: u32,
    key_size: u32,
    value_size: u32,
    max_entries: u32,
    flags: u32,
}

/// A map with keys of type `K` and values of type `V`.
const fn map<K, V>(name: &'static str, kind: u32, max_entries: u32, flags: u32) -> MapSpec {
    assert!(name.len() <= MAX_MAP_NAME);
    MapSpec {
        name,
        kind,
        key_size: size_of::<K>() as u32,
        value_size: size_of::<V>() as u32,
        max_entries,
        flags,
    }
}

/// Every map of the object.
pub const MAPS: [MapSpec; 33] = [
    map::<u32, Config>("config", ARRAY, 1, MMAPABLE),
    map::<Cidr4Key, PrefixValue>("cidr4", HASH, MAX_PREFIXES, NO_PREALLOC),
    map::<Cidr6Key, PrefixValue>("cidr6", HASH, MAX_PREFIXES, NO_PREALLOC),
    map::<u32, PrefixIndex>("cidr4_index", ARRAY, INDEX_ENTRIES, MMAPABLE),
    map::<u32, PrefixIndex>("cidr6_index", ARRAY, INDEX_ENTRIES, MMAPABLE),
    map::<PortKey, ListenerValue>("listeners", HASH, MAX_LISTENERS, NO_PREALLOC),
    map::<AddressKey, ListenerValue>("listener_addrs", HASH, MAX_LISTENERS, NO_PREALLOC),
    map::<u32, u64>("pools", SOCKMAP, MAX_POOL_SOCKETS, 0),
    map::<u32, PoolInfo>("pool_info", ARRAY, MAX_POOL_SOCKETS, 0),
    map::<u32, Counters>("counters", PERCPU_ARRAY, Class::COUNT as u32 + 1, 0),
    map::<u32, BucketState>(
        "class_buckets",
        ARRAY,
        BucketKind::COUNT * Class::COUNT as u32,
        0,
    ),
    map::<BucketKey, BucketState>("source_buckets", LRU_HASH, MAX_SOURCES, 0),
    map::<u32, Slot>("splits", ARRAY, MAX_SLOTS, MMAPABLE),
    map::<u32, SlotStats>("split_stats", ARRAY, MAX_SLOTS, MMAPABLE),
    map::<u32, SplitName>("split_names", HASH, MAX_SLOTS, NO_PREALLOC),
    map::<u32, u64>("logged", ARRAY, POOLS, 0),
    map::<AddressKey, ServiceValue>("l4_services", HASH, MAX_CONNECT_ADDRESSES, NO_PREALLOC),
    map::<EndpointKey, AddressKey>("l4_endpoints", HASH, MAX_CONNECT_ENDPOINTS, NO_PREALLOC),
    map::<KeepKey, u32>("l4_keeps", HASH, MAX_CONNECT_ENDPOINTS, NO_PREALLOC),
    map::<u32, u64>("l4_turns", ARRAY, MAX_CONNECT_SERVICES, 0),
    map::<u32, ConnectCounts>("l4_counts", PERCPU_ARRAY, 1, 0),
    map::<i32, Asked>("l4_asked", SK_STORAGE, 0, NO_PREALLOC),
    map::<u32, BalanceSettings>("l4_settings", ARRAY, 1, 0),
    map::<u32, PortUses>("l4_ports", ARRAY, MAX_PORTS, 0),
    map::<AddressKey, Front>("l4_fronts", HASH, MAX_FRONTS, NO_PREALLOC),
    map::<u32, Balanced>("l4_balanced", ARRAY, MAX_BALANCED, 0),
    map::<u32, RingPart>("l4_rings", ARRAY, MAX_RING_PARTS, 0),
    map::<u32, Target>("l4_targets", ARRAY, MAX_TARGETS, 0),
    map::<FlowKey, FlowValue>("l4_flows", LRU_HASH, MAX_FLOWS, 0),
    map::<FlowKey, FlowValue>("l4_unproven", LRU_HASH, MAX_FLOWS, 0),
    map::<FragmentKey, u32>("l4_fragments", LRU_HASH, MAX_FRAGMENTS, 0),
    map::<u32, Traffic>("l4_traffic", PERCPU_ARRAY, MAX_TRAFFIC, 0),
    map::<u32, [u64; WORK_WORDS]>("l4_work", PERCPU_ARRAY, 2, 0),
];

/// The maps of the object that belong to the loaded programs alone: nothing of them is pinned, and
/// none has type information. The kernel refuses it for a map of CPUs; a ring buffer has neither
/// keys nor values that it could describe; constants are one byte string to aya.
pub const PROGRAMS_OWN: [&str; 3] = ["cpus", "AYA_LOGS", ".rodata"];

impl MapSpec {
    /// How a map differs from what it must look like, if it does.
    pub fn difference(&self, info: &MapInfo) -> Option<String> {
        let pairs = [
            ("type", self.kind, info.kind),
            ("key size", self.key_size, info.key_size),
            ("value size", self.value_size, info.value_size),
            ("entries", self.max_entries, info.max_entries),
            ("flags", self.flags, info.flags),
        ];
        let (what, wanted, found) = pairs
            .into_iter()
            .find(|(_, wanted, found)| wanted != found)?;
        Some(format!("{}: {what} is {found}, not {wanted}", self.name))
    }

    /// Whether the map must have type information: the kernel takes none for socket maps.
    pub fn needs_btf(&self) -> bool {
        self.kind != SOCKMAP
    }

    /// How the pinned map of this name differs, if it is there and does.
    ///
    /// # Errors
    /// When something is there that cannot be opened.
    pub fn pinned_difference(&self, dir: &Path) -> io::Result<Option<String>> {
        let path = dir.join(self.name);
        if !path.exists() {
            return Ok(None);
        }
        let map = match MapData::from_pin(&path) {
            Ok(map) => map,
            Err(MapError::SyscallError(error)) => return Err(error.io_error),
            Err(error) => return Ok(Some(format!("{}: {error}", self.name))),
        };
        let info = sys::map_info(map.fd().as_fd())?;
        let no_btf = || {
            let missing = self.needs_btf() && info.btf == 0;
            missing.then(|| format!("{}: has no BTF", self.name))
        };
        Ok(self.difference(&info).or_else(no_btf))
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn every_difference_is_found() {
        let spec = MAPS[0];
        let mut same = MapInfo::default();
        (same.kind, same.key_size, same.value_size) = (ARRAY, 4, size_of::<Config>() as u32);
        (same.max_entries, same.flags) = (1, MMAPABLE);
        assert_eq!(spec.difference(&same), None);
        let changes: [fn(&mut MapInfo); 5] = [
            |info| info.kind = HASH,
            |info| info.key_size = 8,
            |info| info.value_size = 4,
            |info| info.max_entries = 2,
            |info| info.flags = 0,
        ];
        for change in changes {
            let mut other = same;
            change(&mut other);
            let text = spec.difference(&other).unwrap();
            assert!(text.starts_with("config: "), "{text}");
        }
    }

    #[test]
    fn names_are_unique() {
        let names: std::collections::BTreeSet<_> = MAPS.iter().map(|map| map.name).collect();
        assert_eq!(names.len(), MAPS.len());
    }
}
