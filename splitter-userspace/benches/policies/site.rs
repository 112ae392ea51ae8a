//! One Location with some policies, and a request for it; shared by the bench and the test that
//! counts allocations.
#![allow(
    clippy::expect_used,
    reason = "a site that cannot be made fails the test or bench"
)]

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::{HeaderMap, Request, Response, request, response};
use splitter::config::ClassSettings;
use splitter::dataplane::{SlotAllocator, SlotPlan, SlotTable, apply, diff, plan};
use splitter::k8s::{Manifests, translate};
use splitter::model::{Location, Snapshot};
use splitter::proxy::apart::Policies;
use splitter::routing::{
    Aim, Blocks, Found, Held, Live, Router, Shown, WeightSource as _, decide, held, normalize,
    value,
};

/// The annotations of one policy.
pub type Notes = &'static [(&'static str, &'static str)];

/// Pods see another path.
pub const REWRITE: Notes = &[("rewrite-target", "/v2/$2")];
/// Clients stay where they are.
pub const AFFINITY: Notes = &[("affinity", "cookie")];
/// Pages of other origins may read answers.
pub const CORS: Notes = &[
    ("enable-cors", "true"),
    (
        "cors-allow-origin",
        "https://a.example, https://*.b.example",
    ),
];
/// So many requests a second of one client; more than a bench makes.
pub const LIMIT: Notes = &[("limit-rps", "1000000000")];

const HOST: &str = "shop.example";

/// A Location with a canary and its policies, and what a worker needs to serve it.
pub struct Site {
    live: Live,
    weights: SlotTable,
    blocks: Blocks,
    policies: Policies,
    headers: HeaderMap,
    client: IpAddr,
}

impl Site {
    /// One with these policies.
    pub fn new(notes: &[Notes]) -> Self {
        let is_pattern = notes.iter().any(|it| **it == *REWRITE);
        let path = if is_pattern { "/api(/|$)(.*)" } else { "/api" };
        let mut text = String::new();
        for (name, weight) in [("main", None), ("canary", Some("5"))] {
            let own = notes.iter().flat_map(|it| it.iter());
            let own = own.map(|(name, value)| (*name, *value));
            let canary = weight.map(|weight| [("canary", "true"), ("canary-weight", weight)]);
            let all = match canary {
                Some(canary) => canary.to_vec(),
                None => own.collect(),
            };
            let notes: String = all
                .iter()
                .map(|(name, value)| format!("    nginx.ingress.kubernetes.io/{name}: {value:?}\n"))
                .collect();
            text.push_str(&format!(
                "---\napiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n\
                 spec: {{ports: [{{port: 80}}]}}\n---\n\
                 apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: {name}\n  \
                 annotations:\n    a: b\n{notes}\
                 spec: {{rules: [{{host: {HOST}, http: {{paths: [{{path: '{path}', \
                 pathType: ImplementationSpecific, backend: {{service: {{name: {name}, \
                 port: {{number: 80}}}}}}}}]}}}}]}}\n"
            ));
        }
        let (objects, problems) = Manifests::from_text("site", &text);
        assert!(problems.is_empty(), "{problems:?}");
        let snapshot = translate(&objects, &ClassSettings::default()).snapshot;
        assert_eq!(snapshot.locations.len(), 1);
        Self::of(snapshot)
    }

    fn of(snapshot: Snapshot) -> Self {
        let plan = plan(&snapshot, 1, &mut SlotAllocator::default());
        let weights = SlotTable::in_memory().expect("memory for the slots");
        apply(&weights, &diff(&SlotPlan::default(), &plan), 1).expect("slots are written");
        let router = Arc::new(Router::build(&snapshot));
        let mut blocks = Blocks::new(fastrand::Rng::with_seed(1));
        blocks.reserve(plan.slots.len());
        let mut site = Site {
            live: Live::new(1, Arc::new(snapshot), router, plan.slots),
            weights,
            blocks,
            policies: Policies::default(),
            headers: HeaderMap::new(),
            client: IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1)),
        };
        site.headers = headers(site.location());
        site
    }

    fn location(&self) -> &Location {
        self.live.snapshot.locations.first().expect("a Location")
    }

    /// A request as hyper hands it over.
    pub fn request(&self) -> request::Parts {
        let path = "/api/orders/4711/items.json?page=2";
        let (mut parts, ()) = Request::get(path).body(()).expect("a request").into_parts();
        parts.headers = self.headers.clone();
        parts
    }

    /// What is done to one request and its answer beside exchanging them. Whether it was let pass.
    pub fn serve(&mut self, parts: &mut request::Parts, answer: &mut response::Parts) -> bool {
        let Some(host) = normalize(HOST) else {
            return false;
        };
        let Found::Location(id) = self.live.router.find(&host, parts.uri.path()) else {
            return false;
        };
        let Some(location) = self.live.snapshot.location(id) else {
            return false;
        };
        let policy = location.policy.as_deref();
        let passed = policy.map(|policy| {
            let pattern = location.pattern.as_ref();
            self.policies
                .request(policy, pattern, self.client, HOST, parts)
        });
        if matches!(passed, Some(None)) {
            return false;
        }
        let slot = self
            .live
            .slot(id)
            .unwrap_or(splitter::routing::SlotId::NONE);
        let weights = self.weights.weights(slot);
        let affinity = location.split.affinity();
        let shown = Shown {
            client: self.client,
            held: affinity.and_then(|affinity| held(affinity, &parts.headers)),
            ..Shown::of(&parts.headers)
        };
        let mut draw = self.blocks.slot(slot, &weights);
        let decision = decide(&location.split, &shown, &weights, &mut draw);
        let aim = location.split.policy.as_ref();
        let aim = aim.map(|policy| Aim::of(policy, decision.variant, &shown));
        std::hint::black_box(aim);
        if let (Some(policy), Some(Some(passed))) = (policy, passed) {
            passed.answer(policy, None, answer);
        }
        true
    }
}

/// An answer of a pod, with the room that is made for the fields of one that is read.
pub fn response() -> response::Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.headers = HeaderMap::with_capacity(12);
    for (name, value) in [
        ("content-type", "application/json"),
        ("cache-control", "no-store"),
        ("server", "pod"),
    ] {
        let name = http::HeaderName::from_static(name);
        parts
            .headers
            .insert(name, http::HeaderValue::from_static(value));
    }
    parts
}

/// What a page's script sends, with the session of the first Variant where there is affinity.
fn headers(location: &Location) -> HeaderMap {
    let session = location.split.affinity().and_then(|affinity| {
        let it = Held { variant: 0, key: 7 };
        Some(format!("{}={}", affinity.cookie.name, value(affinity, it)?))
    });
    let cookie = format!("theme=dark; {}", session.unwrap_or_default());
    let fields = [
        ("accept", "application/json"),
        ("accept-encoding", "gzip, deflate, br"),
        ("cookie", &*cookie),
        ("host", HOST),
        ("origin", "https://shop.b.example"),
        ("user-agent", "Mozilla/5.0 (X11; Linux x86_64)"),
    ];
    let field = |(name, value): (&'static str, &str)| {
        let name = http::HeaderName::from_static(name);
        (name, value.parse().expect("a value"))
    };
    fields.map(field).into_iter().collect()
}
