//! How much each client has asked for, exactly, over all workers.
//!
//! One table for the process, in shards with a lock each, so that two workers wait for each other
//! only when they count clients of one shard at the same moment. It is bounded: see [`ENTRIES`]. Time
//! is an argument.

use std::hash::BuildHasher as _;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use crate::model::{Rate, RateLimits, subscriber};
use crate::telemetry::Counter;

/// How many parts the table has, each with its own lock.
const SHARDS: usize = 64;

/// How many clients of Ingresses are remembered at most, over all shards: about 12 MiB. When a shard
/// is full, a client that has used nothing of its limits is forgotten first, which loses nothing;
/// else the one that called longest ago of those looked at, which starts anew (counted).
pub const ENTRIES: usize = 131_072;

/// How many entries are looked at to find one to forget.
const LOOKS: usize = 64;

const SECOND: u64 = 1_000_000_000;

/// Nanoseconds since the limiter began.
pub type Nanos = u64;

/// See the module's text.
pub struct Limiter {
    shards: Vec<Mutex<Shard>>,
    hasher: RandomState,
    began: Instant,
    evictions: Counter,
}

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refused {
    /// Too many in a time.
    Rate,
    /// Too many at once.
    Connections,
    /// Every client that could be forgotten has a request in hand.
    Full,
}

/// What is remembered of one client in one zone.
struct Entry {
    hash: u64,
    zone: Arc<str>,
    client: IpAddr,
    /// When all that was asked for so far has been earned, by the limit a second.
    second: Nanos,
    /// The same by the limit a minute.
    minute: Nanos,
    /// Requests in hand.
    open: u32,
    touched: Nanos,
}

struct Shard {
    index: HashTable<u32>,
    entries: Vec<Entry>,
    most: usize,
    /// Where the next look for something to forget begins.
    hand: usize,
}

/// A request in hand; it is over when this is dropped.
pub struct Hold {
    limiter: Arc<Limiter>,
    zone: Arc<str>,
    client: IpAddr,
}

impl Limiter {
    /// An empty table. `evictions` counts clients that were forgotten although they had used some of
    /// their limits.
    pub fn new(evictions: Counter) -> Arc<Self> {
        Self::with_entries(ENTRIES, evictions)
    }

    fn with_entries(entries: usize, evictions: Counter) -> Arc<Self> {
        let shards = SHARDS.min(entries);
        let shard = || Shard {
            index: HashTable::new(),
            entries: Vec::new(),
            most: entries / shards,
            hand: 0,
        };
        Arc::new(Limiter {
            shards: (0..shards).map(|_| Mutex::new(shard())).collect(),
            hasher: RandomState::default(),
            began: Instant::now(),
            evictions,
        })
    }

    /// An instant as time of this limiter.
    pub fn at(&self, now: Instant) -> Nanos {
        let since = now.saturating_duration_since(self.began);
        Nanos::try_from(since.as_nanos()).unwrap_or(Nanos::MAX)
    }

    /// Counts a request of `client` at `now`, unless one of the limits refuses it: then it counts for
    /// none of them. What it gives, if there is a limit of requests in hand, is to be kept as long as
    /// the request is.
    ///
    /// # Errors
    /// The limit that is reached.
    pub fn enter(
        self: &Arc<Self>,
        limits: &RateLimits,
        client: IpAddr,
        now: Nanos,
    ) -> Result<Option<Hold>, Refused> {
        if limits.exempt.contains(client) {
            return Ok(None);
        }
        let client = subscriber(client);
        let hash = self.hash(&limits.zone, client);
        let mut shard = self.shard(hash);
        let entry = shard.find_or_add(hash, &limits.zone, client, now, &self.evictions)?;
        let second = spend(limits.per_second, SECOND, entry.second, now)?;
        let minute = spend(limits.per_minute, 60 * SECOND, entry.minute, now)?;
        if limits.connections.is_some_and(|most| entry.open >= most) {
            return Err(Refused::Connections);
        }
        (entry.second, entry.minute, entry.touched) = (second, minute, now);
        if limits.connections.is_none() {
            return Ok(None);
        }
        entry.open += 1;
        Ok(Some(Hold {
            limiter: self.clone(),
            zone: limits.zone.clone(),
            client,
        }))
    }

    fn hash(&self, zone: &str, client: IpAddr) -> u64 {
        self.hasher.hash_one((zone, client))
    }

