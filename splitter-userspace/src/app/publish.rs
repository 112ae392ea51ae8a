//! From a Snapshot to what the workers and the maps hold: plan, difference, apply, publish.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::dataplane::{LiveTracker, SlotAllocator, SlotPlan, Splits, overrides, replan};
use crate::model::{ObjectRef, Problem, SecretData, Snapshot};
use crate::routing::{Live, l4_live};
use crate::telemetry::ConfigMetrics;

use super::certificates::CertPublisher;
use super::guards::GuardPublisher;
use super::overrides::Overrides;

/// Publishes one state after the other.
pub struct Publisher {
    splits: Splits,
    slots: SlotAllocator,
    applied: SlotPlan,
    tracker: LiveTracker,
    live: watch::Sender<Arc<Live>>,
    problems: watch::Sender<Arc<Vec<Problem>>>,
    overrides: Overrides,
    certificates: CertPublisher,
    guards: GuardPublisher,
    told: Told,
    /// What was told last, of the objects and of the rest.
    said: (Arc<[Problem]>, Vec<Problem>),
    metrics: ConfigMetrics,
}

impl Publisher {
    /// Publishes an empty state, so that there is one.
    pub fn new(
        splits: Splits,
        metrics: ConfigMetrics,
        overrides: Overrides,
        certificates: CertPublisher,
        guards: GuardPublisher,
    ) -> (Self, watch::Receiver<Arc<Live>>) {
        let (live, receiver) = watch::channel(Arc::new(Live::empty()));
        let publisher = Publisher {
            splits,
            slots: SlotAllocator::default(),
            applied: SlotPlan::default(),
            tracker: LiveTracker::default(),
            live,
            problems: watch::Sender::new(Arc::default()),
            overrides,
            certificates,
            guards,
            told: Told::default(),
            said: Default::default(),
            metrics,
        };
        (publisher, receiver)
    }

    /// Notes that a change could not be taken up: the present state stays.
    pub fn failed(&self) {
        self.metrics.failed();
    }

    /// What is wrong with the objects of the present state.
    pub fn problems(&self) -> watch::Receiver<Arc<Vec<Problem>>> {
        self.problems.subscribe()
    }

    /// What is served.
    pub fn live(&self) -> Arc<Live> {
        self.live.borrow().clone()
    }

    /// The present state.
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.live.borrow().snapshot.clone()
    }

    /// Tells which ports of the node could not be opened.
    pub fn opened(&mut self, problems: Vec<Problem>) {
        if self.told.unopened != problems {
            self.told.unopened = problems;
            self.tell();
        }
    }

    /// Tells which Services are not split where pods connect to them.
    pub fn unsplit(&mut self, problems: Vec<Problem>) {
        if self.told.unsplit != problems {
            self.told.unsplit = problems;
            self.tell();
        }
    }

    /// Makes `snapshot` what is served. One that says the same as the present one changes nothing.
    /// The certificates come first, so that no host is served without its own; and who may call.
    /// `problems` are those of the objects, `others` those of where they come from.
    pub fn publish(
        &mut self,
        snapshot: Snapshot,
        secrets: Arc<BTreeMap<ObjectRef, SecretData>>,
        problems: Arc<[Problem]>,
        others: Vec<Problem>,
    ) {
        let present = self.live.borrow().clone();
        let before = &present.snapshot;
        self.told.objects = problems;
        self.told.source = others;
        self.told.guarded = self.guards.publish(before, &snapshot, &secrets);
        self.told.faulty = self.certificates.publish(before, &snapshot, secrets);
        if **before == snapshot && present.generation > 0 {
            self.tell();
            self.metrics.applied(present.generation);
            return;
        }
        let generation = present.generation + 1;
        let snapshot = Arc::new(snapshot);
        let clears = self.slots.reclaim(self.tracker.oldest());
        let (plan, slots) = (&mut self.applied, &mut self.slots);
        let changes = replan(plan, before, &snapshot, generation, slots);
        self.told.crowded.clone_from(&plan.problems);
        let written = self
            .splits
            .apply(&clears, generation)
            .and_then(|()| self.splits.apply(&changes, generation));
        if let Err(error) = written {
            // The weights stay as they were; everything else of the new state is served.
            tracing::error!(%error, generation, "weights could not be written");
            self.metrics.failed();
        } else {
            self.metrics.applied(generation);
        }
        if let Err(error) = self.splits.name(&self.applied, &snapshot) {
            tracing::warn!(%error, generation, "the maps do not say what every slot is called");
        }
        let router = present.router_for(&snapshot);
        let l4 = l4_live(&present.l4, &snapshot.l4, &self.applied.services);
        let live = Live::new(generation, snapshot, router, self.applied.slots.clone());
        let live = Arc::new(live.with_l4(l4));
        self.tracker.add(&live);
        tracing::info!(
            generation,
            hosts = live.snapshot.hosts.len(),
            locations = live.snapshot.locations.len(),
            backends = live.snapshot.backends.len(),
            services = live.snapshot.l4.services.len(),
            problems = self.told.objects.len(),
            "configuration applied"
        );
        self.live.send_replace(live);
        self.tell();
    }

    /// Looks which weights somebody changed past the objects.
    pub fn look_at_overrides(&mut self) {
        let found = overrides(&self.splits.table, &self.applied);
        self.overrides.report(&found, &self.live.borrow());
    }

    /// Looks now and then whether a certificate expires, or keys cannot be fetched.
    pub fn look_at_secrets(&mut self) {
        let (faulty, guarded) = (self.certificates.look(), self.guards.look());
        if faulty.is_none() && guarded.is_none() {
            return;
        }
        if let Some(guarded) = guarded {
            self.told.guarded = guarded;
        }
        if let Some(faulty) = faulty {
            self.told.faulty = faulty;
        }
        self.tell();
    }

    /// Logs what is newly wrong and publishes the list. Costs nothing when that is as it was.
    fn tell(&mut self) {
        let others = self.told.others();
        let objects = &self.told.objects;
        if Arc::ptr_eq(&self.said.0, objects) && self.said.1 == others {
            return;
        }
        let mut problems = [objects, &*others].concat();
        self.said = (Arc::clone(objects), others);
        problems.sort();
        problems.dedup();
        if **self.problems.borrow() == problems {
            return;
        }
        let before = self.problems.borrow().clone();
        for problem in &problems {
            if before.binary_search(problem).is_err() {
                tracing::warn!("{problem}");
            }
        }
        self.problems.send_replace(Arc::new(problems));
    }
}

/// What is wrong, by who has found it.
#[derive(Default)]
struct Told {
    /// With the objects, what they hold left out.
    objects: Arc<[Problem]>,
    /// With where they come from.
    source: Vec<Problem>,
    /// Who has found no slot.
    crowded: Vec<Problem>,
    /// With the certificates.
    faulty: Vec<Problem>,
    /// With what guards need.
    guarded: Vec<Problem>,
    /// Which ports of the node could not be opened.
    unopened: Vec<Problem>,
    /// Which Services are not split where pods connect to them.
    unsplit: Vec<Problem>,
}

impl Told {
    /// All but those of the objects.
    fn others(&self) -> Vec<Problem> {
        let before = [&self.source, &self.crowded, &self.faulty];
        let after = [&self.guarded, &self.unopened, &self.unsplit];
        before.into_iter().chain(after).flatten().cloned().collect()
    }
}
