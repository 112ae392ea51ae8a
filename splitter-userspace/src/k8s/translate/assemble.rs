//! Drafts to the Snapshot, in its stable order.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

use super::View;
use super::attach::Attached;
use super::backends::{Backends, Target};
use super::canary::Canary;
use super::canary_weight::DEFAULT_TOTAL;
use super::mains::{Draft, Drafts};
use super::report::Problems;
use super::weights::{Share, common};
use crate::model::{
    BackendId, CookieTest, Host, HostPattern, Location, LocationId, Rule, Snapshot, Split, Test,
    Variant,
};

/// The name of the Variant that is no canary.
const STABLE_NAME: &str = "stable";

/// Makes the Snapshot of all Locations, their hosts and the Backends they use.
pub(super) fn snapshot(
    mut drafts: Drafts,
    canaries: &[(&View<'_>, Canary)],
    backends: &Backends<'_>,
    problems: &mut Problems,
) -> Snapshot {
    drafts.list.sort_by(|a, b| a.key.cmp(&b.key));
    for draft in drafts
        .list
        .iter_mut()
        .filter(|draft| draft.stable.closed.is_some())
    {
        // What must not be answered must not be answered by a canary either.
        draft.canaries.clear();
    }
    let ids = BackendIds::of(&drafts.list);
    let mut hosts: BTreeMap<HostPattern, Vec<LocationId>> = drafts
        .hosts
        .into_iter()
        .map(|host| (host, Vec::new()))
        .collect();
    let mut locations = Vec::with_capacity(drafts.list.len());
    for draft in drafts.list {
        let id = LocationId(locations.len() as u32);
        hosts.entry(draft.key.host.clone()).or_default().push(id);
        locations.push(Arc::new(Location {
            split: split(&draft, canaries, &ids, problems),
            ingress: draft.owner,
            key: draft.key,
        }));
    }
    let hosts = hosts
        .into_iter()
        .map(|(pattern, locations)| Host { pattern, locations });
    Snapshot {
        hosts: hosts.collect(),
        locations,
        backends: ids
            .sorted
            .iter()
            .map(|it| Arc::new(backends.backend(it)))
            .collect(),
    }
}

/// The numbers of the Backends that are used.
struct BackendIds {
    sorted: Vec<Target>,
    by_target: HashMap<Target, BackendId>,
}

impl BackendIds {
    fn of(drafts: &[Draft]) -> Self {
        let canaries = drafts
            .iter()
            .flat_map(|it| &it.canaries)
            .map(|it| &it.target);
        let used: BTreeSet<&Target> = drafts.iter().map(|it| &it.stable).chain(canaries).collect();
        let sorted: Vec<Target> = used.into_iter().cloned().collect();
        let numbered = sorted.iter().cloned().zip((0..).map(BackendId));
        BackendIds {
            by_target: numbered.collect(),
            sorted,
        }
    }

    fn get(&self, target: &Target) -> BackendId {
        // Every target of a draft is in the table.
        self.by_target
            .get(target)
            .copied()
            .unwrap_or(BackendId(u32::MAX))
    }
}

fn split(
    draft: &Draft,
    canaries: &[(&View<'_>, Canary)],
    ids: &BackendIds,
    problems: &mut Problems,
) -> Split {
    let wishes: Vec<(&Attached, &View<'_>, &Canary)> = draft
        .canaries
        .iter()
        .filter_map(|it| {
            canaries
                .get(it.canary)
                .map(|(view, canary)| (it, *view, canary))
        })
        .collect();
    let shares: Vec<_> = wishes
        .iter()
        .map(|(_, _, canary)| Share {
            weight: canary.weight,
            total: canary.total,
        })
        .collect();
    let weights = common(&shares);
    for (index, wanted) in &weights.cut {
        if let Some((attached, view, _)) = wishes.get(*index) {
            let left = weights.canaries.get(*index).copied().unwrap_or(0);
            problems.warn(
                &view.subject,
                attached.place.to_string(),
                "weight-cut",
                format!(
                    "older canaries of {} leave {left} of {}, the canary asks for {wanted}",
                    draft.key, weights.total
                ),
                format!("its weight is {left} there"),
            );
        }
    }
    for index in &weights.rounded {
        if let Some((attached, view, canary)) = wishes.get(*index) {
            problems.warn(
                &view.subject,
                attached.place.to_string(),
                "weight-rounded",
                format!(
                    "{} of {} cannot be written exactly out of {}, the total of {}",
                    canary.weight, canary.total, weights.total, draft.key
                ),
                "its weight is rounded down there",
            );
        }
    }
    let mut variants = vec![Variant {
        name: STABLE_NAME.into(),
        ingress: draft.owner.clone(),
        backend: ids.get(&draft.stable),
        weight: if wishes.is_empty() {
            DEFAULT_TOTAL
        } else {
            weights.stable
        },
    }];
    for ((attached, _, _), weight) in wishes.iter().zip(&weights.canaries) {
        variants.push(Variant {
            name: free_name(&attached.target.key.service, &variants),
            ingress: attached.ingress.clone(),
            backend: ids.get(&attached.target),
            weight: *weight,
        });
    }
    let rules = rules(wishes.iter().map(|(_, _, canary)| *canary));
    Split { variants, rules }
}

/// The Service's name, with `~2`, `~3` … if it is taken. No Service has a `~` in its name.
fn free_name(service: &Arc<str>, taken: &[Variant]) -> Arc<str> {
    let is_free = |name: &str| taken.iter().all(|variant| &*variant.name != name);
    if is_free(service) {
        return Arc::clone(service);
    }
    let numbered = (2..).map(|number| format!("{service}~{number}"));
    numbered
        .into_iter()
        .find(|name| is_free(name))
        .map_or_else(|| Arc::clone(service), Arc::from)
}

/// All header rules, oldest canary first, then all cookie rules.
fn rules<'c>(canaries: impl Iterator<Item = &'c Canary> + Clone) -> Vec<Rule> {
    let numbered = || (1u8..).zip(canaries.clone());
    let headers = numbered().filter_map(|(variant, canary)| {
        let (name, test) = canary.header.clone()?;
        Some(Rule {
            variant,
            test: Test::Header { name, test },
        })
    });
    let cookies = numbered().filter_map(|(variant, canary)| {
        let name = canary.cookie.clone()?;
        Some(Rule {
            variant,
            test: Test::Cookie {
                name,
                test: CookieTest::AlwaysNever,
            },
        })
    });
    headers.chain(cookies).collect()
}
