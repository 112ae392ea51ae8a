//! Which published states are still in somebody's hands.

use std::sync::{Arc, Weak};

use crate::routing::Live;

/// Knows the oldest published state that is still in use, without keeping any alive.
#[derive(Default)]
pub struct LiveTracker {
    published: Vec<(u64, Weak<Live>)>,
}

impl LiveTracker {
    /// Remembers a state that is being published.
    pub fn add(&mut self, live: &Arc<Live>) {
        self.published.push((live.generation, Arc::downgrade(live)));
    }

    /// The lowest generation in use; `u64::MAX` when there is none. What it gives is what
    /// [`super::SlotAllocator::reclaim`] asks for.
    pub fn oldest(&mut self) -> u64 {
        self.published.retain(|(_, live)| live.strong_count() > 0);
        let generations = self.published.iter().map(|(generation, _)| *generation);
        generations.min().unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn live(generation: u64) -> Arc<Live> {
        Arc::new(Live {
            generation,
            ..Live::empty()
        })
    }

    #[test]
    fn the_oldest_state_in_use_counts() {
        let mut tracker = LiveTracker::default();
        assert_eq!(tracker.oldest(), u64::MAX);
        let states: Vec<_> = (1..=3).map(live).collect();
        states.iter().for_each(|state| tracker.add(state));
        assert_eq!(tracker.oldest(), 1);
        let mut states = states.into_iter();
        let first = states.next();
        drop(states.next());
        assert_eq!(tracker.oldest(), 1);
        drop(first);
        assert_eq!(tracker.oldest(), 3);
    }
}
