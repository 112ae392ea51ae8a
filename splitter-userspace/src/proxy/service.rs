//! One request: find its Location, decide, pick, forward, answer.

use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, HeaderValue, SERVER, TE, UPGRADE};
use http::{HeaderMap, Request, Response, StatusCode, Version, request, response};
use hyper::body::{Body, Incoming};

use super::body::{AnswerBody, RequestBody};
use super::client::{Client, Protocol, text_value};
use super::codec::{Added, BodyLength, Head, Outgoing};
use super::fallback::{self, Kept};
use super::fault::Fault;
use super::forward::{Exchanged, forward};
use super::grpc;
use super::headers::{self, Forwarded, Survey};
use super::http2::{self, Hold};
use super::journal::Journal;
use super::mirror;
use super::own::{NAME, close_if_draining, own_answer, policy_answer, set_hsts};
use super::policy::affinity::Visit;
use super::policy::{self, Asked, Certified, Guest, Passed, Refusal, Rewritten};
use super::target::{self, origin_form, wanted};
use super::terms::Terms;
use super::upstream::Upstream;
use super::worker::{Place, Worker};
use crate::model::{self, Backend, Policy};
use crate::routing::Aim;

/// Answers `request`. An error ends the connection without an answer: there is nobody to read it.
pub async fn serve(
    worker: Rc<Worker>,
    client: Rc<Client>,
    request: Request<Incoming>,
) -> io::Result<Response<AnswerBody>> {
    let (mut parts, body) = request.into_parts();
    let request_id = worker.request_id(&client, &parts.headers);
    let current = worker.current();
    let mut journal = Journal::begin(&worker, &client, &current, &parts, request_id.clone());
    let mut body = RequestBody::new(body, &client, worker.timeouts().read);
    journal.upload = body.upload();
    let mut entered = match enter(&worker, &client, &mut parts, &mut journal) {
        Ok(entered) => entered,
        Err(refusal) => return refuse(&worker, refusal, journal),
    };
    if let Some(policy) = entered.policy()
        && let Some(guarded) = &policy.guards
    {
        let host = entered.host.to_str().unwrap_or_default();
        let listens = worker.listens_for_https();
        let guest = Guest {
            worker: &worker,
            client: &client,
            parts: &parts,
            journal: &journal,
            wanted: wanted(&client, &entered.place, &parts, host, listens),
            request_id: &request_id,
        };
        let passed = match Box::pin(policy::authorise(guest, policy, guarded)).await {
            Ok(passed) => passed,
            Err(refusal) => return refuse(&worker, refusal, journal),
        };
        passed.cleanse(guarded, &mut parts, &mut journal.passage);
        entered.passed = Some(passed);
    }
    let prepared = match prepare(
        &worker,
        &client,
        entered,
        &mut parts,
        &mut body,
        &mut journal,
        &request_id,
    ) {
        Ok(prepared) => prepared,
        Err(refusal) => return refuse(&worker, refusal, journal),
    };
    let Prepared { terms, backend, .. } = &prepared;
    let outgoing = Outgoing {
        parts: &parts,
        added: prepared.as_it_came.then(|| Added {
            host: &prepared.host,
            request_id: &request_id,
            lines: &client.forwarded_lines,
            trailers: prepared.trailers,
        }),
        length: prepared.length,
    };
    let forwarded = forward(&worker, backend, &outgoing, body, terms, &mut journal).await;
    if forwarded.is_err() {
        journal.observe_speed();
    }
    let signs_in = journal.passage.sign_in.take();
    if let (Ok(exchanged), Some(page)) = (&forwarded, signs_in)
        && exchanged.status() == StatusCode::UNAUTHORIZED
    {
        if let Ok(exchanged) = forwarded {
            fallback::discard(&worker, exchanged);
        }
        return policy_answer(&worker, policy::to_sign_in(page), journal);
    }
    let kept = prepared.kept.filter(|kept| match &forwarded {
        Ok(exchanged) => kept.replaces(exchanged.status()),
        Err(fault) => *fault != Fault::ClientGone && kept.replaces_own(fault.status()),
    });
    match (forwarded, kept) {
        // Boxed, so that other requests do not carry its state.
        (forwarded, Some(kept)) => {
            Box::pin(instead(worker, client, forwarded, kept, journal)).await
        }
        (Ok(exchanged), None) => answer(&worker, &client, exchanged, prepared.upgrade, journal),
        (Err(fault), None) => own_answer(&worker, fault, journal),
    }
}

