use http::{HeaderValue, StatusCode, header};

use super::Reply;
use crate::model::{HttpsRedirect, Redirect};
use crate::routing::Wanted;

/// The answer that sends the client elsewhere.
pub fn reply(redirect: &Redirect, wanted: &Wanted<'_>) -> Reply {
    let status = StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::MOVED_PERMANENTLY);
    to("redirect", status, &wanted.redirected(redirect))
}

/// The answer that sends a client from http to https, if it is to go.
pub fn to_https(redirect: HttpsRedirect, wanted: &Wanted<'_>) -> Option<Reply> {
    let target = wanted.by_https(redirect)?;
    Some(to(
        "https-redirect",
        StatusCode::PERMANENT_REDIRECT,
        &target,
    ))
}

fn to(name: &'static str, status: StatusCode, target: &str) -> Reply {
    let mut reply = Reply::new(name, status);
    if let Ok(target) = HeaderValue::from_str(target) {
        reply.headers.insert(header::LOCATION, target);
    }
    reply
}
