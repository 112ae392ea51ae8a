//! One request and its answer's head on a stream.

use std::net::SocketAddr;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

use http::{Request, Response};
use hyper::body::Incoming;

use super::pool::{OpenError, Opened};
use super::stream::{Hold, Upload};
use crate::model::Failures;
use crate::proxy::body::{self, RequestBody};
use crate::proxy::codec::Outgoing;
use crate::proxy::fault::Fault;
use crate::proxy::forward::{Answered, Exchanged};
use crate::proxy::journal::Journal;
use crate::proxy::retry::{TryFailed, may_repeat};
use crate::proxy::terms::Terms;
use crate::proxy::worker::Worker;

/// How often a connection may turn out to be closed before the request was begun on it.
const ROUNDS: usize = 4;

/// Sends `request`, which is one of HTTP/2 already, to this Endpoint.
///
/// # Errors
/// Why nobody answered, and the body if the request may be sent to somebody else.
pub async fn try_endpoint(
    worker: &Rc<Worker>,
    endpoint: SocketAddr,
    request: &Outgoing<'_>,
    body: RequestBody,
    terms: &Terms,
    journal: &mut Journal,
) -> Result<Answered, TryFailed> {
    let on = terms.retry.on;
    let mut body = body;
    for round in 1.. {
        let Opened { hold, connect } = match worker.http2().open(endpoint, terms).await {
            Ok(opened) => opened,
            Err(OpenError::Io(e)) => {
                tracing::debug!(%endpoint, error = %e, "an endpoint did not accept");
                return Err(TryFailed::connecting(&e, body, on));
            }
            Err(OpenError::Full) => break,
        };
        if let (Some(record), Some(_)) = (&mut journal.upstream, connect) {
            record.connect = connect;
        }
        let repeat = body.is_empty() && may_repeat(&request.parts.method, &terms.retry);
        let failed = match exchange(hold, written(request, body)).await {
            Ok((response, hold)) => {
                let bad = on.has(Failures::status(response.status().as_u16()));
                let exchanged = Exchanged::Http2 { response, hold };
                return Ok((exchanged, (bad && repeat).then_some(RequestBody::Empty)));
            }
            Err(failed) => failed,
        };
        tracing::debug!(%endpoint, error = ?failed.error, "an exchange failed");
        match failed.unsent {
            // The connection ended before it took the request: nobody's fault.
            Some(unsent) if round < ROUNDS => body = unsent,
            _ => return Err(failed.judge(repeat, journal.upload.as_deref(), on)),
        }
    }
    Err(TryFailed {
        fault: Fault::Overloaded,
        kind: Failures::NONE,
        again: None,
        eject: false,
    })
}

/// The request for one try.
fn written(request: &Outgoing<'_>, body: RequestBody) -> Request<RequestBody> {
    let parts = request.parts;
    let mut request = Request::new(body);
    *request.method_mut() = parts.method.clone();
    *request.uri_mut() = parts.uri.clone();
    *request.version_mut() = parts.version;
    *request.headers_mut() = parts.headers.clone();
    request
}

/// Why an exchange failed.
struct Failed {
    /// The request's body, if nothing of the request was sent.
    unsent: Option<RequestBody>,
    timed_out: bool,
    error: Option<hyper::Error>,
}

impl Failed {
    fn judge(self, repeat: bool, upload: Option<&body::Upload>, on: Failures) -> TryFailed {
        let waits = upload.is_some_and(|upload| upload.waiting.get());
        let (fault, kind) = match upload.and_then(|upload| upload.fault.get()) {
            Some(fault) => (fault, Failures::NONE),
            None if self.timed_out && waits => (Fault::BodyTimeout, Failures::NONE),
            None if self.timed_out => (Fault::UpstreamTimeout, Failures::TIMEOUT),
            None => (Fault::UpstreamRefused, Failures::ERROR),
        };
        let repeated = repeat.then_some(RequestBody::Empty);
        TryFailed {
            fault,
            kind,
            again: self.unsent.or(repeated).filter(|_| on.has(kind)),
            eject: false,
        }
    }
}

async fn exchange(
    hold: Hold,
    request: Request<RequestBody>,
) -> Result<(Response<Incoming>, Hold), Failed> {
    let stream = hold.stream().clone();
    let request = request.map(|body| Upload::new(body, &stream));
    let mut sender = hold.connection().sender();
    let mut answer = pin!(sender.try_send_request(request));
    let answered = std::future::poll_fn(|cx| {
        if stream.poll_expired(cx) {
            return Poll::Ready(None);
        }
        answer.as_mut().poll(cx).map(Some)
    })
    .await;
    match answered {
        Some(Ok(response)) => Ok((response, hold)),
        Some(Err(mut e)) => Err(Failed {
            unsent: e.take_message().map(|it| it.into_body().into_body()),
            timed_out: stream.is_expired() || hold.connection().is_expired(),
            error: Some(e.into_error()),
        }),
        None => Err(Failed {
            unsent: None,
            timed_out: true,
            error: None,
        }),
    }
}