/// Answers in place of a pod.
fn refuse(
    worker: &Rc<Worker>,
    refusal: Refusal,
    journal: Box<Journal>,
) -> io::Result<Response<AnswerBody>> {
    match refusal {
        Refusal::Fault(fault) => own_answer(worker, fault, journal),
        Refusal::Reply(reply) => policy_answer(worker, *reply, journal),
    }
}

/// Answers with an error page in place of a pod's answer or the proxy's own; with the status alone
/// if there is no page.
async fn instead(
    worker: Rc<Worker>,
    client: Rc<Client>,
    forwarded: Result<Exchanged, Fault>,
    kept: Box<Kept>,
    mut journal: Box<Journal>,
) -> io::Result<Response<AnswerBody>> {
    let (status, fault) = match forwarded {
        Ok(exchanged) => {
            let status = exchanged.status();
            fallback::discard(&worker, exchanged);
            (status, None)
        }
        Err(fault) => (fault.status(), Some(fault)),
    };
    match (kept.page(&worker, status, &mut journal).await, fault) {
        (Some(page), _) => answer(&worker, &client, page, None, journal),
        (None, Some(fault)) => own_answer(&worker, fault, journal),
        (None, None) => policy_answer(&worker, fallback::bare(status), journal),
    }
}

/// Another protocol on the same connection.
struct Upgrade {
    protocol: HeaderValue,
    /// For which the connection is then kept without a byte either way.
    idle: Duration,
}

/// What is known of a request before it is sent.
struct Prepared {
    /// What the client asks to change to.
    upgrade: Option<Upgrade>,
    /// Who answers.
    backend: Arc<Backend>,
    /// How it is asked.
    terms: Terms,
    /// The host as the client wrote it.
    host: HeaderValue,
    /// Whether the request is as the client sent it, and what the backend is to see of it is chosen
    /// while it is written. That is so unless something asks for more than the usual changes.
    as_it_came: bool,
    /// Whether the client takes trailers.
    trailers: bool,
    /// How the body ends.
    length: BodyLength,
    /// What an error page needs, where the Location has any.
    kept: Option<Box<Kept>>,
}

/// A request that has passed everything that goes by what it asks for, by address and by certificate.
struct Entered {
    place: Place,
    /// The host as the client wrote it.
    host: HeaderValue,
    survey: Survey,
    certified: Option<Certified>,
    passed: Option<Passed>,
}

impl Entered {
    fn policy(&self) -> Option<&model::Policy> {
        self.place.location()?.policy.as_deref()
    }
}

/// Checks the request, finds its Location, and asks the gates that need nobody else.
fn enter(
    worker: &Rc<Worker>,
    client: &Rc<Client>,
    parts: &mut request::Parts,
    journal: &mut Journal,
) -> Result<Entered, Refusal> {
    if worker.is_busy() {
        return Err(Fault::Busy.into());
    }
    let host = target::authority(parts)?;
    let host_text = host.to_str().map_err(|_| Fault::BadHost)?;
    journal.set_host(&host);
    let survey = Survey::of(&parts.headers);
    if survey.misleading {
        headers::strip_misleading(&mut parts.headers);
    }
    if parts.version == Version::HTTP_2 {
        headers::join_cookie(&mut parts.headers);
    }
    let place = worker.find(host_text, parts.uri.path(), journal)?;
    let policy = place.location().and_then(|it| it.policy.as_deref());
    if let Some(policy) = policy {
        if let Some(guarded) = &policy.guards {
            policy::hide_token(guarded, parts, journal);
        }
        let listens = worker.listens_for_https();
        let wanted = wanted(client, &place, parts, host_text, listens);
        let asked = Asked {
            parts,
            client: journal.caller(),
            inside: policy.traffic_class.is_some()
                && worker.is_inside(client.origin.peer.ip(), journal.caller()),
            limiter: worker.limiter(),
            now: worker.limiter().at(journal.began()),
            wanted,
        };
        policy::enter(policy, &asked, &mut journal.passage)?;
    }
    let certified = match policy.and_then(|it| it.client_cert.as_ref()) {
        Some(policy) => Some(policy::certify(worker, client, policy, host_text)?),
        None => None,
    };
    Ok(Entered {
        host,
        survey,
        certified,
        passed: None,
        place,
    })
}

