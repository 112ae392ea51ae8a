use std::fmt;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use serde::{Serialize, Serializer};

/// How many things are in one row: what is copied when one of them changes. A list of 10,000 has 157
/// rows, so that either is little beside all of it. Tests have so few things that they need short rows.
const ROW: usize = if cfg!(test) { 4 } else { 64 };

/// A list whose copies share what they have in common.
///
/// It is an array in rows. A copy shares all rows, and a change copies the one row that it is in. So a
/// state of 10,000 things that differs from the last one in a single thing costs no more than a few
/// hundred pointers, and where two states differ is found as quickly.
pub struct Rows<T> {
    /// All are full but the last one, which is not empty.
    rows: Vec<Arc<Vec<T>>>,
}

/// The things of [`Rows`] in their order.
pub type RowsIter<'a, T> =
    std::iter::FlatMap<std::slice::Iter<'a, Arc<Vec<T>>>, std::slice::Iter<'a, T>, RowOf<'a, T>>;

type RowOf<'a, T> = fn(&'a Arc<Vec<T>>) -> std::slice::Iter<'a, T>;

impl<T> Rows<T> {
    /// None.
    pub const fn new() -> Self {
        Rows { rows: Vec::new() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        let last = self.rows.last().map_or(0, |row| row.len());
        self.rows.len().saturating_sub(1) * ROW + last
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The one with this number.
    pub fn get(&self, index: usize) -> Option<&T> {
        self.rows.get(index / ROW)?.get(index % ROW)
    }

    /// The first one.
    pub fn first(&self) -> Option<&T> {
        self.get(0)
    }

    /// All of them.
    pub fn iter(&self) -> RowsIter<'_, T> {
        self.rows.iter().flat_map(|row| row.iter())
    }

    /// How many there are at the beginning of which `is_before` is true, if it is false of all that
    /// follow them.
    pub fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        let full = |row: &Arc<Vec<T>>| row.last().is_some_and(&mut is_before);
        let row = self.rows.partition_point(full);
        let within = self.rows.get(row);
        within.map_or(self.len(), |it| row * ROW + it.partition_point(is_before))
    }

    /// The number of the one that `compare` calls equal, if they are sorted by it.
    pub fn find_by(&self, compare: impl Fn(&T) -> std::cmp::Ordering) -> Option<usize> {
        let index = self.partition_point(|it| compare(it).is_lt());
        self.get(index).filter(|it| compare(it).is_eq())?;
        Some(index)
    }

    /// Whether both are copies of one list that neither has changed since. False does not mean that they
    /// differ.
    pub fn is_same(&self, other: &Self) -> bool {
        let mut pairs = self.rows.iter().zip(&other.rows);
        self.rows.len() == other.rows.len() && pairs.all(|(one, other)| Arc::ptr_eq(one, other))
    }

    /// What may differ from this list to another one, by number: what is in no row that both share.
    pub fn differences<'a>(
        &'a self,
        other: &'a Self,
    ) -> impl Iterator<Item = (usize, Option<&'a T>, Option<&'a T>)> + 'a {
        let rows = 0..self.rows.len().max(other.rows.len());
        let pairs = rows.map(|row| (row, self.rows.get(row), other.rows.get(row)));
        let differing = pairs.filter(|(_, one, other)| match (one, other) {
            (Some(one), Some(other)) => !Arc::ptr_eq(one, other),
            _ => true,
        });
        differing.flat_map(|(row, one, other)| {
            let len = |it: Option<&Arc<Vec<T>>>| it.map_or(0, |row| row.len());
            (0..len(one).max(len(other))).map(move |place| {
                let at = |it: Option<&'a Arc<Vec<T>>>| it.and_then(|row| row.get(place));
                (row * ROW + place, at(one), at(other))
            })
        })
    }
}

impl<T: Clone> Rows<T> {
    /// The one with this number, to be changed: its row is this list's own from then on.
    pub fn get_mut(&mut self, index: usize) -> Option<&mut T> {
        let row = self.rows.get_mut(index / ROW)?;
        // Nothing is copied for a number that is none.
        row.get(index % ROW)?;
        Arc::make_mut(row).get_mut(index % ROW)
    }

    /// Adds one at the end.
    pub fn push(&mut self, thing: T) {
        match self.rows.last_mut().filter(|row| row.len() < ROW) {
            Some(row) => Arc::make_mut(row).push(thing),
            None => {
                let mut row = Vec::with_capacity(ROW);
                row.push(thing);
                self.rows.push(Arc::new(row));
            }
        }
    }

    /// Takes the last one away.
    pub fn pop(&mut self) -> Option<T> {
        let row = Arc::make_mut(self.rows.last_mut()?);
        let thing = row.pop();
        if row.is_empty() {
            self.rows.pop();
        }
        thing
    }

    /// Takes one away; the last one gets its number.
    pub fn swap_remove(&mut self, index: usize) -> Option<T> {
        self.get(index)?;
        let last = self.pop()?;
        match self.get_mut(index) {
            Some(place) => Some(std::mem::replace(place, last)),
            None => Some(last),
        }
    }

    /// Keeps those of which `keep` is true. Costs as much as all of them.
    pub fn retain(&mut self, keep: impl Fn(&T) -> bool) {
        if !self.iter().all(&keep) {
            *self = self.iter().filter(|it| keep(it)).cloned().collect();
        }
    }

    /// All of them, to be changed: every row is this list's own from then on.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.rows.iter_mut().flat_map(Arc::make_mut)
    }
}

impl<T> Clone for Rows<T> {
    fn clone(&self) -> Self {
        Rows {
            rows: self.rows.clone(),
        }
    }
}

