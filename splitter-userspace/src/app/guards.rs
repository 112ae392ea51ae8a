//! From the Secrets of a state to what requests are judged by.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::keys::KeyFetcher;
use crate::auth::{Demand, GuardStore, Guards};
use crate::config::NameSettings;
use crate::model::{Guarded, Location, ObjectRef, Problem, SecretData, Snapshot};
use crate::telemetry::Registry;

/// Publishes who may call, and says what is wrong with it.
pub struct GuardPublisher {
    shared: Arc<Mutex<Shared>>,
    fetcher: KeyFetcher,
    /// Those that were given last; none before that.
    secrets: Option<Arc<BTreeMap<ObjectRef, SecretData>>>,
    told: Vec<Problem>,
}

/// What fetches change, too.
struct Shared {
    store: GuardStore,
    sender: watch::Sender<Arc<Guards>>,
}

impl Shared {
    fn publish(&mut self) {
        let guards = self.store.current();
        self.sender.send_if_modified(|present| {
            let changed = !Arc::ptr_eq(present, guards);
            *present = guards.clone();
            changed
        });
    }
}

impl GuardPublisher {
    /// Publishes that nobody is known.
    pub fn new(names: NameSettings, registry: &Registry) -> (Self, watch::Receiver<Arc<Guards>>) {
        let store = GuardStore::default();
        let (sender, receiver) = watch::channel(store.current().clone());
        let shared = Arc::new(Mutex::new(Shared { store, sender }));
        let told = shared.clone();
        let told = Arc::new(move |url: &_, fetch, fetched| {
            let mut shared = lock(&told);
            shared.store.fetched(url, fetch, fetched);
            shared.publish();
        });
        let publisher = GuardPublisher {
            fetcher: KeyFetcher::new(names, registry, told),
            shared,
            secrets: None,
            told: Vec::new(),
        };
        (publisher, receiver)
    }

    /// Has requests be judged by what a state and its Secrets say; `before` is the state that was given
    /// the last time.
    pub fn publish(
        &mut self,
        before: &Snapshot,
        snapshot: &Snapshot,
        secrets: &Arc<BTreeMap<ObjectRef, SecretData>>,
    ) -> Vec<Problem> {
        let known = self.secrets.replace(Arc::clone(secrets));
        if known.is_some_and(|it| Arc::ptr_eq(&it, secrets)) && same_guards(before, snapshot) {
            return self.told.clone();
        }
        let demand = Demand::of(snapshot);
        let new = self.fetcher.follow(demand.urls(), secrets);
        let mut shared = lock(&self.shared);
        shared.store.update(demand, secrets);
        for (url, wish) in new {
            shared.store.follow(&url, wish);
        }
        shared.publish();
        self.told = shared.store.problems();
        self.told.clone()
    }

    /// The Problems once more if others are there: fetches fail without an event.
    pub fn look(&mut self) -> Option<Vec<Problem>> {
        let now = lock(&self.shared).store.problems();
        (now != self.told).then(|| {
            self.told = now;
            self.told.clone()
        })
    }
}

/// Whether two states ask for the same. Most changes leave all of that alone.
fn same_guards(one: &Snapshot, other: &Snapshot) -> bool {
    fn guards(it: &Location) -> Option<(&Guarded, &ObjectRef)> {
        let guards = it.policy.as_ref()?.guards.as_deref()?;
        Some((guards, &it.ingress))
    }
    one.same_locations(other, |one, other| guards(one) == guards(other))
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}
