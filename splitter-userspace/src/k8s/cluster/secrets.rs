//! The Secrets and ConfigMaps that Ingresses name, and no others, in memory.
//!
//! Which there are, and in which version, is watched without their content. One that is named is
//! read by itself when it is new or its version changes.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use k8s_openapi::NamespaceResourceScope;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::{Api, Client, Resource};
use serde::de::DeserializeOwned;

use super::reflect::chain;
use super::sourced;
pub(super) use super::store::Key;
use super::store::Store;
use crate::config::NamespacedName;
use crate::k8s::Sourced;
use crate::model::Rows;

/// How many objects are read at a time.
const AT_A_TIME: usize = 16;

/// For one object to be read. The change of everything else waits for it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Until an object that could not be read is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// Annotations whose names end so name a Secret, by name or by namespace and name.
const ANNOTATION_ENDING: &str = "-secret";

/// An annotation that may name a ConfigMap of any namespace, as in ingress-nginx: which of its keys
/// count is said for the whole cluster.
const FIELDS: &str = "/custom-headers";

/// Annotations that name a ConfigMap: these endings.
const MAP_ENDINGS: [&str; 2] = ["-configmap", "/auth-proxy-set-headers"];

/// A kind of which only what is named is read.
pub(super) trait Read:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
}

impl Read for k8s_openapi::api::core::v1::Secret {}
impl Read for k8s_openapi::api::core::v1::ConfigMap {}

/// Which objects there are, and in which version.
type Metas<K> = Rows<Sourced<PartialObjectMeta<K>>>;

/// What is held of one kind.
pub(super) struct Named<K> {
    client: Client,
    known: Store<PartialObjectMeta<K>>,
    held: HashMap<Key, Held<K>>,
    /// What was wanted, and what was known, when everything could be read the last time.
    read: Option<(BTreeSet<Key>, Metas<K>)>,
    /// What is held, as it was last asked for.
    all: Rows<Sourced<K>>,
}

struct Held<K> {
    version: Option<String>,
    object: Arc<K>,
}

impl<K: Read> Named<K> {
    pub(super) fn new(client: Client, known: Store<PartialObjectMeta<K>>) -> Self {
        Named {
            client,
            known,
            held: HashMap::new(),
            read: None,
            all: Rows::new(),
        }
    }

    /// Reads the `wanted` objects that are new or have changed and forgets the others. False when
    /// one could not be read: its last state stays, and it is to be tried [`AGAIN`].
    pub(super) async fn refresh(&mut self, wanted: &BTreeSet<Key>) -> bool {
        let known = self.known.rows();
        if let Some((before, of)) = &self.read
            && of.is_same(&known)
            && before == wanted
        {
            return true;
        }
        self.read = None;
        let complete = self.read(wanted).await;
        if complete {
            self.read = Some((wanted.clone(), known));
        }
        self.all = sourced(self.held.values().map(|held| Arc::clone(&held.object)));
        complete
    }

    async fn read(&mut self, wanted: &BTreeSet<Key>) -> bool {
        let present = |key: &Key| Some((key.clone(), self.known.get(key)?));
        let present: HashMap<_, _> = wanted.iter().filter_map(present).collect();
        self.held.retain(|key, _| present.contains_key(key));
        let stale = present.into_iter().filter(|(key, meta)| {
            let held = self.held.get(key);
            held.is_none_or(|held| held.version != meta.metadata.resource_version)
        });
        let stale: Vec<Key> = stale.map(|(key, _)| key).collect();
        let client = &self.client;
        let read = stream::iter(stale)
            .map(|key| async move { (read::<K>(client, &key).await, key) })
            .buffer_unordered(AT_A_TIME);
        let read: Vec<_> = read.collect().await;
        let mut complete = true;
        for (result, (namespace, name)) in read {
            match result {
                Ok(Some(held)) => {
                    self.held.insert((namespace, name), held);
                }
                // Deleted meanwhile, which the watch is about to say.
                Ok(None) => {}
                Err(error) => {
                    complete = false;
                    let kind = K::kind(&());
                    tracing::warn!(%namespace, %name, error, "cannot read a {kind}; trying again");
                }
            }
        }
        complete
    }

    /// What is held, in no order.
    pub(super) fn all(&self) -> Rows<Sourced<K>> {
        self.all.clone()
    }
}

/// The names of Secrets and ConfigMaps that Ingresses name, followed from one state to the next.
#[derive(Default)]
pub(super) struct Wanted {
    of: Rows<Sourced<Ingress>>,
    secrets: Counted,
    maps: Counted,
    /// Was ever followed.
    begun: bool,
}

