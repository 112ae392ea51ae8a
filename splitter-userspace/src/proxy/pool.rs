//! Kept connections of one worker, by Endpoint and TLS identity; the one used last is used first.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use hashbrown::HashMap;

use super::upstream::Upstream;

/// An Endpoint, and the [identity](super::terms::Terms::identity) that connections were opened
/// with: what was proven for one is not proven for another.
type Key = (SocketAddr, u64);

/// See the module's text. Boxed, as a connection moves whenever it is taken or kept.
#[allow(
    clippy::vec_box,
    reason = "moving a box is cheaper than moving a connection"
)]
pub struct UpstreamPool {
    idle: RefCell<HashMap<Key, Vec<Box<Upstream>>, foldhash::fast::RandomState>>,
    per_endpoint: usize,
    timeout: Duration,
}

impl UpstreamPool {
    /// Keeps at most `per_endpoint` connections to one Endpoint, each for `timeout` without use.
    pub fn new(per_endpoint: usize, timeout: Duration) -> Self {
        UpstreamPool {
            idle: RefCell::default(),
            per_endpoint,
            timeout,
        }
    }

    /// A connection of this identity that still stands.
    pub fn take(&self, endpoint: SocketAddr, identity: u64) -> Option<Box<Upstream>> {
        let mut idle = self.idle.borrow_mut();
        let kept = idle.get_mut(&(endpoint, identity))?;
        while let Some(upstream) = kept.pop() {
            if upstream.is_alive() {
                upstream.socket().wait_for_ever();
                return Some(upstream);
            }
        }
        None
    }

    /// Keeps a connection whose exchange is over; closes it if it cannot be used again.
    pub fn put(&self, upstream: Box<Upstream>) {
        if !upstream.is_ready() {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let kept = idle
            .entry((upstream.endpoint(), upstream.identity()))
            .or_default();
        if kept.len() < self.per_endpoint {
            upstream.socket().wait_at_most(self.timeout);
            kept.push(upstream);
        }
    }

    /// Closes what has ended or was not used for too long. Called now and then.
    pub fn sweep(&self) {
        self.idle.borrow_mut().retain(|_, kept| {
            kept.retain(|upstream| upstream.is_alive());
            !kept.is_empty()
        });
    }
}
