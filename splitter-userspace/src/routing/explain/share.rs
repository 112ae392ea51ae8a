//! Who answers at a Location: rules, weights, Endpoints.

use serde::Serialize;

use super::{Answer, Query, UNKNOWN, gate};
use crate::model::{
    Affinity, AffinityMode, Backend, BackendFault, BackendKey, EndpointState, Location, ObjectRef,
    STABLE, Snapshot, SplitKey, Test,
};
use crate::routing::{
    self, Chosen, Decision, Draw, Reason, Scheme, Shown, Wanted, ask, decide, held, keyed, resolve,
    rewrite, seen,
};

/// What session affinity makes of the request, before any rule.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SessionStep {
    /// The name of the session cookie.
    pub cookie: String,
    /// How an Endpoint is kept.
    pub mode: AffinityMode,
    /// How many cookies of this name the request has.
    pub sent: usize,
    /// The Variant that the first of them names which this Location gave.
    pub holds: Option<String>,
    /// Canaries for which the session does not count.
    pub legacy: Vec<String>,
}

/// What decides in place of chance.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct KeyStep {
    /// What of the request.
    pub key: SplitKey,
    /// The place of the request's key on the line of the weights, from 0 to 1, where the canaries
    /// come first; none when it has no key.
    pub place: Option<f64>,
}

/// One rule and what it says about the request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RuleStep {
    /// The name of the canary that the rule is for.
    pub canary: String,
    /// What it looks at.
    pub test: Test,
    /// The value that the request has there, bytes that are no text replaced.
    pub seen: Option<String>,
    /// What follows.
    pub answer: RuleAnswer,
}

/// What a rule says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum RuleAnswer {
    /// Its canary answers.
    Canary,
    /// Stable answers.
    Stable,
    /// Nothing: the next rule is asked.
    Next,
    /// An earlier rule has decided.
    NotAsked,
}

/// One Variant of the Split.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VariantShare {
    /// Its name.
    pub name: String,
    /// The Ingress that asks for it.
    pub ingress: ObjectRef,
    /// Who answers for it.
    pub backend: Option<BackendKey>,
    /// Why that Backend has no Endpoint by its own fault, if so.
    pub fault: Option<BackendFault>,
    /// Endpoints that take requests.
    pub ready: usize,
    /// Endpoints that are shutting down and still serve.
    pub draining: usize,
    /// Its weight.
    pub weight: u32,
    /// Its part of the requests that no rule decides, 0 to 1.
    pub share: f64,
    /// The Variant that answers when this one is chosen: itself, stable in its place, or none (503).
    pub answered_by: Option<String>,
}

/// Who answers this request.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Answered {
    /// This Variant, always.
    By {
        /// The Variant's name.
        variant: String,
        /// What decided for it.
        reason: Reason,
    },
    /// A Variant was chosen, nobody has an Endpoint for it, and the default backend stands in.
    ByFallback {
        /// The name of the Variant that was chosen.
        chosen: String,
        /// Who answers.
        backend: BackendKey,
    },
    /// A Variant was chosen and nobody has an Endpoint for it: 503.
    Nobody {
        /// The name of the Variant that was chosen.
        chosen: String,
        /// What decided for it.
        reason: Reason,
    },
    /// No Variant: one of the gates.
    ByGate {
        /// Its name.
        gate: &'static str,
        /// The status.
        status: u16,
    },
    /// Chance, by the shares of the Variants.
    ByWeight,
}

pub(super) fn answer(snapshot: &Snapshot, location: &Location, query: &Query<'_>) -> Answer {
    let wanted = Wanted {
        scheme: Scheme::Http { secured: false },
        method: query.method.as_str(),
        http_host: query.host,
        outer_host: None,
        path: query.path,
        query: query.query,
        pattern: location.pattern.as_ref(),
    };
    let policy = location.policy.as_deref();
    let gates = policy.map_or_else(Vec::new, |it| gate::steps(it, query, &wanted));
    let closed = gates
        .iter()
        .find_map(|step| Some((step.name, step.answers?)));
    let split = &location.split;
    let shown = &Shown {
        query: query.query.unwrap_or_default(),
        client: query.client.unwrap_or(UNKNOWN),
        ..Shown::of(query.headers)
    };
    let session = split
        .affinity()
        .map(|affinity| session(location, affinity, shown));
    let shown = Shown {
        held: split
            .affinity()
            .and_then(|affinity| held(affinity, shown.headers)),
        ..*shown
    };
    let mut draw = Drawn(false);
    let decision = decide(split, &shown, &split.weights(), &mut draw);
    Answer {
        location: location.key.clone(),
        ingress: location.ingress.clone(),
        session,
        rules: rules(location, &shown, decision),
        policy: location.policy.clone(),
        split: split.policy.clone(),
        key: split.key().map(|key| KeyStep {
            key: key.clone(),
            place: keyed::place(key, &shown).map(|place| place as f64 / 2f64.powi(64)),
        }),
        rewritten: policy
            .and_then(|policy| policy.rewrite.as_ref())
            .map(|it| rewrite(it, &wanted).map_or_else(|_| String::new(), |it| it.to_string())),
        variants: variants(snapshot, location),
        gates,
        answered: if let Some((gate, status)) = closed {
            Answered::ByGate { gate, status }
        } else if draw.0 {
            Answered::ByWeight
        } else {
            answered(snapshot, location, decision)
        },
    }
}

