//! Snapshots of any size and requests for them; shared by the bench and the test that counts
//! allocations.
#![allow(
    clippy::expect_used,
    reason = "a load that cannot be made fails the test or bench"
)]

use std::collections::BTreeMap;
use std::sync::Arc;

use http::{HeaderMap, HeaderName, HeaderValue};
use splitter::dataplane::{SlotAllocator, SlotPlan, SlotTable, apply, diff, plan};
use splitter::model::{
    BackendId, CookieTest, HeaderTest, Host, HostPattern, Kind, Location, LocationId, LocationKey,
    ObjectRef, PathKind, Rule, Snapshot, Split, Test, Variant,
};
use splitter::routing::{
    Blocks, Decision, Found, Live, Router, Shown, WeightSource, decide, normalize,
};

/// How the Locations are spread over hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Five on each host.
    ManyHosts,
    /// All on one host.
    OneHost,
}

/// A published state with requests for it.
pub struct Load {
    /// The state.
    pub live: Live,
    weights: SlotTable,
    requests: Vec<Request>,
    headers: HeaderMap,
}

struct Request {
    host: Box<str>,
    path: Box<str>,
}

/// The Locations of one group; the last says whether there is a canary.
const PATHS: [(&str, PathKind, bool); 5] = [
    ("/", PathKind::Prefix, true),
    ("/api", PathKind::Prefix, false),
    ("/api/v1/orders", PathKind::Prefix, true),
    ("/assets", PathKind::Prefix, false),
    ("/healthz", PathKind::Exact, true),
];

/// What is asked for below a Prefix path.
const REST: &str = "4711/items.json";

impl Load {
    /// `locations` Locations in groups of five, three of which have a canary with header, cookie
    /// and weight; and `requests` requests for `asked` Locations in groups chosen at random, as
    /// often for each.
    pub fn new(shape: Shape, locations: usize, asked: usize, requests: usize) -> Self {
        let group = PATHS.len();
        let keys: BTreeMap<LocationKey, bool> = (0..locations)
            .map(|index| (key(shape, index), PATHS[index % group].2))
            .collect();
        let snapshot = snapshot(&keys);
        let router = Arc::new(Router::build(&snapshot));
        let plan = plan(&snapshot, 1, &mut SlotAllocator::default());
        let weights = SlotTable::in_memory().expect("memory for the slots");
        apply(&weights, &diff(&SlotPlan::default(), &plan), 1).expect("slots are written");
        let mut rng = fastrand::Rng::with_seed(7);
        let groups = rng.choose_multiple(0..locations / group, asked / group);
        let asked: Vec<usize> = groups
            .iter()
            .flat_map(|at| at * group..(at + 1) * group)
            .collect();
        let mut requests: Vec<Request> = (0..requests)
            .map(|index| request(&key(shape, asked[index % asked.len()])))
            .collect();
        rng.shuffle(&mut requests);
        Load {
            weights,
            requests,
            headers: headers(),
            live: Live::new(1, Arc::new(snapshot), router, plan.slots),
        }
    }

    /// How many requests there are.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    /// A worker's state for this load, with all the memory it will need.
    pub fn blocks(&self) -> Blocks {
        let mut blocks = Blocks::new(fastrand::Rng::with_seed(1));
        blocks.reserve(self.live.slots.len());
        blocks
    }

    /// Finds and decides one request: what the proxy does before it looks for an Endpoint.
    pub fn answer(&self, index: usize, blocks: &mut Blocks) -> Option<(LocationId, Decision)> {
        let request = self.requests.get(index)?;
        let host = normalize(&request.host)?;
        let Found::Location(id) = self.live.router.find(&host, &request.path) else {
            return None;
        };
        let split = &self.live.snapshot.location(id)?.split;
        let slot = self.live.slot(id)?;
        let weights = self.weights.weights(slot);
        let mut draw = blocks.slot(slot, &weights);
        Some((
            id,
            decide(split, &Shown::of(&self.headers), &weights, &mut draw),
        ))
    }
}

fn key(shape: Shape, index: usize) -> LocationKey {
    let (path, kind, _) = PATHS[index % PATHS.len()];
    let group = index / PATHS.len();
    match shape {
        Shape::ManyHosts => LocationKey {
            host: HostPattern::Exact(format!("shop-{group:05}.apps.example.com").into()),
            path: path.into(),
            kind,
        },
        Shape::OneHost => LocationKey {
            host: HostPattern::Exact("apps.example.com".into()),
            path: format!("/shop-{group:05}{path}").into(),
            kind,
        },
    }
}

fn request(key: &LocationKey) -> Request {
    let HostPattern::Exact(host) = &key.host else {
        unreachable!("all hosts are exact")
    };
    let path = match key.kind {
        PathKind::Exact => key.path.to_string(),
        PathKind::Prefix | PathKind::Regex => format!("{}/{REST}", key.path.trim_end_matches('/')),
    };
    Request {
        host: host.as_ref().into(),
        path: path.into(),
    }
}

fn snapshot(keys: &BTreeMap<LocationKey, bool>) -> Snapshot {
    let mut hosts: Vec<Host> = Vec::new();
    for (index, key) in keys.keys().enumerate() {
        let id = LocationId(index as u32);
        match hosts.last_mut() {
            Some(host) if host.pattern == key.host => host.locations.push(id),
            _ => hosts.push(Host {
                pattern: key.host.clone(),
                aliases: Vec::new(),
                locations: vec![id],
            }),
        }
    }
    let location = |(key, has_canary): (&LocationKey, &bool)| {
        Arc::new(Location {
            pattern: None,
            policy: None,
            key: key.clone(),
            ingress: ingress(),
            split: if *has_canary { canary() } else { plain() },
        })
    };
    Snapshot {
        hosts: hosts.into(),
        locations: keys.iter().map(location).collect(),
        ..Snapshot::default()
    }
}

fn ingress() -> ObjectRef {
    ObjectRef::new(Kind::Ingress, "shop", "main")
}

fn variant(index: u32, weight: u32) -> Variant {
    let name = if index == 0 { "stable" } else { "app-canary" };
    Variant {
        name: name.into(),
        ingress: ingress(),
        backend: BackendId(index),
        weight,
    }
}

fn plain() -> Split {
    Split {
        variants: vec![variant(0, 100)],
        rules: vec![],
        policy: None,
    }
}

fn canary() -> Split {
    let name = HeaderName::from_static("x-canary");
    let header = Test::Header {
        name,
        test: HeaderTest::AlwaysNever,
    };
    let cookie = Test::Cookie {
        name: "canary".into(),
        test: CookieTest::AlwaysNever,
    };
    let rules = [header, cookie].map(|test| Rule { variant: 1, test });
    Split {
        variants: vec![variant(0, 95), variant(1, 5)],
        rules: rules.into(),
        policy: None,
    }
}

/// What a browser sends; neither the header nor the cookie decides.
fn headers() -> HeaderMap {
    [
        ("accept", "text/html,application/xhtml+xml"),
        ("accept-encoding", "gzip, deflate, br"),
        ("accept-language", "en"),
        ("cookie", "session=0123456789abcdef; theme=dark; consent=1"),
        ("host", "apps.example.com"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
        ("x-request-id", "00000000000000000000000000000000"),
    ]
    .map(|(name, value)| {
        (
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        )
    })
    .into_iter()
    .collect()
}
