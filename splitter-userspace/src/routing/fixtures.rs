//! Small Snapshots for the tests of this module.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::Draw;
use crate::model::{
    Affinity, AffinityMode, Backend, BackendId, BackendKey, CookieTest, Endpoint, EndpointState,
    HeaderTest, Host, HostPattern, Kind, Location, LocationId, LocationKey, ObjectRef, PathKind,
    Rule, SessionCookie, Side, Snapshot, Split, Test, Variant, Weights,
};

/// A rule as in an Ingress: `""`, `*.foo.com` or `foo.com`; path; kind.
pub(crate) type Line<'a> = (&'a str, &'a str, PathKind);

pub(crate) fn pattern(host: &str) -> HostPattern {
    match host.strip_prefix("*.") {
        Some(suffix) => HostPattern::Wildcard(suffix.into()),
        None if host.is_empty() => HostPattern::Any,
        None => HostPattern::Exact(host.into()),
    }
}

pub(crate) fn key(line: &Line<'_>) -> LocationKey {
    let (host, path, kind) = *line;
    LocationKey {
        host: pattern(host),
        path: path.into(),
        kind,
    }
}

/// One Location for each line, all answered by the same Backend.
pub(crate) fn snapshot(lines: &[Line<'_>]) -> Snapshot {
    let keys: BTreeMap<LocationKey, ()> = lines.iter().map(|line| (key(line), ())).collect();
    let mut hosts: Vec<Host> = Vec::new();
    let mut locations = Vec::new();
    for (index, key) in keys.into_keys().enumerate() {
        let id = LocationId(index as u32);
        match hosts.last_mut() {
            Some(host) if host.pattern == key.host => host.locations.push(id),
            _ => hosts.push(Host {
                pattern: key.host.clone(),
                aliases: Vec::new(),
                locations: vec![id],
            }),
        }
        let ingress = ingress("main");
        locations.push(Arc::new(Location {
            key,
            ingress,
            split: split(&[1], vec![]),
            pattern: None,
            policy: None,
        }));
    }
    let backends = vec![Arc::new(backend("app", &[(1, EndpointState::Ready)]))];
    Snapshot {
        hosts: hosts.into(),
        locations: locations.into(),
        backends: backends.into(),
        ..Snapshot::default()
    }
}

pub(crate) fn ingress(name: &str) -> ObjectRef {
    ObjectRef::new(Kind::Ingress, "shop", name)
}

/// A Split with these weights, stable first; Variant `n` is answered by Backend `n`.
pub(crate) fn split(weights: &[u32], rules: Vec<Rule>) -> Split {
    let variant = |(index, weight): (usize, &u32)| {
        let name = match index {
            0 => "stable".to_owned(),
            index => format!("canary{index}"),
        };
        Variant {
            ingress: ingress(&name),
            name: name.into(),
            backend: BackendId(index as u32),
            weight: *weight,
        }
    };
    Split {
        variants: weights.iter().enumerate().map(variant).collect(),
        rules,
        policy: None,
    }
}

/// Session affinity with the cookie `route`; the tag of Variant `n` is `n + 1`.
pub(crate) fn affinity(sticky: &[bool]) -> Affinity {
    let side = |(tag, sticky): (u64, &bool)| Side {
        tag,
        sticky: *sticky,
    };
    Affinity {
        mode: AffinityMode::Balanced,
        cookie: Arc::new(SessionCookie {
            name: "route".into(),
            path: None,
            domain: None,
            expires: None,
            max_age: None,
            same_site: None,
            conditional_none: false,
            secure: false,
            change_on_failure: false,
        }),
        path: "/".into(),
        sides: (1..).zip(sticky).map(side).collect(),
    }
}

pub(crate) fn header_rule(variant: u8, name: &'static str, test: HeaderTest) -> Rule {
    Rule {
        variant,
        test: Test::Header {
            name: HeaderName::from_static(name),
            test,
        },
    }
}

pub(crate) fn cookie_rule(variant: u8, name: &str) -> Rule {
    Rule {
        variant,
        test: Test::Cookie {
            name: name.into(),
            test: CookieTest::AlwaysNever,
        },
    }
}

pub(crate) fn weights(values: &[u32]) -> Weights {
    split(values, vec![]).weights()
}

pub(crate) fn headers(lines: &[(&str, &str)]) -> HeaderMap {
    let line = |(name, value): &(&str, &str)| {
        let name = HeaderName::from_bytes(name.as_bytes()).unwrap();
        (name, HeaderValue::from_str(value).unwrap())
    };
    lines.iter().map(line).collect()
}

/// A Backend with one Endpoint `10.0.0.n:80` for each number.
pub(crate) fn backend(service: &str, endpoints: &[(u8, EndpointState)]) -> Backend {
    let endpoint = |(last, state): &(u8, EndpointState)| Endpoint {
        addr: addr(*last),
        state: *state,
    };
    Backend {
        key: BackendKey {
            namespace: "shop".into(),
            service: service.into(),
            port: "80".into(),
        },
        fault: None,
        endpoints: endpoints.iter().map(endpoint).collect(),
    }
}

pub(crate) fn addr(last: u8) -> std::net::SocketAddr {
    ([10, 0, 0, last], 80).into()
}

/// Always the same point; counts how often it was asked.
pub(crate) struct Fixed {
    pub(crate) point: u32,
    pub(crate) asked: u32,
}

impl Fixed {
    pub(crate) fn new(point: u32) -> Self {
        Fixed { point, asked: 0 }
    }
}

impl Draw for Fixed {
    fn point(&mut self, total: u32) -> u32 {
        assert!(total > 0, "asked for a point of nothing");
        self.asked += 1;
        self.point
    }
}