/// Remembers whether chance was asked.
struct Drawn(bool);

impl Draw for Drawn {
    fn point(&mut self, _total: u32) -> u32 {
        self.0 = true;
        0
    }
}

fn answered(snapshot: &Snapshot, location: &Location, decision: Decision) -> Answered {
    match resolve(snapshot, location, decision) {
        Ok(Chosen { decision, .. }) => Answered::By {
            variant: name(location, decision.variant),
            reason: decision.reason,
        },
        Err(_) => {
            let chosen = name(location, decision.variant);
            match fallback(snapshot, location) {
                Some(backend) => Answered::ByFallback { chosen, backend },
                None => Answered::Nobody {
                    chosen,
                    reason: decision.reason,
                },
            }
        }
    }
}

/// The default backend, if it has an Endpoint.
fn fallback(snapshot: &Snapshot, location: &Location) -> Option<BackendKey> {
    let key = location.policy.as_ref()?.fallback.as_ref()?;
    let backend = snapshot.backend_by_key(key)?;
    backend.is_available().then(|| key.clone())
}

/// What session affinity makes of the request.
fn session(location: &Location, affinity: &Affinity, shown: &Shown<'_>) -> SessionStep {
    let held = held(affinity, shown.headers);
    let cookies = seen::cookies(shown.headers, &affinity.cookie.name);
    SessionStep {
        cookie: affinity.cookie.name.to_string(),
        mode: affinity.mode,
        sent: cookies.count(),
        holds: held.map(|held| name(location, held.variant)),
        legacy: (0..location.split.variants.len())
            .filter(|variant| !affinity.is_sticky(*variant))
            .map(|variant| name(location, variant))
            .collect(),
    }
}

fn rules(location: &Location, shown: &Shown<'_>, decision: Decision) -> Vec<RuleStep> {
    let split = &location.split;
    let asked = split.variants.len() > 1;
    let by_session = shown.held.is_some() && decision.reason == Reason::Affinity;
    let mut decided = !asked || by_session;
    let step = |rule: &crate::model::Rule| {
        let answer = match ask(&rule.test, shown) {
            _ if decided => RuleAnswer::NotAsked,
            routing::Answer::Canary => RuleAnswer::Canary,
            routing::Answer::Stable => RuleAnswer::Stable,
            routing::Answer::Next => RuleAnswer::Next,
        };
        decided |= matches!(answer, RuleAnswer::Canary | RuleAnswer::Stable);
        RuleStep {
            canary: name(location, usize::from(rule.variant)),
            test: rule.test.clone(),
            seen: seen(&rule.test, shown),
            answer,
        }
    };
    split.rules.iter().map(step).collect()
}

fn seen(test: &Test, shown: &Shown<'_>) -> Option<String> {
    let headers = shown.headers;
    let text = |value: &[u8]| String::from_utf8_lossy(value).into_owned();
    match test {
        Test::Header { name, .. } => seen::header(headers, name).map(|value| text(&value)),
        Test::Cookie { name, .. } => seen::cookie(headers, name).map(text),
        Test::Query { name, .. } => seen::query(shown.query, name).map(|value| text(&value)),
        Test::Source(_) => (shown.client != UNKNOWN).then(|| shown.client.to_string()),
    }
}

fn variants(snapshot: &Snapshot, location: &Location) -> Vec<VariantShare> {
    let total = f64::from(location.split.weights().total());
    let share = |(index, variant): (usize, &crate::model::Variant)| {
        let backend = snapshot.backend(variant.backend).map(AsRef::as_ref);
        let count = |state| backend.map_or(0, |backend: &Backend| count(backend, state));
        let decision = Decision {
            variant: index,
            reason: Reason::Weight,
        };
        let chosen = resolve(snapshot, location, decision);
        VariantShare {
            name: variant.name.to_string(),
            ingress: variant.ingress.clone(),
            backend: backend.map(|backend| backend.key.clone()),
            fault: backend.and_then(|backend| backend.fault),
            ready: count(EndpointState::Ready),
            draining: count(EndpointState::Draining),
            weight: variant.weight,
            share: match total > 0.0 {
                true => f64::from(variant.weight) / total,
                false => f64::from(u8::from(index == STABLE)),
            },
            answered_by: chosen
                .ok()
                .map(|chosen| name(location, chosen.decision.variant)),
        }
    };
    location
        .split
        .variants
        .iter()
        .enumerate()
        .map(share)
        .collect()
}

fn count(backend: &Backend, state: EndpointState) -> usize {
    backend
        .endpoints
        .iter()
        .filter(|endpoint| endpoint.state == state)
        .count()
}

fn name(location: &Location, variant: usize) -> String {
    let variant = location.split.variants.get(variant);
    variant.map_or_else(String::new, |variant| variant.name.to_string())
}
