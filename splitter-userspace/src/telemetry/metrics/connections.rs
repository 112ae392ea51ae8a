use super::registry::Inner;
use super::{Counter, Gauge, families};

/// Counts the client connections of one worker.
#[derive(Clone)]
pub struct ConnectionMetrics {
    accepted: Counter,
    refused: Counter,
    open: Gauge,
    requests: Gauge,
}

impl ConnectionMetrics {
    pub(super) fn new(inner: &Inner, pool: &'static str) -> Self {
        let labels = [("pool", pool)];
        ConnectionMetrics {
            accepted: inner.counter(&families::CONNECTIONS_ACCEPTED, &labels),
            refused: inner.counter(&families::CONNECTIONS_REFUSED, &labels),
            open: inner.gauge(&families::CONNECTIONS_OPEN, &labels),
            requests: inner.gauge(&families::REQUESTS_OPEN, &labels),
        }
    }

    /// Counts an accepted connection, open until the guard is dropped.
    #[must_use = "the connection counts as open while the guard lives"]
    pub fn open(&self) -> OpenGuard {
        self.accepted.inc();
        OpenGuard::new(&self.open)
    }

    /// Counts a connection that was accepted and closed at once, the pool being at its limit.
    pub fn refuse(&self) {
        self.accepted.inc();
        self.refused.inc();
    }

    /// Counts a request as in flight until the guard is dropped.
    #[must_use = "the request counts as in flight while the guard lives"]
    pub fn request(&self) -> OpenGuard {
        OpenGuard::new(&self.requests)
    }

    /// Requests that this worker has in hand now.
    pub fn requests_now(&self) -> i64 {
        self.requests.get()
    }

    /// Connections of this worker that are open now.
    pub fn open_now(&self) -> i64 {
        self.open.get()
    }
}

/// Something that counts in a gauge as long as this lives.
pub struct OpenGuard(Gauge);

impl OpenGuard {
    fn new(gauge: &Gauge) -> Self {
        gauge.add(1);
        OpenGuard(gauge.clone())
    }
}

impl Drop for OpenGuard {
    fn drop(&mut self) {
        self.0.add(-1);
    }
}
