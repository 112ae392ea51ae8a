use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue, Method};
use serde::{Serialize, Serializer};

use super::{HashPart, Template, UpstreamTls};
use crate::model::BackendKey;

/// Who may call, by what another service says of the request (`auth-url` and its family).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct External {
    /// Who is asked; a host that is no Service of the cluster has no namespace.
    pub service: BackendKey,
    /// The Host that it is asked for.
    pub host: Arc<str>,
    /// TLS towards it; none is cleartext.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tls: Option<UpstreamTls>,
    /// Path and query.
    pub target: Template,
    /// The method that it is asked with.
    #[serde(serialize_with = "method")]
    pub method: Method,
    /// For a whole answer; without one nobody is let in.
    pub timeout: Duration,
    /// What is sent beside the client's own fields, and in their place.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "names_of")]
    pub sent: Arc<[(HeaderName, HeaderValue)]>,
    /// X-Auth-Request-Redirect; none: path and query of the request.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub redirect: Option<Template>,
    /// Fields of its answer that pods get; the client's own are removed.
    #[serde(skip_serializing_if = "<[_]>::is_empty", serialize_with = "names")]
    pub told: Arc<[HeaderName]>,
    /// Where clients are sent that are to sign in.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sign_in: Option<Template>,
    /// Whether its cookies are on answers of any status, and not on good ones and redirects only.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub always_cookies: bool,
    /// Which answers are remembered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cache: Option<AuthCache>,
}

/// Which answers of a service are remembered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AuthCache {
    /// Requests that are alike in all of these have the same answer.
    pub key: Arc<[HashPart]>,
    /// How long, by status.
    pub times: Arc<[(u16, Duration)]>,
}

impl AuthCache {
    /// How long an answer of this status is remembered, if it is.
    pub fn time(&self, status: u16) -> Option<Duration> {
        let known = self.times.iter().find(|(it, _)| *it == status);
        known.map(|(_, time)| *time)
    }
}

fn method<S: Serializer>(method: &Method, s: S) -> Result<S::Ok, S::Error> {
    s.serialize_str(method.as_str())
}

fn names<S: Serializer>(names: &[HeaderName], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(names.iter().map(HeaderName::as_str))
}

/// What is sent may be a secret between us and the service.
fn names_of<S: Serializer>(fields: &[(HeaderName, HeaderValue)], s: S) -> Result<S::Ok, S::Error> {
    s.collect_seq(fields.iter().map(|(name, _)| name.as_str()))
}
