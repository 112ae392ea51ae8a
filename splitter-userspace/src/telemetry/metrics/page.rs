use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use crate::model::Snapshot;

use super::labels::{RequestLabels, TruthLabels};
use super::process::Process;
use super::registry::Inner;
use super::series::{BlockSum, HistogramSum, LENGTH, SIZE, Scale, TIME};
use super::shard::{Shard, lock};
use super::text::{Labels, Text};
use super::{Family, families};

/// Adds the workers up and writes every family that is not a named one.
pub(super) fn write(inner: &Inner, text: &mut Text) {
    let shards = lock(&inner.shards).clone();
    write_requests(&shards, text);
    write_truth(&shards, text);
    write_faults(&shards, text);
    write_series(&shards, text);
    write_connections(inner, text);
    write_process(inner, text);
}

fn write_requests(shards: &[Arc<Shard>], text: &mut Text) {
    let mut sums: BTreeMap<RequestLabels, BlockSum> = BTreeMap::new();
    for shard in shards {
        for (labels, block) in shard.requests.list() {
            block.add_to(sums.entry(labels).or_default());
        }
    }
    let sums: Vec<(Labels, BlockSum)> = sums
        .into_iter()
        .map(|(labels, sum)| {
            let mut written = Labels::of(&families::REQUESTS, text);
            labels.write(&mut written);
            (written, sum)
        })
        .collect();
    if sums.is_empty() {
        return;
    }
    text.family(&families::REQUESTS);
    for (labels, sum) in &sums {
        text.sample(&families::REQUESTS, labels, sum.requests);
    }
    for (family, scale, pick) in HISTOGRAMS {
        write_histogram(text, family, scale, &sums, *pick);
    }
}

type Pick = fn(&BlockSum) -> &HistogramSum;

static HISTOGRAMS: &[(&Family, &Scale, Pick)] = &[
    (&families::REQUEST_DURATION, &TIME, |s| &s.request_duration),
    (&families::RESPONSE_DURATION, &TIME, |s| {
        &s.response_duration
    }),
    (&families::HEADER_DURATION, &TIME, |s| &s.header_duration),
    (&families::CONNECT_DURATION, &TIME, |s| &s.connect_duration),
    (&families::REQUEST_SIZE, &LENGTH, |s| &s.request_size),
    (&families::RESPONSE_SIZE, &LENGTH, |s| &s.response_size),
    (&families::BYTES_SENT, &SIZE, |s| &s.bytes_sent),
];

fn write_histogram(
    text: &mut Text,
    family: &Family,
    scale: &Scale,
    sums: &[(Labels, BlockSum)],
    pick: Pick,
) {
    // As in ingress-nginx, what never happened (a request without a backend) has no series.
    let mut seen = sums
        .iter()
        .map(|(labels, sum)| (labels, pick(sum)))
        .filter(|(_, histogram)| !histogram.is_empty())
        .peekable();
    if seen.peek().is_none() {
        return;
    }
    text.family(family);
    for (labels, histogram) in seen {
        #[allow(clippy::cast_precision_loss, reason = "the format has floating point")]
        let sum = histogram.sum as f64 / scale.per_unit;
        text.histogram(family, labels, scale.written, &histogram.counts, sum);
    }
}

fn write_truth(shards: &[Arc<Shard>], text: &mut Text) {
    let mut sums: BTreeMap<TruthLabels, u64> = BTreeMap::new();
    for shard in shards {
        for (labels, cell) in shard.truth.list() {
            *sums.entry(labels).or_default() += cell.get();
        }
    }
    if sums.is_empty() {
        return;
    }
    text.family(&families::TRUTH);
    for (labels, sum) in &sums {
        let mut written = Labels::of(&families::TRUTH, text);
        labels.write(&mut written);
        text.sample(&families::TRUTH, &written, *sum);
    }
}

fn write_faults(shards: &[Arc<Shard>], text: &mut Text) {
    let mut sums: BTreeMap<(&str, &str), u64> = BTreeMap::new();
    for shard in shards {
        for (fault, cell) in lock(&shard.faults).iter() {
            *sums.entry((*fault, shard.pool)).or_default() += cell.get();
        }
    }
    if sums.is_empty() {
        return;
    }
    text.family(&families::FAULTS);
    for ((fault, pool), sum) in &sums {
        let labels = pairs(&families::FAULTS, text, &[("fault", fault), ("pool", pool)]);
        text.sample(&families::FAULTS, &labels, *sum);
    }
}

