//! The annotations of a canary Ingress.

use std::sync::Arc;

use http::HeaderName;

use super::View;
use super::annotations::Annotation;
use super::canary_own::Own;
use super::golang::{atoi, parse_bool};
use super::pattern::Patterns;
use super::policy::balance;
use super::report::Problems;
use super::{canary_header, canary_own, canary_weight};
use crate::model::{Balance, HeaderTest, ValueTest};

/// What a canary asks for on each of its Locations.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Canary {
    /// At most `total`.
    pub weight: u32,
    /// 1 to [`canary_weight::MAX_TOTAL`].
    pub total: u32,
    /// The header rule.
    pub header: Option<(HeaderName, HeaderTest)>,
    /// The name and the test of the cookie rule.
    pub cookie: Option<(Arc<str>, ValueTest)>,
    /// Whether the main Ingress's session affinity does not hold for it.
    pub legacy: bool,
    /// How its Endpoints are chosen, if not as the main Ingress says.
    pub balance: Option<Balance>,
    /// What only we know.
    pub own: Own,
}

/// Reads what a canary Ingress asks for; `None` if the Ingress is no canary but an ordinary one.
pub(super) fn read(
    view: &View<'_>,
    patterns: &mut Patterns,
    problems: &mut Problems,
) -> Option<Canary> {
    if !is_canary(view, problems) {
        return None;
    }
    let (weight, total) = canary_weight::read(view, problems);
    let canary = Canary {
        weight,
        total,
        header: canary_header::read(view, patterns, problems),
        cookie: cookie(view, patterns, problems),
        legacy: legacy(view, problems),
        balance: balance::read(view, problems),
        own: canary_own::read(view, problems),
    };
    if RULES
        .iter()
        .all(|name| view.annotations.get(name).is_none())
        && !canary.own.gives_requests()
    {
        problems.warn(
            &view.subject,
            "metadata.annotations",
            "canary-without-rule",
            "the canary has neither a weight nor a rule",
            "no request is given to it",
        );
    }
    Some(canary)
}

/// The annotations that give a canary requests.
const RULES: [&str; 3] = ["canary-weight", "canary-by-header", "canary-by-cookie"];

/// Whether the Ingress is a canary.
pub(super) fn is_canary(view: &View<'_>, problems: &mut Problems) -> bool {
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

fn cookie(
    view: &View<'_>,
    patterns: &mut Patterns,
    problems: &mut Problems,
) -> Option<(Arc<str>, ValueTest)> {
    let Some(annotation) = given(view, "canary-by-cookie", problems) else {
        let tests = ["canary-by-cookie-value", "canary-by-cookie-pattern"];
        canary_own::report_unnamed(view, &tests, "canary-by-cookie", problems);
        return None;
    };
    if annotation.value.bytes().all(is_basic) {
        let test = canary_own::cookie_test(view, patterns, problems);
        return Some((annotation.value.trim_matches(' ').into(), test));
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

/// `affinity-canary-behavior`: sticky unless it says legacy.
fn legacy(view: &View<'_>, problems: &mut Problems) -> bool {
    let Some(annotation) = given(view, "affinity-canary-behavior", problems) else {
        return false;
    };
    match annotation.value.trim() {
        "sticky" => false,
        "legacy" => true,
        _ => {
            problems.error(
                &view.subject,
                annotation.field(),
                "affinity-behavior-invalid",
                format!("{:?} is neither sticky nor legacy", annotation.value),
                "it is sticky: clients stay where their session cookie says",
            );
            false
        }
    }
}

/// The annotation, unless it is empty: that says as little as none at all.
pub(super) fn given<'a>(
    view: &View<'a>,
    name: &str,
    problems: &mut Problems,
) -> Option<Annotation<'a>> {
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

/// What names and values of headers and cookies may be made of.
pub(super) fn is_basic(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-._~/: ".contains(&byte)
}
