use std::collections::HashMap;
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::labels::{RequestLabels, TruthLabels};
use super::series::{Block, Cell};

/// The series of one worker, found by their labels: they outlive every generation.
///
/// The worker takes the locks only for a label set that its generation has not met before; the
/// scraper takes them only to copy the list of `Arc`s.
pub(super) struct Shard {
    pub(super) pool: &'static str,
    /// Whether a worker writes into it.
    taken: AtomicBool,
    pub(super) requests: Table<RequestLabels, Block>,
    pub(super) truth: Table<TruthLabels, Cell>,
    pub(super) faults: Table<&'static str, Cell>,
    /// Observations of ingress-nginx's families and of our own that had no room.
    pub(super) dropped_requests: Cell,
    pub(super) dropped_truth: Cell,
}

impl Shard {
    pub(super) fn new(pool: &'static str) -> Self {
        Shard {
            pool,
            taken: AtomicBool::new(false),
            requests: Table::default(),
            truth: Table::default(),
            faults: Table::default(),
            dropped_requests: Cell::default(),
            dropped_truth: Cell::default(),
        }
    }

    /// Claims the shard for one worker. The pair of orderings hands the cells over, which are
    /// written without read-modify-write.
    pub(super) fn take(&self) -> bool {
        let taken = self
            .taken
            .compare_exchange(false, true, Ordering::Acquire, Ordering::Relaxed);
        taken.is_ok()
    }

    pub(super) fn give_back(&self) {
        self.taken.store(false, Ordering::Release);
    }
}

/// Series by their labels.
pub(super) struct Table<K, V> {
    series: Mutex<HashMap<K, Arc<V>>>,
}

impl<K, V> Default for Table<K, V> {
    fn default() -> Self {
        Table {
            series: Mutex::new(HashMap::new()),
        }
    }
}

impl<K: Eq + Hash + Clone, V: Default> Table<K, V> {
    /// The series of these labels; made if there is room, which `count` keeps over all workers.
    pub(super) fn get(&self, labels: K, count: &Room) -> Option<Arc<V>> {
        let mut series = lock(&self.series);
        if let Some(found) = series.get(&labels) {
            return Some(found.clone());
        }
        if !count.take() {
            return None;
        }
        let made = Arc::new(V::default());
        series.insert(labels, made.clone());
        Some(made)
    }

    /// A copy of the list, in no order.
    pub(super) fn list(&self) -> Vec<(K, Arc<V>)> {
        let series = lock(&self.series);
        series.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Forgets the series whose labels do not pass.
    pub(super) fn retain(&self, count: &Room, mut keep: impl FnMut(&K) -> bool) {
        let mut series = lock(&self.series);
        let before = series.len();
        series.retain(|labels, _| keep(labels));
        count.free(before - series.len());
    }
}

/// How many series there may be, and are.
pub(super) struct Room {
    pub(super) limit: usize,
    used: AtomicUsize,
}

impl Room {
    pub(super) fn new(limit: usize) -> Self {
        Room {
            limit,
            used: AtomicUsize::new(0),
        }
    }

    pub(super) fn used(&self) -> usize {
        self.used.load(Ordering::Relaxed)
    }

    fn take(&self) -> bool {
        let more = |used| (used < self.limit).then_some(used + 1);
        self.used
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, more)
            .is_ok()
    }

    fn free(&self, n: usize) {
        self.used.fetch_sub(n, Ordering::Relaxed);
    }
}

/// Locks; a panic elsewhere does not matter to a table that is valid after every step.
pub(in crate::telemetry) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
