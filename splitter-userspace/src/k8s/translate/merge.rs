//! The Parts of all groups to one Snapshot, and where their Services lead.

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use super::backends::Target;
use super::endpoints::{Led, Sources};
use super::group::Part;
use crate::model::{
    Backend, BackendFault, BackendId, BackendKey, Endpoint, EndpointState, Host, HostPattern,
    LocationId, ObjectRef, Problem, SecretData, Snapshot,
};

/// Names a group for as long as its oldest Ingress stays as it is.
pub(super) type GroupId = usize;

/// All Parts, and what they have in common.
#[derive(Default)]
pub(super) struct Merged {
    parts: HashMap<GroupId, Part>,
    /// In the Snapshot's order: whose it is, and its place there.
    hosts: BTreeMap<HostPattern, (GroupId, usize)>,
    /// In the Snapshot's order.
    targets: BTreeMap<Target, Used>,
    ports: HashMap<BackendKey, Port>,
    secrets: BTreeMap<ObjectRef, (usize, SecretData)>,
}

/// A Backend that Parts use.
struct Used {
    /// By how many.
    parts: usize,
    fault: Option<BackendFault>,
    id: BackendId,
    /// None until it is made, or made anew.
    backend: Option<Arc<Backend>>,
}

/// A Service port that Parts look for.
#[derive(Default)]
struct Port {
    /// How many do.
    parts: usize,
    led: Option<Led>,
}

impl Merged {
    /// Takes out all Parts, to be given back to [`Self::put`] as far as they still hold.
    pub(super) fn take(&mut self) -> HashMap<GroupId, Part> {
        std::mem::take(&mut self.parts)
    }

    /// Takes the Parts that still hold, those that are new, and those that are gone.
    pub(super) fn put(
        &mut self,
        kept: HashMap<GroupId, Part>,
        fresh: Vec<(GroupId, Part)>,
        gone: Vec<(GroupId, Part)>,
    ) {
        self.parts = kept;
        let before = self.targets.len();
        // First what is new, so that nothing is forgotten that is needed still.
        let added = fresh.iter().filter(|(_, part)| self.count(part)).count();
        for (_, part) in &gone {
            self.discount(part);
            for host in &part.assembled.hosts {
                self.hosts.remove(&host.pattern);
            }
        }
        let renumber = added > 0 || self.targets.len() != before;
        if renumber {
            for (id, used) in (0..).map(BackendId).zip(self.targets.values_mut()) {
                used.id = id;
            }
            for part in self.parts.values_mut() {
                renumbered(part, &self.targets);
            }
        }
        for (id, mut part) in fresh {
            renumbered(&mut part, &self.targets);
            for (place, host) in part.assembled.hosts.iter().enumerate() {
                self.hosts.insert(host.pattern.clone(), (id, place));
            }
            self.parts.insert(id, part);
        }
    }

    /// Notes what a Part uses. True when a Backend is among it that nobody used before.
    fn count(&mut self, part: &Part) -> bool {
        let mut new = false;
        for (target, fault) in &part.assembled.targets {
            match self.targets.entry(target.clone()) {
                btree_map::Entry::Vacant(free) => {
                    new = true;
                    free.insert(Used {
                        parts: 1,
                        fault: *fault,
                        id: BackendId(u32::MAX),
                        backend: None,
                    });
                }
                btree_map::Entry::Occupied(used) => {
                    let used = used.into_mut();
                    used.parts += 1;
                    if used.fault != *fault {
                        used.fault = *fault;
                        used.backend = None;
                    }
                }
            }
        }
        for key in &part.ports {
            self.ports.entry(key.clone()).or_default().parts += 1;
        }
        for (secret, data) in &part.secrets {
            let used = self.secrets.entry(secret.clone());
            let used = used.or_insert_with(|| (0, data.clone()));
            *used = (used.0 + 1, data.clone());
        }
        new
    }

    fn discount(&mut self, part: &Part) {
        for (target, _) in &part.assembled.targets {
            if let btree_map::Entry::Occupied(mut used) = self.targets.entry(target.clone()) {
                used.get_mut().parts -= 1;
                if used.get().parts == 0 {
                    used.remove();
                }
            }
        }
        for key in &part.ports {
            if let Some(port) = self.ports.get_mut(key) {
                port.parts -= 1;
                if port.parts == 0 {
                    self.ports.remove(key);
                }
            }
        }
        for secret in part.secrets.keys() {
            if let Some(used) = self.secrets.get_mut(secret) {
                used.0 -= 1;
                if used.0 == 0 {
                    self.secrets.remove(secret);
                }
            }
        }
    }

