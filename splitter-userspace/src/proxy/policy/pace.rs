//! How fast an answer goes to its client (`limit-rate`).

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use tokio::time::{Instant, Sleep, sleep_until};

use crate::model::Pace;

/// In how many parts a second's bytes go at most, so that a slow answer is no trickle of packets.
const PARTS: u64 = 8;

/// One answer that may go only so fast. The pod is not read from meanwhile, so it is slowed down too.
pub struct Pacer {
    pace: Pace,
    began: Instant,
    sent: u64,
    /// What the pod has sent and may not go yet.
    rest: Bytes,
    sleep: Option<Pin<Box<Sleep>>>,
}

impl Pacer {
    /// Begins now.
    pub fn new(pace: Pace) -> Box<Self> {
        Box::new(Pacer {
            pace,
            began: Instant::now(),
            sent: 0,
            rest: Bytes::new(),
            sleep: None,
        })
    }

    /// Whether something waits.
    pub fn holds(&self) -> bool {
        !self.rest.is_empty()
    }

    /// How much waits, in bytes.
    pub fn held(&self) -> u64 {
        self.rest.len() as u64
    }

    /// Takes what the pod has sent.
    pub fn hold(&mut self, data: Bytes) {
        self.rest = data;
    }

    /// What may go now of what waits.
    pub fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Bytes> {
        loop {
            if let Some(sleep) = &mut self.sleep {
                ready!(sleep.as_mut().poll(cx));
                self.sleep = None;
            }
            let allowed = allowed(self.pace, self.began.elapsed(), self.sent);
            let part = allowed.min(self.rest.len() as u64);
            // All of it, or a part that is worth a packet.
            if part > 0 && (part == self.rest.len() as u64 || part >= self.least()) {
                self.sent += part;
                // It fits, as it is there.
                let part = usize::try_from(part).unwrap_or(usize::MAX);
                return Poll::Ready(self.rest.split_to(part.min(self.rest.len())));
            }
            let wanted = self.least().min(self.rest.len() as u64);
            let due = due(self.pace, self.sent.saturating_add(wanted));
            self.sleep = Some(Box::pin(sleep_until(self.began + due)));
        }
    }

    fn least(&self) -> u64 {
        (self.pace.rate / PARTS).max(1)
    }
}

/// How many bytes more may go, so long after the beginning.
fn allowed(pace: Pace, elapsed: Duration, sent: u64) -> u64 {
    let earned = u128::from(pace.rate).saturating_mul(elapsed.as_millis()) / 1000;
    let earned = u64::try_from(earned).unwrap_or(u64::MAX);
    pace.after.saturating_add(earned).saturating_sub(sent)
}

/// When so many bytes may have gone. A day is the longest pause.
fn due(pace: Pace, bytes: u64) -> Duration {
    const DAY: u64 = 24 * 3600 * 1000;
    let slow = u128::from(bytes.saturating_sub(pace.after));
    let millis = (slow * 1000).div_ceil(u128::from(pace.rate.max(1)));
    Duration::from_millis(u64::try_from(millis).unwrap_or(DAY).min(DAY))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PACE: Pace = Pace {
        rate: 1000,
        after: 500,
    };

    #[test]
    fn so_much_goes_at_once_and_the_rest_by_and_by() {
        let second = Duration::from_secs(1);
        assert_eq!(allowed(PACE, Duration::ZERO, 0), 500);
        assert_eq!(allowed(PACE, Duration::ZERO, 500), 0);
        assert_eq!(allowed(PACE, second, 500), 1000);
        assert_eq!(allowed(PACE, second, 2000), 0);
        assert_eq!(due(PACE, 400), Duration::ZERO);
        assert_eq!(due(PACE, 1500), second);
        assert_eq!(due(PACE, 501), Duration::from_millis(1));
    }

    #[test]
    fn what_is_due_is_allowed_then() {
        for bytes in [1, 499, 500, 501, 777, 1500, 123_456] {
            let then = due(PACE, bytes);
            assert!(allowed(PACE, then, 0) >= bytes, "{bytes}");
        }
    }

    #[test]
    fn nothing_overflows() {
        let fast = Pace {
            rate: u64::MAX,
            after: u64::MAX,
        };
        assert_eq!(allowed(fast, Duration::MAX, 0), u64::MAX);
        assert_eq!(due(fast, u64::MAX), Duration::ZERO);
        let slow = Pace { rate: 1, after: 0 };
        assert!(due(slow, u64::MAX) <= Duration::from_secs(24 * 3600));
    }
}
