//! How one request is exchanged with pods: what its Location says, else what the process says.

use std::time::Duration;

use crate::config::Timeouts;
use crate::model::{Exchange, Policy, Protocol, Retry};

/// See the module's text. Set on a connection for each request anew, as connections are shared by
/// Locations.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// What is spoken.
    pub protocol: Protocol,
    /// To connect.
    pub connect: Duration,
    /// Between two reads.
    pub read: Duration,
    /// Between two writes.
    pub send: Duration,
    /// For which an upgraded connection is kept without a byte either way.
    pub tunnel: Duration,
    /// What is tried again.
    pub retry: Retry,
}

impl Terms {
    /// What holds for a Location with this policy.
    pub fn new(timeouts: &Timeouts, policy: Option<&Policy>) -> Self {
        let own = policy.map_or(Exchange::default(), |policy| policy.exchange);
        Terms {
            protocol: own.protocol,
            connect: own.connect_timeout.unwrap_or(timeouts.connect),
            read: own.read_timeout.unwrap_or(timeouts.read),
            send: own.send_timeout.unwrap_or(timeouts.send),
            // nginx knows one time for both, and long ones are written for WebSockets.
            tunnel: own.read_timeout.unwrap_or_default().max(timeouts.tunnel),
            retry: own.retry.unwrap_or(Retry::DEFAULT),
        }
    }
}
