//! The default backend of a Location: it answers when no pod can, and its pages stand in for errors.

use std::rc::Rc;
use std::sync::Arc;

use http::header::{
    ACCEPT, CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, IF_MATCH,
    IF_MODIFIED_SINCE, IF_NONE_MATCH, IF_RANGE, IF_UNMODIFIED_SINCE, RANGE, TE, TRANSFER_ENCODING,
    UPGRADE,
};
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri};

use super::body::RequestBody;
use super::codec::{BodyLength, Outgoing};
use super::fault::Fault;
use super::forward::{Exchanged, forward};
use super::journal::Journal;
use super::policy::Reply;
use super::terms::Terms;
use super::worker::Worker;
use crate::model::{Backend, ErrorPages, Policy, STABLE};

const X_CODE: HeaderName = HeaderName::from_static("x-code");
const X_FORMAT: HeaderName = HeaderName::from_static("x-format");
const X_ORIGINAL_URI: HeaderName = HeaderName::from_static("x-original-uri");
const X_NAMESPACE: HeaderName = HeaderName::from_static("x-namespace");
const X_INGRESS_NAME: HeaderName = HeaderName::from_static("x-ingress-name");
const X_SERVICE_NAME: HeaderName = HeaderName::from_static("x-service-name");
const X_SERVICE_PORT: HeaderName = HeaderName::from_static("x-service-port");

/// What belongs to a body, to a hop, or to what the client has in its cache: not for a page.
const NOT_FOR_A_PAGE: [HeaderName; 13] = [
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    IF_MATCH,
    IF_MODIFIED_SINCE,
    IF_NONE_MATCH,
    IF_RANGE,
    IF_UNMODIFIED_SINCE,
    RANGE,
    TE,
    TRANSFER_ENCODING,
    UPGRADE,
];

/// The default backend, if it has an Endpoint.
pub fn backend(policy: Option<&Policy>, journal: &Journal) -> Option<Arc<Backend>> {
    let key = policy?.fallback.as_ref()?;
    let backend = journal.current().live.snapshot.backend_by_key(key)?;
    backend.is_available().then(|| backend.clone())
}

/// Tells a default backend what it stands in for, in the fields that ingress-nginx sets.
pub fn describe(headers: &mut HeaderMap, status: StatusCode, journal: &Journal) {
    headers.insert(X_CODE, status.as_u16().into());
    if let Some(accept) = headers.get(ACCEPT).cloned() {
        headers.insert(X_FORMAT, accept);
    }
    let snapshot = &journal.current().live.snapshot;
    let location = journal.location.and_then(|id| snapshot.location(id));
    let stable = location.and_then(|it| it.split.variants.get(STABLE));
    let backend = stable.and_then(|it| snapshot.backend(it.backend));
    let ingress = location.map(|it| &it.ingress);
    for (name, value) in [
        (X_ORIGINAL_URI, Some(journal.target())),
        (X_NAMESPACE, ingress.map(|it| &*it.namespace)),
        (X_INGRESS_NAME, ingress.map(|it| &*it.name)),
        (X_SERVICE_NAME, backend.map(|it| &*it.key.service)),
        (X_SERVICE_PORT, backend.map(|it| &*it.key.port)),
    ] {
        let value = value.and_then(|value| HeaderValue::from_str(value).ok());
        if let Some(value) = value {
            headers.insert(name, value);
        }
    }
}

/// What is kept of a request so that an error page can be asked for it.
pub struct Kept {
    pages: ErrorPages,
    backend: Arc<Backend>,
    headers: HeaderMap,
}

impl Kept {
    /// Keeps the fields as a pod is to see them, if the Location has error pages.
    pub fn of(
        policy: Option<&Policy>,
        headers: &HeaderMap,
        journal: &Journal,
    ) -> Option<Box<Self>> {
        let pages = policy?.error_pages.clone()?;
        Some(Box::new(Kept {
            pages,
            backend: backend(policy, journal)?,
            headers: headers.clone(),
        }))
    }

    /// Whether a pod's answer is replaced.
    pub fn replaces(&self, status: StatusCode) -> bool {
        self.pages.intercept && self.replaces_own(status)
    }

    /// Whether an answer of the proxy's own is replaced.
    pub fn replaces_own(&self, status: StatusCode) -> bool {
        self.pages.codes.binary_search(&status.as_u16()).is_ok()
    }

    /// The page for a status; none, and counted, when the default backend does not answer.
    ///
    /// The request is a GET (or HEAD) for `/` with the client's query. What the journal knows of the
    /// pod's exchange stays: it is what the status is about.
    pub async fn page(
        self: Box<Self>,
        worker: &Rc<Worker>,
        status: StatusCode,
        journal: &mut Journal,
    ) -> Option<Exchanged> {
        let Kept {
            backend,
            mut headers,
            ..
        } = *self;
        for name in NOT_FOR_A_PAGE {
            headers.remove(name);
        }
        describe(&mut headers, status, journal);
        let (mut parts, ()) = Request::new(()).into_parts();
        if journal.is_head() {
            parts.method = Method::HEAD;
        }
        parts.uri = root(journal.target());
        parts.headers = headers;
        let request = Outgoing {
            parts: &parts,
            added: None,
            length: BodyLength::None,
        };
        let body = RequestBody::Empty;
        let pods = (journal.upstream.take(), journal.picked.take());
        // The client's session is with the pods.
        let aim = std::mem::take(&mut journal.aim);
        let terms = Terms::plain(worker.timeouts());
        let page = forward(worker, &backend, &request, body, &terms, journal).await;
        (journal.upstream, journal.picked) = pods;
        journal.aim = aim;
        if let Err(fault) = &page {
            tracing::debug!(fault = fault.name(), backend = %backend.key, "no error page");
            worker.count_fault(Fault::NoErrorPage);
        }
        page.ok()
    }
}

/// `/` with the query of a target.
fn root(target: &str) -> Uri {
    let query = target.split_once('?').map(|(_, query)| query);
    let root = query.and_then(|query| Uri::try_from(format!("/?{query}")).ok());
    root.unwrap_or_else(|| Uri::from_static("/"))
}

/// Gives up an answer; its connection is kept if nothing more comes on it.
pub fn discard(worker: &Worker, exchanged: Exchanged) {
    if let Exchanged::Http1 { upstream, .. } = exchanged
        && upstream.is_over()
    {
        worker.pool().put(upstream);
    }
}

/// The status alone, where its page cannot be had.
pub fn bare(status: StatusCode) -> Reply {
    let mut reply = Reply::new("error-page", status);
    let text = format!("{status}\n");
    reply.body = text.into();
    let kind = HeaderValue::from_static("text/plain; charset=utf-8");
    reply.headers.insert(CONTENT_TYPE, kind);
    reply
}
