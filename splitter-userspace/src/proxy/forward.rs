//! From a Backend to an answer: pick an Endpoint, take or make a connection, exchange, try again.

use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;

use http::{HeaderMap, Method, Request, Response, Uri};
use hyper::body::Incoming;

use super::body::{RequestBody, Upload};
use super::fault::Fault;
use super::journal::Journal;
use super::upstream::{Failed, Upstream};
use super::worker::Worker;
use crate::model::Backend;

/// How many Endpoints one request may be sent to: the first and one more.
const TRIES_MAX: usize = 2;

/// A backend's answer, and the connection that its body comes on.
pub struct Exchanged {
    /// Head, and the body to come.
    pub response: Response<Incoming>,
    /// The connection.
    pub upstream: Box<Upstream>,
}

/// Why one try ended.
struct TryFailed {
    fault: Fault,
    /// The request, if it may be sent to somebody else.
    again: Option<Request<RequestBody>>,
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
    backend: &Arc<Backend>,
    request: Request<RequestBody>,
    journal: &mut Journal,
) -> Result<Exchanged, Fault> {
    let mut request = request;
    let mut tried = [endpoint_none(); TRIES_MAX];
    let mut last = Fault::NoEndpoint;
    for attempt in 0..TRIES_MAX {
        let Some(endpoint) = worker.pick(backend, &tried[..attempt], &mut journal.aim) else {
            break;
        };
        tried[attempt] = endpoint;
        journal.pick(endpoint, attempt as u32 + 1);
        match try_endpoint(worker, endpoint, request, journal).await {
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
                    Some(again) => request = again,
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
    request: Request<RequestBody>,
    journal: &mut Journal,
) -> Result<Exchanged, TryFailed> {
    let mut request = request;
    // A kept connection that the Endpoint has just closed says nothing about the Endpoint.
    while let Some(upstream) = worker.pool().take(endpoint) {
        let copy = Copy::of(&request);
        match exchange(worker, upstream, request, journal).await {
            Ok(exchanged) => return Ok(exchanged),
            Err(failed) => {
                let failed = judge(*failed, copy, journal.upload.as_deref());
                match failed.again {
                    Some(again) => request = again,
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
                again: Some(request),
                eject: true,
            });
        }
    };
    let copy = Copy::of(&request);
    let exchanged = exchange(worker, upstream, request, journal).await;
    exchanged.map_err(|failed| judge(*failed, copy, journal.upload.as_deref()))
}

/// What becomes of a request whose exchange failed: it goes on if nothing of it was written, or if
/// it may be repeated and the backend has neither begun to answer nor taken all its time.
fn judge(failed: Failed, copy: Option<Copy>, upload: Option<&Upload>) -> TryFailed {
    let fault = blame(&failed, upload);
    let repeatable = !failed.answered && !failed.timed_out;
    let copy = copy.filter(|_| repeatable).map(Copy::into_request);
    TryFailed {
        fault,
        again: failed.unsent.or(copy),
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
    mut request: Request<RequestBody>,
    journal: &mut Journal,
) -> Result<Exchanged, Box<Failed>> {
    let link = upstream.link().clone();
    link.socket.wait_while_moving(worker.timeouts().read);
    request.body_mut().send_to(&link);
    let response = upstream.exchange(request).await.inspect_err(|failed| {
        tracing::debug!(endpoint = %upstream.endpoint(), error = ?failed.error, "an exchange failed");
    })?;
    if let (Some(record), Some(picked)) = (&mut journal.upstream, journal.picked) {
        record.header = Some(picked.elapsed());
        record.status = Some(response.status().as_u16());
    }
    Ok(Exchanged { response, upstream })
}

/// Whose fault it is that an exchange failed.
fn blame(failed: &Failed, upload: Option<&Upload>) -> Fault {
    if let Some(fault) = upload.and_then(|upload| upload.fault.get()) {
        return fault;
    }
    match failed.timed_out {
        true if upload.is_some_and(|upload| upload.waiting.get()) => Fault::BodyTimeout,
        true => Fault::UpstreamTimeout,
        false if failed.error.is_parse() => Fault::UpstreamInvalid,
        false => Fault::UpstreamRefused,
    }
}

/// A head to send again, when that does no harm: the method is idempotent and there is no body.
struct Copy {
    method: Method,
    uri: Uri,
    headers: HeaderMap,
}

impl Copy {
    fn of(request: &Request<RequestBody>) -> Option<Self> {
        if !request.method().is_idempotent() || !matches!(request.body(), RequestBody::Empty) {
            return None;
        }
        Some(Copy {
            method: request.method().clone(),
            uri: request.uri().clone(),
            headers: request.headers().clone(),
        })
    }

    fn into_request(self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::Empty);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.headers_mut() = self.headers;
        request
    }
}
