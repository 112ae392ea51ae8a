//! What the kernel programs and the watches of the cluster count, as metrics.

use std::sync::Arc;

use splitter_common::{Class, Count};

use crate::dataplane::{ConnectCounter, Counters, Counts};
use crate::k8s::Cluster;
use crate::telemetry::{
    CONNECTS, Family, L4_XDP, LEADS, Labels, OBJECT_WRITES, READY_INSTANCES, Registry, STEER, Text,
    WATCH_FAILURES, XDP_BYTES, XDP_NOTICED, XDP_PACKETS,
};

/// Has the counters read whenever a page of metrics is made. What never happened is left out.
pub fn collect(registry: &Registry, counters: Arc<Counters>) {
    registry.collect(move |text| match counters.read() {
        Ok(counts) => write(&counts, text),
        Err(error) => tracing::warn!(%error, "the kernel's counters are missing in the metrics"),
    });
}

/// The same for connections of processes.
pub fn collect_connects(registry: &Registry, connects: Arc<ConnectCounter>) {
    registry.collect(move |text| match connects.read() {
        Ok(counts) => {
            let counted: Vec<_> = counts.iter().filter(|(_, count)| *count > 0).collect();
            if !counted.is_empty() {
                text.family(&CONNECTS);
            }
            for (reason, count) in counted {
                let mut labels = Labels::of(&CONNECTS, text);
                labels.push("reason", reason);
                text.sample(&CONNECTS, &labels, *count);
            }
        }
        Err(error) => tracing::warn!(%error, "what became of connects is missing in the metrics"),
    });
}

/// Has what follows and writes to a cluster read whenever a page of metrics is made.
pub fn collect_cluster(registry: &Registry, cluster: &Cluster) {
    let (failures, written) = (cluster.failures(), cluster.written());
    registry.collect(move |text| {
        text.family(&WATCH_FAILURES);
        for (kind, count) in failures.all() {
            let mut labels = Labels::of(&WATCH_FAILURES, text);
            labels.push("kind", kind);
            text.sample(&WATCH_FAILURES, &labels, count);
        }
        text.family(&LEADS);
        let labels = Labels::of(&LEADS, text);
        text.sample(&LEADS, &labels, u64::from(written.leads()));
        text.family(&READY_INSTANCES);
        let labels = Labels::of(&READY_INSTANCES, text);
        text.sample(&READY_INSTANCES, &labels, written.ready_instances());
        text.family(&OBJECT_WRITES);
        for (what, result, count) in written.all() {
            let mut labels = Labels::of(&OBJECT_WRITES, text);
            labels.push("what", what);
            labels.push("result", result);
            text.sample(&OBJECT_WRITES, &labels, count);
        }
    });
}

fn write(counts: &Counts, text: &mut Text) {
    let packets: Vec<_> = of(counts, &["pass", "drop"]).collect();
    family(text, &XDP_PACKETS, &packets, |count| count.count);
    family(text, &XDP_BYTES, &packets, |count| count.bytes);
    let noticed: Vec<_> = of(counts, &["seen"]).collect();
    family(text, &XDP_NOTICED, &noticed, |count| count.count);
    let steered: Vec<_> = of(counts, &["steer"]).collect();
    family(text, &STEER, &steered, |count| count.count);
    let forwarded: Vec<_> = of(counts, &["l4"]).collect();
    family(text, &L4_XDP, &forwarded, |count| count.count);
}

/// One counter, with its name cut at the first dash.
struct Sample {
    class: Option<Class>,
    kind: &'static str,
    reason: &'static str,
    count: Count,
}

/// The counters whose names begin with one of these words and that have counted anything.
fn of<'a>(counts: &'a Counts, kinds: &'a [&str]) -> impl Iterator<Item = Sample> + 'a {
    let samples = counts.all().filter_map(|(class, name, count)| {
        let (kind, reason) = name.split_once('-')?;
        Some(Sample {
            class,
            kind,
            reason,
            count,
        })
    });
    samples.filter(|sample| kinds.contains(&sample.kind) && sample.count.count > 0)
}

fn family(text: &mut Text, family: &Family, samples: &[Sample], value: fn(Count) -> u64) {
    if samples.is_empty() {
        return;
    }
    text.family(family);
    for sample in samples {
        let mut labels = Labels::of(family, text);
        labels.push("class", sample.class.map_or("none", Class::name));
        match sample.kind {
            "pass" | "drop" => labels.push("verdict", sample.kind),
            _ => {}
        }
        let reason = if sample.kind == "seen" {
            "rule"
        } else {
            "reason"
        };
        labels.push(reason, sample.reason);
        text.sample(family, &labels, value(sample.count));
    }
}
