//! What becomes of a try that failed.

use http::Method;

use super::body::{RequestBody, Upload};
use super::fault::Fault;
use super::upstream::{Failed, is_tls_failure};
use crate::model::{Failures, Retry};

/// Why one try ended.
pub struct TryFailed {
    /// What to answer if nobody else is asked.
    pub fault: Fault,
    /// What kind of failure it was; none when it was the client's.
    pub kind: Failures,
    /// The request's body, if the request may be sent once more.
    pub again: Option<RequestBody>,
    /// Whether the Endpoint is to be left alone for a while.
    pub eject: bool,
}

impl TryFailed {
    /// No connection: nothing of the request has been sent.
    pub fn connecting(error: &std::io::Error, body: RequestBody, on: Failures) -> Self {
        let insecure = is_tls_failure(error);
        let (fault, kind) = match error.kind() {
            _ if insecure => (Fault::UpstreamTls, Failures::ERROR),
            std::io::ErrorKind::TimedOut => (Fault::ConnectTimeout, Failures::CONNECT_TIMEOUT),
            _ => (Fault::UpstreamRefused, Failures::ERROR),
        };
        TryFailed {
            fault,
            kind,
            again: on.has(kind).then_some(body),
            // What this Location takes for a proof says nothing about the Endpoint to others.
            eject: !insecure,
        }
    }

    /// A request whose exchange failed goes on if nothing of it was sent, or if it may be
    /// repeated, its Location wants it repeated after this failure, and no answer had begun (except
    /// where an answer that is none is such a failure).
    ///
    /// `repeat` is what [`may_repeat`] says of a request without a body.
    ///
    /// `kept` is whether the connection had been used before: when such a connection breaks, the
    /// Endpoint has most likely closed it, which says nothing about the request.
    pub fn exchanging(
        failed: Failed,
        repeat: bool,
        upload: Option<&Upload>,
        on: Failures,
        kept: bool,
    ) -> Self {
        let (fault, kind) = blame(&failed, upload);
        let begun = failed.answered && kind == Failures::ERROR;
        let repeat = repeat && on.has(kind) && !begun;
        let unsent = failed.unsent && (kept || on.has(kind));
        TryFailed {
            fault,
            kind,
            again: failed.body.filter(|_| unsent || repeat),
            eject: false,
        }
    }
}

/// Whose fault it is that an exchange failed.
fn blame(failed: &Failed, upload: Option<&Upload>) -> (Fault, Failures) {
    if let Some(fault) = upload.and_then(|upload| upload.fault.get()) {
        return (fault, Failures::NONE);
    }
    match failed.timed_out {
        true if upload.is_some_and(|upload| upload.waiting.get()) => {
            (Fault::BodyTimeout, Failures::NONE)
        }
        true => (Fault::UpstreamTimeout, Failures::TIMEOUT),
        false if failed.error.is_invalid() => (Fault::UpstreamInvalid, Failures::INVALID_HEADER),
        false => (Fault::UpstreamRefused, Failures::ERROR),
    }
}

/// Whether a request without a body may be sent again: the method is idempotent (RFC 9110 9.2.2), or
/// the Location says that it does not matter.
pub fn may_repeat(method: &Method, retry: &Retry) -> bool {
    let wanted = retry.on != Failures::NONE && retry.tries > 1;
    wanted && (method.is_idempotent() || retry.on.has(Failures::NON_IDEMPOTENT))
}
