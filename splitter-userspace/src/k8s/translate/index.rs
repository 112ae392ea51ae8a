//! What is kept of the objects from one state to the next: by name, and what has changed.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::hash::BuildHasher as _;
use std::sync::Arc;

use foldhash::fast::RandomState;
use hashbrown::HashTable;
use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;

use super::backends::ServiceIndex;
use super::l4;
use super::slices::{SliceIndex, service_of};
use super::tls::SecretIndex;
use crate::k8s::{Objects, Sourced};
use crate::model::{Kind, ObjectRef, Rows};

/// Objects of one kind by namespace and name. Seeded at random, so that nobody who can name objects
/// can make them collide.
pub(super) struct ByName<T> {
    objects: HashTable<Sourced<T>>,
    hasher: RandomState,
}

impl<T> Default for ByName<T> {
    fn default() -> Self {
        ByName {
            objects: HashTable::new(),
            hasher: RandomState::default(),
        }
    }
}

impl<T: Metadata<Ty = ObjectMeta>> ByName<T> {
    pub(super) fn get(&self, namespace: &str, name: &str) -> Option<&Sourced<T>> {
        let hash = self.hasher.hash_one((namespace, name));
        self.objects.find(hash, |it| is(it, namespace, name))
    }

    fn insert(&mut self, object: &Sourced<T>) {
        let (namespace, name) = (object.namespace(), object.name());
        let hash = |it: &Sourced<T>| self.hasher.hash_one((it.namespace(), it.name()));
        let same = |it: &Sourced<T>| is(it, namespace, name);
        let entry = self.objects.entry(hash(object), same, hash);
        entry.insert(object.clone());
    }

    /// Takes this very object away, and not one that has its name by now.
    fn remove(&mut self, object: &Sourced<T>) {
        let hash = self.hasher.hash_one((object.namespace(), object.name()));
        if let Ok(found) = self.objects.find_entry(hash, |it| it.is_same(object)) {
            found.remove();
        }
    }

    /// Takes in what has changed; says which it is.
    fn follow(&mut self, changes: &Changes<'_, T>, kind: Kind, changed: &mut BTreeSet<ObjectRef>) {
        for object in &changes.gone {
            self.remove(object);
            changed.insert(object.object_ref(kind));
        }
        for object in &changes.new {
            self.insert(object);
            changed.insert(object.object_ref(kind));
        }
    }
}

impl<'a, T: Metadata<Ty = ObjectMeta> + 'a> FromIterator<&'a Sourced<T>> for ByName<T> {
    fn from_iter<I: IntoIterator<Item = &'a Sourced<T>>>(objects: I) -> Self {
        let mut named = ByName::default();
        objects.into_iter().for_each(|it| named.insert(it));
        named
    }
}

fn is<T: Metadata<Ty = ObjectMeta>>(it: &Sourced<T>, namespace: &str, name: &str) -> bool {
    it.namespace() == namespace && it.name() == name
}

/// What of one kind is in one of two states only.
pub(super) struct Changes<'a, T> {
    pub gone: Vec<&'a Sourced<T>>,
    pub new: Vec<&'a Sourced<T>>,
}

impl<'a, T> Changes<'a, T> {
    /// From `before` to `now`. An object that was only moved has not changed.
    pub(super) fn between(before: &'a Rows<Sourced<T>>, now: &'a Rows<Sourced<T>>) -> Self {
        let (mut gone, mut new) = (Vec::new(), Vec::new());
        for (_, old, now) in before.differences(now) {
            if let (Some(old), Some(now)) = (old, now)
                && old.is_same(now)
            {
                continue;
            }
            gone.extend(old);
            new.extend(now);
        }
        if !gone.is_empty() && !new.is_empty() {
            let address = |it: &Sourced<T>| Arc::as_ptr(&it.object).addr();
            let left: HashMap<usize, &Sourced<T>> =
                gone.iter().map(|it| (address(it), *it)).collect();
            let mut moved = BTreeSet::new();
            new.retain(|it| {
                let same = left.get(&address(it)).is_some_and(|old| old.is_same(it));
                if same {
                    moved.insert(address(it));
                }
                !same
            });
            gone.retain(|it| !moved.contains(&address(it)));
        }
        Changes { gone, new }
    }
}

/// Everything that Ingresses lead to, by name.
#[derive(Default)]
pub(super) struct Index {
    pub services: ServiceIndex,
    pub slices: SliceIndex,
    pub secrets: SecretIndex,
    /// The Services that ask for something themselves, sorted by name.
    pub asking: BTreeMap<ObjectRef, Sourced<Service>>,
}

/// What is not as it was.
#[derive(Default)]
pub(super) struct Changed {
    /// Services, Secrets and ConfigMaps that are there now and were not, or the other way round, or
    /// say something else.
    pub objects: BTreeSet<ObjectRef>,
    /// Services that lead elsewhere, it may be.
    pub leading: BTreeSet<ObjectRef>,
}

impl Index {
    /// Takes in how `now` differs from `before`, which it was made of.
    pub(super) fn follow(&mut self, before: &Objects, now: &Objects) -> Changed {
        let mut changed = BTreeSet::new();
        let services = Changes::between(&before.services, &now.services);
        self.services.follow(&services, Kind::Service, &mut changed);
        for service in &services.gone {
            self.asking.remove(&service.object_ref(Kind::Service));
        }
        for service in services.new.iter().filter(|it| l4::asks(it)) {
            let name = service.object_ref(Kind::Service);
            self.asking.insert(name, (*service).clone());
        }
        let mut leading = changed.clone();
        let slices = Changes::between(&before.slices, &now.slices);
        slices.gone.iter().for_each(|it| self.slices.remove(it));
        slices.new.iter().for_each(|it| self.slices.insert(it));
        let of = slices.gone.iter().chain(&slices.new);
        let of = of.filter_map(|it| service_of(it));
        leading.extend(of.map(|(namespace, name)| ObjectRef::new(Kind::Service, namespace, name)));
        let secrets = Changes::between(&before.secrets, &now.secrets);
        self.secrets
            .secrets
            .follow(&secrets, Kind::Secret, &mut changed);
        let maps = Changes::between(&before.config_maps, &now.config_maps);
        self.secrets
            .maps
            .follow(&maps, Kind::ConfigMap, &mut changed);
        Changed {
            objects: changed,
            leading,
        }
    }
}
