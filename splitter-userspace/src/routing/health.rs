//! Passive ejection: what refused a connection is left alone for a while.

use std::net::SocketAddr;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// How long an Endpoint is left alone after its first refusal, in milliseconds. Doubles with each
/// further refusal.
pub const FIRST_EJECTION_MS: u64 = 1_000;

/// The longest time for which an Endpoint is left alone, in milliseconds.
pub const LONGEST_EJECTION_MS: u64 = 30_000;

/// Earlier refusals are forgotten when this time has passed since an ejection ended, in
/// milliseconds.
pub const FORGET_MS: u64 = 60_000;

/// The most addresses remembered. Above it what can be forgotten is, and then new ones are not
/// ejected.
pub const MAX_EJECTED: usize = 4_096;

/// A coarse moment: milliseconds on a clock that never goes back, from any start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tick(pub u64);

/// Which addresses refused lately: one worker's view, kept across Snapshots.
#[derive(Default)]
pub struct Health {
    ejected: HashMap<SocketAddr, Ejection, RandomState>,
}

#[derive(Clone, Copy)]
struct Ejection {
    until: Tick,
    refusals: u32,
}

impl Health {
    /// Nothing is ejected.
    pub fn new() -> Self {
        Health::default()
    }

    /// The address refused a connection: it is ejected for [`FIRST_EJECTION_MS`], doubled for each
    /// earlier refusal, up to [`LONGEST_EJECTION_MS`]. Refusals of attempts that were under way
    /// when it was ejected are one with the first.
    pub fn refused(&mut self, addr: SocketAddr, now: Tick) {
        let earlier = match self.ejected.get(&addr) {
            Some(ejection) if now < ejection.until => return,
            Some(ejection) if !ejection.is_forgotten(now) => ejection.refusals,
            _ => 0,
        };
        if self.ejected.len() >= MAX_EJECTED {
            self.ejected
                .retain(|_, ejection| !ejection.is_forgotten(now));
            if self.ejected.len() >= MAX_EJECTED {
                return;
            }
        }
        let length = FIRST_EJECTION_MS.checked_shl(earlier).unwrap_or(u64::MAX);
        let until = Tick(now.0.saturating_add(length.min(LONGEST_EJECTION_MS)));
        let ejection = Ejection {
            until,
            refusals: (earlier + 1).min(16),
        };
        self.ejected.insert(addr, ejection);
    }

    /// The address took a connection or answered: its refusals are forgotten.
    pub fn answered(&mut self, addr: SocketAddr) {
        if !self.ejected.is_empty() {
            self.ejected.remove(&addr);
        }
    }

    /// Whether the address is to be left alone now.
    pub fn is_ejected(&self, addr: SocketAddr, now: Tick) -> bool {
        let ejection = if self.ejected.is_empty() {
            None
        } else {
            self.ejected.get(&addr)
        };
        ejection.is_some_and(|ejection| now < ejection.until)
    }
}

impl Ejection {
    fn is_forgotten(&self, now: Tick) -> bool {
        now.0 >= self.until.0.saturating_add(FORGET_MS)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addr(last: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, last], 80))
    }

    #[test]
    fn ejections_grow_to_a_limit() {
        let mut health = Health::new();
        let mut now = Tick(5);
        for length in [1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            health.refused(addr(1), now);
            assert!(health.is_ejected(addr(1), Tick(now.0 + length - 1)));
            now.0 += length;
            assert!(!health.is_ejected(addr(1), now), "{length}");
        }
        for _ in 0..100 {
            health.refused(addr(1), now);
            now.0 += LONGEST_EJECTION_MS;
            assert!(!health.is_ejected(addr(1), now));
        }
    }

    #[test]
    fn refusals_during_an_ejection_do_not_add_up() {
        let mut health = Health::new();
        for _ in 0..50 {
            health.refused(addr(1), Tick(0));
        }
        assert!(!health.is_ejected(addr(1), Tick(FIRST_EJECTION_MS)));
    }

    #[test]
    fn an_answer_ends_it() {
        let mut health = Health::new();
        health.refused(addr(1), Tick(0));
        health.refused(addr(2), Tick(0));
        health.answered(addr(1));
        assert!(!health.is_ejected(addr(1), Tick(0)));
        assert!(health.is_ejected(addr(2), Tick(0)));
        health.refused(addr(1), Tick(0));
        assert!(!health.is_ejected(addr(1), Tick(FIRST_EJECTION_MS)));
    }

    #[test]
    fn old_refusals_are_forgotten() {
        let mut health = Health::new();
        health.refused(addr(1), Tick(0));
        let later = Tick(FIRST_EJECTION_MS + FORGET_MS);
        health.refused(addr(1), later);
        assert!(!health.is_ejected(addr(1), Tick(later.0 + FIRST_EJECTION_MS)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut health = Health::new();
        let many = |index: u32| SocketAddr::from((std::net::Ipv4Addr::from(index), 80));
        for index in 0..MAX_EJECTED as u32 + 10 {
            health.refused(many(index), Tick(0));
        }
        assert_eq!(health.ejected.len(), MAX_EJECTED);
        assert!(!health.is_ejected(many(MAX_EJECTED as u32 + 1), Tick(0)));
        health.refused(addr(1), Tick(FIRST_EJECTION_MS + FORGET_MS));
        assert_eq!(health.ejected.len(), 1);
    }
}
