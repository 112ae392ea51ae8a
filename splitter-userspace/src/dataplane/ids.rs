//! Numbers for things that have names, kept for a thing's lifetime.

use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;

/// Gives out numbers below a limit, lowest first.
///
/// A number that is given back rests until nobody can name it any more, so that a reader with an
/// old state never meets another thing under its number.
#[derive(Debug)]
pub struct Ids<K> {
    taken: HashMap<K, u32>,
    free: BTreeSet<u32>,
    /// Given back, with the generation from which on no state names them.
    resting: Vec<(u64, u32)>,
    /// Above all numbers ever given out.
    next: u32,
    limit: u32,
}

impl<K: Eq + Hash + Clone> Ids<K> {
    /// No number given out yet; all will be below `limit`.
    pub fn new(limit: u32) -> Self {
        Ids {
            taken: HashMap::new(),
            free: BTreeSet::new(),
            resting: Vec::new(),
            next: 0,
            limit,
        }
    }

    /// The number of a thing that has one.
    pub fn get(&self, key: &K) -> Option<u32> {
        self.taken.get(key).copied()
    }

    /// The number of a thing, a new one if it has none; none when all are in use.
    pub fn assign(&mut self, key: &K) -> Option<u32> {
        if let Some(id) = self.get(key) {
            return Some(id);
        }
        let id = match self.free.pop_first() {
            Some(id) => id,
            None if self.next < self.limit => {
                self.next += 1;
                self.next - 1
            }
            None => return None,
        };
        self.taken.insert(key.clone(), id);
        Some(id)
    }

    /// Has a thing have a number that nobody else has. Gives whether that was so.
    pub fn take(&mut self, key: &K, id: u32) -> bool {
        let is_free = self.free.contains(&id) || id >= self.next;
        if !is_free || id >= self.limit || self.taken.contains_key(key) {
            return false;
        }
        self.free.remove(&id);
        self.free.extend(self.next.min(id)..id);
        self.next = self.next.max(id + 1);
        self.taken.insert(key.clone(), id);
        true
    }

    /// Takes the numbers of all things back that are not `present` in `generation`.
    pub fn retain(&mut self, generation: u64, present: impl Fn(&K) -> bool) {
        let resting = &mut self.resting;
        self.taken.retain(|key, id| {
            let keep = present(key);
            if !keep {
                resting.push((generation, *id));
            }
            keep
        });
    }

    /// Frees the numbers that no state of `oldest` or a later generation names, and gives them in
    /// ascending order.
    pub fn reclaim(&mut self, oldest: u64) -> Vec<u32> {
        let mut freed = Vec::new();
        self.resting.retain(|(generation, id)| {
            let rests = *generation > oldest;
            if !rests {
                freed.push(*id);
            }
            rests
        });
        freed.sort_unstable();
        self.free.extend(&freed);
        freed
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_is_kept_and_not_reused_before_it_is_reclaimed() {
        let mut ids = Ids::new(3);
        assert_eq!(ids.assign(&"a"), Some(0));
        assert_eq!(ids.assign(&"b"), Some(1));
        assert_eq!(ids.assign(&"a"), Some(0));
        ids.retain(5, |key| *key == "b");
        assert_eq!(ids.get(&"a"), None);
        assert_eq!(ids.assign(&"c"), Some(2), "0 rests");
        assert_eq!(ids.assign(&"d"), None);
        assert!(ids.reclaim(4).is_empty(), "generation 4 may still name it");
        assert_eq!(ids.assign(&"d"), None);
        assert_eq!(ids.reclaim(5), [0]);
        assert_eq!(ids.assign(&"d"), Some(0));
        assert_eq!(ids.assign(&"b"), Some(1));
    }

    #[test]
    fn a_number_that_a_thing_has_already_is_kept() {
        let mut ids = Ids::new(5);
        assert!(ids.take(&"c", 2));
        assert!(!ids.take(&"d", 2), "it has an owner");
        assert!(!ids.take(&"c", 3), "it has a number");
        assert!(!ids.take(&"e", 5), "beyond the limit");
        assert!(ids.take(&"a", 0));
        assert_eq!(ids.assign(&"x"), Some(1));
        assert_eq!(ids.assign(&"y"), Some(3));
        assert_eq!(ids.assign(&"z"), Some(4));
        assert_eq!(ids.assign(&"w"), None);
    }
}
