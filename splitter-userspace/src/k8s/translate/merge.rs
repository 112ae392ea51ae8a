//! The Parts of all groups to one Snapshot, and where their Services lead.

use std::collections::btree_map;
use std::collections::{BTreeMap, BTreeSet, HashMap};
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
    /// Who was made of an object.
    readers: HashMap<ObjectRef, BTreeSet<GroupId>>,
    /// In the Snapshot's order: whose it is, and its place there.
    hosts: BTreeMap<HostPattern, (GroupId, usize)>,
    /// In the Snapshot's order.
    targets: BTreeMap<Target, Used>,
    ports: BTreeMap<BackendKey, Port>,
    secrets: BTreeMap<ObjectRef, (usize, SecretData)>,
    /// Backends that are to be made.
    unmade: BTreeSet<Target>,
    /// Service ports of which it is not known where they lead.
    unread: BTreeSet<BackendKey>,
    /// What all this comes to, as far as it still holds.
    made: Made,
}

/// What was made of all Parts.
#[derive(Default)]
struct Made {
    snapshot: Option<Snapshot>,
    secrets: Option<Arc<BTreeMap<ObjectRef, SecretData>>>,
    names: Option<BTreeSet<Arc<str>>>,
    /// What is wrong is as it was when it was last asked for.
    told: bool,
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
    /// The groups that were made of one of these objects.
    pub(super) fn readers(&self, objects: &BTreeSet<ObjectRef>) -> BTreeSet<GroupId> {
        let readers = objects.iter().filter_map(|it| self.readers.get(it));
        readers.flatten().copied().collect()
    }

    /// Takes out the Part of a group, to be given back to [`Self::put`].
    pub(super) fn take(&mut self, id: GroupId) -> Option<Part> {
        self.parts.remove(&id)
    }

