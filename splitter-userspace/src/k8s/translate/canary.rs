//! The annotations of a canary Ingress.

use std::sync::Arc;

use http::HeaderName;

use super::View;
use super::annotations::Annotation;
use super::golang::{atoi, parse_bool};
use super::pattern;
use super::report::Problems;
use crate::model::HeaderTest;

/// The total of the weights when no Ingress names one.
pub(super) const DEFAULT_TOTAL: u32 = 100;

/// The largest total of weights; beyond it weight and total are scaled down together.
pub(super) const MAX_TOTAL: u32 = 1_000_000_000;

/// What a canary asks for on each of its Locations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Canary {
    /// At most `total`.
    pub weight: u32,
    /// 1 to [`MAX_TOTAL`].
    pub total: u32,
    /// The header rule.
    pub header: Option<(HeaderName, HeaderTest)>,
    /// The name of the cookie of the cookie rule.
    pub cookie: Option<Arc<str>>,
}

/// Reads what a canary Ingress asks for; `None` if the Ingress is no canary but an ordinary one.
pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Canary> {
    if !is_canary(view, problems) {
        return None;
    }
    let (weight, total) = weight(view, problems);
    let canary = Canary {
        weight,
        total,
        header: header(view, problems),
        cookie: cookie(view, problems),
    };
    if RULES
        .iter()
        .all(|name| view.annotations.get(name).is_none())
    {
        problems.warn(
            &view.subject,
            "metadata.annotations",
            "canary-without-rule",
            "the canary has neither a weight nor a header nor a cookie",
            "no request is given to it",
        );
    }
    Some(canary)
}

/// The annotations that give a canary requests.
const RULES: [&str; 3] = ["canary-weight", "canary-by-header", "canary-by-cookie"];

fn is_canary(view: &View<'_>, problems: &mut Problems) -> bool {
    let annotation = view.annotations.get("canary");
    let value = annotation.map(|it| (it, parse_bool(it.value)));
    match value {
        Some((_, Some(true))) => true,
        Some((annotation, None)) => {
            problems.error(
                &view.subject,
                annotation.field(),
                "canary-invalid",
                format!("{:?} is neither true nor false", annotation.value),
                "it counts as false: the Ingress is an ordinary one",
            );
            false
        }
        Some((_, Some(false))) | None => {
            report_disabled(view, problems);
            false
        }
    }
}

fn report_disabled(view: &View<'_>, problems: &mut Problems) {
    let weight = view.annotations.get("canary-weight");
    let weight = weight.filter(|it| atoi(it.value).is_some_and(|weight| weight > 0));
    let names = [
        "canary-by-header",
        "canary-by-header-value",
        "canary-by-header-pattern",
        "canary-by-cookie",
    ];
    let rules = names.iter().filter_map(|name| view.annotations.get(name));
    let Some(first) = weight.into_iter().chain(rules).next() else {
        return;
    };
    problems.error(
        &view.subject,
        first.field(),
        "canary-disabled",
        "it is set, but the annotation canary is not \"true\"",
        "the Ingress is an ordinary one",
    );
}

