//! Writing statuses and Events.

use std::sync::Arc;
use std::time::Instant;

use futures_util::{StreamExt as _, stream};
use k8s_openapi::api::core::v1::{Event, EventSource, ObjectReference};
use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, Time};
use k8s_openapi::jiff::Timestamp;
use kube::api::{Patch, PatchParams, PostParams};
use kube::{Api, Client};
use serde_json::json;

use super::ledger::Telling;
use super::statuses::Write;
use super::{AT_A_TIME, Scribe, TIMEOUT};
use crate::k8s::cluster::reflect::chain;
use crate::k8s::cluster::store::{Key, Store};
use crate::k8s::header::api_version;
use crate::model::{Kind, ObjectRef};

/// Who Events say wrote them.
const COMPONENT: &str = "splitter";

/// Events about objects without a namespace are here.
const DEFAULT_NAMESPACE: &str = "default";

impl Scribe {
    /// Writes statuses as long as the Lease is ours and need not be renewed. True when some are
    /// left.
    pub(super) async fn write_statuses(&mut self, writes: Vec<Write>) -> bool {
        let mut failed = None;
        let mut rest = writes.as_slice();
        while !rest.is_empty() {
            if !self.lease.is_held() || Instant::now() >= self.lease.due() {
                return true;
            }
            let (now, later) = rest.split_at(rest.len().min(AT_A_TIME));
            rest = later;
            let client = &self.desk.client;
            let done = stream::iter(now.to_vec())
                .map(|write| async move { (write_status(client, &write).await, write) })
                .buffer_unordered(AT_A_TIME);
            let done: Vec<_> = done.collect().await;
            for (result, write) in done {
                self.desk.written.count(false, result.is_ok());
                let ok = result.is_ok();
                if let Err(error) = result {
                    failed.get_or_insert((write.key.clone(), error));
                }
                self.statuses.wrote(write, ok, Instant::now());
            }
        }
        if let Some(((namespace, name), error)) = failed {
            tracing::warn!(%namespace, %name, error, "a status could not be written; trying again");
        }
        false
    }

    /// Writes the Events that are due. Says when there will be more.
    pub(super) async fn tell(&mut self) -> Option<Instant> {
        if !self.desk.settings.events {
            return None;
        }
        let problems = self.served.borrow().problems.clone();
        let plan = self.ledger.plan(&problems, Instant::now());
        for telling in plan.now {
            // An object that is not there, or no longer, has nobody who looks at its Events.
            let result = match self.uid(&telling.object) {
                Some(uid) => {
                    let result = self.write_event(&telling, &uid).await;
                    self.desk.written.count(true, result.is_ok());
                    result
                }
                None => Ok(()),
            };
            if let Err(error) = &result {
                tracing::debug!(error, object = %telling.object, "an Event could not be written");
            }
            self.ledger.told(telling, result.is_ok(), Instant::now());
        }
        plan.again
    }

    fn uid(&self, object: &ObjectRef) -> Option<String> {
        let key = (Arc::clone(&object.namespace), Arc::clone(&object.name));
        let stores = &self.desk.stores;
        match object.kind {
            Kind::Ingress => uid(&stores.ingresses, &key),
            Kind::IngressClass => uid(&stores.classes, &key),
            Kind::Service => uid(&stores.services, &key),
            Kind::EndpointSlice => uid(&stores.slices, &key),
            Kind::Secret => uid(&stores.secrets, &key),
            Kind::ConfigMap => uid(&stores.config_maps, &key),
            _ => None,
        }
    }

    async fn write_event(&self, telling: &Telling, uid: &str) -> Result<(), String> {
        let namespace = match &*telling.object.namespace {
            "" => DEFAULT_NAMESPACE,
            namespace => namespace,
        };
        let api: Api<Event> = Api::namespaced(self.desk.client.clone(), namespace);
        let event = self.event(telling, namespace, uid);
        let write = put_event(&api, &event, telling.count);
        match tokio::time::timeout(TIMEOUT, write).await {
            Ok(written) => written.map_err(|error| chain(&error)),
            Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
        }
    }

    fn event(&self, telling: &Telling, namespace: &str, uid: &str) -> Event {
        let object = &telling.object;
        let now = Some(Time(Timestamp::now()));
        let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
        Event {
            metadata: ObjectMeta {
                name: Some(telling.name(uid)),
                namespace: Some(namespace.to_owned()),
                ..ObjectMeta::default()
            },
            involved_object: ObjectReference {
                api_version: Some(api_version(object.kind).to_owned()),
                kind: Some(object.kind.as_str().to_owned()),
                namespace: some(&object.namespace),
                name: some(&object.name),
                uid: some(uid),
                ..ObjectReference::default()
            },
            type_: Some("Warning".to_owned()),
            reason: Some(telling.reason()),
            message: Some(telling.message.clone()),
            count: Some(telling.count),
            first_timestamp: now.clone(),
            last_timestamp: now,
            source: Some(EventSource {
                component: Some(COMPONENT.to_owned()),
                host: self.desk.node_name.clone(),
            }),
            reporting_component: Some(COMPONENT.to_owned()),
            reporting_instance: some(&self.desk.identity.pod_name),
            ..Event::default()
        }
    }
}

fn uid<K: kube::Resource>(store: &Store<K>, key: &Key) -> Option<String> {
    store.get(key)?.meta().uid.clone()
}

async fn write_status(client: &Client, write: &Write) -> Result<(), String> {
    let (namespace, name) = &write.key;
    let api: Api<Ingress> = Api::namespaced(client.clone(), namespace);
    let entries = (!write.entries.is_empty()).then_some(&write.entries);
    let patch = json!({"status": {"loadBalancer": {"ingress": entries}}});
    let (patch, parameters) = (Patch::Merge(patch), PatchParams::default());
    let request = api.patch_status(name, &parameters, &patch);
    let answer = tokio::time::timeout(TIMEOUT, request).await;
    match answer.map_err(|_| format!("no answer within {TIMEOUT:?}"))? {
        Ok(_) => Ok(()),
        // Deleted meanwhile.
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
        Err(error) => Err(chain(&error)),
    }
}

/// Makes the Event, or tells it once more. One that another leader made is told anew too.
async fn put_event(api: &Api<Event>, event: &Event, count: i32) -> Result<(), kube::Error> {
    if count == 1 {
        match api.create(&PostParams::default(), event).await {
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            created => return created.map(drop),
        }
    }
    let name = event.metadata.name.as_deref().unwrap_or("");
    let mut patch = json!({"message": event.message, "lastTimestamp": event.last_timestamp});
    if count > 1 {
        patch["count"] = count.into();
    }
    let patch = Patch::Merge(patch);
    match api.patch(name, &PatchParams::default(), &patch).await {
        // The API server forgets Events.
        Err(kube::Error::Api(status)) if status.code == 404 => {
            api.create(&PostParams::default(), event).await.map(drop)
        }
        patched => patched.map(drop),
    }
}