    /// Takes the Parts that still hold, those that are new, and those that are gone.
    pub(super) fn put(
        &mut self,
        kept: Vec<(GroupId, Part)>,
        fresh: Vec<(GroupId, Part)>,
        gone: Vec<(GroupId, Part)>,
    ) {
        self.parts.extend(kept);
        let problems = |parts: &[(GroupId, Part)]| -> Vec<Problem> {
            let all = parts.iter().flat_map(|(_, part)| &part.problems);
            all.cloned().collect()
        };
        self.made.told &= problems(&fresh) == problems(&gone);
        let before = self.targets.len();
        // First what is new, so that nothing is forgotten that is needed still.
        let added = fresh.iter().filter(|(_, part)| self.count(part)).count();
        let mut left = BTreeSet::new();
        for (id, part) in &gone {
            self.discount(*id, part);
            for host in &part.assembled.hosts {
                self.hosts.remove(&host.pattern);
                left.insert(host.pattern.clone());
            }
        }
        let renumber = added > 0 || self.targets.len() != before;
        if renumber {
            self.made.snapshot = None;
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
                left.remove(&host.pattern);
            }
            let fits = self.made.snapshot.as_mut().map(|it| patch(it, &mut part));
            if fits == Some(false) {
                self.made.snapshot = None;
            }
            for object in part.read() {
                self.readers.entry(object.clone()).or_default().insert(id);
            }
            self.parts.insert(id, part);
        }
        if !left.is_empty() {
            self.made.snapshot = None;
        }
    }

    /// Notes what a Part uses. True when a Backend is among it that nobody used before.
    fn count(&mut self, part: &Part) -> bool {
        let mut new = false;
        for (target, fault) in &part.assembled.targets {
            match self.targets.entry(target.clone()) {
                btree_map::Entry::Vacant(free) => {
                    new = true;
                    self.unmade.insert(target.clone());
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
                        self.unmade.insert(target.clone());
                    }
                }
            }
        }
        for key in &part.ports {
            let port = self.ports.entry(key.clone()).or_default();
            port.parts += 1;
            if port.led.is_none() {
                self.unread.insert(key.clone());
            }
        }
        for (secret, data) in &part.secrets {
            let used = self.secrets.entry(secret.clone());
            let used = used.or_insert_with(|| {
                self.made.secrets = None;
                (0, data.clone())
            });
            used.0 += 1;
            if used.1 != *data {
                self.made.secrets = None;
                used.1 = data.clone();
            }
        }
        new
    }

    fn discount(&mut self, id: GroupId, part: &Part) {
        for object in part.read() {
            if let Some(readers) = self.readers.get_mut(object) {
                readers.remove(&id);
                if readers.is_empty() {
                    self.readers.remove(object);
                }
            }
        }
        for (target, _) in &part.assembled.targets {
            if let btree_map::Entry::Occupied(mut used) = self.targets.entry(target.clone()) {
                used.get_mut().parts -= 1;
                if used.get().parts == 0 {
                    used.remove();
                    self.unmade.remove(target);
                }
            }
        }
        for key in &part.ports {
            if let Some(port) = self.ports.get_mut(key) {
                port.parts -= 1;
                if port.parts == 0 {
                    let led = self.ports.remove(key).and_then(|it| it.led);
                    self.made.forget(led.as_ref(), None);
                    self.unread.remove(key);
                }
            }
        }
        for secret in part.secrets.keys() {
            if let Some(used) = self.secrets.get_mut(secret) {
                used.0 -= 1;
                if used.0 == 0 {
                    self.secrets.remove(secret);
                    self.made.secrets = None;
                }
            }
        }
    }

    /// Finds out where Services lead: those of `leading`, and with `renamed` those that lead to a name.
    pub(super) fn resolve(
        &mut self,
        leading: &BTreeSet<ObjectRef>,
        renamed: bool,
        sources: &Sources<'_>,
    ) {
        let mut asked = std::mem::take(&mut self.unread);
        for service in leading {
            let first = BackendKey {
                namespace: Arc::clone(&service.namespace),
                service: Arc::clone(&service.name),
                port: "".into(),
            };
            let of = |key: &BackendKey| {
                (&key.namespace, &key.service) == (&first.namespace, &first.service)
            };
            let ports = self.ports.range(&first..).map(|(key, _)| key);
            asked.extend(ports.take_while(|it| of(it)).cloned());
        }
        if renamed {
            let named = |port: &Port| port.led.as_ref().is_some_and(|it| it.name.is_some());
            let ports = self.ports.iter().filter(|(_, port)| named(port));
            asked.extend(ports.map(|(key, _)| key.clone()));
        }
        let mut unmade = std::mem::take(&mut self.unmade);
        for key in asked {
            let Some(port) = self.ports.get_mut(&key) else {
                continue;
            };
            let known = port.led.as_ref();
            if known.is_some_and(|led| led.is_current(&key, sources)) {
                continue;
            }
            let led = Led::read(&key, sources);
            self.made.forget(known, Some(&led));
            port.led = Some(led);
            let first = Target {
                key,
                closed: None,
                by_service: false,
            };
            let targets = self.targets.range(&first..).map(|(target, _)| target);
            unmade.extend(targets.take_while(|it| it.key == first.key).cloned());
        }
        for target in unmade {
            self.make(&target);
        }
    }

    /// Makes the Backend of a target. One that says the same stays the same allocation, which is
    /// compared at once.
    fn make(&mut self, target: &Target) {
        let Some(used) = self.targets.get_mut(target) else {
            return;
        };
        let led = self.ports.get(&target.key).and_then(|it| it.led.as_ref());
        let backend = backend(target, used.fault, led);
        if used.backend.as_deref() == Some(&backend) {
            return;
        }
        let backend = Arc::new(backend);
        used.backend = Some(Arc::clone(&backend));
        if let Some(snapshot) = &mut self.made.snapshot {
            match snapshot.backends.get_mut(used.id.0 as usize) {
                Some(place) => *place = backend,
                None => self.made.snapshot = None,
            }
        }
    }

    /// Everything in its order.
    pub(super) fn snapshot(&mut self) -> Snapshot {
        let snapshot = self.made.snapshot.take().unwrap_or_else(|| self.build());
        self.made.snapshot.insert(snapshot).clone()
    }

    fn build(&self) -> Snapshot {
        let mut snapshot = Snapshot::default();
        let (mut terms_of, mut passed_on) = (BTreeMap::new(), BTreeMap::new());
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
                terms_of.insert(host.pattern.clone(), terms.clone());
            }
            let passed = assembled.passthrough.get(&host.pattern);
            let passed = passed.and_then(|id| host.locations.iter().position(|it| it == id));
            if let Some(location) = passed.and_then(|place| locations.get(place)) {
                passed_on.insert(host.pattern.clone(), *location);
            }
            snapshot.hosts.push(Host {
                pattern: host.pattern.clone(),
                aliases: host.aliases.clone(),
                locations,
            });
        }
        let backends = self.targets.values().filter_map(|it| it.backend.clone());
        snapshot.backends = backends.collect();
        snapshot.tls_terms = Arc::new(terms_of);
        snapshot.passthrough = Arc::new(passed_on);
        snapshot
    }

    /// The Secrets that are used. The same map as before as long as it says the same.
    pub(super) fn secrets(&mut self) -> Arc<BTreeMap<ObjectRef, SecretData>> {
        let used = || {
            let used = self.secrets.iter();
            let used = used.map(|(name, (_, data))| (name.clone(), data.clone()));
            Arc::new(used.collect())
        };
        Arc::clone(self.made.secrets.get_or_insert_with(used))
    }

    /// What is wrong, in no order.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> + '_ {
        let of_parts = self.parts.values().flat_map(|it| &it.problems);
        of_parts.chain(self.leds().flat_map(|it| &it.problems))
    }

    /// Whether that may not be what it was the last time that this was asked.
    pub(super) fn tells_other(&mut self) -> bool {
        !std::mem::replace(&mut self.made.told, true)
    }

    /// The names that are to be looked up.
    pub(super) fn names(&mut self) -> BTreeSet<Arc<str>> {
        if self.made.names.is_none() {
            let names = self.leds().filter_map(|it| it.name.clone()).collect();
            self.made.names = Some(names);
        }
        self.made.names.clone().unwrap_or_default()
    }

    fn leds(&self) -> impl Iterator<Item = &Led> + '_ {
        self.ports.values().filter_map(|it| it.led.as_ref())
    }
}

