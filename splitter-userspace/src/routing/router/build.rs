use foldhash::fast::RandomState;
use hashbrown::HashTable;

use super::{EXACT_HOSTS, Edge, Node, Router, Text, WILDCARD_HOSTS, hash, path};
use crate::model::{HostPattern, Location, LocationId, PathKind, Snapshot};

/// A tree in the making: nodes are kept apart from the edges until they are complete.
pub(super) struct Builder<'a> {
    snapshot: &'a Snapshot,
    nodes: Vec<Node>,
    edges: HashTable<Edge>,
    hasher: RandomState,
}

impl<'a> Builder<'a> {
    pub(super) fn new(snapshot: &'a Snapshot) -> Self {
        Builder {
            snapshot,
            nodes: Vec::new(),
            edges: HashTable::with_capacity(snapshot.hosts.len() + snapshot.locations.len()),
            hasher: RandomState::default(),
        }
    }

    pub(super) fn finish(mut self) -> Router {
        let (wildcards, any) = self.hosts();
        for host in 0..self.snapshot.hosts.len() {
            self.paths(host);
        }
        for edge in &mut self.edges {
            edge.to = self.nodes[edge.to.number as usize];
        }
        Router {
            edges: self.edges,
            hasher: self.hasher,
            wildcards,
            any: any.map(|node| self.nodes[node as usize]),
        }
    }

    /// Makes the nodes of the hosts; says whether there are wildcards, and which node is for any.
    fn hosts(&mut self) -> (bool, Option<u32>) {
        let (mut wildcards, mut any) = (false, None);
        for host in &self.snapshot.hosts {
            let (from, name) = match &host.pattern {
                HostPattern::Exact(name) => (EXACT_HOSTS, name),
                HostPattern::Wildcard(name) => {
                    wildcards = true;
                    (WILDCARD_HOSTS, name)
                }
                HostPattern::Any => {
                    any = Some(self.node());
                    continue;
                }
            };
            let number = self.node();
            self.edge(from, name.as_bytes(), number);
        }
        (wildcards, any)
    }

    fn paths(&mut self, host: usize) {
        let snapshot = self.snapshot;
        for id in &snapshot.hosts[host].locations {
            if let Some(location) = snapshot.location(*id) {
                self.path(host as u32, *id, location);
            }
        }
    }

    fn path(&mut self, host: u32, id: LocationId, location: &Location) {
        let path = path::canonical(&location.key.path);
        let path = path.strip_prefix('/').unwrap_or(&path);
        let path = match location.key.kind {
            PathKind::Exact => Some(path),
            // The host's own node stands for the prefix `/`, which has no element.
            PathKind::Prefix => Some(path.trim_end_matches('/')).filter(|path| !path.is_empty()),
        };
        let elements = path.into_iter().flat_map(|path| path.split('/'));
        let end = elements.fold(host, |node, element| self.child(node, element.as_bytes()));
        let previous = match location.key.kind {
            PathKind::Exact => self.nodes[end as usize].exact,
            PathKind::Prefix => self.nodes[end as usize].prefix,
        };
        if previous.is_some_and(|previous| !self.is_longer(id, previous)) {
            return;
        }
        let node = &mut self.nodes[end as usize];
        match location.key.kind {
            PathKind::Exact => node.exact = Some(id),
            PathKind::Prefix => node.prefix = Some(id),
        }
    }

    fn is_longer(&self, id: LocationId, than: LocationId) -> bool {
        let length = |id| {
            let location = self.snapshot.location(id);
            location.map_or(0, |location| path::canonical(&location.key.path).len())
        };
        length(id) > length(than)
    }

    fn child(&mut self, from: u32, element: &[u8]) -> u32 {
        let hash = hash(&self.hasher, from, element);
        let same = |edge: &Edge| edge.from == from && edge.text.as_bytes() == element;
        if let Some(edge) = self.edges.find(hash, same) {
            return edge.to.number;
        }
        self.nodes[from as usize].leaf = false;
        let number = self.node();
        self.edge(from, element, number);
        number
    }

    fn edge(&mut self, from: u32, text: &[u8], to: u32) {
        let edge = Edge {
            from,
            text: Text::new(text),
            to: self.nodes[to as usize],
        };
        let hasher = &self.hasher;
        let rehash = |edge: &Edge| hash(hasher, edge.from, edge.text.as_bytes());
        self.edges
            .insert_unique(hash(hasher, from, text), edge, rehash);
    }

    fn node(&mut self) -> u32 {
        let number = self.nodes.len() as u32;
        self.nodes.push(Node {
            number,
            leaf: true,
            prefix: None,
            exact: None,
        });
        number
    }
}
