//! Another service is asked.

use std::rc::Rc;
use std::time::Instant;

use http::header::{
    CONTENT_LENGTH, CONTENT_TYPE, FORWARDED, HOST, HeaderMap, HeaderName, HeaderValue, LOCATION,
    SET_COOKIE, WWW_AUTHENTICATE,
};
use http::uri::PathAndQuery;
use http::{Request, StatusCode, Uri, request};
use tokio::time::timeout;

use super::gatekeeper::AskingPlace;
use super::{Asking, challenge};
use crate::auth::Digest;
use crate::model::{AuthCache, External, Template};
use crate::proxy::body::RequestBody;
use crate::proxy::codec::{BodyLength, Outgoing};
use crate::proxy::forward::{Exchanged, forward};
use crate::proxy::headers::{self, Forwarded};
use crate::proxy::mirror;
use crate::proxy::policy::{Refusal, Reply};
use crate::proxy::terms::Terms;
use crate::routing::{Shown, key_text, normalize};

const X_ORIGINAL_URL: HeaderName = HeaderName::from_static("x-original-url");
const X_ORIGINAL_METHOD: HeaderName = HeaderName::from_static("x-original-method");
const X_ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");
const X_FORWARDED_URI: HeaderName = HeaderName::from_static("x-forwarded-uri");
const X_FORWARDED_METHOD: HeaderName = HeaderName::from_static("x-forwarded-method");
const X_SENT_FROM: HeaderName = HeaderName::from_static("x-sent-from");
const X_AUTH_REQUEST_REDIRECT: HeaderName = HeaderName::from_static("x-auth-request-redirect");

/// Whom the service takes us for.
const SENT_FROM: HeaderValue = HeaderValue::from_static("nginx-ingress-controller");

/// Statuses of answers that have the service's cookies in any case, as nginx adds them.
const WITH_COOKIES: [u16; 10] = [200, 201, 204, 206, 301, 302, 303, 304, 307, 308];

/// What the service says of a request, as far as it is remembered.
#[derive(Clone)]
pub(super) struct Verdict {
    status: StatusCode,
    /// What pods get.
    told: Rc<[(HeaderName, HeaderValue)]>,
    /// How a client could be let in.
    challenges: Rc<[HeaderValue]>,
    cookies: Rc<[HeaderValue]>,
    until: Option<Instant>,
}

/// Whether the service lets the client in.
///
/// # Errors
/// When it does not, or does not say: the answer.
pub(super) async fn admit(asking: &Asking<'_>, external: &External) -> Result<Verdict, Refusal> {
    let digest = external.cache.as_ref();
    let digest = digest.and_then(|it| digest_of(asking, external, it));
    let known = digest.and_then(|digest| asking.worker.gatekeeper().verdict(&digest));
    let known = known.filter(|it| it.until.is_some_and(|until| Instant::now() < until));
    let verdict = match known {
        Some(verdict) => verdict,
        None => {
            let verdict = ask(asking, external).await?;
            if let Some(digest) = digest.filter(|_| verdict.until.is_some()) {
                let gatekeeper = asking.worker.gatekeeper();
                gatekeeper.remember(digest, verdict.clone());
            }
            verdict
        }
    };
    match verdict.status {
        status if status.is_success() => Ok(verdict),
        StatusCode::UNAUTHORIZED => Err(unauthorized(asking, external, &verdict)),
        _ => {
            let text = "the service that is asked lets nobody in like this";
            let mut reply = Reply::text("auth-forbidden", StatusCode::FORBIDDEN, text);
            add_cookies(&verdict, external.always_cookies, &mut reply);
            Err(reply.into())
        }
    }
}

fn unauthorized(asking: &Asking<'_>, external: &External, verdict: &Verdict) -> Refusal {
    let mut refusal = match &external.sign_in {
        Some(page) => sign_in(asking, page),
        None => {
            let text = "the service that is asked does not know who this is";
            challenge("auth-unauthorized", "", text)
        }
    };
    if let Refusal::Reply(reply) = &mut refusal {
        let moved = reply.status == StatusCode::FOUND;
        if !moved {
            reply.headers.remove(WWW_AUTHENTICATE);
            for how in verdict.challenges.iter() {
                reply.headers.append(WWW_AUTHENTICATE, how.clone());
            }
        }
        add_cookies(verdict, moved || external.always_cookies, reply);
    }
    refusal
}

/// Sends the client to where it can sign in.
pub(super) fn sign_in(asking: &Asking<'_>, page: &Template) -> Refusal {
    let mut reply = Reply::new("auth-signin", StatusCode::FOUND);
    if let Some(target) = sign_in_at(asking, page) {
        reply.headers.insert(LOCATION, target);
    }
    reply.into()
}

/// Where that is.
pub(super) fn sign_in_at(asking: &Asking<'_>, page: &Template) -> Option<HeaderValue> {
    HeaderValue::from_str(&asking.wanted.fill(page)).ok()
}

