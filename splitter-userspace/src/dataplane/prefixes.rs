//! Whose which address is: the tables that `splitter_common::classify` looks into, made of ranges.

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::net::IpAddr;

use splitter_common::{
    Cidr4Key, Cidr6Key, INDEX_ENTRIES, MAX_LENGTHS, MAX_OWN, MAX_PREFIXES, Origin, Peer,
    PrefixIndex, PrefixKind, PrefixTable, Role, Tables, classify,
};

use super::cidr::Cidr;

/// Entries of one family's index in one buffer.
const TOPS: usize = (INDEX_ENTRIES / 2) as usize;

/// What a node knows about the addresses around it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ranges {
    /// This node's own addresses.
    pub own: Vec<IpAddr>,
    /// This node's pods.
    pub pods: Vec<Cidr>,
    /// All pods.
    pub cluster: Vec<Cidr>,
    /// Other nodes' addresses.
    pub nodes: Vec<IpAddr>,
}

impl Ranges {
    fn all(&self) -> impl Iterator<Item = (Cidr, PrefixKind)> {
        let own = self
            .own
            .iter()
            .map(|addr| (Cidr::host(*addr), PrefixKind::Own));
        let pods = self.pods.iter().map(|range| (*range, PrefixKind::Pods));
        let cluster = self
            .cluster
            .iter()
            .map(|range| (*range, PrefixKind::Cluster));
        let nodes = self
            .nodes
            .iter()
            .map(|addr| (Cidr::host(*addr), PrefixKind::Node));
        own.chain(pods).chain(cluster).chain(nodes)
    }
}

/// A range that found no place in the tables.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    /// The range.
    pub range: Cidr,
    /// Whose it is.
    pub kind: PrefixKind,
    /// Why.
    pub why: &'static str,
}

impl fmt::Display for LeftOut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (range, kind) = (self.range, self.kind.name());
        write!(f, "the {kind} range {range} is left out: {}", self.why)
    }
}

/// The prefix tables of one moment, for the kernel's maps and for user space alike.
///
/// The longest prefix decides whose an address is. Of equal ones, the first of own, pods, cluster,
/// node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prefixes {
    /// IPv4 prefixes with their kind codes; the keys name buffer 0.
    pub v4: BTreeMap<Cidr4Key, u32>,
    /// IPv6 prefixes with their kind codes; the keys name buffer 0.
    pub v6: BTreeMap<Cidr6Key, u32>,
    /// By the top 16 bits of an IPv4 address.
    pub index4: Vec<PrefixIndex>,
    /// By the top 16 bits of an IPv6 address.
    pub index6: Vec<PrefixIndex>,
}

impl Default for Prefixes {
    fn default() -> Self {
        Prefixes {
            v4: BTreeMap::new(),
            v6: BTreeMap::new(),
            index4: vec![PrefixIndex::default(); TOPS],
            index6: vec![PrefixIndex::default(); TOPS],
        }
    }
}

impl Prefixes {
    /// Own IPv4 addresses, the first [`MAX_OWN`] that are not loopback, as
    /// [`splitter_common::Settings::own4`] has them.
    pub fn own4(&self) -> [u32; MAX_OWN] {
        let mut own = [0; MAX_OWN];
        let all = self.v4.iter().filter(|(key, kind)| {
            key.len == 32 && key.addr[0] != 127 && **kind == PrefixKind::Own.code()
        });
        own.iter_mut()
            .zip(all)
            .for_each(|(place, (key, _))| *place = u32::from_ne_bytes(key.addr));
        own
    }

    /// Makes the tables, and says which ranges found no place in them.
    pub fn new(ranges: &Ranges) -> (Prefixes, Vec<LeftOut>) {
        let mut kinds: BTreeMap<(u8, Cidr), PrefixKind> = BTreeMap::new();
        for (range, kind) in ranges.all() {
            let place = kinds.entry((range.len(), range)).or_insert(kind);
            *place = kind.min(*place);
        }
        let mut prefixes = Prefixes::default();
        let mut left_out = Vec::new();
        // Short ones first, so that the index entry of a short prefix is that of the longest.
        for ((_, range), kind) in kinds {
            if let Err(why) = prefixes.add(range, kind) {
                left_out.push(LeftOut { range, kind, why });
            }
        }
        (prefixes, left_out)
    }

