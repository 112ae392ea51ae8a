use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use crate::model::Snapshot;

use super::named::Named;
use super::shard::{Room, Shard, lock};
use super::text::{Labels, Text};
use super::{ConfigMetrics, Counter, Family, Gauge, WorkerMetrics, page};

/// How many label sets of requests there may be over all workers, for ingress-nginx's families and
/// for our own each. A label set of the former takes about 800 bytes and up to 90 lines of the
/// page.
pub const MAX_SERIES: usize = 20_000;

/// How many names of faults there may be, times workers. They are fixed in the code.
const MAX_FAULTS: usize = 1 << 16;

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

/// All metrics of the process. Cheap to clone.
#[derive(Clone)]
pub struct Registry(Arc<Inner>);

pub(super) struct Inner {
    controller: Labels,
    /// Seconds since 1970-01-01.
    pub(super) started: u64,
    pub(super) shards: Mutex<Vec<Arc<Shard>>>,
    named: Mutex<Named>,
    pub(super) request_room: Room,
    pub(super) truth_room: Room,
    pub(super) fault_room: Room,
}

impl Registry {
    /// An empty registry with room for [`MAX_SERIES`] label sets.
    pub fn new(labels: &ControllerLabels) -> Self {
        Self::with_limit(labels, MAX_SERIES)
    }

    /// An empty registry with room for `limit` label sets of requests.
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
            request_room: Room::new(limit),
            truth_room: Room::new(limit),
            fault_room: Room::new(MAX_FAULTS),
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
            let shard = Arc::new(Shard::new(pool));
            shard.take();
            shards.push(shard.clone());
            shard
        };
        drop(shards);
        WorkerMetrics::new(self.0.clone(), shard)
    }

    /// A cell of a named counter. Labels must come from a small set that is known beforehand.
    pub fn counter(&self, family: &Family, labels: &[(&'static str, &str)]) -> Counter {
        self.0.counter(family, labels)
    }

    /// A cell of a named gauge. Labels must come from a small set that is known beforehand.
    pub fn gauge(&self, family: &Family, labels: &[(&'static str, &str)]) -> Gauge {
        self.0.gauge(family, labels)
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
