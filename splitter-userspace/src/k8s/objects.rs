//! The Kubernetes objects that routing is made of, as plain data.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::{Ingress, IngressClass};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::names::Names;
use crate::model::{
    KeySource, Kind, ObjectRef, Problem, Rows, SecretData, SecretSource, Severity, UserLayout,
};

/// An object with the place it was read from. Cheap to clone.
#[derive(Debug, PartialEq)]
pub struct Sourced<T> {
    /// The object. Its namespace is set if its kind has one.
    pub object: Arc<T>,
    /// For example `shop/ingress.yaml#2`, the second document of that file; empty when it came
    /// from the API server.
    pub source: Arc<str>,
}

/// One object of a kind that routing reads.
#[derive(Clone, Debug, PartialEq)]
pub enum Object {
    /// `networking.k8s.io/v1` Ingress.
    Ingress(Sourced<Ingress>),
    /// `networking.k8s.io/v1` IngressClass.
    IngressClass(Sourced<IngressClass>),
    /// `v1` Service.
    Service(Sourced<Service>),
    /// `discovery.k8s.io/v1` EndpointSlice.
    EndpointSlice(Sourced<EndpointSlice>),
    /// `v1` Secret.
    Secret(Sourced<Secret>),
    /// `v1` ConfigMap.
    ConfigMap(Sourced<ConfigMap>),
}

impl Object {
    /// Names the object.
    pub fn object_ref(&self) -> ObjectRef {
        match self {
            Object::Ingress(it) => it.object_ref(Kind::Ingress),
            Object::IngressClass(it) => it.object_ref(Kind::IngressClass),
            Object::Service(it) => it.object_ref(Kind::Service),
            Object::EndpointSlice(it) => it.object_ref(Kind::EndpointSlice),
            Object::Secret(it) => it.object_ref(Kind::Secret),
            Object::ConfigMap(it) => it.object_ref(Kind::ConfigMap),
        }
    }

    /// Where it was read from.
    pub fn source(&self) -> &Arc<str> {
        match self {
            Object::Ingress(it) => &it.source,
            Object::IngressClass(it) => &it.source,
            Object::Service(it) => &it.source,
            Object::EndpointSlice(it) => &it.source,
            Object::Secret(it) => &it.source,
            Object::ConfigMap(it) => &it.source,
        }
    }
}

impl<T> Clone for Sourced<T> {
    fn clone(&self) -> Self {
        Sourced {
            object: Arc::clone(&self.object),
            source: Arc::clone(&self.source),
        }
    }
}

impl<T> Sourced<T> {
    /// Whether both are the same allocation from the same place, so that nothing can differ.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.object, &other.object) && self.source == other.source
    }
}

impl<T: Metadata<Ty = ObjectMeta>> Sourced<T> {
    /// Names the object, which is of `kind`.
    pub(super) fn object_ref(&self, kind: Kind) -> ObjectRef {
        ObjectRef::new(kind, self.namespace(), self.name())
    }

    /// Its namespace; empty for cluster-scoped objects.
    pub(super) fn namespace(&self) -> &str {
        self.object.metadata().namespace.as_deref().unwrap_or("")
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        self.object.metadata().name.as_deref().unwrap_or("")
    }
}

impl Sourced<Secret> {
    /// Its content, shared with the object.
    pub(super) fn data(&self) -> SecretData {
        SecretData::new(Content(self.object.clone()))
    }
}

/// The content of a Secret as the API server would give it: `stringData` wins over `data`.
struct Content(Arc<Secret>);

impl SecretSource for Content {
    fn entries(&self) -> BTreeMap<&str, &[u8]> {
        let data = self.0.data.iter().flatten();
        let data = data.map(|(key, value)| (key.as_str(), value.0.as_slice()));
        let text = self.0.string_data.iter().flatten();
        let text = text.map(|(key, value)| (key.as_str(), value.as_bytes()));
        data.chain(text).collect()
    }

    fn get(&self, key: &str) -> Option<&[u8]> {
        let text = self.0.string_data.as_ref().and_then(|it| it.get(key));
        let data = self.0.data.as_ref().and_then(|it| it.get(key));
        text.map(|it| it.as_bytes())
            .or_else(|| data.map(|it| it.0.as_slice()))
    }
}

impl Sourced<ConfigMap> {
    /// Its content, shared with the object.
    pub(super) fn data(&self) -> SecretData {
        SecretData::new(Map(self.object.clone()))
    }
}

