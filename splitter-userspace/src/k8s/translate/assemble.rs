//! Drafts to hosts and Locations, in the Snapshot's stable order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::backends::{Backends, Target};
use super::mains::{Draft, Drafts};
use super::report::Problems;
use super::split::split;
use crate::model::{BackendFault, BackendId, Host, HostPattern, Location, LocationId, TlsTerms};

/// Hosts and Locations with the Backends that they need.
pub(super) struct Assembled {
    /// Sorted by pattern; their Locations by number in `locations`.
    pub hosts: Vec<Host>,
    /// Sorted by key; their Backends by number in `targets`.
    pub locations: Vec<Arc<Location>>,
    /// Sorted, with the faults that they have by themselves.
    pub targets: Vec<(Target, Option<BackendFault>)>,
    /// How TLS is spoken with the clients of hosts, where an Ingress says so.
    pub tls_terms: BTreeMap<HostPattern, TlsTerms>,
    /// The hosts whose TLS is left to pods, and the Location of each that says which.
    pub passthrough: BTreeMap<HostPattern, LocationId>,
}

/// Makes all Locations and their hosts.
pub(super) fn assemble(
    drafts: Drafts<'_>,
    backends: &Backends<'_>,
    problems: &mut Problems,
) -> Assembled {
    let Drafts {
        mut list,
        hosts,
        aliases,
        tls_terms,
        passthrough,
        ..
    } = drafts;
    list.sort_by(|a, b| a.key.cmp(&b.key));
    for draft in list.iter_mut().filter(|it| it.stable.closed.is_some()) {
        // What must not be answered must not be answered by a canary either.
        draft.canaries.clear();
    }
    let ids = BackendIds::of(&list);
    let mut hosts: BTreeMap<HostPattern, Vec<LocationId>> =
        hosts.into_iter().map(|host| (host, Vec::new())).collect();
    let mut locations = Vec::with_capacity(list.len());
    for (id, draft) in (0..).map(LocationId).zip(list) {
        hosts.entry(draft.key.host.clone()).or_default().push(id);
        locations.push(Arc::new(Location {
            split: split(&draft, &ids, problems),
            ingress: draft.owner,
            pattern: draft.pattern,
            policy: draft.policy,
            key: draft.key,
        }));
    }
    let mut names: HashMap<HostPattern, Vec<HostPattern>> = HashMap::new();
    for (alias, host) in aliases {
        names.entry(host).or_default().push(alias);
    }
    let passthrough = passthrough.into_iter().filter_map(|(host, key)| {
        let found = locations
            .binary_search_by(|it: &Arc<Location>| it.key.cmp(&key))
            .ok()?;
        Some((host, LocationId(u32::try_from(found).ok()?)))
    });
    let passthrough: BTreeMap<_, _> = passthrough.collect();
    let hosts = hosts.into_iter().map(|(pattern, locations)| Host {
        aliases: names.remove(&pattern).unwrap_or_default(),
        pattern,
        locations,
    });
    let targets = ids.sorted.into_iter().map(|target| {
        let fault = backends.fault(&target.key);
        (target, fault)
    });
    Assembled {
        hosts: hosts.collect(),
        locations,
        targets: targets.collect(),
        tls_terms,
        passthrough,
    }
}

/// The numbers of the Backends that are used.
pub(super) struct BackendIds {
    sorted: Vec<Target>,
    by_target: HashMap<Target, BackendId>,
}

impl BackendIds {
    fn of(drafts: &[Draft<'_>]) -> Self {
        let stables = drafts.iter().map(|it| &it.stable);
        let canaries = drafts
            .iter()
            .flat_map(|it| &it.canaries)
            .map(|it| &it.target);
        let fallbacks = drafts.iter().filter_map(|it| {
            let key = it.policy.as_ref()?.fallback.clone()?;
            Some(Target {
                key,
                closed: None,
                by_service: false,
            })
        });
        let asked = drafts.iter().filter_map(|it| {
            let guards = it.policy.as_ref()?.guards.as_ref()?;
            Some(Target {
                key: guards.external.as_ref()?.service.clone(),
                closed: None,
                by_service: false,
            })
        });
        let used = stables.chain(canaries).cloned();
        let used: BTreeSet<Target> = used.chain(fallbacks).chain(asked).collect();
        let sorted: Vec<Target> = used.into_iter().collect();
        let numbered = sorted.iter().cloned().zip((0..).map(BackendId));
        BackendIds {
            by_target: numbered.collect(),
            sorted,
        }
    }

    /// The number of a target of one of the drafts.
    pub(super) fn get(&self, target: &Target) -> BackendId {
        self.by_target
            .get(target)
            .copied()
            .unwrap_or(BackendId(u32::MAX))
    }
}
