//! From a Backend to an answer: pick an Endpoint, take or make a connection, exchange, try again.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Instant;

use super::body::{RequestBody, Upload};
use super::codec::{Head, Outgoing};
use super::fault::Fault;
use super::journal::Journal;
use super::upstream::{Failed, Upstream};
use super::worker::Worker;
use crate::model::Backend;

/// How many Endpoints one request may be sent to: the first and one more.
const TRIES_MAX: usize = 2;

/// The head of a backend's answer, and the connection that its body comes on.
pub struct Exchanged {
    /// The head.
    pub head: Head,
    /// The connection.
    pub upstream: Box<Upstream>,
}

/// Why one try ended.
struct TryFailed {
    fault: Fault,
    /// The request's body, if the request may be sent to somebody else.
    again: Option<RequestBody>,
    /// Whether the Endpoint is to be left alone for a while.
    eject: bool,
}

/// Sends `request` to an Endpoint of `backend`. A second Endpoint of the same Backend is tried when
/// the first got nothing of the request, or when the request can be repeated without harm
/// (RFC 9110 9.2.2) and no answer had begun.
///
/// # Errors
/// The fault to answer with.
pub async fn forward(
    worker: &Rc<Worker>,
    backend: &Backend,
    request: &Outgoing<'_>,
    body: RequestBody,
    journal: &mut Journal,
) -> Result<Exchanged, Fault> {
    let mut body = body;
    let mut tried = [endpoint_none(); TRIES_MAX];
    let mut last = Fault::NoEndpoint;
    for attempt in 0..TRIES_MAX {
        let Some(endpoint) = worker.pick(backend, &tried[..attempt]) else {
            break;
        };
        tried[attempt] = endpoint;
        journal.pick(endpoint, attempt as u32 + 1);
        match try_endpoint(worker, endpoint, request, body, journal).await {
            Ok(exchanged) => {
                worker.endpoint_answered(endpoint);
                return Ok(exchanged);
            }
            Err(failed) => {
                if failed.eject {
                    worker.eject(endpoint);
                }
                last = failed.fault;
                match failed.again {
                    Some(again) => body = again,
                    None => return Err(last),
                }
            }
        }
    }
    Err(last)
}

/// Fills the places of Endpoints that have not been tried.
fn endpoint_none() -> SocketAddr {
    SocketAddr::from(([0, 0, 0, 0], 0))
}

/// Sends `request` to this Endpoint, on a kept connection if there is one.
async fn try_endpoint(
    worker: &Rc<Worker>,
    endpoint: SocketAddr,
    request: &Outgoing<'_>,
    body: RequestBody,
    journal: &mut Journal,
) -> Result<Exchanged, TryFailed> {
    let mut body = body;
    // A kept connection that the Endpoint has just closed says nothing about the Endpoint.
    while let Some(upstream) = worker.pool().take(endpoint) {
        match exchange(worker, upstream, request, body, journal).await {
            Ok(exchanged) => return Ok(exchanged),
            Err(failed) => {
                let failed = judge(*failed, request, journal.upload.as_deref());
                match failed.again {
                    Some(again) => body = again,
                    None => return Err(failed),
                }
            }
        }
    }
    let upstream = match connect(worker, endpoint, journal).await {
        Ok(upstream) => upstream,
        Err(e) => {
            tracing::debug!(%endpoint, error = %e, "an endpoint did not accept");
            return Err(TryFailed {
                fault: match e.kind() {
                    io::ErrorKind::TimedOut => Fault::ConnectTimeout,
                    _ => Fault::UpstreamRefused,
                },
                again: Some(body),
                eject: true,
            });
        }
    };
    let exchanged = exchange(worker, upstream, request, body, journal).await;
    exchanged.map_err(|failed| judge(*failed, request, journal.upload.as_deref()))
}

/// What becomes of a request whose exchange failed: it goes on if nothing of it was sent, or if it
/// has no body and may be repeated (RFC 9110 9.2.2), and the backend has neither begun to answer nor
/// taken all its time.
fn judge(failed: Failed, request: &Outgoing<'_>, upload: Option<&Upload>) -> TryFailed {
    let fault = blame(&failed, upload);
    let body = failed.body;
    let harmless = request.parts.method.is_idempotent()
        && body.as_ref().is_some_and(RequestBody::is_empty)
        && !failed.answered
        && !failed.timed_out;
    TryFailed {
        fault,
        again: body.filter(|_| failed.unsent || harmless),
        eject: false,
    }
}

async fn connect(
    worker: &Rc<Worker>,
    endpoint: SocketAddr,
    journal: &mut Journal,
) -> io::Result<Box<Upstream>> {
    let began = Instant::now();
    let upstream = worker.connect(endpoint).await?;
    if let Some(record) = &mut journal.upstream {
        record.connect = Some(began.elapsed());
    }
    Ok(upstream)
}

/// One request and its answer's head on one connection.
async fn exchange(
    worker: &Rc<Worker>,
    mut upstream: Box<Upstream>,
    request: &Outgoing<'_>,
    body: RequestBody,
    journal: &mut Journal,
) -> Result<Exchanged, Box<Failed>> {
    upstream.socket().wait_while_moving(worker.timeouts().read);
    let mut early = |head: &Head| journal.pass_interim(head);
    let head = upstream.exchange(request, body, &mut early).await;
    let head = head.inspect_err(|failed| {
        tracing::debug!(endpoint = %upstream.endpoint(), error = %failed.error, "an exchange failed");
    })?;
    if let (Some(record), Some(picked)) = (&mut journal.upstream, journal.picked) {
        record.header = Some(picked.elapsed());
        record.status = Some(head.status.as_u16());
    }
    Ok(Exchanged { head, upstream })
}

/// Whose fault it is that an exchange failed.
fn blame(failed: &Failed, upload: Option<&Upload>) -> Fault {
    if let Some(fault) = upload.and_then(|upload| upload.fault.get()) {
        return fault;
    }
    match failed.timed_out {
        true if upload.is_some_and(|upload| upload.waiting.get()) => Fault::BodyTimeout,
        true => Fault::UpstreamTimeout,
        false if failed.error.is_invalid() => Fault::UpstreamInvalid,
        false => Fault::UpstreamRefused,
    }
}