/// The content of a ConfigMap, for what may stand in a Secret as well.
struct Map(Arc<ConfigMap>);

impl SecretSource for Map {
    fn entries(&self) -> BTreeMap<&str, &[u8]> {
        let text = self.0.data.iter().flatten();
        let text = text.map(|(key, value)| (key.as_str(), value.as_bytes()));
        let bytes = self.0.binary_data.iter().flatten();
        let bytes = bytes.map(|(key, value)| (key.as_str(), value.0.as_slice()));
        text.chain(bytes).collect()
    }
}

/// All objects that one Snapshot is made of, in any order, each (kind, namespace, name) once. A source
/// that follows changes keeps what did not change in its place: then it is not looked at again.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Objects {
    /// Ingresses of every class.
    pub ingresses: Rows<Sourced<Ingress>>,
    /// IngressClasses of every controller.
    pub classes: Vec<Sourced<IngressClass>>,
    /// Services.
    pub services: Rows<Sourced<Service>>,
    /// EndpointSlices.
    pub slices: Rows<Sourced<EndpointSlice>>,
    /// Secrets.
    pub secrets: Rows<Sourced<Secret>>,
    /// ConfigMaps; those of a cluster that annotations name, and no others.
    pub config_maps: Rows<Sourced<ConfigMap>>,
    /// What the names of ExternalName Services lead to.
    pub names: Names,
    /// Where there is no IngressClass at all, an Ingress that names none is not ours because of
    /// that: others may serve it. False for manifests, where nobody else can be meant.
    pub class_by_name_only: bool,
}

impl Objects {
    /// Collects objects in the order of precedence: of two with the same kind, namespace and name
    /// the first one stays and the other becomes a Problem.
    pub fn collect(objects: impl IntoIterator<Item = Object>) -> (Objects, Vec<Problem>) {
        let mut all = Objects::default();
        let mut problems = Vec::new();
        let mut seen = HashSet::new();
        for object in objects {
            let name = object.object_ref();
            if seen.contains(&name) {
                problems.push(duplicate(name, object.source()));
                continue;
            }
            seen.insert(name);
            all.push(object);
        }
        (all, problems)
    }

    /// The content of a Secret, if there is one of that name.
    pub fn secret(&self, namespace: &str, name: &str) -> Option<SecretData> {
        let mut secrets = self.secrets.iter();
        let found = secrets.find(|it| it.namespace() == namespace && it.name() == name)?;
        Some(found.data())
    }

    /// Stands in for Secrets that were not given: each that an Ingress names is taken to be there,
    /// empty under the keys that are looked for. For who is shown everything but Secrets. Says how many
    /// there are.
    pub fn suppose_secrets(&mut self) -> usize {
        const KEYS: [&str; 5] = [
            UserLayout::FILE_KEY,
            KeySource::ENTRY,
            "ca.crt",
            "tls.crt",
            "tls.key",
        ];
        let ingresses = self.ingresses.iter().map(|it| &*it.object);
        let names = super::named_secrets(ingresses);
        let count = names.len();
        for (namespace, name) in names {
            let entries = KEYS.map(|key| (key.to_owned(), String::new()));
            let secret = Secret {
                metadata: ObjectMeta {
                    namespace: Some(namespace.to_string()),
                    name: Some(name.to_string()),
                    ..ObjectMeta::default()
                },
                string_data: Some(entries.into()),
                ..Secret::default()
            };
            self.secrets.push(Sourced {
                object: Arc::new(secret),
                source: "".into(),
            });
        }
        count
    }

    fn push(&mut self, object: Object) {
        match object {
            Object::Ingress(it) => self.ingresses.push(it),
            Object::IngressClass(it) => self.classes.push(it),
            Object::Service(it) => self.services.push(it),
            Object::EndpointSlice(it) => self.slices.push(it),
            Object::Secret(it) => self.secrets.push(it),
            Object::ConfigMap(it) => self.config_maps.push(it),
        }
    }
}

fn duplicate(object: ObjectRef, source: &str) -> Problem {
    Problem {
        severity: Severity::Error,
        message: format!("{object} is defined a second time"),
        object,
        source: source.to_owned(),
        field: "metadata.name".to_owned(),
        code: "object-duplicate",
        effect: "this one is left out, the first one by file path stays".to_owned(),
    }
}
