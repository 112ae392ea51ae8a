//! What is said for all Ingresses in one place (ingress-nginx's ConfigMap): values for annotations
//! that an Ingress does not have, and settings of the process.

use std::collections::BTreeMap;

use k8s_openapi::api::networking::v1::Ingress;

use super::View;
use super::annotations::Annotations;
use super::catalogue;
use super::policy;
use super::report::{Problems, Subject};
use super::tls::{SecretIndex, Secrets};
use crate::config::{DEFAULT_SETTINGS, Defaults};
use crate::model::{Kind, ObjectRef, Severity};

/// Annotations that ingress-nginx takes defaults for, by the same name but for those in [`ALIASES`].
const KEYS: &[&str] = &[
    "allowlist-source-range",
    "client-body-buffer-size",
    "custom-http-errors",
    "denylist-source-range",
    "force-ssl-redirect",
    "limit-rate",
    "limit-rate-after",
    "load-balance",
    "preserve-trailing-slash",
    "proxy-body-size",
    "proxy-buffer-size",
    "proxy-buffering",
    "proxy-buffers-number",
    "proxy-busy-buffers-size",
    "proxy-connect-timeout",
    "proxy-cookie-domain",
    "proxy-cookie-path",
    "proxy-http-version",
    "proxy-max-temp-file-size",
    "proxy-next-upstream",
    "proxy-next-upstream-timeout",
    "proxy-next-upstream-tries",
    "proxy-read-timeout",
    "proxy-redirect-from",
    "proxy-redirect-to",
    "proxy-request-buffering",
    "proxy-send-timeout",
    "relative-redirects",
    "service-upstream",
    "ssl-ciphers",
    "ssl-prefer-server-ciphers",
    "ssl-protocols",
    "ssl-redirect",
    "upstream-hash-by",
    "upstream-hash-by-subset",
    "upstream-hash-by-subset-size",
    "use-port-in-redirects",
];

/// Keys whose annotation is called otherwise.
const ALIASES: &[(&str, &str)] = &[
    ("whitelist-source-range", "allowlist-source-range"),
    ("proxy-redirect", "proxy-redirect-from"),
];

/// Keys that are statuses, which no annotation can change.
const STATUSES: &[(&str, std::ops::RangeInclusive<u16>)] = &[
    ("http-redirect-code", 301..=308),
    ("limit-conn-status-code", 400..=599),
    ("limit-req-status-code", 400..=599),
];

/// Keys that keep somebody out: a bad value closes the Ingresses that it is for.
const GUARDS: [&str; 2] = ["allowlist-source-range", "denylist-source-range"];

/// The values that hold, by annotation, or by key where there is none of that name.
pub(super) type Values<'a> = BTreeMap<&'a str, &'a str>;

/// Looks at each value once, so that a bad one is one Problem and not one of each Ingress. It counts
/// as not set.
pub(super) fn read<'a>(defaults: &'a Defaults, problems: &mut Problems) -> Values<'a> {
    let kind = match defaults.namespace.is_empty() {
        true => Kind::File,
        false => Kind::ConfigMap,
    };
    let subject = Subject {
        object: ObjectRef::new(kind, &defaults.namespace, &defaults.name),
        source: &defaults.source,
    };
    let mut values = Values::new();
    for (key, value) in &defaults.values {
        let alias = ALIASES.iter().find(|(alias, _)| alias == key);
        let name = alias.map_or(key.as_str(), |(_, name)| name);
        if policy::GLOBAL.iter().any(|(_, global)| global == key) {
            // Each Ingress that it is for is closed by what cannot be read in it, and says so.
            values.insert(name, value.trim());
        } else if let Some((_, range)) = STATUSES.iter().find(|(status, _)| *status == key) {
            if value.trim().parse().is_ok_and(|it| range.contains(&it)) {
                values.insert(name, value.trim());
            } else {
                let (low, high) = (range.start(), range.end());
                let what = format!("{value:?} is no status from {low} to {high}");
                problems.error(&subject, field(key), "default-invalid", what, UNSET);
            }
        } else if name == policy::OPEN_KEY {
            if is_open_list(value, &subject, problems) {
                values.insert(name, value);
            }
        } else if name == policy::ALLOWED_HEADERS {
            values.insert(name, value);
        } else if KEYS.contains(&name) && is_read(name) {
            if is_good(key, name, value, &subject, problems) {
                values.insert(name, value);
            }
        } else if !DEFAULT_SETTINGS.contains(&key.as_str()) {
            report_unknown(key, KEYS.contains(&name), &subject, problems);
        }
    }
    values
}

fn is_read(name: &str) -> bool {
    policy::is_supported(name) || catalogue::OWN_MAIN.contains(&name)
}

const UNSET: &str = "it counts as not set";

fn field(key: &str) -> String {
    format!("data.{key}")
}

/// Whether an Ingress that had the value as its own annotation would be told nothing worse than a
/// warning; what it would be told is said of the defaults instead.
fn is_good(
    key: &str,
    name: &str,
    value: &str,
    subject: &Subject<'_>,
    problems: &mut Problems,
) -> bool {
    let ingress = Ingress::default();
    let none = SecretIndex::default();
    let secrets = Secrets::new(&none);
    let view = View {
        ingress: &ingress,
        subject: subject.clone(),
        annotations: Annotations::default().on_top_of(&Values::from([(name, value)])),
        secrets: &secrets,
        strict_pods: false,
        passthrough: false,
    };
    let mut found = Problems::default();
    policy::main_policy(&view, &mut found);
    let mut good = true;
    for problem in found.into_sorted() {
        let (message, effect) = (problem.message, problem.effect);
        match problem.severity {
            Severity::Warning => problems.warn(subject, field(key), problem.code, message, effect),
            Severity::Error => {
                good = false;
                problems.error(subject, field(key), problem.code, message, effect);
            }
        }
    }
    good || GUARDS.contains(&name)
}

/// Whether each part of what paths begin with that nobody guards is the beginning of one.
fn is_open_list(value: &str, subject: &Subject<'_>, problems: &mut Problems) -> bool {
    let field = || field(policy::OPEN_KEY);
    if let Some(odd) = policy::open_prefixes(value).find(|it| !it.starts_with('/')) {
        let what = format!("no path begins with {odd:?}");
        problems.error(subject, field(), "default-invalid", what, UNSET);
        return false;
    }
    if policy::open_prefixes(value).any(|it| it == "/") {
        let what = "every path begins with \"/\"";
        let effect = "auth-type, auth-url and jwt-* keep nobody out anywhere, as in ingress-nginx";
        problems.warn(subject, field(), "guards-off", what, effect);
    }
    true
}

fn report_unknown(key: &str, known: bool, subject: &Subject<'_>, problems: &mut Problems) {
    let (code, what) = match known {
        true => ("default-unsupported", "this key is not supported"),
        false => ("default-unknown", "no such key is known here"),
    };
    problems.warn(
        subject,
        field(key),
        code,
        format!("{key}: {what}"),
        "ignored",
    );
}
