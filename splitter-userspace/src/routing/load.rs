//! How fast Endpoints have answered lately: one worker's view.

use std::net::SocketAddr;
use std::time::Duration;

use foldhash::fast::RandomState;
use hashbrown::HashMap;

/// Within this time the weight of what was seen falls to 1/e, as in ingress-nginx.
const DECAY: Duration = Duration::from_secs(10);

/// The most addresses remembered. When there are more, all are forgotten.
const MAX_LOADS: usize = 4_096;

/// The average time to an answer, by address.
#[derive(Default)]
pub(super) struct Loads(HashMap<SocketAddr, Load, RandomState>);

struct Load {
    /// Seconds; what is older weighs less.
    average: f64,
    /// When something was seen last, on any clock that does not go back.
    seen: Duration,
}

impl Loads {
    /// An Endpoint has answered after this time.
    pub(super) fn answered(&mut self, addr: SocketAddr, took: Duration, now: Duration) {
        let took = took.as_secs_f64();
        if let Some(load) = self.0.get_mut(&addr) {
            let kept = kept(now.saturating_sub(load.seen));
            load.average = load.average * kept + took * (1.0 - kept);
            load.seen = now.max(load.seen);
            return;
        }
        if self.0.len() >= MAX_LOADS {
            self.0.clear();
        }
        let load = Load {
            average: took,
            seen: now,
        };
        self.0.insert(addr, load);
    }

    /// The better of two Endpoints; none when that is not known. What was not asked for long gets
    /// better with time, so that it is asked again.
    pub(super) fn better(&self, a: SocketAddr, b: SocketAddr, now: Duration) -> Option<SocketAddr> {
        let score = |addr| {
            let load = self.0.get(&addr)?;
            Some(load.average * kept(now.saturating_sub(load.seen)))
        };
        Some(if score(a)? <= score(b)? { a } else { b })
    }
}

/// How much of an average is left after this time.
fn kept(time: Duration) -> f64 {
    (-time.as_secs_f64() / DECAY.as_secs_f64()).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::routing::fixtures::addr;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    #[test]
    fn the_faster_one_is_better() {
        let mut loads = Loads::default();
        assert_eq!(loads.better(addr(1), addr(2), ms(0)), None);
        loads.answered(addr(1), ms(10), ms(0));
        assert_eq!(loads.better(addr(1), addr(2), ms(0)), None);
        loads.answered(addr(2), ms(20), ms(0));
        assert_eq!(loads.better(addr(1), addr(2), ms(0)), Some(addr(1)));
        assert_eq!(loads.better(addr(2), addr(1), ms(0)), Some(addr(1)));
    }

    #[test]
    fn what_is_newer_weighs_more() {
        let mut loads = Loads::default();
        loads.answered(addr(1), ms(10), ms(0));
        loads.answered(addr(2), ms(20), ms(0));
        // Ten seconds of slow answers.
        for now in 1..100 {
            loads.answered(addr(1), ms(100), ms(now * 100));
            loads.answered(addr(2), ms(20), ms(now * 100));
        }
        assert_eq!(loads.better(addr(1), addr(2), ms(10_000)), Some(addr(2)));
    }

    #[test]
    fn who_is_not_asked_gets_a_chance_again() {
        let mut loads = Loads::default();
        loads.answered(addr(1), ms(100), ms(0));
        for now in 0..400 {
            loads.answered(addr(2), ms(20), ms(now * 100));
        }
        assert_eq!(loads.better(addr(1), addr(2), ms(40_000)), Some(addr(1)));
    }

    #[test]
    fn memory_is_bounded() {
        let mut loads = Loads::default();
        for index in 0..10_000u32 {
            let addr = SocketAddr::from((std::net::Ipv4Addr::from(index), 80));
            loads.answered(addr, ms(1), ms(0));
        }
        assert!(loads.0.len() <= MAX_LOADS);
    }
}
