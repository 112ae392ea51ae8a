//! Finding the Location of a request.
//!
//! Two hash tables: one of hosts, one of the paths of all hosts, keyed by host and path. A request
//! costs one or two probes for its host. Then its path is looked up from the whole of it down to its
//! first element, but only at those depths (numbers of elements) at which its host has a rule at
//! all, until one is found; the host itself knows who has `/`. So the cost depends on how deep the
//! rules of one host are nested, and not on how many Locations there are.
//!
//! A rule is stored under its path: Exact as it is, Prefix without final slashes. An Exact rule can
//! only be met by the whole path, and that is then the longest match there can be.
//!
//! A host with patterns is searched like any other first. An Exact rule wins over them; else they
//! are tried, those with the longest text first, up to the length of the prefix that was found: the
//! order of ingress-nginx, where all of them would be patterns. A host without pays nothing.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use patterns::Patterns;

use super::text::Text;
use super::{host, path, reading};
use crate::model::{LocationId, Snapshot};

mod build;
mod patterns;
#[cfg(test)]
mod tests;

/// What exact names and wildcards are stored under in the table of hosts.
const EXACT: u32 = 0;
const WILDCARD: u32 = 1;

/// What [`Router::find`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The Location whose host and path match best.
    Location(LocationId),
    /// No rule is for this host.
    NoHost,
    /// The host with this index in [`Snapshot::hosts`] is the one, and none of its paths match.
    NoPath(u32),
    /// A backend could read the path so that it would belong to another Location, or to none: it
    /// must be refused (400).
    Ambiguous,
}

/// Finds Locations. Made from a Snapshot's hosts and location keys only, so that it can be kept
/// when nothing but weights, rules or endpoints changed ([`super::same_structure`]).
pub struct Router {
    hosts: Table<Host>,
    rules: Table<Rule>,
    patterns: Patterns,
    wildcards: bool,
    any: Option<Host>,
}

/// A hash table with two-part keys. Seeded at random, so that nobody who can write rules can make
/// them collide.
struct Table<T> {
    entries: HashTable<Entry<T>>,
    hasher: RandomState,
}

/// One cache line.
#[repr(align(64))]
struct Entry<T> {
    group: u32,
    text: Text,
    value: T,
}

#[derive(Clone, Copy)]
struct Host {
    /// Index in the Snapshot.
    number: u32,
    /// Who has the prefix `/`.
    root: Option<LocationId>,
    /// At which depths it has other rules: one bit for each, the last one for all from 63 on.
    depths: u64,
    /// The greatest of them; the greatest number stands for all from there on.
    deepest: u16,
    /// Whether it has patterns.
    patterned: bool,
}

/// Who has a path, as whole and as prefix.
#[derive(Clone, Copy, Default)]
struct Rule {
    exact: Option<LocationId>,
    prefix: Option<LocationId>,
}

impl Router {
    /// Builds the tables. Paths are compared in their [canonical](path::canonical) spelling. Of two
    /// rules that match the same paths (`/foo` and `/foo/` as Prefix, two spellings of one path)
    /// the longer one wins, then the first in the Snapshot.
    pub fn build(snapshot: &Snapshot) -> Self {
        build::build(snapshot)
    }

    /// The Location for a request.
    ///
    /// `host` is [normalized](super::normalize); empty for a request without one. `path` is the
    /// path as it came, without query. Exact hosts win over wildcards (one label) over rules
    /// without a host; once a host is found, no other host's paths are tried. A path that does not
    /// start with `/` (as in `OPTIONS *`) belongs to no Location.
    ///
    /// Does not allocate, unless the path is not [plain](path::is_plain).
    pub fn find(&self, host: &str, path: &str) -> Found {
        let Some(host) = self.host(host) else {
            return Found::NoHost;
        };
        if !path.starts_with('/') {
            return Found::NoPath(host.number);
        }
        let scan = path::scan(path);
        if scan.plain {
            self.path(host, path, scan.slashes)
        } else {
            self.find_odd(host, path)
        }
    }

