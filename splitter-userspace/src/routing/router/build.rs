use std::borrow::Cow;

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::patterns::Patterns;
use super::{EXACT, Entry, Host, Router, Rule, Table, Text, WILDCARD, hash, path};
use crate::model::{HostPattern, Location, LocationId, PathKind, Snapshot};

pub(super) fn build(snapshot: &Snapshot) -> Router {
    let mut router = Router {
        hosts: Table::with_capacity(snapshot.hosts.len()),
        rules: Table::with_capacity(snapshot.locations.len()),
        patterns: Patterns::default(),
        wildcards: false,
        any: None,
    };
    for (number, host) in snapshot.hosts.iter().enumerate() {
        let mut built = Host {
            number: number as u32,
            root: None,
            depths: 0,
            deepest: 0,
            patterned: false,
        };
        for id in &host.locations {
            if let Some(location) = snapshot.location(*id) {
                match &location.pattern {
                    Some(pattern) => {
                        built.patterned = true;
                        router.patterns.add(built.number, pattern, *id);
                    }
                    None => add_path(&mut router.rules, snapshot, &mut built, *id, location),
                }
            }
        }
        for pattern in host.aliases.iter().chain([&host.pattern]) {
            add_host(&mut router, pattern, built);
        }
    }
    router.patterns.sort();
    router
}

fn add_host(router: &mut Router, pattern: &HostPattern, built: Host) {
    match pattern {
        HostPattern::Exact(name) => *router.hosts.entry(EXACT, name, built) = built,
        HostPattern::Wildcard(name) => {
            router.wildcards = true;
            *router.hosts.entry(WILDCARD, name, built) = built;
        }
        HostPattern::Any => router.any = Some(built),
    }
}

fn add_path(
    rules: &mut Table<Rule>,
    snapshot: &Snapshot,
    host: &mut Host,
    id: LocationId,
    location: &Location,
) {
    let path = stored(&location.key.path);
    let path = match location.key.kind {
        PathKind::Exact => &path,
        PathKind::Prefix | PathKind::Regex => path.trim_end_matches('/'),
    };
    let place = if path.is_empty() {
        &mut host.root
    } else {
        host.add(path::scan(path).slashes);
        let rule = rules.entry(host.number, path, Rule::default());
        match location.key.kind {
            PathKind::Exact => &mut rule.exact,
            PathKind::Prefix | PathKind::Regex => &mut rule.prefix,
        }
    };
    if place.is_none_or(|other| length(snapshot, id) > length(snapshot, other)) {
        *place = Some(id);
    }
}

/// The canonical spelling of a rule's path, with the first slash that it may lack.
fn stored(path: &str) -> Cow<'_, str> {
    match path::canonical(path) {
        path if path.starts_with('/') => path,
        path => Cow::Owned(format!("/{path}")),
    }
}

fn length(snapshot: &Snapshot, id: LocationId) -> usize {
    let location = snapshot.location(id);
    location.map_or(0, |location| path::canonical(&location.key.path).len())
}

impl<T> Table<T> {
    fn with_capacity(capacity: usize) -> Self {
        Table {
            entries: HashTable::with_capacity(capacity),
            hasher: RandomState::default(),
        }
    }

    /// The value at a key; `new` if there was none.
    fn entry(&mut self, group: u32, text: &str, new: T) -> &mut T {
        let hasher = &self.hasher;
        let key = hash(hasher, group, text.as_bytes());
        let rehash = |entry: &Entry<T>| hash(hasher, entry.group, entry.text.as_bytes());
        let same = |entry: &Entry<T>| entry.is(group, text);
        let entry = self
            .entries
            .entry(key, same, rehash)
            .or_insert_with(|| Entry {
                group,
                text: Text::new(text.as_bytes()),
                value: new,
            });
        &mut entry.into_mut().value
    }
}
