//! Canaries to the Locations they are written for.

use super::View;
use super::backends::{Backends, Target};
use super::canary::Canary;
use super::mains::{Draft, Drafts};
use super::policy;
use super::report::Problems;
use super::rules::{self, Place, RulePath};
use crate::model::{HostPattern, LocationKey, MAX_VARIANTS, PathKind};

/// A canary on one Location.
pub(super) struct Attached<'c> {
    pub view: &'c View<'c>,
    pub canary: &'c Canary,
    pub target: Target,
    pub place: Place,
}

/// Attaches each path of each canary, which are sorted by age, to the Location with the same host,
/// path and path type. What finds none is reported and touches nothing else.
pub(super) fn attach<'c>(
    canaries: &'c [(&'c View<'c>, Canary)],
    drafts: &mut Drafts<'c>,
    backends: &mut Backends<'_>,
    problems: &mut Problems,
) {
    for (view, canary) in canaries {
        policy::canary_policy(view, problems);
        let service_upstream = policy::service_upstream(view, problems);
        let rules = rules::read(view, problems);
        let defaults = rules::default_paths(view, &rules);
        let implied = defaults
            .into_iter()
            .filter(|it| !rules.keys.contains(&it.key));
        let mut outcomes = Vec::new();
        for path in rules.paths.into_iter().chain(implied) {
            let attaching = Attaching {
                view,
                canary,
                service_upstream,
                path: &path,
            };
            outcomes.push(attaching.run(drafts, backends, problems));
        }
        report_idle(view, &outcomes, problems);
    }
}

/// What became of one path of a canary.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// The canary takes part in the Location.
    Attached,
    /// The Location is the same Service anyway.
    Same,
    /// Reported.
    LeftOut,
}

/// A canary whose every path is the main Ingress's own, or that has none.
fn report_idle(view: &View<'_>, outcomes: &[Outcome], problems: &mut Problems) {
    if outcomes.iter().any(|it| *it != Outcome::Same) {
        return;
    }
    let message = if outcomes.is_empty() {
        "the canary has no usable path"
    } else {
        "every path of the canary leads to the main Ingress's own Service"
    };
    let effect = "no request is given to it";
    problems.warn(
        &view.subject,
        "spec",
        "canary-without-effect",
        message,
        effect,
    );
}

/// One path of one canary.
struct Attaching<'p, 'c> {
    view: &'c View<'c>,
    canary: &'c Canary,
    /// What the canary itself says; the main Ingress counts where it says nothing.
    service_upstream: Option<bool>,
    path: &'p RulePath<'c>,
}

impl<'c> Attaching<'_, 'c> {
    fn run(
        &self,
        drafts: &mut Drafts<'c>,
        backends: &mut Backends<'_>,
        problems: &mut Problems,
    ) -> Outcome {
        let usable = |draft: &Draft<'c>| self.is_written() || draft.implicit || self.is_catch_all();
        if !drafts.get(&self.path.key).is_some_and(usable) {
            self.report_stray(drafts, problems);
            return Outcome::LeftOut;
        }
        let field = self.path.place.backend();
        let effect = "the canary gets no request on this path, stable answers";
        let key = backends.find(
            &self.view.subject,
            self.path.backend,
            &field,
            effect,
            problems,
        );
        let Some(draft) = drafts.get_mut(&self.path.key) else {
            return Outcome::LeftOut;
        };
        // Tools copy whole rules: a path that they left alone is no canary of itself.
        if backends.is_same(&key, &draft.stable.key) {
            return Outcome::Same;
        }
        let by_service = self.service_upstream.unwrap_or(draft.service_upstream);
        if !self.has_room(draft, problems) {
            return Outcome::LeftOut;
        }
        draft.canaries.push(Attached {
            view: self.view,
            canary: self.canary,
            target: Target {
                by_service: by_service
                    && backends.has_address(&self.view.subject, &key, &field, problems),
                key,
                closed: None,
            },
            place: self.path.place,
        });
        Outcome::Attached
    }

    /// A path of a rule, not one that the default backend implies.
    fn is_written(&self) -> bool {
        matches!(self.path.place, Place::Rule { .. })
    }

    /// The default backend of an Ingress without rules means `/` of any host, whoever wrote that.
    fn is_catch_all(&self) -> bool {
        let spec = self.view.spec();
        spec.and_then(|it| it.rules.as_ref())
            .is_none_or(Vec::is_empty)
    }

    fn has_room(&self, draft: &Draft<'_>, problems: &mut Problems) -> bool {
        if draft.canaries.len() + 1 >= MAX_VARIANTS {
            problems.error(
                &self.view.subject,
                self.path.place.to_string(),
                "too-many-canaries",
                format!("{} has {} older canaries", self.path.key, MAX_VARIANTS - 1),
                "this one is left out there",
            );
            return false;
        }
        true
    }

    fn report_stray(&self, drafts: &Drafts<'_>, problems: &mut Problems) {
        let key = &self.path.key;
        let host = match &key.host {
            HostPattern::Any => "rules without a host".to_owned(),
            host => format!("the host {host}"),
        };
        let why = if drafts.get(key).is_some() {
            "it is written there, and a default backend stands for what is not".to_owned()
        } else if let Some(near) = near(key, drafts) {
            format!("main Ingresses have {near}, which is a different location")
        } else if drafts.hosts.contains(&key.host) {
            format!("{host} has no such path")
        } else {
            format!("no main Ingress is for {host}")
        };
        problems.error(
            &self.view.subject,
            self.path.place.to_string(),
            "canary-stray",
            format!("there is no {key} for the canary: {why}"),
            "this path of the canary is left out, its others work",
        );
    }
}

/// What somebody may have meant: the other path type, or with or without a slash at the end.
fn near(key: &LocationKey, drafts: &Drafts<'_>) -> Option<LocationKey> {
    let slashed = match key.path.strip_suffix('/') {
        Some(path) => path.to_owned(),
        None => format!("{}/", key.path),
    };
    let paths = [key.path.to_string(), slashed];
    let kinds = [PathKind::Exact, PathKind::Prefix];
    let all = paths.iter().flat_map(|path| kinds.map(|kind| (path, kind)));
    all.map(|(path, kind)| LocationKey {
        host: key.host.clone(),
        path: path.as_str().into(),
        kind,
    })
    .find(|near| drafts.get(near).is_some())
}
