//! The weight annotations of a canary Ingress.

use super::View;
use super::annotations::Annotation;
use super::golang::atoi;
use super::report::Problems;

/// The total of the weights when no Ingress names one.
pub(super) const DEFAULT_TOTAL: u32 = 100;

/// The largest total of weights; beyond it weight and total are scaled down together.
pub(super) const MAX_TOTAL: u32 = 1_000_000_000;

/// The weight of a canary and its total: weight at most total, total 1 to [`MAX_TOTAL`].
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> (u32, u32) {
    let total = total(view, problems);
    let weight = match view.annotations.get("canary-weight") {
        Some(annotation) => weight(view, annotation, total, problems),
        None => 0,
    };
    (scale(weight, total, narrow(total)), narrow(total))
}

fn weight(view: &View<'_>, it: Annotation<'_>, total: u64, problems: &mut Problems) -> u64 {
    let weight = match atoi(it.value).map(u64::try_from) {
        Some(Ok(weight)) => weight,
        found => {
            let what = match found {
                Some(_) => "below zero",
                None => "no whole number",
            };
            let message = format!("{:?} is {what}", it.value);
            let effect = "the weight is 0";
            problems.error(&view.subject, it.field(), "weight-invalid", message, effect);
            0
        }
    };
    if weight > total {
        problems.warn(
            &view.subject,
            it.field(),
            "weight-excess",
            format!("the weight {weight} is more than the total of {total}"),
            format!("the weight is {total}: every request"),
        );
    }
    weight.min(total)
}

fn narrow(total: u64) -> u32 {
    u32::try_from(total).map_or(MAX_TOTAL, |total| total.min(MAX_TOTAL))
}

/// `weight` of `from` as a weight of `to`, rounded down.
pub(super) fn scale(weight: u64, from: u64, to: u32) -> u32 {
    let scaled = u128::from(weight) * u128::from(to) / u128::from(from.max(1));
    u32::try_from(scaled).unwrap_or(to).min(to)
}

fn total(view: &View<'_>, problems: &mut Problems) -> u64 {
    let Some(annotation) = view.annotations.get("canary-weight-total") else {
        return u64::from(DEFAULT_TOTAL);
    };
    match atoi(annotation.value) {
        Some(total) if total > 0 => {
            if total < i64::from(DEFAULT_TOTAL) {
                problems.warn(
                    &view.subject,
                    annotation.field(),
                    "weight-total-small",
                    format!("ingress-nginx would take the total {total} for {DEFAULT_TOTAL}"),
                    format!("weights count out of {total} here"),
                );
            }
            if total > i64::from(MAX_TOTAL) {
                problems.warn(
                    &view.subject,
                    annotation.field(),
                    "weight-total-large",
                    format!("the total {total} is more than {MAX_TOTAL}"),
                    format!("weight and total are scaled down to a total of {MAX_TOTAL}"),
                );
            }
            total.unsigned_abs()
        }
        _ => {
            problems.error(
                &view.subject,
                annotation.field(),
                "weight-total-invalid",
                format!("{:?} is no whole number above zero", annotation.value),
                format!("the total is {DEFAULT_TOTAL}"),
            );
            u64::from(DEFAULT_TOTAL)
        }
    }
}
