//! What the maps are to hold, from what is served.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use splitter_common::{AddressKey, Target};

use super::super::connect::key;
use super::super::prefixes::Ranges;
use crate::model::{L4, L4Key, Transport};
use crate::routing::{L4Live, SlotId};

/// Everything that XDP forwards.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BalancePlan {
    /// Which Service port answers, by the address and port that are asked.
    pub fronts: BTreeMap<AddressKey, L4Key>,
    /// Those Service ports.
    pub services: BTreeMap<L4Key, Arc<L4Live>>,
    /// Their Endpoints, with flags of [`Target`].
    pub targets: BTreeMap<AddressKey, u32>,
}

/// Plans what XDP forwards: ports of the node that are open, at each of the node's own addresses, and
/// Services' external addresses, but the node's own, where the Service has a Split. Ports that speak the PROXY protocol are left
/// to user space, which does that.
pub fn balance_plan(
    all: &[Arc<L4Live>],
    l4: &L4,
    is_open: impl Fn(Transport, u16) -> bool,
    ranges: &Ranges,
) -> BalancePlan {
    let mut plan = BalancePlan::default();
    let listeners = l4
        .listeners
        .iter()
        .filter(|it| !it.accept_proxy && !it.send_proxy && is_open(it.transport, it.port));
    for listener in listeners {
        let Some(live) = all.get(listener.service.0 as usize) else {
            continue;
        };
        for ip in &ranges.own {
            plan.add(
                live,
                listener.transport,
                SocketAddr::new(*ip, listener.port),
            );
        }
    }
    let split = |live: &&Arc<L4Live>| {
        let service = &live.service;
        live.slot != SlotId::NONE && service.scope.is_north_south() && service.variants.len() > 1
    };
    for live in all.iter().filter(split) {
        let service = &live.service;
        // A Service says its external addresses by itself; ports of the node are for who runs the node.
        let external = service.external_addresses.iter();
        for ip in external.filter(|ip| !ranges.own.contains(ip)) {
            let addr = SocketAddr::new(*ip, service.key.port);
            plan.add(live, service.key.transport, addr);
        }
    }
    for live in plan.services.values() {
        targets(&mut plan.targets, live, ranges);
    }
    plan
}

impl BalancePlan {
    /// The first one has an address.
    fn add(&mut self, live: &Arc<L4Live>, transport: Transport, addr: SocketAddr) {
        let service = &live.service.key;
        if let std::collections::btree_map::Entry::Vacant(entry) =
            self.fronts.entry(key(transport, addr))
        {
            entry.insert(service.clone());
            self.services
                .entry(service.clone())
                .or_insert_with(|| Arc::clone(live));
        }
    }
}

fn targets(all: &mut BTreeMap<AddressKey, u32>, live: &L4Live, ranges: &Ranges) {
    let service = &live.service;
    for (number, variant) in service.variants.iter().enumerate() {
        for endpoint in variant.endpoints.iter() {
            let is_local = is_local(endpoint.addr.ip().to_canonical(), ranges);
            let local = if is_local { Target::LOCAL } else { 0 };
            let flags = all.entry(key(service.key.transport, endpoint.addr));
            *flags.or_default() |= Target::KEEPS | local;
        }
        for addr in live.taking(number) {
            *all.entry(key(service.key.transport, *addr)).or_default() |= Target::TAKES;
        }
    }
}

/// Whether an address is on this node: its own, or that of a pod here.
fn is_local(ip: IpAddr, ranges: &Ranges) -> bool {
    ranges.own.contains(&ip) || ranges.pods.iter().any(|range| range.contains(ip))
}

#[cfg(test)]
#[path = "plan_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
