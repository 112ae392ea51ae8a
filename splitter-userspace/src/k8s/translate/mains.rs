//! Ordinary Ingresses to Locations that have no canary yet.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use super::View;
use super::attach::Attached;
use super::backends::{Backends, Target};
use super::policy::{self, MainPolicy, SplitWish};
use super::report::Problems;
use super::rules::{self, Place, RulePath};
use crate::model::{BackendFault, HostPattern, LocationKey, ObjectRef, Policy};

/// A Location on its way.
pub(super) struct Draft<'c> {
    pub key: LocationKey,
    /// The main Ingress that owns it.
    pub owner: ObjectRef,
    pub stable: Target,
    /// What holds for its requests beside the Split.
    pub policy: Option<Arc<Policy>>,
    /// What the owner says of the Split.
    pub wish: Arc<SplitWish>,
    /// Nobody wrote it: a default backend made it.
    pub implicit: bool,
    /// Oldest first.
    pub canaries: Vec<Attached<'c>>,
}

/// The Locations and hosts of all main Ingresses.
#[derive(Default)]
pub(super) struct Drafts<'c> {
    pub list: Vec<Draft<'c>>,
    by_key: HashMap<LocationKey, usize>,
    /// Every host that a main Ingress names, with or without a path.
    pub hosts: BTreeSet<HostPattern>,
}

impl<'c> Drafts<'c> {
    pub(super) fn get_mut(&mut self, key: &LocationKey) -> Option<&mut Draft<'c>> {
        let index = self.by_key.get(key)?;
        self.list.get_mut(*index)
    }

    pub(super) fn get(&self, key: &LocationKey) -> Option<&Draft<'c>> {
        self.list.get(*self.by_key.get(key)?)
    }

    /// Adds a Location whose key is free.
    fn add(&mut self, draft: Draft<'c>) {
        self.by_key.insert(draft.key.clone(), self.list.len());
        self.hosts.insert(draft.key.host.clone());
        self.list.push(draft);
    }
}

/// Makes the Locations of the main Ingresses, which are sorted by age: who comes first owns a key.
///
/// What is written comes before what a default backend implies, whatever the age.
pub(super) fn locations<'c>(
    mains: &[&View<'_>],
    backends: &mut Backends<'_>,
    problems: &mut Problems,
) -> Drafts<'c> {
    let mut drafts = Drafts::default();
    let mut defaults = Vec::new();
    for view in mains {
        let rules = rules::read(view, problems);
        let MainPolicy {
            closed,
            policy,
            split,
        } = policy::main_policy(view, problems);
        let terms = Terms {
            closed,
            policy: policy.into_shared(),
            split: Arc::new(split),
        };
        drafts.hosts.extend(rules.hosts.iter().cloned());
        defaults.push((view, rules::default_paths(view, &rules), terms.clone()));
        add(view, rules.paths, &terms, &mut drafts, backends, problems);
    }
    for (view, paths, terms) in defaults {
        add(view, paths, &terms, &mut drafts, backends, problems);
    }
    drafts
}

/// What an Ingress says for all its Locations.
#[derive(Clone)]
struct Terms {
    closed: Option<BackendFault>,
    policy: Option<Arc<Policy>>,
    split: Arc<SplitWish>,
}

fn add(
    view: &View<'_>,
    paths: Vec<RulePath<'_>>,
    terms: &Terms,
    drafts: &mut Drafts<'_>,
    backends: &mut Backends<'_>,
    problems: &mut Problems,
) {
    for path in paths {
        if let Some(taken) = drafts.get(&path.key) {
            report_taken(view, &path, taken, problems);
            continue;
        }
        let field = path.place.backend();
        let effect = "the path answers 503";
        let key = backends.find(&view.subject, path.backend, &field, effect, problems);
        drafts.add(Draft {
            key: path.key,
            owner: view.subject.object.clone(),
            stable: Target {
                key,
                closed: terms.closed,
            },
            policy: terms.policy.clone(),
            wish: Arc::clone(&terms.split),
            implicit: matches!(path.place, Place::DefaultBackend),
            canaries: Vec::new(),
        });
    }
}

/// A path that somebody has already. Its own `/` in place of its default backend is no fault.
fn report_taken(view: &View<'_>, path: &RulePath<'_>, taken: &Draft<'_>, problems: &mut Problems) {
    match path.place {
        Place::Rule { .. } => problems.error(
            &view.subject,
            path.place.to_string(),
            "path-duplicate",
            format!("{} belongs to {} already", path.key, taken.owner),
            "this one is left out, the first one stays",
        ),
        Place::DefaultBackend if taken.owner == view.subject.object => {}
        Place::DefaultBackend => problems.warn(
            &view.subject,
            path.place.to_string(),
            "default-backend-taken",
            format!("{} belongs to {} already", path.key, taken.owner),
            "the default backend is not used there",
        ),
    }
}
