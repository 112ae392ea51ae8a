//! The rules of an Ingress, main or canary, as host and path.

use std::collections::{BTreeSet, HashSet};
use std::fmt;

use k8s_openapi::api::networking::v1::{HTTPIngressPath, IngressBackend, IngressRule, IngressSpec};

use super::View;
use super::host;
use super::path::{self, ParsedPath, PathError};
use super::report::Problems;
use crate::model::{HostPattern, LocationKey, PathKind};

/// The path of the Location that a default backend makes.
const ROOT: &str = "/";

/// What the rules of one Ingress say; what is wrong is left out and reported.
#[derive(Default)]
pub(super) struct Rules<'a> {
    /// The hosts of all its rules.
    pub hosts: BTreeSet<HostPattern>,
    /// Its paths, each key once, in its order.
    pub paths: Vec<RulePath<'a>>,
    /// The keys of its paths.
    pub keys: HashSet<LocationKey>,
}

/// One path of a rule.
pub(super) struct RulePath<'a> {
    pub key: LocationKey,
    pub backend: &'a IngressBackend,
    pub place: Place,
}

/// Where in the Ingress a path is written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Place {
    Rule { rule: usize, path: usize },
    DefaultBackend,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Rule { rule, path } => write!(f, "spec.rules[{rule}].http.paths[{path}]"),
            Place::DefaultBackend => f.write_str("spec.defaultBackend"),
        }
    }
}

impl Place {
    /// The field of its backend.
    pub(super) fn backend(self) -> String {
        match self {
            Place::Rule { .. } => format!("{self}.backend"),
            Place::DefaultBackend => self.to_string(),
        }
    }
}

/// Reads the rules of an Ingress.
pub(super) fn read<'a>(view: &View<'a>, problems: &mut Problems) -> Rules<'a> {
    let mut rules = Rules::default();
    let written = view.spec().and_then(|it| it.rules.as_ref());
    for (index, rule) in written.into_iter().flatten().enumerate() {
        match host::parse(rule.host.as_deref().unwrap_or("")) {
            Ok(host) => read_rule(view, rule, index, &host, &mut rules, problems),
            Err(why) => problems.error(
                &view.subject,
                format!("spec.rules[{index}].host"),
                "host-invalid",
                format!("{:?}: {why}", rule.host.as_deref().unwrap_or("")),
                "the rule is left out",
            ),
        }
    }
    rules
}

fn read_rule<'a>(
    view: &View<'a>,
    rule: &'a IngressRule,
    index: usize,
    host: &HostPattern,
    rules: &mut Rules<'a>,
    problems: &mut Problems,
) {
    rules.hosts.insert(host.clone());
    let paths = rule
        .http
        .as_ref()
        .map_or(&[][..], |http| http.paths.as_slice());
    for (number, written) in paths.iter().enumerate() {
        let place = Place::Rule {
            rule: index,
            path: number,
        };
        match path::parse(written.path.as_deref(), &written.path_type) {
            Ok(parsed) => {
                report_assumed(view, place, &parsed, problems);
                let (path, kind) = (parsed.path, parsed.kind);
                let host = host.clone();
                let key = LocationKey { host, path, kind };
                if rules.keys.insert(key.clone()) {
                    let backend = &written.backend;
                    rules.paths.push(RulePath {
                        key,
                        backend,
                        place,
                    });
                } else {
                    report_twice(view, place, &key, problems);
                }
            }
            Err(error) => report_path(view, place, written, &error, problems),
        }
    }
}

fn report_assumed(view: &View<'_>, place: Place, parsed: &ParsedPath, problems: &mut Problems) {
    if parsed.assumed {
        problems.warn(
            &view.subject,
            format!("{place}.pathType"),
            "path-type-missing",
            "there is no pathType",
            "it counts as Prefix",
        );
    }
}

fn report_twice(view: &View<'_>, place: Place, key: &LocationKey, problems: &mut Problems) {
    problems.error(
        &view.subject,
        place.to_string(),
        "path-duplicate",
        format!("the Ingress has {key} twice"),
        "this one is left out, the first one stays",
    );
}

fn report_path(
    view: &View<'_>,
    place: Place,
    written: &HTTPIngressPath,
    error: &PathError,
    problems: &mut Problems,
) {
    let (field, code, message) = match error {
        PathError::Path(why) => {
            let path = written.path.as_deref().unwrap_or("");
            ("path", "path-invalid", format!("{path:?}: {why}"))
        }
        PathError::Kind => {
            let kind = &written.path_type;
            let message = format!("{kind:?} is none of Exact, Prefix and ImplementationSpecific");
            ("pathType", "path-type-invalid", message)
        }
    };
    let field = format!("{place}.{field}");
    problems.error(&view.subject, field, code, message, "the path is left out");
}

/// The paths that the default backend of an Ingress stands for: `/` of each of its hosts, or of any
/// host if it has no rules.
pub(super) fn default_paths<'a>(view: &View<'a>, rules: &Rules<'_>) -> Vec<RulePath<'a>> {
    let Some(spec) = view.spec() else {
        return Vec::new();
    };
    let Some(backend) = &spec.default_backend else {
        return Vec::new();
    };
    let hosts = if has_rules(spec) {
        rules.hosts.clone()
    } else {
        BTreeSet::from([HostPattern::Any])
    };
    let path = |host| RulePath {
        key: LocationKey {
            host,
            path: ROOT.into(),
            kind: PathKind::Prefix,
        },
        backend,
        place: Place::DefaultBackend,
    };
    hosts.into_iter().map(path).collect()
}

fn has_rules(spec: &IngressSpec) -> bool {
    spec.rules.as_ref().is_some_and(|rules| !rules.is_empty())
}
