//! The Kubernetes API as a source of Objects.
//!
//! One watch of each kind fills a store (`reflect`, `store`, `kept`); bursts of changes are waited
//! out (`signal`); then the whole state is taken at once, as from manifests.

mod admission;
mod config_map;
mod connect;
mod kept;
mod nodes;
mod reflect;
mod scribe;
mod secrets;
mod shelves;
mod signal;
mod store;

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::{ClusterResourceScope, NamespaceResourceScope};
use kube::core::PartialObjectMeta;
use kube::runtime::watcher;
use kube::{Api, Client};
use tokio::sync::{oneshot, watch};
use tokio::task::{JoinHandle, JoinSet};

pub use admission::Reviewer;
pub use connect::ConnectError;
pub use nodes::NodeFacts;
pub use scribe::{Served, Written};
pub(super) use secrets::named as named_secrets;
pub use shelves::Shelves;
pub use signal::{BURST_LIMIT, QUIET};

use super::objects::{Objects, Sourced};
use crate::config::{ClusterSettings, Defaults, Identity};
use crate::model::{Problem, Rows};
use config_map::Followed;
use kept::Kept;
use reflect::{Failures, Reflector};
use scribe::{Desk, Scribe};
use secrets::{Named, Wanted};
use signal::{Bursts, Signals};
use store::Store;

/// How often Secrets are tried before we begin without those that cannot be read.
const SECRET_TRIES: usize = 5;

/// Between these tries.
const SECRET_PAUSE: Duration = Duration::from_millis(200);

/// For the last writes before the end, above all that somebody else may write.
const FAREWELL: Duration = Duration::from_secs(5);

/// The objects of a cluster, followed as long as this lives.
///
/// An API server that is away, a watch that breaks off and lists that begin anew change nothing:
/// what was last said holds until something else is said.
pub struct Cluster {
    settings: ClusterSettings,
    stores: Stores,
    config_map: Option<Followed>,
    /// Those that open ports of the node.
    also: Vec<Followed>,
    /// Which of these two are named.
    wanted: Wanted,
    secrets: Named<Secret>,
    maps: Named<ConfigMap>,
    bursts: Bursts,
    signals: Signals,
    failures: Vec<Failures>,
    /// Until there is something to write.
    desk: Option<Desk>,
    writing: Option<Writing>,
    written: Arc<Written>,
    /// Ends with this.
    _watches: JoinSet<Infallible>,
}

/// The task that writes.
struct Writing {
    served: watch::Sender<Arc<Served>>,
    stop: oneshot::Sender<()>,
    task: JoinHandle<()>,
}

#[derive(Clone, Default)]
struct Stores {
    ingresses: Store<Ingress>,
    classes: Store<IngressClass>,
    services: Store<Service>,
    slices: Store<EndpointSlice>,
    secrets: Store<PartialObjectMeta<Secret>>,
    nodes: Store<Node>,
    /// At most the one that is named.
    config_maps: Store<ConfigMap>,
    /// All of them.
    maps: Store<PartialObjectMeta<ConfigMap>>,
}

/// What a cluster says at one moment.
pub struct ClusterState {
    /// What routing is made of.
    pub objects: Objects,
    /// What Nodes say about addresses.
    pub nodes: NodeFacts,
    /// What the ConfigMap says; none without `--configmap`.
    pub defaults: Option<Arc<Defaults>>,
    /// That the ConfigMap is not there.
    pub problem: Option<Problem>,
}

/// How often the watch of each kind has failed, by its name in the plural. Cheap to clone.
#[derive(Clone)]
pub struct WatchFailures(Vec<Failures>);

impl WatchFailures {
    /// Each kind with its count.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|it| (it.kind, it.count()))
    }
}

impl Cluster {
    /// Starts to follow the API server, on the current tokio runtime. It need not be there yet.
    ///
    /// # Errors
    /// When it is not known where it is, or our identity cannot be used.
    pub async fn start(
        settings: ClusterSettings,
        identity: &Identity,
    ) -> Result<Self, ConnectError> {
        let client = connect::client(&settings).await?;
        let signals = Signals::default();
        let stores = Stores::default();
        let mut watches = Watches {
            client: client.clone(),
            settings: &settings,
            signals: signals.clone(),
            failures: Vec::new(),
            tasks: JoinSet::new(),
        };
        watches.start(&stores);
        let config_map = watches.config_map(&stores);
        let also = watches.also();
        let published = watches.published();
        let (failures, tasks) = (watches.failures, watches.tasks);
        let desk = Desk {
            client: client.clone(),
            settings: settings.status.clone(),
            identity: identity.clone(),
            node_name: settings.node_name.clone(),
            stores: stores.clone(),
            published,
            changed: Arc::clone(&signals.status),
            written: Arc::default(),
        };
        Ok(Cluster {
            written: Arc::clone(&desk.written),
            desk: Some(desk),
            writing: None,
            wanted: Wanted::with(&settings.secrets),
            secrets: Named::new(client.clone(), stores.secrets.clone()),
            maps: Named::new(client, stores.maps.clone()),
            bursts: Bursts::new(Arc::clone(&signals.content)),
            settings,
            stores,
            config_map,
            also,
            signals,
            failures,
            _watches: tasks,
        })
    }

