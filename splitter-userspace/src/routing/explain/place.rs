//! The way to a Location: hosts, paths, readings.

use std::sync::Arc;

use serde::Serialize;

use crate::model::{
    Host, HostPattern, Location, LocationId, LocationKey, ObjectRef, Rows, Snapshot,
};
use crate::routing::{Found, Router, canonical, host, path, reading};

/// A host rule that could apply to a request.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct HostCandidate {
    /// The rule.
    pub pattern: HostPattern,
    /// Whether there is such a rule.
    pub exists: bool,
}

/// A Location whose path matches.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PathCandidate {
    /// The Location.
    pub location: LocationKey,
    /// The main Ingress that owns it.
    pub ingress: ObjectRef,
}

/// A way in which a backend could read a path.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Reading {
    /// A `%` without two hex digits, or an encoded NUL: it cannot be known how.
    Malformed,
    /// It leads above the root.
    AboveRoot,
    /// As another path.
    As {
        /// That path.
        path: String,
        /// Where it would lead; none when nowhere.
        location: Option<LocationKey>,
    },
}

/// The host rules that could apply, up to the first that exists.
pub(super) fn hosts(snapshot: &Snapshot, name: &str) -> Vec<HostCandidate> {
    let mut candidates = Vec::new();
    let exact = (!name.is_empty()).then(|| HostPattern::Exact(name.into()));
    let wildcard = host::parent(name).map(|parent| HostPattern::Wildcard(parent.into()));
    for pattern in [exact, wildcard, Some(HostPattern::Any)]
        .into_iter()
        .flatten()
    {
        let exists = snapshot.hosts.iter().any(|host| host.is_for(&pattern));
        candidates.push(HostCandidate { pattern, exists });
        if exists {
            break;
        }
    }
    candidates
}

/// The matching Locations of a host in order of precedence: found by a router that knows only
/// those which are left, so that the order is the router's own.
pub(super) fn paths(snapshot: &Snapshot, host: u32, path: &str) -> Vec<PathCandidate> {
    let Some(host) = snapshot.hosts.get(host as usize) else {
        return Vec::new();
    };
    let path = canonical(path);
    let known = host
        .locations
        .iter()
        .filter_map(|id| snapshot.location(*id));
    let mut left: Vec<&Arc<Location>> = known
        .filter(|location| best(&[location], &path).is_some())
        .collect();
    let mut candidates = Vec::new();
    while let Some(index) = best(&left, &path) {
        let location = left.remove(index);
        let (key, ingress) = (location.key.clone(), location.ingress.clone());
        candidates.push(PathCandidate {
            location: key,
            ingress,
        });
    }
    candidates
}

/// Which of these Locations, all taken as being for any host, a canonical path finds.
fn best(locations: &[&Arc<Location>], path: &str) -> Option<usize> {
    let ids = (0..locations.len()).map(|index| LocationId(index as u32));
    let snapshot = Snapshot {
        hosts: Rows::from_iter([Host {
            pattern: HostPattern::Any,
            aliases: Vec::new(),
            locations: ids.collect(),
        }]),
        locations: locations
            .iter()
            .map(|location| Arc::clone(location))
            .collect(),
        ..Snapshot::default()
    };
    match Router::build(&snapshot).find_as_is("", path) {
        Found::Location(LocationId(index)) => Some(index as usize),
        _ => None,
    }
}

/// The readings of a path that lead elsewhere than the path as it is.
pub(super) fn readings(
    snapshot: &Snapshot,
    router: &Router,
    host: &str,
    path: &str,
) -> Vec<Reading> {
    if path::is_malformed(path) {
        return vec![Reading::Malformed];
    }
    let canonical = canonical(path);
    let here = router.find_as_is(host, &canonical);
    let mut readings: Vec<Reading> = Vec::new();
    reading::all(&canonical, |reading| {
        let other = match reading {
            Err(reading::AboveRoot) => Reading::AboveRoot,
            Ok(path) => match router.find_as_is(host, path) {
                found if found == here => return true,
                found => Reading::As {
                    path: path.to_owned(),
                    location: key(snapshot, found),
                },
            },
        };
        if !readings.contains(&other) {
            readings.push(other);
        }
        true
    });
    readings
}

fn key(snapshot: &Snapshot, found: Found) -> Option<LocationKey> {
    match found {
        Found::Location(id) => snapshot.location(id).map(|location| location.key.clone()),
        _ => None,
    }
}
