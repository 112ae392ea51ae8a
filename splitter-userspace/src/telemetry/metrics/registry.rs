use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::Snapshot;

use super::named::Named;
use super::shard::{Shard, lock};
use super::text::{Labels, Text};
use super::{ConfigMetrics, Counter, Family, Gauge, WorkerMetrics, page};

/// How many label sets of requests one worker holds, for ingress-nginx's families and for our own
/// each; what has no room is counted in `splitter_metrics_dropped_total`. A label set of the former
/// takes about 800 bytes, and up to 90 lines of the page.
pub const MAX_SERIES: usize = 10_000;

/// The constant labels of ingress-nginx's families.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ControllerLabels {
    /// Namespace of the pod.
    pub namespace: String,
    /// The controller of the IngressClass, e.g. `k8s.io/ingress-nginx`.
    pub class: String,
    /// Name of the pod.
    pub pod: String,
}

/// Writes whole families to a page when it is made.
type Collector = Box<dyn Fn(&mut Text) + Send + Sync>;

/// All metrics of the process. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

pub(super) struct Inner {
    controller: Labels,
    /// Seconds since 1970-01-01.
    pub(super) started: u64,
    pub(super) shards: Mutex<Vec<Arc<Shard>>>,
    named: Mutex<Named>,
    collectors: Mutex<Vec<Collector>>,
    /// Of the tables of each shard.
    limit: usize,
}

impl Registry {
    /// An empty registry with room for [`MAX_SERIES`].
    pub fn new(labels: &ControllerLabels) -> Self {
        Self::with_limit(labels, MAX_SERIES)
    }

    /// An empty registry with room for `limit` label sets of requests a worker.
    pub fn with_limit(labels: &ControllerLabels, limit: usize) -> Self {
        let mut controller = Labels::default();
        controller.push("controller_namespace", &labels.namespace);
        controller.push("controller_class", &labels.class);
        controller.push("controller_pod", &labels.pod);
        let started = SystemTime::now().duration_since(UNIX_EPOCH);
        Registry(Arc::new(Inner {
            controller,
            started: started.map_or(0, |since| since.as_secs()),
            shards: Mutex::default(),
            named: Mutex::default(),
            collectors: Mutex::default(),
            limit,
        }))
    }

    /// Counters for one more worker of `pool`. They continue those of a worker of the pool that is
    /// gone, if there is one.
    pub fn worker(&self, pool: &'static str) -> WorkerMetrics {
        let mut shards = lock(&self.0.shards);
        let free = shards.iter().find(|s| s.pool == pool && s.take());
        let shard = if let Some(shard) = free {
            shard.clone()
        } else {
            let shard = Arc::new(Shard::new(pool, self.0.limit));
            shard.take();
            shards.push(shard.clone());
            shard
        };
        drop(shards);
        WorkerMetrics::new(&self.0, shard)
    }

    /// A cell of a named counter. Labels must come from a small set that is known beforehand.
    pub fn counter(&self, family: &Family, labels: &[(&'static str, &str)]) -> Counter {
        self.0.counter(family, labels)
    }

    /// A cell of a named gauge. Labels must come from a small set that is known beforehand.
    pub fn gauge(&self, family: &Family, labels: &[(&'static str, &str)]) -> Gauge {
        self.0.gauge(family, labels)
    }

    /// The sum of a named counter over all its cells and labels.
    #[cfg(test)]
    pub(in crate::telemetry) fn sum(&self, family: &Family) -> u64 {
        self.0.sum(family)
    }

    /// Has `collector` write families to every page: what is counted elsewhere and only read when
    /// somebody asks. It must write its families whole, and none that others write.
    pub fn collect(&self, collector: impl Fn(&mut Text) + Send + Sync + 'static) {
        lock(&self.0.collectors).push(Box::new(collector));
    }

    /// What is counted about applied configurations.
    pub fn config(&self) -> ConfigMetrics {
        ConfigMetrics::new(self)
    }

    /// Writes everything as a page of Prometheus' text format, to which more may be added.
    pub fn page(&self) -> Text {
        let mut text = Text::new(&self.0.controller);
        page::write(&self.0, &mut text);
        lock(&self.0.named).write(&mut text);
        for collector in lock(&self.0.collectors).iter() {
            collector(&mut text);
        }
        text
    }

    /// Forgets the series of Ingresses that `snapshot` does not have any more, which makes room.
    /// To be called after a page was written, so that their last counts were seen once.
    pub fn prune(&self, snapshot: &Snapshot) {
        page::prune(&self.0, snapshot);
    }
}

impl Inner {
    pub(super) fn counter(&self, family: &Family, labels: &[(&'static str, &str)]) -> Counter {
        Counter(lock(&self.named).cell(family, labels))
    }

    pub(super) fn gauge(&self, family: &Family, labels: &[(&'static str, &str)]) -> Gauge {
        Gauge(lock(&self.named).cell(family, labels))
    }

    /// The sum of a named counter or gauge over all its cells and labels.
    pub(super) fn sum(&self, family: &Family) -> u64 {
        lock(&self.named).sum(family)
    }
}
