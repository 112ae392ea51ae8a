//! What is kept of each kind: the rest of an object is dropped before it is stored.

use std::fmt::Debug;

use k8s_openapi::api::core::v1::{ConfigMap, Node, Pod, PodSpec, PodStatus, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use serde::de::DeserializeOwned;

use super::secrets::Read;

/// The whole object once more, written by `kubectl apply`.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Names the Service of a slice.
const SERVICE_LABEL: &str = "kubernetes.io/service-name";

/// An object of which only a part is kept.
pub(super) trait Kept:
    kube::Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
    /// Drops what nobody reads, above all what changes without a meaning.
    fn trim(&mut self);

    /// Whether what is kept of both is the same.
    fn same(&self, other: &Self) -> bool;

    /// Whether both want the same of us, whatever was written about them.
    fn asks_the_same(&self, other: &Self) -> bool {
        self.same(other)
    }
}

/// What no kind needs.
fn trim(meta: &mut ObjectMeta) {
    meta.managed_fields = None;
    meta.owner_references = None;
    meta.finalizers = None;
    meta.resource_version = None;
    meta.generation = None;
    meta.self_link = None;
    if let Some(annotations) = &mut meta.annotations {
        annotations.remove(LAST_APPLIED);
    }
}

impl Kept for Ingress {
    fn trim(&mut self) {
        trim(&mut self.metadata);
        self.metadata.labels = None;
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.spec == other.spec && self.metadata == other.metadata
    }
}

impl Kept for IngressClass {
    fn trim(&mut self) {
        trim(&mut self.metadata);
        self.metadata.labels = None;
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Kept for Service {
    fn trim(&mut self) {
        trim(&mut self.metadata);
        self.metadata.labels = None;
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }

    fn asks_the_same(&self, other: &Self) -> bool {
        self.spec == other.spec && self.metadata == other.metadata
    }
}

impl Kept for EndpointSlice {
    /// There are more endpoints than of anything else: their addresses and conditions stay.
    fn trim(&mut self) {
        trim(&mut self.metadata);
        self.metadata.annotations = None;
        if let Some(labels) = &mut self.metadata.labels {
            labels.retain(|label, _| label == SERVICE_LABEL);
        }
        for endpoint in self.endpoints.iter_mut().flatten() {
            endpoint.deprecated_topology = None;
            endpoint.hints = None;
            endpoint.hostname = None;
            endpoint.node_name = None;
            endpoint.target_ref = None;
            endpoint.zone = None;
        }
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Kept for Node {
    /// A Node's status is written all the time; its addresses and pod ranges seldom change.
    fn trim(&mut self) {
        trim(&mut self.metadata);
        self.metadata.annotations = None;
        self.metadata.labels = None;
        if let Some(spec) = &mut self.spec {
            let ranges = (spec.pod_cidr.take(), spec.pod_cidrs.take());
            *spec = Default::default();
            (spec.pod_cidr, spec.pod_cidrs) = ranges;
        }
        if let Some(status) = &mut self.status {
            let addresses = status.addresses.take();
            *status = Default::default();
            status.addresses = addresses;
        }
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Kept for ConfigMap {
    /// Keys and values.
    fn trim(&mut self) {
        trim(&mut self.metadata);
        self.metadata.annotations = None;
        self.metadata.labels = None;
        self.binary_data = None;
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl Kept for Pod {
    /// Of our own pods: where they are and whether they are ready.
    fn trim(&mut self) {
        self.metadata = ObjectMeta {
            name: self.metadata.name.take(),
            namespace: self.metadata.namespace.take(),
            deletion_timestamp: self.metadata.deletion_timestamp.take(),
            ..ObjectMeta::default()
        };
        let node_name = self.spec.take().and_then(|spec| spec.node_name);
        self.spec = Some(PodSpec {
            node_name,
            ..PodSpec::default()
        });
        let conditions = self.status.take().and_then(|status| status.conditions);
        let ready = conditions.into_iter().flatten();
        let ready = ready.filter(|condition| condition.type_ == "Ready");
        let ready = ready.map(|mut condition| {
            // The rest of a condition tells when somebody looked.
            condition.last_probe_time = None;
            condition.last_transition_time = None;
            condition.message = None;
            condition
        });
        self.status = Some(PodStatus {
            conditions: Some(ready.collect()),
            ..PodStatus::default()
        });
    }

    fn same(&self, other: &Self) -> bool {
        self == other
    }
}

impl<K: Read> Kept for PartialObjectMeta<K> {
    /// Which objects there are, and in which version; those that are named are read one by one.
    fn trim(&mut self) {
        self.types = None;
        self.metadata = ObjectMeta {
            name: self.metadata.name.take(),
            namespace: self.metadata.namespace.take(),
            resource_version: self.metadata.resource_version.take(),
            uid: self.metadata.uid.take(),
            ..ObjectMeta::default()
        };
    }

    fn same(&self, other: &Self) -> bool {
        self.metadata == other.metadata
    }
}