/// Finds who answers the request, and makes it what the backend is to see.
fn prepare(
    worker: &Rc<Worker>,
    client: &Rc<Client>,
    entered: Entered,
    parts: &mut request::Parts,
    body: &mut RequestBody,
    journal: &mut Journal,
    request_id: &HeaderValue,
) -> Result<Prepared, Refusal> {
    let Entered {
        place,
        host,
        survey,
        certified,
        passed,
    } = entered;
    let host_text = host.to_str().map_err(|_| Fault::BadHost)?;
    let policy = place.location().and_then(|it| it.policy.as_deref());
    let rewritten = match policy.and_then(|it| it.rewrite.as_ref()) {
        // Of what the guards have left of the request.
        Some(rewrite) => {
            let listens = worker.listens_for_https();
            let wanted = wanted(client, &place, parts, host_text, listens);
            Some(Rewritten::of(rewrite, &wanted)?)
        }
        None => None,
    };
    let mut terms = Terms::new(worker, policy)?;
    policy::admit(policy, worker.limits(), &parts.headers, body)?;
    let chosen = worker.choose(&place, host_text, parts, journal);
    let missing = matches!(chosen, Err(Fault::NoEndpoint));
    let stand_in = missing
        .then(|| fallback::backend(policy, journal))
        .flatten();
    let stands_in = stand_in.is_some();
    if stands_in {
        // What is spoken with the pods says nothing about it, and the client's session is with them.
        terms = Terms::plain(worker.timeouts());
        journal.aim = Aim::default();
    }
    let http2 = terms.protocol == model::Protocol::Grpc;
    journal.grpc = http2 && grpc::is_grpc(&parts.headers);
    let backend = stand_in.map_or(chosen, Ok)?;
    if !stands_in && let Some(affinity) = place.location().and_then(|it| it.split.affinity()) {
        let encrypted = is_encrypted(client, &parts.headers);
        journal.visit = Visit::of(&affinity.cookie, &parts.headers, encrypted);
    }
    let split = place.location().and_then(|it| it.split.policy.as_deref());
    // What the default backend is sent, and how it is spoken to, is nothing for the pods.
    let split = split.filter(|_| !stands_in);
    let mirrors = split.map_or(&[][..], |it| &it.mirrors);
    let changed = policy.is_some_and(Policy::changes_requests);
    let plain = !(changed || stands_in || http2) && mirrors.is_empty();
    let mut prepared = Prepared {
        upgrade: None,
        backend,
        terms,
        host,
        as_it_came: plain && !survey.connected && !client.origin.forwards,
        trailers: survey.trailers,
        length: body.length(survey.length),
        kept: None,
    };
    if !prepared.as_it_came {
        let address = match journal.caller() {
            caller if caller == client.origin.client => client.forwarded_for.clone(),
            caller => text_value(&caller.to_string()),
        };
        let forwarded = Forwarded {
            client: &client.forwarded_for,
            address: &address,
            host: &prepared.host,
            port: &client.forwarded_port,
            scheme: client.origin.scheme,
            request_id,
            trust: client.origin.forwards,
        };
        let may = body.is_empty() && prepared.terms.protocol == model::Protocol::Http11;
        prepared.upgrade = turn(parts, may, &forwarded).map(|protocol| Upgrade {
            protocol,
            idle: prepared.terms.tunnel,
        });
        if stands_in {
            fallback::describe(&mut parts.headers, StatusCode::SERVICE_UNAVAILABLE, journal);
        } else if !http2 {
            prepared.kept = Kept::of(policy, &parts.headers, journal);
        }
        if let Some(rewritten) = rewritten {
            rewritten.apply(parts);
        }
        if let Some(policy) = policy {
            policy::toward(policy, parts);
        }
        // Behind all that the client's own fields can have taken out.
        if let (Some(passed), Some(guarded)) = (passed, policy.and_then(|it| it.guards.as_ref())) {
            passed.tell(guarded, &mut parts.headers);
        }
        if let Some(certified) = certified {
            certified.tell(parts);
        }
        if http2 {
            http2::into_http2(parts, prepared.terms.tls.is_some())?;
        }
    }
    let (backend_terms, length) = (&prepared.terms, prepared.length);
    mirror::copy(worker, mirrors, parts, body, length, backend_terms, journal);
    Ok(prepared)
}

/// Whether the client's own connection is encrypted, by what is known or believed of it.
fn is_encrypted(client: &Client, fields: &HeaderMap) -> bool {
    let proto = fields.get(headers::X_FORWARDED_PROTO);
    let said = client.origin.forwards && proto.is_some_and(|proto| proto == "https");
    said || client.origin.scheme == "https"
}

