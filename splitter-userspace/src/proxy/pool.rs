//! Kept connections of one worker, by Endpoint and TLS identity; the one used last is used first.
//!
//! More than the limit are kept for a moment, as requests that come in waves (the streams of HTTP/2
//! connections, say) need all of them again at once: only those go that nobody has needed from one
//! sweep to the next. There are never more than requests were in hand at a time.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::time::Duration;

use hashbrown::HashMap;

use super::upstream::Upstream;

/// An Endpoint, and the [identity](super::terms::Terms::identity) that connections were opened
/// with: what was proven for one is not proven for another.
type Key = (SocketAddr, u64);

/// See the module's text. Boxed, as a connection moves whenever it is taken or kept.
pub struct UpstreamPool {
    idle: RefCell<HashMap<Key, Kept<Box<Upstream>>, foldhash::fast::RandomState>>,
    per_endpoint: usize,
    timeout: Duration,
}

impl UpstreamPool {
    /// Keeps `per_endpoint` connections to one Endpoint, each for `timeout` without use, and more
    /// while they are needed. None at all for 0.
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
        while let Some(upstream) = kept.take() {
            if upstream.is_alive() {
                upstream.socket().wait_for_ever();
                return Some(upstream);
            }
        }
        None
    }

    /// Keeps a connection whose exchange is over; closes it if it cannot be used again.
    pub fn put(&self, upstream: Box<Upstream>) {
        if !upstream.is_ready() || self.per_endpoint == 0 {
            return;
        }
        let mut idle = self.idle.borrow_mut();
        let kept = idle.entry((upstream.endpoint(), upstream.identity()));
        upstream.socket().wait_at_most(self.timeout);
        kept.or_default().all.push(upstream);
    }

    /// Closes what has ended, was not used for too long, or is too much. Called now and then.
    pub fn sweep(&self) {
        self.idle.borrow_mut().retain(|_, kept| {
            kept.all.retain(|upstream| upstream.is_alive());
            kept.shrink(self.per_endpoint);
            !kept.all.is_empty()
        });
    }
}

/// What is kept for one Key, the last used at the end.
struct Kept<T> {
    all: Vec<T>,
    /// The fewest there were since they were looked at: so many were not needed.
    fewest: usize,
}

impl<T> Kept<T> {
    fn take(&mut self) -> Option<T> {
        let taken = self.all.pop();
        self.fewest = self.fewest.min(self.all.len());
        taken
    }

    /// Drops those beyond `limit` that were not needed since the last call, the oldest first.
    fn shrink(&mut self, limit: usize) {
        let needless = self.fewest.min(self.all.len().saturating_sub(limit));
        self.all.drain(..needless);
        self.fewest = self.all.len();
    }
}

impl<T> Default for Kept<T> {
    fn default() -> Self {
        Kept {
            all: Vec::new(),
            fewest: 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Takes and puts back, so many at a time.
    fn wave(kept: &mut Kept<usize>, count: usize) {
        let taken: Vec<_> = (0..count).filter_map(|_| kept.take()).collect();
        kept.all.extend(taken);
    }

    #[test]
    fn what_waves_need_stays_and_the_rest_goes_down_to_the_limit() {
        let mut kept = Kept::default();
        kept.all.extend(0..10);
        // They came since the last look: all were needed.
        kept.shrink(3);
        assert_eq!(kept.all.len(), 10);
        wave(&mut kept, 8);
        kept.shrink(3);
        assert_eq!(kept.all.len(), 8, "two were not needed");
        assert!(!kept.all.contains(&0) && !kept.all.contains(&1));
        wave(&mut kept, 8);
        kept.shrink(3);
        assert_eq!(kept.all.len(), 8);
        // Nobody asks any more.
        kept.shrink(3);
        assert_eq!(kept.all.len(), 3);
        kept.shrink(3);
        assert_eq!(kept.all.len(), 3);
    }

    #[test]
    fn what_ended_is_not_counted_twice() {
        let mut kept = Kept::default();
        kept.all.extend(0..10);
        kept.shrink(3);
        kept.all.truncate(4);
        kept.shrink(3);
        assert_eq!(kept.all.len(), 3);
        assert_eq!(kept.take(), Some(3));
        assert_eq!(
            [kept.take(), kept.take(), kept.take()],
            [Some(2), Some(1), None]
        );
    }
}
