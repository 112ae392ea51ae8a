//! CORS: answers to preflights, and the fields of every other answer.

use http::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE,
    CONTENT_TYPE, HeaderMap, HeaderValue, ORIGIN, VARY,
};
use http::{Method, StatusCode, request};

use super::Reply;
use crate::model::{Cors, Origins};

/// What Access-Control-Allow-Origin is to say to this request.
pub fn allowed(cors: &Cors, parts: &request::Parts) -> Option<HeaderValue> {
    cors.origins.allow(parts.headers.get(ORIGIN))
}

/// The answer to a preflight: as in ingress-nginx, every OPTIONS of an origin that is allowed.
pub fn preflight(parts: &request::Parts, allowed: Option<&HeaderValue>) -> Option<Reply> {
    (parts.method == Method::OPTIONS && allowed.is_some()).then(|| {
        let mut reply = Reply::new("cors-preflight", StatusCode::NO_CONTENT);
        let text = HeaderValue::from_static("text/plain; charset=utf-8");
        reply.headers.insert(CONTENT_TYPE, text);
        reply
    })
}

/// Sets the fields of an answer. They replace the pod's own, but an origin that is not allowed gets
/// what the pod says.
pub fn set(cors: &Cors, allowed: Option<&HeaderValue>, headers: &mut HeaderMap) {
    /// As many as are set below: the table grows at most once.
    const FIELDS: usize = 7;
    if allowed.is_some() {
        headers.reserve(FIELDS);
    }
    if cors.origins != Origins::Any {
        vary(headers);
    }
    let Some(origin) = allowed else {
        return;
    };
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    match cors.credentials {
        true => {
            let yes = HeaderValue::from_static("true");
            headers.insert(ACCESS_CONTROL_ALLOW_CREDENTIALS, yes);
        }
        // The pod's own would allow what the Ingress does not.
        false => drop(headers.remove(ACCESS_CONTROL_ALLOW_CREDENTIALS)),
    }
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, cors.methods.clone());
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, cors.headers.clone());
    headers.insert(ACCESS_CONTROL_MAX_AGE, cors.max_age.clone());
    if let Some(expose) = &cors.expose {
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, expose.clone());
    }
}

/// Has caches keep the answers to different origins apart.
fn vary(headers: &mut HeaderMap) {
    let names = headers.get_all(VARY).iter().map(HeaderValue::as_bytes);
    let mut names = names.flat_map(|line| line.split(|byte| *byte == b','));
    let known = names.any(|name| {
        let name = name.trim_ascii();
        name == b"*" || name.eq_ignore_ascii_case(b"origin")
    });
    if !known {
        headers.append(VARY, HeaderValue::from_static("Origin"));
    }
}