    /// Waits until a whole list of every kind was read, and the Secrets that are named, as far as
    /// that is possible. May be cancelled.
    pub async fn synced(&mut self) {
        while !self.is_read() {
            self.bursts.over().await;
        }
        for _ in 0..SECRET_TRIES {
            let ingresses = self.stores.ingresses.rows();
            if self.read_named(&ingresses).await {
                break;
            }
            tokio::time::sleep(SECRET_PAUSE).await;
        }
    }

    fn is_read(&self) -> bool {
        let mut maps = self.config_map.iter().chain(&self.also);
        self.stores.are_filled() && maps.all(Followed::is_read)
    }

    /// What the ConfigMap says now; none without `--configmap`.
    pub fn defaults(&self) -> Option<Arc<Defaults>> {
        Some(self.config_map.as_ref()?.defaults().0)
    }

    /// Waits for a change and for the end of its burst. May be cancelled: no change is lost.
    pub async fn changed(&mut self) {
        self.bursts.over().await;
    }

    /// Everything as it is now. Secrets that are new are read first, each within two seconds; one
    /// that cannot be read is left out or stays as it was, and is tried again.
    pub async fn state(&mut self) -> ClusterState {
        let ingresses = self.stores.ingresses.rows();
        if !self.read_named(&ingresses).await {
            let content = Arc::clone(&self.signals.content);
            tokio::spawn(async move {
                tokio::time::sleep(secrets::AGAIN).await;
                content.notify_one();
            });
        }
        let nodes = self.stores.nodes.all();
        let own = self.settings.node_name.as_deref();
        let said = self.config_map.as_ref().map(Followed::defaults);
        let (defaults, problem) = said.unzip();
        ClusterState {
            defaults,
            problem: problem.flatten(),
            nodes: NodeFacts::of(nodes.iter().map(|it| &**it), own),
            objects: Objects {
                ingresses,
                classes: self.stores.classes.rows().iter().cloned().collect(),
                services: self.stores.services.rows(),
                slices: self.stores.slices.rows(),
                secrets: self.secrets.all(),
                config_maps: self.all_maps(),
                names: crate::k8s::Names::default(),
                class_by_name_only: true,
            },
        }
    }

    /// Those that Ingresses name, and those that flags name, each once.
    fn all_maps(&self) -> Rows<Sourced<ConfigMap>> {
        let also: Vec<_> = self.also.iter().filter_map(Followed::object).collect();
        if also.is_empty() {
            return self.maps.all();
        }
        let same = |one: &ConfigMap, other: &ConfigMap| {
            let name = |it: &ConfigMap| (it.metadata.namespace.clone(), it.metadata.name.clone());
            name(one) == name(other)
        };
        let mut all = self.maps.all();
        all.retain(|it| !also.iter().any(|other| same(&it.object, other)));
        all.extend(sourced(also).iter().cloned());
        all
    }

    /// False when one could not be read.
    async fn read_named(&mut self, ingresses: &Rows<Sourced<Ingress>>) -> bool {
        if self.wanted.follow(ingresses) {
            // Some that nobody names change all the time, such as those of autoscalers.
            let maps = self.wanted.maps().iter().cloned();
            self.stores.maps.heed(maps.collect());
        }
        let read = (
            self.secrets.refresh(self.wanted.secrets()),
            self.maps.refresh(self.wanted.maps()),
        );
        let (secrets, maps) = tokio::join!(read.0, read.1);
        secrets && maps
    }

    /// Says what is served from now on, so that it is written into the objects, by this instance
    /// or by another one.
    pub fn serves(&mut self, served: Served) {
        if let Some(writing) = &self.writing {
            // Most changes are of weights and endpoints, of which nothing is written anywhere.
            writing.served.send_if_modified(|present| {
                let same = present.ingresses == served.ingresses
                    && Arc::ptr_eq(&present.problems, &served.problems);
                if !same {
                    *present = Arc::new(served);
                }
                !same
            });
            return;
        }
        let Some(desk) = self.desk.take() else { return };
        if !desk.settings.update && !desk.settings.events {
            return;
        }
        let (served, receiver) = watch::channel(Arc::new(served));
        let (stop, stopped) = oneshot::channel();
        let scribe = Scribe::new(desk, receiver);
        self.writing = Some(Writing {
            served,
            stop,
            task: tokio::spawn(scribe.run(stopped)),
        });
    }

    /// Has another instance write, at once where it was this one.
    pub async fn stop(&mut self) {
        let Some(writing) = self.writing.take() else {
            return;
        };
        // Both fail only when the task is gone.
        let _ = writing.stop.send(());
        let mut task = writing.task;
        if tokio::time::timeout(FAREWELL, &mut task).await.is_err() {
            tracing::warn!("the API server does not answer; another instance writes in a while");
            task.abort();
        }
    }

    /// What this instance has written.
    pub fn written(&self) -> Arc<Written> {
        Arc::clone(&self.written)
    }

