use std::sync::Arc;

use foldhash::fast::FixedState;
use hashbrown::HashMap;
use hashbrown::hash_map::Entry;

use crate::model::HostPattern;
use crate::routing::Live;
use crate::telemetry::Record;

use super::labels::{RequestLabels, TruthLabels, method_index};
use super::registry::Inner;
use super::series::{Block, Cell};
use super::shard::Shard;
use super::{ConnectionMetrics, Counter, families};

/// The counters of one worker thread: nobody else writes them.
///
/// A request whose label set was met before in this generation costs two look-ups and some plain
/// stores: no lock, no allocation, no memory shared with another worker.
pub struct WorkerMetrics {
    inner: Arc<Inner>,
    shard: Arc<Shard>,
    connections: ConnectionMetrics,
    requests: Counter,
    retries: Counter,
    cache: Cache,
}

/// What was resolved for one generation, in which ids mean something.
#[derive(Default)]
struct Cache {
    generation: u64,
    blocks: HashMap<u64, Arc<Block>, FixedState>,
    truth: HashMap<u64, Arc<Cell>, FixedState>,
    /// Faults of every generation, each with a small number of its own.
    faults: HashMap<&'static str, (u16, Arc<Cell>), FixedState>,
    /// Whether the limit of label sets was met; asked again with the next generation.
    full: bool,
}