impl Made {
    /// Notes that a port leads elsewhere than it did.
    fn forget(&mut self, before: Option<&Led>, now: Option<&Led>) {
        fn problems(led: Option<&Led>) -> &[Problem] {
            led.map_or(&[], |it| &it.problems)
        }
        let name = |it: Option<&Led>| it.and_then(|led| led.name.clone());
        self.told &= problems(before) == problems(now);
        if name(before) != name(now) {
            self.names = None;
        }
    }
}

/// Puts the Locations of a Part in the place of those that its hosts have, as long as nothing else about
/// these hosts changes. False when it does: then everything is to be put in its order again. A
/// Location that says the same as before stays the same allocation.
fn patch(snapshot: &mut Snapshot, part: &mut Part) -> bool {
    let assembled = &mut part.assembled;
    for host in &assembled.hosts {
        let Some(at) = snapshot.hosts.find_by(|it| it.pattern.cmp(&host.pattern)) else {
            return false;
        };
        let Some(present) = snapshot.hosts.get(at) else {
            return false;
        };
        let tls = snapshot.tls.find_by(|it| it.host.cmp(&host.pattern));
        let tls = tls.and_then(|it| snapshot.tls.get(it));
        let passed = assembled.passthrough.get(&host.pattern);
        let passed = passed.and_then(|id| host.locations.iter().position(|it| it == id));
        let same = present.aliases == host.aliases
            && present.locations.len() == host.locations.len()
            && tls == part.tls.get(&host.pattern)
            && snapshot.tls_terms.get(&host.pattern) == assembled.tls_terms.get(&host.pattern)
            && snapshot.passthrough.get(&host.pattern)
                == passed.and_then(|place| present.locations.get(place));
        if !same {
            return false;
        }
        for (id, own) in present.locations.iter().zip(&host.locations) {
            let own = assembled.locations.get_mut(own.0 as usize);
            let (Some(own), Some(place)) = (own, snapshot.locations.get(id.0 as usize)) else {
                return false;
            };
            if place == own {
                *own = Arc::clone(place);
            } else if let Some(place) = snapshot.locations.get_mut(id.0 as usize) {
                *place = Arc::clone(own);
            }
        }
    }
    true
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
