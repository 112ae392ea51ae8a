//! Parts of the request path by themselves, for fuzzing and benches. No interface: they change as
//! they like.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, request, response};

use super::limiter::Limiter;
use super::policy::affinity::{self, Visit};
use super::policy::{self, Asked, Passage, Refusal, Rewritten};
use super::{proxy_header, real_ip};
use crate::model::{AddressSet, Affinity, PathPattern, Policy};
use crate::routing::{Held, Scheme, Wanted};
use crate::telemetry::{ControllerLabels, LIMIT_EVICTIONS, Registry};

/// What the beginning of a connection says as a PROXY header: its length, with the client and what
/// it connected to where it names them; none while it needs more bytes, an error when it is none.
pub type ProxyHeader = Result<proxy_header::Parsed, NoHeader>;

/// What came is no PROXY header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NoHeader;

/// Reads a PROXY header.
pub fn proxy_header(data: &[u8]) -> ProxyHeader {
    proxy_header::parsed(data).map_err(|_| NoHeader)
}

/// The client's address as the proxies in front tell it.
pub fn client(headers: &HeaderMap, peer: IpAddr, trusted: &AddressSet) -> IpAddr {
    real_ip::client(headers, peer, trusted)
}

/// The policies of Locations at work.
pub struct Policies(Arc<Limiter>);

impl Default for Policies {
    /// With a table of limits of their own.
    fn default() -> Self {
        let registry = Registry::new(&ControllerLabels::default());
        Policies(Limiter::new(registry.counter(&LIMIT_EVICTIONS, &[])))
    }
}

impl Policies {
    /// What a policy does before a Variant is chosen, and to what the pod sees. None when it answers
    /// by itself.
    pub fn request(
        &self,
        policy: &Policy,
        pattern: Option<&PathPattern>,
        client: IpAddr,
        host: &str,
        parts: &mut request::Parts,
    ) -> Option<Passed> {
        let wanted = Wanted {
            method: parts.method.as_str(),
            scheme: Scheme::Https,
            http_host: host,
            outer_host: None,
            path: parts.uri.path(),
            query: parts.uri.query(),
            pattern,
        };
        let asked = Asked {
            parts,
            client,
            // Nobody is known to be.
            inside: false,
            limiter: &self.0,
            now: self.0.at(Instant::now()),
            wanted,
        };
        let mut passage = Passage::default();
        let entered: Result<(), Refusal> = policy::enter(policy, &asked, &mut passage);
        entered.ok()?;
        let rewrite = policy.rewrite.as_ref();
        let rewritten = rewrite.map(|it| Rewritten::of(it, &wanted));
        if let Some(rewritten) = rewritten.transpose().ok()? {
            rewritten.apply(parts);
        }
        policy::toward(policy, parts);
        Some(Passed(passage))
    }
}

/// A request that its Location's policy let pass.
pub struct Passed(Passage);

impl Passed {
    /// What the policy does to the answer, and a session that begins with it.
    pub fn answer(
        self,
        policy: &Policy,
        session: Option<(&Affinity, Held)>,
        parts: &mut response::Parts,
    ) {
        policy::dress(policy, &self.0, parts.status, &mut parts.headers);
        if let Some((affinity, held)) = session {
            affinity::give(affinity, held, Visit::default(), parts);
        }
    }
}
