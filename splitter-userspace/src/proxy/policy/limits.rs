use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use http::StatusCode;
use http::header::{CONTENT_TYPE, HeaderValue};

use super::{Refusal, Reply};
use crate::model::RateLimits;
use crate::proxy::limiter::{Hold, Limiter, Nanos, Refused};

/// Counts the request, or answers that there were too many.
pub fn enter(
    limits: &RateLimits,
    limiter: &Arc<Limiter>,
    client: IpAddr,
    now: Nanos,
) -> Result<Option<Hold>, Refusal> {
    limiter.enter(limits, client, now).map_err(|refused| {
        let (name, status, text) = match refused {
            Refused::Rate => ("rate-limited", limits.rate_status, "too many requests"),
            Refused::Connections => (
                "connections-limited",
                limits.connections_status,
                "too many requests at once",
            ),
            Refused::Full => ("limits-full", limits.rate_status, "too many clients"),
        };
        let status = StatusCode::from_u16(status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        let mut reply = Reply::new(name, status);
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        reply.headers.insert(CONTENT_TYPE, plain);
        reply.body = Bytes::from(format!("{} {text}\n", status.as_str()));
        reply.into()
    })
}