/// Names, and by how many Ingresses each is named.
#[derive(Default)]
struct Counted {
    counts: BTreeMap<Key, usize>,
    names: BTreeSet<Key>,
}

impl Wanted {
    /// Those that flags name are wanted in any case.
    pub(super) fn with(secrets: &[NamespacedName]) -> Self {
        let keys = secrets.iter();
        let keys = keys.map(|it| (it.namespace.as_str().into(), it.name.as_str().into()));
        let mut wanted = Wanted::default();
        wanted.secrets.add(keys.collect());
        wanted
    }

    /// Takes in what has changed. True when other ConfigMaps are named than before, and the first time.
    pub(super) fn follow(&mut self, now: &Rows<Sourced<Ingress>>) -> bool {
        let before = std::mem::replace(&mut self.of, now.clone());
        let mut other = !std::mem::replace(&mut self.begun, true);
        let changes = before
            .differences(now)
            .filter(|(_, old, new)| match (old, new) {
                (Some(old), Some(new)) => !Arc::ptr_eq(&old.object, &new.object),
                _ => true,
            });
        let changes: Vec<_> = changes.collect();
        // First what is new, so that nothing is forgotten that was only moved.
        for new in changes.iter().filter_map(|(_, _, new)| *new) {
            self.secrets.add(named([&*new.object]));
            other |= self.maps.add(named_maps([&*new.object]));
        }
        for old in changes.iter().filter_map(|(_, old, _)| *old) {
            self.secrets.take(named([&*old.object]));
            other |= self.maps.take(named_maps([&*old.object]));
        }
        other
    }

    pub(super) fn secrets(&self) -> &BTreeSet<Key> {
        &self.secrets.names
    }

    pub(super) fn maps(&self) -> &BTreeSet<Key> {
        &self.maps.names
    }
}

impl Counted {
    /// True when one of them was not named before.
    fn add(&mut self, keys: BTreeSet<Key>) -> bool {
        let mut new = false;
        for key in keys {
            new |= self.names.insert(key.clone());
            *self.counts.entry(key).or_default() += 1;
        }
        new
    }

    /// True when one of them is not named any more.
    fn take(&mut self, keys: BTreeSet<Key>) -> bool {
        let mut gone = false;
        for key in keys {
            let Some(count) = self.counts.get_mut(&key) else {
                continue;
            };
            *count -= 1;
            if *count == 0 {
                self.counts.remove(&key);
                gone |= self.names.remove(&key);
            }
        }
        gone
    }
}

async fn read<K: Read>(client: &Client, key: &Key) -> Result<Option<Held<K>>, String> {
    let (namespace, name) = key;
    let api: Api<K> = Api::namespaced(client.clone(), namespace);
    let read = tokio::time::timeout(TIMEOUT, api.get_opt(name)).await;
    let read = read.map_err(|_| format!("no answer within {TIMEOUT:?}"))?;
    let object = read.map_err(|error| chain(&error))?;
    Ok(object.map(held))
}

fn held<K: Read>(mut object: K) -> Held<K> {
    let meta = object.meta_mut();
    let version = meta.resource_version.take();
    *meta = ObjectMeta {
        name: meta.name.take(),
        namespace: meta.namespace.take(),
        ..ObjectMeta::default()
    };
    Held {
        version,
        object: Arc::new(object),
    }
}

/// The ConfigMaps that these Ingresses name.
pub(super) fn named_maps<'a>(ingresses: impl IntoIterator<Item = &'a Ingress>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for ingress in ingresses {
        let namespace = ingress.metadata.namespace.as_deref().unwrap_or("");
        let annotations = ingress.metadata.annotations.iter().flatten();
        let naming =
            annotations.filter(|(key, _)| MAP_ENDINGS.iter().any(|ending| key.ends_with(ending)));
        keys.extend(naming.filter_map(|(_, value)| own(namespace, value.trim())));
        let annotations = ingress.metadata.annotations.iter().flatten();
        let fields = annotations.filter(|(key, _)| key.ends_with(FIELDS));
        keys.extend(fields.filter_map(|(_, value)| {
            let value = value.trim();
            let of = value.split_once('/').map_or(namespace, |(of, _)| of);
            own(of, value)
        }));
    }
    keys
}

/// An object of the Ingress's own namespace by its name: `translate` refuses those of others, so they
/// are not even read. What is no name would be a path, and not of such an object.
fn own(namespace: &str, text: &str) -> Option<Key> {
    let (of, name) = text.split_once('/').unwrap_or((namespace, text));
    let good = of == namespace && crate::config::is_name(namespace) && crate::config::is_name(name);
    good.then(|| (namespace.into(), name.into()))
}