/// Makes `parts` what the backend is to see. Returns the protocol that the client asks to change to.
fn turn(
    parts: &mut request::Parts,
    may_upgrade: bool,
    forwarded: &Forwarded<'_>,
) -> Option<HeaderValue> {
    let hop = headers::strip_hop_by_hop(&mut parts.headers);
    let upgrade = hop.upgrade.filter(|protocol| {
        may_upgrade && parts.version == Version::HTTP_11 && headers::may_upgrade(protocol)
    });
    headers::set_forwarded(&mut parts.headers, forwarded);
    let headers = &mut parts.headers;
    if let Some(protocol) = &upgrade {
        headers.insert(UPGRADE, protocol.clone());
        headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
    } else if hop.trailers {
        headers.insert(TE, HeaderValue::from_static("trailers"));
        headers.insert(CONNECTION, HeaderValue::from_static("te"));
    }
    parts.uri = origin_form(&parts.uri);
    parts.version = Version::HTTP_11;
    upgrade
}

/// Where an answer's body comes from.
enum From {
    Http1(Box<Upstream>),
    Http2(Incoming, Hold),
}

impl From {
    /// Whether it is known how long the body is.
    fn has_length(&self) -> bool {
        match self {
            From::Http1(upstream) => upstream.left().is_some(),
            From::Http2(body, _) => body.size_hint().exact().is_some(),
        }
    }
}

/// The answer's head for hyper.
fn response_parts(head: Head) -> response::Parts {
    let (mut parts, ()) = Response::new(()).into_parts();
    parts.status = head.status;
    parts.headers = head.headers;
    if let Some(reason) = head.reason {
        parts.extensions.insert(reason);
    }
    parts
}

/// Passes the backend's answer on.
fn answer(
    worker: &Rc<Worker>,
    client: &Rc<Client>,
    exchanged: Exchanged,
    upgrade: Option<Upgrade>,
    mut journal: Box<Journal>,
) -> io::Result<Response<AnswerBody>> {
    journal.observe_speed();
    let (mut parts, from) = match exchanged {
        Exchanged::Http1 { head, upstream } => (response_parts(*head), From::Http1(upstream)),
        Exchanged::Http2 { response, hold } => {
            let (mut parts, body) = response.into_parts();
            headers::strip_hop_by_hop(&mut parts.headers);
            (parts, From::Http2(body, hold))
        }
    };
    parts.headers.entry(SERVER).or_insert(NAME);
    journal.dress(parts.status, &mut parts.headers);
    // The version is this hop's own.
    parts.version = Version::HTTP_11;
    policy::answered(&journal, &mut parts);
    if parts.status == StatusCode::SWITCHING_PROTOCOLS {
        return match from {
            From::Http1(upstream) => switch(worker, client, parts, upstream, upgrade, journal),
            From::Http2(..) => own_answer(worker, Fault::UpstreamInvalid, journal),
        };
    }
    if journal.is_http10() && !from.has_length() {
        // The close is what tells the client the end.
        client.answer_until_close();
        parts
            .headers
            .insert(CONNECTION, HeaderValue::from_static("close"));
    }
    close_if_draining(worker, client, &mut parts.headers);
    set_hsts(worker, &journal, &mut parts.headers);
    journal.answer(parts.status.as_u16(), None);
    let policy = journal.location().and_then(|it| it.policy.as_deref());
    let pace = policy.and_then(|policy| policy.pace);
    let body = match from {
        From::Http1(upstream) => {
            let body = AnswerBody::stream(upstream, worker.pool(), journal);
            match client.protocol() {
                Protocol::Http1 if pace.is_none() => body.piped(&client.socket, worker.pipes()),
                _ => body,
            }
        }
        From::Http2(body, hold) => AnswerBody::http2(body, hold, journal),
    };
    Ok(Response::from_parts(parts, body.paced(pace)))
}

/// Passes a 101 on and has the connection become a tunnel behind it.
fn switch(
    worker: &Rc<Worker>,
    client: &Rc<Client>,
    mut parts: response::Parts,
    upstream: Box<Upstream>,
    upgrade: Option<Upgrade>,
    mut journal: Box<Journal>,
) -> io::Result<Response<AnswerBody>> {
    let tunnel = upgrade.and_then(|upgrade| Some((upgrade, upstream.into_tunnel()?)));
    let Some((Upgrade { protocol, idle }, tunnel)) = tunnel else {
        // Nobody asked for it, or the backend broke off: the client cannot go on with it.
        return own_answer(worker, Fault::UpstreamInvalid, journal);
    };
    client.set_tunnel(tunnel, idle, journal.passage.held.take());
    parts.headers.insert(UPGRADE, protocol);
    parts
        .headers
        .insert(CONNECTION, HeaderValue::from_static("upgrade"));
    journal.answer(parts.status.as_u16(), None);
    let body = AnswerBody::whole(Bytes::new(), journal);
    Ok(Response::from_parts(parts, body))
}
