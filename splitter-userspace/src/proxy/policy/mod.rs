//! The policies of a Location at work, in the three places where they stand on a request's way:
//! before a Variant is chosen ([`enter`]), on what the pod is to see ([`toward`]), and on the answer
//! (the pod's: [`answered`]; everyone: [`dress`]). A Location without a policy passes by.

pub mod affinity;
mod answer;
mod auth;
mod body;
mod client_cert;
mod cors;
mod limits;
mod pace;
mod redirect;
mod reply;
mod rewrite;

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use http::header::{CONNECTION, HOST};
use http::{HeaderMap, HeaderValue, StatusCode, Version, request, response};

pub use auth::{Cookies, Gatekeeper, Guest, Passed, authorise, hide_token, to_sign_in};
pub use body::admit;
pub use client_cert::{Certified, Verdict, certify, is_own_field, same_host};
pub use pace::Pacer;
pub use reply::{Refusal, Reply};
pub use rewrite::Rewritten;

use super::fault::Fault;
use super::grpc::is_grpc;
use super::journal::Journal;
use super::limiter::{Hold, Limiter, Nanos};
use super::worker::Worker;
use crate::model::{Policy, Protocol};
use crate::routing::{Aim, Held, Scheme, Wanted};

/// What the gates look at.
pub struct Asked<'a> {
    /// The request as it came.
    pub parts: &'a request::Parts,
    /// The address that it is from.
    pub client: IpAddr,
    /// Whether the caller is known to be inside; asked only where a Location is for one side.
    pub inside: bool,
    /// How much clients have asked for.
    pub limiter: &'a Arc<Limiter>,
    /// When it came.
    pub now: Nanos,
    /// What it asks for.
    pub wanted: Wanted<'a>,
}

/// What is kept of a request for the policies until it ends.
#[derive(Default)]
pub struct Passage {
    /// What Access-Control-Allow-Origin is to say, if it is to be there.
    allowed: Option<HeaderValue>,
    /// Counts it among the requests that its client has in hand.
    pub held: Option<Hold>,
    /// Cookies of the service that was asked who may call.
    pub cookies: Option<Cookies>,
    /// Where a client is sent whom the pod does not know, if that is not the pod's to say.
    pub sign_in: Option<HeaderValue>,
    /// How the client came.
    scheme: Option<Scheme>,
    /// Whether the client speaks gRPC with pods that do.
    pub grpc: bool,
}

/// Asks the gates of a Location in their order; the first that answers ends the request, which then
/// counts for no Variant. In ingress-nginx's order: preflights and redirects come before limits, and
/// limits before who may call. What is to be kept of the request goes into `passage`.
///
/// # Errors
/// The answer, if a gate gives one.
pub fn enter(policy: &Policy, asked: &Asked<'_>, passage: &mut Passage) -> Result<(), Refusal> {
    passage.scheme = Some(asked.wanted.scheme);
    let grpc = policy.exchange.protocol == Protocol::Grpc;
    passage.grpc = grpc && is_grpc(&asked.parts.headers);
    if let Some(cors) = &policy.cors {
        passage.allowed = cors::allowed(cors, asked.parts);
        if let Some(reply) = cors::preflight(asked.parts, passage.allowed.as_ref()) {
            return Err(reply.into());
        }
    }
    if let Some(redirect) = &policy.redirect {
        return Err(redirect::reply(redirect, &asked.wanted).into());
    }
    if let Some(https) = policy.https
        && let Some(reply) = redirect::to_https(https, &asked.wanted)
    {
        return Err(reply.into());
    }
    if let Some(limits) = &policy.limits {
        passage.held = limits::enter(limits, asked.limiter, asked.client, asked.now)?;
    }
    let class = policy.traffic_class;
    if class.is_some_and(|it| !it.admits(asked.inside)) {
        return Err(Fault::ClassDenied.into());
    }
    let any = policy.guards.as_ref().is_some_and(|it| it.any);
    let addresses = policy.addresses.as_ref().filter(|_| !any);
    if addresses.is_some_and(|it| !it.admit(asked.client)) {
        return Err(Fault::AddressDenied.into());
    }
    Ok(())
}

/// Who makes a connection that is passed on untouched.
#[derive(Clone, Copy)]
pub struct Caller {
    /// Whom it speaks for.
    pub address: IpAddr,
    /// The other end of the socket.
    pub peer: IpAddr,
}

/// Asks the gates that a connection can be asked for, of which no request is seen. A Location that
/// lets in by requests lets none in.
///
/// # Errors
/// When it is not let in.
pub fn enter_untouched(
    worker: &Worker,
    policy: Option<&Policy>,
    caller: Caller,
) -> Result<Option<Hold>, Refusal> {
    let Some(policy) = policy else {
        return Ok(None);
    };
    if policy.request_guard().is_some() {
        return Err(Fault::GuardBroken.into());
    }
    let limiter = worker.limiter();
    let limits = policy.limits.as_ref();
    let limits =
        limits.map(|it| limits::enter(it, limiter, caller.address, limiter.at(Instant::now())));
    let held = limits.transpose()?.flatten();
    let inside = || worker.is_inside(caller.peer, caller.address);
    if policy.traffic_class.is_some_and(|it| !it.admits(inside())) {
        return Err(Fault::ClassDenied.into());
    }
    let addresses = policy.addresses.as_ref();
    if addresses.is_some_and(|it| !it.admit(caller.address)) {
        return Err(Fault::AddressDenied.into());
    }
    Ok(held)
}

/// Sets what the Location has to say on every answer, the proxy's own included.
pub fn dress(policy: &Policy, passage: &Passage, status: StatusCode, headers: &mut HeaderMap) {
    if let Some(cookies) = &passage.cookies {
        cookies.add(status, headers);
    }
    if let Some(cors) = &policy.cors {
        cors::set(cors, passage.allowed.as_ref(), headers);
    }
    answer::set(&policy.headers, headers);
}

/// Makes the request what the pods of the Location are to see.
pub fn toward(policy: &Policy, parts: &mut request::Parts) {
    if let Some(host) = &policy.upstream_host
        && let Ok(host) = HeaderValue::from_str(host)
    {
        parts.headers.insert(HOST, host);
    }
    if policy.exchange.protocol == Protocol::Http10 {
        parts.version = Version::HTTP_10;
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
}

/// Makes the pod's answer what the client is to see.
pub fn answered(journal: &Journal, parts: &mut response::Parts) {
    let Some(location) = journal.location() else {
        return;
    };
    if let Some(edits) = location.policy.as_ref().and_then(|it| it.answer.as_ref()) {
        let scheme = journal.passage.scheme.unwrap_or(Scheme::Unknown);
        answer::edit(edits, &journal.wanted(scheme), &mut parts.headers);
    }
    if let (Some(policy), Some(decision)) = (&location.split.policy, journal.decision)
        && let Some(name) = &policy.response_header
        && let Some(variant) = location.split.variants.get(decision.variant)
        && let Ok(value) = HeaderValue::from_str(&variant.name)
    {
        parts.headers.insert(name, value);
    }
    if let (Some(affinity), Aim::Session(session)) = (location.split.affinity(), journal.aim)
        && let (Some(key), Some(decision)) = (session.issue, journal.decision)
    {
        let variant = decision.variant;
        affinity::give(affinity, Held { variant, key }, journal.visit, parts);
    }
}
