//! The header annotations of a canary Ingress.

use http::HeaderName;

use super::View;
use super::annotations::Annotation;
use super::canary::{given, is_basic};
use super::pattern::Patterns;
use super::report::Problems;
use crate::model::HeaderTest;

/// The header rule of a canary, if it has a usable header name.
pub(super) fn read(
    view: &View<'_>,
    patterns: &mut Patterns,
    problems: &mut Problems,
) -> Option<(HeaderName, HeaderTest)> {
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
    Some((name?, header_test(view, patterns, problems)))
}

/// `-` and `_` are the same, as are upper and lower case.
fn header_name(text: &str) -> Option<HeaderName> {
    if !text.bytes().all(is_basic) {
        return None;
    }
    let folded = text.trim_matches(' ').replace('_', "-");
    HeaderName::from_bytes(folded.as_bytes()).ok()
}

fn header_test(view: &View<'_>, patterns: &mut Patterns, problems: &mut Problems) -> HeaderTest {
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
        (None, Some(pattern)) => header_pattern(view, pattern, patterns, problems),
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

fn header_pattern(
    view: &View<'_>,
    it: Annotation<'_>,
    patterns: &mut Patterns,
    problems: &mut Problems,
) -> HeaderTest {
    let compiled = if it.value.bytes().all(is_pattern) {
        patterns.get(it.value)
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

fn is_pattern(byte: u8) -> bool {
    byte != b' ' && (is_basic(byte) || b"^$[](){}*+?|&=\\".contains(&byte))
}
