use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

/// Series by a number that means something in one generation only. The hash needs no secret: a
/// client chooses no more of the number than one of ten methods.
pub(super) struct Cache<T> {
    generation: u64,
    series: HashMap<u64, Arc<T>, FixedState>,
    /// Whether there was no room for a series; asked again with the next generation.
    full: bool,
}

impl<T> Default for Cache<T> {
    fn default() -> Self {
        Cache {
            generation: 0,
            series: HashMap::default(),
            full: false,
        }
    }
}

impl<T> Cache<T> {
    /// Calls `count` with the series of `key` in `generation`, which `make` looks up when it is
    /// met first. False when there was no room for it.
    pub(super) fn count(
        &mut self,
        generation: u64,
        key: u64,
        make: impl FnOnce() -> Option<Arc<T>>,
        count: impl FnOnce(&T),
    ) -> bool {
        if generation < self.generation {
            // A long answer of a generation that is gone: not worth emptying the cache for.
            let series = make();
            return series.inspect(|series| count(series)).is_some();
        }
        if generation > self.generation {
            self.begin(generation);
        }
        match self.series.entry(key) {
            Entry::Occupied(series) => count(series.get()),
            Entry::Vacant(_) if self.full => return false,
            Entry::Vacant(entry) => match make() {
                Some(series) => count(entry.insert(series)),
                None => {
                    self.full = true;
                    return false;
                }
            },
        }
        true
    }

    /// Forgets what keys meant. Keeps its memory.
    fn begin(&mut self, generation: u64) {
        self.series.clear();
        self.full = false;
        self.generation = generation;
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    fn inc(cell: &AtomicU64) {
        cell.fetch_add(1, Ordering::Relaxed);
    }

    #[test]
    fn a_key_is_looked_up_once_in_a_generation() {
        let cell = Arc::new(AtomicU64::new(0));
        let mut cache = Cache::default();
        let mut made = 0;
        for generation in [1, 1, 1, 2, 2] {
            let make = || {
                made += 1;
                Some(cell.clone())
            };
            assert!(cache.count(generation, 7, make, inc));
        }
        assert_eq!((made, cell.load(Ordering::Relaxed)), (2, 5));
    }

    #[test]
    fn an_older_generation_leaves_the_cache_alone() {
        let (old, new) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
        let mut cache = Cache::default();
        assert!(cache.count(2, 7, || Some(new.clone()), inc));
        assert!(cache.count(1, 7, || Some(old.clone()), inc));
        assert!(cache.count(2, 7, || None, inc), "still cached");
        assert_eq!(old.load(Ordering::Relaxed), 1);
        assert_eq!(new.load(Ordering::Relaxed), 2);
    }

    #[test]
    fn without_room_it_asks_again_only_in_the_next_generation() {
        let mut cache = Cache::<AtomicU64>::default();
        assert!(!cache.count(1, 7, || None, inc));
        let mut asked = false;
        let make = || {
            asked = true;
            None
        };
        assert!(!cache.count(1, 8, make, inc));
        assert!(!asked);
        assert!(cache.count(2, 8, || Some(Arc::default()), inc));
    }
}
