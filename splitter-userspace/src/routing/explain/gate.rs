//! The gates of a Location: policies that may answer a request by themselves.

use serde::Serialize;

use super::Query;
use crate::model::{Addresses, HttpsRedirect, Policy, RateLimits, TrafficClass};
use crate::routing::{Scheme, Wanted};

/// One gate and what it says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct GateStep {
    /// What it is called, by its main annotation.
    pub name: &'static str,
    /// What it says, for people.
    pub says: String,
    /// The status that it answers this request with, if it does.
    pub answers: Option<u16>,
}

/// The gates in the order in which the proxy asks them; those after one that answers are shown, too.
pub(super) fn steps(policy: &Policy, query: &Query<'_>, wanted: &Wanted<'_>) -> Vec<GateStep> {
    let mut steps = Vec::new();
    if let Some(cors) = &policy.cors {
        let allowed = cors.origins.allow(query.headers.get(http::header::ORIGIN));
        let preflight = *query.method == http::Method::OPTIONS && allowed.is_some();
        steps.push(GateStep {
            name: "enable-cors",
            says: match allowed {
                Some(_) => "the origin is allowed".to_owned(),
                None => "the origin is not allowed; the pod's own answer counts".to_owned(),
            },
            answers: preflight.then_some(204),
        });
    }
    if let Some(redirect) = &policy.redirect {
        steps.push(GateStep {
            name: "redirect",
            says: format!("sends every client to {}", wanted.redirected(redirect)),
            answers: Some(redirect.status),
        });
    }
    if let Some(redirect) = policy.https {
        steps.extend(https(redirect, wanted));
    }
    if let Some(limits) = &policy.limits {
        steps.push(self::limits(limits, query));
    }
    if let Some(class) = policy.traffic_class {
        steps.push(traffic_class(class, query.class));
    }
    if let Some(lists) = &policy.addresses {
        let mut step = addresses(lists, query);
        if policy.guards.as_ref().is_some_and(|it| it.any) {
            // Another guard may be enough.
            step.answers = None;
        }
        steps.push(step);
    }
    steps
}

fn limits(limits: &RateLimits, query: &Query<'_>) -> GateStep {
    let exempt = query.client.is_some_and(|it| limits.exempt.contains(it));
    let rates = [(limits.per_second, "second"), (limits.per_minute, "minute")];
    let rates = rates.into_iter().filter_map(|(rate, period)| {
        let rate = rate?;
        Some(format!(
            "{} a {period} and {} more at once",
            rate.limit, rate.burst
        ))
    });
    let open = limits
        .connections
        .map(|most| format!("{most} in hand at once"));
    let says: Vec<String> = rates.chain(open).collect();
    let says = match exempt {
        true => "the client is exempt".to_owned(),
        false => format!("each client has {}", says.join(", ")),
    };
    GateStep {
        name: "limits",
        says,
        answers: None,
    }
}

/// It depends on how the client came, which is not told.
fn https(redirect: HttpsRedirect, wanted: &Wanted<'_>) -> Option<GateStep> {
    let by_http = Wanted {
        scheme: Scheme::Http { secured: true },
        ..*wanted
    };
    let target = by_http.by_https(redirect)?;
    let only = match redirect.forced {
        true => "",
        false => ", where https is served or a trusted balancer says how they came",
    };
    Some(GateStep {
        name: "https-redirect",
        says: format!("sends clients that came by http to {target} with 308{only}"),
        answers: None,
    })
}

fn traffic_class(wanted: TrafficClass, given: Option<TrafficClass>) -> GateStep {
    let who = match wanted {
        TrafficClass::NorthSouth => "callers from outside only",
        TrafficClass::EastWest => "pods and the node itself only",
    };
    let (verdict, answers) = match given {
        None => (
            "it is not given where the caller is (--class)".to_owned(),
            None,
        ),
        Some(given) if given == wanted => (format!("{} may call", given.name()), None),
        Some(given) => (format!("{} may not call", given.name()), Some(403)),
    };
    GateStep {
        name: "traffic-class",
        says: format!("lets in {who}; {verdict}"),
        answers,
    }
}

fn addresses(lists: &Addresses, query: &Query<'_>) -> GateStep {
    let mut says = Vec::new();
    if let Some(deny) = &lists.deny {
        says.push(format!("keeps out {deny}"));
    }
    if let Some(allow) = &lists.allow {
        says.push(format!("lets in {allow} only"));
    }
    let admitted = query.client.map(|client| (client, lists.admit(client)));
    says.push(match admitted {
        Some((client, true)) => format!("{client} may call"),
        Some((client, false)) => format!("{client} may not call"),
        None => "no client address is given (--client)".to_owned(),
    });
    GateStep {
        name: "source-range",
        says: says.join("; "),
        answers: admitted.and_then(|(_, admitted)| (!admitted).then_some(403)),
    }
}