    /// How often watches have failed.
    pub fn failures(&self) -> WatchFailures {
        WatchFailures(self.failures.clone())
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if let Some(writing) = &self.writing {
            writing.task.abort();
        }
    }
}

impl Stores {
    fn are_filled(&self) -> bool {
        self.ingresses.is_filled()
            && self.classes.is_filled()
            && self.services.is_filled()
            && self.slices.is_filled()
            && self.secrets.is_filled()
            && self.maps.is_filled()
            && self.nodes.is_filled()
    }
}

/// Objects of the API server.
fn sourced<T>(objects: impl IntoIterator<Item = Arc<T>>) -> Rows<Sourced<T>> {
    let source: Arc<str> = "".into();
    let sourced = |object| Sourced {
        object,
        source: Arc::clone(&source),
    };
    objects.into_iter().map(sourced).collect()
}

/// The watches as they are being started.
struct Watches<'a> {
    client: Client,
    settings: &'a ClusterSettings,
    signals: Signals,
    failures: Vec<Failures>,
    tasks: JoinSet<Infallible>,
}

impl Watches<'_> {
    fn start(&mut self, stores: &Stores) {
        // From the server's memory: every node asks for all of it.
        let any = || watcher::Config::default().any_semantic();
        let mut ingresses = any();
        ingresses.label_selector = self.settings.ingress_selector.clone();
        self.namespaced("ingresses", &stores.ingresses, ingresses);
        self.namespaced("services", &stores.services, any());
        let slices = any().labels("kubernetes.io/service-name");
        self.namespaced("endpointslices", &stores.slices, slices);
        self.namespaced("secrets", &stores.secrets, any());
        self.maps(&stores.maps, any());
        self.everywhere("ingressclasses", &stores.classes, false);
        self.everywhere("nodes", &stores.nodes, true);
    }

    /// Without the right to read them Ingresses cannot name any, and everything else works.
    fn maps(&mut self, store: &Store<PartialObjectMeta<ConfigMap>>, config: watcher::Config) {
        let client = self.client.clone();
        let api = match &self.settings.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        self.spawn("configmap-names", api, config, store, true);
    }

    /// The Service whose addresses are ours, wherever it is.
    fn published(&mut self) -> Store<Service> {
        let store = Store::default();
        if let Some(name) = &self.settings.status.publish_service {
            let api = Api::namespaced(self.client.clone(), &name.namespace);
            let selector = format!("metadata.name={}", name.name);
            let config = watcher::Config::default().any_semantic().fields(&selector);
            self.spawn("publish-service", api, config, &store, true);
        }
        store
    }

    /// The ConfigMap with the defaults, wherever it is. What may keep somebody out is in it, so
    /// nothing is served before it was asked for.
    fn config_map(&mut self, stores: &Stores) -> Option<Followed> {
        let name = self.settings.config_map.clone()?;
        let store = stores.config_maps.clone();
        let api = Api::namespaced(self.client.clone(), &name.namespace);
        // The right to a list of one name is given to who asks for that name only.
        let selector = format!("metadata.name={}", name.name);
        let config = watcher::Config::default().any_semantic().fields(&selector);
        self.spawn("configmaps", api, config, &store, false);
        Some(Followed { name, store })
    }

    /// The ConfigMaps that open ports of the node. Without the right to read them no port is opened,
    /// and everything else works.
    fn also(&mut self) -> Vec<Followed> {
        let names = self.settings.config_maps.clone();
        let followed = names.into_iter().map(|(kind, name)| {
            let store = Store::default();
            let api = Api::namespaced(self.client.clone(), &name.namespace);
            let selector = format!("metadata.name={}", name.name);
            let config = watcher::Config::default().any_semantic().fields(&selector);
            self.spawn(kind, api, config, &store, true);
            Followed { name, store }
        });
        followed.collect()
    }

    fn namespaced<K>(&mut self, kind: &'static str, store: &Store<K>, config: watcher::Config)
    where
        K: Kept + kube::Resource<Scope = NamespaceResourceScope>,
    {
        let client = self.client.clone();
        let api = match &self.settings.namespace {
            Some(namespace) => Api::namespaced(client, namespace),
            None => Api::all(client),
        };
        self.spawn(kind, api, config, store, false);
    }

    fn everywhere<K>(&mut self, kind: &'static str, store: &Store<K>, optional: bool)
    where
        K: Kept + kube::Resource<Scope = ClusterResourceScope>,
    {
        let api = Api::all(self.client.clone());
        let config = watcher::Config::default().any_semantic();
        self.spawn(kind, api, config, store, optional);
    }

    fn spawn<K: Kept>(
        &mut self,
        kind: &'static str,
        api: Api<K>,
        config: watcher::Config,
        store: &Store<K>,
        optional: bool,
    ) {
        let failures = Failures::new(kind);
        self.failures.push(failures.clone());
        let reflector = Reflector {
            api,
            config,
            store: store.clone(),
            signals: self.signals.clone(),
            failures,
            optional,
        };
        self.tasks.spawn(reflector.run());
    }
}
