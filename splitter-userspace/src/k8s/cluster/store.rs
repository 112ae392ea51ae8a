//! What the API server last said about the objects of one kind.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;

use super::kept::Kept;

/// Namespace and name; the former is empty for cluster-scoped objects.
pub(super) type Key = (Arc<str>, Arc<str>);

/// What an event has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Change {
    /// Nothing that anybody reads.
    None,
    /// Only what was written about objects, such as a status.
    Status,
    /// What the objects ask for.
    Content,
}

/// All objects of one kind, as far as they are read. Clones share it.
///
/// A list that is being read replaces the objects only when it is whole, and those that it repeats
/// stay the same allocation, so that a new list that says nothing new changes nothing.
pub(super) struct Store<K>(Arc<Mutex<State<K>>>);

impl<K> Clone for Store<K> {
    fn clone(&self) -> Self {
        Store(Arc::clone(&self.0))
    }
}

struct State<K> {
    objects: HashMap<Key, Arc<K>>,
    /// The list that is being read.
    next: Option<HashMap<Key, Arc<K>>>,
    /// A whole list was read.
    filled: bool,
    /// Only changes of these are told, if so.
    heeded: Option<HashSet<Key>>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Store(Arc::new(Mutex::new(State {
            objects: HashMap::new(),
            next: None,
            filled: false,
            heeded: None,
        })))
    }
}

impl<K> Store<K> {
    /// Whether a whole list was ever read.
    pub(super) fn is_filled(&self) -> bool {
        self.state().filled
    }

    /// Counts as read, as empty as it is: for what we may do without.
    pub(super) fn give_up(&self) {
        self.state().filled = true;
    }

    /// From now on only changes of these are changes: the others are nobody's.
    pub(super) fn heed(&self, keys: HashSet<Key>) {
        self.state().heeded = Some(keys);
    }

    /// The objects in no order.
    pub(super) fn all(&self) -> Vec<Arc<K>> {
        self.state().objects.values().cloned().collect()
    }

    /// One object.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.state().objects.get(key).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> State<K> {
    fn heeds(&self, key: &Key) -> bool {
        self.heeded.as_ref().is_none_or(|keys| keys.contains(key))
    }
}

impl<K: Kept> Store<K> {
    /// Takes in what the watch says.
    pub(super) fn apply(&self, event: Event<K>) -> Change {
        let mut state = self.state();
        match event {
            Event::Init => {
                state.next = Some(HashMap::new());
                Change::None
            }
            Event::InitApply(object) => {
                let (key, object) = kept(object);
                let object = match state.objects.get(&key) {
                    Some(old) if old.same(&object) => Arc::clone(old),
                    _ => Arc::new(object),
                };
                state.next.get_or_insert_default().insert(key, object);
                Change::None
            }
            Event::InitDone => {
                let next = state.next.take().unwrap_or_default();
                let old = std::mem::replace(&mut state.objects, next);
                let first = !std::mem::replace(&mut state.filled, true);
                let change = match &state.heeded {
                    None => difference(&old, &state.objects),
                    Some(keys) => difference_in(keys, &old, &state.objects),
                };
                if first { Change::Content } else { change }
            }
            Event::Apply(object) => {
                let (key, object) = kept(object);
                let heeded = state.heeds(&key);
                let change = put(&mut state.objects, key, object);
                if heeded { change } else { Change::None }
            }
            Event::Delete(object) => {
                let (key, _) = kept(object);
                match state.objects.remove(&key) {
                    Some(_) if state.heeds(&key) => Change::Content,
                    _ => Change::None,
                }
            }
        }
    }
}

fn kept<K: Kept>(mut object: K) -> (Key, K) {
    object.trim();
    let meta = object.meta();
    let namespace = meta.namespace.as_deref().unwrap_or("").into();
    let name = meta.name.as_deref().unwrap_or("").into();
    ((namespace, name), object)
}

fn put<K: Kept>(objects: &mut HashMap<Key, Arc<K>>, key: Key, object: K) -> Change {
    match objects.entry(key) {
        Entry::Vacant(place) => {
            place.insert(Arc::new(object));
            Change::Content
        }
        Entry::Occupied(mut place) => {
            let change = compare(&**place.get(), &object);
            if change > Change::None {
                place.insert(Arc::new(object));
            }
            change
        }
    }
}

fn compare<K: Kept>(old: &K, new: &K) -> Change {
    if old.same(new) {
        Change::None
    } else if old.asks_the_same(new) {
        Change::Status
    } else {
        Change::Content
    }
}

fn difference<K: Kept>(old: &HashMap<Key, Arc<K>>, new: &HashMap<Key, Arc<K>>) -> Change {
    if old.len() != new.len() {
        return Change::Content;
    }
    let changes = new.iter().map(|(key, object)| match old.get(key) {
        Some(old) if Arc::ptr_eq(old, object) => Change::None,
        Some(old) => compare(&**old, &**object),
        None => Change::Content,
    });
    changes.max().unwrap_or(Change::None)
}

/// The same for some of them.
fn difference_in<K: Kept>(
    keys: &HashSet<Key>,
    old: &HashMap<Key, Arc<K>>,
    new: &HashMap<Key, Arc<K>>,
) -> Change {
    let changes = keys.iter().map(|key| match (old.get(key), new.get(key)) {
        (None, None) => Change::None,
        (Some(old), Some(new)) => compare(&**old, &**new),
        _ => Change::Content,
    });
    changes.max().unwrap_or(Change::None)
}

#[cfg(test)]
#[path = "store_tests.rs"]
mod tests;