impl WorkerMetrics {
    pub(super) fn new(inner: Arc<Inner>, shard: Arc<Shard>) -> Self {
        let labels = [("pool", shard.pool)];
        WorkerMetrics {
            connections: ConnectionMetrics::new(&inner, shard.pool),
            requests: inner.counter(&families::PROCESS_REQUESTS_TOTAL, &[]),
            retries: inner.counter(&families::RETRIES, &labels),
            cache: Cache::default(),
            inner,
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
        if record.live.generation > self.cache.generation {
            self.cache.begin(record.live.generation);
        }
        let scope = Scope::of(record);
        self.observe_truth(record, scope, fault);
        // A host that no rule names has no series in ingress-nginx's families.
        if scope != Scope::Nowhere {
            self.observe_block(record, scope);
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
        let next = u16::try_from(self.cache.faults.len() + 1).unwrap_or(u16::MAX);
        let (number, cell) = match self.cache.faults.entry(name) {
            Entry::Occupied(found) => found.into_mut(),
            Entry::Vacant(entry) => {
                let Some(cell) = self.shard.faults.get(name, &self.inner.fault_room) else {
                    self.shard.dropped_truth.add(1);
                    return u16::MAX;
                };
                entry.insert((next, cell))
            }
        };
        cell.add(1);
        *number
    }

    fn observe_block(&mut self, record: &Record<'_>, scope: Scope) {
        let labels = || match scope {
            Scope::Host(index) => match record.live.snapshot.hosts.get(index as usize) {
                Some(host) => RequestLabels::of_host(record, &host.pattern),
                None => RequestLabels::of(record),
            },
            Scope::Location(_) | Scope::Nowhere => RequestLabels::of(record),
        };
        let (shard, inner) = (&self.shard, &self.inner);
        let make = || shard.requests.get(labels(), &inner.request_room);
        let cache = &mut self.cache;
        let current = cache.generation == record.live.generation;
        let key = block_key(record, scope);
        let seen = with(
            &mut cache.blocks,
            current,
            &mut cache.full,
            key,
            make,
            |b| {
                b.observe(record);
            },
        );
        if !seen {
            self.shard.dropped_requests.add(1);
        }
    }

    fn observe_truth(&mut self, record: &Record<'_>, scope: Scope, fault: u16) {
        let (shard, inner) = (&self.shard, &self.inner);
        let make = || {
            let labels = TruthLabels::of(record, shard.pool);
            shard.truth.get(labels, &inner.truth_room)
        };
        let cache = &mut self.cache;
        let current = cache.generation == record.live.generation;
        let key = truth_key(record, scope, fault);
        let seen = with(&mut cache.truth, current, &mut cache.full, key, make, |c| {
            c.add(1);
        });
        if !seen {
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

impl Cache {
    /// Forgets what ids meant in the generation before. Keeps its memory.
    fn begin(&mut self, generation: u64) {
        self.blocks.clear();
        self.truth.clear();
        self.full = false;
        self.generation = generation;
    }
}

/// Calls `use_it` with the series of `key`, made if need be. False when there is no room for it.
///
/// A request that began in an older generation than the one cached (`current` is false) goes by
/// its labels, so that long answers do not empty the cache again and again.
fn with<T>(
    cache: &mut HashMap<u64, Arc<T>, FixedState>,
    current: bool,
    full: &mut bool,
    key: u64,
    make: impl FnOnce() -> Option<Arc<T>>,
    use_it: impl FnOnce(&T),
) -> bool {
    if !current {
        return make().is_some_and(|series| {
            use_it(&series);
            true
        });
    }
    match cache.entry(key) {
        Entry::Occupied(series) => use_it(series.get()),
        Entry::Vacant(_) if *full => return false,
        Entry::Vacant(entry) => match make() {
            Some(series) => use_it(entry.insert(series)),
            None => {
                *full = true;
                return false;
            }
        },
    }
    true
}

/// What the labels of a request hang on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Scope {
    Location(u32),
    /// Index of a Host that has no Location for the request.
    Host(u32),
    Nowhere,
}

impl Scope {
    fn of(record: &Record<'_>) -> Self {
        match record.location {
            Some((id, _)) => Scope::Location(id.0),
            None => match host_index(record.live, record.host) {
                Some(index) => Scope::Host(index),
                None => Scope::Nowhere,
            },
        }
    }

    /// 34 bits.
    fn bits(self) -> u64 {
        match self {
            Scope::Location(id) => u64::from(id),
            Scope::Host(index) => 1 << 32 | u64::from(index),
            Scope::Nowhere => 2 << 32,
        }
    }
}

/// The Host that covers a name: by exact name, then by wildcard, then any.
fn host_index(live: &Live, name: &str) -> Option<u32> {
    let hosts = &live.snapshot.hosts;
    let suffix = name.split_once('.').map(|(_, suffix)| suffix);
    let find = |wanted: &dyn Fn(&HostPattern) -> std::cmp::Ordering| {
        hosts.binary_search_by(|host| wanted(&host.pattern)).ok()
    };
    // Hosts are sorted by pattern: exact names, wildcards, any.
    let exact = find(&|pattern| match pattern {
        HostPattern::Exact(text) => text.as_ref().cmp(name),
        HostPattern::Wildcard(_) | HostPattern::Any => std::cmp::Ordering::Greater,
    });
    let wildcard = || {
        let suffix = suffix?;
        find(&|pattern| match pattern {
            HostPattern::Exact(_) => std::cmp::Ordering::Less,
            HostPattern::Wildcard(text) => text.as_ref().cmp(suffix),
            HostPattern::Any => std::cmp::Ordering::Greater,
        })
    };
    let any = || {
        let last = hosts.last()?;
        (last.pattern == HostPattern::Any).then(|| hosts.len() - 1)
    };
    let index = exact.or_else(wildcard).or_else(any)?;
    u32::try_from(index).ok()
}

/// 15 is no variant; a Split has at most 8.
fn variant_bits(record: &Record<'_>) -> u64 {
    record.decision.map_or(15, |d| d.variant.min(14) as u64)
}

/// Scope 34, variant 4, method 4, status 16 bits.
fn block_key(record: &Record<'_>, scope: Scope) -> u64 {
    let mut key = scope.bits();
    key = key << 4 | variant_bits(record);
    key = key << 4 | method_index(record.method) as u64;
    key << 16 | u64::from(record.status)
}

/// Scope 34, variant 4, reason 4, status class 4, fault 16 bits.
fn truth_key(record: &Record<'_>, scope: Scope, fault: u16) -> u64 {
    let reason = record.reason().map_or(15, |reason| reason as u64);
    let mut key = scope.bits();
    key = key << 4 | variant_bits(record);
    key = key << 4 | reason;
    key = key << 4 | u64::from((record.status / 100).min(15));
    key << 16 | u64::from(fault)
}
