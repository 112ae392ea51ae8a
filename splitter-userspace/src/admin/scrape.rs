use std::sync::atomic::{AtomicU64, Ordering};

use crate::model::Severity;
use crate::routing::{Live, WeightSource};
use crate::telemetry::{
    Gauge, L4_WEIGHT, Labels, PROBLEMS, Registry, Text, VARIANT_WEIGHT, l4_labels,
};

use super::{AdminState, dump};

/// What a scrape keeps from one time to the next.
pub(super) struct Scrape {
    errors: Gauge,
    warnings: Gauge,
    /// The generation whose Snapshot was last used to forget series.
    pruned: AtomicU64,
}

impl Scrape {
    pub(super) fn new(registry: &Registry) -> Self {
        Scrape {
            errors: registry.gauge(&PROBLEMS, &[("severity", "error")]),
            warnings: registry.gauge(&PROBLEMS, &[("severity", "warning")]),
            pruned: AtomicU64::new(0),
        }
    }

    /// `/metrics`.
    pub(super) fn page(&self, state: &AdminState) -> String {
        let live = state.live.borrow().clone();
        let problems = state.problems.borrow().clone();
        let count = |severity| problems.iter().filter(|p| p.severity == severity).count();
        for (gauge, severity) in [
            (&self.errors, Severity::Error),
            (&self.warnings, Severity::Warning),
        ] {
            gauge.set(i64::try_from(count(severity)).unwrap_or(i64::MAX));
        }
        let mut text = state.registry.page();
        variant_weights(&live, state.weights.as_ref(), &mut text);
        service_weights(&live, state.weights.as_ref(), &mut text);
        // Only now: the page above showed the last counts of what goes.
        if self.pruned.swap(live.generation, Ordering::Relaxed) != live.generation {
            state.registry.prune(&live.snapshot);
        }
        text.into_string()
    }
}

/// The target beside the observed shares of `splitter_requests_total`.
fn variant_weights(live: &Live, weights: &dyn WeightSource, text: &mut Text) {
    let mut canaried = dump::locations(live)
        .filter(|(_, location)| dump::is_split(location))
        .peekable();
    if canaried.peek().is_none() {
        return;
    }
    text.family(&VARIANT_WEIGHT);
    for (id, location) in canaried {
        for (name, weight) in dump::live_weights(live, weights, id, location) {
            let mut labels = Labels::of(&VARIANT_WEIGHT, text);
            labels.push("namespace", &location.ingress.namespace);
            labels.push("ingress", &location.ingress.name);
            labels.push_location(&location.key);
            labels.push("variant", name);
            text.sample(&VARIANT_WEIGHT, &labels, u64::from(weight));
        }
    }
}

/// The same beside `splitter_l4_connections_total`.
fn service_weights(live: &Live, weights: &dyn WeightSource, text: &mut Text) {
    let mut split = live
        .l4
        .iter()
        .filter(|it| it.service.variants.len() > 1)
        .peekable();
    if split.peek().is_none() {
        return;
    }
    text.family(&L4_WEIGHT);
    for it in split {
        let values = weights.weights(it.slot).values;
        for (variant, weight) in it.service.variants.iter().zip(values) {
            let mut labels = l4_labels(&L4_WEIGHT, text, &it.service.key);
            labels.push("variant", &variant.name);
            text.sample(&L4_WEIGHT, &labels, u64::from(weight));
        }
    }
}
