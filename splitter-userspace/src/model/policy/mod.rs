//! What holds for the requests of a Location beside its Split.
//!
//! One file for each kind of policy. Each is parsed once, in `translate`, and is read as it stands
//! by the proxy and by `explain`.

mod addresses;
mod affinity;
mod answer;
mod balance;
mod client_cert;
mod cors;
mod error_pages;
mod exchange;
mod external;
mod guards;
mod identities;
mod jwt;
mod limits;
mod redirect;
mod rewrite;
mod split;
mod template;
mod traffic_class;
mod upstream_tls;

use std::sync::Arc;

use serde::Serialize;

use super::BackendKey;

pub use addresses::{AddressSet, Addresses, NotARange, subscriber};
pub use affinity::{Affinity, AffinityMode, SameSite, SessionCookie, Side};
pub use answer::{AnswerEdits, CustomHeaders, Pace, Replace, Sought};
pub use balance::{Balance, HashBy, HashPart};
pub use client_cert::{ClientCert, ClientVerify};
pub use cors::{Cors, Origin, Origins};
pub use error_pages::ErrorPages;
pub use exchange::{Exchange, Failures, Protocol, Retry};
pub use external::{AuthCache, External};
pub use guards::{Basic, Guarded, UserLayout};
pub use identities::{Identities, NotIdentities};
pub use jwt::{
    Algorithm, Algorithms, ClaimHeader, ClaimPath, ClaimTest, Jwt, KeySource, KeyUrl, TokenPlace,
};
pub use limits::{Rate, RateLimits};
pub use redirect::{HttpsRedirect, Redirect};
pub use rewrite::Rewrite;
pub use split::{Mirror, SplitKey, SplitPolicy};
pub use template::{Piece, Template, TemplateError, Variable};
pub use traffic_class::TrafficClass;
pub use upstream_tls::UpstreamTls;

/// The policies of one Location, the same whichever Variant answers. A Location without any has no
/// `Policy` at all, so that it pays for none.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Policy {
    /// Answers every request by itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Redirect>,
    /// Answers requests that came by cleartext HTTP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub https: Option<HttpsRedirect>,
    /// The path that the pods see, instead of the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rewrite: Option<Rewrite>,
    /// Who answers when no pod can, and makes error pages (`default-backend`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fallback: Option<BackendKey>,
    /// Answers that are replaced by a page of `fallback`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_pages: Option<ErrorPages>,
    /// The Host that the pods see (`upstream-vhost`), instead of the client's.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_host: Option<Arc<str>>,
    /// Who may call, by where they are; none is everybody.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic_class: Option<TrafficClass>,
    /// Who may call, by address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub addresses: Option<Addresses>,
    /// Who may call, by certificate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub client_cert: Option<ClientCert>,
    /// Who may call, by what a client knows or was given.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub guards: Option<Arc<Guarded>>,
    /// Which pages of other origins may read the answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cors: Option<Cors>,
    /// How much one client may ask for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub limits: Option<RateLimits>,
    /// How the pods are spoken to.
    #[serde(skip_serializing_if = "Exchange::is_default")]
    pub exchange: Exchange,
    /// TLS towards the pods; none is cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub upstream_tls: Option<UpstreamTls>,
    /// The most bytes that a request's body may have (`proxy-body-size`); 0: as many as it likes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_max: Option<u64>,
    /// What is changed in the pods' answers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerEdits>,
    /// Fields of every answer.
    #[serde(skip_serializing_if = "CustomHeaders::is_empty")]
    pub headers: CustomHeaders,
    /// How fast one answer may go.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pace: Option<Pace>,
    /// Its requests are not in the access log (`enable-access-log: "false"`).
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unlogged: bool,
}

impl Policy {
    /// The same where another service is asked as well.
    pub fn asking(mut self, external: External, any: bool) -> Arc<Policy> {
        let guards = self.guards.take().map(|it| Guarded::clone(&it));
        let mut guards = guards.unwrap_or_default();
        guards.external = Some(external);
        guards.any = any;
        self.guards = Some(Arc::new(guards));
        Arc::new(self)
    }

    /// The same for a path that must be answered whoever asks. Addresses and certificates count.
    pub fn unguarded(self) -> Option<Arc<Policy>> {
        let guards = None;
        Policy { guards, ..self }.into_shared()
    }

    /// The policy that can only be kept where requests are seen and that keeps somebody out, if there
    /// is one: bytes that are passed on untouched would get past it.
    pub fn request_guard(&self) -> Option<&'static str> {
        let guards = self.guards.as_ref().map(|guards| match guards.basic {
            Some(_) => "auth-type",
            None => "a token, auth-url or satisfy",
        });
        let cert = self.client_cert.as_ref().map(|_| "auth-tls-secret");
        cert.or(guards)
    }

    /// Behind a pointer; none when it says nothing.
    pub fn into_shared(self) -> Option<Arc<Policy>> {
        (self != Policy::default()).then(|| Arc::new(self))
    }

    /// Whether pods may be sent other fields or another target than they would be without it. Where
    /// not, requests go on without being taken apart.
    pub fn changes_requests(&self) -> bool {
        let Policy {
            rewrite,
            error_pages,
            upstream_host,
            client_cert,
            guards,
            exchange,
            // These answer by themselves, or let the request pass as it is.
            redirect: _,
            https: _,
            fallback: _,
            traffic_class: _,
            addresses: _,
            cors: _,
            limits: _,
            upstream_tls: _,
            body_max: _,
            answer: _,
            headers: _,
            pace: _,
            unlogged: _,
        } = self;
        rewrite.is_some()
            || error_pages.is_some()
            || upstream_host.is_some()
            || client_cert.is_some()
            || guards.is_some()
            || exchange.protocol != Protocol::Http11
    }
}
