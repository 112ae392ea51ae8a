//! Translation that does again only what a change can have changed.
//!
//! The result is that of a translation from nothing, always: nothing is told what has changed, all
//! objects are looked at each time, and what was made of objects is used again only if each of them
//! is the same allocation still. Sources keep objects that did not change.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::IngressClass;

use super::Translation;
use super::backends::ServiceIndex;
use super::class::Classes;
use super::defaults;
use super::endpoints::Sources;
use super::group::{Inputs, Part};
use super::l4;
use super::merge::{GroupId, Merged};
use super::outline::Outline;
use super::partition::partition;
use super::pattern::Patterns;
use super::report::{self, Problems};
use super::site;
use super::slices::SliceIndex;
use super::tls::SecretIndex;
use crate::config::ClassSettings;
use crate::k8s::{Objects, Sourced};
use crate::model::{HostPattern, L4, ObjectRef, Snapshot};

/// Translates one state of the objects after the other.
#[derive(Default)]
pub struct Translator {
    /// All Ingresses are one group: nothing is used again unless nothing has changed.
    undivided: bool,
    terms: Option<Terms>,
    outlines: HashMap<GroupId, Box<Outline>>,
    merged: Merged,
    l4: L4,
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

/// A group with the wildcards of others that cover hosts of it.
type Group<'o> = (Vec<&'o Outline>, Vec<HostPattern>);

impl Translator {
    pub(super) fn undivided() -> Self {
        Translator {
            undivided: true,
            ..Translator::default()
        }
    }

    /// As [`translate`](super::translate), which this gives the same as. It takes time for what has
    /// changed since the last call, and very little for what has not.
    pub fn translate(&mut self, objects: &Objects, settings: &ClassSettings) -> Translation {
        let terms = Terms::of(objects, settings);
        if self.terms.as_ref() != Some(&terms) {
            self.outlines.clear();
            self.merged = Merged::default();
            self.terms = Some(terms);
        }
        let mut found = Problems::default();
        let classes = Classes::read(objects, settings, &mut found);
        let values = defaults::read(&settings.defaults, &mut found);
        let (services, slices) = (ServiceIndex::of(objects), SliceIndex::of(objects));
        let inputs = Inputs {
            settings,
            values: &values,
            services: &services,
            secrets: &SecretIndex::of(objects),
        };
        self.outline(objects, &classes, &inputs);
        let mut served: Vec<&Outline> = self.outlines.values().map(|it| &**it).collect();
        served.retain(|it| it.served);
        served.sort_by(|a, b| a.age().cmp(&b.age()));
        regroup(&mut self.merged, self.undivided, &served, &inputs);
        self.merged.resolve(&Sources {
            services: &services,
            slices: &slices,
            names: &objects.names,
        });
        let (asked, before) = (&settings.l4, &self.l4);
        self.l4 = l4::l4(objects, asked, &services, &slices, before, &mut found);
        let tls_default = super::tls_default(&inputs);
        let ingresses: Vec<ObjectRef> = served.iter().map(|it| it.object.clone()).collect();
        let of_classes = self.outlines.values().flat_map(|it| &it.problems);
        let mut problems = found.into_sorted();
        problems.extend(of_classes.chain(self.merged.problems()).cloned());
        report::sort(&mut problems);
        Translation {
            snapshot: Snapshot {
                tls_default,
                l4: self.l4.clone(),
                ..self.merged.snapshot()
            },
            secrets: self.merged.secrets(),
            problems,
            names: self.merged.names(),
            served: ingresses.len(),
            ingresses,
        }
    }

    fn outline(&mut self, objects: &Objects, classes: &Classes<'_>, inputs: &Inputs<'_>) {
        let prefix = inputs.settings.annotations_prefix.trim_end_matches('/');
        let mut known = std::mem::take(&mut self.outlines);
        for ingress in &objects.ingresses {
            let id = address(&ingress.object);
            let outline = match known.remove(&id) {
                Some(outline) if outline.ingress.is_same(ingress) => outline,
                _ => Box::new(Outline::of(ingress, classes, prefix, inputs.values)),
            };
            self.outlines.insert(id, outline);
        }
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

/// Translates the groups whose Parts do not hold any more. `served` is sorted by age.
fn regroup(merged: &mut Merged, undivided: bool, served: &[&Outline], inputs: &Inputs<'_>) {
    let mut known = merged.take();
    let mut patterns = Patterns::default();
    let (mut kept, mut fresh, mut gone) = (HashMap::new(), Vec::new(), Vec::new());
    for (members, covering) in groups(undivided, served) {
        let Some(id) = members.first().map(|it| address(&it.ingress.object)) else {
            continue;
        };
        match known.remove(&id) {
            Some(part) if part.is_current(&members, &covering, inputs) => {
                kept.insert(id, part);
            }
            stale => {
                gone.extend(stale.map(|part| (id, part)));
                let part = Part::translate(&members, covering, inputs, &mut patterns);
                fresh.push((id, part));
            }
        }
    }
    gone.extend(known);
    merged.put(kept, fresh, gone);
}

fn groups<'o>(undivided: bool, served: &[&'o Outline]) -> Vec<Group<'o>> {
    if undivided {
        return vec![(served.to_vec(), Vec::new())];
    }
    let covers: BTreeSet<&HostPattern> = served.iter().flat_map(|it| &it.covers).collect();
    let groups = partition(served.iter().map(|it| &it.hosts));
    let groups = groups.into_iter().map(|group| {
        let members = group.iter().filter_map(|index| served.get(*index).copied());
        let members: Vec<&Outline> = members.collect();
        let covering = covering(&members, &covers);
        (members, covering)
    });
    groups.collect()
}

/// The wildcards that cover hosts of a group, sorted.
fn covering(members: &[&Outline], covers: &BTreeSet<&HostPattern>) -> Vec<HostPattern> {
    if covers.is_empty() {
        return Vec::new();
    }
    let hosts = members.iter().flat_map(|it| &it.hosts);
    let wildcards = hosts.filter_map(site::wildcard);
    let found: BTreeSet<HostPattern> = wildcards.filter(|it| covers.contains(it)).collect();
    found.into_iter().collect()
}

/// Tells objects apart for as long as they are kept.
fn address<T>(object: &Arc<T>) -> GroupId {
    Arc::as_ptr(object).addr()
}
