//! The annotations of a canary Ingress that only this program knows, under `splitter.io/`.

use std::sync::Arc;

use http::HeaderName;

use super::View;
use super::annotations::Annotation;
use super::canary::given;
use super::pattern::Patterns;
use super::report::Problems;
use crate::model::{AddressSet, SplitKey, ValueTest};

/// What a canary asks for beyond what ingress-nginx knows.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Own {
    /// The name and the test of the query rule.
    pub query: Option<(Arc<str>, ValueTest)>,
    /// The ranges of the rule of the client's address.
    pub sources: Option<AddressSet>,
    /// What decides in place of chance.
    pub key: Option<SplitKey>,
    /// The header that names who answered.
    pub response_header: Option<HeaderName>,
    /// How many of a million requests it is sent a copy of.
    pub mirror: Option<u32>,
}

impl Own {
    /// Whether any of it gives the canary requests.
    pub(super) fn gives_requests(&self) -> bool {
        self.query.is_some() || self.sources.is_some() || self.mirror.is_some()
    }
}

pub(super) fn read(view: &View<'_>, problems: &mut Problems) -> Own {
    Own {
        query: query(view, problems),
        sources: sources(view, problems),
        key: key(view, problems),
        response_header: response_header(view, problems),
        mirror: mirror(view, problems),
    }
}

/// The annotation if it is written with our own prefix; with another one nobody has ever heard of
/// it, and reading it would change what an Ingress does that was written for somebody else.
pub(super) fn own<'a>(
    view: &View<'a>,
    name: &str,
    problems: &mut Problems,
) -> Option<Annotation<'a>> {
    view.annotations.get(name).filter(Annotation::is_own)?;
    given(view, name, problems)
}

/// `canary-by-cookie-value` and `canary-by-cookie-pattern`: what the cookie of the cookie rule must
/// be, in place of `always` and `never`.
pub(super) fn cookie_test(
    view: &View<'_>,
    patterns: &mut Patterns,
    problems: &mut Problems,
) -> ValueTest {
    let value = own(view, "canary-by-cookie-value", problems);
    let pattern = own(view, "canary-by-cookie-pattern", problems);
    match (value, pattern) {
        (None, None) => ValueTest::AlwaysNever,
        (Some(value), pattern) => {
            if let Some(pattern) = pattern {
                problems.warn(
                    &view.subject,
                    pattern.field(),
                    "pattern-unused",
                    "canary-by-cookie-value is set too",
                    "the pattern is ignored, the value counts",
                );
            }
            cookie_value(view, value, problems)
        }
        (None, Some(pattern)) => match patterns.get(pattern.value) {
            Ok(pattern) => ValueTest::Pattern(pattern),
            Err(why) => {
                let message = format!("the pattern {:?} cannot be used: {why}", pattern.value);
                let effect = "the cookie rule never chooses the canary";
                problems.error(
                    &view.subject,
                    pattern.field(),
                    "pattern-invalid",
                    message,
                    effect,
                );
                ValueTest::Invalid
            }
        },
    }
}

fn cookie_value(view: &View<'_>, value: Annotation<'_>, problems: &mut Problems) -> ValueTest {
    let text = value.value.trim();
    if text
        .bytes()
        .all(|byte| byte.is_ascii_graphic() && byte != b';')
    {
        return ValueTest::Value(text.into());
    }
    invalid(
        view,
        value,
        "a value that a cookie can have",
        "the cookie rule never chooses the canary",
        problems,
    );
    ValueTest::Invalid
}

/// What the test of a rule says, whose name is missing.
pub(super) fn report_unnamed(
    view: &View<'_>,
    tests: &[&str],
    missing: &str,
    problems: &mut Problems,
) {
    for name in tests {
        if let Some(annotation) = own(view, name, problems) {
            problems.warn(
                &view.subject,
                annotation.field(),
                "rule-name-missing",
                format!("it says what a value must be, but {missing} does not say of what"),
                "ignored",
            );
        }
    }
}