fn weight(view: &View<'_>, problems: &mut Problems) -> (u32, u32) {
    let total = total(view, problems);
    let Some(annotation) = view.annotations.get("canary-weight") else {
        return (0, narrow(total));
    };
    let weight = match atoi(annotation.value) {
        Some(weight) if weight >= 0 => weight.unsigned_abs(),
        found => {
            let what = if found.is_some() {
                "below zero"
            } else {
                "no whole number"
            };
            problems.error(
                &view.subject,
                annotation.field(),
                "weight-invalid",
                format!("{:?} is {what}", annotation.value),
                "the weight is 0",
            );
            0
        }
    };
    if weight > total {
        problems.warn(
            &view.subject,
            annotation.field(),
            "weight-excess",
            format!("the weight {weight} is more than the total of {total}"),
            format!("the weight is {total}: every request"),
        );
    }
    if total > u64::from(MAX_TOTAL) {
        problems.warn(
            &view.subject,
            annotation.field(),
            "weight-total-large",
            format!("a weight-total of {total} is more than {MAX_TOTAL}"),
            format!("weight and total are scaled down to a total of {MAX_TOTAL}"),
        );
    }
    let weight = weight.min(total);
    (scale(weight, total, narrow(total)), narrow(total))
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

fn header(view: &View<'_>, problems: &mut Problems) -> Option<(HeaderName, HeaderTest)> {
    let test = [
        view.annotations.get("canary-by-header-value"),
        view.annotations.get("canary-by-header-pattern"),
    ];
    let Some(annotation) = given(view, "canary-by-header", problems) else {
        for annotation in test.into_iter().flatten() {
            problems.warn(
                &view.subject,
                annotation.field(),
                "header-missing",
                "it says what a header's value must be, but canary-by-header names no header",
                "ignored",
            );
        }
        return None;
    };
    let name = header_name(annotation.value);
    if name.is_none() {
        problems.error(
            &view.subject,
            annotation.field(),
            "header-invalid",
            format!("{:?} is no name of a header", annotation.value),
            "the header rule is left out",
        );
    }
    Some((name?, header_test(view, problems)))
}

/// `-` and `_` are the same, as are upper and lower case.
fn header_name(text: &str) -> Option<HeaderName> {
    if !text.bytes().all(is_basic) {
        return None;
    }
    let folded = text.trim_matches(' ').replace('_', "-");
    HeaderName::from_bytes(folded.as_bytes()).ok()
}

fn header_test(view: &View<'_>, problems: &mut Problems) -> HeaderTest {
    let value = given(view, "canary-by-header-value", problems);
    let pattern = given(view, "canary-by-header-pattern", problems);
    match (value, pattern) {
        (None, None) => HeaderTest::AlwaysNever,
        (Some(value), pattern) => {
            if let Some(pattern) = pattern {
                problems.warn(
                    &view.subject,
                    pattern.field(),
                    "pattern-unused",
                    "canary-by-header-value is set too",
                    "the pattern is ignored, the value counts",
                );
            }
            header_value(view, value, problems)
        }
        (None, Some(pattern)) => header_pattern(view, pattern, problems),
    }
}

fn header_value(view: &View<'_>, value: Annotation<'_>, problems: &mut Problems) -> HeaderTest {
    if value.value.bytes().all(is_basic) {
        return HeaderTest::Value(value.value.trim_matches(' ').into());
    }
    problems.error(
        &view.subject,
        value.field(),
        "header-value-invalid",
        format!(
            "{:?} has characters other than letters, digits, space and -._~/:",
            value.value
        ),
        NEVER,
    );
    HeaderTest::Invalid
}

fn header_pattern(view: &View<'_>, it: Annotation<'_>, problems: &mut Problems) -> HeaderTest {
    let compiled = if it.value.bytes().all(is_pattern) {
        pattern::compile(it.value)
    } else {
        Err("it has characters that are not allowed in a pattern".to_owned())
    };
    match compiled {
        Ok(pattern) => HeaderTest::Pattern(pattern),
        Err(why) => {
            let message = format!("the pattern {:?} cannot be used: {why}", it.value);
            problems.error(&view.subject, it.field(), "pattern-invalid", message, NEVER);
            HeaderTest::Invalid
        }
    }
}

const NEVER: &str = "the header rule never chooses the canary";

fn cookie(view: &View<'_>, problems: &mut Problems) -> Option<Arc<str>> {
    let annotation = given(view, "canary-by-cookie", problems)?;
    if annotation.value.bytes().all(is_basic) {
        return Some(annotation.value.trim_matches(' ').into());
    }
    problems.error(
        &view.subject,
        annotation.field(),
        "cookie-invalid",
        format!(
            "{:?} has characters other than letters, digits and -._~/:",
            annotation.value
        ),
        "the cookie rule is left out",
    );
    None
}

/// The annotation, unless it is empty: that says as little as none at all.
fn given<'a>(view: &View<'a>, name: &str, problems: &mut Problems) -> Option<Annotation<'a>> {
    let annotation = view.annotations.get(name)?;
    if !annotation.value.trim_matches(' ').is_empty() {
        return Some(annotation);
    }
    let effect = "it counts as not set";
    problems.warn(
        &view.subject,
        annotation.field(),
        "annotation-empty",
        "it is empty",
        effect,
    );
    None
}

fn is_basic(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/: ".contains(&byte)
}

fn is_pattern(byte: u8) -> bool {
    byte != b' ' && (is_basic(byte) || b"^$[](){}*+?|&=\\".contains(&byte))
}
