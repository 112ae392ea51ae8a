use http::{HeaderValue, StatusCode, header};

use super::Reply;
use crate::model::Redirect;

/// The answer that sends the client elsewhere.
pub fn reply(redirect: &Redirect) -> Reply {
    let status = StatusCode::from_u16(redirect.status).unwrap_or(StatusCode::MOVED_PERMANENTLY);
    let mut reply = Reply::new("redirect", status);
    if let Ok(target) = HeaderValue::from_str(&redirect.target) {
        reply.headers.insert(header::LOCATION, target);
    }
    reply
}
