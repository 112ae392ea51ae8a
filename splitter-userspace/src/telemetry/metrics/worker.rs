use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::telemetry::Record;

use super::cache::Cache;
use super::labels::{RequestLabels, TruthLabels};
use super::registry::Inner;
use super::scope::Scope;
use super::series::{Block, Cell};
use super::shard::Shard;
use super::{ConnectionMetrics, Counter, families};

/// The counters of one worker thread: nobody else writes them.
///
/// A request whose label set was met before in this generation costs two look-ups and some plain
/// stores: no lock, no allocation, no memory that another worker writes.
pub struct WorkerMetrics {
    shard: Arc<Shard>,
    connections: ConnectionMetrics,
    requests: Counter,
    retries: Counter,
    request_cache: Cache<Block>,
    truth_cache: Cache<Cell>,
    /// Faults met so far, each with a small number of its own.
    faults: HashMap<&'static str, (u16, Arc<Cell>), FixedState>,
}

impl WorkerMetrics {
    pub(super) fn new(inner: &Inner, shard: Arc<Shard>) -> Self {
        let labels = [("pool", shard.pool)];
        WorkerMetrics {
            connections: ConnectionMetrics::new(inner, shard.pool),
            requests: inner.counter(&families::PROCESS_REQUESTS_TOTAL, &[]),
            retries: inner.counter(&families::RETRIES, &labels),
            request_cache: Cache::default(),
            truth_cache: Cache::default(),
            faults: HashMap::default(),
            shard,
        }
    }

    /// Counts one finished request, and its fault if it has one.
    pub fn observe(&mut self, record: &Record<'_>) {
        self.requests.inc();
        if let Some(upstream) = &record.upstream
            && upstream.tries > 1
        {
            self.retries.add(u64::from(upstream.tries - 1));
        }
        let fault = record.fault.map_or(0, |fault| self.fault(fault));
        let scope = Scope::of(record);
        self.observe_truth(record, scope, fault);
        // A host that no rule names has no series in ingress-nginx's families.
        if scope != Scope::Nowhere {
            self.observe_request(record, scope);
        }
    }

    /// Counts a refusal that never became a request, such as a head that is not HTTP. Faults in a
    /// [`Record`] are counted by [`Self::observe`] already.
    pub fn count_fault(&mut self, name: &'static str) {
        self.fault(name);
    }

    /// The counters of this worker's connections, to be cloned into each of them.
    pub fn connections(&self) -> &ConnectionMetrics {
        &self.connections
    }

    /// Counts the fault and gives its number in this worker, which is never 0.
    fn fault(&mut self, name: &'static str) -> u16 {
        let number = u16::try_from(self.faults.len() + 1).unwrap_or(u16::MAX);
        let shard = &self.shard;
        let entry = match self.faults.entry(name) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(entry) => entry.insert((number, shard.fault(name))),
        };
        entry.1.add(1);
        entry.0
    }

    fn observe_request(&mut self, record: &Record<'_>, scope: Scope) {
        let shard = &self.shard;
        let make = || shard.requests.get(RequestLabels::of(record, scope));
        let key = scope.request_key(record);
        let count = |block: &Block| block.observe(record);
        let counted = self
            .request_cache
            .count(record.live.generation, key, make, count);
        if !counted {
            self.shard.dropped_requests.add(1);
        }
    }

    fn observe_truth(&mut self, record: &Record<'_>, scope: Scope, fault: u16) {
        let shard = &self.shard;
        let make = || shard.truth.get(TruthLabels::of(record, scope, shard.pool));
        let key = scope.truth_key(record, fault);
        let count = |cell: &Cell| cell.add(1);
        let counted = self
            .truth_cache
            .count(record.live.generation, key, make, count);
        if !counted {
            self.shard.dropped_truth.add(1);
        }
    }
}

impl Drop for WorkerMetrics {
    fn drop(&mut self) {
        // The series stay, for the page and for the next worker of the pool.
        self.shard.give_back();
    }
}
