//! Telling that something has changed, and when a burst of changes is over.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until};

use super::store::Change;

/// How long nothing may change before a burst of changes counts as over.
pub const QUIET: Duration = Duration::from_millis(10);

/// How long a burst that does not end may hold back what it has changed so far.
pub const BURST_LIMIT: Duration = Duration::from_millis(50);

/// Who is told about changes. Clones share it.
#[derive(Clone, Default)]
pub(super) struct Signals {
    /// Of what objects ask for.
    pub content: Arc<Notify>,
    /// Of what was written about objects, and of what they ask for.
    pub status: Arc<Notify>,
}

impl Signals {
    pub(super) fn tell(&self, change: Change) {
        if change >= Change::Content {
            self.content.notify_one();
        }
        if change >= Change::Status {
            self.status.notify_one();
        }
    }
}

/// Waits for the ends of bursts.
pub(super) struct Bursts {
    signal: Arc<Notify>,
    /// The burst that was not reported yet.
    burst: Option<Burst>,
}

impl Bursts {
    pub(super) fn new(signal: Arc<Notify>) -> Self {
        Bursts {
            signal,
            burst: None,
        }
    }

    /// Waits for a change, then until [`QUIET`] has passed without a further one or
    /// [`BURST_LIMIT`] since the first. May be cancelled: no change is lost.
    pub(super) async fn over(&mut self) {
        loop {
            let Some(burst) = &mut self.burst else {
                self.signal.notified().await;
                self.burst = Some(Burst::begin(Instant::now()));
                continue;
            };
            tokio::select! {
                biased;
                () = sleep_until(burst.due()) => {
                    self.burst = None;
                    return;
                }
                () = self.signal.notified() => burst.last = Instant::now(),
            }
        }
    }
}

/// Changes that follow each other closely.
struct Burst {
    first: Instant,
    last: Instant,
}

impl Burst {
    fn begin(now: Instant) -> Self {
        Burst {
            first: now,
            last: now,
        }
    }

    /// When it is reported, if nothing more happens.
    fn due(&self) -> Instant {
        (self.last + QUIET).min(self.first + BURST_LIMIT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_change_is_told_when_it_is_quiet() {
        let now = Instant::now();
        assert_eq!(Burst::begin(now).due(), now + QUIET);
    }

    #[test]
    fn a_storm_is_told_within_the_limit() {
        let now = Instant::now();
        let mut burst = Burst::begin(now);
        let step = QUIET / 2;
        let mut time = now;
        while time < burst.due() {
            burst.last = time;
            time += step;
        }
        assert!(time >= now + BURST_LIMIT - QUIET, "each change puts it off");
        assert!(burst.due() <= now + BURST_LIMIT);
    }

    #[test]
    fn only_content_is_told_to_those_who_route() {
        let told = |change| {
            let signals = Signals::default();
            signals.tell(change);
            let is_told = |signal: &Arc<Notify>| {
                let waiting = std::pin::pin!(signal.notified());
                let mut context = std::task::Context::from_waker(std::task::Waker::noop());
                Future::poll(waiting, &mut context).is_ready()
            };
            (is_told(&signals.content), is_told(&signals.status))
        };
        assert_eq!(told(Change::None), (false, false));
        assert_eq!(told(Change::Status), (false, true));
        assert_eq!(told(Change::Content), (true, true));
    }
}
