//! The Lease that says which instance writes.

use std::time::Instant;

use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use k8s_openapi::jiff::Timestamp;
use kube::api::PostParams;
use kube::{Api, Client};

use super::TIMEOUT;
use super::election::{Election, Step};
use crate::config::{Identity, StatusSettings};
use crate::k8s::cluster::reflect::{chain, jitter};

/// The Lease, and whether it is ours.
pub(super) struct Lease {
    api: Api<Object>,
    name: String,
    election: Election,
    due: Instant,
    /// Whether the last look failed, so that it is said once.
    failing: bool,
}

impl Lease {
    pub(super) fn new(client: &Client, settings: &StatusSettings, identity: &Identity) -> Self {
        let namespace = match identity.pod_namespace.as_str() {
            "" => client.default_namespace(),
            namespace => namespace,
        };
        // A pod keeps its Lease over a restart of its container. Without a pod nobody else may
        // take us for himself.
        let name = match identity.pod_name.as_str() {
            "" => format!("splitter_{:016x}", fastrand::u64(..)),
            name => name.to_owned(),
        };
        Lease {
            api: Api::namespaced(client.clone(), namespace),
            name: settings.election_id.clone(),
            election: Election::new(name, settings.election_ttl),
            due: Instant::now(),
            failing: false,
        }
    }

    /// Whether we are the one who writes.
    pub(super) fn is_held(&self) -> bool {
        self.election.is_held(Instant::now())
    }

    /// When to look at it next.
    pub(super) fn due(&self) -> Instant {
        self.due
    }

    /// Looks at it, and takes or renews it if we may.
    pub(super) async fn look(&mut self) {
        let was_held = self.is_held();
        match self.step().await {
            Ok(()) => self.failing = false,
            Err(error) => {
                if !std::mem::replace(&mut self.failing, true) {
                    let name = &self.name;
                    tracing::warn!(name, error, "cannot see to the Lease; trying again");
                }
            }
        }
        if was_held && !self.is_held() {
            tracing::warn!(
                name = self.name,
                "another instance writes status and Events now"
            );
        }
        self.due = Instant::now() + jitter(self.election.pause());
    }

    async fn step(&mut self) -> Result<(), String> {
        // Before anything is sent: what we hold counts from here.
        let asked = Instant::now();
        let found = within(self.api.get_opt(&self.name)).await?;
        let spec = found.as_ref().map(|it| it.spec.clone().unwrap_or_default());
        let step = self.election.judge(spec.as_ref(), Instant::now());
        if step == Step::Wait {
            return Ok(());
        }
        let spec = self.election.spec(step, spec.as_ref(), Timestamp::now());
        match tokio::time::timeout(TIMEOUT, self.put(found, spec)).await {
            Ok(Ok(())) => {
                if self.election.won(asked) {
                    tracing::info!(name = self.name, "this instance writes status and Events");
                }
                Ok(())
            }
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => {
                // Somebody was faster.
                self.election.lost();
                Ok(())
            }
            Ok(Err(error)) => Err(chain(&error)),
            Err(_) => Err(format!("no answer within {TIMEOUT:?}")),
        }
    }

    /// Writes it, if it is still as it was found.
    async fn put(&self, found: Option<Object>, spec: LeaseSpec) -> Result<(), kube::Error> {
        let parameters = PostParams::default();
        let written = match found {
            Some(mut lease) => {
                lease.spec = Some(spec);
                self.api.replace(&self.name, &parameters, &lease).await
            }
            None => {
                let lease = Object {
                    metadata: ObjectMeta {
                        name: Some(self.name.clone()),
                        ..ObjectMeta::default()
                    },
                    spec: Some(spec),
                };
                self.api.create(&parameters, &lease).await
            }
        };
        written.map(drop)
    }

    /// Frees it for the next one, who need not wait then.
    pub(super) async fn release(&mut self) {
        if !self.is_held() {
            return;
        }
        self.election.lost();
        if let Err(error) = self.free().await {
            tracing::warn!(
                error,
                "the Lease is not freed; another instance takes it in its time"
            );
        }
    }

    async fn free(&self) -> Result<(), String> {
        let Some(found) = within(self.api.get_opt(&self.name)).await? else {
            return Ok(());
        };
        let mut spec = found.spec.clone().unwrap_or_default();
        if !self.election.is_ours(&spec) {
            return Ok(());
        }
        spec.holder_identity = None;
        within(self.put(Some(found), spec)).await
    }
}

async fn within<T>(request: impl Future<Output = Result<T, kube::Error>>) -> Result<T, String> {
    let answer = tokio::time::timeout(TIMEOUT, request).await;
    let answer = answer.map_err(|_| format!("no answer within {TIMEOUT:?}"))?;
    answer.map_err(|error| chain(&error))
}
