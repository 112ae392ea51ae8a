//! Which Ingresses are served, in which order, and which have hosts in common; followed from one state
//! to the next.
//!
//! A change pulls apart the groups that it touches and puts their members together anew: those of what
//! is gone, those that have a host of what is new, and those for which something else has changed. No
//! other group has a host in common with any of these, so none can be met.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use k8s_openapi::api::networking::v1::Ingress;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::index::Changes;
use super::merge::GroupId;
use super::outline::Outline;
use super::partition::partition;
use super::site;
use crate::k8s::Sourced;
use crate::model::{HostPattern, ObjectRef, Problem};

/// Tells Ingresses apart for as long as they are kept.
type Address = usize;

/// The place in the order of precedence, as `age` has it.
type Age = (bool, Option<Time>, String, String);

/// Every Ingress in outline, and the groups.
#[derive(Default)]
pub(super) struct Groups {
    /// All served Ingresses are one group.
    undivided: bool,
    outlines: HashMap<Address, Box<Outline>>,
    /// Those that are served.
    order: BTreeMap<Age, Address>,
    members: HashMap<GroupId, Vec<Address>>,
    group_of: HashMap<Address, GroupId>,
    hosts: HashMap<HostPattern, GroupId>,
    /// The wildcards that have TLS, and by how many Ingresses.
    covers: BTreeMap<HostPattern, usize>,
    /// Which Ingresses are served, as it was last told.
    served: Option<Arc<[ObjectRef]>>,
    /// What outlines tell is not as it was last told.
    told: bool,
}

/// What a change reaches.
#[derive(Default)]
struct Touch {
    groups: BTreeSet<GroupId>,
    /// Wildcards of what has changed, and whether they had TLS before.
    covered: BTreeMap<HostPattern, bool>,
    /// Places in the order that are empty now, and that are taken.
    left: BTreeSet<Age>,
    come: BTreeSet<Age>,
}

/// What has become of the groups.
#[derive(Default)]
pub(super) struct Regrouped {
    /// Those that were pulled apart.
    pub gone: BTreeSet<GroupId>,
    /// What they were put together to.
    pub new: Vec<Group>,
}

/// A group.
pub(super) struct Group {
    pub id: GroupId,
    /// Oldest first.
    pub members: Vec<Address>,
    /// The wildcards of others that have TLS and cover hosts of it, sorted.
    pub covering: Vec<HostPattern>,
}

impl Groups {
    pub(super) fn new(undivided: bool) -> Self {
        Groups {
            undivided,
            ..Groups::default()
        }
    }

    pub(super) fn is_undivided(&self) -> bool {
        self.undivided
    }

    /// Takes in what has changed; `touched` are groups for which something else has.
    pub(super) fn follow(
        &mut self,
        changes: &Changes<'_, Ingress>,
        outline: impl Fn(&Sourced<Ingress>) -> Outline,
        touched: BTreeSet<GroupId>,
    ) -> Regrouped {
        let mut touch = Touch {
            groups: touched,
            ..Touch::default()
        };
        for ingress in &changes.gone {
            self.remove(ingress, &mut touch);
        }
        let mut loose = Vec::new();
        for ingress in &changes.new {
            if self.add(outline(ingress), &mut touch) {
                loose.push(address(ingress));
            }
        }
        if touch.left != touch.come {
            self.served = None;
        }
        self.touch_covered(&mut touch);
        let mut gone = touch.groups;
        if self.undivided && !(gone.is_empty() && loose.is_empty()) {
            gone.extend(self.members.keys());
        }
        for group in &gone {
            loose.extend(self.pull_apart(*group));
        }
        Regrouped {
            gone,
            new: self.put_together(loose),
        }
    }

