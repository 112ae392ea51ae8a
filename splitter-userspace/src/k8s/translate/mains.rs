//! Ordinary Ingresses to Locations that have no canary yet.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::View;
use super::attach::Attached;
use super::backends::{Backends, Target};
use super::fallback;
use super::policy::{self, ExternalWish, HttpsTerms, MainPolicy, PathTerms, SplitWish};
use super::regex;
use super::report::Problems;
use super::rules::{self, Place, RulePath};
use super::site::{self, Site};
use crate::model::{
    BackendFault, HostPattern, LocationKey, ObjectRef, PathPattern, Policy, TlsTerms,
};

/// A Location on its way.
pub(super) struct Draft<'c> {
    pub key: LocationKey,
    /// The main Ingress that owns it.
    pub owner: ObjectRef,
    pub stable: Target,
    /// Whether Services' own addresses are asked, also for canaries that do not say.
    pub service_upstream: bool,
    /// What holds for its requests beside the Split.
    pub policy: Option<Arc<Policy>>,
    /// What the owner says of the Split.
    pub wish: Arc<SplitWish>,
    /// Where it is written.
    pub place: Place,
    /// Its Ingress asks for patterns.
    pub regex: bool,
    /// The pattern, once the key says that it is one.
    pub pattern: Option<PathPattern>,
    /// Reported, and not to be served.
    pub left_out: bool,
    /// What its Ingress says about https.
    pub https: HttpsTerms,
    /// Nobody wrote it: a default backend made it.
    pub implicit: bool,
    /// Oldest first.
    pub canaries: Vec<Attached<'c>>,
}

/// The Locations and hosts of all main Ingresses.
#[derive(Default)]
pub(super) struct Drafts<'c> {
    pub list: Vec<Draft<'c>>,
    /// By the key as written: a canary is attached by it.
    by_key: HashMap<LocationKey, usize>,
    /// Every host that a main Ingress names, with or without a path.
    pub hosts: BTreeSet<HostPattern>,
    /// Further names of them.
    pub aliases: BTreeMap<HostPattern, HostPattern>,
    /// How TLS is spoken with their clients, where an Ingress says so.
    pub tls_terms: BTreeMap<HostPattern, TlsTerms>,
    /// Those whose TLS is left to the pods, with the Location that says which.
    pub passthrough: BTreeMap<HostPattern, LocationKey>,
}

impl<'c> Drafts<'c> {
    pub(super) fn get_mut(&mut self, key: &LocationKey) -> Option<&mut Draft<'c>> {
        let index = self.by_key.get(key)?;
        self.list.get_mut(*index)
    }

    pub(super) fn get(&self, key: &LocationKey) -> Option<&Draft<'c>> {
        self.list.get(*self.by_key.get(key)?)
    }

    /// Takes out what was left out; its keys find nothing any more.
    pub(super) fn forget_left_out(&mut self) {
        if !self.list.iter().any(|draft| draft.left_out) {
            return;
        }
        let mut moved = Vec::with_capacity(self.list.len());
        let mut kept = 0;
        for draft in &self.list {
            moved.push((!draft.left_out).then_some(kept));
            kept += usize::from(!draft.left_out);
        }
        self.list.retain(|draft| !draft.left_out);
        self.by_key.retain(|_, index| match moved.get(*index) {
            Some(Some(place)) => {
                *index = *place;
                true
            }
            _ => false,
        });
    }

    /// Adds a Location whose key is free.
    pub(super) fn add(&mut self, draft: Draft<'c>) {
        self.by_key.insert(draft.key.clone(), self.list.len());
        self.hosts.insert(draft.key.host.clone());
        self.list.push(draft);
    }
}