    fn shard(&self, hash: u64) -> MutexGuard<'_, Shard> {
        // The table in the shard uses the low bits.
        let index = (hash >> 40) as usize % self.shards.len();
        let shard = &self.shards[index];
        shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The time at which everything is earned, with one more request, if `rate` allows it.
fn spend(rate: Option<Rate>, period: u64, earned: Nanos, now: Nanos) -> Result<Nanos, Refused> {
    let Some(rate) = rate else {
        return Ok(earned);
    };
    let each = period / u64::from(rate.limit.max(1));
    let ahead = earned.saturating_sub(now);
    if ahead > each.saturating_mul(u64::from(rate.burst)) {
        return Err(Refused::Rate);
    }
    Ok(earned.max(now).saturating_add(each))
}

impl Entry {
    fn is(&self, zone: &str, client: IpAddr) -> bool {
        self.client == client && *self.zone == *zone
    }

    /// Whether an entry that is made anew would say the same.
    fn is_fresh(&self, now: Nanos) -> bool {
        self.open == 0 && self.second <= now && self.minute <= now
    }
}

impl Shard {
    fn find(&mut self, hash: u64, zone: &str, client: IpAddr) -> Option<&mut Entry> {
        let entries = &self.entries;
        let same = |at: &u32| {
            entries
                .get(*at as usize)
                .is_some_and(|it| it.is(zone, client))
        };
        let at = *self.index.find(hash, same)?;
        self.entries.get_mut(at as usize)
    }

    fn find_or_add(
        &mut self,
        hash: u64,
        zone: &Arc<str>,
        client: IpAddr,
        now: Nanos,
        evictions: &Counter,
    ) -> Result<&mut Entry, Refused> {
        let entries = &self.entries;
        let same = |at: &u32| {
            entries
                .get(*at as usize)
                .is_some_and(|it| it.is(zone, client))
        };
        let known = self.index.find(hash, same).map(|at| *at as usize);
        let at = match known {
            Some(at) => at,
            None => {
                let entry = Entry {
                    hash,
                    zone: zone.clone(),
                    client,
                    second: 0,
                    minute: 0,
                    open: 0,
                    touched: now,
                };
                self.add(entry, now, evictions)?
            }
        };
        self.entries.get_mut(at).ok_or(Refused::Full)
    }

    /// Adds an entry in a free place, or in that of one that is forgotten.
    fn add(&mut self, entry: Entry, now: Nanos, evictions: &Counter) -> Result<usize, Refused> {
        let hash = entry.hash;
        let at = if self.entries.len() < self.most {
            self.entries.push(entry);
            self.entries.len() - 1
        } else {
            let at = self.victim(now).ok_or(Refused::Full)?;
            let old = self.entries.get_mut(at).ok_or(Refused::Full)?;
            if !old.is_fresh(now) {
                evictions.inc();
            }
            let old = std::mem::replace(old, entry);
            if let Ok(found) = self.index.find_entry(old.hash, |it| *it as usize == at) {
                found.remove();
            }
            at
        };
        let entries = &self.entries;
        let place = u32::try_from(at).map_err(|_| Refused::Full)?;
        self.index.insert_unique(hash, place, |at| {
            entries.get(*at as usize).map_or(0, |entry| entry.hash)
        });
        Ok(at)
    }

    /// The place of an entry to forget: the first fresh one, else the one that called longest ago.
    fn victim(&mut self, now: Nanos) -> Option<usize> {
        let mut oldest: Option<(Nanos, usize)> = None;
        for _ in 0..LOOKS.min(self.entries.len()) {
            self.hand = (self.hand + 1) % self.entries.len();
            let entry = self.entries.get(self.hand)?;
            if entry.is_fresh(now) {
                return Some(self.hand);
            }
            if entry.open == 0 && oldest.is_none_or(|(touched, _)| entry.touched < touched) {
                oldest = Some((entry.touched, self.hand));
            }
        }
        oldest.map(|(_, at)| at)
    }
}

impl Drop for Hold {
    fn drop(&mut self) {
        let hash = self.limiter.hash(&self.zone, self.client);
        let mut shard = self.limiter.shard(hash);
        if let Some(entry) = shard.find(hash, &self.zone, self.client) {
            entry.open = entry.open.saturating_sub(1);
        }
    }
}

#[cfg(test)]
#[path = "limiter_tests.rs"]
mod tests;