    /// Every reading of the path must lead to the same Location as the path itself.
    #[cold]
    fn find_odd(&self, host: &Host, path: &str) -> Found {
        if path::is_malformed(path) {
            return Found::Ambiguous;
        }
        let path = path::canonical(path);
        let found = self.path(host, &path, path::scan(&path).slashes);
        let agreed = reading::all(&path, |reading| match reading {
            Ok(reading) => self.path(host, reading, path::scan(reading).slashes) == found,
            Err(reading::AboveRoot) => false,
        });
        if agreed { found } else { Found::Ambiguous }
    }

    /// The index in [`Snapshot::hosts`] of the host that a normalized name belongs to.
    pub fn find_host(&self, name: &str) -> Option<u32> {
        self.host(name).map(|host| host.number)
    }

    /// The Location of a canonical path, each byte taken as it is.
    pub(super) fn find_as_is(&self, host: &str, path: &str) -> Found {
        let found = |host| self.path(host, path, path::scan(path).slashes);
        self.host(host).map_or(Found::NoHost, found)
    }

    fn host(&self, name: &str) -> Option<&Host> {
        if let Some(host) = self.hosts.get(EXACT, name) {
            return Some(host);
        }
        if self.wildcards
            && let Some(parent) = host::parent(name)
            && let Some(host) = self.hosts.get(WILDCARD, parent)
        {
            return Some(host);
        }
        self.any.as_ref()
    }

    fn path(&self, host: &Host, path: &str, slashes: usize) -> Found {
        let mut found = self.longest(host, path, slashes);
        if host.patterned {
            found = self.with_patterns(host, path, found);
        }
        match found {
            Some((id, _)) => Found::Location(id),
            None => Found::NoPath(host.number),
        }
    }

    /// What a pattern finds before the rule that was found, else that rule.
    fn with_patterns<'p>(
        &self,
        host: &Host,
        path: &str,
        found: Option<(LocationId, Match<'p>)>,
    ) -> Option<(LocationId, Match<'p>)> {
        let prefix = match found {
            Some((_, Match::Whole)) => return found,
            Some((_, Match::Prefix(prefix))) => Some(prefix),
            None => None,
        };
        let pattern = self.patterns.find(host.number, path, prefix);
        pattern.map(|id| (id, Match::Whole)).or(found)
    }

    fn longest<'p>(
        &self,
        host: &Host,
        path: &'p str,
        slashes: usize,
    ) -> Option<(LocationId, Match<'p>)> {
        let (mut prefix, mut depth, mut whole) = (path, slashes, true);
        while depth > 0 {
            if host.has(depth)
                && let Some(rule) = self.rules.get(host.number, prefix)
            {
                if let Some(id) = rule.exact.filter(|_| whole) {
                    return Some((id, Match::Whole));
                }
                if let Some(id) = rule.prefix {
                    return Some((id, Match::Prefix(prefix)));
                }
            }
            (prefix, _) = prefix.rsplit_once('/')?;
            (depth, whole) = (depth - 1, false);
        }
        host.root.map(|id| (id, Match::Prefix("")))
    }
}

/// How much of a path a rule is for.
#[derive(Clone, Copy)]
enum Match<'p> {
    /// All of it.
    Whole,
    /// This beginning, and what follows behind a slash.
    Prefix(&'p str),
}

impl Host {
    /// Whether it has a rule at this depth, the number of slashes in its path.
    fn has(&self, depth: usize) -> bool {
        let within = depth <= usize::from(self.deepest) || self.deepest == u16::MAX;
        within && self.depths >> depth.min(63) & 1 != 0
    }

    fn add(&mut self, depth: usize) {
        self.depths |= 1 << depth.min(63);
        self.deepest = self.deepest.max(u16::try_from(depth).unwrap_or(u16::MAX));
    }
}

impl<T> Table<T> {
    fn get(&self, group: u32, text: &str) -> Option<&T> {
        let hash = hash(&self.hasher, group, text.as_bytes());
        let entry = self.entries.find(hash, |entry| entry.is(group, text))?;
        Some(&entry.value)
    }
}

impl<T> Entry<T> {
    fn is(&self, group: u32, text: &str) -> bool {
        self.group == group && self.text.as_bytes() == text.as_bytes()
    }
}

fn hash(hasher: &RandomState, group: u32, text: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_u32(group);
    hasher.write(text);
    hasher.finish()
}