fn query(view: &View<'_>, problems: &mut Problems) -> Option<(Arc<str>, ValueTest)> {
    let Some(name) = own(view, "canary-by-query", problems) else {
        let tests = ["canary-by-query-value"];
        report_unnamed(view, &tests, "canary-by-query", problems);
        return None;
    };
    let test = match own(view, "canary-by-query-value", problems) {
        Some(value) => ValueTest::Value(value.value.trim().into()),
        None => ValueTest::AlwaysNever,
    };
    Some((name.value.trim().into(), test))
}

fn sources(view: &View<'_>, problems: &mut Problems) -> Option<AddressSet> {
    let annotation = own(view, "canary-by-source-range", problems)?;
    match annotation.value.parse() {
        Ok(set) => Some(set),
        Err(why) => {
            problems.error(
                &view.subject,
                annotation.field(),
                "canary-rule-invalid",
                format!("{:?}: {why}", annotation.value),
                "no address chooses the canary",
            );
            None
        }
    }
}

/// A percentage with up to four decimals, as parts of a million.
fn mirror(view: &View<'_>, problems: &mut Problems) -> Option<u32> {
    let annotation = own(view, "mirror", problems)?;
    let share = per_million(annotation.value.trim());
    if share.is_none() {
        let allowed = "a percentage from 0 to 100 with at most four decimals";
        invalid(view, annotation, allowed, "nothing is copied", problems);
    }
    share.filter(|share| *share > 0)
}

fn per_million(text: &str) -> Option<u32> {
    let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(decimals) || !(1..=4).contains(&decimals.len()) {
        return None;
    }
    let whole: u32 = whole.parse().ok()?;
    let decimals: u32 = format!("{decimals:0<4}").parse().ok()?;
    let share = whole.checked_mul(10_000)?.checked_add(decimals)?;
    (share <= 1_000_000).then_some(share)
}

fn key(view: &View<'_>, problems: &mut Problems) -> Option<SplitKey> {
    let annotation = own(view, "canary-hash-by", problems)?;
    let key = parse_key(annotation.value.trim());
    if key.is_none() {
        invalid(
            view,
            annotation,
            "header:NAME, cookie:NAME, query:NAME or client-address",
            "chance decides by the weight",
            problems,
        );
    }
    key
}

fn parse_key(text: &str) -> Option<SplitKey> {
    if text == "client-address" {
        return Some(SplitKey::Client);
    }
    let (kind, name) = text.split_once(':')?;
    let name = name.trim();
    match kind.trim() {
        _ if name.is_empty() => None,
        "header" => HeaderName::from_bytes(name.as_bytes())
            .ok()
            .map(SplitKey::Header),
        "cookie" => Some(SplitKey::Cookie(name.into())),
        "query" => Some(SplitKey::Query(name.into())),
        _ => None,
    }
}

/// `canary-response-header`, on a canary or on the main Ingress.
pub(super) fn response_header(view: &View<'_>, problems: &mut Problems) -> Option<HeaderName> {
    let annotation = own(view, "canary-response-header", problems)?;
    let name = annotation.value.trim();
    let name = HeaderName::from_bytes(name.as_bytes()).ok();
    let name = name.filter(|name| !RESERVED.contains(name));
    if name.is_none() {
        invalid(
            view,
            annotation,
            "the name of a header that answers do not have anyway",
            "no header names who answered",
            problems,
        );
    }
    name
}

/// Fields that say how a message is to be read, or whose loss breaks answers.
const RESERVED: [HeaderName; 11] = [
    http::header::CONNECTION,
    http::header::CONTENT_ENCODING,
    http::header::CONTENT_LENGTH,
    http::header::CONTENT_TYPE,
    http::header::DATE,
    http::header::LOCATION,
    http::header::SET_COOKIE,
    http::header::TE,
    http::header::TRAILER,
    http::header::TRANSFER_ENCODING,
    http::header::UPGRADE,
];

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
        "canary-rule-invalid",
        format!("{:?} is not {allowed}", annotation.value),
        effect,
    );
}
