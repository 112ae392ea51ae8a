use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use http::{HeaderMap, Method, Version};

use crate::model::{Location, LocationId};
use crate::routing::{Decision, Live};

/// One finished request, as the proxy saw it. Borrowed: nothing of it outlives the call.
pub struct Record<'a> {
    /// The state that decided it.
    pub live: &'a Live,
    /// Where it belonged; none when no Location matched or the request was refused before.
    pub location: Option<(LocationId, &'a Location)>,
    /// Who was chosen to answer. Set only when a backend was chosen: a refusal or redirect before
    /// that has none, and so no canary label.
    pub decision: Option<Decision>,
    /// Why the proxy itself answered instead of a backend, e.g. `no-location`,
    /// `upstream-refused`; none when a backend's answer was passed on.
    pub fault: Option<&'static str>,
    /// Which pool took it: `north-south`, `east-west`, `all`.
    pub pool: &'static str,
    /// Where the client is, by its address alone: `north-south`, `east-west`, `node`, `local`.
    pub class: &'static str,
    /// The peer of the connection.
    pub client: IpAddr,
    /// The request's method.
    pub method: &'a Method,
    /// Host name asked for, without port; empty when there was none.
    pub host: &'a str,
    /// Path and query as they came.
    pub target: &'a str,
    /// Protocol version downstream.
    pub version: Version,
    /// The request's headers as they came (for user agent and referer in the log).
    pub headers: &'a HeaderMap,
    /// The id given to the request, as sent in X-Request-ID.
    pub request_id: &'a str,
    /// The status sent downstream; 499 when the client left before there was one.
    pub status: u16,
    /// Request size: head (as reckoned) and body, in bytes.
    pub request_bytes: u64,
    /// Response body bytes sent downstream.
    pub response_bytes: u64,
    /// From the request's head complete to the last byte of the answer handed to the socket.
    pub duration: Duration,
    /// The exchange with the backend, if there was one.
    pub upstream: Option<UpstreamRecord>,
}

/// The (last) exchange with a backend.
#[derive(Clone, Copy, Debug)]
pub struct UpstreamRecord {
    /// The Endpoint.
    pub addr: SocketAddr,
    /// How many Endpoints were tried, this one among them.
    pub tries: u32,
    /// Time to connect; none when a kept connection was used.
    pub connect: Option<Duration>,
    /// From the choice of the Endpoint to the response's head.
    pub header: Option<Duration>,
    /// From the choice of the Endpoint to the response's last byte.
    pub response: Duration,
    /// The backend's own status, if it answered.
    pub status: Option<u16>,
}
