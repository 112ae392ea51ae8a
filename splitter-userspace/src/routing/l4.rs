//! Who answers a connection, where no HTTP is looked at: the same Variant and Endpoint for the same flow
//! and weights, on every node and in the kernel.

use std::collections::HashMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use serde::Serialize;
use splitter_common::{Flow, PROTO_TCP, PROTO_UDP, variant_with};

use super::SlotId;
use super::maglev::Ring;
use crate::model::keyed::endpoint_token;
use crate::model::{
    L4, L4Endpoint, L4Key, L4Service, L4SplitBy, L4State, STABLE, Transport, Weights,
};

/// How many Endpoints a connection is offered before it is refused: nothing is lost with one that does
/// not accept.
pub const L4_TRIES: usize = 3;

/// One Service port as connections meet it.
#[derive(Debug, PartialEq, Eq)]
pub struct L4Live {
    /// What it is.
    pub service: Arc<L4Service>,
    /// Its weight slot; [`SlotId::NONE`] without a Split.
    pub slot: SlotId,
    /// By Variant.
    rings: Vec<Arc<VariantRing>>,
}

/// The Endpoints of one Variant that take new connections.
#[derive(Debug, PartialEq, Eq)]
struct VariantRing {
    endpoints: Arc<[L4Endpoint]>,
    /// Those on the ring, by their number there.
    taking: Vec<SocketAddr>,
    ring: Ring,
}

/// Why a Variant was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum L4Reason {
    /// There is nothing to choose, or the Split is not for such connections.
    Only,
    /// By its weight.
    Weight,
    /// The Variant that the weights chose has no Endpoint.
    Fallback,
}

/// What was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct L4Choice {
    /// The Variant.
    pub variant: usize,
    /// Why.
    pub reason: L4Reason,
}

/// From where a connection is taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum L4Taken {
    /// At a port of the node.
    NorthSouth,
    /// At the Service's own address.
    EastWest,
}

/// All Service ports of a Snapshot. What did not change is taken over from `before`; `slots` has one for
/// each.
pub fn l4_live(before: &[Arc<L4Live>], l4: &L4, slots: &[SlotId]) -> Vec<Arc<L4Live>> {
    let known: HashMap<&L4Key, &Arc<L4Live>> =
        before.iter().map(|it| (&it.service.key, it)).collect();
    let pairs = l4.services.iter().zip(slots);
    let all = pairs.map(|(service, slot)| {
        let old = known.get(&service.key);
        if let Some(old) = old
            && old.slot == *slot
            && Arc::ptr_eq(&old.service, service)
        {
            return Arc::clone(old);
        }
        let rings = old.map(|it| it.rings.as_slice());
        Arc::new(L4Live::new(service, *slot, rings.unwrap_or_default()))
    });
    all.collect()
}

impl L4Live {
    fn new(service: &Arc<L4Service>, slot: SlotId, known: &[Arc<VariantRing>]) -> Self {
        let rings = service.variants.iter().map(|variant| {
            let same = known.iter().find(|it| it.endpoints == variant.endpoints);
            let new = || Arc::new(VariantRing::of(&variant.endpoints));
            same.map_or_else(new, Arc::clone)
        });
        L4Live {
            rings: rings.collect(),
            service: Arc::clone(service),
            slot,
        }
    }

    /// The Variant for a flow; none when no Variant has an Endpoint that it may be given. `weights` are
    /// those of the slot.
    ///
    /// A canary without an Endpoint gives way to stable. Stable without one is an end: traffic that is
    /// not meant for a canary is not given to it.
    pub fn choose(&self, flow: &Flow, weights: &Weights, taken: L4Taken) -> Option<L4Choice> {
        let scope = self.service.scope;
        let split = match taken {
            L4Taken::NorthSouth => scope.is_north_south(),
            L4Taken::EastWest => scope.is_east_west(),
        };
        if !split || self.rings.len() < 2 {
            return self.available(STABLE, L4Reason::Only);
        }
        let point = match self.service.split_by {
            L4SplitBy::Connection => flow.point(),
            L4SplitBy::SourceAddress => flow.source_point(),
        };
        let has_endpoint = |variant| self.available(variant as usize, L4Reason::Weight).is_some();
        let (variant, fallback) = variant_with(&weights.values, point, has_endpoint)?;
        Some(L4Choice {
            variant: variant as usize,
            reason: match fallback {
                true => L4Reason::Fallback,
                false => L4Reason::Weight,
            },
        })
    }

    /// The Endpoints of a Variant that take new connections.
    pub fn taking(&self, variant: usize) -> &[SocketAddr] {
        self.rings.get(variant).map_or(&[], |it| &it.taking)
    }

    /// Whose each place of a Variant's ring is: numbers in [`Self::taking`].
    pub fn places(&self, variant: usize) -> &[u16] {
        self.rings.get(variant).map_or(&[], |it| it.ring.places())
    }

    fn available(&self, variant: usize, reason: L4Reason) -> Option<L4Choice> {
        let ring = self.rings.get(variant)?;
        (!ring.ring.is_empty()).then_some(L4Choice { variant, reason })
    }

    /// The Endpoints that a flow is offered, one after the other: its own, and those that stand in for
    /// it; at most [`L4_TRIES`].
    pub fn endpoints(&self, variant: usize, flow: &Flow) -> Vec<SocketAddr> {
        let Some(VariantRing { taking, ring, .. }) = self.rings.get(variant).map(|it| &**it) else {
            return Vec::new();
        };
        let most = taking.len().min(L4_TRIES);
        let mut found = Vec::with_capacity(most);
        for number in ring.from(flow.place(ring.len())) {
            if found.len() == most {
                break;
            }
            if let Some(addr) = taking.get(number)
                && !found.contains(addr)
            {
                found.push(*addr);
            }
        }
        found
    }

    /// Whether an Endpoint keeps the connections that it has.
    pub fn keeps(&self, endpoint: SocketAddr) -> bool {
        let mut all = self.service.variants.iter();
        all.any(|variant| {
            let found = variant
                .endpoints
                .binary_search_by(|it| it.addr.cmp(&endpoint));
            found.is_ok()
        })
    }
}

impl VariantRing {
    /// The ready ones, or those that are draining when none is.
    fn of(endpoints: &Arc<[L4Endpoint]>) -> Self {
        let with = |state| {
            let all = endpoints.iter().filter(move |it| it.state == state);
            all.map(|it| it.addr).collect::<Vec<_>>()
        };
        let mut taking = with(L4State::Ready);
        if taking.is_empty() {
            taking = with(L4State::Draining);
        }
        let named: Vec<_> = taking.iter().map(|it| (endpoint_token(*it), 1)).collect();
        VariantRing {
            endpoints: Arc::clone(endpoints),
            ring: Ring::of(&named),
            taking,
        }
    }
}

/// The flow of a connection.
pub fn l4_flow(transport: Transport, client: SocketAddr, asked: SocketAddr) -> Flow {
    Flow {
        source: octets(client.ip()),
        destination: octets(asked.ip()),
        source_port: client.port(),
        destination_port: asked.port(),
        protocol: match transport {
            Transport::Tcp => PROTO_TCP,
            Transport::Udp => PROTO_UDP,
        },
    }
}

fn octets(address: IpAddr) -> [u8; 16] {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        IpAddr::V6(address) => address.octets(),
    }
}

#[cfg(test)]
#[path = "l4_tests.rs"]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests;
