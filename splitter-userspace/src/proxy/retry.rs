//! What becomes of a try that failed.

use http::{HeaderMap, Method, Request, Uri, Version};

use super::body::{RequestBody, Upload};
use super::fault::Fault;
use super::upstream::Failed;
use crate::model::{Failures, Retry};

/// Why one try ended.
pub struct TryFailed {
    /// What to answer if nobody else is asked.
    pub fault: Fault,
    /// What kind of failure it was; none when it was the client's.
    pub kind: Failures,
    /// The request, if it may be sent once more.
    pub again: Option<Request<RequestBody>>,
    /// Whether the Endpoint is to be left alone for a while.
    pub eject: bool,
}

impl TryFailed {
    /// No connection: nothing of the request has been sent.
    pub fn connecting(error: &std::io::Error, request: Request<RequestBody>, on: Failures) -> Self {
        let (fault, kind) = match error.kind() {
            std::io::ErrorKind::TimedOut => (Fault::ConnectTimeout, Failures::CONNECT_TIMEOUT),
            _ => (Fault::UpstreamRefused, Failures::ERROR),
        };
        TryFailed {
            fault,
            kind,
            again: on.has(kind).then_some(request),
            eject: true,
        }
    }

    /// A request whose exchange failed goes on if nothing of it was written, or if it may be
    /// repeated, its Location wants it repeated after this failure, and no answer had begun (except
    /// where an answer that is none is such a failure).
    ///
    /// `kept` is whether the connection had been used before: when such a connection breaks, the
    /// Endpoint has most likely closed it, which says nothing about the request.
    pub fn exchanging(
        failed: Failed,
        copy: Option<Copy>,
        upload: Option<&Upload>,
        on: Failures,
        kept: bool,
    ) -> Self {
        let (fault, kind) = blame(&failed, upload);
        let begun = failed.answered && kind == Failures::ERROR;
        let copy = copy.filter(|_| on.has(kind) && !begun);
        let unsent = failed.unsent.filter(|_| kept || on.has(kind));
        TryFailed {
            fault,
            kind,
            again: unsent.or_else(|| copy.map(Copy::into_request)),
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
        false if failed.error.is_parse() => (Fault::UpstreamInvalid, Failures::INVALID_HEADER),
        false => (Fault::UpstreamRefused, Failures::ERROR),
    }
}

/// A head to send again, when that does no harm: there is no body, and the method is idempotent
/// (RFC 9110 9.2.2) or the Location says that it does not matter.
pub struct Copy {
    method: Method,
    uri: Uri,
    version: Version,
    headers: HeaderMap,
}

impl Copy {
    /// Of a request that could be sent once more.
    pub fn of(request: &Request<RequestBody>, retry: &Retry) -> Option<Self> {
        let harmless = request.method().is_idempotent() || retry.on.has(Failures::NON_IDEMPOTENT);
        let wanted = retry.on != Failures::NONE && retry.tries > 1;
        if !harmless || !wanted || !matches!(request.body(), RequestBody::Empty) {
            return None;
        }
        Some(Copy {
            method: request.method().clone(),
            uri: request.uri().clone(),
            version: request.version(),
            headers: request.headers().clone(),
        })
    }

    /// The request.
    pub fn into_request(self) -> Request<RequestBody> {
        let mut request = Request::new(RequestBody::Empty);
        *request.method_mut() = self.method;
        *request.uri_mut() = self.uri;
        *request.version_mut() = self.version;
        *request.headers_mut() = self.headers;
        request
    }
}
