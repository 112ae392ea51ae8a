use std::net::IpAddr;
use std::sync::Arc;

use http::StatusCode;

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
        Reply::text(name, status, text).into()
    })
}
