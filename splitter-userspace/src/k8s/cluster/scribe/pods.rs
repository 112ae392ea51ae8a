//! The pods of all instances: those with the labels of our own.

use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use k8s_openapi::api::core::v1::Pod;
use kube::Api;
use kube::runtime::watcher;
use tokio::sync::Notify;

use super::Desk;
use crate::config::Identity;
use crate::k8s::cluster::reflect::{Failures, Reflector, chain, jitter};
use crate::k8s::cluster::signal::Signals;
use crate::k8s::cluster::store::Store;

/// Until our own pod, which must be there, is asked for again.
const AGAIN: Duration = Duration::from_secs(5);

/// Labels that tell the pods of one DaemonSet's versions apart.
const OF_A_VERSION: [&str; 3] = [
    "controller-revision-hash",
    "pod-template-generation",
    "pod-template-hash",
];

/// Follows them for ever; nothing when this is no pod.
pub(super) fn follow(desk: &Desk, store: Store<Pod>) -> impl Future<Output = Infallible> + use<> {
    let Identity {
        pod_namespace,
        pod_name,
    } = desk.identity.clone();
    let api = Api::namespaced(desk.client.clone(), &pod_namespace);
    let changed = Arc::clone(&desk.changed);
    let is_pod = !pod_namespace.is_empty() && !pod_name.is_empty();
    async move {
        let selector = match is_pod {
            true => common_labels(&api, &pod_name).await,
            false => None,
        };
        match selector {
            Some(selector) => reflect(api, &selector, store, changed).await,
            None => {
                // There is nobody to wait for.
                store.give_up();
                changed.notify_one();
                std::future::pending().await
            }
        }
    }
}

/// The selector of our own pod's labels, once it can be read; none when it cannot be.
async fn common_labels(api: &Api<Pod>, name: &str) -> Option<String> {
    loop {
        match api.get(name).await {
            Ok(pod) => return selector(&pod),
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                let why = status.message.as_str();
                tracing::warn!(
                    name,
                    why,
                    "cannot read our own pod; other nodes are not known"
                );
                return None;
            }
            Err(error) => {
                let error = chain(&error);
                tracing::debug!(error, "cannot read our own pod; trying again");
                tokio::time::sleep(jitter(AGAIN)).await;
            }
        }
    }
}

async fn reflect(
    api: Api<Pod>,
    selector: &str,
    store: Store<Pod>,
    changed: Arc<Notify>,
) -> Infallible {
    let reflector = Reflector {
        api,
        config: watcher::Config::default().any_semantic().labels(selector),
        store,
        signals: Signals {
            content: Arc::clone(&changed),
            status: changed,
        },
        failures: Failures::new("pods"),
        optional: true,
    };
    reflector.run().await
}

/// What the pods of all versions have in common; none when that would be every pod.
fn selector(pod: &Pod) -> Option<String> {
    let labels = pod.metadata.labels.iter().flatten();
    let labels = labels.filter(|(key, _)| !OF_A_VERSION.contains(&key.as_str()));
    let terms: Vec<String> = labels
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    (!terms.is_empty()).then(|| terms.join(","))
}

/// Whether an instance that stays takes requests.
pub(super) fn others_are_ready(pods: &[Arc<Pod>], own: &str) -> bool {
    pods.iter().any(|pod| {
        let is_other = pod.metadata.name.as_deref() != Some(own);
        is_other && pod.metadata.deletion_timestamp.is_none() && is_ready(pod)
    })
}

/// How many instances take requests.
pub(super) fn ready(pods: &[Arc<Pod>]) -> u64 {
    let ready = pods.iter().filter(|pod| is_ready(pod)).count();
    u64::try_from(ready).unwrap_or(u64::MAX)
}

/// Whether a pod takes requests.
pub(super) fn is_ready(pod: &Pod) -> bool {
    let status = pod.status.as_ref();
    let conditions = status.and_then(|status| status.conditions.as_ref());
    let mut conditions = conditions.into_iter().flatten();
    conditions.any(|it| it.type_ == "Ready" && it.status == "True")
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(metadata: Value, ready: &str) -> Arc<Pod> {
        let status = json!({"conditions": [{"type": "Ready", "status": ready}]});
        Arc::new(serde_json::from_value(json!({"metadata": metadata, "status": status})).unwrap())
    }

    #[test]
    fn labels_of_one_version_are_left_out() {
        let labels = json!({"app": "splitter", "tier": "edge", "controller-revision-hash": "5d"});
        let found = selector(&pod(json!({"labels": labels}), "True"));
        assert_eq!(found.as_deref(), Some("app=splitter,tier=edge"));
        assert_eq!(
            selector(&Pod::default()),
            None,
            "every pod of the namespace"
        );
    }

    #[test]
    fn only_others_that_stay_count() {
        let own = pod(json!({"name": "me"}), "True");
        let starting = pod(json!({"name": "a"}), "False");
        let leaving = json!({"name": "b", "deletionTimestamp": "2020-01-01T00:00:00Z"});
        let leaving = pod(leaving, "True");
        let mut pods = vec![own, starting, leaving];
        assert!(!others_are_ready(&pods, "me"));
        pods.push(pod(json!({"name": "c"}), "True"));
        assert!(others_are_ready(&pods, "me"));
    }
}
