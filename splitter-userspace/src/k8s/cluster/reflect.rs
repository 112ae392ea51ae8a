//! Keeping a store in step with the API server, for ever.

use std::convert::Infallible;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use futures_util::StreamExt as _;
use kube::Api;
use kube::runtime::watcher::{self, watcher};

use super::kept::Kept;
use super::signal::Signals;
use super::store::Store;

/// Between a failed watch and the next try, to begin with; doubled each time.
const FIRST_PAUSE: Duration = Duration::from_millis(200);

/// The longest pause: how long after the API server is back its word may be waited for.
const LONGEST_PAUSE: Duration = Duration::from_secs(10);

/// How often a watch of one kind failed. Clones share it.
#[derive(Clone, Debug)]
pub(super) struct Failures {
    /// The kind, in the plural and in lower case.
    pub kind: &'static str,
    count: Arc<AtomicU64>,
}

impl Failures {
    pub(super) fn new(kind: &'static str) -> Self {
        Failures {
            kind,
            count: Arc::default(),
        }
    }

    pub(super) fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }

    fn add(&self) {
        self.count.fetch_add(1, Ordering::Relaxed);
    }
}

/// One kind to be watched.
pub(super) struct Reflector<K> {
    /// Where it is asked for.
    pub api: Api<K>,
    /// Which of them.
    pub config: watcher::Config,
    /// Where it is kept.
    pub store: Store<K>,
    /// Who wants to know.
    pub signals: Signals,
    /// How often it failed.
    pub failures: Failures,
    /// Without the right to read this kind, do as if there was none.
    pub optional: bool,
}

impl<K: Kept> Reflector<K> {
    /// Follows the API server. A failure keeps what there is; it is tried again until the end of
    /// the process.
    pub(super) async fn run(self) -> Infallible {
        let mut trouble = Trouble::default();
        loop {
            self.watch(&mut trouble).await;
        }
    }

    /// Returns when a new list is needed.
    async fn watch(&self, trouble: &mut Trouble) {
        let mut events = pin!(watcher(self.api.clone(), self.config.clone()));
        while let Some(event) = events.next().await {
            match event {
                Ok(event) => {
                    trouble.over(self.failures.kind, &event);
                    let change = self.store.apply(event);
                    self.signals.tell(change);
                }
                Err(error) => {
                    self.failures.add();
                    if self.optional && is_forbidden(&error) && !self.store.is_filled() {
                        self.store.give_up();
                        self.signals.tell(super::store::Change::Content);
                    }
                    trouble.pause(self.failures.kind, &error).await;
                    // The watcher would ask for the same old version for ever.
                    if is_gone(&error) {
                        return;
                    }
                }
            }
        }
    }
}

/// What is known about a watch that fails.
#[derive(Default)]
struct Trouble {
    /// Failures since something was last heard.
    failures: u32,
}

impl Trouble {
    /// Something was heard.
    fn over<K>(&mut self, kind: &str, event: &watcher::Event<K>) {
        // A list begins without asking the server.
        if matches!(event, watcher::Event::Init) {
            return;
        }
        if std::mem::take(&mut self.failures) > 1 {
            tracing::info!(kind, "the API server can be watched again");
        }
    }

    /// Says what is wrong, once, and waits.
    fn pause(&mut self, kind: &str, error: &watcher::Error) -> impl Future<Output = ()> {
        self.failures = self.failures.saturating_add(1);
        // The first one is often only the end of a connection.
        if self.failures == 2 {
            let error = chain(error);
            tracing::warn!(
                kind,
                error,
                "the API server cannot be watched; what is served stays as it is"
            );
        } else {
            let error = chain(error);
            tracing::debug!(kind, error, "a watch has failed");
        }
        tokio::time::sleep(jitter(pause(self.failures)))
    }
}

/// The pause after so many failures in a row.
fn pause(failures: u32) -> Duration {
    let doublings = failures.saturating_sub(1).min(16);
    FIRST_PAUSE
        .saturating_mul(1 << doublings)
        .min(LONGEST_PAUSE)
}

/// Between half of it and all of it, so that the nodes do not all come back at once.
pub(super) fn jitter(pause: Duration) -> Duration {
    pause.mul_f64(0.5 + fastrand::f64() / 2.0)
}

/// The error with its causes, on one line.
pub(super) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(inner) = cause {
        let inner_text = inner.to_string();
        if !text.contains(&inner_text) {
            text.push_str(": ");
            text.push_str(&inner_text);
        }
        cause = inner.source();
    }
    text
}

fn status(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status))
        | watcher::Error::WatchStartFailed(kube::Error::Api(status))
        | watcher::Error::WatchFailed(kube::Error::Api(status)) => Some(status.code),
        watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

fn is_gone(error: &watcher::Error) -> bool {
    status(error) == Some(410)
}

fn is_forbidden(error: &watcher::Error) -> bool {
    status(error) == Some(403)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_up_to_a_limit() {
        assert_eq!(pause(1), Duration::from_millis(200));
        assert_eq!(pause(2), Duration::from_millis(400));
        assert_eq!(pause(6), Duration::from_millis(6400));
        assert_eq!(pause(7), LONGEST_PAUSE);
        assert_eq!(pause(u32::MAX), LONGEST_PAUSE);
    }

    #[test]
    fn jitter_never_makes_a_pause_longer_or_next_to_nothing() {
        let pause = Duration::from_secs(4);
        for _ in 0..1000 {
            let found = jitter(pause);
            assert!(found >= pause / 2 && found <= pause, "{found:?}");
        }
    }
}