/// Makes the Locations of the main Ingresses, which are sorted by age: who comes first owns a key.
///
/// What is written comes before what a default backend implies, whatever the age. `covering` are
/// wildcards of other Ingresses that have TLS.
pub(super) fn locations<'c>(
    mains: &[&View<'_>],
    strict: bool,
    covering: &[HostPattern],
    backends: &mut Backends<'_>,
    problems: &mut Problems,
) -> Drafts<'c> {
    let mut drafts = Drafts::default();
    let mut defaults = Vec::new();
    let mut sites = Vec::new();
    for view in mains {
        let rules = rules::read(view, problems);
        let implied = rules::default_paths(view, &rules);
        let main = policy::main_policy(view, problems);
        let MainPolicy {
            closed,
            external,
            mut policy,
            split,
            paths,
            https,
            site,
        } = main;
        // What is closed answers 503 and nothing else.
        match closed {
            Some(_) => policy.error_pages = None,
            None => policy.fallback = fallback::read(view, backends, problems),
        }
        let plain = Policy {
            rewrite: None,
            ..policy.clone()
        };
        let rewrites = |path: &RulePath<'_>| paths.rewrites(&path.key.path);
        let terms = Terms {
            closed,
            external: external.filter(|_| closed.is_none()),
            service_upstream: policy::service_upstream(view, problems) == Some(true),
            split: Arc::new(split),
            plain: plain.into_shared(),
            rewriting: policy.into_shared(),
            regex: paths.regex || rules.paths.iter().chain(&implied).any(rewrites),
            paths,
            https,
        };
        drafts.hosts.extend(rules.hosts.iter().cloned());
        sites.push(Site {
            view,
            hosts: rules
                .hosts
                .iter()
                .chain(implied.iter().map(|it| &it.key.host))
                .cloned()
                .collect(),
            terms: site,
        });
        defaults.push((view, implied, terms.clone()));
        add(view, rules.paths, &terms, &mut drafts, backends, problems);
    }
    for (view, paths, terms) in defaults {
        add(view, paths, &terms, &mut drafts, backends, problems);
    }
    regex::settle(mains, strict, &mut drafts, problems);
    site::settle(&sites, covering, &mut drafts, problems);
    drafts
}

/// What an Ingress says for all its Locations.
#[derive(Clone)]
struct Terms {
    closed: Option<BackendFault>,
    /// The service that is asked who may call.
    external: Option<ExternalWish>,
    /// Services' own addresses are asked.
    service_upstream: bool,
    split: Arc<SplitWish>,
    /// For paths that are not rewritten.
    plain: Option<Arc<Policy>>,
    /// For paths that are.
    rewriting: Option<Arc<Policy>>,
    /// Whether its paths are patterns.
    regex: bool,
    paths: PathTerms,
    https: HttpsTerms,
}

impl Terms {
    fn policy(&self, path: &str) -> Option<Arc<Policy>> {
        match self.paths.rewrites(path) {
            true => self.rewriting.clone(),
            false => self.plain.clone(),
        }
    }

    /// What holds for a path, with all that is asked of who calls, and why it is not served if so.
    fn guarded(
        &self,
        view: &View<'_>,
        key: &LocationKey,
        backends: &mut Backends<'_>,
        problems: &mut Problems,
    ) -> (Option<Arc<Policy>>, Option<BackendFault>) {
        let policy = self.policy(&key.path);
        let own = || policy.as_deref().cloned().unwrap_or_default();
        if policy::is_open(view, &key.path) {
            return (own().unguarded(), self.closed);
        }
        let Some(external) = &self.external else {
            return (policy, self.closed);
        };
        match external.on(view, &key.host, backends, problems) {
            Ok(asked) => (Some(own().asking(asked, external.any)), self.closed),
            Err(fault) => (policy, Some(fault)),
        }
    }
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
        let (policy, closed) = terms.guarded(view, &path.key, backends, problems);
        drafts.add(Draft {
            key: path.key,
            owner: view.subject.object.clone(),
            stable: Target {
                by_service: terms.service_upstream
                    && backends.has_address(&view.subject, &key, &field, problems),
                key,
                closed,
            },
            service_upstream: terms.service_upstream,
            policy,
            wish: Arc::clone(&terms.split),
            place: path.place,
            regex: terms.regex,
            pattern: None,
            left_out: false,
            https: terms.https,
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
