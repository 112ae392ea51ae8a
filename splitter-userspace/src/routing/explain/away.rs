//! Where policies send a request, in place of a pod.

use serde::Serialize;

use crate::model::Policy;
use crate::routing::{Asked, Scheme};

/// A redirect.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Away {
    /// Its status.
    pub status: u16,
    /// Its Location.
    pub target: String,
    /// Who is sent there.
    pub who: Who,
}

/// Whom a redirect is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Who {
    /// Everybody.
    All,
    /// Clients that came by http.
    Http,
    /// Clients that came by http, once https is known to be answered.
    HttpOnceSecured,
}

/// The redirects of a policy in their order; what comes after one for all is not reached.
pub(super) fn away(policy: &Policy, asked: &Asked<'_>) -> Vec<Away> {
    let mut found = Vec::new();
    if let Some(redirect) = &policy.redirect {
        found.push(Away {
            status: redirect.status,
            target: asked.redirected(redirect),
            who: Who::All,
        });
        return found;
    }
    let by_http = Asked {
        scheme: Scheme::Http { secured: true },
        ..*asked
    };
    if let Some(https) = policy.https
        && let Some(target) = by_http.by_https(https)
    {
        let who = match https.forced {
            true => Who::Http,
            false => Who::HttpOnceSecured,
        };
        let status = 308;
        found.push(Away {
            status,
            target,
            who,
        });
    }
    found
}