fn add_cookies(verdict: &Verdict, wanted: bool, reply: &mut Reply) {
    for cookie in verdict.cookies.iter().filter(|_| wanted) {
        reply.headers.append(SET_COOKIE, cookie.clone());
    }
}

async fn ask(asking: &Asking<'_>, external: &External) -> Result<Verdict, Refusal> {
    let gatekeeper = asking.worker.gatekeeper();
    let Some(place) = gatekeeper.ask(&external.service) else {
        return Err(failed(
            "auth-service-busy",
            StatusCode::SERVICE_UNAVAILABLE,
            "the service that is asked who may call has too much to do",
        ));
    };
    let Some(parts) = subrequest(asking, external) else {
        return Err(failed(
            "auth-target-too-long",
            StatusCode::URI_TOO_LONG,
            "what the service would be asked for is too long to be sent",
        ));
    };
    let answer = timeout(external.timeout, exchange(asking, external, &parts, place)).await;
    match answer {
        Ok(answer) => answer,
        Err(_) => Err(failed(
            "auth-service-timeout",
            StatusCode::INTERNAL_SERVER_ERROR,
            "the service that is asked who may call does not answer",
        )),
    }
}

fn failed(name: &'static str, status: StatusCode, text: &str) -> Refusal {
    Reply::text(name, status, text).into()
}

async fn exchange(
    asking: &Asking<'_>,
    external: &External,
    parts: &request::Parts,
    place: AskingPlace,
) -> Result<Verdict, Refusal> {
    let unreachable = || {
        failed(
            "auth-service-unreachable",
            StatusCode::INTERNAL_SERVER_ERROR,
            "the service that is asked who may call cannot be reached",
        )
    };
    let worker = asking.worker;
    let mut terms = Terms::plain(worker.timeouts());
    terms.connect = terms.connect.min(external.timeout);
    (terms.read, terms.send) = (external.timeout, external.timeout);
    if let Some(tls) = &external.tls {
        let certificates = worker.certificates();
        terms.tls = Some(certificates.upstream(tls).ok_or_else(unreachable)?.clone());
    }
    let request = Outgoing {
        parts,
        added: None,
        length: BodyLength::None,
    };
    // Neither counted nor logged as a request of the Location.
    let mut journal = asking.journal.silent();
    let body = RequestBody::Empty;
    let snapshot = &asking.journal.current().live.snapshot;
    let service = snapshot.backend_by_key(&external.service);
    let service = service.ok_or_else(unreachable)?;
    let answer = forward(worker, service, &request, body, &terms, &mut journal).await;
    let exchanged = answer.map_err(|_| unreachable())?;
    let status = exchanged.status();
    let Exchanged::Http1 { head, .. } = &exchanged else {
        return Err(unreachable());
    };
    let verdict = verdict(external, status, &head.headers);
    let patience = external.timeout;
    let (worker, away) = (worker.clone(), journal);
    tokio::task::spawn_local(async move {
        // So that the connection can be used again; it is closed if that takes too long. Until then
        // the service is being asked.
        let _place = place;
        let _ = timeout(patience, mirror::read_away(&worker, exchanged, away)).await;
    });
    let known = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN];
    if status.is_success() || known.contains(&status) {
        return Ok(verdict);
    }
    Err(failed(
        "auth-service-answer",
        StatusCode::INTERNAL_SERVER_ERROR,
        "the service that is asked who may call gives no answer that says it",
    ))
}

fn verdict(external: &External, status: StatusCode, headers: &HeaderMap) -> Verdict {
    let all = |name: &HeaderName| headers.get_all(name).iter().cloned();
    let told = external.told.iter().filter(|_| status.is_success());
    let told = told.flat_map(|name| all(name).map(|value| (name.clone(), value)));
    let cookies: Rc<[HeaderValue]> = all(&SET_COOKIE).collect();
    let cache = external.cache.as_ref();
    let time = cache.and_then(|cache| cache.time(status.as_u16()));
    // A cookie is for the one client that it was given to.
    let time = time.filter(|_| cookies.is_empty() && may_keep(headers));
    Verdict {
        status,
        told: told.collect(),
        challenges: all(&WWW_AUTHENTICATE).collect(),
        cookies,
        until: time.and_then(|time| Instant::now().checked_add(time)),
    }
}

/// Whether the service lets its answer be kept.
fn may_keep(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(http::header::CACHE_CONTROL).iter();
    let mut parts = lines.flat_map(|line| line.as_bytes().split(|byte| *byte == b','));
    !parts.any(|part| {
        let part = part.trim_ascii();
        let no = [&b"no-store"[..], b"no-cache", b"private", b"max-age=0"];
        no.iter().any(|it| part.eq_ignore_ascii_case(it))
    })
}

