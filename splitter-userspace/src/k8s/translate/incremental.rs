//! Translation that does again only what a change can have changed.
//!
//! The result is that of a translation from nothing, always. Nothing is told what has changed: the
//! objects are compared with those of the last time, by allocation, and what both states share behind
//! one row is passed over at once. What was made of objects is used again only if each of them is the
//! same allocation still. Sources keep objects that did not change.

use std::collections::BTreeMap;
use std::sync::Arc;

use k8s_openapi::api::networking::v1::{Ingress, IngressClass};

use super::Translation;
use super::class::Classes;
use super::defaults;
use super::endpoints::Sources;
use super::group::{Inputs, Part};
use super::groups::{Groups, Regrouped};
use super::index::{Changes, Index};
use super::l4;
use super::merge::Merged;
use super::outline::Outline;
use super::pattern::Patterns;
use super::report::{self, Problems};
use crate::config::ClassSettings;
use crate::k8s::{Objects, Sourced};
use crate::model::{L4, Problem, SecretData, Snapshot};

/// Translates one state of the objects after the other.
#[derive(Default)]
pub struct Translator {
    terms: Option<Terms>,
    /// What was translated last.
    before: Objects,
    index: Index,
    groups: Groups,
    merged: Merged,
    l4: Arc<L4>,
    told: Told,
}

/// What is wrong, as it was last told.
#[derive(Default)]
struct Told {
    /// With what is looked at each time.
    found: Vec<Problem>,
    all: Arc<[Problem]>,
}

/// What everything depends on.
#[derive(PartialEq)]
struct Terms {
    settings: ClassSettings,
    /// By name.
    classes: Vec<Sourced<IngressClass>>,
    class_by_name_only: bool,
    allow_local: bool,
}

impl Translator {
    /// All Ingresses are one group: nothing is used again unless nothing has changed.
    pub(super) fn undivided() -> Self {
        Translator {
            groups: Groups::new(true),
            ..Translator::default()
        }
    }

    /// As [`translate`](super::translate), which this gives the same as. It takes time for what has
    /// changed since the last call, and next to none for what has not.
    pub fn translate(&mut self, objects: &Objects, settings: &ClassSettings) -> Translation {
        let terms = Terms::of(objects, settings);
        if self.terms.as_ref() != Some(&terms) {
            *self = Translator {
                terms: Some(terms),
                groups: Groups::new(self.groups.is_undivided()),
                ..Translator::default()
            };
        }
        let before = std::mem::replace(&mut self.before, objects.clone());
        let changed = self.index.follow(&before, objects);
        let mut found = Problems::default();
        let classes = Classes::read(objects, settings, &mut found);
        let values = defaults::read(&settings.defaults, &mut found);
        let inputs = Inputs {
            settings,
            values: &values,
            services: &self.index.services,
            secrets: &self.index.secrets,
        };
        let prefix = settings.annotations_prefix.trim_end_matches('/');
        let ingresses = Changes::<Ingress>::between(&before.ingresses, &objects.ingresses);
        let regrouped = self.groups.follow(
            &ingresses,
            |ingress| Outline::of(ingress, &classes, prefix, &values),
            self.merged.readers(&changed.objects),
        );
        regroup(&mut self.merged, &self.groups, regrouped, &inputs);
        let sources = Sources {
            services: &self.index.services,
            slices: &self.index.slices,
            names: &objects.names,
        };
        let renamed = before.names.known != objects.names.known;
        self.merged.resolve(&changed.leading, renamed, &sources);
        let l4 = l4::l4(&self.index, &settings.l4, &self.l4, &mut found);
        if *self.l4 != l4 {
            self.l4 = Arc::new(l4);
        }
        let tls_default = super::tls_default(&inputs);
        let ingresses = self.groups.served();
        Translation {
            problems: self.problems(found),
            snapshot: Snapshot {
                tls_default,
                l4: Arc::clone(&self.l4),
                ..self.merged.snapshot()
            },
            secrets: self.merged.secrets(),
            names: self.merged.names(),
            served: ingresses.len(),
            ingresses,
        }
    }

    /// The content of a Secret of the objects that were translated last.
    pub fn secret(&self, namespace: &str, name: &str) -> Option<SecretData> {
        Some(self.index.secrets.get(namespace, name)?.data())
    }

    /// The same list as before as long as it says the same.
    fn problems(&mut self, found: Problems) -> Arc<[Problem]> {
        let found = found.into_sorted();
        let others = [self.groups.tells_other(), self.merged.tells_other()];
        if others != [false; 2] || found != self.told.found {
            let of_all = self.groups.problems().chain(self.merged.problems());
            let mut all: Vec<Problem> = of_all.chain(&found).cloned().collect();
            report::sort(&mut all);
            if *self.told.all != *all {
                self.told.all = all.into();
            }
            self.told.found = found;
        }
        Arc::clone(&self.told.all)
    }
}

impl Terms {
    fn of(objects: &Objects, settings: &ClassSettings) -> Self {
        let mut classes = objects.classes.clone();
        classes.sort_by(|a, b| a.name().cmp(b.name()));
        Terms {
            settings: settings.clone(),
            classes,
            class_by_name_only: objects.class_by_name_only,
            allow_local: objects.names.allow_local,
        }
    }
}

/// Translates the groups whose Parts do not hold any more.
fn regroup(merged: &mut Merged, groups: &Groups, regrouped: Regrouped, inputs: &Inputs<'_>) {
    let gone = regrouped.gone.into_iter();
    let known = gone.filter_map(|id| Some((id, merged.take(id)?)));
    let mut known: BTreeMap<_, _> = known.collect();
    let mut patterns = Patterns::default();
    let (mut kept, mut fresh, mut gone) = (Vec::new(), Vec::new(), Vec::new());
    for group in regrouped.new {
        let (id, members) = (group.id, groups.outlines(&group.members));
        match known.remove(&id) {
            Some(part) if part.is_current(&members, &group.covering, inputs) => {
                kept.push((id, part));
            }
            stale => {
                gone.extend(stale.map(|part| (id, part)));
                let part = Part::translate(&members, group.covering, inputs, &mut patterns);
                fresh.push((id, part));
            }
        }
    }
    gone.extend(known);
    merged.put(kept, fresh, gone);
}
