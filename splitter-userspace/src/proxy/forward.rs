//! From a Backend to an answer: pick an Endpoint, take or make a connection, exchange, try again.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::{Response, StatusCode};
use hyper::body::Incoming;

use super::body::RequestBody;
use super::codec::{Head, Outgoing};
use super::fault::Fault;
use super::http2::{self, Hold};
use super::journal::Journal;
use super::retry::{TryFailed, may_repeat};
use super::terms::Terms;
use super::upstream::{Failed, Upstream};
use super::worker::Worker;
use crate::model::{Backend, Failures, Protocol};

/// A backend's answer: its head and the body to come, and what the body comes on.
pub enum Exchanged {
    /// A connection of this request alone.
    Http1 {
        /// The head.
        head: Box<Head>,
        /// The connection.
        upstream: Box<Upstream>,
    },
    /// A stream of a connection.
    Http2 {
        /// The answer.
        response: Response<Incoming>,
        /// The stream.
        hold: Hold,
    },
}

impl Exchanged {
    /// The status of the answer.
    pub fn status(&self) -> StatusCode {
        match self {
            Exchanged::Http1 { head, .. } => head.status,
            Exchanged::Http2 { response, .. } => response.status(),
        }
    }
}

/// An answer, and the request's body if the answer is one after which the Location wants another Endpoint
/// to be asked.
pub type Answered = (Exchanged, Option<RequestBody>);

/// Sends `request` to an Endpoint of `backend`; to another one of the same Backend after what
/// `terms` call a failure, if the request may be sent again.
///
/// # Errors
/// The fault to answer with.
pub async fn forward(
    worker: &Rc<Worker>,
    backend: &Arc<Backend>,
    request: &Outgoing<'_>,
    body: RequestBody,
    terms: &Terms,
    journal: &mut Journal,
) -> Result<Exchanged, Fault> {
    let until = terms.retry.timeout.map(|time| Instant::now() + time);
    let mut body = body;
    // Allocates nothing until a try has failed.
    let mut tried = Vec::new();
    let mut last = Err(Fault::NoEndpoint);
    while let Some(endpoint) = worker.pick(backend, &tried, &mut journal.aim) {
        journal.pick(endpoint, tried.len() as u32 + 1);
        let tried_now = match terms.protocol {
            Protocol::Grpc => {
                http2::try_endpoint(worker, endpoint, request, body, terms, journal).await
            }
            _ => try_endpoint(worker, endpoint, request, body, terms, journal).await,
        };
        let again = match tried_now {
            Ok((exchanged, again)) => {
                worker.endpoint_answered(endpoint);
                note_answer(journal, &exchanged);
                last = Ok(exchanged);
                again
            }
            Err(failed) => {
                if failed.eject {
                    worker.eject(endpoint);
                }
                last = Err(failed.fault);
                failed.again
            }
        };
        let Some(again) = again else { break };
        tried.push(endpoint);
        let over = until.is_some_and(|until| Instant::now() >= until);
        if over || tried.len() >= terms.retry.tries as usize {
            break;
        }
        body = again;
    }
    last
}

fn note_answer(journal: &mut Journal, exchanged: &Exchanged) {
    if let (Some(record), Some(picked)) = (&mut journal.upstream, journal.picked) {
        record.header = Some(picked.elapsed());
        record.status = Some(exchanged.status().as_u16());
    }
}

/// Sends `request` to this Endpoint, on a kept connection if there is one.
async fn try_endpoint(
    worker: &Rc<Worker>,
    endpoint: SocketAddr,
    request: &Outgoing<'_>,
    body: RequestBody,
    terms: &Terms,
    journal: &mut Journal,
) -> Result<Answered, TryFailed> {
    let mut body = body;
    // A kept connection that the Endpoint has just closed says nothing about the Endpoint.
    while let Some(upstream) = worker.pool().take(endpoint, terms.identity()) {
        let tried = exchange_once(upstream, request, body, terms, journal, true).await;
        match tried {
            Err(TryFailed {
                kind: Failures::ERROR,
                again: Some(again),
                ..
            }) => body = again,
            ended => return ended,
        }
    }
    match connect(worker, endpoint, terms, journal).await {
        Ok(upstream) => exchange_once(upstream, request, body, terms, journal, false).await,
        Err(e) => {
            tracing::debug!(%endpoint, error = %e, "an endpoint did not accept");
            Err(TryFailed::connecting(&e, body, terms.retry.on))
        }
    }
}

async fn connect(
    worker: &Rc<Worker>,
    endpoint: SocketAddr,
    terms: &Terms,
    journal: &mut Journal,
) -> io::Result<Box<Upstream>> {
    let began = Instant::now();
    let upstream = worker.connect(endpoint, terms).await?;
    if let Some(record) = &mut journal.upstream {
        record.connect = Some(began.elapsed());
    }
    Ok(upstream)
}

/// One try on one connection.
async fn exchange_once(
    upstream: Box<Upstream>,
    request: &Outgoing<'_>,
    body: RequestBody,
    terms: &Terms,
    journal: &mut Journal,
    kept: bool,
) -> Result<Answered, TryFailed> {
    let on = terms.retry.on;
    let repeat = body.is_empty() && may_repeat(&request.parts.method, &terms.retry);
    match exchange(upstream, request, body, terms, journal).await {
        Ok(exchanged) => {
            let bad = on.has_status() && on.has(Failures::status(exchanged.status().as_u16()));
            Ok((exchanged, (bad && repeat).then_some(RequestBody::Empty)))
        }
        Err(failed) => {
            let upload = journal.upload.as_deref();
            Err(TryFailed::exchanging(*failed, repeat, upload, on, kept))
        }
    }
}

/// One request and its answer's head on one connection.
async fn exchange(
    mut upstream: Box<Upstream>,
    request: &Outgoing<'_>,
    body: RequestBody,
    terms: &Terms,
    journal: &Journal,
) -> Result<Exchanged, Box<Failed>> {
    upstream.set_patience(terms.read, terms.send);
    let mut early = |head: &Head| journal.pass_interim(head);
    let head = upstream.exchange(request, body, &mut early).await;
    let head = head.inspect_err(|failed| {
        tracing::debug!(endpoint = %upstream.endpoint(), error = %failed.error, "an exchange failed");
    })?;
    let head = Box::new(head);
    Ok(Exchanged::Http1 { head, upstream })
}
