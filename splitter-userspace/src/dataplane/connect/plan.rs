//! What the maps are to hold, from what is served.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use splitter_common::{
    AddressKey, ConnectBy, MAX_CONNECT_ENDPOINTS, MAX_CONNECT_SERVICES, PROTO_TCP, PROTO_UDP,
};

use crate::model::{L4Key, L4Service, L4SplitBy, Transport};
use crate::routing::{L4Live, SlotId};

/// Everything that is split at `connect()`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectPlan {
    /// By the Service's own address and port.
    pub services: BTreeMap<AddressKey, PlannedConnect>,
    /// Endpoints that keep what they have, by slot.
    pub keeps: BTreeSet<(u32, AddressKey)>,
    /// Services that found no place.
    pub left_out: Vec<L4Key>,
}

/// One address of a Service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlannedConnect {
    /// Whose it is.
    pub key: L4Key,
    /// Where its weights are.
    pub slot: SlotId,
    /// What has one Variant.
    pub by: ConnectBy,
    /// Those of each Variant that take new connections and are of the address's family.
    pub lists: Vec<Vec<AddressKey>>,
}

/// Plans what is split: Services with a Split that is for connections inside of the cluster, at each of
/// their own addresses, as far as there is room.
pub fn connect_plan(all: &[Arc<L4Live>]) -> ConnectPlan {
    let mut plan = ConnectPlan::default();
    let (mut services, mut endpoints) = (0, 0);
    for live in all.iter().filter(|live| is_split(live)) {
        let service = &live.service;
        let planned: Vec<_> = service
            .cluster_addresses
            .iter()
            .map(|addr| (key_of(service, *addr), at(live, addr.is_ipv4())))
            .collect();
        let keeps: Vec<_> = kept(service).map(|key| (live.slot.0, key)).collect();
        let lists = planned.iter().flat_map(|(_, it)| &it.lists);
        let rows = keeps.len().max(lists.map(Vec::len).sum());
        // A list that is replaced is there twice for a moment.
        let full = services == MAX_CONNECT_SERVICES as usize
            || endpoints + rows > MAX_CONNECT_ENDPOINTS as usize / 2;
        if full {
            plan.left_out.push(service.key.clone());
            continue;
        }
        services += 1;
        endpoints += rows;
        plan.keeps.extend(keeps);
        for (key, it) in planned {
            plan.services.entry(key).or_insert(it);
        }
    }
    plan
}

fn is_split(live: &L4Live) -> bool {
    let service = &live.service;
    live.slot != SlotId::NONE
        && service.scope.is_east_west()
        && service.variants.len() > 1
        && !service.cluster_addresses.is_empty()
}

fn at(live: &L4Live, v4: bool) -> PlannedConnect {
    let service = &live.service;
    let list = |variant: usize| {
        let taking = live.taking(variant).iter();
        let of_family = taking.filter(|addr| addr.ip().to_canonical().is_ipv4() == v4);
        of_family
            .map(|addr| key(service.key.transport, *addr))
            .collect()
    };
    PlannedConnect {
        key: service.key.clone(),
        slot: live.slot,
        by: match service.split_by {
            L4SplitBy::Connection => ConnectBy::Connection,
            L4SplitBy::SourceAddress => ConnectBy::Client,
        },
        lists: (0..service.variants.len()).map(list).collect(),
    }
}

fn kept(service: &L4Service) -> impl Iterator<Item = AddressKey> + '_ {
    let endpoints = service.variants.iter().flat_map(|it| it.endpoints.iter());
    endpoints.map(|it| key(service.key.transport, it.addr))
}

fn key_of(service: &L4Service, addr: IpAddr) -> AddressKey {
    key(
        service.key.transport,
        SocketAddr::new(addr, service.key.port),
    )
}

/// An address and port as it is in maps.
pub(in super::super) fn key(transport: Transport, addr: SocketAddr) -> AddressKey {
    let protocol = match transport {
        Transport::Tcp => PROTO_TCP,
        Transport::Udp => PROTO_UDP,
    };
    match addr.ip().to_canonical() {
        IpAddr::V4(ip) => {
            let [a, b, c, d] = ip.octets();
            let octets = [a, b, c, d, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
            AddressKey::of(octets, addr.port(), protocol, 4)
        }
        IpAddr::V6(ip) => AddressKey::of(ip.octets(), addr.port(), protocol, 6),
    }
}

#[cfg(test)]
#[path = "plan_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
