use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::atomic::{AtomicBool, Ordering};
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
    /// By name; the names are fixed in the code.
    pub(super) faults: Mutex<BTreeMap<&'static str, Arc<Cell>>>,
    /// Observations of ingress-nginx's families and of our own that had no room.
    pub(super) dropped_requests: Cell,
    pub(super) dropped_truth: Cell,
}

impl Shard {
    /// Room for `limit` label sets of each kind.
    pub(super) fn new(pool: &'static str, limit: usize) -> Self {
        Shard {
            pool,
            taken: AtomicBool::new(false),
            requests: Table::new(limit),
            truth: Table::new(limit),
            faults: Mutex::default(),
            dropped_requests: Cell::default(),
            dropped_truth: Cell::default(),
        }
    }

    /// The counter of a fault.
    pub(super) fn fault(&self, name: &'static str) -> Arc<Cell> {
        lock(&self.faults).entry(name).or_default().clone()
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

/// Series by their labels, at most `limit`.
pub(super) struct Table<K, V> {
    limit: usize,
    series: Mutex<HashMap<K, Arc<V>>>,
}

impl<K: Eq + Hash + Clone, V: Default> Table<K, V> {
    fn new(limit: usize) -> Self {
        Table {
            limit,
            series: Mutex::default(),
        }
    }

    /// The series of these labels, made if there is room for it.
    pub(super) fn get(&self, labels: K) -> Option<Arc<V>> {
        let mut series = lock(&self.series);
        if let Some(found) = series.get(&labels) {
            return Some(found.clone());
        }
        if series.len() >= self.limit {
            return None;
        }
        let made = Arc::new(V::default());
        series.insert(labels, made.clone());
        Some(made)
    }

    pub(super) fn len(&self) -> usize {
        lock(&self.series).len()
    }

    /// A copy of the list, in no order.
    pub(super) fn list(&self) -> Vec<(K, Arc<V>)> {
        let series = lock(&self.series);
        series.iter().map(|(k, v)| (k.clone(), v.clone())).collect()
    }

    /// Forgets the series whose labels do not pass.
    pub(super) fn retain(&self, mut keep: impl FnMut(&K) -> bool) {
        lock(&self.series).retain(|labels, _| keep(labels));
    }
}

/// Locks; a panic elsewhere does not matter to a table that is valid after every step.
pub(in crate::telemetry) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
