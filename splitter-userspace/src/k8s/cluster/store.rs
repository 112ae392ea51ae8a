//! What the API server last said about the objects of one kind.

use std::collections::{HashMap, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kube::runtime::watcher::Event;

use super::kept::Kept;
use crate::k8s::Sourced;
use crate::model::Rows;

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
    objects: Objects<K>,
    /// The list that is being read.
    next: Option<HashMap<Key, Arc<K>>>,
    /// A whole list was read.
    filled: bool,
    /// Only changes of these are told, if so.
    heeded: Option<HashSet<Key>>,
}

/// The objects, each in a place of its own for as long as it is there. What is asked for all of them
/// shares what did not change since the last time.
struct Objects<K> {
    places: HashMap<Key, usize>,
    keys: Vec<Key>,
    rows: Rows<Sourced<K>>,
    /// Where objects of an API server come from.
    source: Arc<str>,
}

impl<K> Default for Store<K> {
    fn default() -> Self {
        Store(Arc::new(Mutex::new(State {
            objects: Objects::default(),
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
        let rows = self.rows();
        rows.iter().map(|it| Arc::clone(&it.object)).collect()
    }

    /// The objects, those that did not change since the last time in the same places.
    pub(super) fn rows(&self) -> Rows<Sourced<K>> {
        self.state().objects.rows.clone()
    }

    /// One object.
    pub(super) fn get(&self, key: &Key) -> Option<Arc<K>> {
        self.state().objects.get(key).cloned()
    }

    fn state(&self) -> MutexGuard<'_, State<K>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K> Default for Objects<K> {
    fn default() -> Self {
        Objects {
            places: HashMap::new(),
            keys: Vec::new(),
            rows: Rows::new(),
            source: "".into(),
        }
    }
}

impl<K> Objects<K> {
    fn get(&self, key: &Key) -> Option<&Arc<K>> {
        let place = self.places.get(key)?;
        self.rows.get(*place).map(|it| &it.object)
    }

    fn put(&mut self, key: Key, object: Arc<K>) {
        let object = Sourced {
            object,
            source: Arc::clone(&self.source),
        };
        let place = self.places.get(&key);
        if let Some(place) = place.and_then(|place| self.rows.get_mut(*place)) {
            *place = object;
            return;
        }
        self.places.insert(key.clone(), self.keys.len());
        self.keys.push(key);
        self.rows.push(object);
    }

    /// The last one gets the place of the one that is taken away. True when there was one.
    fn remove(&mut self, key: &Key) -> bool {
        let Some(place) = self.places.remove(key) else {
            return false;
        };
        self.rows.swap_remove(place);
        self.keys.swap_remove(place);
        if let Some(moved) = self.keys.get(place) {
            self.places.insert(moved.clone(), place);
        }
        true
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
                let first = !std::mem::replace(&mut state.filled, true);
                let change = match &state.heeded {
                    None => difference(&state.objects, &next),
                    Some(keys) => difference_in(keys, &state.objects, &next),
                };
                state.objects.replace(next);
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
                match state.objects.remove(&key) && state.heeds(&key) {
                    true => Change::Content,
                    false => Change::None,
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

impl<K: Kept> Objects<K> {
    /// Puts the objects of a new list in the place of all others.
    fn replace(&mut self, next: HashMap<Key, Arc<K>>) {
        let gone = self.keys.iter().filter(|key| !next.contains_key(*key));
        for key in gone.cloned().collect::<Vec<_>>() {
            self.remove(&key);
        }
        for (key, object) in next {
            if !self.get(&key).is_some_and(|it| Arc::ptr_eq(it, &object)) {
                self.put(key, object);
            }
        }
    }
}

fn put<K: Kept>(objects: &mut Objects<K>, key: Key, object: K) -> Change {
    let change = match objects.get(&key) {
        Some(old) => compare(&**old, &object),
        None => Change::Content,
    };
    if change > Change::None {
        objects.put(key, Arc::new(object));
    }
    change
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

fn difference<K: Kept>(old: &Objects<K>, new: &HashMap<Key, Arc<K>>) -> Change {
    if old.keys.len() != new.len() {
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
    old: &Objects<K>,
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
