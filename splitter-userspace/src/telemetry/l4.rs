//! What is counted of connections where no HTTP is looked at. Connections are few beside requests, so
//! one table serves all workers: a lock when one begins, atomics afterwards.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

use serde::Serialize;

use super::metrics::{
    L4_BYTES, L4_CONNECTIONS, L4_CUT, L4_FALLBACKS, L4_OPEN, L4_PACKETS, L4_REFUSED, lock,
};
use super::{Family, Labels, Text};
use crate::model::{L4, L4Key};

/// Declares reasons with their names.
macro_rules! reasons {
    ($(#[$doc:meta])* $type:ident; $($(#[$line:meta])* $variant:ident = $name:literal,)+) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $type {
            $($(#[$line])* $variant,)+
        }

        impl $type {
            const ALL: &[$type] = &[$($type::$variant),+];

            /// The name in metrics.
            pub const fn name(self) -> &'static str {
                match self {
                    $($type::$variant => $name,)+
                }
            }
        }
    };
}

reasons! {
    /// Why a connection or a datagram got no Endpoint.
    L4Refusal;
    /// No Variant that it may have has an Endpoint.
    NoEndpoint = "no-endpoint",
    /// None of the Endpoints that it was offered accepted.
    NotAccepted = "not-accepted",
    /// The worker has as many as it may have.
    OverLimit = "over-limit",
    /// It did not begin with the PROXY header that was agreed on.
    BadProxyHeader = "bad-proxy-header",
    /// The client left before it had an Endpoint.
    ClientGone = "client-gone",
}

reasons! {
    /// Why a connection or a session ended otherwise than by itself.
    L4Cut;
    /// One side reset it, or the network did: so is the other side.
    Reset = "reset",
    /// Not a byte went either way for too long.
    Idle = "idle",
    /// Its Endpoint is in no EndpointSlice any more.
    EndpointGone = "endpoint-gone",
    /// The instance stopped, and its time for that was over.
    Stopped = "stopped",
}

/// What is counted of one Service port.
#[derive(Debug, Default)]
pub struct L4Counts {
    variants: Mutex<BTreeMap<Arc<str>, Arc<L4VariantCounts>>>,
    refused: [AtomicU64; L4Refusal::ALL.len()],
    cut: [AtomicU64; L4Cut::ALL.len()],
    fallbacks: AtomicU64,
}

/// One of a Variant's counts: what user space carried, and what the kernel did.
type Value = fn(&L4VariantCounts, &L4Forwarded) -> u64;

/// What the kernel has forwarded for one Variant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct L4Forwarded {
    /// Connections, and flows of datagrams, that began.
    pub connections: u64,
    /// Packets from clients.
    pub packets_in: u64,
    /// Their bytes.
    pub received: u64,
    /// Packets to clients.
    pub packets_out: u64,
    /// Their bytes.
    pub sent: u64,
}

/// What the kernel has forwarded, by Service port and Variant.
pub type Forwarded = BTreeMap<(L4Key, Arc<str>), L4Forwarded>;

/// Reads that.
type Reader = Box<dyn Fn() -> Forwarded + Send + Sync>;

/// What is counted of one Variant.
#[derive(Debug, Default)]
pub struct L4VariantCounts {
    connections: AtomicU64,
    open: AtomicU64,
    received: AtomicU64,
    sent: AtomicU64,
}

/// All counts. Cheap to clone.
#[derive(Clone, Default)]
pub struct L4Stats {
    table: Arc<Mutex<BTreeMap<L4Key, Arc<L4Counts>>>>,
    /// None: the kernel forwards nothing.
    forwarded: Arc<OnceLock<Reader>>,
}

/// One Variant's counts at one moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct L4Shown {
    /// The Service port, as commands name it.
    pub service: String,
    /// `stable` or the canary's Service.
    pub variant: Arc<str>,
    /// How many connections or sessions it was given.
    pub connections: u64,
    /// How many of them are open in user space; what the kernel forwards is not followed to its end.
    pub open: u64,
    /// Bytes from clients.
    pub received: u64,
    /// Bytes to clients.
    pub sent: u64,
}

