//! Which of several instances writes: the rules, without the I/O.
//!
//! No clock but our own is trusted: a Lease is dead when *we* have seen nobody renew it for its
//! time, and ours is alive for as long after *we* began to renew it as nobody may take it.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::LeaseSpec;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use k8s_openapi::jiff::Timestamp;

/// What to do about the Lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// There is none: make it, with us as its holder.
    Create,
    /// It is ours.
    Renew,
    /// Nobody holds it any more.
    Take,
    /// Somebody else holds it.
    Wait,
}

/// What one instance knows about the Lease.
pub(super) struct Election {
    /// Who we are.
    identity: String,
    /// For how long we hold it without renewing it.
    ttl: Duration,
    /// Of a Lease that is not ours: what it said, and when we saw that for the first time.
    observed: Option<(LeaseSpec, Instant)>,
    /// Until when nobody else may take it from us.
    held_until: Option<Instant>,
}

impl Election {
    pub(super) fn new(identity: String, ttl: Duration) -> Self {
        Election {
            identity,
            ttl,
            observed: None,
            held_until: None,
        }
    }

    /// Whether we may write now.
    pub(super) fn is_held(&self, now: Instant) -> bool {
        self.held_until.is_some_and(|until| now < until)
    }

    /// Between two looks at the Lease: several in its time, so that one that fails does no harm.
    pub(super) fn pause(&self) -> Duration {
        self.ttl / 6
    }

    /// What to do about the Lease as it was found `now`.
    pub(super) fn judge(&mut self, found: Option<&LeaseSpec>, now: Instant) -> Step {
        let Some(found) = found else {
            self.observed = None;
            return Step::Create;
        };
        match found.holder_identity.as_deref() {
            None | Some("") => return Step::Take,
            Some(holder) if holder == self.identity => return Step::Renew,
            Some(_) => {}
        }
        // Whatever we thought, it is not ours.
        self.held_until = None;
        match &self.observed {
            Some((before, since)) if before == found => {
                if now.duration_since(*since) >= ttl_of(found, self.ttl) {
                    return Step::Take;
                }
            }
            _ => self.observed = Some((found.clone(), now)),
        }
        Step::Wait
    }

    /// The Lease as it is to be written for `step`; times are only for people to read.
    pub(super) fn spec(&self, step: Step, found: Option<&LeaseSpec>, wall: Timestamp) -> LeaseSpec {
        let mut spec = found.cloned().unwrap_or_default();
        let is_new = step != Step::Renew;
        if is_new {
            let transitions = spec.lease_transitions.unwrap_or(0);
            spec.lease_transitions = Some(match step {
                Step::Take => transitions.saturating_add(1),
                _ => transitions,
            });
            spec.acquire_time = Some(MicroTime(wall));
        }
        spec.holder_identity = Some(self.identity.clone());
        spec.lease_duration_seconds = i32::try_from(self.ttl.as_secs()).ok();
        spec.renew_time = Some(MicroTime(wall));
        spec
    }

    /// The Lease was written as ours; we had begun to ask at `asked`. True when it was not ours
    /// before. It ends for us well before anybody else may take it.
    pub(super) fn won(&mut self, asked: Instant) -> bool {
        self.observed = None;
        let was_held = self.is_held(asked);
        self.held_until = Some(asked + self.ttl * 2 / 3);
        !was_held
    }

    /// Whether a Lease names us as its holder.
    pub(super) fn is_ours(&self, found: &LeaseSpec) -> bool {
        found.holder_identity.as_deref() == Some(self.identity.as_str())
    }

    /// Gives it up.
    pub(super) fn lost(&mut self) {
        self.held_until = None;
    }
}

/// What its holder said that it lasts; ours when it did not say anything sensible.
fn ttl_of(lease: &LeaseSpec, ours: Duration) -> Duration {
    let seconds = lease.lease_duration_seconds.filter(|it| *it > 0);
    let seconds = seconds.and_then(|it| u64::try_from(it).ok());
    seconds.map_or(ours, Duration::from_secs)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TTL: Duration = Duration::from_secs(30);

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    fn lease(holder: &str, renewed: i64) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            lease_transitions: Some(4),
            renew_time: Timestamp::from_second(renewed).ok().map(MicroTime),
            ..LeaseSpec::default()
        }
    }

    fn election() -> Election {
        Election::new("me".to_owned(), TTL)
    }

    #[test]
    fn a_lease_that_nobody_holds_is_ours() {
        let now = Instant::now();
        assert_eq!(election().judge(None, now), Step::Create);
        assert_eq!(election().judge(Some(&lease("", 0)), now), Step::Take);
        let empty = LeaseSpec::default();
        assert_eq!(election().judge(Some(&empty), now), Step::Take);
        assert_eq!(election().judge(Some(&lease("me", 0)), now), Step::Renew);
    }

    #[test]
    fn only_what_we_have_watched_for_its_whole_time_is_dead() {
        let mut election = election();
        let now = Instant::now();
        // Its time stamp is ages ago by any clock: that says nothing.
        let other = lease("other", 0);
        assert_eq!(election.judge(Some(&other), now), Step::Wait);
        assert_eq!(election.judge(Some(&other), now + seconds(14)), Step::Wait);
        assert_eq!(election.judge(Some(&other), now + seconds(15)), Step::Take);
    }

    #[test]
    fn every_renewal_begins_the_time_anew_whatever_its_clock_says() {
        let mut election = election();
        let now = Instant::now();
        for (at, stamp) in [(0, 100), (10, 50), (20, 100)] {
            let step = election.judge(Some(&lease("other", stamp)), now + seconds(at));
            assert_eq!(step, Step::Wait, "{at}");
        }
        let step = election.judge(Some(&lease("other", 100)), now + seconds(34));
        assert_eq!(step, Step::Wait);
        let step = election.judge(Some(&lease("other", 100)), now + seconds(35));
        assert_eq!(step, Step::Take);
    }

    #[test]
    fn ours_ends_before_anybody_may_take_it() {
        let mut election = election();
        let asked = Instant::now();
        assert!(election.won(asked), "newly ours");
        assert!(election.is_held(asked + seconds(19)));
        assert!(!election.is_held(asked + seconds(20)));
        assert!(!election.won(asked + seconds(10)), "ours before");
        assert!(election.is_held(asked + seconds(29)));
    }

    #[test]
    fn a_lease_that_another_holds_is_not_ours_at_once() {
        let mut election = election();
        let now = Instant::now();
        election.won(now);
        assert_eq!(election.judge(Some(&lease("other", 1)), now), Step::Wait);
        assert!(!election.is_held(now));
    }

    #[test]
    fn what_is_written_says_who_since_when_and_how_often() {
        let election = election();
        let wall = Timestamp::UNIX_EPOCH;
        let taken = election.spec(Step::Take, Some(&lease("other", 9)), wall);
        assert_eq!(taken.holder_identity.as_deref(), Some("me"));
        assert_eq!(taken.lease_transitions, Some(5));
        assert_eq!(taken.lease_duration_seconds, Some(30));
        assert_eq!(taken.acquire_time, Some(MicroTime(wall)));
        let renewed = election.spec(Step::Renew, Some(&taken), wall);
        assert_eq!(renewed.lease_transitions, Some(5));
        let created = election.spec(Step::Create, None, wall);
        assert_eq!(created.lease_transitions, Some(0));
    }
}
