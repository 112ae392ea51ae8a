//! A small shop and finished requests to it, for tests of metrics and logs.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, Method, Version};
use splitter::model::{
    Backend, BackendId, BackendKey, Host, HostPattern, Kind, Location, LocationId, LocationKey,
    ObjectRef, PathKind, Snapshot, Split, Variant,
};
use splitter::routing::{Decision, Live, Reason, Router, SlotId};
use splitter::telemetry::{Record, UpstreamRecord};

/// `a.example/` of [`shop`], with two canaries.
pub const HOME: LocationId = LocationId(0);
/// `a.example/api`, the same Service without a canary.
pub const API: LocationId = LocationId(1);
/// `b.example/`, the same Service without a canary.
pub const OTHER_HOST: LocationId = LocationId(2);
/// `*.w.example/`.
pub const WILDCARD: LocationId = LocationId(3);

/// A Service `web` under two hosts, canaried under one of them; `empty.example` has no Location.
pub fn shop(generation: u64) -> Live {
    let exact = |name: &str| HostPattern::Exact(name.into());
    let wildcard = HostPattern::Wildcard("w.example".into());
    let host = |pattern: HostPattern, locations: &[LocationId]| Host {
        pattern,
        aliases: Vec::new(),
        locations: locations.to_vec(),
    };
    let stable = [("stable", "web", 0, 70)];
    let canaried = [
        stable[0],
        ("web-canary", "web-canary", 1, 20),
        ("web-next", "web-next", 2, 10),
    ];
    let snapshot = Snapshot {
        hosts: vec![
            host(exact("a.example"), &[HOME, API]),
            host(exact("b.example"), &[OTHER_HOST]),
            host(exact("empty.example"), &[]),
            host(wildcard.clone(), &[WILDCARD]),
        ]
        .into(),
        locations: vec![
            location(exact("a.example"), "/", PathKind::Prefix, &canaried),
            location(exact("a.example"), "/api", PathKind::Exact, &stable),
            location(exact("b.example"), "/", PathKind::Prefix, &stable),
            location(wildcard, "/", PathKind::Prefix, &stable),
        ]
        .into(),
        backends: vec![
            backend("web", "80"),
            backend("web-canary", "80"),
            backend("web-next", "http"),
        ]
        .into(),
        ..Snapshot::default()
    };
    live(generation, snapshot)
}

/// The same with nothing in it.
pub fn empty(generation: u64) -> Live {
    live(generation, Snapshot::default())
}

fn live(generation: u64, snapshot: Snapshot) -> Live {
    let slots = (0..snapshot.locations.len() as u32).map(SlotId).collect();
    let router = Arc::new(Router::build(&snapshot));
    Live::new(generation, Arc::new(snapshot), router, slots)
}

fn location(
    host: HostPattern,
    path: &str,
    kind: PathKind,
    variants: &[(&str, &str, u32, u32)],
) -> Arc<Location> {
    let variants = variants
        .iter()
        .map(|(name, ingress, backend, weight)| Variant {
            name: (*name).into(),
            ingress: ObjectRef::new(Kind::Ingress, "shop", ingress),
            backend: BackendId(*backend),
            weight: *weight,
        });
    Arc::new(Location {
        key: LocationKey {
            host,
            path: path.into(),
            kind,
        },
        ingress: ObjectRef::new(Kind::Ingress, "shop", "web"),
        pattern: None,
        policy: None,
        split: Split {
            variants: variants.collect(),
            rules: Vec::new(),
            policy: None,
        },
    })
}

fn backend(service: &str, port: &str) -> Arc<Backend> {
    Arc::new(Backend {
        key: BackendKey {
            namespace: "shop".into(),
            service: service.into(),
            port: port.into(),
        },
        fault: None,
        endpoints: Vec::new(),
    })
}

/// A finished request, to be changed where a test needs it.
#[derive(Clone)]
pub struct Request {
    /// Its Location in the shop.
    pub location: Option<LocationId>,
    /// Who was chosen and why.
    pub decision: Option<Decision>,
    /// Why the proxy answered itself.
    pub fault: Option<&'static str>,
    /// Its method.
    pub method: Method,
    /// The host asked for.
    pub host: &'static str,
    /// Path and query.
    pub target: &'static str,
    /// Its headers.
    pub headers: HeaderMap,
    /// Status of the answer.
    pub status: u16,
    /// The exchange with a backend.
    pub upstream: Option<UpstreamRecord>,
}

impl Default for Request {
    /// `GET a.example/`, answered by stable over a new connection.
    fn default() -> Self {
        Request {
            location: Some(HOME),
            decision: Some(decision(0, Reason::Weight)),
            fault: None,
            method: Method::GET,
            host: "a.example",
            target: "/?q=1",
            headers: HeaderMap::new(),
            status: 200,
            upstream: Some(UpstreamRecord {
                addr: SocketAddr::from(([10, 0, 0, 1], 8080)),
                tries: 1,
                connect: Some(Duration::from_millis(1)),
                header: Some(Duration::from_millis(20)),
                response: Duration::from_millis(30),
                status: Some(200),
            }),
        }
    }
}

impl Request {
    /// Refused by the proxy before a backend was chosen.
    pub fn refused(fault: &'static str, status: u16) -> Self {
        Request {
            decision: None,
            fault: Some(fault),
            status,
            upstream: None,
            ..Request::default()
        }
    }

    /// No Location matched.
    pub fn unmatched(host: &'static str) -> Self {
        Request {
            location: None,
            host,
            ..Request::refused("no-location", 404)
        }
    }

    /// The record of it: 100 bytes in, 2,000 bytes out, 40 ms.
    pub fn record<'a>(&'a self, live: &'a Live) -> Record<'a> {
        Record {
            live,
            location: self.location.and_then(|id| {
                let location = live.snapshot.location(id)?;
                Some((id, location.as_ref()))
            }),
            decision: self.decision,
            fault: self.fault,
            pool: "north-south",
            class: "north-south",
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 7)),
            method: &self.method,
            host: self.host,
            target: self.target,
            version: Version::HTTP_11,
            headers: &self.headers,
            request_id: "00112233445566778899aabbccddeeff",
            status: self.status,
            request_bytes: 100,
            response_bytes: 2_000,
            duration: Duration::from_millis(40),
            upstream: self.upstream,
        }
    }
}

/// A Decision for a Variant.
pub fn decision(variant: usize, reason: Reason) -> Decision {
    Decision { variant, reason }
}
