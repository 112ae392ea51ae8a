//! The way of a change from a watch to the workers, in one thread and without either: for measuring it.

use std::sync::Arc;

use tokio::sync::watch;

use crate::config::{ClassSettings, NameSettings};
use crate::dataplane::Splits;
use crate::k8s::{Object, Shelves, Translator};
use crate::routing::Live;
use crate::telemetry::{ControllerLabels, Registry};

use super::certificates::CertPublisher;
use super::guards::GuardPublisher;
use super::overrides::Overrides;
use super::publish::Publisher;

/// What a process has on the way of a change.
pub struct Rehearsal {
    shelves: Shelves,
    class: ClassSettings,
    translator: Translator,
    publisher: Publisher,
    live: watch::Receiver<Arc<Live>>,
}

impl Rehearsal {
    /// Without any object.
    ///
    /// # Errors
    /// When there is no memory for the weights, or no randomness.
    pub fn new() -> anyhow::Result<Self> {
        let registry = Registry::new(&ControllerLabels::default());
        let (certificates, _) = CertPublisher::new(None, None, "", &registry)?;
        let (guards, _) = GuardPublisher::new(NameSettings::default(), &registry);
        let overrides = Overrides::new(&registry);
        let (splits, metrics) = (Splits::in_memory()?, registry.config());
        let (publisher, live) = Publisher::new(splits, metrics, overrides, certificates, guards);
        Ok(Rehearsal {
            shelves: Shelves::default(),
            class: ClassSettings::default(),
            translator: Translator::default(),
            publisher,
            live,
        })
    }

    /// An object as a watch would say it.
    pub fn say(&self, object: &Object) {
        self.shelves.apply(object);
    }

    /// Does all that follows on what was said, until workers are told.
    pub fn follow(&mut self) {
        let objects = self.shelves.objects();
        let translation = self.translator.translate(&objects, &self.class);
        self.publisher.publish(
            translation.snapshot,
            translation.secrets,
            translation.problems,
            Vec::new(),
        );
    }

    /// What workers would be told.
    pub fn live(&self) -> Arc<Live> {
        self.live.borrow().clone()
    }
}
