//! Finding the Location of a request.
//!
//! All hosts and paths form one tree: below the root stand the hosts, below each host the elements
//! of its paths. The edges of the tree are in one hash table, keyed by the node they leave and
//! their text, so a request costs one or two probes for its host and one for each element up to the
//! first that no rule knows, however many Locations there are. A rule's path ends at a node:
//!
//! - Prefix: at its last element, a final slash left away. The deepest such node on the request's
//!   way is the longest match.
//! - Exact: the same, but a final slash counts as an empty last element. It matches only where the
//!   request's path ends too, and there it is the longest match there can be.

use std::hash::{BuildHasher, Hasher};

use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::text::Text;
use super::{host, path, reading};
use crate::model::{LocationId, Snapshot};

/// Edges from the root to hosts leave these two nodes, which nothing else has.
const EXACT_HOSTS: u32 = u32::MAX;
const WILDCARD_HOSTS: u32 = u32::MAX - 1;

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
    edges: HashTable<Edge>,
    hasher: RandomState,
    wildcards: bool,
    any: Option<Node>,
}

/// A way from one node to the next. One cache line.
#[repr(align(64))]
struct Edge {
    from: u32,
    text: Text,
    to: Node,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Node {
    /// Its own number. Hosts have the number that they have in the Snapshot.
    number: u32,
    /// No edge leaves it.
    leaf: bool,
    prefix: Option<LocationId>,
    exact: Option<LocationId>,
}

impl Router {
    /// Builds the tree. Paths are compared in their [canonical](path::canonical) spelling. Of two
    /// rules that match the same paths (`/foo` and `/foo/` as Prefix, two spellings of one path)
    /// the longer one wins, then the first in the Snapshot.
    pub fn build(snapshot: &Snapshot) -> Self {
        build::Builder::new(snapshot).finish()
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
        let Some(node) = self.host(host) else {
            return Found::NoHost;
        };
        if !path.starts_with('/') {
            Found::NoPath(node.number)
        } else if path::is_plain(path) {
            self.walk(node, path)
        } else {
            self.find_odd(node, path)
        }
    }

    /// Every reading of the path must lead to the same Location as the path itself.
    #[cold]
    fn find_odd(&self, host: Node, path: &str) -> Found {
        if path::is_malformed(path) {
            return Found::Ambiguous;
        }
        let path = path::canonical(path);
        let found = self.walk(host, &path);
        let agreed = reading::all(&path, |reading| match reading {
            Ok(reading) => self.walk(host, reading) == found,
            Err(reading::AboveRoot) => false,
        });
        if agreed { found } else { Found::Ambiguous }
    }

    /// The index in [`Snapshot::hosts`] of the host that a normalized name belongs to.
    pub fn find_host(&self, name: &str) -> Option<u32> {
        self.host(name).map(|node| node.number)
    }

    /// The Location of a canonical path, each byte taken as it is.
    pub(super) fn find_as_is(&self, host: &str, path: &str) -> Found {
        self.host(host)
            .map_or(Found::NoHost, |node| self.walk(node, path))
    }

    fn host(&self, name: &str) -> Option<Node> {
        if let Some(node) = self.step(EXACT_HOSTS, name.as_bytes()) {
            return Some(node);
        }
        if self.wildcards
            && let Some(parent) = host::parent(name)
            && let Some(node) = self.step(WILDCARD_HOSTS, parent.as_bytes())
        {
            return Some(node);
        }
        self.any
    }

    fn walk(&self, host: Node, path: &str) -> Found {
        let elements = path.strip_prefix('/').unwrap_or(path);
        match self.descend(host, elements.as_bytes()) {
            Some(id) => Found::Location(id),
            None => Found::NoPath(host.number),
        }
    }

    fn descend(&self, host: Node, path: &[u8]) -> Option<LocationId> {
        let mut node = host;
        let mut longest = host.prefix;
        for element in path.split(|byte| *byte == b'/') {
            if node.leaf {
                return longest;
            }
            match self.step(node.number, element) {
                Some(next) => node = next,
                None => return longest,
            }
            longest = node.prefix.or(longest);
        }
        node.exact.or(longest)
    }

    fn step(&self, from: u32, text: &[u8]) -> Option<Node> {
        let hash = hash(&self.hasher, from, text);
        let same = |edge: &Edge| edge.from == from && edge.text.as_bytes() == text;
        self.edges.find(hash, same).map(|edge| edge.to)
    }
}

fn hash(hasher: &RandomState, from: u32, text: &[u8]) -> u64 {
    let mut hasher = hasher.build_hasher();
    hasher.write_u32(from);
    hasher.write(text);
    hasher.finish()
}

mod build;
#[cfg(test)]
mod tests;
