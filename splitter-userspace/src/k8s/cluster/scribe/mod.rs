//! What is written back: the status of Ingresses, and Events about Problems. By one instance.

mod addresses;
mod election;
mod lease;
mod ledger;
mod pods;
mod statuses;
mod write;

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use k8s_openapi::api::core::v1::{Node, Pod, Service};
use kube::Client;
use tokio::sync::{Notify, oneshot, watch};
use tokio::time::sleep_until;

use super::Stores;
use super::store::{Key, Store};
use crate::config::{Identity, StatusSettings};
use crate::model::{Kind, ObjectRef, Problem};
use addresses::{Address, ReadyNodes};
use lease::Lease;
use ledger::Ledger;
use statuses::Statuses;

/// For one request to be answered.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Between two looks at everything that is served.
const PACE: Duration = Duration::from_millis(100);

/// Requests at a time.
const AT_A_TIME: usize = 16;

/// What is being served, and what is wrong.
#[derive(Clone, Debug, Default)]
pub struct Served {
    /// The Ingresses that are ours.
    pub ingresses: Arc<[ObjectRef]>,
    /// What is wrong with objects.
    pub problems: Arc<Vec<Problem>>,
}

/// What was written, for metrics.
#[derive(Debug, Default)]
pub struct Written {
    leads: AtomicBool,
    ready: AtomicU64,
    counts: [AtomicU64; 4],
}

impl Written {
    /// Whether this instance is the one that writes.
    pub fn leads(&self) -> bool {
        self.leads.load(Ordering::Relaxed)
    }

    /// How many instances are ready, as far as their pods say so.
    pub fn ready_instances(&self) -> u64 {
        self.ready.load(Ordering::Relaxed)
    }

