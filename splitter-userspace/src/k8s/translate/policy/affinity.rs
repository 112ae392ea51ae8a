//! `affinity` and the `session-cookie-*` annotations of a main Ingress.

use std::sync::Arc;

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::{atoi, parse_bool};
use crate::k8s::translate::report::Problems;
use crate::model::{AffinityMode, SameSite, SessionCookie};

/// The name of the cookie when no annotation gives one, as in ingress-nginx.
const NAME: &str = "INGRESSCOOKIE";

/// What the Ingress says of affinity, for all its Locations.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::k8s::translate) struct Wish {
    pub mode: AffinityMode,
    pub cookie: Arc<SessionCookie>,
}

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Wish> {
    let Some(affinity) = given(view, "affinity", problems) else {
        report_unused(view, problems);
        return None;
    };
    if affinity.value.trim() != "cookie" {
        invalid(view, affinity, "cookie", "there is no affinity", problems);
        return None;
    }
    let cookie = Arc::new(SessionCookie {
        name: name(view, problems),
        path: attribute(view, "session-cookie-path", problems),
        domain: attribute(view, "session-cookie-domain", problems),
        expires: seconds(view, "session-cookie-expires", problems),
        max_age: seconds(view, "session-cookie-max-age", problems),
        same_site: same_site(view, problems),
        conditional_none: switch(view, "session-cookie-conditional-samesite-none", problems),
        secure: switch(view, "session-cookie-secure", problems),
        change_on_failure: switch(view, "session-cookie-change-on-failure", problems),
    });
    let mode = mode(view, problems);
    Some(Wish { mode, cookie })
}

/// Annotations that say how affinity is, where there is none.
fn report_unused(view: &View<'_>, problems: &mut Problems) {
    for (name, annotation) in view.annotations.iter() {
        if name == "affinity-mode"
            || name.starts_with("session-cookie-") && super::is_supported(name)
        {
            problems.warn(
                &view.subject,
                annotation.field(),
                "affinity-missing",
                "the annotation affinity is not \"cookie\"",
                "ignored: there is no session affinity",
            );
        }
    }
}

fn mode(view: &View<'_>, problems: &mut Problems) -> AffinityMode {
    let Some(annotation) = given(view, "affinity-mode", problems) else {
        return AffinityMode::default();
    };
    match annotation.value.trim() {
        "balanced" => AffinityMode::Balanced,
        "persistent" => AffinityMode::Persistent,
        _ => {
            let allowed = "balanced or persistent";
            invalid(view, annotation, allowed, "it is balanced", problems);
            AffinityMode::default()
        }
    }
}

fn name(view: &View<'_>, problems: &mut Problems) -> Arc<str> {
    let Some(annotation) = given(view, "session-cookie-name", problems) else {
        return NAME.into();
    };
    let name = annotation.value.trim();
    if name.bytes().all(is_token) {
        return name.into();
    }
    let effect = format!("the cookie is called {NAME}");
    invalid(view, annotation, "a name of a cookie", &effect, problems);
    NAME.into()
}

/// What a cookie's name may be made of (RFC 6265 4.1.1, RFC 9110 5.6.2).
fn is_token(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

/// The value of a Path or Domain attribute.
fn attribute(view: &View<'_>, name: &str, problems: &mut Problems) -> Option<Arc<str>> {
    let annotation = given(view, name, problems)?;
    let value = annotation.value.trim();
    let plain = |byte: u8| byte.is_ascii_graphic() && byte != b';' && byte != b',';
    let is_path = name.ends_with("-path");
    let fits = match is_path {
        true => value.starts_with('/'),
        false => value
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte)),
    };
    if fits && value.bytes().all(plain) {
        return Some(value.into());
    }
    let (allowed, effect) = match is_path {
        true => (
            "a path that starts with /",
            "the path of the location is used",
        ),
        false => ("a domain name", "the cookie has no Domain"),
    };
    invalid(view, annotation, allowed, effect, problems);
    None
}

fn seconds(view: &View<'_>, name: &str, problems: &mut Problems) -> Option<i64> {
    let annotation = given(view, name, problems)?;
    let seconds = atoi(annotation.value.trim()).filter(|it| (-MOST..=MOST).contains(it));
    if seconds.is_none() {
        let effect = "the cookie goes when the browser is closed";
        invalid(view, annotation, "a number of seconds", effect, problems);
    }
    seconds
}

/// The most seconds that a cookie may last: a hundred years. Browsers allow much less.
const MOST: i64 = 100 * 366 * 24 * 3600;

fn same_site(view: &View<'_>, problems: &mut Problems) -> Option<SameSite> {
    let annotation = given(view, "session-cookie-samesite", problems)?;
    let all = [SameSite::None, SameSite::Lax, SameSite::Strict];
    let value = annotation.value.trim();
    let found = all
        .into_iter()
        .find(|it| it.as_str().eq_ignore_ascii_case(value));
    if found.is_none() {
        let effect = "the cookie has no SameSite";
        invalid(view, annotation, "None, Lax or Strict", effect, problems);
    }
    found
}

fn switch(view: &View<'_>, name: &str, problems: &mut Problems) -> bool {
    let Some(annotation) = given(view, name, problems) else {
        return false;
    };
    let value = parse_bool(annotation.value.trim());
    if value.is_none() {
        invalid(view, annotation, "true or false", "it is false", problems);
    }
    value.unwrap_or(false)
}

fn invalid(
    view: &View<'_>,
    annotation: Annotation<'_>,
    allowed: &str,
    effect: &str,
    problems: &mut Problems,
) {
    problems.error(
        &view.subject,
        annotation.field(),
        "affinity-invalid",
        format!("{:?} is not {allowed}", annotation.value),
        effect,
    );
}
