//! The proxy's own answers to clients that speak gRPC.

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};

use super::fault::Fault;
use super::policy::Reply;

const GRPC_STATUS: HeaderName = HeaderName::from_static("grpc-status");
const GRPC_MESSAGE: HeaderName = HeaderName::from_static("grpc-message");

/// Whether a request is one of gRPC (and not of gRPC-Web, which has another form).
pub fn is_grpc(headers: &HeaderMap) -> bool {
    let kind = headers.get(CONTENT_TYPE).map(HeaderValue::as_bytes);
    let rest = kind.and_then(|kind| kind.strip_prefix(b"application/grpc"));
    rest.is_some_and(|rest| matches!(rest.first(), None | Some(b'+' | b';' | b' ')))
}

/// Says a fault in gRPC's words, beside the HTTP status, which stays as ingress-nginx sends it. The
/// word is the one to which gRPC's own table (http-grpc-status-mapping) leads by the status, so that
/// clients that look at only one of them agree; only a body that is too large has a better one.
pub fn say(fault: Fault, headers: &mut HeaderMap) {
    say_status(fault.status(), headers);
    headers.insert(GRPC_MESSAGE, HeaderValue::from_static(fault.text()));
}

/// Makes the refusal of a policy one that gRPC knows: a sentence in its body would be taken for a
/// message that cannot be read. Answers that refuse nothing stay as they are.
pub fn translate(reply: &mut Reply) {
    if reply.status.is_client_error() || reply.status.is_server_error() {
        say_status(reply.status, &mut reply.headers);
        let name = HeaderValue::from_static(reply.name);
        reply.headers.insert(GRPC_MESSAGE, name);
        reply.body = Bytes::new();
    }
}

fn say_status(status: StatusCode, headers: &mut HeaderMap) {
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    headers.insert(GRPC_STATUS, HeaderValue::from_static(word(status)));
}

fn word(status: StatusCode) -> &'static str {
    const UNKNOWN: &str = "2";
    const PERMISSION_DENIED: &str = "7";
    const RESOURCE_EXHAUSTED: &str = "8";
    const UNIMPLEMENTED: &str = "12";
    const INTERNAL: &str = "13";
    const UNAVAILABLE: &str = "14";
    const UNAUTHENTICATED: &str = "16";
    match status.as_u16() {
        400 => INTERNAL,
        401 => UNAUTHENTICATED,
        403 => PERMISSION_DENIED,
        404 => UNIMPLEMENTED,
        413 => RESOURCE_EXHAUSTED,
        429 | 502 | 503 | 504 => UNAVAILABLE,
        _ => UNKNOWN,
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    #[test]
    fn grpc_is_known_by_its_content_type() {
        let is = |kind: &str| {
            let kind = HeaderValue::from_str(kind).unwrap();
            is_grpc(&HeaderMap::from_iter([(CONTENT_TYPE, kind)]))
        };
        for kind in [
            "application/grpc",
            "application/grpc+proto",
            "application/grpc;x=y",
        ] {
            assert!(is(kind), "{kind}");
        }
        for kind in [
            "application/grpc-web",
            "application/grpc-web+proto",
            "text/plain",
            "",
        ] {
            assert!(!is(kind), "{kind}");
        }
        assert!(!is_grpc(&HeaderMap::new()));
    }

    #[test]
    fn a_fault_has_the_word_of_its_status() {
        for (fault, word) in [
            (Fault::UpstreamRefused, "14"),
            (Fault::UpstreamTimeout, "14"),
            (Fault::NoEndpoint, "14"),
            (Fault::BodyTooLarge, "8"),
            (Fault::BadBody, "13"),
            (Fault::BodyTimeout, "2"),
        ] {
            let mut headers = HeaderMap::new();
            say(fault, &mut headers);
            assert_eq!(headers[GRPC_STATUS], word, "{fault:?}");
            assert_eq!(headers[GRPC_MESSAGE], fault.text());
        }
    }

    #[test]
    fn a_refusal_has_a_word_and_no_body_and_a_redirect_stays_one() {
        let mut refusal = Reply::text("basic-unknown", StatusCode::UNAUTHORIZED, "who is this");
        translate(&mut refusal);
        assert_eq!(refusal.headers[GRPC_STATUS], "16");
        assert_eq!(refusal.headers[GRPC_MESSAGE], "basic-unknown");
        assert!(refusal.body.is_empty());
        let mut moved = Reply::new("redirect", StatusCode::FOUND);
        translate(&mut moved);
        assert!(moved.headers.is_empty());
    }
}