impl<T> Default for Rows<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> FromIterator<T> for Rows<T> {
    fn from_iter<I: IntoIterator<Item = T>>(things: I) -> Self {
        let mut things = things.into_iter();
        let mut rows = Vec::with_capacity(things.size_hint().0.div_ceil(ROW));
        loop {
            let row: Vec<T> = things.by_ref().take(ROW).collect();
            if row.is_empty() {
                return Rows { rows };
            }
            rows.push(Arc::new(row));
        }
    }
}

impl<T> From<Vec<T>> for Rows<T> {
    fn from(things: Vec<T>) -> Self {
        things.into_iter().collect()
    }
}

impl<T: Clone> Extend<T> for Rows<T> {
    fn extend<I: IntoIterator<Item = T>>(&mut self, things: I) {
        for thing in things {
            self.push(thing);
        }
    }
}

impl<'a, T> IntoIterator for &'a Rows<T> {
    type Item = &'a T;
    type IntoIter = RowsIter<'a, T>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

impl<T: PartialEq> PartialEq for Rows<T> {
    fn eq(&self, other: &Self) -> bool {
        let mut pairs = self.rows.iter().zip(&other.rows);
        self.rows.len() == other.rows.len()
            && pairs.all(|(one, other)| Arc::ptr_eq(one, other) || one == other)
    }
}

impl<T: Eq> Eq for Rows<T> {}

impl<T: fmt::Debug> fmt::Debug for Rows<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self).finish()
    }
}

impl<T: Serialize> Serialize for Rows<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self)
    }
}

/// As for a slice: for numbers that are known to be there.
impl<T> Index<usize> for Rows<T> {
    type Output = T;

    fn index(&self, index: usize) -> &T {
        &self.rows[index / ROW][index % ROW]
    }
}

impl<T: Clone> IndexMut<usize> for Rows<T> {
    fn index_mut(&mut self, index: usize) -> &mut T {
        &mut Arc::make_mut(&mut self.rows[index / ROW])[index % ROW]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What was done to a list.
    #[derive(Clone, Debug)]
    enum Step {
        Push(u8),
        Pop,
        Set(usize, u8),
        SwapRemove(usize),
        Odd,
    }

    fn step() -> impl Strategy<Value = Step> {
        prop_oneof![
            4 => any::<u8>().prop_map(Step::Push),
            1 => Just(Step::Pop),
            2 => (0usize..200, any::<u8>()).prop_map(|(at, it)| Step::Set(at, it)),
            2 => (0usize..200).prop_map(Step::SwapRemove),
            1 => Just(Step::Odd),
        ]
    }

    proptest! {
        #[test]
        fn it_is_as_a_vec_and_copies_stay_as_they_were(
            begin in proptest::collection::vec(any::<u8>(), 0..200),
            steps in proptest::collection::vec(step(), 0..80),
        ) {
            let mut vec = begin.clone();
            let mut rows: Rows<u8> = begin.clone().into();
            let copy = rows.clone();
            for step in steps {
                match step {
                    Step::Push(it) => {
                        vec.push(it);
                        rows.push(it);
                    }
                    Step::Pop => prop_assert_eq!(rows.pop(), vec.pop()),
                    Step::Set(at, it) => {
                        prop_assert_eq!(rows.get_mut(at).is_some(), at < vec.len());
                        if let (Some(one), Some(other)) = (rows.get_mut(at), vec.get_mut(at)) {
                            (*one, *other) = (it, it);
                        }
                    }
                    Step::SwapRemove(at) => {
                        let expected = (at < vec.len()).then(|| vec.swap_remove(at));
                        prop_assert_eq!(rows.swap_remove(at), expected);
                    }
                    Step::Odd => {
                        vec.retain(|it| it % 8 != 1);
                        rows.retain(|it| it % 8 != 1);
                    }
                }
                prop_assert_eq!(rows.len(), vec.len());
                prop_assert_eq!(rows.is_empty(), vec.is_empty());
            }
            prop_assert!(rows.iter().eq(&vec));
            prop_assert!(copy.iter().eq(&begin));
            prop_assert_eq!(&rows, &Rows::from(vec.clone()));
            prop_assert_eq!(rows == copy, vec == begin);
            // What differs is among the differences, which lead from one to the other.
            let mut patched: Vec<Option<u8>> = begin.iter().copied().map(Some).collect();
            patched.resize(begin.len().max(vec.len()), None);
            for (at, one, other) in copy.differences(&rows) {
                prop_assert_eq!(one, begin.get(at));
                prop_assert_eq!(other, vec.get(at));
                patched[at] = other.copied();
            }
            let patched: Vec<u8> = patched.into_iter().flatten().collect();
            prop_assert_eq!(patched, vec);
        }

        #[test]
        fn what_is_sorted_is_found(
            all in proptest::collection::btree_set(0u16..500, 0..200), wanted in 0u16..500,
        ) {
            let sorted: Vec<u16> = all.into_iter().collect();
            let rows: Rows<u16> = sorted.clone().into();
            let is_before = |it: &u16| *it < wanted;
            prop_assert_eq!(rows.partition_point(is_before), sorted.partition_point(is_before));
            prop_assert_eq!(rows.find_by(|it| it.cmp(&wanted)), sorted.binary_search(&wanted).ok());
        }
    }

    #[test]
    fn a_change_copies_one_row() {
        let first: Rows<usize> = (0..1000).collect();
        let mut second = first.clone();
        assert!(first.is_same(&second));
        assert_eq!(first.differences(&second).count(), 0);
        second[500] = 7;
        assert!(!first.is_same(&second));
        assert_eq!(first.differences(&second).count(), ROW);
        let changed = first.differences(&second).filter(|(_, a, b)| a != b);
        assert_eq!(changed.collect::<Vec<_>>(), [(500, Some(&500), Some(&7))]);
        assert!(second.get_mut(5000).is_none());
    }
}