/// What makes the answer for this request the answer for another; none when it has nothing of it.
fn digest_of(asking: &Asking<'_>, external: &External, cache: &AuthCache) -> Option<Digest> {
    let host = normalize(asking.wanted.http_host)?;
    let shown = Shown {
        headers: &asking.parts.headers,
        method: asking.parts.method.as_str(),
        host: &host,
        path: asking.wanted.path,
        query: asking.wanted.query.unwrap_or_default(),
        client: asking.caller,
        held: None,
    };
    let text = key_text(&cache.key, &shown)?;
    let location = asking.journal.location()?.key.to_string();
    // What is asked and what is taken from the answer: a change of the annotations asks anew.
    let asked = format!("{external:?}");
    let parts = [
        b"external",
        location.as_bytes(),
        asked.as_bytes(),
        host.as_bytes(),
        &text,
    ];
    Some(asking.worker.gatekeeper().digest(&parts))
}

/// What the service is asked. All that says where the request comes from and what it is for is ours:
/// the same path that found the Location. None when that is too long for a request: nothing else may
/// be asked in its place.
fn subrequest(asking: &Asking<'_>, external: &External) -> Option<request::Parts> {
    let (mut parts, ()) = Request::new(()).into_parts();
    parts.method = external.method.clone();
    let target = asking.wanted.fill(&external.target);
    parts.uri = Uri::from(PathAndQuery::try_from(target).ok()?);
    let mut fields = asking.parts.headers.clone();
    headers::strip_hop_by_hop(&mut fields);
    for name in [CONTENT_LENGTH, CONTENT_TYPE] {
        fields.remove(name);
    }
    let client = asking.client;
    if !client.origin.forwards {
        let claimed = fields
            .keys()
            .filter(|name| name.as_str().starts_with("x-forwarded-"));
        for name in claimed.cloned().collect::<Vec<_>>() {
            fields.remove(name);
        }
        fields.remove(FORWARDED);
    }
    let (address, host) = (
        text(&asking.caller.to_string()),
        text(asking.wanted.http_host),
    );
    headers::set_forwarded(
        &mut fields,
        &Forwarded {
            client: &client.forwarded_for,
            address: &address,
            host: &host,
            port: &client.forwarded_port,
            scheme: client.origin.scheme,
            request_id: asking.request_id,
            trust: client.origin.forwards,
        },
    );
    let method = text(asking.parts.method.as_str());
    let target = text(&asking.wanted.target());
    let redirect = external.redirect.as_ref();
    let redirect = redirect.map_or(target.clone(), |it| text(&asking.wanted.fill(it)));
    for (name, value) in [
        (HOST, text(&external.host)),
        (X_ORIGINAL_URL, text(&asking.wanted.url())),
        (X_ORIGINAL_METHOD, method.clone()),
        (X_ORIGINAL_URI, target.clone()),
        (X_FORWARDED_URI, target),
        (X_FORWARDED_METHOD, method),
        (X_SENT_FROM, SENT_FROM),
        (X_AUTH_REQUEST_REDIRECT, redirect),
    ] {
        fields.insert(name, value);
    }
    for (name, value) in external.sent.iter() {
        fields.insert(name, value.clone());
    }
    parts.headers = fields;
    Some(parts)
}

fn text(text: &str) -> HeaderValue {
    // A target may have bytes beyond ASCII; whoever asks must not see an empty one in its place.
    HeaderValue::from_bytes(text.as_bytes()).unwrap_or(HeaderValue::from_static(""))
}

/// Takes out what only the service may say.
pub(super) fn cleanse(external: &External, headers: &mut HeaderMap) {
    for name in external.told.iter() {
        headers.remove(name);
    }
}

impl Verdict {
    /// Tells pods what the service says.
    pub(super) fn tell(&self, headers: &mut HeaderMap) {
        for (name, value) in self.told.iter() {
            headers.append(name, value.clone());
        }
    }

    /// The cookies for the client.
    pub(super) fn cookies(&self, external: &External) -> Option<Cookies> {
        (!self.cookies.is_empty()).then(|| Cookies {
            cookies: self.cookies.clone(),
            always: external.always_cookies,
        })
    }
}

/// Cookies of the service, for the answer that the pod gives.
pub struct Cookies {
    cookies: Rc<[HeaderValue]>,
    always: bool,
}

impl Cookies {
    /// Adds them, if an answer of this status gets them.
    pub fn add(&self, status: StatusCode, headers: &mut HeaderMap) {
        if self.always || WITH_COOKIES.contains(&status.as_u16()) {
            for cookie in self.cookies.iter() {
                headers.append(SET_COOKIE, cookie.clone());
            }
        }
    }
}

/// How many requests of one worker ask one service at once. Those beyond are refused, so that a slow
/// service holds up nobody else.
pub(super) const ASKING_MAX: u32 = 256;
