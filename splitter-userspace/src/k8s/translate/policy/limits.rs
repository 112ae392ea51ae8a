//! `limit-rps`, `limit-rpm`, `limit-connections` and what belongs to them.

use super::addresses::aliased;
use crate::k8s::translate::View;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::atoi;
use crate::k8s::translate::report::Problems;
use crate::model::{AddressSet, Rate, RateLimits};

/// How many times the limit may come at once on top, unless `limit-burst-multiplier` says otherwise.
const MULTIPLIER: u32 = 5;

/// The status of a refusal, unless the defaults say otherwise.
const STATUS: u16 = 503;

/// The limits of an Ingress: all its Locations count together, as in ingress-nginx.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<RateLimits> {
    let multiplier = number(view, "limit-burst-multiplier", "5 is used", problems);
    let multiplier = multiplier.unwrap_or(MULTIPLIER);
    let mut limit = |name| number(view, name, "this limit does not hold", problems);
    let rate = |limit: u32| Rate {
        limit,
        burst: limit.saturating_mul(multiplier),
    };
    let some = |limit: Option<u32>| limit.filter(|limit| *limit > 0);
    let per_second = some(limit("limit-rps")).map(rate);
    let per_minute = some(limit("limit-rpm")).map(rate);
    let connections = some(limit("limit-connections"));
    let exempt = exempt(view, problems);
    if per_second.is_none() && per_minute.is_none() && connections.is_none() {
        return None;
    }
    let object = &view.subject.object;
    Some(RateLimits {
        zone: format!("{}/{}", object.namespace, object.name).into(),
        per_second,
        per_minute,
        connections,
        exempt,
        rate_status: status(view, "limit-req-status-code"),
        connections_status: status(view, "limit-conn-status-code"),
    })
}

/// A whole number from 0 on; 0 is no limit.
fn number(view: &View<'_>, name: &str, effect: &str, problems: &mut Problems) -> Option<u32> {
    let annotation = given(view, name, problems)?;
    if let Some(number) = atoi(annotation.value).filter(|number| *number >= 0) {
        return Some(u32::try_from(number).unwrap_or(u32::MAX));
    }
    problems.error(
        &view.subject,
        annotation.field(),
        "limit-invalid",
        format!("{:?} is no whole number from 0 on", annotation.value),
        effect,
    );
    None
}

/// Who is not limited: nobody, if the list cannot be read.
fn exempt(view: &View<'_>, problems: &mut Problems) -> AddressSet {
    let annotation = aliased(view, "limit-allowlist", "limit-whitelist", problems);
    let Some(annotation) = annotation.filter(|it| !it.value.trim().is_empty()) else {
        return AddressSet::default();
    };
    annotation.value.parse().unwrap_or_else(|error| {
        problems.error(
            &view.subject,
            annotation.field(),
            "limit-allowlist-invalid",
            format!("{error}"),
            "nobody is exempt from the limits",
        );
        AddressSet::default()
    })
}

/// A default for the whole process that no annotation can change.
fn status(view: &View<'_>, name: &str) -> u16 {
    let value = view.annotations.preset(name);
    value.and_then(|it| it.parse().ok()).unwrap_or(STATUS)
}