    /// Finds out where Services lead, as far as that may have changed.
    pub(super) fn resolve(&mut self, sources: &Sources<'_>) {
        let mut changed = HashSet::new();
        for (key, port) in &mut self.ports {
            if port
                .led
                .as_ref()
                .is_some_and(|led| led.is_current(key, sources))
            {
                continue;
            }
            port.led = Some(Led::read(key, sources));
            changed.insert(key.clone());
        }
        for (target, used) in &mut self.targets {
            if used.backend.is_some() && !changed.contains(&target.key) {
                continue;
            }
            let led = self.ports.get(&target.key).and_then(|it| it.led.as_ref());
            let backend = backend(target, used.fault, led);
            // One that says the same stays the same allocation, which is compared at once.
            if used.backend.as_deref() != Some(&backend) {
                used.backend = Some(Arc::new(backend));
            }
        }
    }

    /// Everything in its order.
    pub(super) fn snapshot(&self) -> Snapshot {
        let mut snapshot = Snapshot {
            hosts: Vec::with_capacity(self.hosts.len()),
            ..Snapshot::default()
        };
        for (group, place) in self.hosts.values() {
            let part = self.parts.get(group);
            let Some((part, host)) =
                part.and_then(|part| Some((part, part.assembled.hosts.get(*place)?)))
            else {
                continue;
            };
            let mut locations = Vec::with_capacity(host.locations.len());
            for id in &host.locations {
                if let Some(location) = part.assembled.locations.get(id.0 as usize) {
                    locations.push(LocationId(snapshot.locations.len() as u32));
                    snapshot.locations.push(Arc::clone(location));
                }
            }
            snapshot.tls.extend(part.tls.get(&host.pattern).cloned());
            let assembled = &part.assembled;
            if let Some(terms) = assembled.tls_terms.get(&host.pattern) {
                let terms = terms.clone();
                snapshot.tls_terms.insert(host.pattern.clone(), terms);
            }
            let passed = assembled.passthrough.get(&host.pattern);
            let passed = passed.and_then(|id| host.locations.iter().position(|it| it == id));
            if let Some(location) = passed.and_then(|place| locations.get(place)) {
                snapshot.passthrough.insert(host.pattern.clone(), *location);
            }
            snapshot.hosts.push(Host {
                pattern: host.pattern.clone(),
                aliases: host.aliases.clone(),
                locations,
            });
        }
        let backends = self.targets.values().filter_map(|it| it.backend.clone());
        snapshot.backends = backends.collect();
        snapshot
    }

    /// The Secrets that are used.
    pub(super) fn secrets(&self) -> BTreeMap<ObjectRef, SecretData> {
        let used = self.secrets.iter();
        used.map(|(name, (_, data))| (name.clone(), data.clone()))
            .collect()
    }

    /// What is wrong, in no order.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> + '_ {
        let of_parts = self.parts.values().flat_map(|it| &it.problems);
        of_parts.chain(self.leds().flat_map(|it| &it.problems))
    }

    /// The names that are to be looked up.
    pub(super) fn names(&self) -> BTreeSet<Arc<str>> {
        self.leds().filter_map(|it| it.name.clone()).collect()
    }

    fn leds(&self) -> impl Iterator<Item = &Led> + '_ {
        self.ports.values().filter_map(|it| it.led.as_ref())
    }
}

fn renumbered(part: &mut Part, targets: &BTreeMap<Target, Used>) {
    let ids = part.assembled.targets.iter().map(|(target, _)| {
        let used = targets.get(target);
        used.map_or(BackendId(u32::MAX), |it| it.id)
    });
    let ids = ids.collect();
    part.renumber(ids);
}

fn backend(target: &Target, own: Option<BackendFault>, led: Option<&Led>) -> Backend {
    let fault = target.closed.or(own);
    let endpoints = match (fault, led) {
        (None, Some(led)) if target.by_service => {
            let ready = |addr| Endpoint {
                addr,
                state: EndpointState::Ready,
            };
            led.address.map(ready).into_iter().collect()
        }
        (None, Some(led)) => led.endpoints.clone(),
        _ => Vec::new(),
    };
    Backend {
        key: target.key.clone(),
        fault,
        endpoints,
    }
}