impl L4Stats {
    /// Has what the kernel forwards be counted, too. Only the first call counts.
    pub fn add_forwarded(&self, read: impl Fn() -> Forwarded + Send + Sync + 'static) {
        let _only_the_first = self.forwarded.set(Box::new(read));
    }

    /// The counts of a Service port.
    pub fn of(&self, key: &L4Key) -> Arc<L4Counts> {
        let mut all = lock(&self.table);
        match all.get(key) {
            Some(counts) => Arc::clone(counts),
            None => Arc::clone(all.entry(key.clone()).or_default()),
        }
    }

    /// Forgets what is neither there any more nor open.
    pub fn keep(&self, l4: &L4) {
        let there = |key: &L4Key| l4.services.binary_search_by(|it| it.key.cmp(key)).ok();
        lock(&self.table).retain(|key, counts| {
            let service = there(key).and_then(|index| l4.services.get(index));
            let mut variants = lock(&counts.variants);
            variants.retain(|name, counts| {
                let named = service.is_some_and(|it| it.variants.iter().any(|it| it.name == *name));
                named || counts.open.load(Ordering::Relaxed) > 0
            });
            service.is_some() || !variants.is_empty()
        });
    }

    /// All Variants, sorted.
    pub fn shown(&self) -> Vec<L4Shown> {
        let (_, variants) = self.all();
        let shown = variants.iter().map(|it| L4Shown {
            service: it.key.to_string(),
            variant: Arc::clone(&it.name),
            connections: connections(&it.counts, &it.forwarded),
            open: open(&it.counts, &it.forwarded),
            received: received(&it.counts, &it.forwarded),
            sent: sent(&it.counts, &it.forwarded),
        });
        shown.collect()
    }

    /// Writes all families.
    pub fn write(&self, text: &mut Text) {
        let (all, variants) = self.all();
        if all.is_empty() {
            return;
        }
        let samples: [(&Family, Value, &str); 6] = [
            (&L4_CONNECTIONS, connections, ""),
            (&L4_OPEN, open, ""),
            (&L4_BYTES, received, "in"),
            (&L4_BYTES, sent, "out"),
            (&L4_PACKETS, |_, it| it.packets_in, "in"),
            (&L4_PACKETS, |_, it| it.packets_out, "out"),
        ];
        for (family, value, direction) in samples {
            if direction != "out" {
                text.family(family);
            }
            for it in &variants {
                let mut labels = labels(family, text, &it.key);
                labels.push("variant", &it.name);
                if !direction.is_empty() {
                    labels.push("direction", direction);
                }
                text.sample(family, &labels, value(&it.counts, &it.forwarded));
            }
        }
        reasons(text, &L4_FALLBACKS, &all, |counts| {
            vec![("", &counts.fallbacks)]
        });
        reasons(text, &L4_REFUSED, &all, |counts| {
            L4Refusal::ALL
                .iter()
                .map(|it| it.name())
                .zip(&counts.refused)
                .collect()
        });
        reasons(text, &L4_CUT, &all, |counts| {
            L4Cut::ALL
                .iter()
                .map(|it| it.name())
                .zip(&counts.cut)
                .collect()
        });
    }

    /// All Service ports, and all their Variants.
    fn all(&self) -> (Vec<(L4Key, Arc<L4Counts>)>, Vec<VariantShown>) {
        let forwarded = self.forwarded.get().map(|read| read()).unwrap_or_default();
        for (key, variant) in forwarded.keys() {
            self.of(key).variant(variant);
        }
        let all = lock(&self.table);
        let all: Vec<_> = all
            .iter()
            .map(|(key, it)| (key.clone(), Arc::clone(it)))
            .collect();
        let mut variants = Vec::new();
        for (key, counts) in &all {
            for (name, counts) in lock(&counts.variants).iter() {
                let place = (key.clone(), Arc::clone(name));
                variants.push(VariantShown {
                    forwarded: forwarded.get(&place).copied().unwrap_or_default(),
                    key: place.0,
                    name: place.1,
                    counts: Arc::clone(counts),
                });
            }
        }
        (all, variants)
    }
}

