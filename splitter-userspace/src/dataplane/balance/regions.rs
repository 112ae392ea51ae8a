//! Runs of places in an array, given out and taken back.

use std::collections::BTreeMap;

/// What is free of an array.
#[derive(Debug)]
pub struct Regions {
    /// Length by the first place. No two touch.
    free: BTreeMap<u32, u32>,
}

impl Regions {
    /// All of `len` places.
    pub fn new(len: u32) -> Self {
        Regions {
            free: BTreeMap::from([(0, len)]),
        }
    }

    /// Takes `len` places, the first that do; none when there is no such run.
    pub fn take(&mut self, len: u32) -> Option<u32> {
        let mut all = self.free.iter();
        let (start, found) = all.find(|(_, found)| **found >= len)?;
        let (start, found) = (*start, *found);
        self.free.remove(&start);
        if found > len {
            self.free.insert(start + len, found - len);
        }
        Some(start)
    }

    /// Takes exactly these, as far as they are free.
    pub fn take_at(&mut self, start: u32, len: u32) {
        let end = start.saturating_add(len);
        let touched: Vec<_> = self
            .free
            .range(..end)
            .map(|(at, len)| (*at, *len))
            .filter(|(at, len)| at + len > start)
            .collect();
        for (at, len) in touched {
            self.free.remove(&at);
            if at < start {
                self.free.insert(at, start - at);
            }
            if at + len > end {
                self.free.insert(end, at + len - end);
            }
        }
    }

    /// Takes a run back.
    pub fn give(&mut self, mut start: u32, mut len: u32) {
        if len == 0 {
            return;
        }
        if let Some((before, its)) = self.free.range(..start).next_back()
            && before + its == start
        {
            (start, len) = (*before, its + len);
        }
        if let Some(after) = self.free.remove(&(start + len)) {
            len += after;
        }
        self.free.insert(start, len);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_given_back_is_one_run_again() {
        let mut regions = Regions::new(10);
        assert_eq!(regions.take(4), Some(0));
        assert_eq!(regions.take(4), Some(4));
        assert_eq!(regions.take(4), None);
        regions.give(0, 4);
        assert_eq!(regions.take(2), Some(0));
        regions.give(4, 4);
        regions.give(0, 2);
        assert_eq!(regions.take(10), Some(0));
    }

    #[test]
    fn what_is_in_use_already_is_not_given_out() {
        let mut regions = Regions::new(10);
        regions.take_at(3, 2);
        regions.take_at(4, 1);
        assert_eq!(regions.take(4), Some(5));
        assert_eq!(regions.take(4), None);
        regions.give(3, 2);
        assert_eq!(regions.take(5), Some(0));
        regions.take_at(20, 5);
    }
}
