use std::fmt;
use std::sync::Arc;

use serde::Serialize;

use super::{LocationId, ObjectRef, PathPattern, Policy, Split};

/// Which host names a rule covers. Names are lower case, without port and final dot.
///
/// The order is that of precedence: exact, then wildcard, then any.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum HostPattern {
    /// This name only.
    Exact(Arc<str>),
    /// `*.suffix`: one label and the suffix, which is stored without the `*.`.
    Wildcard(Arc<str>),
    /// Every host, and requests without one.
    Any,
}

impl fmt::Display for HostPattern {
    /// As written in a rule; `Any` is the empty text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HostPattern::Exact(name) => f.write_str(name),
            HostPattern::Wildcard(suffix) => write!(f, "*.{suffix}"),
            HostPattern::Any => Ok(()),
        }
    }
}

impl Serialize for HostPattern {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// How a Location's path is compared. `ImplementationSpecific` is `Prefix`, as in ingress-nginx.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub enum PathKind {
    /// The whole path, byte for byte.
    Exact,
    /// Element by element; trailing slashes do not matter.
    Prefix,
    /// As a pattern that is anchored at the start, without regard to case (`use-regex`,
    /// `rewrite-target`): see [`PathPattern`].
    Regex,
}

/// What makes a Location one: host, path and path type. Unique in a Snapshot.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct LocationKey {
    /// The hosts it is for.
    pub host: HostPattern,
    /// The path as written; `/` where the rule has none.
    pub path: Arc<str>,
    /// How the path is compared.
    pub kind: PathKind,
}

impl fmt::Display for LocationKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let host = match &self.host {
            HostPattern::Any => "*".to_owned(),
            host => host.to_string(),
        };
        write!(f, "{host}{} ({:?})", self.path, self.kind)
    }
}

/// A host name and its Locations.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Host {
    /// The hosts it covers.
    pub pattern: HostPattern,
    /// Further names for it (`server-alias`), sorted. None is the pattern of a Host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<HostPattern>,
    /// Its Locations, sorted by path and kind. May be empty: the host is known, every path is 404.
    pub locations: Vec<LocationId>,
}

impl Host {
    /// Whether the rule is the Host's own or one of its further names.
    pub fn is_for(&self, pattern: &HostPattern) -> bool {
        self.pattern == *pattern || self.aliases.contains(pattern)
    }
}

/// host + path + path type, with the Split that says who answers it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Location {
    /// Host, path and path type.
    pub key: LocationKey,
    /// The compiled path, for the kind [`PathKind::Regex`] only.
    #[serde(skip)]
    pub pattern: Option<PathPattern>,
    /// The main Ingress that owns it: what dashboards know it by.
    pub ingress: ObjectRef,
    /// Who answers it.
    pub split: Split,
    /// What else holds for its requests; none for most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<Arc<Policy>>,
}