    /// The members of a group.
    pub(super) fn outlines<'a>(&'a self, members: &[Address]) -> Vec<&'a Outline> {
        let outlines = members.iter().filter_map(|it| self.outlines.get(it));
        outlines.map(|it| &**it).collect()
    }

    /// The Ingresses that are served, in the order of precedence. The same list as before as long as it
    /// says the same.
    pub(super) fn served(&mut self) -> Arc<[ObjectRef]> {
        let outlines = &self.outlines;
        let all = || {
            let served = self.order.values().filter_map(|it| outlines.get(it));
            served.map(|it| it.object.clone()).collect()
        };
        Arc::clone(self.served.get_or_insert_with(all))
    }

    /// What is wrong with how Ingresses name their class.
    pub(super) fn problems(&self) -> impl Iterator<Item = &Problem> + '_ {
        self.outlines.values().flat_map(|it| &it.problems)
    }

    /// Whether that may not be what it was the last time that this was asked.
    pub(super) fn tells_other(&mut self) -> bool {
        std::mem::take(&mut self.told)
    }

    fn remove(&mut self, ingress: &Sourced<Ingress>, touch: &mut Touch) {
        let address = address(ingress);
        let Some(outline) = self.outlines.remove(&address) else {
            return;
        };
        self.told |= !outline.problems.is_empty();
        if !outline.served {
            return;
        }
        touch.groups.extend(self.group_of.remove(&address));
        let age = age(ingress);
        self.order.remove(&age);
        touch.left.insert(age);
        for host in &outline.hosts {
            self.hosts.remove(host);
        }
        for wildcard in &outline.covers {
            if let Some(count) = self.covers.get_mut(wildcard) {
                touch.covered.entry(wildcard.clone()).or_insert(true);
                *count -= 1;
                if *count == 0 {
                    self.covers.remove(wildcard);
                }
            }
        }
    }

    /// Whether it is served.
    fn add(&mut self, outline: Outline, touch: &mut Touch) -> bool {
        let address = address(&outline.ingress);
        self.told |= !outline.problems.is_empty();
        let served = outline.served;
        if served {
            let age = age(&outline.ingress);
            self.order.insert(age.clone(), address);
            touch.come.insert(age);
            let meets = outline.hosts.iter().filter_map(|it| self.hosts.get(it));
            touch.groups.extend(meets);
            for wildcard in &outline.covers {
                let count = self.covers.entry(wildcard.clone()).or_default();
                touch.covered.entry(wildcard.clone()).or_insert(*count > 0);
                *count += 1;
            }
        }
        self.outlines.insert(address, Box::new(outline));
        served
    }

    /// Touches the groups with hosts below wildcards that have TLS by now, or have it no more.
    fn touch_covered(&self, touch: &mut Touch) {
        let covered = std::mem::take(&mut touch.covered).into_iter();
        let changed = covered.filter(|(it, before)| self.covers.contains_key(it) != *before);
        let changed: BTreeSet<HostPattern> = changed.map(|(it, _)| it).collect();
        if changed.is_empty() {
            return;
        }
        for (host, group) in &self.hosts {
            if site::wildcard(host).is_some_and(|it| changed.contains(&it)) {
                touch.groups.insert(*group);
            }
        }
    }

    /// The members that are left of a group.
    fn pull_apart(&mut self, group: GroupId) -> Vec<Address> {
        let mut members = self.members.remove(&group).unwrap_or_default();
        members.retain(|it| self.outlines.contains_key(it) && self.group_of.remove(it).is_some());
        for outline in members.iter().filter_map(|it| self.outlines.get(it)) {
            for host in &outline.hosts {
                self.hosts.remove(host);
            }
        }
        members
    }

    fn put_together(&mut self, mut loose: Vec<Address>) -> Vec<Group> {
        loose.sort_by_cached_key(|it| self.outlines.get(it).map(|it| age(&it.ingress)));
        let outlines = self.outlines(&loose);
        let groups = match self.undivided {
            true if loose.is_empty() => Vec::new(),
            true => vec![(0..loose.len()).collect()],
            false => partition(outlines.iter().map(|it| &it.hosts)),
        };
        let at = |index: &usize| loose.get(*index).copied();
        let groups = groups.iter().map(|it| it.iter().filter_map(at).collect());
        let groups: Vec<Vec<Address>> = groups.collect();
        groups.into_iter().filter_map(|it| self.group(it)).collect()
    }

    fn group(&mut self, members: Vec<Address>) -> Option<Group> {
        let id = *members.first()?;
        let mut wildcards = BTreeSet::new();
        for member in &members {
            self.group_of.insert(*member, id);
            let hosts = self
                .outlines
                .get(member)
                .into_iter()
                .flat_map(|it| &it.hosts);
            for host in hosts {
                self.hosts.insert(host.clone(), id);
                let wildcard = site::wildcard(host).filter(|_| !self.covers.is_empty());
                wildcards.extend(wildcard.filter(|it| self.covers.contains_key(it)));
            }
        }
        self.members.insert(id, members.clone());
        let covering = match self.undivided {
            true => Vec::new(),
            false => wildcards.into_iter().collect(),
        };
        Some(Group {
            id,
            members,
            covering,
        })
    }
}

fn age(ingress: &Sourced<Ingress>) -> Age {
    let (none, created, namespace, name) = super::age::key(ingress);
    (
        none,
        created.cloned(),
        namespace.to_owned(),
        name.to_owned(),
    )
}

fn address(ingress: &Sourced<Ingress>) -> Address {
    Arc::as_ptr(&ingress.object).addr()
}
