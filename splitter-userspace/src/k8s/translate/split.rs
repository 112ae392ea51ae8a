//! The Split of one Location.

use std::sync::Arc;

use super::assemble::BackendIds;
use super::attach::Attached;
use super::canary::Canary;
use super::mains::Draft;
use super::report::Problems;
use super::split_policy;
use super::weights::{Common, Share, common};
use crate::model::{Rule, Split, Test, Variant};

/// The name of the Variant that is no canary.
const STABLE_NAME: &str = "stable";

/// Makes the Split: stable, then the canaries, with their weights on one scale and their rules.
pub(super) fn split(draft: &Draft<'_>, ids: &BackendIds, problems: &mut Problems) -> Split {
    let shares = draft.canaries.iter().map(|it| Share {
        weight: it.canary.weight,
        total: it.canary.total,
    });
    let weights = common(&shares.collect::<Vec<_>>());
    report(draft, &weights, problems);
    Split {
        variants: variants(draft, &weights, ids),
        rules: rules(&draft.canaries),
        policy: split_policy::of(draft, problems).into_shared(),
    }
}

/// Names the canaries that do not get what they ask for.
fn report(draft: &Draft<'_>, weights: &Common, problems: &mut Problems) {
    let named = |index: &usize| draft.canaries.get(*index).zip(weights.canaries.get(*index));
    for (index, wanted) in &weights.cut {
        let Some((it, left)) = named(index) else {
            continue;
        };
        problems.warn(
            &it.view.subject,
            it.place.to_string(),
            "weight-cut",
            format!(
                "older canaries of {} leave {left} of {}, the canary asks for {wanted}",
                draft.key, weights.total
            ),
            format!("its weight is {left} there"),
        );
    }
    for index in &weights.rounded {
        let Some((it, _)) = named(index) else {
            continue;
        };
        let Canary { weight, total, .. } = it.canary;
        problems.warn(
            &it.view.subject,
            it.place.to_string(),
            "weight-rounded",
            format!(
                "{weight} of {total} cannot be written exactly out of {}, the total of {}",
                weights.total, draft.key
            ),
            "its weight is rounded down there",
        );
    }
}

fn variants(draft: &Draft<'_>, weights: &Common, ids: &BackendIds) -> Vec<Variant> {
    let mut variants = vec![Variant {
        name: STABLE_NAME.into(),
        ingress: draft.owner.clone(),
        backend: ids.get(&draft.stable),
        weight: weights.stable,
    }];
    for (it, weight) in draft.canaries.iter().zip(&weights.canaries) {
        variants.push(Variant {
            name: free_name(&it.target.key.service, &variants),
            ingress: it.view.subject.object.clone(),
            backend: ids.get(&it.target),
            weight: *weight,
        });
    }
    variants
}

/// The Service's name, with `~2`, `~3` … if it is taken. No Service has a `~` in its name.
fn free_name(service: &Arc<str>, taken: &[Variant]) -> Arc<str> {
    let is_free = |name: &str| taken.iter().all(|variant| &*variant.name != name);
    let mut name = Arc::clone(service);
    let mut number = 1;
    while !is_free(&name) {
        number += 1;
        name = format!("{service}~{number}").into();
    }
    name
}

/// All header rules, oldest canary first, then all cookie rules, all query rules, all rules of the
/// client's address.
fn rules(canaries: &[Attached<'_>]) -> Vec<Rule> {
    let kinds: [fn(&Canary) -> Option<Test>; 4] = [header, cookie, query, source];
    let mut rules = Vec::new();
    for kind in kinds {
        for (variant, it) in (1u8..).zip(canaries) {
            rules.extend(kind(it.canary).map(|test| Rule { variant, test }));
        }
    }
    rules
}

fn header(canary: &Canary) -> Option<Test> {
    let (name, test) = canary.header.clone()?;
    Some(Test::Header { name, test })
}

fn cookie(canary: &Canary) -> Option<Test> {
    let (name, test) = canary.cookie.clone()?;
    Some(Test::Cookie { name, test })
}

fn query(canary: &Canary) -> Option<Test> {
    let (name, test) = canary.own.query.clone()?;
    Some(Test::Query { name, test })
}

fn source(canary: &Canary) -> Option<Test> {
    canary.own.sources.clone().map(Test::Source)
}
