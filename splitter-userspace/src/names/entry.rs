//! What is known of one name, and when to ask again.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::k8s::Resolution;

/// How soon a name is asked for again, at the soonest and at the latest, whatever its answer says.
const AGAIN: std::ops::RangeInclusive<Duration> = Duration::from_secs(1)..=Duration::from_secs(300);

/// The latest after a failure.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// What DNS says of a name.
#[derive(Debug)]
pub struct Answer {
    /// Sorted, at least one.
    pub addresses: Vec<IpAddr>,
    /// How long it holds.
    pub ttl: Duration,
}

/// See the module's text.
pub struct Entry {
    /// None before the first answer.
    resolution: Option<Resolution>,
    /// None for never.
    due: Option<Instant>,
    /// Failures since the last answer.
    failures: u32,
}

impl Entry {
    /// A name that is due at once.
    pub fn new(now: Instant) -> Self {
        Entry {
            resolution: None,
            due: Some(now),
            failures: 0,
        }
    }

    /// A name beyond the `most` that are looked up.
    pub fn left_out(most: usize) -> Self {
        let why = format!("more than {most} names are in use; this one is not looked up");
        Entry {
            resolution: Some(Resolution {
                addresses: Vec::new(),
                error: Some(why.into()),
            }),
            due: None,
            failures: 0,
        }
    }

    /// When to ask (again); none for never.
    pub fn due(&self) -> Option<Instant> {
        self.due
    }

    /// What is known, if anything.
    pub fn resolution(&self) -> Option<&Resolution> {
        self.resolution.as_ref()
    }

    /// Takes an answer, or keeps the last one with the reason why there is none.
    pub fn note(&mut self, answer: Result<Answer, Arc<str>>, now: Instant) {
        let known = self.resolution.get_or_insert_default();
        let wait = match answer {
            Ok(Answer { addresses, ttl }) => {
                *known = Resolution {
                    addresses,
                    error: None,
                };
                self.failures = 0;
                ttl.clamp(*AGAIN.start(), *AGAIN.end())
            }
            Err(error) => {
                known.error = Some(error);
                let wait = AGAIN.start().saturating_mul(1 << self.failures.min(6));
                self.failures += 1;
                wait.min(RETRY_MAX)
            }
        };
        self.due = Some(now + wait);
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use super::*;

    fn answer(seconds: u64) -> Result<Answer, Arc<str>> {
        Ok(Answer {
            addresses: vec![IpAddr::from([10, 0, 0, 1])],
            ttl: Duration::from_secs(seconds),
        })
    }

    #[test]
    fn answers_are_asked_for_again_within_bounds() {
        let now = Instant::now();
        for (ttl, wait) in [(0, 1), (1, 1), (30, 30), (300, 300), (86_400, 300)] {
            let mut entry = Entry::new(now);
            entry.note(answer(ttl), now);
            assert_eq!(entry.due(), Some(now + Duration::from_secs(wait)), "{ttl}");
        }
    }

    #[test]
    fn failures_keep_the_last_answer_and_wait_longer_each_time() {
        let now = Instant::now();
        let mut entry = Entry::new(now);
        entry.note(answer(5), now);
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            entry.note(Err("gone".into()), now);
            assert_eq!(entry.due(), Some(now + Duration::from_secs(wait)));
            let known = entry.resolution().unwrap();
            assert_eq!(known.addresses.len(), 1);
            assert_eq!(known.error.as_deref(), Some("gone"));
        }
        entry.note(answer(5), now);
        assert_eq!(entry.resolution().unwrap().error, None);
        entry.note(Err("gone".into()), now);
        assert_eq!(entry.due(), Some(now + Duration::from_secs(1)));
    }
}
