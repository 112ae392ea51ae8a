//! Why a request is answered by whom: the same decision as the proxy makes, with each step shown.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use http::{HeaderMap, Method};
use serde::Serialize;

use super::{Found, Router, normalize};
use crate::model::{
    HostPattern, LocationKey, ObjectRef, Policy, Snapshot, SplitPolicy, TrafficClass,
};

mod gate;
mod place;
mod share;
#[cfg(test)]
mod tests;

pub use gate::GateStep;
pub use place::{HostCandidate, PathCandidate, Reading};
pub use share::{Answered, KeyStep, RuleAnswer, RuleStep, SessionStep, VariantShare};

/// Stands for a client whose address is not known. Nobody has it.
const UNKNOWN: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);

/// A request to explain.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// Takes no part in routing yet; shown as given.
    pub method: &'a Method,
    /// The Host header as a client would send it.
    pub host: &'a str,
    /// The path, without query.
    pub path: &'a str,
    /// The query, without `?`.
    pub query: Option<&'a str>,
    /// All headers, Cookie among them.
    pub headers: &'a HeaderMap,
    /// The address that it is from, if that is to be told.
    pub client: Option<IpAddr>,
    /// Where the caller is, if that is to be told.
    pub class: Option<TrafficClass>,
}

/// Each step of a request's way to a Variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Explanation {
    /// As given.
    pub method: String,
    /// The host as it is compared; none when it is not a host.
    pub host: Option<String>,
    /// The path as given.
    pub path: String,
    /// Which host rules could apply, the most specific first, up to the one that does.
    pub hosts: Vec<HostCandidate>,
    /// Every Location of that host that matches the path, the best first.
    pub paths: Vec<PathCandidate>,
    /// What comes of it.
    pub outcome: Outcome,
}

/// What comes of a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Outcome {
    /// The Host header is no host: 400.
    InvalidHost,
    /// No rule is for this host: 404.
    NoHost,
    /// The host is known, none of its paths match: 404.
    NoPath,
    /// The path can be read in several ways that lead to different Locations: 400.
    Ambiguous {
        /// The readings that lead elsewhere than the path as it is.
        readings: Vec<Reading>,
    },
    /// A Location answers.
    Location(Box<Answer>),
}

/// How a Location answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// The Location.
    pub location: LocationKey,
    /// The main Ingress that owns it.
    pub ingress: ObjectRef,
    /// What its session affinity makes of the request, if it has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub session: Option<SessionStep>,
    /// What stands before the choice of a Variant, in the order in which it is asked.
    pub gates: Vec<GateStep>,
    /// What holds for its requests whoever answers, if anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Arc<Policy>>,
    /// The path and query that the pods see instead, if any; empty when it cannot be sent (400).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewritten: Option<String>,
    /// Each rule of its Split, in the order in which they are asked.
    pub rules: Vec<RuleStep>,
    /// What decides in place of chance, if something does.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<KeyStep>,
    /// What else its Split has, as it is configured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub split: Option<Arc<SplitPolicy>>,
    /// Each Variant of its Split, with its share of the requests that no rule decides.
    pub variants: Vec<VariantShare>,
    /// Who answers this request.
    pub answered: Answered,
}

impl Explanation {
    /// The host rule that applies, if any.
    pub fn host_rule(&self) -> Option<&HostPattern> {
        let chosen = self.hosts.iter().find(|candidate| candidate.exists);
        chosen.map(|candidate| &candidate.pattern)
    }
}

/// Explains what the proxy would do with a request, by the weights that the objects give. Slow:
/// for people.
///
/// `router` is the one of `snapshot`.
pub fn explain(snapshot: &Snapshot, router: &Router, query: &Query<'_>) -> Explanation {
    let mut explanation = Explanation {
        method: query.method.to_string(),
        host: None,
        path: query.path.to_owned(),
        hosts: Vec::new(),
        paths: Vec::new(),
        outcome: Outcome::InvalidHost,
    };
    let Some(host) = normalize(query.host) else {
        return explanation;
    };
    explanation.hosts = place::hosts(snapshot, &host);
    if let Some(index) = router.find_host(&host) {
        explanation.paths = place::paths(snapshot, index, query.path);
    }
    explanation.outcome = match router.find(&host, query.path) {
        Found::NoHost => Outcome::NoHost,
        Found::NoPath(_) => Outcome::NoPath,
        Found::Ambiguous => {
            let readings = place::readings(snapshot, router, &host, query.path);
            Outcome::Ambiguous { readings }
        }
        Found::Location(id) => match snapshot.location(id) {
            Some(location) => Outcome::Location(Box::new(share::answer(snapshot, location, query))),
            None => Outcome::NoPath,
        },
    };
    explanation.host = Some(host.into_owned());
    explanation
}
