//! The policies of a Location, and what each says of a request.

use serde::Serialize;

use super::Query;
use crate::model::{Addresses, Policy};

/// One policy and what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PolicyStep {
    /// What it is called, by its main annotation.
    pub name: &'static str,
    /// What it says, for people.
    pub says: String,
    /// The status that it answers this request with, if it does.
    pub answers: Option<u16>,
}

/// The policies in the order in which the proxy asks them; those after one that answers are shown,
/// too.
pub(super) fn steps(policy: &Policy, query: &Query<'_>) -> Vec<PolicyStep> {
    let mut steps = Vec::new();
    if let Some(redirect) = &policy.redirect {
        steps.push(PolicyStep {
            name: "redirect",
            says: format!("sends every client to {}", redirect.target),
            answers: Some(redirect.status),
        });
    }
    if let Some(lists) = &policy.addresses {
        steps.push(addresses(lists, query));
    }
    if let Some(host) = &policy.upstream_host {
        steps.push(step("upstream-vhost", format!("pods see the Host {host}")));
    }
    steps
}

/// One that lets the request pass.
fn step(name: &'static str, says: String) -> PolicyStep {
    PolicyStep {
        name,
        says,
        answers: None,
    }
}

fn addresses(lists: &Addresses, query: &Query<'_>) -> PolicyStep {
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
    PolicyStep {
        name: "source-range",
        says: says.join("; "),
        answers: admitted.and_then(|(_, admitted)| (!admitted).then_some(403)),
    }
}