    fn add(&mut self, range: Cidr, kind: PrefixKind) -> Result<(), &'static str> {
        let full = |len: usize| len >= MAX_PREFIXES as usize / 2;
        let len = range.len();
        match range.addr() {
            IpAddr::V4(_) if full(self.v4.len()) => Err("the table is full"),
            IpAddr::V4(addr) => {
                let addr = addr.octets();
                index(&mut self.index4, [addr[0], addr[1]], len, kind)?;
                let key = Cidr4Key {
                    len,
                    addr,
                    ..Cidr4Key::default()
                };
                self.v4.insert(key, kind.code());
                Ok(())
            }
            IpAddr::V6(_) if full(self.v6.len()) => Err("the table is full"),
            IpAddr::V6(addr) => {
                let addr = addr.octets();
                index(&mut self.index6, [addr[0], addr[1]], len, kind)?;
                let key = Cidr6Key {
                    len,
                    addr,
                    ..Cidr6Key::default()
                };
                self.v6.insert(key, kind.code());
                Ok(())
            }
        }
    }
}

/// Enters a prefix into the index of its family.
fn index(
    entries: &mut [PrefixIndex],
    top: [u8; 2],
    len: u8,
    kind: PrefixKind,
) -> Result<(), &'static str> {
    let first = usize::from(u16::from_be_bytes(top));
    if len <= 16 {
        let count = 1 << (16 - len);
        let covered = entries.get_mut(first..first + count).unwrap_or_default();
        covered.iter_mut().for_each(|entry| entry.kind = kind as u8);
        return Ok(());
    }
    let Some(entry) = entries.get_mut(first) else {
        return Err("the index is too small");
    };
    if entry.lens.contains(&len) {
        return Ok(());
    }
    if entry.lens[MAX_LENGTHS - 1] != 0 {
        return Err("more than 7 different prefix lengths share their first 16 bits");
    }
    // Longest first; zeros stay at the end.
    entry.lens[MAX_LENGTHS - 1] = len;
    entry.lens.sort_unstable_by(|a, b| b.cmp(a));
    Ok(())
}

/// [`classify`] in user space.
#[derive(Clone, Debug, Default)]
pub struct Classifier {
    prefixes: Prefixes,
    /// Roles of interfaces; none when interfaces are not seen at all.
    roles: Option<HashMap<u32, Role>>,
    native_routing: bool,
}

impl Classifier {
    /// Classifies by the peer's address alone.
    pub fn new(prefixes: Prefixes) -> Classifier {
        Classifier {
            prefixes,
            ..Classifier::default()
        }
    }

    /// Classifies as the kernel programs do, by these roles of interfaces.
    pub fn with_interfaces(
        prefixes: Prefixes,
        roles: HashMap<u32, Role>,
        native_routing: bool,
    ) -> Classifier {
        Classifier {
            prefixes,
            roles: Some(roles),
            native_routing,
        }
    }

    /// Where a peer is. The interface counts only where interfaces are known.
    pub fn classify(&self, peer: IpAddr, ifindex: u32) -> Origin {
        classify(self, Peer::from(peer), ifindex)
    }
}

impl PrefixTable for Classifier {
    fn index4(&self, top: u16) -> u64 {
        let entry = self.prefixes.index4.get(usize::from(top));
        entry.map_or(0, |entry| entry.word())
    }
    fn index6(&self, top: u16) -> u64 {
        let entry = self.prefixes.index6.get(usize::from(top));
        entry.map_or(0, |entry| entry.word())
    }
    fn find4(&self, len: u32, addr: u32) -> Option<u32> {
        let key = Cidr4Key {
            len: len as u8,
            addr: addr.to_be_bytes(),
            ..Cidr4Key::default()
        };
        self.prefixes.v4.get(&key).copied()
    }
    fn find6(&self, len: u32, high: u64, low: u64) -> Option<u32> {
        let bits = u128::from(high) << 64 | u128::from(low);
        let key = Cidr6Key {
            len: len as u8,
            addr: bits.to_be_bytes(),
            ..Cidr6Key::default()
        };
        self.prefixes.v6.get(&key).copied()
    }
}

impl Tables for Classifier {
    fn role(&self, ifindex: u32) -> Role {
        match &self.roles {
            None => Role::Unseen,
            Some(roles) => roles.get(&ifindex).copied().unwrap_or(Role::Inner),
        }
    }
    fn native_routing(&self) -> bool {
        self.native_routing
    }
}

#[cfg(test)]
#[path = "prefixes_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