/// One Variant with its counts.
struct VariantShown {
    key: L4Key,
    name: Arc<str>,
    counts: Arc<L4VariantCounts>,
    forwarded: L4Forwarded,
}

fn connections(counts: &L4VariantCounts, forwarded: &L4Forwarded) -> u64 {
    counts.connections.load(Ordering::Relaxed) + forwarded.connections
}

fn open(counts: &L4VariantCounts, _forwarded: &L4Forwarded) -> u64 {
    counts.open.load(Ordering::Relaxed)
}

fn received(counts: &L4VariantCounts, forwarded: &L4Forwarded) -> u64 {
    counts.received.load(Ordering::Relaxed) + forwarded.received
}

fn sent(counts: &L4VariantCounts, forwarded: &L4Forwarded) -> u64 {
    counts.sent.load(Ordering::Relaxed) + forwarded.sent
}

/// What never happened is left out.
fn reasons(
    text: &mut Text,
    family: &Family,
    all: &[(L4Key, Arc<L4Counts>)],
    of: impl Fn(&L4Counts) -> Vec<(&'static str, &AtomicU64)>,
) {
    let mut begun = false;
    for (key, counts) in all {
        for (reason, count) in of(counts) {
            let count = count.load(Ordering::Relaxed);
            if count == 0 {
                continue;
            }
            if !std::mem::replace(&mut begun, true) {
                text.family(family);
            }
            let mut labels = labels(family, text, key);
            if !reason.is_empty() {
                labels.push("reason", reason);
            }
            text.sample(family, &labels, count);
        }
    }
}

/// The labels that name a Service port.
pub(crate) fn labels(family: &Family, text: &Text, key: &L4Key) -> Labels {
    let mut labels = Labels::of(family, text);
    labels.push("namespace", &key.namespace);
    labels.push("service", &key.service);
    labels.push("port", &key.port.to_string());
    labels.push("protocol", key.transport.name());
    labels
}

impl L4Counts {
    /// A connection that is given to a Variant, open until the guard is dropped.
    pub fn begin(&self, variant: &Arc<str>) -> L4Guard {
        let counts = self.variant(variant);
        counts.connections.fetch_add(1, Ordering::Relaxed);
        counts.open.fetch_add(1, Ordering::Relaxed);
        L4Guard(counts)
    }

    fn variant(&self, variant: &Arc<str>) -> Arc<L4VariantCounts> {
        let mut variants = lock(&self.variants);
        match variants.get(variant) {
            Some(counts) => Arc::clone(counts),
            None => Arc::clone(variants.entry(Arc::clone(variant)).or_default()),
        }
    }

    /// Counts one that got no Endpoint.
    pub fn refuse(&self, why: L4Refusal) {
        if let Some(count) = self.refused.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts one that was cut.
    pub fn cut(&self, why: L4Cut) {
        if let Some(count) = self.cut.get(why as usize) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts one that a canary left to stable.
    pub fn fall_back(&self) {
        self.fallbacks.fetch_add(1, Ordering::Relaxed);
    }
}

/// One that is open.
#[derive(Debug)]
pub struct L4Guard(Arc<L4VariantCounts>);

impl L4Guard {
    /// Counts bytes from the client.
    pub fn received(&self, bytes: u64) {
        self.0.received.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Counts bytes to the client.
    pub fn sent(&self, bytes: u64) {
        self.0.sent.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Drop for L4Guard {
    fn drop(&mut self) {
        self.0.open.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "l4_tests.rs"]
mod tests;
