//! The Secrets that Ingresses name, and no others, in memory.
//!
//! Which Secrets there are, and in which version, is watched without their content. One that is
//! named is read by itself when it is new or its version changes.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::PartialObjectMeta;
use kube::{Api, Client};

use super::reflect::chain;
use super::store::{Key, Store};

/// How many Secrets are read at a time.
const AT_A_TIME: usize = 16;

/// For one Secret to be read. The change of everything else waits for it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// Until a Secret that could not be read is tried again.
pub(super) const AGAIN: Duration = Duration::from_secs(5);

/// Annotations whose names end so name a Secret, by name or by namespace and name.
const ANNOTATION_ENDING: &str = "-secret";

/// What is held of the Secrets.
pub(super) struct Secrets {
    client: Client,
    known: Store<PartialObjectMeta<Secret>>,
    held: HashMap<Key, Held>,
}

struct Held {
    version: Option<String>,
    secret: Arc<Secret>,
}

impl Secrets {
    pub(super) fn new(client: Client, known: Store<PartialObjectMeta<Secret>>) -> Self {
        Secrets {
            client,
            known,
            held: HashMap::new(),
        }
    }

    /// Reads the `wanted` Secrets that are new or have changed and forgets the others. False when
    /// one could not be read: its last state stays, and it is to be tried [`AGAIN`].
    pub(super) async fn refresh(&mut self, wanted: BTreeSet<Key>) -> bool {
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
            .map(|key| async move { (read(client, &key).await, key) })
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
                    tracing::warn!(%namespace, %name, error, "cannot read a Secret; trying again");
                }
            }
        }
        complete
    }

    /// What is held, in no order.
    pub(super) fn all(&self) -> Vec<Arc<Secret>> {
        self.held
            .values()
            .map(|held| Arc::clone(&held.secret))
            .collect()
    }
}

async fn read(client: &Client, key: &Key) -> Result<Option<Held>, String> {
    let (namespace, name) = key;
    let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
    let read = tokio::time::timeout(TIMEOUT, api.get_opt(name)).await;
    let read = read.map_err(|_| format!("no answer within {TIMEOUT:?}"))?;
    let secret = read.map_err(|error| chain(&error))?;
    Ok(secret.map(held))
}

fn held(mut secret: Secret) -> Held {
    let version = secret.metadata.resource_version.take();
    secret.metadata = ObjectMeta {
        name: secret.metadata.name.take(),
        namespace: secret.metadata.namespace.take(),
        ..ObjectMeta::default()
    };
    Held {
        version,
        secret: Arc::new(secret),
    }
}

/// The Secrets of their own namespaces that these Ingresses name.
pub(super) fn named<'a>(ingresses: impl IntoIterator<Item = &'a Ingress>) -> BTreeSet<Key> {
    let mut keys = BTreeSet::new();
    for ingress in ingresses {
        let namespace = ingress.metadata.namespace.as_deref().unwrap_or("");
        let tls = ingress.spec.as_ref().and_then(|spec| spec.tls.as_ref());
        let tls = tls.into_iter().flatten();
        let tls = tls.filter_map(|entry| entry.secret_name.as_deref());
        let annotations = ingress.metadata.annotations.iter().flatten();
        let annotations = annotations.filter(|(key, _)| key.ends_with(ANNOTATION_ENDING));
        for text in tls.chain(annotations.map(|(_, value)| value.trim())) {
            let (of, name) = text.split_once('/').unwrap_or((namespace, text));
            // `translate` refuses those of other namespaces, so they are not even read. What is no
            // name would be a path, and not of a Secret.
            if of == namespace && crate::config::is_name(namespace) && crate::config::is_name(name)
            {
                keys.insert((namespace.into(), name.into()));
            }
        }
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
    }
}
