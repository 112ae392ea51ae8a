//! How one request is exchanged with pods: what its Location says, else what the process says.

use std::sync::Arc;
use std::time::Duration;

use super::fault::Fault;
use super::worker::Worker;
use crate::config::Timeouts;
use crate::model::{Exchange, Policy, Protocol, Retry};
use crate::tls::UpstreamClient;

/// See the module's text. Set on a connection for each request anew, as connections are shared by
/// Locations.
#[derive(Clone, Debug)]
pub struct Terms {
    /// What is spoken.
    pub protocol: Protocol,
    /// What connections are secured with; none is cleartext.
    pub tls: Option<Arc<UpstreamClient>>,
    /// To connect, TLS included.
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
    ///
    /// # Errors
    /// When pods are to be spoken to over TLS, and it cannot be told how.
    pub fn new(worker: &Worker, policy: Option<&Policy>) -> Result<Self, Fault> {
        let Some(policy) = policy else {
            return Ok(Self::plain(worker.timeouts()));
        };
        let mut terms = Self::with(worker.timeouts(), policy.exchange);
        if let Some(tls) = &policy.upstream_tls {
            let certificates = worker.certificates();
            let client = certificates.upstream(tls);
            terms.tls = Some(client.ok_or(Fault::UpstreamTlsBroken)?.clone());
        }
        Ok(terms)
    }

    /// What holds where nothing is said: cleartext.
    pub fn plain(timeouts: &Timeouts) -> Self {
        Self::with(timeouts, Exchange::default())
    }

    /// What holds for bytes that are passed on as they are.
    pub fn untouched(worker: &Worker, policy: Option<&Policy>) -> Self {
        let exchange = policy.map_or_else(Exchange::default, |it| it.exchange);
        Self::with(worker.timeouts(), exchange)
    }

    fn with(timeouts: &Timeouts, own: Exchange) -> Self {
        Terms {
            protocol: own.protocol,
            tls: None,
            connect: own.connect_timeout.unwrap_or(timeouts.connect),
            read: own.read_timeout.unwrap_or(timeouts.read),
            send: own.send_timeout.unwrap_or(timeouts.send),
            // nginx knows one time for both, and long ones are written for WebSockets.
            tunnel: own.read_timeout.unwrap_or_default().max(timeouts.tunnel),
            retry: own.retry.unwrap_or(Retry::DEFAULT),
        }
    }

    /// Which kept connections may be used: those of the same TLS, or of none (0).
    pub fn identity(&self) -> u64 {
        self.tls.as_ref().map_or(0, |tls| tls.id())
    }
}