/// The Secrets of their own namespaces that these Ingresses name.
pub(in crate::k8s) fn named<'a>(ingresses: impl IntoIterator<Item = &'a Ingress>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for ingress in ingresses {
        let namespace = ingress.metadata.namespace.as_deref().unwrap_or("");
        let tls = ingress.spec.as_ref().and_then(|spec| spec.tls.as_ref());
        let tls = tls.into_iter().flatten();
        let tls = tls.filter_map(|entry| entry.secret_name.as_deref());
        let annotations = ingress.metadata.annotations.iter().flatten();
        let annotations = annotations.filter(|(key, _)| key.ends_with(ANNOTATION_ENDING));
        let all = tls.chain(annotations.map(|(_, value)| value.trim()));
        keys.extend(all.filter_map(|text| own(namespace, text)));
    }
    keys
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tls_entries_and_annotations_name_secrets() {
        let ingress: Ingress = serde_json::from_value(json!({
            "metadata": {"name": "a", "namespace": "shop", "annotations": {
                "nginx.ingress.kubernetes.io/auth-secret": "users",
                "nginx.ingress.kubernetes.io/auth-tls-secret": "shop/ca",
                "nginx.ingress.kubernetes.io/proxy-ssl-secret": "other/ca",
                "nginx.ingress.kubernetes.io/auth-secret-type": "auth-file",
                "splitter.io/x-secret": "../../nodes/x",
                "splitter.io/jwt-jwks-configmap": "keys",
                "nginx.ingress.kubernetes.io/auth-proxy-set-headers": "shop/headers",
                "nginx.ingress.kubernetes.io/x-configmap": "other/headers",
                "nginx.ingress.kubernetes.io/custom-headers": "web/fields",
                "other/custom-headers": "../../nodes",
            }},
            "spec": {"tls": [
                {"hosts": ["a.example"], "secretName": "cert"},
                {"hosts": ["b.example"]},
                {"secretName": ""},
                {"secretName": "cert"},
            ]},
        }))
        .unwrap();
        let found = named([&ingress]);
        let expected = [("shop", "ca"), ("shop", "cert"), ("shop", "users")];
        let expected = expected.map(|(namespace, name)| (namespace.into(), name.into()));
        assert_eq!(found, BTreeSet::from(expected));
        let maps = named_maps([&ingress]);
        let expected = [("shop", "headers"), ("shop", "keys"), ("web", "fields")];
        let expected = expected.map(|(namespace, name)| (namespace.into(), name.into()));
        assert_eq!(maps, BTreeSet::from(expected));
    }

    /// An Ingress that names a Secret and a ConfigMap.
    fn naming(name: &str, secret: &str, map: &str) -> Arc<Ingress> {
        let ingress = serde_json::from_value(json!({
            "metadata": {"name": name, "namespace": "shop", "annotations": {
                "splitter.io/jwt-jwks-configmap": map,
            }},
            "spec": {"tls": [{"secretName": secret}]},
        }));
        Arc::new(ingress.unwrap())
    }

    #[test]
    fn what_is_named_is_followed() {
        let [one, other, third] = [
            naming("one", "a", "m"),
            naming("other", "a", "n"),
            naming("one", "b", "n"),
        ];
        let mut wanted = Wanted::default();
        let states = [
            (vec![], true),
            (vec![Arc::clone(&one)], true),
            (vec![Arc::clone(&one), Arc::clone(&other)], true),
            // The same in another order.
            (vec![Arc::clone(&other), Arc::clone(&one)], false),
            // m is not named any more.
            (vec![Arc::clone(&other), Arc::clone(&third)], true),
            (vec![Arc::clone(&other)], false),
            (vec![other], false),
            (vec![], true),
        ];
        for (state, other_maps) in states {
            let rows = sourced(state.iter().cloned());
            assert_eq!(wanted.follow(&rows), other_maps, "{state:?}");
            let all = || state.iter().map(|it| &**it);
            assert_eq!(*wanted.secrets(), named(all()));
            assert_eq!(*wanted.maps(), named_maps(all()));
        }
        let by_flag = NamespacedName {
            namespace: "tls".to_owned(),
            name: "default".to_owned(),
        };
        let mut wanted = Wanted::with(&[by_flag]);
        wanted.follow(&sourced([one]));
        wanted.follow(&sourced([]));
        let left = [("tls".into(), "default".into())];
        assert_eq!(*wanted.secrets(), BTreeSet::from(left));
    }
}