fn write_series(shards: &[Arc<Shard>], text: &mut Text) {
    let held = [
        (
            "nginx",
            shards.iter().map(|s| s.requests.len()).sum::<usize>(),
        ),
        ("splitter", shards.iter().map(|s| s.truth.len()).sum()),
    ];
    text.family(&families::SERIES);
    for (family, count) in held {
        let labels = pairs(&families::SERIES, text, &[("family", family)]);
        text.sample(&families::SERIES, &labels, count as u64);
    }
    let dropped = [
        (
            "nginx",
            shards.iter().map(|s| s.dropped_requests.get()).sum(),
        ),
        (
            "splitter",
            shards.iter().map(|s| s.dropped_truth.get()).sum(),
        ),
    ];
    text.family(&families::SERIES_DROPPED);
    for (family, count) in dropped {
        let labels = pairs(&families::SERIES_DROPPED, text, &[("family", family)]);
        text.sample(&families::SERIES_DROPPED, &labels, count);
    }
}

/// ingress-nginx's view of the connections, from our own counters.
fn write_connections(inner: &Inner, text: &mut Text) {
    let active = inner.sum(&families::CONNECTIONS_OPEN);
    let writing = inner.sum(&families::REQUESTS_OPEN);
    // One HTTP/2 connection can have many requests.
    let waiting = active.saturating_sub(writing);
    let family = &families::PROCESS_CONNECTIONS;
    text.family(family);
    for (state, count) in [
        ("active", active),
        ("writing", writing),
        ("waiting", waiting),
    ] {
        let labels = pairs(family, text, &[("state", state)]);
        text.sample(family, &labels, count);
    }
    let accepted = inner.sum(&families::CONNECTIONS_ACCEPTED);
    let refused = inner.sum(&families::CONNECTIONS_REFUSED);
    let family = &families::PROCESS_CONNECTIONS_TOTAL;
    text.family(family);
    for (state, count) in [
        ("accepted", accepted),
        ("handled", accepted.saturating_sub(refused)),
    ] {
        let labels = pairs(family, text, &[("state", state)]);
        text.sample(family, &labels, count);
    }
}

fn write_process(inner: &Inner, text: &mut Text) {
    let version = [("version", env!("CARGO_PKG_VERSION"))];
    text.family(&families::BUILD_INFO);
    let labels = pairs(&families::BUILD_INFO, text, &version);
    text.sample(&families::BUILD_INFO, &labels, 1);
    let labels = Labels::of(&families::PROCESS_START, text);
    text.family(&families::PROCESS_START);
    text.sample(&families::PROCESS_START, &labels, inner.started);
    let Some(process) = Process::read() else {
        return;
    };
    text.family(&families::PROCESS_CPU);
    text.sample_f64(&families::PROCESS_CPU, &labels, process.cpu_seconds);
    text.family(&families::PROCESS_RESIDENT);
    text.sample(&families::PROCESS_RESIDENT, &labels, process.resident_bytes);
    text.family(&families::PROCESS_VIRTUAL);
    text.sample(&families::PROCESS_VIRTUAL, &labels, process.virtual_bytes);
}

fn pairs(family: &Family, text: &Text, pairs: &[(&str, &str)]) -> Labels {
    let mut labels = Labels::of(family, text);
    for (name, value) in pairs {
        labels.push(name, value);
    }
    labels
}

/// Forgets the series of Ingresses that are gone. Series without an Ingress stay: they are few.
pub(super) fn prune(inner: &Inner, snapshot: &Snapshot) {
    let known: HashSet<(&str, &str)> = snapshot
        .locations
        .iter()
        .map(|location| (&*location.ingress.namespace, &*location.ingress.name))
        .collect();
    let keep = |namespace: &str, ingress: &str| {
        ingress.is_empty() || known.contains(&(namespace, ingress))
    };
    for shard in lock(&inner.shards).iter() {
        shard.requests.retain(|l| keep(&l.namespace, &l.ingress));
        shard.truth.retain(|l| keep(&l.namespace, &l.ingress));
    }
}
