//! From a Snapshot to what the workers and the maps hold: plan, difference, apply, publish.

use std::collections::BTreeMap;
use std::sync::Arc;

use tokio::sync::watch;

use crate::dataplane::{LiveTracker, SlotAllocator, SlotPlan, Splits, diff, overrides, replan};
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
    /// What is wrong with the objects, what they hold left out.
    told: Vec<Problem>,
    /// What is wrong with the certificates.
    faulty: Vec<Problem>,
    /// What is wrong with what guards need.
    guarded: Vec<Problem>,
    /// Which ports of the node could not be opened.
    unopened: Vec<Problem>,
    /// Which Services are not split where pods connect to them.
    unsplit: Vec<Problem>,
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
            told: Vec::new(),
            faulty: Vec::new(),
            guarded: Vec::new(),
            unopened: Vec::new(),
            unsplit: Vec::new(),
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
        if self.unopened != problems {
            self.unopened = problems;
            self.tell(self.told.clone(), self.faulty.clone());
        }
    }

    /// Tells which Services are not split where pods connect to them.
    pub fn unsplit(&mut self, problems: Vec<Problem>) {
        if self.unsplit != problems {
            self.unsplit = problems;
            self.tell(self.told.clone(), self.faulty.clone());
        }
    }

    /// Makes `snapshot` what is served. One that says the same as the present one changes nothing.
    /// The certificates come first, so that no host is served without its own; and who may call.
    pub fn publish(
        &mut self,
        snapshot: Snapshot,
        secrets: BTreeMap<ObjectRef, SecretData>,
        mut problems: Vec<Problem>,
    ) {
        self.guarded = self.guards.publish(&snapshot, &secrets);
        let present = self.live.borrow().clone();
        let faulty = self
            .certificates
            .publish(&present.snapshot, &snapshot, secrets);
        if *present.snapshot == snapshot && present.generation > 0 {
            self.tell(problems, faulty);
            self.metrics.applied(present.generation);
            return;
        }
        let generation = present.generation + 1;
        let snapshot = Arc::new(snapshot);
        let clears = self.slots.reclaim(self.tracker.oldest());
        let (applied, before) = (&self.applied, &present.snapshot);
        let mut next = replan(applied, before, &snapshot, generation, &mut self.slots);
        problems.append(&mut next.problems);
        let written = self
            .splits
            .apply(&clears, generation)
            .and_then(|()| self.splits.apply(&diff(&self.applied, &next), generation));
        if let Err(error) = written {
            // The weights stay as they were; everything else of the new state is served.
            tracing::error!(%error, generation, "weights could not be written");
            self.metrics.failed();
        } else {
            self.metrics.applied(generation);
        }
        if let Err(error) = self.splits.name(&next, &snapshot) {
            tracing::warn!(%error, generation, "the maps do not say what every slot is called");
        }
        let router = present.router_for(&snapshot);
        let l4 = l4_live(&present.l4, &snapshot.l4, &next.services);
        let live = Live::new(generation, snapshot, router, next.slots.clone());
        let live = Arc::new(live.with_l4(l4));
        self.tracker.add(&live);
        self.applied = next;
        tracing::info!(
            generation,
            hosts = live.snapshot.hosts.len(),
            locations = live.snapshot.locations.len(),
            backends = live.snapshot.backends.len(),
            services = live.snapshot.l4.services.len(),
            problems = problems.len(),
            "configuration applied"
        );
        self.live.send_replace(live);
        self.tell(problems, faulty);
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
            self.guarded = guarded;
        }
        let faulty = faulty.unwrap_or_else(|| self.faulty.clone());
        self.tell(self.told.clone(), faulty);
    }

    /// Logs what is newly wrong and publishes the list.
    fn tell(&mut self, problems: Vec<Problem>, faulty: Vec<Problem>) {
        self.told.clone_from(&problems);
        self.faulty.clone_from(&faulty);
        let of_others = [&self.guarded, &self.unopened, &self.unsplit].map(Vec::as_slice);
        let of_others = of_others.concat();
        let mut problems = [problems, faulty, of_others].concat();
        problems.sort();
        problems.dedup();
        if **self.problems.borrow() == problems {
            return;
        }
        let before = self.problems.borrow().clone();
        for problem in problems.iter().filter(|problem| !before.contains(problem)) {
            tracing::warn!("{problem}");
        }
        self.problems.send_replace(Arc::new(problems));
    }
}