    /// How many were written, by what and how it went.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &'static str, u64)> + '_ {
        let names = ["status", "event"].map(|what| [(what, "written"), (what, "failed")]);
        let counts = self.counts.iter().map(|it| it.load(Ordering::Relaxed));
        let names = names.into_iter().flatten();
        names
            .zip(counts)
            .map(|((what, how), count)| (what, how, count))
    }

    fn count(&self, is_event: bool, done: bool) {
        let index = usize::from(is_event) * 2 + usize::from(!done);
        if let Some(count) = self.counts.get(index) {
            count.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What the scribe works with.
pub(super) struct Desk {
    pub client: Client,
    pub settings: StatusSettings,
    pub identity: Identity,
    /// The Node this runs on.
    pub node_name: Option<String>,
    pub stores: Stores,
    /// The Service whose addresses are ours.
    pub published: Store<Service>,
    /// Told when a status, a Service, a Node or a pod changes.
    pub changed: Arc<Notify>,
    pub written: Arc<Written>,
}

/// The task that writes.
pub(super) struct Scribe {
    desk: Desk,
    pods: Store<Pod>,
    served: watch::Receiver<Arc<Served>>,
    /// What the statuses know of.
    taken_in: Option<Arc<Served>>,
    lease: Lease,
    statuses: Statuses,
    ledger: Ledger,
    ready: ReadyNodes,
}

impl Scribe {
    pub(super) fn new(desk: Desk, served: watch::Receiver<Arc<Served>>) -> Self {
        Scribe {
            lease: Lease::new(&desk.client, &desk.settings, &desk.identity),
            pods: Store::default(),
            served,
            taken_in: None,
            statuses: Statuses::default(),
            ledger: Ledger::new(Instant::now()),
            ready: ReadyNodes::default(),
            desk,
        }
    }

    /// Writes until `stop`, then takes leave: the Lease is free for the next one at once.
    pub(super) async fn run(mut self, mut stop: oneshot::Receiver<()>) {
        let pods = pods::follow(&self.desk, self.pods.clone());
        let mut pods = std::pin::pin!(pods);
        let mut again = None;
        loop {
            let wake = again.unwrap_or_else(|| Instant::now() + Duration::from_secs(3600));
            let wake = self.lease.due().min(wake);
            tokio::select! {
                _ = &mut stop => break,
                never = &mut pods => match never {},
                () = self.desk.changed.notified() => {}
                changed = self.served.changed() => if changed.is_err() { break },
                () = sleep_until(wake.into()) => {}
            }
            if Instant::now() >= self.lease.due() {
                self.lease.look().await;
                self.desk
                    .written
                    .leads
                    .store(self.lease.is_held(), Ordering::Relaxed);
            }
            again = self.write().await;
            // Each write comes back as a change: many of them are looked at together.
            tokio::time::sleep(PACE).await;
        }
        self.leave().await;
    }

    /// Writes what there is to write, if we are the one; says when there will be more.
    async fn write(&mut self) -> Option<Instant> {
        self.take_in();
        let now = Instant::now();
        let pods = self.pods.all();
        let ready = pods::ready(&pods);
        self.desk.written.ready.store(ready, Ordering::Relaxed);
        let leaving = self.ready.update(pods.iter().map(|it| &**it), now);
        let wanted = self.wanted();
        let ingresses = self.desk.stores.ingresses.clone();
        let plan = self
            .statuses
            .plan(wanted.as_ref(), |key| ingresses.get(key), now);
        if !self.lease.is_held() {
            return leaving;
        }
        let mut again = [leaving, plan.again];
        if self.desk.settings.update && self.write_statuses(plan.writes).await {
            again[1] = Some(Instant::now());
        }
        let events = self.tell().await;
        again.into_iter().chain([events]).flatten().min()
    }

    fn take_in(&mut self) {
        let served = self.served.borrow_and_update().clone();
        if self
            .taken_in
            .as_ref()
            .is_some_and(|it| Arc::ptr_eq(it, &served))
        {
            return;
        }
        let ingresses = served.ingresses.iter();
        let ingresses = ingresses.filter(|it| it.kind == Kind::Ingress);
        let keys = ingresses.map(|it| (Arc::clone(&it.namespace), Arc::clone(&it.name)));
        self.statuses.serve(keys.collect());
        self.taken_in = Some(served);
    }

    /// Where we are reached, as far as it is known.
    fn wanted(&self) -> Option<BTreeSet<Address>> {
        let settings = &self.desk.settings;
        if !settings.addresses.is_empty() {
            return Some(addresses::of_flags(&settings.addresses));
        }
        if let Some(name) = &settings.publish_service {
            let key: Key = (name.namespace.as_str().into(), name.name.as_str().into());
            let service = self.desk.published.get(&key);
            return service.map(|it| addresses::of_service(&it));
        }
        if !self.pods.is_filled() {
            // Our own node alone would be written everywhere, and soon be wrong.
            return None;
        }
        let own = self.desk.node_name.as_deref();
        let names = self.ready.names().chain(own);
        let node = |name: &str| self.desk.stores.nodes.get(&("".into(), name.into()));
        let nodes: Vec<Arc<Node>> = names.filter_map(node).collect();
        let internal = settings.internal_node_addresses;
        let of_nodes = nodes.iter().map(|it| addresses::of_node(it, internal));
        let found: BTreeSet<Address> = of_nodes.flatten().collect();
        (!found.is_empty()).then_some(found)
    }

    /// Takes our addresses out where that is asked for and nobody is left to serve, and frees the
    /// Lease.
    async fn leave(&mut self) {
        let settings = &self.desk.settings;
        let alone = !pods::others_are_ready(&self.pods.all(), &self.desk.identity.pod_name);
        if self.lease.is_held() && settings.update && settings.clear_on_shutdown && alone {
            let ingresses = self.desk.stores.ingresses.clone();
            let writes = self.statuses.clear(|key| ingresses.get(key));
            self.write_statuses(writes).await;
        }
        self.lease.release().await;
        self.desk.written.leads.store(false, Ordering::Relaxed);
    }
}
