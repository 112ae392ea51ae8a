use std::borrow::Cow;

use crate::model::{BackendKey, HostPattern, PathKind, STABLE, Variant};
use crate::routing::Reason;

use super::Record;

/// One side of a request: the main one that dashboards know, or the one that was chosen.
#[derive(Clone, Copy)]
pub(super) struct Side<'a> {
    pub(super) variant: &'a Variant,
    /// Its Service port; none only when the Snapshot is at odds with itself.
    pub(super) backend: Option<&'a BackendKey>,
}

impl Side<'_> {
    pub(super) fn service(&self) -> &str {
        self.backend.map_or("", |key| &key.service)
    }

    pub(super) fn port(&self) -> &str {
        self.backend.map_or("", |key| &key.port)
    }
}

impl<'a> Record<'a> {
    /// The stable side of the request's Location, whoever answered.
    pub(super) fn main(&self) -> Option<Side<'a>> {
        self.side(STABLE)
    }

    /// The side that was chosen to answer, if one was.
    pub(super) fn chosen(&self) -> Option<Side<'a>> {
        self.side(self.decision?.variant)
    }

    /// The chosen side if it is a canary.
    pub(super) fn canary(&self) -> Option<Side<'a>> {
        let variant = self.decision?.variant;
        (variant != STABLE).then(|| self.side(variant)).flatten()
    }

    fn side(&self, variant: usize) -> Option<Side<'a>> {
        let (_, location) = self.location?;
        let variant = location.split.variants.get(variant)?;
        let backend = self.live.snapshot.backend(variant.backend);
        Some(Side {
            variant,
            backend: backend.map(|backend| &backend.key),
        })
    }

    pub(super) fn reason(&self) -> Option<Reason> {
        self.decision.map(|decision| decision.reason)
    }
}

/// A host pattern as a label or a log field: `_` is any host, the name that nginx gives to its
/// catch-all server.
pub(super) fn host_label(pattern: &HostPattern) -> Cow<'_, str> {
    match pattern {
        HostPattern::Any => Cow::Borrowed("_"),
        HostPattern::Exact(name) => Cow::Borrowed(name),
        HostPattern::Wildcard(_) => Cow::Owned(pattern.to_string()),
    }
}

pub(super) fn path_type(kind: PathKind) -> &'static str {
    match kind {
        PathKind::Exact => "Exact",
        PathKind::Prefix => "Prefix",
        PathKind::Regex => "ImplementationSpecific",
    }
}
