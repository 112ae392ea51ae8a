//! `enable-cors` and the `cors-*` annotations. A bad value is left out, which allows less, or gives
//! way to ingress-nginx's default.

use http::HeaderValue;

use crate::k8s::translate::View;
use crate::k8s::translate::annotations::Annotation;
use crate::k8s::translate::canary::given;
use crate::k8s::translate::golang::{atoi, parse_bool};
use crate::k8s::translate::report::Problems;
use crate::model::{Cors, Origin, Origins};

const METHODS: HeaderValue = HeaderValue::from_static("GET, PUT, POST, DELETE, PATCH, OPTIONS");
const HEADERS: HeaderValue = HeaderValue::from_static(
    "DNT,Keep-Alive,User-Agent,X-Requested-With,If-Modified-Since,Cache-Control,Content-Type,Range,\
     Authorization",
);
const MAX_AGE: HeaderValue = HeaderValue::from_static("1728000");

/// What has no effect without `enable-cors`.
const DETAILS: [&str; 6] = [
    "cors-allow-credentials",
    "cors-allow-headers",
    "cors-allow-methods",
    "cors-allow-origin",
    "cors-expose-headers",
    "cors-max-age",
];

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Option<Cors> {
    if !switch(view, "enable-cors", false, problems) {
        report_details(view, problems);
        return None;
    }
    Some(Cors {
        origins: origins(view, problems),
        methods: names(view, "cors-allow-methods", is_method, problems).unwrap_or(METHODS),
        headers: names(view, "cors-allow-headers", is_name, problems).unwrap_or(HEADERS),
        expose: names(view, "cors-expose-headers", is_exposed, problems),
        credentials: switch(view, "cors-allow-credentials", true, problems),
        max_age: max_age(view, problems),
    })
}

fn report_details(view: &View<'_>, problems: &mut Problems) {
    for annotation in DETAILS.iter().filter_map(|it| view.annotations.own(it)) {
        problems.warn(
            &view.subject,
            annotation.field(),
            "cors-off",
            "it has no effect, as enable-cors is not \"true\"",
            "no CORS header is set",
        );
    }
}

/// A true or false of Go's.
fn switch(view: &View<'_>, name: &str, default: bool, problems: &mut Problems) -> bool {
    let Some(annotation) = given(view, name, problems) else {
        return default;
    };
    parse_bool(annotation.value).unwrap_or_else(|| {
        let what = format!("{:?} is neither true nor false", annotation.value);
        // Off is what allows less.
        invalid(view, annotation, what, "it counts as false", problems);
        false
    })
}

fn origins(view: &View<'_>, problems: &mut Problems) -> Origins {
    let Some(annotation) = given(view, "cors-allow-origin", problems) else {
        return Origins::Any;
    };
    let parts = annotation.value.split(',').map(str::trim);
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    if parts.contains(&"*") {
        return Origins::Any;
    }
    let mut listed = Vec::with_capacity(parts.len());
    for part in parts {
        match Origin::read(part) {
            Some(origin) => listed.push(origin),
            None => {
                let what = format!("{part:?} is no origin such as https://*.example.com:8443");
                let effect = "this origin is not allowed, the others are";
                invalid(view, annotation, what, effect, problems);
            }
        }
    }
    Origins::Listed(listed)
}

/// A list of names as it is to stand in a header.
fn names(
    view: &View<'_>,
    name: &str,
    is_good: fn(&str) -> bool,
    problems: &mut Problems,
) -> Option<HeaderValue> {
    let annotation = given(view, name, problems)?;
    let value = annotation.value.trim();
    let mut words = value.split([',', ' ']).filter(|word| !word.is_empty());
    if words.all(is_good)
        && let Ok(value) = HeaderValue::from_str(value)
    {
        return Some(value);
    }
    let what = format!("{value:?} is no list of names, separated by commas");
    invalid(view, annotation, what, "it counts as not set", problems);
    None
}

fn is_method(word: &str) -> bool {
    word.bytes().all(|it| it.is_ascii_alphabetic())
}

fn is_name(word: &str) -> bool {
    word.bytes()
        .all(|it| it.is_ascii_alphanumeric() || b"-_".contains(&it))
}

fn is_exposed(word: &str) -> bool {
    word == "*" || is_name(word)
}

fn max_age(view: &View<'_>, problems: &mut Problems) -> HeaderValue {
    let Some(annotation) = given(view, "cors-max-age", problems) else {
        return MAX_AGE;
    };
    // -1 has browsers keep nothing.
    if let Some(seconds) = atoi(annotation.value).filter(|seconds| *seconds >= -1) {
        return HeaderValue::from(seconds);
    }
    let what = format!("{:?} is no number of seconds", annotation.value);
    let effect = "1728000 (20 days) is sent";
    invalid(view, annotation, what, effect, problems);
    MAX_AGE
}

fn invalid(
    view: &View<'_>,
    annotation: Annotation<'_>,
    what: String,
    effect: &str,
    problems: &mut Problems,
) {
    problems.error(
        &view.subject,
        annotation.field(),
        "cors-invalid",
        what,
        effect,
    );
}
