//! What is said for all Ingresses in one place.

use std::sync::Arc;

use super::support::{Ing, canary, main, objects, service};
use crate::config::{ClassSettings, Defaults};
use crate::k8s::{Translation, read_defaults, translate};
use crate::model::{Policy, Severity};

fn run(defaults: &str, ingresses: &[Ing]) -> Translation {
    let defaults: Defaults = read_defaults("defaults.yaml", defaults).unwrap();
    let settings = ClassSettings {
        defaults: Arc::new(defaults),
        ..ClassSettings::default()
    };
    let mut yaml = [service("ns", "m"), service("ns", "c")].join("---\n");
    for ingress in ingresses {
        yaml.push_str("---\n");
        yaml.push_str(&ingress.yaml());
    }
    translate(&objects(&yaml), &settings)
}

fn policy(translation: &Translation, host: &str) -> Policy {
    let mut locations = translation.snapshot.locations.iter();
    let location = locations.find(|it| it.key.host.to_string() == host);
    let policy = location.unwrap().policy.as_deref();
    policy.cloned().unwrap_or_default()
}

/// Object, field and code of each Problem.
fn problems(translation: &Translation) -> Vec<String> {
    let all = translation.problems.iter();
    all.map(|it| {
        let mark = if it.severity == Severity::Error {
            "!"
        } else {
            ""
        };
        format!("{}: {} {mark}{}", it.object, it.field, it.code)
    })
    .collect()
}

#[test]
fn a_default_holds_where_the_ingress_says_nothing() {
    let translation = run(
        "proxy-body-size: 8m\nwhitelist-source-range: 10.0.0.0/8\nlimit-req-status-code: 429\n",
        &[
            main("a").on("a", "/", "m"),
            main("b")
                .note("proxy-body-size", "1k")
                .note("whitelist-source-range", "192.0.2.0/24")
                .note("limit-rps", "5")
                .on("b", "/", "m"),
        ],
    );
    assert_eq!(problems(&translation), [""; 0]);
    let (a, b) = (policy(&translation, "a"), policy(&translation, "b"));
    assert_eq!((a.body_max, b.body_max), (Some(8 << 20), Some(1 << 10)));
    let allow = |policy: &Policy| policy.addresses.clone().unwrap().allow.unwrap().to_string();
    assert_eq!(allow(&a), "10.0.0.0/8");
    assert_eq!(allow(&b), "192.0.2.0/24");
    assert_eq!(a.limits, None);
    let limits = b.limits.unwrap();
    assert_eq!((limits.rate_status, limits.connections_status), (429, 503));
}

#[test]
fn a_canary_is_told_nothing_of_defaults() {
    let translation = run(
        "proxy-body-size: 8m\n",
        &[
            main("a").on("a", "/", "m"),
            canary("k").weight("5").on("a", "/", "c"),
        ],
    );
    assert_eq!(problems(&translation), [""; 0]);
}

#[test]
fn a_bad_default_is_one_problem_and_not_one_of_each_ingress() {
    let map = "kind: ConfigMap\nmetadata: {name: nginx, namespace: ingress}\ndata:\n  \
               proxy-read-timeout: soon\n  limit-conn-status-code: \"200\"\n";
    let ingresses = ["a", "b"].map(|name| main(name).on(name, "/", "m"));
    let translation = run(map, &ingresses);
    assert_eq!(
        problems(&translation),
        [
            "ConfigMap ingress/nginx: data.limit-conn-status-code !default-invalid",
            "ConfigMap ingress/nginx: data.proxy-read-timeout !timeout-invalid",
        ]
    );
    assert_eq!(policy(&translation, "a"), Policy::default());
}

#[test]
fn a_bad_guard_closes_those_that_it_is_for() {
    let translation = run(
        "denylist-source-range: office\n",
        &[
            main("a").on("a", "/", "m"),
            main("b")
                .note("denylist-source-range", "10.0.0.0/8")
                .on("b", "/", "m"),
        ],
    );
    let closed = |host: &str| {
        let mut locations = translation.snapshot.locations.iter();
        let location = locations.find(|it| it.key.host.to_string() == host);
        let split = &location.unwrap().split;
        let backend = translation.snapshot.backend(split.variants[0].backend);
        backend.unwrap().fault.is_some()
    };
    assert!(closed("a") && !closed("b"));
}

#[test]
fn unknown_keys_are_named() {
    let translation = run(
        "enable-vts-status: true\nload-balance-ing: x\nuse-forwarded-headers: true\n",
        &[],
    );
    assert_eq!(
        problems(&translation),
        [
            "File defaults.yaml: data.enable-vts-status default-unknown",
            "File defaults.yaml: data.load-balance-ing default-unknown",
        ]
    );
}
