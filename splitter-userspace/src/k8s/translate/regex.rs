//! Paths that are patterns.
//!
//! An Ingress with `use-regex` or a `rewrite-target` makes its own paths patterns. In ingress-nginx
//! it makes those of every Ingress of its hosts patterns; here that is reported to the others, and
//! done with `--strict-nginx`.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::View;
use super::mains::{Draft, Drafts};
use super::pattern;
use super::report::{Problems, Subject};
use super::rules::Place;
use crate::model::{HostPattern, LocationKey, ObjectRef, PathKind};

/// Makes patterns of the paths that are to be patterns; the drafts are in order of precedence.
pub(super) fn settle(
    mains: &[&View<'_>],
    strict: bool,
    drafts: &mut Drafts<'_>,
    problems: &mut Problems,
) {
    let mut leaking: HashMap<HostPattern, ObjectRef> = HashMap::new();
    for draft in drafts.list.iter().filter(|draft| draft.regex) {
        let known = leaking.entry(draft.key.host.clone());
        known.or_insert_with(|| draft.owner.clone());
    }
    if leaking.is_empty() {
        return;
    }
    let subjects = mains.iter().map(|it| (&it.subject.object, &it.subject));
    let mut settling = Settling {
        subjects: subjects.collect(),
        exact: exact_paths(drafts),
        taken: HashSet::new(),
        told: BTreeSet::new(),
        problems,
    };
    for draft in &mut drafts.list {
        let Some(leak) = leaking.get(&draft.key.host) else {
            continue;
        };
        if draft.regex || strict {
            settling.make(draft);
        } else {
            settling.warn(draft, leak);
        }
    }
    drafts.forget_left_out();
}

/// Host and path of the Locations of type Exact.
fn exact_paths(drafts: &Drafts<'_>) -> HashSet<(HostPattern, String)> {
    let exact = drafts.list.iter().map(|draft| &draft.key);
    let exact = exact.filter(|key| key.kind == PathKind::Exact);
    exact
        .map(|key| (key.host.clone(), key.path.to_string()))
        .collect()
}

struct Settling<'s, 'a> {
    subjects: HashMap<&'s ObjectRef, &'s Subject<'a>>,
    exact: HashSet<(HostPattern, String)>,
    /// The keys that patterns have already.
    taken: HashSet<LocationKey>,
    /// Who has been told of whose leak.
    told: BTreeSet<(ObjectRef, HostPattern)>,
    problems: &'s mut Problems,
}

impl Settling<'_, '_> {
    fn make(&mut self, draft: &mut Draft<'_>) {
        let key = LocationKey {
            kind: PathKind::Regex,
            ..draft.key.clone()
        };
        if !self.taken.insert(key.clone()) {
            let message = format!("{key} is there already: Exact and Prefix make no difference");
            let effect = "this one is left out, the first one stays";
            self.error(draft, "path-duplicate", message, effect);
            draft.left_out = true;
            return;
        }
        let texts = self.texts(draft);
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        match pattern::compile_path(&texts) {
            Ok(pattern) => {
                if draft.key.kind == PathKind::Exact {
                    self.warn_exact(draft);
                }
                draft.pattern = Some(pattern);
                draft.key = key;
            }
            Err(why) => {
                let message = format!("{:?} is no pattern: {why}", draft.key.path);
                self.error(draft, "path-regex-invalid", message, "the path is left out");
                draft.left_out = true;
            }
        }
    }

    /// The texts of a path. One that is a pattern for others' sake alone stands for itself and, with
    /// a slash, for what is below it, as ingress-nginx has it.
    fn texts(&self, draft: &Draft<'_>) -> Vec<String> {
        let path = draft.key.path.to_string();
        let is_prefix = draft.key.kind == PathKind::Prefix;
        if draft.regex || !is_prefix || path.ends_with('/') {
            return vec![path];
        }
        let below = format!("{path}/");
        match self.exact.contains(&(draft.key.host.clone(), path.clone())) {
            true => vec![below],
            false => vec![below, path],
        }
    }

    /// Tells an Ingress, once for each host, that its paths are something else in ingress-nginx.
    fn warn(&mut self, draft: &Draft<'_>, leak: &ObjectRef) {
        let host = &draft.key.host;
        // A pattern of the root matches what the prefix does.
        let same = &*draft.key.path == "/" && draft.key.kind == PathKind::Prefix;
        let told = (draft.owner.clone(), host.clone());
        if same || !self.told.insert(told) {
            return;
        }
        if let Some(subject) = self.subjects.get(&draft.owner) {
            self.problems.warn(
                subject,
                draft.place.to_string(),
                "regex-leak",
                format!(
                    "in ingress-nginx {leak} makes all paths of its host patterns: {} would be for \
                     every path that begins so, in capital and small letters",
                    draft.key
                ),
                "the path is compared as its pathType says; --strict-nginx makes it a pattern",
            );
        }
    }

    fn warn_exact(&mut self, draft: &Draft<'_>) {
        if let Some(subject) = self.subjects.get(&draft.owner) {
            self.problems.warn(
                subject,
                format!("{}.pathType", draft.place),
                "regex-exact",
                "it is Exact, but the path is a pattern",
                "the path is for every path that begins so, as in ingress-nginx; end it with $",
            );
        }
    }

    fn error(&mut self, draft: &Draft<'_>, code: &'static str, message: String, effect: &str) {
        if let Some(subject) = self.subjects.get(&draft.owner) {
            let field = match draft.place {
                Place::Rule { .. } => format!("{}.path", draft.place),
                Place::DefaultBackend => draft.place.to_string(),
            };
            self.problems.error(subject, field, code, message, effect);
        }
    }
}
